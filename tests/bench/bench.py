"""bench.py: runs cases in PyTorch and prints them as bench.lua does, which says how; operands have the same numbers."""
import json
import math
import os
import statistics
import sys
import time

import torch

TINY = bool(os.environ.get("TIDE_BENCH_TINY"))
TURNS = bool(os.environ.get("TIDE_BENCH_TURNS"))
MIN_BATCH = 0 if TINY else 0.02
BATCHES = 1 if TINY else 5 if TURNS else 15
LONG, FEW = 0.1, 3

# ---- which cases ----


def chosen(name):
    """Do the script's arguments choose this case?"""
    return len(sys.argv) < 2 or any(wanted == "=" + name or name.startswith(wanted) for wanted in sys.argv[1:])


def size(n, little=16):
    """A size, or no more than `little` of it where all is tiny."""
    return min(n, little) if TINY else n


# ---- numbers that bench.lua makes too ----

SEED = [0]


def seed(n):
    SEED[0] = n


def scattered(shape):
    SEED[0] += 1
    h = torch.arange(0, math.prod(shape)) + SEED[0] * 1000003
    h = (h * 1103515245 + 12345) % (1 << 31)
    h = h ^ (h >> 15)
    h = (h * 1812433253) % (1 << 31)
    return (h ^ (h >> 13)).reshape(shape)


def uniform(shape, low=-1, high=1):
    """Numbers spread evenly from low to high."""
    return (scattered(shape).to(torch.float64) / (1 << 31) * (high - low) + low).to(torch.float32)


def ints(shape, low, high):
    """Integers from low to below high."""
    return scattered(shape) % (high - low) + low


# ---- what a result is ----


def sums(x, place):
    x = x.detach().to(torch.float64).contiguous().reshape(-1)
    weights = (torch.arange(0, x.numel()) * 7919 % 1009).to(torch.float64) / 1009
    return x.sum().item(), x.abs().sum().item(), (x * x).sum().item(), place * (x * weights).sum().item()


def digest(result):
    tensors = [result] if isinstance(result, torch.Tensor) else result
    total = [sum(column) for column in zip(*(sums(x, place) for place, x in enumerate(tensors, 1)))]
    total = [value if math.isfinite(value) else None for value in total]
    return {"dtype": str(tensors[0].dtype).rsplit(".", maxsplit=1)[-1], "count": sum(x.numel() for x in tensors),
            **dict(zip(("sum", "sizes", "squares", "places"), total))}


# ---- time ----


def time_batch(function, loops):
    start = time.perf_counter()
    for _ in range(loops):
        function()
    return time.perf_counter() - start


def count_loops(function):
    loops, seconds = 1, time_batch(function, 1)
    while seconds < MIN_BATCH:
        loops *= 2
        seconds = time_batch(function, loops)
    return loops, 1 if TINY else FEW if TURNS and seconds / loops > LONG else BATCHES


def measure(name, function, loops, batches, facts):
    times = sorted(time_batch(function, loops) / loops for _ in range(batches))
    iqr = times[(3 * batches + 3) // 4 - 1] - times[(batches + 3) // 4 - 1]
    print(json.dumps({"case": name, "median_s": statistics.median(times), "min_s": times[0], "iqr_s": iqr,
                      "threads": torch.get_num_threads(), "note": "torch " + torch.__version__, **facts}), flush=True)


def turn(name, measured):
    """measured() now, or once for each turn that the case is given."""
    if not TURNS:
        measured()
        return
    print(json.dumps({"ready": name}), flush=True)
    while sys.stdin.readline() == "go\n":
        measured()


def made(name, make, threads=None):
    """A case whose operands are made where it is chosen alone; see bench.lua."""
    if not chosen(name):
        return
    before = torch.get_num_threads()
    torch.set_num_threads(threads or before)
    seed(0)
    function = make()
    function, result = function if isinstance(function, tuple) else (function, None)
    result = (result or function)()
    facts = {} if result is None else {"digest": digest(result)}
    del result
    counted = []

    def measured():
        if not counted:
            counted.extend(count_loops(function))
        measure(name, function, *counted, facts)
    turn(name, measured)
    torch.set_num_threads(before)


def case(name, function, threads=None, result=None):
    """A case whose operands are there already."""
    made(name, lambda: (function, result), threads)
