"""Pointwise operators: values at the edges of float64 and float32, broadcasting, numbers as operands."""
import math
import operator

import torch
import torch.nn.functional as F

from cases import case, family, torch_function
from operands import X, constant, ints, lit, mask, pos, prob, ties, unit

inf, nan = math.inf, math.nan
EDGES = [nan, inf, -inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 3.75, -3.75, 20.5, -20.5, 40.0,
         -40.0, 100.5, -100.5, 709.5, -709.5, 1e-9, -1e-9, 1e-300, -1e-300, 1e300, -1e300, 5e-324, 4503599627370497.5]
SINGLE = [nan, inf, -inf, 0.0, -0.0, 1.0, -1.0, 0.5, -1.5, 2.5, 20.5, -20.5, 88.0, -88.0, 1e-9, 1e-30, -1e30, 8388609.0]
PAIR = [nan, inf, -inf, 0.0, -0.0, 1.0, -1.0, 0.75, -2.5, 3.0, 1e300]
FINITE = [nan, 0.0, -0.0, 1.0, -1.0, 0.75, -2.5, 3.0, 1e300]
INTEGERS = [-7, -3, -1, 1, 2, 7, 100, 2**40, -(2**40)]

family("pointwise")


def edges(values, **options):
    return lit(values, **options)


def unary(name, make=X, grad_edges=True):
    case(name, make(2, 3))
    case(name, make())
    case(name, make(3, 0))
    case(name, make(20011))
    case(name, edges(EDGES), grad=grad_edges)
    case(name, edges(SINGLE, dtype=torch.float32, grad=False), single=True)


def tensors(function):
    """A function of tensors alone, for which numbers become tensors of the other operand's dtype."""
    def call(a, b):
        dtype = torch.result_type(a, b)
        return function(*(v if isinstance(v, torch.Tensor) else torch.tensor(v, dtype=dtype) for v in (a, b)))
    return call


def with_alpha(name, plain):
    """torch.add or torch.sub, which take a number on the right alone."""
    def call(a, b, alpha=1):
        return getattr(torch, name)(a, b, alpha=alpha) if isinstance(a, torch.Tensor) else plain(a, alpha * b)
    return call


def binary(name, make=X, number=2.5, grad_edges=True, pair=PAIR):
    case(name, make(2, 3), make(2, 3))
    case(name, make(2, 1, 3), make(4, 1))
    case(name, make(3), number)
    case(name, number, make(2, 2))
    case(name, make(2, 3), make())
    case(name, make(0), make(1))
    case(name, make(20011), make(20011))
    case(name, edges(pair), lit(pair, len(pair), 1), grad=grad_edges)
    case(name, lit(pair[:-1], dtype=torch.float32, grad=False),
         lit(pair[:-1], len(pair) - 1, 1, dtype=torch.float32, grad=False), single=True)


for name in "neg abs sign square exp exp2 expm1 sin cos tan sinh cosh tanh atan floor ceil round trunc frac".split():
    unary(name)
for name in "reciprocal sqrt rsqrt log log2 log10 log1p".split():
    unary(name, pos)
for name in "asin acos".split():
    unary(name, unit)
unary("relu", grad_edges=False)  # at nan torch hands the gradient on
case("relu", lit(EDGES[1:]))
for name in "sigmoid erf erfc silu gelu softplus leaky_relu elu".split():
    unary(name)
for name in "isnan isinf isfinite".split():
    unary(name)
for name in ("silu", "gelu", "softplus", "leaky_relu", "elu", "relu", "softshrink"):
    torch_function(name, getattr(F, name))
case("softplus", X(4), 2, 0.5)
case("softplus", lit([-30.0, 19.0, 20.0, 21.0, 50.0]))
case("softplus", X(4), 0.25)
case("leaky_relu", X(5), 0.25)
case("leaky_relu", X(5), -0.5)
case("elu", X(5), 0.7)
# The sign of a zero from below is one thing in torch's vectors and another beside them.
case("softshrink", lit([-2.0, -0.75, 0.25, 0.5, 0.75, 2.0], 2, 3))
case("softshrink", lit([-1.0, -0.26, 0.1, 0.25, 0.26, 1.0]), 0.25)
case("softshrink", lit([-0.50001, 0.50001, 0.0, math.inf, -math.inf, 1e300]))
case("softshrink", lit([-3.0, 0.0, 3.0]), 0)
case("softshrink", X(3, 0))

for name in "maximum minimum atan2 remainder fmod".split():
    torch_function(name, tensors(getattr(torch, name)))
for name in "eq ne lt le gt ge".split():
    torch_function(name, getattr(operator, name))
    binary(name)
    case(name, ties(3, 4), ties(3, 4))
    case(name, ints(5), 2)
for name, function in (("mul", operator.mul), ("div", operator.truediv)):
    torch_function(name, function)
    binary(name)
for name, function in (("add", operator.add), ("sub", operator.sub)):
    torch_function(name, with_alpha(name, function))
    binary(name)
    case(name, X(3), X(2, 1), alpha=2.5)
    case(name, ints(3), ints(3), alpha=-3)
for name in "add sub mul div floor_divide trunc_divide remainder fmod maximum minimum eq lt".split():
    case(name, lit(INTEGERS, dtype=torch.int64), lit(INTEGERS, len(INTEGERS), 1, dtype=torch.int64))
    case(name, ints(4), 3)
    case(name, ints(4), 2.5)
    case(name, ints(4, low=1, dtype=torch.int32), X(4))
torch_function("floor_divide", lambda a, b: div_tensors(a, b, "floor"))
torch_function("trunc_divide", lambda a, b: div_tensors(a, b, "trunc"))


