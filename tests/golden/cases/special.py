"""Special functions, pairs of operands beyond arithmetic, tests of floats, integers' shifts and divisors."""
import math

import torch

from cases import case, family, torch_function
from operands import X, constant, ints, lit, mask, pos, prob, ties, unit

inf, nan = math.inf, math.nan
EDGES = [nan, inf, -inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -2.5, 20.5, -20.25, 100.5, 1e-9, -1e-9, 1e300, -1e300]
PAIR = [nan, inf, -inf, 0.0, -0.0, 1.0, -1.0, 0.75, -2.5, 3.0, 1e300]

family("special")


def unary(name, make=X, edges=EDGES, grad_edges=True, **grid):
    case(name, make(2, 3), **grid)
    case(name, make())
    case(name, make(3, 0))
    case(name, make(2011))
    case(name, lit(edges), grad=grad_edges)


unary("asinh")
unary("acosh", pos, edges=[nan, inf, 1.0, 1.5, 2.5, 0.5, -1.0, 1e300, 1e9])
unary("atanh", unit, edges=[nan, 0.0, -0.0, 1.0, -1.0, 0.5, 2.0, inf, 1e-9])
unary("lgamma", edges=[nan, inf, -inf, 0.0, -0.0, 1.0, 2.0, 0.5, -0.5, -3.0, 170.5, 1e300, 1e-9, -20.25], grad_edges=False)
unary("digamma", edges=[nan, inf, -inf, 0.0, -0.0, 1.0, 1.5, -0.5, -1.25, -3.0, 170.5, 1e300, 1e-9], grad_edges=False)
# torch's own trigamma is right to some nine digits.
torch_function("polygamma", lambda x, n: torch.special.digamma(x) if n == 0 else
               (-1) ** (n + 1) * math.factorial(n) * torch.special.zeta(n + 1, x))
for n in (0, 1, 2, 3, 7):
    case("polygamma", pos(2, 3), n)
case("polygamma", lit([1.25, 2.5, 11.0, 100.5, 0.01]), 1)
case("polygamma", lit([1.25, 2.5, 11.0, 100.5, 0.01]), 2)
case("polygamma", X(3, 0), 2)
case("polygamma", pos(4), 1)
case("mvlgamma", lit([2.5, 3.25, 7.0, 20.5], grid=[3, 4, 5, 6]), 3)
case("mvlgamma", lit([2.5, 3.25, 7.0, 20.5], 2, 2), 1)
case("mvlgamma", lit([1.75]), 2)
case("mvlgamma", X(0, 2), 2)
unary("erfinv", unit, edges=[nan, 0.0, -0.0, 1.0, -1.0, 0.5, -0.999999999999, 0.99999, 1e-9, 1e-300, 2.0, -inf],
      grad_edges=False)
unary("logit", prob, edges=[nan, 0.0, -0.0, 1.0, 0.25, -0.5, 1.5, 1e-9])
case("logit", lit([-1.0, 0.05, 0.1, 0.25, 0.9, 0.95, 2.0]), 0.1)
case("logit", lit([0.0, 1.0, 0.25]), eps=1e-6)
case("logit", lit([0.25, nan]), None, grad=False)
unary("sinc", edges=[nan, 0.0, -0.0, 0.5, 1.25, -2.5, 1e-9, 1e-3])
unary("i0", edges=[nan, 0.0, -0.0, 1.0, -3.5, 7.75, 8.25, -19.5, 20.5, 60.0, 700.0], grad_edges=False)
unary("deg2rad")
unary("rad2deg")
unary("positive")
unary("nan_to_num", edges=[nan, inf, -inf, 0.0, -0.0, 1e300, -2.5])
case("nan_to_num", lit([nan, inf, -inf, 1.5]), 0.5, 7, -3)
case("nan_to_num", lit([nan, inf, -inf, 1.5]), posinf=2)
case("nan_to_num", lit([nan, inf, -inf, 1.5], dtype=torch.float32))
case("nan_to_num", ints(4), 3)
for name in "signbit isposinf isneginf isreal".split():
    case(name, constant(X(2, 3)))
    case(name, lit(EDGES[1:], grad=False))  # the sign of a nan is nobody's
    case(name, ints(5))
    case(name, constant(X(0)))
    case(name, constant(X()))


