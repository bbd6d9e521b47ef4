"""Losses."""
import math

import torch.nn.functional as F

from cases import case, family, torch_function
from operands import Both, X, constant, index, lit, pos, prob, ties

family("losses")
REDUCTIONS = ("mean", "sum", "none")


def binary_cross_entropy(x, target, weight=None, reduction="mean"):
    return F.binary_cross_entropy(x, target, weight, reduction=reduction)


def with_logits(x, target, weight=None, pos_weight=None, reduction="mean"):
    return F.binary_cross_entropy_with_logits(x, target, weight, pos_weight=pos_weight, reduction=reduction)


torch_function("binary_cross_entropy", binary_cross_entropy)
torch_function("binary_cross_entropy_with_logits", with_logits)
for name in "cross_entropy nll_loss mse_loss l1_loss smooth_l1_loss huber_loss".split():
    torch_function(name, getattr(F, name))

for name in ("cross_entropy", "nll_loss"):
    for reduction in REDUCTIONS:
        case(name, X(3, 4), index([2, 0, 3]), reduction=reduction)
        case(name, X(3, 4), index([2, 0, 3]), constant(pos(4)), reduction=reduction)
        case(name, X(2, 3, 2, 2), index([0, 2, 1, 1, 2, 0, 1, 2], 2, 2, 2), reduction=reduction)
    case(name, X(4, 3), index([1, 0, 1, 2]), ignore_index=Both(1, 2))
    case(name, X(4, 3), index([1, 0, 1, 2]), constant(pos(3)), ignore_index=Both(0, 1), reduction="sum")
    case(name, X(2, 3), index([1, 1]), ignore_index=Both(1, 2), reduction="mean")
    case(name, X(2, 3), index([1, 1]), ignore_index=Both(1, 2), reduction="none")
    case(name, lit([1000.0, 0.0, -1000.0, -math.inf, 1.0, 2.0], 2, 3), index([1, 1]), reduction="none", grad=False)
    case(name, X(700, 10), index([(k * 7 + 3) % 10 for k in range(97)], 700))
case("cross_entropy", X(3, 4), index([2, 0, 3]), label_smoothing=0.1)
case("cross_entropy", X(3, 4), index([2, 0, 3]), constant(pos(4)), label_smoothing=0.3, reduction="sum")
case("cross_entropy", X(3, 4), index([2, 0, 3]), constant(pos(4)), label_smoothing=0.3)
case("cross_entropy", X(3, 4), index([2, 1, 3]), label_smoothing=0.2, ignore_index=Both(1, 2))
case("cross_entropy", X(3, 4), index([2, 1, 3]), label_smoothing=1.0, reduction="none")
case("cross_entropy", X(0, 4), index([], 0))

for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"):
    for reduction in REDUCTIONS:
        case(name, X(2, 3), X(2, 3), reduction=reduction)
    case(name, ties(6), ties(6), reduction="none")
    case(name, X(), X())
    case(name, X(0), X(0), reduction="sum")
    case(name, X(0), X(0))
    case(name, lit([math.nan, math.inf, -math.inf, 1.0]), lit([0.0, 1.0, math.inf, 1.0]), reduction="none",
         grad=False)
    case(name, X(20011), X(20011))
case("smooth_l1_loss", X(3, 4), X(3, 4), beta=0.4, reduction="none")
case("smooth_l1_loss", X(3, 4), X(3, 4), beta=2)
case("smooth_l1_loss", X(3), X(3), beta=0, reduction="none")
case("huber_loss", X(3, 4), X(3, 4), delta=0.4, reduction="none")
case("huber_loss", X(3, 4), X(3, 4), delta=2)
for reduction in REDUCTIONS:
    case("binary_cross_entropy", prob(2, 3), prob(2, 3), reduction=reduction)
    case("binary_cross_entropy", prob(2, 3), lit([0.0, 1.0, 1.0, 0.0, 1.0, 0.0], 2, 3, grad=False),
         lit([1.0, 0.5, 2.0], grad=False), reduction=reduction)
    case("binary_cross_entropy_with_logits", X(2, 3), prob(2, 3), reduction=reduction)
    case("binary_cross_entropy_with_logits", X(2, 3), prob(2, 3), lit([1.0, 0.5, 2.0], grad=False),
         reduction=reduction)
    case("binary_cross_entropy_with_logits", X(2, 3), prob(2, 3), pos_weight=lit([1.0, 0.5, 2.0], grad=False),
         reduction=reduction)
case("binary_cross_entropy", lit([0.0, 1.0, 0.0, 1.0]), lit([0.0, 1.0, 1.0, 0.0], grad=False), reduction="none")
case("binary_cross_entropy", lit([1e-300, 0.5, 1e-20]), lit([1.0, 0.25, 0.5], grad=False), reduction="none")
case("binary_cross_entropy", prob(0), prob(0), reduction="sum")
case("binary_cross_entropy_with_logits", lit([0.0, 800.0, -800.0, 40.0, -40.0]), lit([1.0, 0.0, 1.0, 0.5, 0.25]),
     reduction="none")
case("binary_cross_entropy_with_logits", lit([math.inf, -math.inf, math.nan], grad=False),
     lit([1.0, 0.0, 1.0], grad=False), reduction="none")
