"""Reductions, scans and softmax."""
import math

import torch

from cases import case, family, index_results, torch_function
from operands import At, X, constant, ints, lit, mask, pos, ties

inf, nan = math.inf, math.nan
ROWS = [1.0, nan, 2.0, inf, 1.0, -inf, inf, 0.5, inf, -0.0, 0.0, -0.0]

family("reduce")


def every_dim(function):
    """torch takes no dim, or a list; here nil stands for all dims."""
    def call(x, dim=None, keepdim=False, **options):
        dims = list(range(x.dim())) if dim is None else dim
        return function(x, dims, keepdim=keepdim, **options)
    return call


def shapes(name, make=X, large=True):
    case(name, make(2, 3))
    case(name, make(2, 3), At(0))
    case(name, make(2, 3), At(-1), keepdim=True)
    case(name, make(2, 3, 2), [At(0), At(-1)], keepdim=True)
    case(name, make(2, 3, 2), [At(1)])
    case(name, make())
    if large:
        case(name, make(3, 6007), At(1))
        case(name, make(6007, 3), At(0))
        case(name, make(20011))


def edges(name, **options):
    case(name, lit(ROWS, 4, 3), At(1), **options)


def dims_of(function):
    return lambda x, dim=None, keepdim=False: function(x) if dim is None else function(x, tuple(dim) if isinstance(
        dim, list) else dim, keepdim)


for name in ("sum", "nansum", "mean", "nanmean"):
    shapes(name)
    edges(name)
    case(name, X(0, 3), At(0))
    case(name, X(3, 0))
    if name != "nanmean":
        case(name, ints(2, 3), dtype=torch.float64)
        case(name, constant(X(2, 3)), dtype=torch.float32)
case("sum", ints(2, 3))
case("sum", mask(2, 3), At(0))
case("sum", lit([200, 100, 57], dtype=torch.uint8))
case("sum", lit([2**31 - 1, 5], dtype=torch.int32))


def prod(x, dim=None, keepdim=False, **options):
    if isinstance(dim, list) and keepdim:
        for d in dim:
            x = torch.prod(x, d, keepdim=True, **options)
        return x
    if isinstance(dim, list):
        dim, = dim
    return torch.prod(x, **options) if dim is None else torch.prod(x, dim, keepdim=keepdim, **options)


torch_function("prod", prod)
shapes("prod", large=False)
# Beside zeros in another line torch takes another way, and gives numbers where NaN and infinities stand.
edges("prod", grad=False)
case("prod", X(0, 3), At(0))
case("prod", lit([2.0, 0.0, 3.0, 0.5]))
case("prod", lit([2.0, 0.0, 3.0, 0.0]))
case("prod", lit([2.0, 0.0, 3.0, 4.0, 5.0, 6.0], 2, 3), At(1))
case("prod", ints(4))

for name in ("var", "std"):
    shapes(name)
    edges(name)
    case(name, X(5), correction=0)
    case(name, X(5), unbiased=False)
    case(name, X(2, 5), At(1), correction=2)
    case(name, X(3, 1), At(0))
    case(name, lit([3.0]))
    case(name, lit([2.0, 2.0, 2.0]), correction=0)
    case(name, lit([1e9 + 1, 1e9 + 2, 1e9 + 4]))
for name in ("amax", "amin"):
    torch_function(name, every_dim(getattr(torch, name)))
    shapes(name)
    edges(name, grad=False)
    case(name, ties(3, 4), At(1))
    case(name, ties(3, 4))
    case(name, ties(2, 3, 4), [At(0), At(2)])
    case(name, ints(3, 4), At(0))
for name in ("max", "min"):
    index_results(name, 1)
    for shape in ((2, 3), (), (20011,)):
        case(name, X(*shape))
    case(name, X(2, 3), At(0))
    case(name, X(2, 3, 2), At(-1), keepdim=True)
    case(name, X(), At(0))
    case(name, ties(3, 4), At(1))
    case(name, ties(3, 4))
    edges(name)
    case(name, lit([nan, 1.0, nan]), At(0))
    case(name, lit([nan, 1.0, nan], grad=False))
    case(name, ints(3, 4), At(0))
    case(name, X(3, 6007), At(1))
