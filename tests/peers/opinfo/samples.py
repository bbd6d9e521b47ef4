"""PyTorch's side of a sample: which callable a variant of an OpInfo is, copies of its operands with the same
storages and strides, its results, gradients and second gradients."""
import warnings

import torch

from binding import NoForm, Recording, bind
from roles import OUT_IN_ORDER

DTYPES = {"float64": torch.float64, "float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16,
          "int64": torch.int64, "int32": torch.int32, "int8": torch.int8, "uint8": torch.uint8, "bool": torch.bool}
WRAPPED = ("masked.", "signal.")  # functions in Python that torch's overrides don't see
NOT_THERE = (NotImplementedError,)


class Torch:
    """What PyTorch did: the bound call and flat results, or the error that it raised."""

    def __init__(self, bound, results, error):
        self.bound, self.results, self.error = bound, results, error

    def lacks_kernel(self):
        return isinstance(self.error, NOT_THERE) or "not implemented for" in str(self.error) or \
            "not supported" in str(self.error) and "dtype" in str(self.error)


# ---- trees of arguments ----

def map_tree(value, change):
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(map_tree(v, change) for v in value))
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        return type(value)(map_tree(v, change) for v in value)
    if isinstance(value, dict):
        return {k: map_tree(v, change) for k, v in value.items()}
    return value


def tensors_of(tree):
    found = []
    map_tree(tree, lambda x: found.append(x) or x)
    return found


def flat(results):
    """Results in one list, as Tide gives them."""
    if isinstance(results, (list, tuple)):
        return [r for entry in results for r in flat(entry)]
    return [results]


def refresh(tree):
    """The same operands as leaves over new storages, those that share one sharing one."""
    storages, copies = {}, {}

    def copy(x):
        if x.layout != torch.strided or x.device.type != "cpu":
            raise NoForm("a tensor that isn't strided or not on the CPU")
        if id(x) in copies:
            return copies[id(x)]
        key = (x.untyped_storage()._cdata)
        if key not in storages:
            storages[key] = x.untyped_storage().clone()
        y = torch.empty(0, dtype=x.dtype).set_(storages[key], x.storage_offset(), x.shape, x.stride())
        if x.is_conj() or x.is_neg():
            raise NoForm("a lazily conjugated tensor")
        copies[id(x)] = y.requires_grad_(x.requires_grad)
        return copies[id(x)]

    return map_tree(tree, copy)


def widen(tree):
    """The same values in float64; a tensor that occurs twice is one tensor again."""
    copies = {}

    def change(x):
        if id(x) not in copies:
            dtype = torch.float64 if x.dtype.is_floating_point else x.dtype
            copies[id(x)] = x.detach().clone().to(dtype).requires_grad_(x.requires_grad)
        return copies[id(x)]
    return map_tree(tree, change)


# ---- variants ----

def variants(op):
    """{name: callable} of what a user may write for the operator; "strided" is the function with operands that
    are not contiguous."""
    found = {"function": op.op, "strided": op.op}
    if op.method_variant is not None:
        found["method"] = op.method_variant
    if op.inplace_variant is not None:
        found["inplace"] = op.inplace_variant
    if op.supports_out:
        found["out"] = op.op
    for alias in op.aliases:
        if alias.op is not None or alias.method_variant is not None:
            found["alias " + alias.name] = alias.op or alias.method_variant
        if alias.inplace_variant is not None:
            found["inplace alias " + alias.name] = alias.inplace_variant
    return found


def make_out(name, results):
    """Something to write results into: of their shape and dtype, laid in another order."""
    outs = []
    for r in results:
        if not isinstance(r, torch.Tensor):
            raise NoForm("out= for what is no tensor")
        y = torch.empty_like(r, memory_format=torch.contiguous_format)
        if y.ndim > 1 and name not in OUT_IN_ORDER:
            y = y.transpose(0, -1).contiguous().transpose(0, -1)
        outs.append(y.fill_(1))
    return outs[0] if len(outs) == 1 else tuple(outs)


