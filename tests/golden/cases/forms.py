"""Forms of calls and edges that operators of other families took otherwise once: words, negative numbers, bounds
that are met, sizes of one."""
import torch

from cases import case, family, torch_function
from operands import At, X, constant, lit, pos

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
