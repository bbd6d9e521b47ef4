"""Elements put and reduced in places; draws where chance has no say."""
import math

import torch

from cases import case, family, index_results, torch_function
from operands import At, X, constant, fixed, index, ints, lit, mask, pos

family("placing")

PLACES = index([0, 2, 0, 1, 3, 1], 2, 3)
for how in ("sum", "prod", "mean", "amax", "amin"):
    for include in (True, False):
        case("scatter_reduce", X(3, 4), At(1), PLACES, X(2, 3), how, include_self=include)
    case("scatter_reduce", ints(4), At(0), index([3, 3, 0]), ints(3), how)
    case("scatter_reduce", ints(4, dtype=torch.uint8, low=0), At(0), index([3, 3, 0]),
         ints(3, dtype=torch.uint8, low=0), how, include_self=False)
    case("scatter_reduce", X(4), At(0), index([], 0), X(0), how)
    case("scatter_reduce", X(), At(0), index([0, 0]), X(2), how)
case("scatter_reduce", lit([1.0, 0.0, 2.0]), At(0), index([0, 0, 1, 1]), lit([0.0, 3.0, 0.0, 2.0]), "prod")
case("scatter_reduce", lit([1.0, 0.0, 2.0]), At(0), index([0, 0, 0, 1]), lit([0.0, 3.0, 0.0, 2.0]), "prod")
case("scatter_reduce", lit([1.0, 5.0, 2.0]), At(0), index([0, 0, 1, 1]), lit([1.0, 1.0, 5.0, math.inf]), "amax")
case("scatter_reduce", lit([1.0, 5.0, 2.0], grad=False), At(0), index([0, 0, 1]),
     lit([math.nan, 1.0, -math.inf], grad=False), "amax")
case("scatter_reduce", X(3, 4), At(1), PLACES, X(2, 3), "sum", grid=True)
for how in ("prod", "mean", "amax", "amin"):
    for include in (True, False):
        case("index_reduce", X(3, 4), At(0), index([0, 2, 0]), X(3, 4), how, include_self=include)
    case("index_reduce", X(3, 4), At(1), index([3, 3]), X(3, 2), how)
case("index_reduce", ints(4), At(0), index([3, 3, 0]), ints(3), "amax")
case("index_put", X(4, 3), [index([2, 0])], X(2, 3), True)
case("index_put", X(4, 3), [index([2, 2, 2])], X(3, 3), True)
case("index_put", X(4, 3), [index([0, 2]), index([1, -1])], X(2))
case("index_put", X(4, 3), [index([0, 2], 2, 1), index([1, 2])], X())
case("index_put", X(3), [lit([True, False, True], dtype=torch.bool)], X(2))
case("index_put", X(3), [index([], 0)], X(0))
case("put", X(2, 3), index([0, 5]), X(2))
case("put", X(2, 3), index([1, 1, -1, 0], 2, 2), X(2, 2), True)
case("put", X(4), index([], 0), X(0))
case("put", ints(2, 2), index([3]), ints(1))
case("masked_scatter", X(2, 3), mask(2, 3), X(6))
case("masked_scatter", X(2, 2), lit([True, False], dtype=torch.bool), X(2, 2))
case("masked_scatter", X(3), lit([False] * 3, dtype=torch.bool), X(0))
case("masked_scatter", ints(4), mask(4), ints(4))
case("take_along_dim", X(3, 4), index([3, 0, 0, 1, 2, 2], 3, 2), At(1))
case("take_along_dim", X(3, 1), index([2, 0, 1, 2], 1, 4), At(0))
case("take_along_dim", X(2, 3), index([5, 0, 0]))
case("take_along_dim", X(2, 3), index([], 2, 0), At(-1))
index_results("argwhere", 0)
case("argwhere", mask(2, 3))
case("argwhere", lit([0.0, -0.0, math.nan, 2.0], grad=False))
case("argwhere", lit([0, 0], dtype=torch.int64))
case("argwhere", constant(X(2, 2)), grid=True)
case("scatter", X(3, 4), At(1), PLACES, X(2, 3), reduce="add", grad=False)
case("scatter", X(3, 4), At(1), PLACES, X(2, 3), reduce="multiply", grad=False)
case("scatter", X(4), At(0), index([3, 3]), 2.5, reduce="multiply", grad=False)
case("index_fill", X(3, 4), At(0), index([2, 0]), X())
case("index_fill", X(3, 4), At(1), index([2, 2, 0]), X())
case("masked_fill", ints(4), mask(4), ints())

# Draws.
torch_function("normal", lambda mean, std, *size: torch.normal(mean, std, *size))
torch_function("log_normal_", lambda x, mean, std: torch.exp(x.normal_(mean, std)))
torch_function("random_", lambda x, *bounds: x.random_(*bounds))
torch_function("bernoulli_", lambda x, p: x.bernoulli_(p))
index_results("multinomial", 0)
for shape in ((2, 3), (), (0,), (5,)):
    case("normal", constant(X(*shape)), 0.0)
    case("normal", constant(X(*shape)), lit([0.0], *(1,) * len(shape), grad=False))
    case("poisson", lit([0.0] * max(math.prod(shape), 1), *shape, grad=False))
    case("random_", constant(X(*shape)), 1)
    case("random_", ints(*shape), -3, -2)
    case("randint_like", constant(X(*shape)), 1)
    case("randint_like", ints(*shape), 4, 5)
case("bernoulli_", constant(X(2, 3)), lit([0.0, 1.0, 0.0], grad=False))
case("bernoulli", fixed(ints(3)), 1.0)
case("multinomial", lit([0.0, 2.0, 0.0], grad=False), 1)
case("multinomial", lit([0.0, 2.0, 0.0, 0.5, 0.0, 0.0], 2, 3, grad=False), 4, True)
case("multinomial", lit([3.0], grad=False), 1)
case("multinomial", lit([0.0, 0.0, 0.0, 1.0], dtype=torch.float32, grad=False), 3, True)
