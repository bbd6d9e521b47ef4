"""Distances and the losses that compare them with margins or distributions; ctc."""
import math

import torch
import torch.nn.functional as F

from cases import case, family, torch_function
from operands import At, Operand, X, constant, fixed, index, lit, pos, prob, ties

family("margins")
REDUCTIONS = ("mean", "sum", "none")


def signs(*shape):
    """Targets of 1 and -1; the same in the grid."""
    count = math.prod(shape)
    return fixed(lit([(1.0, -1.0, -1.0, 1.0, -1.0)[k % 5] for k in range(count)], *(shape or ()), grad=False))


for name in """cosine_similarity pairwise_distance kl_div poisson_nll_loss gaussian_nll_loss soft_margin_loss
        hinge_embedding_loss margin_ranking_loss cosine_embedding_loss triplet_margin_loss multi_margin_loss
        multilabel_margin_loss multilabel_soft_margin_loss""".split():
    torch_function(name, getattr(F, name))

case("cosine_similarity", X(2, 3), X(2, 3))
case("cosine_similarity", X(2, 3, 4), X(2, 3, 4), dim=At(0))
case("cosine_similarity", X(2, 3), X(3), dim=At(-1))
case("cosine_similarity", X(2, 1, 3), X(4, 3), dim=At(2))
case("cosine_similarity", lit([0.0, 0.0, 1e-3, 1e-3], 2, 2, grad=False), lit([1.0, 2.0, 0.0, 1.0], 2, 2, grad=False),
     eps=0.01)
case("pairwise_distance", X(3, 4), X(3, 4))
case("pairwise_distance", X(3, 4), X(3, 4), p=1.0, keepdim=True)
case("pairwise_distance", X(4), X(4), p=3.0)
case("pairwise_distance", X(2, 3, 4), X(4), p=math.inf)
case("pairwise_distance", X(3, 4), X(3, 4), eps=0.5)
torch_function("bilinear", F.bilinear)
case("bilinear", X(2, 3), X(2, 4), X(5, 3, 4), X(5))
case("bilinear", X(2, 2, 3), X(2, 2, 1), X(2, 3, 1))
case("bilinear", X(3), X(4), X(5, 3, 4), X(5))
case("bilinear", X(0, 3), X(0, 4), X(5, 3, 4), X(5))

for reduction in REDUCTIONS + ("batchmean",):
    case("kl_div", X(3, 4), prob(3, 4), reduction=reduction)
    case("kl_div", X(3, 4), X(3, 4), reduction=reduction, log_target=True)
case("kl_div", X(3), lit([0.0, 0.5, 0.0], grad=False))
case("kl_div", X(2, 0), X(2, 0), reduction="sum")
for reduction in REDUCTIONS:
    case("poisson_nll_loss", X(2, 3), pos(2, 3), reduction=reduction)
    case("poisson_nll_loss", pos(2, 3), pos(2, 3), False, reduction=reduction)
    case("poisson_nll_loss", X(5), lit([0.0, 0.5, 1.0, 2.5, 7.0], grad=False), True, True, reduction=reduction)
    case("gaussian_nll_loss", X(2, 3), X(2, 3), pos(2, 3), reduction=reduction)
    case("gaussian_nll_loss", X(2, 3), X(2, 3), pos(2), reduction=reduction)
    case("gaussian_nll_loss", X(2, 3), X(2, 3), pos(2, 1), True, reduction=reduction)
    case("soft_margin_loss", X(2, 3), signs(2, 3), reduction=reduction)
    case("hinge_embedding_loss", X(2, 3), signs(2, 3), reduction=reduction)
    case("margin_ranking_loss", X(5), X(5), signs(5), margin=0.5, reduction=reduction)
    case("cosine_embedding_loss", X(5, 3), X(5, 3), signs(5), margin=0.2, reduction=reduction)
    case("triplet_margin_loss", X(4, 3), X(4, 3), X(4, 3), reduction=reduction)
    case("multi_margin_loss", X(3, 4), index([2, 0, 3]), reduction=reduction)
    case("multilabel_margin_loss", X(2, 4), index([3, 0, -1, 1, 2, -1, -1, -1], 2, 4), reduction=reduction)
    case("multilabel_soft_margin_loss", X(2, 4), prob(2, 4), reduction=reduction)
