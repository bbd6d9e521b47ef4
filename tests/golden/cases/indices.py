"""Indexing and gathering, and random operators where chance has no say."""
import math

import torch
import torch.nn.functional as F

from cases import case, family, index_results, torch_function
from operands import At, Range, X, constant, index, ints, lit, mask

family("indices")


case("index_select", X(3, 4), At(0), index([2, 0]))
case("index_select", X(3, 4), At(-1), index([1, 1, 3]))
case("index_select", X(4), At(0), index([3, 3, 3, 0]))
case("index_select", X(3, 4), At(0), index([], 0))
case("index_select", X(3, 4), At(1), index([2]))
case("index_add", X(3, 4), At(0), index([2, 0]), X(2, 4))
case("index_add", X(3, 4), At(1), index([1, 1, 3]), X(3, 3))
case("index_add", X(4), At(0), index([3, 3, 3, 0]), X(4), alpha=-0.5)
case("index_add", ints(4), At(0), index([3, 3]), ints(2))
case("index_copy", X(3, 4), At(0), index([2, 0]), X(2, 4))
case("index_copy", X(3, 4), At(1), index([1, 3]), X(3, 2))
case("index_copy", X(4), At(0), index([3, 0]), X(2))
case("index_copy", X(4), At(-1), index([], 0), X(0))
case("index_fill", X(3, 4), At(0), index([2, 0]), 1.5)
case("index_fill", X(3, 4), At(1), index([1, 1, 3]), -2)
case("index_fill", X(4), At(0), index([3]), math.nan)
case("index_fill", ints(4), At(0), index([0, 2]), 7)
case("take", X(3, 4), index([0, 11, 5, 5]))
case("take", X(3, 4), index([1, 2, 3, 4], 2, 2))
case("take", X(5), index([4]))
case("take", X(5), index([], 0))
torch_function("embedding", lambda weight, i: F.embedding(i, weight))
case("embedding", X(4, 3), index([2, 0, 2]))
case("embedding", X(4, 3), index([1, 3, 0, 0], 2, 2))
case("embedding", X(4, 3), index([], 0))
case("embedding", X(4, 1), index([3]))
for value in (2.5, X()):
    case("masked_fill", X(2, 3), mask(2, 3), value)
case("masked_fill", X(2, 3), mask(3), -math.inf)
case("masked_fill", X(2, 3), mask(2, 1), 1)
case("masked_fill", ints(4), mask(4), 7)
case("masked_fill", X(0), mask(0), 1)
case("masked_select", X(2, 3), mask(2, 3))
case("masked_select", X(2, 3), mask(3))
case("masked_select", X(3), mask(2, 3))
case("masked_select", X(3), lit([False] * 3, dtype=torch.bool))
case("masked_select", X(20011), mask(20011))
index_results("nonzero", 0)
case("nonzero", mask(2, 3))
case("nonzero", lit([0.0, -0.0, math.nan, 2.0], grad=False))
case("nonzero", mask(2, 2, 2))
case("nonzero", lit([0, 0], dtype=torch.int64))
case("nonzero", constant(X(2, 3)), grid=True)
case("gather", X(3, 4), At(0), index([2, 0, 1, 2], 1, 4))
case("gather", X(3, 4), At(1), index([3, 0, 0, 1, 2, 2], 3, 2))
case("gather", X(4), At(0), index([3, 3, 0]))
case("gather", X(3, 4), At(-1), index([1, 2], 2, 1))
case("gather", X(2, 2), At(0), index([], 0, 2))
torch_function("scatter", lambda x, dim, i, src: torch.scatter(x, dim, i, src))
case("scatter", X(3, 4), At(0), index([2, 0, 1, 2], 1, 4), X(1, 4))
case("scatter", X(3, 4), At(1), index([3, 0, 0, 1, 2, 3], 3, 2), X(3, 2))
case("scatter", X(3, 4), At(1), index([3, 0], 2, 1), 2.5)
case("scatter", X(4), At(0), index([3, 0]), constant(X(3)))
case("scatter", ints(4), At(0), index([3, 0]), 7)
case("scatter_add", X(3, 4), At(0), index([2, 0, 1, 2, 2, 2, 2, 2], 2, 4), X(2, 4))
case("scatter_add", X(3, 4), At(1), index([3, 3, 0, 1, 2, 3], 3, 2), X(3, 2))
case("scatter_add", X(4), At(0), index([3, 3, 3]), constant(X(5)))
case("scatter_add", ints(4), At(0), index([3, 0]), ints(2))
torch_function("one_hot", F.one_hot)
case("one_hot", index([2, 0, 1]))
case("one_hot", index([2, 0, 1]), 5)
case("one_hot", index([1, 1, 0, 2], 2, 2))
case("one_hot", index([], 0), 3)

