#!/usr/bin/env python3
"""Write PyTorch's public names by room to names.txt beside this file.

Needs PyTorch; tests/lua/show/test_pytorch_names.lua, which walks the list, doesn't. A room is a module (or class) that people write out;
its names are those that PyTorch's own code defines and that begin with no underscore, and the functions
over lists (_foreach_mul_), which do. Modules below a room are names of it and rooms themselves.
"""

import importlib
import inspect
import pathlib
import sys
import types
import warnings

import torch

ROOMS = """
torch accelerator amp autograd autograd.forward_ad autograd.functional autograd.grad_mode autograd.graph
autograd.profiler backends backends.cuda backends.cudnn backends.mkl backends.mkldnn backends.mps backends.openmp
backends.cpu compiler cpu cuda cuda.amp cuda.comm cuda.memory cuda.nvtx cuda.profiler cuda.random distributed
distributions distributions.constraints distributions.kl distributions.transforms export fft func futures fx hub jit
library linalg masked mps mtia multiprocessing nested nn nn.attention nn.functional nn.init nn.modules nn.parallel
nn.parameter nn.utils nn.utils.parametrizations nn.utils.parametrize nn.utils.prune nn.utils.rnn nn.utils.stateless
onnx optim optim.lr_scheduler optim.swa_utils overrides package profiler quantization random serialization signal
signal.windows sparse special storage testing types utils utils.benchmark utils.bottleneck utils.checkpoint
utils.collect_env utils.cpp_extension utils.data utils.dlpack utils.flop_counter utils.hooks utils.mobile_optimizer
utils.model_zoo utils.tensorboard version xpu
""".split()
CLASSES = {
    "Tensor": torch.Tensor,
    "Generator": torch.Generator,
    "Size": torch.Size,
    "nn.Module": torch.nn.Module,
    "optim.Optimizer": torch.optim.Optimizer,
    "optim.lr_scheduler.LRScheduler": torch.optim.lr_scheduler.LRScheduler,
    "profiler.profile": torch.profiler.profile,
    "amp.GradScaler": torch.amp.GradScaler,
    "utils.benchmark.Timer": None,
    "distributions.Distribution": None,
}
VALUES = (torch.dtype, torch.layout, torch.memory_format, torch.qscheme)


def is_own(value, room):
    """Was it made by PyTorch, and not by what its modules import?"""
    if isinstance(value, types.ModuleType):
        return value.__name__.startswith("torch") and not value.__name__.split(".")[-1].startswith("_")
    if isinstance(value, type) or callable(value):
        home = getattr(value, "__module__", None)
        return home is None or str(home).startswith("torch")
    return isinstance(value, VALUES)


def names_of_module(room):
    module = importlib.import_module("torch" if room == "torch" else "torch." + room)
    listed = set(getattr(module, "__all__", None) or ())
    found = {name for name in listed if not name.startswith("_")}
    for name in dir(module):
        if not name.startswith("_"):
            if is_own(getattr(module, name, None), room):
                found.add(name)
        elif room == "torch" and name.startswith("_foreach_"):
            found.add(name)
    if hasattr(module, "m"):  # a module whose settings are properties
        found.update(name for name in dir(type(module)) if not name.startswith("_"))
        found.update(name for name in dir(module.m) if is_own(getattr(module.m, name, None), room))
        found -= {"ContextProp", "GenericModule", "PropModule", "CudnnModule", "MkldnnModule", "sys", "types"}
    if room == "torch":
        return found | {"e", "pi", "inf", "nan", "newaxis"}
    return {name for name in found if not name.startswith("_")} - {"torch", "Tensor", "m", "F"}


def names_of_class(cls):
    return {name for name in dir(cls) if not name.startswith("_")}


def main():
    warnings.simplefilter("ignore")
    import torch.utils.benchmark

    CLASSES["utils.benchmark.Timer"] = torch.utils.benchmark.Timer
    CLASSES["distributions.Distribution"] = torch.distributions.Distribution
    rooms = {}
    for room in ROOMS:
        try:
            rooms[room] = names_of_module(room)
        except ImportError as error:  # needs another package
            print(f"{room}: {error}", file=sys.stderr)
            rooms[room] = set()
    rooms["utils.tensorboard"] |= {"SummaryWriter", "FileWriter", "RecordWriter"}
    for room, cls in CLASSES.items():
        rooms[room] = names_of_class(cls)
    for room in ROOMS[1:]:  # rooms are names of what they lie in
        owner, _, name = room.rpartition(".")
        rooms[owner or "torch"].add(name)
    lines = ["# The public names of PyTorch %s by room, written by generate.py." % torch.__version__.split("+")[0]]
    for room in sorted(rooms):
        lines.append(f"{room}:")
        line = "   "
        for name in sorted(rooms[room]):
            if len(line) + 1 + len(name) > 118:
                lines.append(line)
                line = "   "
            line += " " + name
        lines += [line] if line.strip() else []
    target = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).with_name("names.txt")
    target.write_text("\n".join(lines) + "\n")


main()
