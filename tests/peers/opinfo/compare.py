"""What is compared of a call made by PyTorch and by Tide, and how close is close. A disagreement is
(kind, detail); the kinds are KINDS, the first that is found counts."""
import torch

KINDS = ("crash", "refused", "accepted", "results", "dtype", "shape", "values", "strides", "alias", "written",
         "requires_grad", "gradient", "second gradient")

# rtol and atol of torch.testing.assert_close
TOLERANCES = {torch.float16: (1e-3, 1e-5), torch.bfloat16: (1.6e-2, 1e-5), torch.float32: (1.3e-6, 1e-5),
              torch.float64: (1e-7, 1e-7)}


def far(found, wanted, factor=1.0):
    """Where two tensors of one dtype and shape are apart."""
    if not wanted.dtype.is_floating_point:
        return found != wanted
    rtol, atol = TOLERANCES[wanted.dtype]
    f, w = found.to(torch.float64), wanted.to(torch.float64)
    near = (f - w).abs() <= factor * (atol + rtol * w.abs())
    return ~(near | (f == w) | (f.isnan() & w.isnan()))


def compare_values(found, wanted, exact=None):
    """None, or what differs. `exact`: PyTorch's result in float64, asked for only where the two are apart:
    with an error of the size that PyTorch's own result has there, a value is right."""
    wrong = far(found, wanted)
    if not wrong.any():
        return None
    truth = exact() if exact else None
    if truth is not None and truth.shape == wanted.shape and wanted.dtype.is_floating_point:
        limit = (wanted.to(torch.float64) - truth).abs()
        error = (found.to(torch.float64) - truth).abs()
        worst = limit[limit.isfinite()].max() if limit.isfinite().any() else 0
        wrong &= ~(error <= 2 * worst) & far(found, truth.to(wanted.dtype))
        if not wrong.any():
            return None
    place = wrong.nonzero()[0].tolist()
    at = tuple(place)
    return f"{int(wrong.sum())} of {wrong.numel()} differ, at {place} {found[at].item()} for {wanted[at].item()}"


def same_strides(found, wanted, shape):
    return 0 in shape or all(f == w for f, w, n in zip(found, wanted, shape) if n > 1)


def compare_result(found, wanted, random, exact):
    """One result: tensors as compare.Result has them, or plain values."""
    if isinstance(wanted, Result) != isinstance(found, Result):
        return "results", f"{found} for {wanted}"
    if not isinstance(wanted, Result):
        if random or found == wanted or found is False and wanted is None:
            return None
        close = isinstance(found, float) and isinstance(wanted, float) and (
            abs(found - wanted) <= 1e-6 * abs(wanted) or found != found and wanted != wanted)
        return None if close else ("values", f"{found} for {wanted}")
    return compare_tensor(found, wanted, random, exact)


def compare_tensor(found, wanted, random, exact):
    if found.values.dtype != wanted.values.dtype:
        return "dtype", f"{found.values.dtype} for {wanted.values.dtype}".replace("torch.", "")
    if found.values.shape != wanted.values.shape:
        return "shape", f"{tuple(found.values.shape)} for {tuple(wanted.values.shape)}"
    wrong = None if random else compare_values(found.values, wanted.values, exact)
    if wrong:
        return "values", wrong
    if not same_strides(found.strides, wanted.strides, wanted.values.shape):
        return "strides", f"{tuple(found.strides)} for {tuple(wanted.strides)} of {tuple(wanted.values.shape)}"
    if found.storage != wanted.storage and wanted.values.numel() > 0:
        return "alias", f"{describe_storage(found.storage)}, PyTorch's {describe_storage(wanted.storage)}"
    if found.grad != wanted.grad:
        return "requires_grad", f"{found.grad} for {wanted.grad}"
    return None


def describe_storage(storage):
    return "memory of its own" if storage is None else f"argument storage {storage[0]} at {storage[1]}"


class Result:
    """A tensor that came out: values (contiguous), strides, the sent storage that it shares with the
    element of it at which it begins (None: memory of its own), and whether it requires grad."""

    def __init__(self, values, strides, storage, grad):
        self.values, self.strides, self.storage, self.grad = values, list(strides), storage, grad

    def __repr__(self):
        return f"a tensor {tuple(self.values.shape)}"


def compare_lists(found, wanted, random=False, exact=None):
    """The first disagreement of two lists of results."""
    if len(found) > len(wanted):  # PyTorch leaves out what was not asked for, Lua has nil there
        found = [f for f in found if f is not False and f is not None]
    if len(found) != len(wanted):
        return "results", f"{len(found)} results for {len(wanted)}"
    for k, (f, w) in enumerate(zip(found, wanted)):
        difference = compare_result(f, w, random, (lambda k=k: exact(k)) if exact else None)
        if difference:
            return difference
    return None


def compare_gradients(kind, found, wanted, exact=None):
    """Lists of tensors or None; a gradient that is not there is one of zeros."""
    for k, w in enumerate(wanted):
        f = found[k] if k < len(found) else None
        if f is None and w is None:
            continue
        if f is None or w is None:
            there = w if f is None else f
            if (there != 0).any():
                return kind, f"of input {k}: {'none' if f is None else f.flatten()[:4].tolist()} for " \
                             f"{'none' if w is None else w.flatten()[:4].tolist()}"
            continue
        if f.dtype != w.dtype or f.shape != w.shape:
            return kind, f"of input {k}: {f.dtype} {tuple(f.shape)} for {w.dtype} {tuple(w.shape)}"
        wrong = compare_values(f, w, (lambda k=k: exact(k)) if exact else None)
        if wrong:
            return kind, f"of input {k}: {wrong}"
    return None