case("gaussian_nll_loss", X(2, 3), X(2, 3), 0.7)
case("gaussian_nll_loss", X(2), X(2), lit([0.0, 1e-9]), eps=1e-3, reduction="none")
case("soft_margin_loss", lit([-800.0, 800.0, 0.0, 30.0, -30.0], grad=False), signs(5), reduction="none", grad=False)
case("hinge_embedding_loss", X(6), lit([1.0, -1.0, 0.5, 1.0, -1.0, 0.0], grad=False), margin=2.5, reduction="none")
case("margin_ranking_loss", X(2, 3), X(2, 1), signs(2, 3))
case("cosine_embedding_loss", X(4), X(4), Operand((), [-1.0]))
case("triplet_margin_loss", X(4, 3), X(4, 3), X(4, 3), swap=True, p=1.0, margin=2.0)
case("triplet_margin_loss", X(3), X(3), X(3), eps=0.1)
case("multi_margin_loss", X(3, 4), index([2, 0, 3]), p=2, margin=0.7)
case("multi_margin_loss", X(3, 4), index([2, 0, 3]), weight=constant(pos(4)), reduction="sum")
case("multi_margin_loss", X(4), index([1]))
case("multi_margin_loss", X(), index([0], 1))
case("multilabel_margin_loss", X(), Operand((), [0], torch.int64, index=True))
case("multi_margin_loss", ties(3, 4), index([2, 0, 3]), margin=2.0)
case("multilabel_margin_loss", X(4), index([1, 3, -1, 0]))
case("multilabel_margin_loss", X(3), index([-1, 0, 1]))
case("multilabel_soft_margin_loss", X(2, 4), prob(2, 4), constant(pos(4)))
case("multilabel_soft_margin_loss", X(2, 3, 4), prob(2, 3, 4), reduction="none")


for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"):
    torch_function(name, getattr(F, name))
    case(name, X(2, 3), X(3))
    case(name, X(2, 1), X(2, 3), reduction="none")
    case(name, X(2, 1, 3), X(4, 1), reduction="sum")
    if name != "smooth_l1_loss":
        for reduction in REDUCTIONS:
            case(name, X(2, 3), X(2, 3), weight=constant(pos(2, 3)), reduction=reduction)


def ctc_loss(scores, targets, inputs, lengths, blank=0, reduction="mean", zero_infinity=False):
    """torch's gradient is that by the scores, which only scores that went through log_softmax have."""
    return F.ctc_loss(scores, targets, inputs, lengths, blank, reduction, zero_infinity)


torch_function("ctc_loss", ctc_loss)


def lengths(*values):
    return fixed(lit(list(values), dtype=torch.int64))


for reduction in REDUCTIONS:
    case("ctc_loss", X(6, 2, 4), index([1, 2, 2, 3, 1, 1], 2, 3), lengths(6, 5), lengths(3, 3), reduction=reduction)
case("ctc_loss", X(6, 2, 4), index([1, 2, 2, 3, 1]), lengths(6, 5), lengths(3, 2))
case("ctc_loss", X(3, 3), index([0, 1]), lengths(3), lengths(2), At(2))
case("ctc_loss", X(2, 2, 3), index([1, 1, 2, 1, 2, 1], 2, 3), lengths(2, 2), lengths(1, 3), zero_infinity=True)
case("ctc_loss", X(2, 2, 3), index([1, 1, 2, 1, 2, 1], 2, 3), lengths(2, 2), lengths(1, 3), reduction="none",
     grad=False)
case("ctc_loss", X(4, 2, 3), index([1, 2, 1, 2], 2, 2), lengths(4, 3), lengths(0, 2), reduction="none")