# x[key] and x[key] = value: keys are lists of indices, ranges, index tensors and masks.


def setitem(x, key, value):
    y = x.clone()
    y[tuple(key)] = value
    return y


torch_function("getitem", lambda x, key: x[tuple(key)])
torch_function("setitem", setitem)
KEYS = (
    [At(1)],
    [At(-1), At(2)],
    [Range(1, 3)],
    [Range(), Range(0, 4, 2)],
    [Range(0, 3, 2), At(-1)],
    [index([2, 0, 2])],
    [Range(), index([3, 1])],
    [index([2, 0]), index([1, -1])],
    [index([0, 1, 2, 2], 2, 2), Range(1, 3)],
    [mask(3, 4)],
    [mask(3)],
    [At(1), mask(4)],
    [Range(1, 3), index([0, 0, 3])],
    [index([2, 1, 0], 3, 1), index([3, 0])],
)
for key in KEYS:
    case("getitem", X(3, 4), key)
    case("setitem", X(3, 4), key, 2.5)
    case("setitem", X(3, 4), key, X())
for key, value in ((KEYS[0], X(4)), (KEYS[2], X(2, 1)), (KEYS[3], X(3, 2)), (KEYS[6], X(2)), (KEYS[7], X(2)),
                   (KEYS[10], X(4)), (KEYS[13], X(3, 2))):
    case("setitem", X(3, 4), key, value)
case("getitem", X(2, 3, 2), [mask(2, 3)])
case("getitem", X(2, 3, 2), [mask(2, 3), At(1)])
case("getitem", X(2, 3, 2), [At(0), Range(), index([1, 0, 1])])
case("getitem", X(2, 3, 2), [index([1, 0]), Range(), index([1, 1])])
case("getitem", X(2, 3, 2), [Range(), index([2, 0]), index([1, 1])])
case("getitem", X(2, 3), [index([], 0)])
case("setitem", X(2, 3, 2), [mask(2, 3)], X(2))
case("setitem", X(2, 3, 2), [index([1, 0]), Range(), At(1)], X(3))

# Random operators where chance has no say.
torch_function("uniform_", lambda x, low, high: x.uniform_(low, high))
torch_function("normal_", lambda x, mean, std: x.normal_(mean, std))
torch_function("bernoulli_", lambda x, p: x.bernoulli_(p))
torch_function("dropout", F.dropout)
for shape in ((2, 3), (), (0,), (5,)):
    case("normal_", constant(X(*shape)), 2.5, 0)
    case("bernoulli_", constant(X(*shape)), 0)
    case("bernoulli_", constant(X(*shape)), 1)
    case("dropout", X(*shape), 0)
    case("dropout", X(*shape), 1)
    case("dropout", X(*shape), 0.5, False)
    case("uniform_", constant(X(*shape)), 1.5, 1.5)
for p in (0.0, 1.0):
    case("bernoulli", lit([p] * 4, grad=False))
    case("bernoulli", lit([p] * 4, 2, 2, dtype=torch.float32, grad=False))
