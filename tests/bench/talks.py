"""The cases of talks.lua in PyTorch, printed the same way."""
import torch

from bench import case, ints, made, size, uniform


def pairwise_loop(x, y):
    out = torch.empty(len(x), len(y))
    for i in range(len(x)):
        point, row = x[i], out[i]
        for j in range(len(y)):
            d = point - y[j]
            row[j] = (d * d).sum().sqrt()
    return out


def pairwise_batched(x, y):
    d = x.unsqueeze(1) - y.unsqueeze(0)
    return (d * d).sum(2).sqrt()


def ten(p, v):
    for _ in range(10):
        p = p * v
    return p


def make_ten(n):
    v = uniform((size(n),), 0.5, 1.5)
    return lambda: ten(v, v)


def single_elements():
    a, b = torch.ones(1), torch.ones(1)
    g, some = torch.ones(1, requires_grad=True), torch.ones(10)

    def backward():
        ten(g, b).backward()

    def gradient():
        backward()
        return g.grad
    case("add_1", lambda: a + b, 1)
    case("add_1_inplace", lambda: a.add_(b), 1)
    case("add_1_grad", lambda: g + b, 1)
    case("select_1", lambda: some[2], 1)
    case("backward_chain10_scalar", backward, 1, gradient)


def make_pick(pick, dtype, n):
    source, index = ints((n,), 0, 100).to(dtype), ints((n,), 0, n)
    return lambda: pick(source, index)


def main():
    x, y = uniform((100, 2)), uniform((size(200), 2))
    case("pairwise_loop_100x200x2", lambda: pairwise_loop(x, y), 1)
    case("pairwise_batched_100x200x2", lambda: pairwise_batched(x, y), 1)
    for n in (5, 1000, 100000, 10000000):
        made(f"mul10_eager_{n}", lambda n=n: make_ten(n), 1)
    single_elements()
    for name in ("uint8", "int32", "int64", "float16", "float32", "float64"):
        for label, n in (("1k", 1000), ("100k", 100000), ("1M", 1000000)):
            dtype, n = getattr(torch, name), size(n)
            made(f"take_{name}_{label}", lambda d=dtype, n=n: make_pick(torch.take, d, n), 1)
            made(f"gather_{name}_{label}", lambda d=dtype, n=n: make_pick(lambda s, i: s.gather(0, i), d, n), 1)


if __name__ == "__main__":
    main()
