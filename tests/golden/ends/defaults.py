"""Writes defaults.jsonl: what arguments are by default, by the signatures of PyTorch's functions, classes and operators.
tests/lua/test_defaults.lua compares them. Needs PyTorch; the test doesn't."""
import inspect
import json
import os

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
PLAIN = (int, float, bool, str, type(None))


def plain(value):
    if isinstance(value, (tuple, list)) and all(isinstance(v, PLAIN) for v in value):
        return list(value)
    if isinstance(value, float) and value in (float("inf"), -float("inf")):
        return str(value)
    return value if isinstance(value, PLAIN) else ...


def of_python(thing):
    try:
        parameters = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return {}
    found = {p.name: plain(p.default) for p in parameters if p.default is not p.empty}
    return {name: {"v": v} for name, v in found.items() if v is not ...}


def of_operator(name):
    """Of all overloads; what they don't agree on is left out."""
    found = {}
    for schema in torch._C._jit_get_schemas_for_operator("aten::" + name):
        for a in schema.arguments:
            if a.has_default_value() and plain(a.default_value) is not ...:
                found.setdefault(a.name, []).append(plain(a.default_value))
    return {n: {"v": v[0]} for n, v in found.items() if all(x == v[0] for x in v)}


def entries():
    modules = {"nn": torch.nn, "nn.functional": torch.nn.functional, "nn.init": torch.nn.init, "nn.utils": torch.nn.utils,
               "optim": torch.optim, "optim.lr_scheduler": torch.optim.lr_scheduler, "autograd": torch.autograd,
               "autograd.functional": torch.autograd.functional}
    for prefix, module in modules.items():
        for name in sorted(dir(module)):
            thing = getattr(module, name)
            if not name.startswith("_") and callable(thing):
                yield f"{prefix}.{name}", of_python(thing)
    for prefix, part in (("", ""), ("linalg.", "linalg_"), ("special.", "special_"), ("nn.functional.", "")):
        names = {s.name[6:] for s in torch._C._jit_get_all_schemas() if s.name.startswith("aten::")}
        for name in sorted(n for n in names if n.startswith(part) and not n.startswith("_")):
            if prefix != "nn.functional." or not of_python(getattr(torch.nn.functional, name, None)):
                yield prefix + name[len(part):], of_operator(name)


with open(os.path.join(HERE, "defaults.jsonl"), "w") as file:
    for name, defaults in entries():
        if defaults:
            file.write(json.dumps({"name": name, "defaults": defaults}) + "\n")
