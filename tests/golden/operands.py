"""Operands of golden cases and how they are written: each is a description that becomes a torch tensor
here, and a few numbers in the data from which Lua makes the same tensor. Values have two or three digits,
so that both sides read the same float64. Knows nothing of operators."""
import math

import torch

PERIOD = 97  # long operands repeat their first values
STRIDE = 7


class At(int):
    """A dim or an index as torch counts it; Lua counts from 1."""


class Both:
    """An argument that is one thing to torch and another to Lua (an end that Lua counts in)."""

    def __init__(self, torch_value, lua_value):
        self.torch_value, self.lua_value = torch_value, lua_value


class Range:
    """A range of an index: torch's slice, in Lua {first, last, step} with both ends in it; Range() is all."""

    def __init__(self, start=None, stop=None, step=1):
        self.slice = slice(start, stop, step)
        self.lua = [] if start is None else [start + 1, stop, step]


class Operand:
    """A tensor described: flat values (repeated until the shape is full), dtype, whether it is
    differentiated, whether its elements are indices (torch counts them from 0, Lua from 1), and the
    values it takes when every dtype is tried (`grid`; None keeps it as it is)."""

    def __init__(self, shape, values, dtype=torch.float64, grad=False, index=False, grid=None):
        self.shape, self.values, self.dtype = list(shape), list(values), dtype
        self.grad, self.index, self.grid = grad, index, grid

    def flat(self):
        count = math.prod(self.shape)
        repeats = -(-count // max(len(self.values), 1))
        return (self.values * repeats)[:count]

    def tensor(self):
        x = torch.tensor(self.flat(), dtype=self.dtype).reshape(self.shape).clone()  # a leaf, no view
        return x.requires_grad_() if self.grad else x

    def of_dtype(self, dtype):
        """The same for the grid of dtypes: small whole numbers, without gradient."""
        if self.grid is None:
            return self
        return Operand(self.shape, self.grid, dtype, False, self.index, self.grid)

    def widened(self, dtype):
        """The same values as this dtype holds them, in a wider one."""
        return Operand(self.shape, self.tensor().flatten().tolist(), dtype, False, self.index)

    def data(self):
        values = [v + 1 if v >= 0 else v for v in self.values] if self.index else self.values
        entry = tensor_data(self.shape, values, self.dtype)
        if self.grad:
            entry["g"] = True
        return entry


class Sparse:
    """A sparse tensor: values, an operand, at places (a list of columns, as torch counts them)."""

    def __init__(self, places, values, size, coalesced=False):
        self.places, self.values, self.size, self.coalesced = places, values, list(size), coalesced

    def indices(self):
        rows = len(self.size) - len(self.values.shape) + 1
        return torch.tensor(self.places, dtype=torch.int64).reshape(len(self.places), rows).t()

    def data(self):
        rows = self.indices()
        return {"sparse": {"i": tensor_data(rows.shape, (rows + 1).flatten().tolist(), rows.dtype), "s": self.size,
                           "v": self.values.data(), "c": self.coalesced}}

    def tensor(self, tensors):
        values = self.values.tensor()
        tensors.append((self.values, values))
        return torch.sparse_coo_tensor(self.indices(), values, self.size, is_coalesced=self.coalesced or None)


def number_data(value):
    """A number as JSON has it; what JSON has no word for becomes a string."""
    if isinstance(value, bool) or not isinstance(value, float):
        return value
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value


def near(a, b):
    """Equal up to the last bits, in which torch's vectors and their tails may differ."""
    return a == b or repr(a) == repr(b) or isinstance(a, float) and abs(a - b) <= 1e-14 * abs(b)


def shorten(values):
    """What is written of values: of long ones that repeat every PERIOD just those, of other long ones
    every STRIDE-th (a table), otherwise all."""
    if len(values) <= 4 * PERIOD:
        return [number_data(v) for v in values]
    if all(near(v, values[k % PERIOD]) for k, v in enumerate(values)):
        return [number_data(v) for v in values[:PERIOD]]
    stride = max(STRIDE, len(values) // 100)
    return {"every": stride, "v": [number_data(v) for v in values[::stride]]}


def tensor_data(shape, values, dtype):
    return {"t": str(dtype).removeprefix("torch."), "s": list(shape), "v": shorten(list(values))}


# ---- makers ----

_made = 0  # operands made by the case that is being written: each gets values of its own


def restart():
    global _made
    _made = 0


def _sequence(count, low, high):
    """Distinct numbers of two or three digits, in no order, none of them 0."""
    global _made
    _made += 1
    step = (high - low) / PERIOD
    return [round(low + step * ((k * 37 + 11 + 29 * _made) % PERIOD + 0.5), 3)
            for k in range(min(count, PERIOD))]


def _small(count, low=0, high=5):
    """The whole numbers of the grid of dtypes."""
    return [low + (k * 7 + 2 * _made) % (high - low) for k in range(max(min(count, PERIOD), 1))]


def X(*shape):
    """Floats in (-2, 2), differentiated."""
    count = math.prod(shape)
    return Operand(shape, _sequence(count, -2, 2), grad=True, grid=_small(count))


def pos(*shape):
    """Floats in (0.1, 3), differentiated."""
    count = math.prod(shape)
    return Operand(shape, _sequence(count, 0.1, 3), grad=True, grid=_small(count, 1))


def unit(*shape):
    """Floats in (-1, 1), differentiated."""
    count = math.prod(shape)
    return Operand(shape, _sequence(count, -1, 1), grad=True, grid=_small(count, 0, 2))


def prob(*shape):
    """Floats in (0, 1), differentiated."""
    count = math.prod(shape)
    return Operand(shape, _sequence(count, 0, 1), grad=True, grid=_small(count, 0, 2))


def ties(*shape):
    """Floats of which many are equal, differentiated."""
    count = math.prod(shape)
    _sequence(0, 0, 1)
    values = [[1.5, -0.5, 1.5, 0.25, -0.5][(k + _made) % 5] for k in range(min(count, PERIOD))]
    return Operand(shape, values, grad=True, grid=_small(count))


def constant(operand):
    """The same operand, not differentiated."""
    operand.grad = False
    return operand


def fixed(operand):
    """The same operand, which keeps its dtype when every dtype is tried."""
    operand.grid = None
    return operand


def lit(values, *shape, dtype=torch.float64, grad=True, grid=None):
    """These values, of one dimension unless a shape is given."""
    grad = grad and dtype.is_floating_point
    return Operand(shape or [len(values)], values, dtype, grad, grid=grid)


def ints(*shape, low=-9, high=9, dtype=torch.int64):
    """Whole numbers from low to high."""
    count = math.prod(shape)
    values = [low + int(v) for v in _sequence(count, 0, high - low + 1)]
    return Operand(shape, values, dtype, grid=_small(count, 1))


def mask(*shape):
    """bool; the same in the grid."""
    count = math.prod(shape)
    return Operand(shape, [v > 0 for v in _sequence(count, -1, 1)], torch.bool)


def index(values, *shape):
    """int64 indices as torch counts them, which Lua counts from 1; the same in the grid."""
    return Operand(shape or [len(values)], values, torch.int64, index=True)


def argument_data(value):
    """An argument as the data has it."""
    if isinstance(value, (Operand, Sparse)):
        return value.data()
    if isinstance(value, Both):
        return argument_data(value.lua_value)
    if isinstance(value, At):
        return int(value) + 1 if value >= 0 else int(value)
    if isinstance(value, Range):
        return value.lua
    if isinstance(value, torch.dtype):
        return {"dtype": str(value).removeprefix("torch.")}
    if isinstance(value, (list, tuple)):
        return [argument_data(v) for v in value]
    value = number_data(value)
    return {"n": value} if value in ("nan", "inf", "-inf") else value


def argument_torch(value, tensors):
    """The same as torch takes it; the tensors made are appended to `tensors` with their operands."""
    if isinstance(value, Operand):
        x = value.tensor()
        tensors.append((value, x))
        return x
    if isinstance(value, Sparse):
        return value.tensor(tensors)
    if isinstance(value, Both):
        return argument_torch(value.torch_value, tensors)
    if isinstance(value, At):
        return int(value)
    if isinstance(value, Range):
        return value.slice
    if isinstance(value, (list, tuple)):
        return [argument_torch(v, tensors) for v in value]
    return value


def map_operands(value, change):
    """The same argument with every operand in it changed."""
    if isinstance(value, Operand):
        return change(value)
    if isinstance(value, Sparse):
        return Sparse(value.places, change(value.values), value.size, value.coalesced)
    if isinstance(value, (list, tuple)):
        return [map_operands(v, change) for v in value]
    return value