def tensors(function):
    """A function of tensors alone, for which numbers become tensors of the other operand's dtype."""
    def call(a, b):
        dtype = torch.result_type(a, b)
        return function(*(v if isinstance(v, torch.Tensor) else torch.tensor(v, dtype=dtype) for v in (a, b)))
    return call


def binary(name, make=X, number=2.5, grad_edges=True, pair=PAIR):
    case(name, make(2, 3), make(2, 3))
    case(name, make(2, 1, 3), make(4, 1))
    case(name, make(3), number)
    case(name, number, make(2, 2))
    case(name, make(2, 3), make())
    case(name, make(0), make(1))
    case(name, make(2011), make(2011))
    case(name, lit(pair), lit(pair, len(pair), 1), grad=grad_edges)


FINITE = [0.0, -0.0, 1.0, -1.0, 0.75, -2.5, 3.0]
for name in "fmax fmin hypot logaddexp logaddexp2 copysign nextafter ldexp".split():
    torch_function(name, tensors(getattr(torch, name)))
# Where both are nan or infinite, or nan meets a number, torch's vectors and its single elements differ.
binary("fmax", grad_edges=False)
binary("fmin", grad_edges=False)
case("fmax", ties(3, 4), ties(3, 4))
case("fmin", ties(3, 4), ties(3, 4))
case("fmax", ints(5), ints(5))
case("fmin", ints(5), 2)
binary("hypot", grad_edges=False)
binary("logaddexp", grad_edges=False)
binary("logaddexp2", grad_edges=False)
case("logaddexp", lit([-1000.0, 0.0, 1000.0]), lit([-1000.5, 0.25, 3.0]))
binary("xlogy", pos, grad_edges=False)
case("xlogy", lit([0.0, 0.0, 2.0, -1.5]), lit([0.0, -1.0, 3.0, 0.25]))
case("xlogy", ints(3, low=1), pos(3))
binary("copysign", grad_edges=False, pair=PAIR[1:])
case("copysign", lit([1.0, -2.0, 0.0, -0.0]), -0.0)
case("copysign", ints(4), X(4))
binary("nextafter", grad_edges=False)
case("nextafter", lit([1.0, 0.0, -0.0, 5e-324, 1.7976931348623157e308]), lit([2.0, -1.0, 1.0, 0.0, inf]), grad=False)
case("nextafter", lit([1.0, 0.0, 1e-45, 3.4028234663852886e38], dtype=torch.float32, grad=False),
     lit([2.0, -1.0, 0.0, inf], dtype=torch.float32, grad=False))
binary("ldexp", pair=FINITE)
case("ldexp", X(4), ints(4))
case("ldexp", ints(3), ints(3))
torch_function("heaviside", lambda a, b: torch.heaviside(a, b if isinstance(b, torch.Tensor) else torch.tensor(b, dtype=a.dtype)))
case("heaviside", constant(X(2, 3)), constant(X(2, 3)))
case("heaviside", lit([-1.5, 0.0, -0.0, 2.0, nan, inf], grad=False), lit([0.5], grad=False))
case("heaviside", lit([-1.5, 0.0, 2.0], grad=False), 0.25)
case("heaviside", ints(4, low=-1, high=1), ints(4))
case("heaviside", constant(X(0)), constant(X(1)))
binary("float_power", pos, grad_edges=False, number=2, pair=[0.0, 1.0, 0.75, 3.0])
case("float_power", ints(3, low=1), 0.5)
case("float_power", pos(3), ints(3))
torch_function("rsub", torch.rsub)
case("rsub", X(2, 3), X(2, 3))
case("rsub", X(3), 2.5)
case("rsub", X(3), X(2, 1), alpha=2.5)
case("rsub", ints(3), ints(3), alpha=-3)
case("rsub", X(0), X(1))
case("rsub", lit([nan, inf, -0.0]), lit([1.0, inf, 0.0]))

