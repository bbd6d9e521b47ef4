"""Forms of calls and edges that operators of other families took otherwise once: words, negative numbers, bounds
that are met, sizes of one."""
import torch

from cases import case, family, torch_function
from operands import At, X, constant, ints, lit, pos, prob

family("forms")

INF = float("inf")

for word, dims in (("fro", None), ("fro", [At(1)]), ("fro", [At(0), At(2)]), ("nuc", [At(0), At(1)]), ("nuc", [At(2), At(0)])):
    case("norm", X(2, 3, 4), word, dims)
    case("norm", X(2, 3, 4), word, dims, keepdim=True)
case("norm", X(2, 3), "nuc")
case("norm", X(2, 3), "fro", None, keepdim=True)

case("prod", constant(X(2, 3)), At(1), dtype=torch.bool)
case("prod", lit([1, 0, float("nan"), 2], 2, 2, grad=False), At(0), dtype=torch.bool)
case("sum", lit([0, 0, float("nan"), 2], 2, 2, grad=False), At(0), dtype=torch.bool)
case("sum", lit([], 0, grad=False), dtype=torch.bool)
case("prod", lit([], 0, grad=False), dtype=torch.bool)

torch_function("tensordot", lambda a, b, dims, more=None: torch.tensordot(a, b, (dims, more) if more else dims))
case("tensordot", X(2, 1), X(3, 2), 1)
case("tensordot", X(2, 3), X(1, 2), 1)
case("tensordot", X(1, 2, 3), X(4, 5, 3), [At(0), At(2)], [At(0), At(2)])

case("matrix_power", lit([2.0, 1.0, 0.5, 3.0], 2, 2), -1)
case("matrix_power", lit([2.0, 1.0, 0.5, 3.0, -1.0, 0.5, 0.25, 2.0], 2, 2, 2), -3)
case("matrix_power", X(0, 2, 2), -2)

torch_function("linalg_pinv", torch.linalg.pinv)
case("linalg_pinv", lit([2.0, 1.0, 1.0, 3.0], 2, 2), hermitian=True)
case("linalg_pinv", lit([2.0, 0.5, 0.5, -1.0, 1.0, 0.25, 0.25, 4.0], 2, 2, 2), hermitian=True)

torch_function("pad", torch.nn.functional.pad)
for pair in ([-4, 5], [5, -4], [-6, 7], [-1, 2]):
    case("pad", X(1, 2, 4), pair, mode="replicate")
case("pad", X(1, 1, 2, 4), [-4, 5, -2, 3], mode="replicate")

on_bounds = [0.0, 1.0, 1.5, 2.0, 3.0]
for low, high in ((1.0, 2.0), (1.0, 1.0), (2.0, 1.0)):
    case("clamp", lit(on_bounds), low, high)
    case("clamp", lit(on_bounds), lit([low]), lit([high]))
for bound in (1.0, 2.0):
    case("clamp_min", lit(on_bounds), bound)
    case("clamp_max", lit(on_bounds), bound)
    case("clamp_min", lit(on_bounds), lit([bound]))
    case("clamp_max", lit(on_bounds), lit([bound]))
    case("clamp", lit(on_bounds), None, lit([bound]))

torch_function("linear", torch.nn.functional.linear)
case("linear", X(2, 3), X(4, 3), X(1))
case("linear", X(2, 3), X(4, 3), X())
case("linear", X(2, 3), X(4, 3), X(2, 4))
case("linear", X(3), X(4, 3), X(1))

torch_function("batch_norm", torch.nn.functional.batch_norm)
case("batch_norm", constant(X(0)), None, None, training=True)

for dtype, few in ((torch.float16, 6.103515625e-05), (torch.bfloat16, 1.1754943508222875e-38)):
    largest = torch.finfo(dtype).max
    case("nextafter", lit([0, 1, 1, -1, few, few, largest, INF, -INF, 2.5, 1024], dtype=dtype, grad=False),
         lit([1, 0, 2, -2, 0, 1, INF, 0, 5, 2.5, -1024], dtype=dtype, grad=False))
    case("nextafter", lit([0, -0.0, 0], dtype=dtype, grad=False), lit([-1, 1, INF], dtype=dtype, grad=False))
    case("nextafter", pos(2).of_dtype(dtype), pos(3, 1).of_dtype(dtype))
    case("nextafter", lit([], 0, dtype=dtype, grad=False), lit([], 0, dtype=dtype, grad=False))

torch_function("split_with_sizes", lambda x, *args: list(torch.split_with_sizes(x, *args)))
case("split_with_sizes", X(5), [2, 3])
case("split_with_sizes", X(2, 3), [1, 0, 2], At(1))
case("split_with_sizes", X(3), [3])
case("split_with_sizes", constant(X(0)), [0])

