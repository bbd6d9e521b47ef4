"""Activations beyond the first ones, and forms of these."""
import math

import torch
import torch.nn.functional as F

from cases import case, family, torch_function
from operands import X, ints, lit, pos

inf, nan = math.inf, math.nan
EDGES = [nan, inf, -inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 3.0, -3.0, 6.0, 2.75, -3.5, 20.5, -20.5, 100.5, 1e-9, 1e300]
FINITE = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 3.0, -3.0, 6.0, 2.75, -3.5, 20.5, -20.5, 100.5, 1e-9]

family("activation")
for name in ("relu6 hardtanh threshold celu selu mish softsign hardsigmoid hardswish hardshrink tanhshrink logsigmoid "
             "prelu rrelu glu gelu softshrink").split():
    torch_function(name, getattr(F, name))


# torch's own gradient has a sixth in float32
torch_function("hardsigmoid", lambda x: F.relu6(x + 3) / 6 if x.dtype == torch.float64 else F.hardsigmoid(x))


def unary(name, edges=EDGES):
    case(name, X(2, 3))
    case(name, X())
    case(name, X(3, 0))
    case(name, X(2011))
    case(name, lit(edges), grad=False)  # at nan and infinities torch's vectors and single elements differ
    case(name, lit(FINITE))


for name in "relu6 hardtanh celu selu mish softsign hardshrink tanhshrink logsigmoid".split():
    unary(name)
unary("hardswish", edges=FINITE)
unary("hardsigmoid", edges=FINITE)
case("hardtanh", X(5), -0.25, 0.5)
case("hardtanh", X(5), min_val=-0.75)
case("hardtanh", ints(6), -2.5, 3)
case("hardtanh", lit([0, 1, 5, 255], dtype=torch.uint8), -1, 3)
case("relu6", ints(6))
case("threshold", X(2, 3), 0.25, 7)
case("threshold", lit([0.5, nan, 0.6, -0.0]), 0.5, 7, grad=False)
case("threshold", X(0), 0, 1)
case("threshold", ints(6), 1.5, 2.5)
case("threshold", X(), -0.5, 0.25)
case("celu", X(5), 2.5)
case("celu", X(5), -0.5)
case("hardshrink", X(6), 0.25)
case("hardshrink", lit([0.0, -0.0, 1.0]), 0)
case("prelu", X(2, 3), X(1))
case("prelu", X(2, 3, 4), X(3))
case("prelu", X(4), X(1))
case("prelu", X(), X())
case("prelu", X(0, 3), X(3))
case("rrelu", X(2, 3))
case("rrelu", X(5), 0.25, 0.75)
case("rrelu", X(0))
case("rrelu", lit([-1.0, 0.0, 2.0]), 0.5, 0.5)
case("glu", X(2, 4))
case("glu", X(2, 4), -2 + 1)
case("glu", X(6))
case("glu", X(4, 0))
case("glu", lit([1.0, -2.0, 0.0, 50.0]))
case("gelu", X(2, 3), approximate="tanh")
case("gelu", lit([0.0, -0.0, 1.0, -1.0, 5.5, -5.5, 30.0, -30.0]), approximate="tanh")
case("gelu", X(3), approximate="none")

torch_function("feature_dropout", torch.feature_dropout)
torch_function("alpha_dropout", torch.alpha_dropout)
torch_function("feature_alpha_dropout", torch.feature_alpha_dropout)
for name in ("feature_dropout", "alpha_dropout", "feature_alpha_dropout"):
    for shape in ((2, 3), (2, 3, 4), (2, 0), (1, 2, 2, 2)):
        case(name, X(*shape), 0.5, False)
    case(name, X(2, 3), 0, True)
    case(name, X(2, 3), 1, True)