SHIFTS = [-70, -1, 0, 1, 3, 7, 8, 31, 32, 63, 64, 200]
for name in "bitwise_left_shift bitwise_right_shift".split():
    case(name, ints(2, 3), ints(2, 3, low=0, high=5))
    case(name, lit([-5, -1, 0, 1, 77, 2**62, -(2**63)], dtype=torch.int64), lit(SHIFTS[1:11], 10, 1, dtype=torch.int64))
    for dtype in (torch.int8, torch.int16, torch.int32):
        case(name, lit([-128, -5, -1, 0, 1, 77, 127], dtype=dtype), lit([-1, 0, 1, 3, 7, 8, 31, 32, 64], 9, 1, dtype=dtype))
    case(name, lit([0, 1, 77, 128, 255], dtype=torch.uint8), lit([0, 1, 3, 7, 8, 9, 64, 200], 8, 1, dtype=torch.uint8))
    case(name, ints(4), 3)
    case(name, 300, ints(4, low=0))
    case(name, ints(0), ints(1))
for name in ("gcd", "lcm"):
    torch_function(name, tensors(getattr(torch, name)))
    case(name, ints(2, 3), ints(2, 3))
    case(name, lit([0, 0, -12, 12, 7, 2**40], dtype=torch.int64), lit([0, 8, 18, -8], 4, 1, dtype=torch.int64))
    case(name, lit([-127, 0, -12, 127], dtype=torch.int8), lit([-127, 0, 8, 3], 4, 1, dtype=torch.int8))
    case(name, lit([0, 12, 250], dtype=torch.uint8), lit([0, 8, 45], 3, 1, dtype=torch.uint8))
    case(name, ints(4), 6)
    case(name, ints(0), ints(1))

case("isclose", constant(X(2, 3)), constant(X(2, 3)))
case("isclose", lit([1.0, 1.0, nan, inf, inf, 1.0], grad=False), lit([1.000001, 1.1, nan, inf, -inf, inf], grad=False))
case("isclose", lit([nan, 1.0], grad=False), lit([nan, nan], grad=False), equal_nan=True)
case("isclose", lit([1.0, 2.0], grad=False), lit([1.4, 2.6], grad=False), 0, 0.5)
case("isclose", lit([1, 100000, 2**60], dtype=torch.int64), lit([2, 100001, 2**60 + 2**40], dtype=torch.int64))
case("isclose", constant(X(0)), constant(X(1)))
case("allclose", constant(X(2, 3)), constant(X(2, 3)))
case("allclose", lit([1.0, 2.0], grad=False), lit([1.0, 2.000001], grad=False))
case("allclose", lit([nan], grad=False), lit([nan], grad=False))
case("allclose", lit([nan], grad=False), lit([nan], grad=False), equal_nan=True)
case("allclose", ints(3), ints(3))
case("allclose", constant(X(0)), constant(X(1)))

# Forms of operators of other families.
torch_function("div", lambda a, b, rounding_mode=None: torch.div(
    a if isinstance(a, torch.Tensor) else torch.tensor(a, dtype=b.dtype), b, rounding_mode=rounding_mode))
for mode in ("floor", "trunc"):
    case("div", pos(2, 3), pos(2, 3), rounding_mode=mode)
    case("div", pos(2, 3), lit([1.5, -0.5, 0.25]), rounding_mode=mode)
    case("div", ints(6), lit([1, -2, 3, 4, -5, 7], dtype=torch.int64), rounding_mode=mode)
    case("div", lit([-1.0, 1.0, -7.5, 0.0], grad=False), lit([-8.0, -8.0, 2.0, -3.0], grad=False), rounding_mode=mode)
    case("div", ints(5), 2.5, rounding_mode=mode)
case("floor_divide", lit([-1.0, 0.0, -0.0, 1.0], grad=False), lit([-8.0, -3.0, 3.0, 8.0], grad=False))
case("round", lit([1.235, 2.5, -0.45, 15.0, 25.0]), decimals=1)
case("round", lit([1.2345, 2.5, -0.4321]), decimals=3)
case("round", lit([15.0, 25.0, -1234.5]), decimals=-1)
case("square", mask(3))