def run(op, variant, function, operands):
    """Runs PyTorch's function on (input, args, kwargs); kwargs hold `out` already. The recorded call comes
    first, so that it is known although PyTorch refuses it."""
    x, args, kwargs = operands
    torch.manual_seed(0)
    results, error = None, None
    with warnings.catch_warnings(), Recording() as recording:
        warnings.simplefilter("ignore")
        try:
            results = function(x, *args, **kwargs)
        except Exception as caught:  # whatever PyTorch refuses with
            error = caught
    if error is None and len(recording.calls) == 1:
        results = recording.result  # OpInfo's function may hand on a part of it
    bound = bind_recorded(op, variant, recording.calls, operands)
    return Torch(bound, None if error is not None else flat(results), error)


def bind_recorded(op, variant, calls, operands):
    x, args, kwargs = operands
    if len(calls) == 1:
        return inplace_option(bind(*calls[0]))
    wrapped = op.name.startswith(WRAPPED)
    if variant in ("function", "strided", "error", "exact") and (not calls or wrapped):
        return bind(op.op, "torch." + op.name, (x, *args), kwargs)
    if len(calls) == 2 and calls[0][1] == "torch.Tensor.clone":
        raise NoForm("OpInfo clones first")
    raise NoForm("OpInfo makes several calls" if calls else "PyTorch refuses before the call")


def inplace_option(bound):
    """f(x, inplace=True) is x:f_() here, and f_with_indices is f with return_indices."""
    if bound.value("inplace"):
        bound.name, bound.method = bound.name.rsplit(".", 1)[-1].rstrip("_") + "_", True
    bound.arguments = [a for a in bound.arguments if a[0] != "inplace"]
    if bound.name.endswith("pool1d_with_indices") or bound.name.endswith("pool2d_with_indices") or \
            bound.name.endswith("pool3d_with_indices"):
        bound.name = bound.name.removesuffix("_with_indices")
        bound.arguments = [a for a in bound.arguments if a[0] != "return_indices"] + [("return_indices", True, False)]
    return bound


# ---- gradients ----

class Gradients:
    """inputs (tensors), places of the outputs among the results, cotangents, gradients; of the second order
    the places of gradients differentiated again, their cotangents and results (None: none there)."""

    def __init__(self, inputs, places, cotangents, first):
        self.inputs, self.places, self.cotangents, self.first = inputs, places, cotangents, first
        self.second_places, self.second_cotangents, self.second = [], [], None


def random_like(x, generator):
    values = torch.randn(x.shape, generator=generator, dtype=torch.float64)
    return values.to(x.dtype)


def differentiate(results, inputs, second):
    """Gradients of the results by the inputs under random cotangents; None where there are none, or where
    PyTorch has none."""
    places = [k for k, r in enumerate(results) if isinstance(r, torch.Tensor) and r.requires_grad
              and r.dtype.is_floating_point]
    if not places or not inputs:
        return None
    generator = torch.Generator().manual_seed(1)
    cotangents = [random_like(results[k], generator) for k in places]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            first = torch.autograd.grad([results[k] for k in places], inputs, cotangents, allow_unused=True,
                                        create_graph=second, retain_graph=True)
        except Exception:  # PyTorch has no gradient here
            return None
        found = Gradients(inputs, places, cotangents, first)
        if second:
            differentiate_again(found, generator)
    return found


def differentiate_again(found, generator):
    places = [k for k, g in enumerate(found.first) if g is not None and g.requires_grad]
    if not places:
        return
    found.second_places = places
    found.second_cotangents = [random_like(found.first[k], generator) for k in places]
    try:
        found.second = torch.autograd.grad([found.first[k] for k in places], found.inputs, found.second_cotangents,
                                           allow_unused=True)
    except Exception:  # PyTorch has no second gradient here
        found.second_places, found.second = [], None
