"""Decompositions of matrices and what follows from them. Where a decomposition is unique up to signs alone,
the matrices are such that LAPACK's and PyTorch's agree."""
import torch

from cases import case, family, torch_function
from operands import X, fixed, lit

family("linalg")

LA = torch.linalg


def spd(*batch, n=3, scale=1.0):
    """Symmetric matrices whose eigenvalues are far above 0."""
    values = []
    count = 1
    for size in batch:
        count *= size
    for b in range(count):
        for i in range(n):
            for j in range(n):
                low, high = min(i, j), max(i, j)
                values.append(scale * (2.5 + 0.75 * i + 0.5 * b if i == j else (0.5 - 0.25 * low + 0.125 * high) * (-1) ** b))
    return lit(values, *batch, n, n)


def general(*shape):
    """Matrices whose singular values lie apart."""
    *batch, m, n = shape
    values = []
    count = 1
    for size in batch:
        count *= size
    for b in range(count):
        for i in range(m):
            for j in range(n):
                values.append(round((1.5 + i if i == j else 0) + ((i * 5 + j * 3 + b * 2) % 7 - 3) / 8, 3))
    return lit(values, *shape)


def triangular(n):
    """Upper triangular matrices; PyTorch's gradient is that of the triangle."""
    return lit([0.0 if i > j else 1.5 + i - 0.25 * j for i in range(n) for j in range(n)], n, n)


SINGULAR = [1.0, 2.0, 2.0, 4.0]
SPD = {"linalg_det": LA.det, "det": torch.det, "linalg_slogdet": LA.slogdet, "slogdet": torch.slogdet,
       "logdet": torch.logdet, "linalg_inv": LA.inv, "linalg_inv_ex": LA.inv_ex, "inverse": torch.inverse,
       "linalg_cholesky": LA.cholesky, "linalg_cholesky_ex": LA.cholesky_ex}
for name, function in SPD.items():
    torch_function(name, function)
    case(name, spd())
    case(name, spd(n=1))
    case(name, spd(2, 2, n=2))
    case(name, lit([], 2, 0, 0))
for name in ("linalg_det", "det", "linalg_slogdet", "slogdet", "linalg_inv", "linalg_inv_ex", "inverse"):
    case(name, general(3, 3))
    case(name, general(2, 4, 4))
for name in ("linalg_det", "det", "linalg_slogdet", "slogdet", "logdet"):
    case(name, lit(SINGULAR, 2, 2), grad=False)
case("logdet", lit([0.0, 1.0, 1.0, 0.0], 2, 2), grad=False)
for name in ("linalg_cholesky", "linalg_cholesky_ex"):
    case(name, spd(), upper=True)
    case(name, spd(2), upper=True)

torch_function("cholesky_inverse", torch.cholesky_inverse)
case("cholesky_inverse", spd())
case("cholesky_inverse", spd(n=1))
case("cholesky_inverse", spd(2))
case("cholesky_inverse", spd(), upper=True)
torch_function("cholesky_solve", torch.cholesky_solve)
case("cholesky_solve", X(3, 2), spd())
case("cholesky_solve", X(2, 3, 1), spd())
case("cholesky_solve", X(3, 2), spd(), upper=True)
case("cholesky_solve", X(1, 1), spd(n=1))

torch_function("linalg_solve", LA.solve)
case("linalg_solve", general(3, 3), X(3, 2))
case("linalg_solve", general(3, 3), X(3))
case("linalg_solve", general(2, 3, 3), X(2, 3))
case("linalg_solve", general(3, 3), X(2, 3, 2))
case("linalg_solve", general(3, 3), X(2, 3), left=False)
case("linalg_solve", general(2, 0, 0), X(2, 0, 3))
torch_function("linalg_solve_triangular", LA.solve_triangular)
case("linalg_solve_triangular", triangular(3), fixed(X(3, 2)), upper=True)
case("linalg_solve_triangular", general(2, 3, 3), fixed(X(3, 2)), upper=False, grad=False)
case("linalg_solve_triangular", general(3, 3), fixed(X(2, 3)), upper=True, left=False, grad=False)
case("linalg_solve_triangular", general(3, 3), fixed(X(3, 1)), upper=False, unitriangular=True, grad=False)

torch_function("linalg_qr", LA.qr)
case("linalg_qr", general(3, 3))
case("linalg_qr", general(4, 2))
case("linalg_qr", general(2, 4))
case("linalg_qr", general(2, 3, 2))
case("linalg_qr", general(4, 2), mode="complete", grad=False)
case("linalg_qr", general(0, 2))
torch_function("linalg_svd", LA.svd)
case("linalg_svd", general(3, 3), grad=False)
case("linalg_svd", general(4, 2), False)
case("linalg_svd", general(3, 4), False)
case("linalg_svd", general(2, 3, 2), False, grad=False)
case("linalg_svd", general(0, 2), grad=False)
for name, function in (("linalg_svdvals", LA.svdvals), ("linalg_pinv", LA.pinv), ("pinverse", torch.pinverse)):
    torch_function(name, function)
    case(name, general(3, 3))
    case(name, general(4, 2))
    case(name, general(2, 4))
    case(name, general(2, 3, 2))
case("linalg_svdvals", general(0, 2))
case("linalg_pinv", lit(SINGULAR, 2, 2), grad=False)
case("linalg_pinv", general(0, 2))
torch_function("linalg_eigh", LA.eigh)
torch_function("linalg_eigvalsh", LA.eigvalsh)
for name in ("linalg_eigh", "linalg_eigvalsh"):
    case(name, spd(n=2))
    case(name, spd(2, n=2), "U")
    case(name, spd(n=1))
    case(name, lit([], 2, 0, 0))
torch_function("linalg_matrix_rank", LA.matrix_rank)
case("linalg_matrix_rank", general(3, 3))
case("linalg_matrix_rank", general(2, 4, 2))
case("linalg_matrix_rank", lit(SINGULAR, 2, 2))
case("linalg_matrix_rank", general(3, 3), atol=2.0)
case("linalg_matrix_rank", general(0, 2))
