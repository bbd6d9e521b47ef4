"""script.py: the cases of script.lua in PyTorch: as they are written, and by torch.jit.script."""
import torch

import bench


def tenfold(x, y):
    for _ in range(10):
        x = x * y
    return x


def gelu_mlp(x, w1, b1, w2, b2):
    h = x @ w1 + b1
    h = h * 0.5 * (1 + (0.7978845608 * (h + 0.044715 * h * h * h)).tanh())
    return h @ w2 + b2


def norm_residual(x, y, weight, bias):
    mean = x.mean(1, keepdim=True)
    off = x - mean
    spread = (off * off).mean(1, keepdim=True)
    return off / (spread + 1e-5).sqrt() * weight + bias + y


def cross_entropy(x, hot):
    top = x.amax(1, keepdim=True)
    logs = x - top - (x - top).exp().sum(1, keepdim=True).log()
    return -(logs * hot).sum() / x.size(0)


def lstm_cell(x, h, c, w, u, b):
    i, f, g, o = (x @ w + h @ u + b).chunk(4, 1)
    new = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * new.tanh()


def adam(p, g, m, v):
    avg = m * 0.9 + g * 0.1
    square = v * 0.999 + g * g * 0.001
    return p - 0.001 * avg / (square.sqrt() + 1e-8)


PROGRAMS = (
    (tenfold, lambda n: [(n,), (n,)], 2),
    (gelu_mlp, lambda n: [(n, 64), (64, 256), (256,), (256, 64), (64,)], 5),
    (norm_residual, lambda n: [(n, 64), (n, 64), (64,), (64,)], 4),
    (cross_entropy, lambda n: [(n, 64), (n, 64)], 1),
    (lstm_cell, lambda n: [(n, 64), (n, 64), (n, 64), (64, 256), (64, 256), (256,)], 6),
    (adam, lambda n: [(n,)] * 4, 0),
)
SIZES = {"tenfold": (5, 1000, 100000, 10000000), "adam": (100, 10000, 1000000)}


def make(function, shapes, trained):
    inputs = [bench.uniform(shape, 0.9, 1.1) for shape in shapes]
    for x in inputs[:trained]:
        x.requires_grad_()

    def run():
        y = function(*inputs)
        return torch.autograd.grad((y * y).sum(), inputs[:trained])[0] if trained else y
    for _ in range(2 if bench.TINY else 100):
        run()
    return run


def main():
    for function, shapes, trained in PROGRAMS:
        name = function.__name__
        for size in SIZES.get(name, (4, 64, 1024)):
            n = bench.size(size)
            for way in ("eager", "scripted"):
                f = function if way == "eager" else torch.jit.script(function)
                bench.made(f"{name}_{size}_{way}", lambda f=f, n=n, shapes=shapes: make(f, shapes(n), 0), 1)
                if trained and size < 10000000:
                    bench.made(f"{name}_{size}_backward_{way}", lambda f=f, n=n, shapes=shapes, t=trained: make(f, shapes(n), t), 1)


main()