def div_tensors(a, b, mode):
    return torch.div(a if isinstance(a, torch.Tensor) else torch.tensor(a, dtype=b.dtype), b, rounding_mode=mode)


binary("floor_divide", pos, grad_edges=False, pair=FINITE)
binary("trunc_divide", pos, grad_edges=False)
binary("remainder")
binary("fmod")
# Where an operand is nan, torch hands the whole gradient to both: nothing to hold on to.
binary("maximum", grad_edges=False)
binary("minimum", grad_edges=False)
binary("atan2")
binary("pow", pos)
for name in ("maximum", "minimum"):
    case(name, ties(3, 4), ties(3, 4))
case("pow", X(2, 3), 3)
case("pow", X(2, 3), 2)
case("pow", X(5), -1)
case("pow", pos(5), 0.5)
case("pow", X(5), 0)
case("pow", 2, X(5))
case("pow", lit([0.0, -0.0, 0.5, -2.0]), 0)
case("pow", lit([0.0, 1.0, 2.0]), lit([0.0, 0.0, 0.0]))
case("pow", lit([-2, -1, 0, 1, 3, 10], dtype=torch.int64), lit([0, 1, 2, 5, 9], 5, 1, dtype=torch.int64))

case("lerp", X(2, 3), X(2, 3), 0.3)
case("lerp", X(2, 3), X(3), prob(2, 1))
case("lerp", X(4), X(4), 0.75)
case("lerp", X(), X(), 0.5)
case("lerp", X(0), X(0), 0.5)
case("lerp", lit([1.0, 1e300, 2.0, nan]), lit([3.0, -1e300, 7.0, 1.0]), lit([0.5, 0.25, 0.5, 2.0]), grad=False)
for name, make in (("addcmul", X), ("addcdiv", pos)):
    case(name, X(2, 3), X(2, 3), make(2, 3))
    case(name, X(3), X(2, 1), make(1, 3), value=0.5)
    case(name, X(4), X(), make(4), value=-2)
    case(name, X(0), X(0), make(0))
    case(name, lit([1.0, inf, nan, -0.0]), lit([0.0, 1.0, 1.0, 0.0]), lit([0.0, -inf, 2.0, 3.0]))

torch_function("clamp_min", lambda x, low: torch.clamp(x, min=low))
torch_function("clamp_max", lambda x, high: torch.clamp(x, max=high))
for name in ("clamp_min", "clamp_max"):
    case(name, X(2, 3), 0.1)
    case(name, X(2, 3), X(3))
    case(name, ties(6), 0.25, grad=False)  # at the bound torch's gradient has changed more than once
    case(name, ties(6), ties(6))
    case(name, X(0), 0.1)
    case(name, lit([nan, inf, -inf, -0.0, 0.0]), 0.5)
    case(name, ints(5), 2)
    case(name, X(20011), 0.3)
case("clamp", X(2, 3), -0.5, 0.5)
case("clamp", X(4), min=0.1)
case("clamp", X(4), max=0.1)
case("clamp", X(4), max=X(4))
case("clamp", X(2, 3), X(3), X(2, 1))
case("clamp", ties(6), -0.5, 1.5, grad=False)
case("clamp", X(5), 0.5, -0.5)
case("clamp", lit([nan, inf, -inf, 0.0]), -1, 1)
case("clamp", ints(6), -2, 3)
case("clamp", X(0), 0, 1)

case("where", mask(2, 3), X(2, 3), X(2, 3))
case("where", mask(3), X(2, 1), 0.5)
case("where", mask(2, 1), -1.5, X(3))
case("where", mask(0), X(0), X(0))
case("where", lit([True, False, True], dtype=torch.bool), lit([1.0, nan, inf]), lit([nan, 2.0, 3.0]))
case("where", mask(20011), X(20011), X(20011))

for name in "logical_and logical_or logical_xor".split():
    case(name, mask(2, 3), mask(2, 3))
    case(name, mask(3), mask(2, 1))
    case(name, ints(6), lit([0, 1, 0, -2, 0, 3], dtype=torch.int64))
    case(name, lit([0.0, -0.0, nan, 2.0], grad=False), lit([1.0, nan, 0.0, inf], grad=False))
    case(name, mask(0), mask(0))
    case(name, constant(X(2, 3)), constant(X(2, 3)), grid=True)
case("logical_not", mask(2, 3))
case("logical_not", lit([0, 1, -2], dtype=torch.int64))
case("logical_not", lit([0.0, -0.0, nan, 2.0], grad=False))
case("logical_not", mask(0))
case("logical_not", constant(X(2, 3)), grid=True)
for name in "bitwise_and bitwise_or bitwise_xor".split():
    case(name, ints(2, 3), ints(2, 3))
    case(name, ints(3), ints(2, 1))
    case(name, mask(3), mask(3))
    case(name, ints(4), 3)
    case(name, lit(INTEGERS, dtype=torch.int64), lit(INTEGERS, len(INTEGERS), 1, dtype=torch.int64))
    case(name, lit([0, 1, 127, 255], dtype=torch.uint8), lit([85], dtype=torch.uint8))
case("bitwise_not", ints(2, 3))
case("bitwise_not", mask(3))
case("bitwise_not", lit(INTEGERS, dtype=torch.int64))
case("bitwise_not", lit([0, 1, 255], dtype=torch.uint8))
case("bitwise_not", ints(0))
case("equal", X(2, 3), X(2, 3))
case("equal", ints(2, low=1, high=2), ints(3))
case("equal", lit([1.0, 2.0]), lit([1.0, 2.0]))
case("equal", lit([nan]), lit([nan]))
case("equal", lit([0.0]), lit([-0.0]))
case("equal", X(0), X(0))