case("sum_to_size", X(2, 3), [1, 3])
case("sum_to_size", X(2, 3, 2), [3, 1])
case("sum_to_size", X(2, 3), [2, 3])
case("sum_to_size", X(2, 3), [])
case("sum_to_size", ints(dtype=torch.int32), [])
case("fill", X(2, 3), 1.5)
case("fill", X(2), X())
case("fill", ints(3), 2)
case("fill", constant(X(0)), 1)
case("scalar_tensor", 2, dtype=torch.float64)
case("scalar_tensor", 2)
case("scalar_tensor", True, dtype=torch.bool)
case("scalar_tensor", -1.5, dtype=torch.float64)

for name in ("matrix_exp", "linalg_matrix_exp"):
    torch_function(name, torch.linalg.matrix_exp)
    case(name, X(2, 2), single=True)
    case(name, lit([30.0, -20.0, 4.0, -12.0, 7.0, 9.0, 0.5, 1.0, -3.0], 3, 3))
    case(name, X(2, 3, 3))
    case(name, lit([0.0, 1.0, 0.0, 0.0], 2, 2))
    case(name, constant(X(0, 2, 2)))
torch_function("linalg_diagonal", torch.linalg.diagonal)
case("linalg_diagonal", X(2, 3))
case("linalg_diagonal", X(2, 3, 2), offset=1, dim1=At(0), dim2=At(1))
case("linalg_diagonal", X(2, 2), offset=-1)
case("linalg_diagonal", constant(X(0, 2, 2)))
torch_function("linalg_vander", torch.linalg.vander)
case("linalg_vander", X(3))
case("linalg_vander", X(2, 2), N=3)
case("linalg_vander", X(), N=3)
case("linalg_vander", ints(3), N=4)
case("linalg_vander", constant(X(0, 2)))

special = ("i0e", "i1", "i1e", "erfcx", "log_ndtr", "entr")
for name in special:
    torch_function(name, getattr(torch.special, name))
    case(name, pos(2, 3) if name == "entr" else X(2, 3))
    case(name, lit([0.0, 1e-10, 0.5, 1.0, 2.0, 4.9, 5.0, 8.0, 20.0, 20.5, 26.0]), single=name not in ("entr", "i1"))
    case(name, lit([float("nan"), 0.0] if name == "i1" else [INF, float("nan"), 1000.0], grad=False))
    case(name, lit([-1e-10, -0.5, -1.0, -2.0, -4.9, -5.1, -8.0, -20.5, -26.0, -1000.0 if name != "i1" else -30.0], grad=False))
    case(name, constant(X(0)))
torch_function("ndtr", torch.special.ndtr)
case("ndtr", X(2, 3))
case("ndtr", lit([0.0, 1.0, -1.0, 3.0, -3.0]))
case("ndtr", lit([INF, -INF, float("nan"), 40.0], grad=False))
case("ndtr", constant(X(0)))
torch_function("ndtri", torch.special.ndtri)
case("ndtri", prob(2, 3))
case("ndtri", lit([1e-300, 1e-100, 1e-20, 1e-5, 0.1, 0.5, 0.75, 0.99, 1 - 1e-10], grad=False))
case("ndtri", lit([0.0, 1.0, -0.1, 1.1, float("nan")], grad=False))
case("ndtri", constant(prob(0)))
torch_function("xlog1py", torch.special.xlog1py)
case("xlog1py", X(2, 3), pos(2, 3))
case("xlog1py", X(2), 0.5)
case("xlog1py", lit([0.0, 0.0, 0.0, 1.0]), lit([-1.0, -2.0, float("nan"), -1.0], grad=False))
case("xlog1py", constant(X(0)), constant(X(1)))
torch_function("zeta", torch.special.zeta)
case("zeta", constant(pos(2, 3)), pos(2, 3))
case("zeta", 2.5, lit([0.5, 1.0, 3.0, 20.0]))
case("zeta", lit([1.0, 0.5, 2.0, 3.0], grad=False), lit([2.0, 2.0, -1.0, INF], grad=False))
case("zeta", constant(X(0)), constant(X(1)))
for name in ("igamma", "igammac"):
    case(name, constant(pos(2, 3)), pos(2, 3))
    case(name, lit([0.001, 0.3, 1.0, 2.5, 10.0, 19.0, 3.0], grad=False), lit([0.5, 1.0, 0.25, 9.0, 12.0, 1.0, 0.001]))
    case(name, lit([0.0, 0.0, 1.0, 2.0, INF, 1.0, -1.0, 1.0, float("nan")], grad=False),
         lit([0.0, 1.0, 0.0, INF, 1.0, -1.0, 1.0, float("nan"), 1.0], grad=False))
    case(name, constant(pos(0)), constant(pos(1)))

# Draws that leave no choice: their gradients are 0.
case("bernoulli", lit([0.0, 1.0, 1.0, 0.0]))
case("bernoulli", lit([1.0, 1.0, 0.0, 1.0], 2, 2))
case("normal", X(2, 3), 0.0)
case("normal", X(2, 1), lit([0.0, 0.0, 0.0]))
case("poisson", lit([0.0, 0.0]))
case("poisson", lit([0.0], 1, 1))

case("trapz", X(2, 3))
case("trapz", X(2, 3), X(3))
case("trapz", X(3, 2), dx=0.5, dim=At(0))
case("trapz", X(1))
