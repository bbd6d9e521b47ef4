"""sweep.py: the calls of sweep.lua in PyTorch, measured and printed the same way. It reads them from the file that it is
given, a line of JSON each, as `sweep.lua --list` writes them. --gradients: with the gradients of their operands."""
import json
import math
import os
import sys
import time
import warnings

import torch
from torch.nn import functional as F

import bench

GRADIENTS = "--gradients" in sys.argv
BATCH, BATCHES, LONG, VERY_LONG = 0 if bench.TINY else 1e-3, 1 if bench.TINY else 3, 0.02, 0.3

# ---- operands ----

SAME = 200000


def ints(shape, low, high):
    """Integers that sweep.lua makes too, unless they are many."""
    return torch.randint(low, high, shape) if math.prod(shape) > SAME else bench.ints(shape, low, high)


FILLINGS = {
    "even": lambda shape, high: torch.rand(shape) * 2 - 1,
    "pos": lambda shape, high: torch.rand(shape) * 1.9 + 0.1,
    "unit": lambda shape, high: torch.rand(shape) * 0.98 + 0.01,
    "over": lambda shape, high: torch.rand(shape) + 1.5,
    "mask": lambda shape, high: ints(shape, 0, 2) == 1,
    "whole": lambda shape, high: ints(shape, 1, 10),
    "signs": lambda shape, high: (torch.rand(shape) > 0.5) * 2 - 1,
    "index": lambda shape, high: ints(shape, 0, high),
    "ordered": lambda shape, high: torch.linspace(-1, 1, shape[0]),
    "definite": lambda shape, high: definite(shape),
}
FILLINGS["scratch"] = FILLINGS["even"]


def definite(shape):
    x = torch.rand(shape) * 0.1
    return x + x.t() + torch.eye(shape[0]) * shape[0]


MADE, MOST_BYTES = {}, 2 << 30


def make(d):
    key = json.dumps(d)
    if key not in MADE:
        bench.seed(d["slot"])
        whole = d["dtype"] == "int64" and d["fill"] in ("even", "pos")
        x = FILLINGS["whole" if whole else d["fill"]](d["shape"], d["high"]).to(getattr(torch, d["dtype"]))
        if d["layout"] == "transposed":
            x = x.transpose(-1, -2).contiguous().transpose(-1, -2)
        elif d["layout"] == "channels_last":
            x = x.contiguous(memory_format=torch.channels_last)
        if sum(y.numel() * y.element_size() for y in MADE.values()) > MOST_BYTES:
            MADE.clear()
        MADE[key] = x
    return MADE[key]


def value(d):
    if not isinstance(d, dict):
        return d
    if d["kind"] == "tensor":
        return make(d)
    if d["kind"] == "dtype":
        return getattr(torch, d["name"])
    if d["kind"] == "at":  # PyTorch counts from 0
        return d["value"] - 1
    return tuple(value(item) for item in d["items"]) if d["kind"] == "list" else None


# ---- calls ----


def method(name):
    return lambda x, *args, **options: getattr(x, name)(*args, **options)


# Where a room has a function of that name that is another.
ELSEWHERE = {"embedding": torch.embedding, "unfold": method("unfold"), "rep": method("repeat"), "to": method("to")}


def find(name):
    """What PyTorch calls by this name; None: nothing."""
    if name in ELSEWHERE:
        return ELSEWHERE[name]
    for room in (F, torch, torch.special):
        if hasattr(room, name):
            return getattr(room, name)
    if name.startswith("linalg_"):
        return getattr(torch.linalg, name[7:], None)
    return method(name) if hasattr(torch.Tensor, name) else None


def as_leaves(x, leaves):
    """Float tensors among arguments, and in lists of them, become leaves, which are put into `leaves`."""
    if isinstance(x, torch.Tensor) and x.is_floating_point():
        leaves.append(x.detach().requires_grad_())
        return leaves[-1]
    return type(x)(as_leaves(item, leaves) for item in x) if isinstance(x, (tuple, list)) else x


def recorded(x):
    """The first result that is recorded; None: none."""
    if isinstance(x, torch.Tensor):
        return x if x.requires_grad else None
    found = (recorded(item) for item in x) if isinstance(x, (tuple, list)) else ()
    return next((y for y in found if y is not None), None)


def with_gradients(function, args, options):
    """A call, and the gradients of its leaves by its first result that has some."""
    leaves = []
    args = [as_leaves(x, leaves) for x in args]
    y = recorded(function(*args, **options))
    if y is None:
        raise ValueError("it has no gradient")
    ones = torch.ones_like(y)
    return lambda: torch.autograd.grad(recorded(function(*args, **options)), leaves, ones, allow_unused=True)


def prepared(call):
    function, args, options = find(call["op"]), [], {}
    for d in call.get("args", ()):
        if isinstance(d, dict) and d["kind"] == "options":
            options = {key: value(item) for key, item in d["names"].items()}
        else:
            args.append(value(d))
    return with_gradients(function, args, options) if GRADIENTS else lambda: function(*args, **options)


def time_of(function, loops):
    start = time.perf_counter()
    for _ in range(loops):
        function()
    return (time.perf_counter() - start) / loops


def least_time(function):
    once = time_of(function, 1)
    if once > LONG:
        return once if once > VERY_LONG else min(once, time_of(function, 1))
    loops = 1
    while once * loops < BATCH:
        loops *= 2
        once = time_of(function, loops)
    return min([once] + [time_of(function, loops) for _ in range(1, BATCHES)])


def kinds(x):
    """Dtypes and shapes of what came out."""
    if isinstance(x, torch.Tensor):
        return [str(x.dtype).rsplit(".", maxsplit=1)[-1] + " " + " ".join(map(str, x.shape))]
    return [kind for item in x for kind in kinds(item)] if isinstance(x, (tuple, list)) else []


def run(call):
    if find(call["op"]) is None:
        print(json.dumps({"refused": call["case"], "why": "PyTorch has no " + call["op"]}))
        return
    try:
        function = prepared(call)
        made = ", ".join(kinds(function()))
    except (RuntimeError, TypeError, ValueError, NotImplementedError, IndexError) as error:
        print(json.dumps({"refused": call["case"], "why": str(error).split("\n", maxsplit=1)[0]}))
        return
    bench.turn(call["case"], lambda: print(json.dumps({"case": call["case"], "min_s": least_time(function), "kinds": made}),
                                           flush=True))


def main():
    warnings.filterwarnings("ignore")
    torch.set_num_threads(int(os.environ.get("TIDE_BENCH_THREADS", "1")))
    with open(sys.argv[1], encoding="utf-8") as file:
        for call in map(json.loads, file):
            if "case" in call:
                run(call)


if __name__ == "__main__":
    main()
