"""PyTorch's calls as PyTorch's schemas read them: which function a sample really calls, with which
argument for which parameter. OpInfo wraps many functions; a recording shows the call within."""
import inspect

import torch
from torch.overrides import TorchFunctionMode, resolve_name

RENAMED = {"spmm": "mm", "_sparse_mm": "sparse_mm", "__rtruediv__": "__rdiv__"}
NOT_A_CALL = {"torch.Tensor.device.__get__"}


class Recording(TorchFunctionMode):
    """The outermost calls into torch while it is open, and what the last one gave."""

    def __init__(self):
        super().__init__()
        self.calls, self.result = [], None

    def __torch_function__(self, function, types, args=(), kwargs=None):
        name = name_of(function)
        if name not in NOT_A_CALL:
            self.calls.append((function, name, tuple(args), dict(kwargs or {})))
        result = function(*args, **(kwargs or {}))
        if name not in NOT_A_CALL:
            self.result = result
        return result


class NoForm(Exception):
    """The call can't be said in Tide; the text says why."""


def name_of(function):
    name = resolve_name(function)
    if name is None:
        name = str(function) if isinstance(function, torch._ops.OpOverload) else getattr(function, "__name__", "?")
    name = name.replace("torch.functional.", "torch.")
    if name.startswith("aten."):
        name = "torch." + name.split(".")[1]
    head, _, last = name.rpartition(".")
    return f"{head}.{RENAMED.get(last, last)}" if head else RENAMED.get(last, last)


class Bound:
    """A call: `name` as in torch.NAME, `method` whether it is one, and its arguments in order:
    (parameter, value, given by position)."""

    def __init__(self, name, method, arguments, defaults):
        self.name, self.method, self.arguments, self.defaults = name, method, arguments, defaults

    def value(self, parameter):
        return next((v for p, v, _ in self.arguments if p == parameter), None)


# ---- PyTorch's schemas ----

def _fits(kind, value):
    """May this value stand for a parameter of this type?"""
    text = str(kind)
    if value is None:
        return text.startswith("Optional") or text == "NoneType"
    text = text.removeprefix("Optional[").rstrip("]") if text.startswith("Optional[") else text
    if isinstance(value, torch.Tensor):
        return text.startswith("Tensor") or value.ndim == 0 and text in ("number", "Scalar", "int", "float", "bool")
    if isinstance(value, bool):
        return text in ("bool", "number", "Scalar")
    if isinstance(value, int):
        return text in ("int", "number", "Scalar", "float", "SymInt", "Device") or text.startswith("List[int")
    if isinstance(value, float):
        return text in ("float", "number", "Scalar")
    if isinstance(value, complex):
        return text in ("number", "Scalar")
    if isinstance(value, (list, tuple)):
        return text.startswith("List[")
    if isinstance(value, str):
        return text in ("str", "Device")
    return not text.startswith(("Tensor", "List", "bool", "float", "str"))


def _bind_schema(schema, args, kwargs):
    """[(parameter, value, positional)] or None."""
    parameters = list(schema.arguments)
    positional = [p for p in parameters if not p.kwarg_only]
    names = {p.name for p in parameters} | {"input", "requires_grad"}
    args = list(args)
    rest = args[len(positional) - 1:] if positional else []
    if len(rest) > 1 and str(positional[-1].type).startswith("List[int") and all(isinstance(v, int) for v in rest):
        last = len(positional) - 1
        args = args[:last] + [list(args[last:])]
    if len(args) > len(positional) or not set(kwargs) <= names:
        return None
    bound = []
    for p, value in zip(positional, args):
        if not _fits(p.type, value):
            return None
        bound.append((p.name, value, True))
    given = {p for p, _, _ in bound}
    for key, value in kwargs.items():
        p = next((p for p in parameters if p.name == key), None)
        if key in given or p is not None and not _fits(p.type, value):
            return None
        bound.append((key, value, False))
    required = {p.name for p in positional if not p.has_default_value()}
    if not required <= {p for p, _, _ in bound}:
        return None
    return bound


def _schema_names(name):
    last = name.rsplit(".", 1)[-1]
    parts = name.split(".")
    if len(parts) > 2 and parts[-2] in ("linalg", "special", "fft"):
        yield f"aten::{parts[-2]}_{last}"
    yield "aten::" + last


def _by_schemas(name, args, kwargs):
    """Schemas with `out` lack the options that PyTorch takes beside it, so it is put aside."""
    out = [("out", kwargs["out"], False)] if "out" in kwargs else []
    found = _by_plain_schemas(name, args, {k: v for k, v in kwargs.items() if k != "out"})
    return found and (found[0] + out, found[1])


def _by_plain_schemas(name, args, kwargs):
    for aten in _schema_names(name):
        for schema in torch._C._jit_get_schemas_for_operator(aten):
            bound = _bind_schema(schema, args, kwargs)
            if bound is not None:
                return bound, {p.name: p.default_value for p in schema.arguments if p.has_default_value()}
    return None


def _python_signature(function, name):
    plain = getattr(torch.nn.functional, "_" + name.rsplit(".", 1)[-1], None)
    for candidate in (plain, function):
        if inspect.isfunction(candidate):
            return inspect.signature(inspect.unwrap(candidate))
    return None


def _by_signature(function, name, args, kwargs):
    signature = _python_signature(function, name)
    if signature is None:
        return None
    try:
        found = signature.bind(*args, **kwargs)
    except TypeError:
        return None
    bound, kinds = [], signature.parameters
    if any(kinds[p].kind == inspect.Parameter.VAR_KEYWORD for p in found.arguments):
        return None
    for parameter, value in found.arguments.items():
        if kinds[parameter].kind == inspect.Parameter.VAR_POSITIONAL and value and isinstance(value[0], (list, tuple)) \
                and name != "torch.broadcast_shapes":
            value = value[0]
        bound.append((parameter, value, parameter not in kwargs))
    return bound, {p.name: p.default for p in kinds.values() if p.default is not inspect.Parameter.empty}


def bind(function, name, args, kwargs):
    """The call with its parameters' names; where no schema takes it (PyTorch refuses it) the arguments stand
    under the names that the function's first schema has."""
    method = name.startswith("torch.Tensor.")
    found = _by_signature(function, name, args, kwargs) or _by_schemas(name, args, kwargs)
    if found is None:
        found = _loosely(name, args, kwargs), {}
    bound, defaults = found
    return Bound(name.removeprefix("torch.").removeprefix("Tensor."), method, bound, defaults)


def _loosely(name, args, kwargs):
    schemas = [s for aten in _schema_names(name) for s in torch._C._jit_get_schemas_for_operator(aten)]
    best = max(schemas, key=lambda s: sum(_fits(p.type, v) for p, v in zip(s.arguments, args)), default=None)
    names = [p.name for p in best.arguments] if best else []
    names += [f"argument{k}" for k in range(len(names), len(args))]
    return [(p, v, True) for p, v in zip(names, args)] + [(k, v, False) for k, v in kwargs.items()]
