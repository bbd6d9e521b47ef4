"""gpu.py: the cases of gpu.lua in PyTorch, printed the same way; besides, Adam as a loop and fused.

It is not called cuda.py, which would stand in the way of the package `cuda` that PyTorch imports.
With TIDE_BENCH_TINY set sizes are tiny, and a machine without a device runs them on its CPU, to see that they do.
"""
import json
import sys
import time

import torch
from torch import nn

import models
from bench import TINY, chosen

MIN_BATCH, BATCHES = (0, 3) if TINY else (0.02, 9)
ON_GPU = torch.cuda.is_available()
DEVICE = "cuda" if ON_GPU else "cpu"
SIDE = 32 if TINY else 10000


def time_batch(fn, loops):
    if not ON_GPU:
        start = time.perf_counter()
        for _ in range(loops):
            fn()
        return time.perf_counter() - start
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    begin.record()
    for _ in range(loops):
        fn()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / 1000


def case(name, fn, **facts):
    if not chosen(name):
        return
    if ON_GPU:
        torch.cuda.reset_peak_memory_stats()
    for _ in range(1 if TINY else 3):
        fn()
    loops = 1
    while time_batch(fn, loops) < MIN_BATCH:
        loops *= 2
    times = sorted(time_batch(fn, loops) / loops for _ in range(BATCHES))
    if ON_GPU and "images" in facts:
        facts["peak_bytes"] = torch.cuda.max_memory_allocated()
    iqr = times[(3 * BATCHES - 1) // 4] - times[(BATCHES - 1) // 4]
    print(json.dumps({"case": name, "median_s": times[BATCHES // 2], "min_s": times[0], "iqr_s": iqr, **facts}), flush=True)


def products(kind, dtype, tf32=False):
    for n in (16, 24) if TINY else (1024, 2048, 4096, 8192):
        name = f"matmul_{kind}_{n}"
        if chosen(name):
            a, b = (torch.randn(n, n, device=DEVICE).to(dtype) for _ in range(2))
            out = torch.zeros(n, n, dtype=dtype, device=DEVICE)
            torch.backends.cuda.matmul.allow_tf32 = tf32
            case(name, lambda a=a, b=b, out=out: torch.matmul(a, b, out=out), flops=2 * n ** 3)
            torch.backends.cuda.matmul.allow_tf32 = False


def byte_products():
    for n in (24, 32) if TINY else (1024, 2048, 4096, 8192):  # PyTorch takes more than 16 rows
        name = f"int_mm_{n}"
        if chosen(name) or chosen(name + "_rows"):
            a, b = (torch.randint(-128, 128, (n, n), device=DEVICE).to(torch.int8) for _ in range(2))
            out = torch.zeros(n, n, dtype=torch.int32, device=DEVICE)
            case(name, lambda a=a, b=b, out=out: torch._int_mm(a, b.t(), out=out), flops=2 * n ** 3)
            case(name + "_rows", lambda a=a, b=b, out=out: torch._int_mm(a, b, out=out), flops=2 * n ** 3)


def elements(mark, dtype, size):
    names = ("copy", "add", "mul_scalar", "gelu", "add_row", "sum", "max", "sum_rows", "sum_columns", "softmax")
    if not any(chosen(name + mark) for name in names):
        return
    x, y = (torch.randn(SIDE, SIDE, device=DEVICE).to(dtype) for _ in range(2))
    out, row, n = torch.zeros_like(x), torch.randn(SIDE, device=DEVICE).to(dtype), SIDE * SIDE * size
    case("copy" + mark, lambda: out.copy_(x), bytes=2 * n)
    case("add" + mark, lambda: torch.add(x, y, out=out), bytes=3 * n)
    case("mul_scalar" + mark, lambda: torch.mul(x, 2.5, out=out), bytes=2 * n)
    case("gelu" + mark, lambda: nn.functional.gelu(x), bytes=2 * n)
    case("add_row" + mark, lambda: torch.add(x, row, out=out), bytes=2 * n)
    case("sum" + mark, x.sum, bytes=n)
    case("max" + mark, x.amax, bytes=n)
    case("sum_rows" + mark, lambda: x.sum(1), bytes=n)
    case("sum_columns" + mark, lambda: x.sum(0), bytes=n)
    case("softmax" + mark, lambda: x.softmax(1), bytes=2 * n)


def optimizers():
    if not any(chosen(name) for name in ("adam_resnet50", "adam_foreach_resnet50", "adam_loop_resnet50")):
        return
    params = models.parameters(models.resnet50_shapes(), DEVICE)
    for name, options in (("adam_resnet50", {"fused": True}), ("adam_foreach_resnet50", {"foreach": True}),
                          ("adam_loop_resnet50", {"foreach": False})):
        case(name, torch.optim.Adam(params, lr=0.001, **options).step)


def chain():
    x, one = torch.zeros(1, device=DEVICE), torch.ones(1, device=DEVICE)

    def adds():
        y = x
        for _ in range(10 if TINY else 1000):
            y = y + one
    case("chain_1000_adds", adds)


def record(step):
    """The step as a CUDA graph, as PyTorch's manual has it."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph


def digits_steps():
    if not chosen("digits_step") and not chosen("digits_graph"):
        return
    x, y = torch.rand(32, 1, 32, 32, device=DEVICE), torch.randint(0, 10, (32,), device=DEVICE)
    step = models.step(models.digits().to(DEVICE), x, y)
    case("digits_step", step, images=32)
    if ON_GPU and chosen("digits_graph"):
        case("digits_graph", record(step).replay, images=32)


def resnet50_step():
    if not chosen("resnet50_step_bf16"):
        return
    batch, side = (2, 16) if TINY else (128, 224)
    model = models.resnet50().to(DEVICE).to(memory_format=torch.channels_last)
    x = torch.randn(batch, 3, side, side, device=DEVICE).to(memory_format=torch.channels_last)
    y = torch.randint(0, 1000, (batch,), device=DEVICE)
    case("resnet50_step_bf16", models.step(model, x, y, DEVICE), images=batch)


def main():
    if not ON_GPU and not TINY:
        print("gpu.py: PyTorch finds no CUDA device", file=sys.stderr)
        sys.exit(2)
    torch.manual_seed(0)
    products("bf16", torch.bfloat16)
    products("f16", torch.float16)
    products("tf32", torch.float32, tf32=True)
    products("f32", torch.float32)
    byte_products()
    elements("_f32_1e8", torch.float32, 4)
    elements("_bf16_1e8", torch.bfloat16, 2)
    optimizers()
    chain()
    digits_steps()
    resnet50_step()


if __name__ == "__main__":
    main()
