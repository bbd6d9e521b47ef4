"""foreach.py: the cases of foreach.lua in PyTorch."""
import json
import sys
import time

import torch

MIN_BATCH, BATCHES = 0.02, 15


def chosen(name):
    return len(sys.argv) < 2 or any(name.startswith(prefix) for prefix in sys.argv[1:])


def time_batch(fn, loops):
    start = time.perf_counter()
    for _ in range(loops):
        fn()
    return time.perf_counter() - start


def case(name, fn):
    if not chosen(name):
        return
    loops = 1
    while time_batch(fn, loops) < MIN_BATCH:
        loops *= 2
    times = sorted(time_batch(fn, loops) / loops for _ in range(BATCHES))
    print(json.dumps({"case": name, "median_s": times[BATCHES // 2], "min_s": times[0]}), flush=True)


def resnet50():
    shapes = []

    def conv(out, into, k):
        shapes.extend([(out, into, k, k), (out,), (out,)])
    conv(64, 3, 7)
    into = 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        width = 64 << stage
        for block in range(blocks):
            conv(width, into, 1)
            conv(width, width, 3)
            conv(4 * width, width, 1)
            if block == 0:
                conv(4 * width, into, 1)
            into = 4 * width
    return shapes + [(1000, 2048), (1000,)]


def parameters(shapes):
    params = [torch.randn(shape).requires_grad_() for shape in shapes]
    for p in params:
        p.grad = torch.randn(p.shape)
    return params


def optimizers(name, shapes):
    params = parameters(shapes)
    for kind, foreach in (("loop", False), ("foreach", True)):
        sgd = torch.optim.SGD(params, lr=0.01, momentum=0.9, foreach=foreach)
        case(f"sgdm_{kind}_{name}", sgd.step)
        adam = torch.optim.Adam(params, lr=0.001, foreach=foreach)
        case(f"adam_{kind}_{name}", adam.step)


torch.set_num_threads(1)
for count in (100, 500):
    a, b = ([make(1000) for _ in range(count)] for make in (torch.zeros, torch.ones))

    def add_loop(xs=a, ys=b):
        for x, y in zip(xs, ys):
            x.add_(y)
    case(f"add_loop_{count}x1k", add_loop)
    case(f"add_foreach_{count}x1k", lambda xs=a, ys=b: torch._foreach_add_(xs, ys))
    optimizers(f"{count}x1k", [(1000,)] * count)
big = [make(25600000) for make in (torch.zeros, torch.ones)]
case("memory_25.6M_3x", lambda: big[0].add_(big[1]))
optimizers("resnet50", resnet50())
