"""Sparse tensors: their making and taking apart, and what other operators do with them. Places are as torch
counts them, one column each; those that stand twice are added."""
import torch
import torch.nn.functional as F

from cases import case, family, torch_function
from operands import At, Sparse, X, constant, fixed, index, ints, lit

family("sparse")

PLACES = [[0, 2], [1, 0], [1, 0], [0, 1]]
ORDERED = [[0, 1], [1, 0], [1, 2]]


def loose(*dense):
    """(2, 3) of four values, two of them at one place; or of rows."""
    return Sparse(PLACES, X(4, *dense), (2, 3) + dense)


def tidy(*dense):
    return Sparse(ORDERED, X(3, *dense), (2, 3) + dense, coalesced=True)


def table():
    """Rows of a table, one of them named twice."""
    return Sparse([[3], [0], [3]], X(3, 2), (4, 2))


def nothing(*dense):
    return Sparse([], X(0, *dense), (2, 3) + dense)


def places(*rows):
    return fixed(index([i for row in rows for i in row], len(rows), len(rows[0])))


torch_function("sparse_coo_tensor", torch.sparse_coo_tensor)
case("sparse_coo_tensor", places([0, 1, 1], [2, 0, 0]), X(3), [2, 3])
case("sparse_coo_tensor", places([0, 1, 1], [2, 0, 0]), X(3))
case("sparse_coo_tensor", places([3, 1]), X(2, 3), [5, 3])
case("sparse_coo_tensor", places([], []), X(0), [2, 3])
case("sparse_coo_tensor", places([0, 0], [0, 2]), X(2), [1, 3], is_coalesced=True)
case("sparse_coo_tensor", places([0, 0], [0, 2]), ints(2), [4, 4], dtype=torch.float64)

for operand in (loose, tidy, table, nothing, lambda: loose(2), lambda: nothing(2)):
    case("to_dense", operand())
    case("coalesce", operand())
    case("_indices", operand())
    case("_values", operand())
    case("_nnz", operand())
    case("is_coalesced", operand())
    case("sparse_dim", operand())
    case("dense_dim", operand())
case("to_dense", X(2, 3))
for name in ("indices", "_indices"):
    torch_function(name, lambda x, name=name: getattr(x, name)(), index_results=[0])
case("to_dense", Sparse([[0], [1]], ints(2), (3,)))
case("sparse_dim", X(2, 3))
case("dense_dim", X(2, 3))
for operand in (tidy, lambda: tidy(2), nothing, lambda: Sparse([[2]], X(1, 3), (4, 3))):
    case("indices", operand())
    case("values", operand())

case("to_sparse", lit([1.5, 0, -2, 0, 0, 3], 2, 3))
case("to_sparse", lit([1.5, 0, -2, 0, 0, 0], 3, 2), 1)
case("to_sparse", lit([0.0, -0.0], 2))
case("to_sparse", X())
case("to_sparse", X(0, 3))
case("to_sparse", lit([1.5, 0, -2, 0, 0, 0, 1, 1], 2, 2, 2), 2)
case("to_sparse", tidy())
constant_mask = Sparse(ORDERED, constant(X(3)), (2, 3), coalesced=True)
case("sparse_mask", X(2, 3), constant_mask)
case("sparse_mask", X(2, 3), Sparse(PLACES, constant(X(4)), (2, 3)))
case("sparse_mask", X(4, 2), Sparse([[3], [0], [3]], constant(X(3, 2)), (4, 2)))
case("sparse_mask", loose(), constant_mask)
case("sparse_mask", nothing(), constant_mask)

for operand in (loose, tidy, nothing, lambda: loose(2)):
    case("clone", operand())
    case("neg", operand())
    case("abs", operand())
    case("square", operand())
    case("sum", operand())
    case("mul", operand(), 2.5)
    case("mul", -2, operand())
    case("div", operand(), 4)
    case("to", operand(), torch.float32)
    case("add", operand(), operand())
    case("sub", operand(), operand(), alpha=0.5)
case("mul", tidy(), X())
case("mul", loose(), constant(X(2, 3)))
case("mul", X(2, 3), tidy())
case("mul", tidy(), loose())
case("div", tidy(), X())
case("norm", loose(), 2, grad=False)
case("norm", tidy(), 1)
case("norm", table(), 2, grad=False)
case("norm", constant_mask, float("inf"))
case("sum", table(), dtype=torch.float32)
case("add", tidy(), loose())
case("add", X(2, 3), loose())
case("add", X(2, 3), tidy(), alpha=-2)
case("add", X(4, 2), table(), alpha=0.5)
case("add", X(2, 3), nothing())
case("sub", X(4, 2), table())
case("add", fixed(ints(2, 3)), Sparse(ORDERED, ints(3), (2, 3)), alpha=3)
case("mm", tidy(), X(3, 2))
case("mm", loose(), X(3, 4))
case("mm", nothing(), X(3, 2))
case("mv", loose(), X(3))
case("matmul", loose(), X(3, 2))
case("matmul", tidy(), X(3))
case("zeros_like", tidy())

torch_function("embedding", lambda weight, i, padding_idx=None, sparse=True: F.embedding(i, weight, padding_idx, sparse=sparse))
case("embedding", X(4, 3), index([2, 0, 2]), sparse=True)
case("embedding", X(4, 3), index([1, 3, 0, 0], 2, 2), sparse=True)
case("embedding", X(4, 3), index([1, 3, 1], 3), At(1), sparse=True)
case("embedding", X(4, 3), index([], 0), sparse=True)
case("embedding", X(4, 1), index([3]), sparse=True)
torch_function("embedding_bag", lambda weight, i, offsets=None, **o: F.embedding_bag(i, weight, offsets, **o))
case("embedding_bag", X(4, 3), index([1, 3, 1, 0], 2, 2), sparse=True)
case("embedding_bag", X(4, 3), index([1, 3, 1, 0]), index([0, 3]), mode="sum", sparse=True)
case("embedding_bag", X(4, 3), index([1, 3, 1, 0], 2, 2), mode="sum", per_sample_weights=X(2, 2), sparse=True)
case("embedding_bag", X(4, 3), index([1, 3, 1, 0], 2, 2), padding_idx=At(1), sparse=True)
case("gather", X(2, 3), At(1), index([0, 0, 2, 1], 2, 2), sparse_grad=True)
case("gather", X(4), At(0), index([3, 3, 1]), sparse_grad=True)
case("gather", X(3, 2, 2), At(0), index([2, 0, 1, 1], 1, 2, 2), sparse_grad=True)
