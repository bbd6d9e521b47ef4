"""Diagonals, windows, pieces of tensors, and tensors made afresh."""
import math

import torch

from cases import case, family, index_results, torch_function
from operands import At, X, constant, ints, lit, mask, pos

family("shaping")


def method(name):
    return lambda x, *args, **options: getattr(x, name)(*args, **options)


for name in ("fill_diagonal_", "unfold", "repeat", "new_zeros", "new_ones", "new_full"):
    torch_function(name, method(name))
torch_function("rep", method("repeat"))

case("diagonal", X(3, 4))
case("diagonal", X(2, 3, 4), 1, At(2), At(1))
case("diagonal", X(3, 3), -2)
case("diagonal", X(2, 2), 5)
case("diagonal", X(2, 3, 3), -1, At(-2), At(-1))
case("diagonal", X(0, 3))
case("diag", X(3))
case("diag", X(3, 4), 1)
case("diag", X(2), -1)
case("diag", X(0), 2)
case("diag_embed", X(3))
case("diag_embed", X(2, 3), 1)
case("diag_embed", X(2, 3), -1, At(0), At(2))
case("diag_embed", X(2, 0))
case("diagflat", X(3))
case("diagflat", X(2, 2), 1)
case("diagflat", X(), -1)
case("diagflat", X(0))
case("trace", X(3, 3))
case("trace", X(2, 4))
case("trace", X(0, 3))
case("trace", lit([1.0, math.nan, math.inf, 2.0], 2, 2))
case("diagonal_scatter", X(3, 4), X(3))
case("diagonal_scatter", X(2, 3, 3), X(2, 2), 1, At(1), At(2))
case("diagonal_scatter", X(2, 2), X(0), 4)
case("diagonal_scatter", ints(3, 3), ints(2), -1)
case("select_scatter", X(3, 4), X(4), At(0), At(1))
case("select_scatter", X(2, 3), X(2), At(-1), At(-1))
case("select_scatter", X(4), X(), At(0), At(2))
case("select_scatter", ints(3), ints(), At(0), At(0))
case("slice_scatter", X(5, 3), X(3, 3), At(0), At(1), 4)
case("slice_scatter", X(5), X(3), At(0), None, None, 2)
case("slice_scatter", X(2, 4), X(2, 0), At(1), At(2), 2)
case("slice_scatter", ints(4), ints(2), At(0), At(0), 2)
case("fill_diagonal_", X(3, 4), 2.5)
case("fill_diagonal_", X(7, 2), 1, True)
case("fill_diagonal_", X(2, 2, 2), 0)
case("fill_diagonal_", X(6, 2), math.inf, True)
case("fill_diagonal_", X(0, 2), 1)
case("unfold", X(7), At(0), 3, 2)
case("unfold", X(2, 5), At(-1), 2, 1)
case("unfold", X(4, 2), At(0), 4, 3)
case("unfold", X(), At(0), 1, 1)
case("unfold", X(3), At(0), 0, 1)
for name in ("tril_indices", "triu_indices"):
    index_results(name, 0)
    case(name, 3, 4)
    case(name, 3, 2, -1)
    case(name, 2, 3, 1)
    case(name, 0, 2)
    case(name, 2, 2, 7)
case("rot90", X(2, 3))
case("rot90", X(2, 3, 2), 3, [At(0), At(2)])
case("rot90", X(2, 2), 2)
case("rot90", X(2, 2), -3)
for name in ("fliplr", "flipud"):
    case(name, X(2, 3))
    case(name, X(3, 2, 2))
    case(name, X(0, 2))
    case(name, mask(2, 2))

for name in ("repeat", "rep"):
    case(name, X(2, 3), [2, 2])
    case(name, X(3), [2, 1, 2])
    case(name, X(), [3])
    case(name, X(2, 1), [0, 2])
    case(name, X(2), [1])
case("repeat_interleave", X(2, 3), 2)
case("repeat_interleave", X(2, 3), 3, At(1))
case("repeat_interleave", X(3, 2), lit([2, 0, 1], dtype=torch.int64), At(0))
case("repeat_interleave", X(2, 2), lit([2], dtype=torch.int32), At(-1), output_size=4)
case("repeat_interleave", X(), 3)
case("repeat_interleave", X(0), 3)
for number in (1, 2, 3):
    name = f"atleast_{number}d"
    case(name, X())
    case(name, X(3))
    case(name, X(2, 3))
    case(name, X(1, 2, 1))
