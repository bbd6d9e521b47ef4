"""Operators under second names, and forms of operators of all families that came later: tensors without
dims where there were none, integers where floats were, one dim less."""
import torch
import torch.nn.functional as F

from cases import case, family, torch_function
from operands import At, Operand, X, constant, fixed, index, ints, lit, mask

family("alias")

for name in ("moveaxis", "swapdims", "swapaxes", "concatenate", "concat", "ger", "ravel"):
    torch_function(name, getattr(torch, name))
for name in ("swapdims", "swapaxes"):
    case(name, X(2, 3), At(0), At(1))
    case(name, X(2, 3, 4), At(-1), At(0))
    case(name, X(2, 0, 4), At(1), At(2))
    case(name, X(3), At(0), At(-1))
    case(name, X(), At(0), At(0))
case("moveaxis", X(2, 3, 4), At(0), At(2))
case("moveaxis", X(2, 3, 4), [At(0), At(1)], [At(2), At(0)])
case("moveaxis", X(5), At(0), At(-1))
case("moveaxis", X(2, 0), At(1), At(0))
for name in ("concat", "concatenate"):
    case(name, [X(2, 3), X(1, 3)])
    case(name, [X(2, 3), X(2, 2)], At(1))
    case(name, [X(2, 2), X(0)], At(-1))
    case(name, [X(3)], At(0))
case("concatenate", [X(2, 3), X(2, 2)], axis=At(1))
case("ger", X(3), X(2))
case("ger", X(1), X(4))
case("ger", X(0), X(2))
case("ger", ints(2), ints(3))
case("ravel", X(2, 3))
case("ravel", X())
case("ravel", X(0, 3))
case("ravel", ints(2, 2, 2))

# tensors without dims
case("index_select", X(), At(0), index([0]))
case("index_select", X(), At(-1), index([0], 1))
case("index_add", X(), At(0), Operand([], [0], torch.int64, index=True), X())
case("index_copy", X(), At(0), index([0]), X(1))
case("index_copy", X(), At(0), index([0]), X())
case("index_copy", X(3), At(0), index([1]), X())
case("index_fill", X(), At(0), index([0]), 3)
case("index_fill", X(3), At(0), index([0, 2]), X())
case("prod", Operand([], [0.0], grad=True))
case("prod", Operand([], [0.0], grad=True), At(0))
case("roll", X(), 3)

# integers with factors that are none
torch_function("addmm", torch.addmm)
torch_function("addmv", torch.addmv)
torch_function("baddbmm", torch.baddbmm)
for factors in ({"alpha": 0.5}, {"beta": 1.5}, {"alpha": 2.75, "beta": -1.5}, {"alpha": 2, "beta": 0}):
    case("addmm", ints(2, 2), ints(2, 3), ints(3, 2), **factors)
    case("addmv", ints(2), ints(2, 3), ints(3), **factors)
    case("baddbmm", ints(1, 2, 2), ints(1, 2, 3), ints(1, 3, 2), **factors)
case("index_add", ints(4), At(0), index([3, 3]), ints(2), alpha=0.5)
case("index_add", ints(4), At(0), index([3, 1]), ints(2), alpha=-1.5)
case("any", lit([0, 3, 0], dtype=torch.uint8))
case("any", lit([0, 0, 1, 7], 2, 2, dtype=torch.uint8), At(1))
case("any", lit([1], 300, dtype=torch.uint8))
case("any", lit([], 0, dtype=torch.uint8))
case("all", lit([1, 3, 2], dtype=torch.uint8))
case("all", lit([0, 2, 1, 7], 2, 2, dtype=torch.uint8), At(1), keepdim=True)
case("all", lit([], 0, dtype=torch.uint8))
for dtype in (torch.int64, torch.int32, torch.uint8, torch.float32):
    case("arange", -0.9, 2.1, 2, dtype=dtype)
    case("arange", 5.5, -1, -2, dtype=dtype)
    case("arange", 0.2, 2.9, 0.7, dtype=dtype)
case("arange", -2.7, 3, 1.5, dtype=torch.int64)
case("full", [2], True)
case("full", [2], True, dtype=torch.float32)
case("full", [2], 2.5, dtype=torch.bool)
torch_function("full_like", torch.full_like)
case("full_like", constant(X(2)), True)

# linear with a row for a weight, and with nothing in it
torch_function("linear", F.linear)
case("linear", X(2, 3), X(3))
case("linear", X(3), X(3))
case("linear", X(2, 2, 3), X(3))
case("linear", X(2, 0), X(0))
case("linear", X(0, 3), X(3))
for x, weight in (((2, 0), (4, 0)), ((2, 3), (0, 3)), ((0, 2, 3), (4, 3)), ((2, 2, 0), (4, 0))):
    case("linear", X(*x), X(*weight))
for a, b in (((2, 0), (0, 3)), ((0,), (0,)), ((2, 0), (0,)), ((3, 2, 0), (0, 4)), ((3, 2, 0), (3, 0, 4)),
             ((0,), (0, 3)), ((3, 0, 2), (2,)), ((2, 3, 0), (0,)), ((3, 2, 0), (1, 0, 0))):
    case("matmul", fixed(X(*a)), fixed(X(*b)))

# losses
torch_function("cross_entropy", F.cross_entropy)
torch_function("nll_loss", F.nll_loss)
torch_function("smooth_l1_loss", F.smooth_l1_loss)
for name in ("cross_entropy", "nll_loss"):
    case(name, X(4, 3), index([1, -100, 2, -100]))
    case(name, X(4, 3), index([1, -100, 2, -100]), reduction="none")
case("cross_entropy", X(3, 4), index([2, -100, 3]), label_smoothing=0.2)
case("smooth_l1_loss", X(2, 3), X(2, 3), beta=0)

# copies and layouts
case("tile", X(2, 3), [1])
case("tile", X(1, 3), [2, 1])
case("tile", X(), [])
case("where", mask(2, 3), X(2, 3), X(3))
case("as_strided", X(3, 4), [2, 2], [1, 4], 3)