for name in ("argmax", "argmin"):
    index_results(name, 0)
    case(name, X(2, 3))
    case(name, X(2, 3), At(0))
    case(name, X(2, 3, 2), At(-1), keepdim=True)
    case(name, ties(3, 4), At(1))
    case(name, ties(3, 4))
    case(name, X())
    edges(name)
    case(name, X(20011))
    case(name, ints(3, 4), At(1))
for name in ("any", "all"):
    torch_function(name, dims_of(getattr(torch, name)))
    shapes(name, mask)
    case(name, mask(0, 3), At(0))
    case(name, mask(3, 0), At(0))
    case(name, lit([0.0, nan, -0.0, 0.0], 2, 2, grad=False), At(1))
    case(name, lit([0, 0, 3, 1], 2, 2, dtype=torch.int64), At(1))
    case(name, constant(X(2, 3)), At(0), grid=True)
torch_function("count_nonzero", lambda x, dim=None, keepdim=False: (x != 0).sum(dim, keepdim=keepdim))
shapes("count_nonzero", mask)
case("count_nonzero", lit([0.0, nan, -0.0, 2.0], grad=False))
case("count_nonzero", constant(X(2, 3)), At(0), grid=True)


torch_function("norm", lambda x, p=2, *args, **options: (torch.norm if isinstance(p, str) else torch.linalg.vector_norm)(
    x, p, *args, **options))
for p in (1, 2, 3, 0.5, inf, -inf, 0):
    case("norm", X(2, 3), p)
    case("norm", X(2, 3), p, At(0))
case("norm", X(2, 3), 2, [At(0), At(1)], keepdim=True)
case("norm", X(2, 3, 2), 3.5, [At(0), At(-1)])
case("norm", X())
case("norm", lit([0.0, 0.0, 0.0]))
case("norm", lit([0.0, -1.0, 0.0]), 1)
case("norm", lit([2.0, -2.0, 1.0]), inf)
case("norm", X(20011))
case("norm", X(2, 3), "fro")
case("norm", X(2, 3, 2), "fro", [At(0), At(2)], keepdim=True)
case("norm", X(3, 2), "nuc")
case("norm", X(2, 3, 3), "nuc", [At(0), At(2)], keepdim=True)
case("norm", X(3, 2, 4), "nuc", [At(2), At(0)])
case("norm", X(0, 2), 2, At(0))
case("norm", lit(ROWS, 4, 3), 2, At(1), grad=False)

torch_function("logsumexp", every_dim(torch.logsumexp))
shapes("logsumexp")
case("logsumexp", lit([1000.0, 1001.0, -1e9]))
case("logsumexp", lit([-inf, -inf]), At(0))
case("logsumexp", lit([inf, 1.0, nan, 1.0], 2, 2), At(1), grad=False)
case("logsumexp", X(0, 2), At(0))

for dim in (0, 1, -1):
    case("cumsum", X(3, 4), At(dim))
case("cumsum", X(0, 3), At(0))
case("cumsum", X(), At(0))
case("cumsum", ints(4), At(0), dtype=torch.float64)
case("cumsum", ints(4), At(0))
case("cumsum", mask(5), At(0))
case("cumsum", lit([1.0, inf, 2.0, -inf, 1.0]), At(0))
case("cumsum", X(500), At(0))

for name in ("softmax", "log_softmax"):
    case(name, X(2, 3), At(1))
    case(name, X(2, 3, 4), At(1))
    case(name, X(2, 3), At(0))
    case(name, X(2, 3), At(-1))
    case(name, X(), At(0))
    case(name, X(0, 3), At(1))
    case(name, X(2, 3), At(1), dtype=torch.float32)
    case(name, lit([1000.0, 1001.0, -1e9, 0.0, -inf, 1.0], 2, 3), At(1))
    case(name, lit([nan, 1.0, -inf, -inf, inf, 1.0], 3, 2), At(1), grad=False)
    case(name, X(3, 701), At(1))
