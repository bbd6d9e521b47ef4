"""script.py: the cases of script.lua in PyTorch, one WAY: eager (as they are written), scripted (torch.jit.script) or compiled
(torch.compile: of each program the size in the middle, until SCRIPT_SECONDS have gone into compiling). The arguments: WAY, then
cases."""
import json
import os
import sys
import time
import warnings
from typing import List

import torch
import torch.nn.functional as F
from torch import Tensor

WAY = sys.argv.pop(1) if len(sys.argv) > 1 else "eager"
import bench  # noqa: E402  (reads what is left of the arguments)

warnings.simplefilter("ignore")


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


def norm_dropout(x, y, weight, bias):
    return F.dropout(F.layer_norm(x, [64], weight, bias), 0.1, True) + y


def cross_entropy(x, hot):
    top = x.amax(1, keepdim=True)
    logs = x - top - (x - top).exp().sum(1, keepdim=True).log()
    return -(logs * hot).sum() / x.size(0)


def lstm_cell(x, h, c, w, u, b):
    i, f, g, o = (x @ w + h @ u + b).chunk(4, 1)
    new = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * new.tanh(), new


def adam(p, g, m, v):
    avg = m * 0.9 + g * 0.1
    square = v * 0.999 + g * g * 0.001
    return p - 0.001 * avg / (square.sqrt() + 1e-8), avg, square


def adam20(ps: List[Tensor], gs: List[Tensor], ms: List[Tensor], vs: List[Tensor]):
    new: List[Tensor] = []
    avgs: List[Tensor] = []
    squares: List[Tensor] = []
    for p, g, m, v in zip(ps, gs, ms, vs):
        avg = m * 0.9 + g * 0.1
        square = v * 0.999 + g * g * 0.001
        new.append(p - 0.001 * avg / (square.sqrt() + 1e-8))
        avgs.append(avg)
        squares.append(square)
    return new, avgs, squares


def box_iou(x1, y1, x2, y2):
    area = (x2 - x1) * (y2 - y1)
    total = (x1 * 0).sum()
    for k in range(x1.size(0)):
        w = (torch.minimum(x2, x2[k]) - torch.maximum(x1, x1[k])).clamp(0)
        h = (torch.minimum(y2, y2[k]) - torch.maximum(y1, y1[k])).clamp(0)
        both = w * h
        total = total + (both / (area + area[k] - both)).gt(0.5).sum()
    return total


def resnet_block(x, w1, g1, b1, w2, g2, b2, mean, var):
    h = F.relu(F.batch_norm(F.conv2d(x, w1, None, 1, 1), mean, var, g1, b1))
    h = F.batch_norm(F.conv2d(h, w2, None, 1, 1), mean, var, g2, b2)
    return F.relu(h + x)


def resnet_training(x, w1, g1, b1, w2, g2, b2):
    h = F.relu(F.batch_norm(F.conv2d(x, w1, None, 1, 1), None, None, g1, b1, True))
    h = F.batch_norm(F.conv2d(h, w2, None, 1, 1), None, None, g2, b2, True)
    return F.relu(h + x)


def add(x, y):
    return x + y


def copy(x):
    return x.clone()


def block(n, *extra):
    return [(n, 16, 14, 14), (16, 16, 3, 3), (16,), (16,), (16, 16, 3, 3), (16,), (16,), *extra]


USUAL = (4, 64, 1024)
# Function, shapes of the inputs for a size, which of them train, sizes; "adam20" takes lists of 20 tensors.
PROGRAMS = (
    (add, lambda n: [(n,)] * 2, 0, (5, 1000, 100000)),
    (copy, lambda n: [(n,)], 0, (10000000,)),
    (tenfold, lambda n: [(n,), (n,)], 2, (5, 1000, 100000, 10000000)),
    (gelu_mlp, lambda n: [(n, 64), (64, 256), (256,), (256, 64), (64,)], 5, USUAL),
    (norm_residual, lambda n: [(n, 64), (n, 64), (64,), (64,)], 4, (4, 64, 1024, 16384)),
    (norm_dropout, lambda n: [(n, 64), (n, 64), (64,), (64,)], 4, USUAL),
    (cross_entropy, lambda n: [(n, 64), (n, 64)], 1, USUAL),
    (lstm_cell, lambda n: [(n, 64), (n, 64), (n, 64), (64, 256), (64, 256), (256,)], 6, USUAL),
    (adam, lambda n: [(n,)] * 4, 0, (100, 10000, 1000000)),
    (adam20, lambda n: [(n,)] * 4, 0, (100, 10000)),
    (box_iou, lambda n: [(n,)] * 4, 0, (100, 1000)),
    (resnet_block, lambda n: block(n, (16,), (16,)), 0, (1, 16)),
    (resnet_training, block, 7, (1, 16)),
)
ONCE = (add, copy)  # measures for the others: as they are written alone

SECONDS = float(os.environ.get("SCRIPT_SECONDS", "inf"))
compiling = [0.0]


def inputs_of(function, shapes):
    if function is adam20:
        return [[bench.uniform(shape, 0.9, 1.1) for _ in range(20)] for shape in shapes]
    return [bench.uniform(shape, 0.9, 1.1) for shape in shapes]


def first(result):
    return result[0] if isinstance(result, tuple) else result


def make(function, inputs, trained):
    for x in inputs[:trained]:
        x.requires_grad_()

    def run():
        y = first(function(*inputs))
        return torch.autograd.grad((y * y).sum(), inputs[:trained])[0] if trained else y
    began, calls = time.perf_counter(), 0
    while calls < 2 or not bench.TINY and time.perf_counter() - began < 0.3:
        run()
        calls += 1
        if WAY == "compiled" and calls == 1:
            compiling[0] += time.perf_counter() - began
            began = time.perf_counter()
    return run


def refusal(function, size, sizes):
    """Why a case is left out; None: it is not."""
    if WAY != "compiled":
        return None
    if function is box_iou:
        return "a loop that is written out takes minutes to compile"
    if size != sizes[len(sizes) // 2]:
        return "of each program one size is compiled"
    return "no time to compile it" if compiling[0] > SECONDS else None


def case(name, function, shapes, trained, why):
    if not bench.chosen(name):
        return
    if why:
        print(json.dumps({"refused": name, "why": why}), flush=True)
        return
    bench.made(name, lambda: make(function, inputs_of(function.of, shapes), trained), 1)


class Way:
    """A function of this way, and the one that it is of."""

    def __init__(self, function):
        self.of = function
        self.call = {"eager": lambda f: f, "scripted": torch.jit.script, "compiled": torch.compile}[WAY](function)

    def __call__(self, *inputs):
        return self.call(*inputs)


def main():
    for function, shapes, trained, sizes in PROGRAMS:
        for size in sizes if WAY == "eager" or function not in ONCE else ():
            for training in (0, trained) if trained and size < 10000000 else (0,):
                name = f"{function.__name__}_{size}" + ("_backward" if training else "")
                case(name, Way(function), shapes(bench.size(size)), training, refusal(function, size, sizes))


main()