for name in ("hstack", "vstack", "dstack", "row_stack", "column_stack"):
    case(name, [X(2, 3), X(2, 3)])
    case(name, [X(2), X(2), ints(2)])
    case(name, [X(), X()])
    case(name, [X(0), X(0)])
    case(name, [X(2, 1, 2), X(2, 1, 2)])
torch_function("block_diag", lambda tensors: torch.block_diag(*tensors))
case("block_diag", [X(2, 3), X(1, 2)])
case("block_diag", [X(2), X(), X(2, 0)])
case("block_diag", [ints(2), X(1, 1)])
case("block_diag", [X(0)])
torch_function("broadcast_tensors", lambda tensors: torch.broadcast_tensors(*tensors))
case("broadcast_tensors", [X(2, 1), X(3)])
case("broadcast_tensors", [X(), X(2)])
case("broadcast_tensors", [X(1), X(0)])
case("broadcast_tensors", [X(2, 2)])
case("meshgrid", [X(2), X(3)], indexing="ij")
case("meshgrid", [X(2), X(3), X(2)], indexing="xy")
case("meshgrid", [X(), X(2)], indexing="ij")
case("meshgrid", [X(0), X(2)], indexing="xy")
torch_function("cartesian_prod", lambda tensors: torch.cartesian_prod(*tensors))
case("cartesian_prod", [X(2), X(3)])
case("cartesian_prod", [X(2), X(1), X(2)])
case("cartesian_prod", [X(3)])
case("cartesian_prod", [X(0), X(2)])
case("combinations", X(4))
case("combinations", X(3), 2, True)
case("combinations", X(4), 3)
case("combinations", X(2), 3)
case("combinations", X(2), 1)
case("combinations", constant(X(2)), 0)
case("tensor_split", X(7), 3)
case("tensor_split", X(7, 2), [1, 4])
case("tensor_split", X(2, 5), 2, At(-1))
case("tensor_split", X(2), 4)
case("tensor_split", X(5), [3, 1, -1, 9])
case("tensor_split", X(5), [2])
for name, shapes in (("hsplit", ((4,), (2, 4), (2, 6, 2))), ("vsplit", ((4, 2), (2, 2, 2), (6, 0))),
                     ("dsplit", ((2, 2, 4), (1, 0, 2), (2, 1, 6)))):
    for shape in shapes:
        case(name, X(*shape), 2)
        case(name, X(*shape), [1])

for name, more in (("new_zeros", ()), ("new_ones", ()), ("new_full", (3,))):
    case(name, constant(X(2)), [2, 3], *more)
    case(name, mask(2), [0], *more)
    case(name, ints(2), [], *more)
    case(name, ints(2), [2], *more, dtype=torch.float64)
torch_function("logspace", torch.logspace)
case("logspace", 0, 2, 5, dtype=torch.float64)
case("logspace", -1, 1, 3, 2)
case("logspace", 0, 1, 0)
case("logspace", 0, 3, 4, dtype=torch.int32)
case("logspace", 0, 3, 4, -2.0, dtype=torch.float64)
case("logspace", 0.5, 3.9, 3, dtype=torch.int64)
case("logspace", constant(X()), 2, 3, dtype=torch.float64)


def vander(x, count=None, increasing=False):
    """torch's own has no gradient: it overwrites what it needs."""
    y = torch.vander(x.detach(), count, increasing)
    if x.requires_grad:
        powers = range(y.shape[1]) if increasing else reversed(range(y.shape[1]))
        columns = [x**k for k in powers]
        return torch.stack(columns, 1) if columns else x[:, None][:, :0]
    return y


torch_function("vander", vander)
case("vander", X(3))
case("vander", X(2), 4, True)
case("vander", X(2), 0)
case("vander", ints(3))
case("vander", lit([0.0, math.inf, math.nan, -1.0], grad=False), 3)
for name in ("hann", "hamming", "blackman", "bartlett", "kaiser"):
    name += "_window"
    torch_function(name, getattr(torch, name))
    case(name, 7, dtype=torch.float64)
    case(name, 6, False, dtype=torch.float64)
    case(name, 1)
    case(name, 0)
    case(name, 2, dtype=torch.float64)
case("hamming_window", 5, False, 0.6, 0.3, dtype=torch.float64)
case("kaiser_window", 9, True, 4.5, dtype=torch.float64)
case("kaiser_window", 9, False, 40, dtype=torch.float64)
