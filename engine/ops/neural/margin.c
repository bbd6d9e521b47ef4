/* margin.c: distances, and the losses that compare them with margins or with distributions. All are
 * expressions over operators and the parts of loss.c. */
#include "engine/ops/composite_rows.h"
#include "engine/ops/element_checks.h"
#include "engine/ops/pointwise/pointwise.h"
#include "engine/ops/rule_helpers.h"

#include <string.h>

#define TD_FAMILY "margin"

/* ---- distances ---- */

static td_status run_spread(td_call *call) {
    const td_tensor *x = call->args[0].tensor, *other = call->args[1].tensor;
    int64_t sizes[TD_MAX_DIMS];
    int ndim;
    td_status status = td_broadcast(x->ndim, x->sizes, other->ndim, other->sizes, &ndim, sizes);
    return status ? status : TD_APPLY(call->out, expand, call->args[0], TD_INTS(ndim, sizes));
}

TD_OPERATOR(cosine_similarity) = {
    .schema = "(Tensor x1, Tensor x2, dim dim=1, float eps=1e-08) -> Tensor",
    .doc = "Cosine of the angle between vectors along a dim; lengths count as at least eps.",
    .shapes = "x1 (*), x2 (*) -> (*) without dim",
    .takes = "floating, promoted",
    .notes = "dim counts from 1: as in PyTorch it is the second, the vectors of a batch, where it "
             "is not given.",
    .formula = "a = spread(float_operand(x1), x2); b = spread(float_operand(x2), x1);"
               "sum(direction(a, dim, eps) * direction(b, dim, eps), dim)",
    .autocast = {[TD_CUDA] = TD_AUTOCAST_FP32},
    .flags = TD_OP_FUNCTION_ONLY,
};
TD_OPERATOR(spread) = {
    .schema = "(Tensor x, Tensor other) -> Tensor",
    .doc = "x in the shape that both broadcast to.",
    .run = run_spread,
    .flags = TD_OP_INTERNAL,
};
PART(direction, "(Tensor x, dim dim, float eps)", "x over its length along a dim.",
     "x / clamp_min(norm(x, 2, dim, keepdim=true), eps)");
TD_OPERATOR(pairwise_distance) = {
    .schema = "(Tensor x1, Tensor x2, float p=2, float eps=1e-06, bool keepdim=false) -> Tensor",
    .doc = "p-norm of x1 - x2 + eps over the last dim.",
    .shapes = "x1 (*, D), x2 (*, D) -> (*, 1) if keepdim | -> (*)",
    .takes = "floating and integers, promoted; integers count as float32",
    .formula = "norm(x1 - x2 + eps, p, -1, keepdim=keepdim)",
    .flags = TD_OP_FUNCTION_ONLY,
};

/* ---- divergences ---- */

LOSS(kl_div, "(Tensor input, Tensor target, *, str reduction=\"mean\", bool log_target=false)",
     "Kullback-Leibler divergence of log probabilities from a target of (log) probabilities.",
     "x = float_operand(input);"
     "y = if(log_target, exp(target) * (target - x), divergence(x, target));"
     "if(reduction == \"batchmean\", if(input.ndim == 0, sum(y), sum(y) / input.size(0)),"
     "   reduced(y, reduction))",
     .takes = "floating, promoted",
     .notes = "input are log probabilities. reduction \"mean\" divides by all elements; the "
              "divergence's own mean is \"batchmean\".");
ELEMENTS(divergence, "(Tensor x, Tensor target)", "target (log(target) - x), 0 log 0 being 0.",
         "where(eq(target, 0), 0, target * log(target)) - target * x",
         "x: -(g * target); target: g * (where(eq(target, 0), 0, log(target) + 1) - x)");
LOSS(poisson_nll_loss,
     "(Tensor input, Tensor target, bool log_input=true, bool full=false, *, float eps=1e-08, "
     "str reduction=\"mean\")",
     "Negative log likelihood of counts by their expectation, or by its logarithm.",
     "y = if(log_input, exp(input) - target * input, input - target * log(input + eps));"
     "reduced(if(full, y + stirling(target), y), reduction)",
     .takes = "any, promoted; integers and bool count as float32");
ELEMENTS(stirling, "(Tensor target)", "log(target!) by Stirling's formula; 0 up to 1.",
         "where(gt(target, 1), target * log(maximum(target, 1)) - target +"
         "      0.5 * log(6.283185307179586 * maximum(target, 1)), 0)",
         "target: g * where(gt(target, 1), log(maximum(target, 1)) + 0.5 / maximum(target, 1), 0)");
LOSS(gaussian_nll_loss,
     "(Tensor input, Tensor target, Tensor|number var, bool full=false, *, float eps=1e-06, "
     "str reduction=\"mean\")",
     "Negative log likelihood of a normal distribution with mean input and variance var.",
     "v = least_variance(variances(input, var), eps);"
     "y = 0.5 * (log(v) + square(float_operand(input) - target) / v);"
     "reduced(if(full, y + 0.9189385332046727, y), reduction)",
     .shapes = "input (*), target (*), var (sizes...) -> (*) if reduction == 'none' | -> (); "
               "sizes: those of input, the last of which may be 1 or missing",
     .takes = "floating, promoted");
/* The bound is a constant in the gradient, as in PyTorch: below it var still has one. */
ELEMENTS(least_variance, "(Tensor var, number eps)", "max(var, eps), whose slope is 1 everywhere.",
         "maximum(var, eps)", "var: g");

/* ---- margins ---- */

LOSS(soft_margin_loss, "(Tensor input, Tensor target, *, str reduction=\"mean\")",
     "log(1 + exp(-target input)) for targets of 1 and -1.",
     "reduced(soft_margin(loss_input(input, target), to(target, input.dtype)), reduction)",
     .shapes = "input (...), target (...) -> (...) if reduction == 'none' | -> ()",
     .takes = "floating, promoted");
ELEMENTS(soft_margin, "(Tensor x, Tensor target)", "log(1 + exp(-target x)), without overflow.",
         "relu(-(target * x)) + log1p(exp(-abs(target * x)))",
         "x: -(g * target * sigmoid(-(target * x))); target: -(g * x * sigmoid(-(target * x)))");
LOSS(hinge_embedding_loss,
     "(Tensor input, Tensor target, *, float margin=1, str reduction=\"mean\")",
     "The distance where target is 1, what it lacks of the margin where it is -1.",
     "reduced(where(target == 1, 0.0, clamp_min(margin - float_operand(input), 0)) +"
     "        where(target == -1, 0.0, input), reduction)",
     .takes = "floating, promoted");
LOSS(margin_ranking_loss,
     "(Tensor input1, Tensor input2, Tensor target, *, float margin=0, str reduction=\"mean\")",
     "max(0, margin - target (input1 - input2)): target says which should be larger.",
     "if(input1.ndim == input2.ndim and input1.ndim == target.ndim,"
     "   reduced(clamp_min(-target * (input1 - input2) + margin, 0), reduction),"
     "   error(\"inputs and target must have as many dims, got shapes %, % and %\", input1.shape,"
     "         input2.shape, target.shape))",
     .takes = "floating and integers, promoted; integers count as float32");
LOSS(cosine_embedding_loss,
     "(Tensor input1, Tensor input2, Tensor target, *, float margin=0, str reduction=\"mean\")",
     "1 - cosine where target is 1, what it exceeds the margin by where it is -1.",
     "if(target.ndim > 1, error(\"target must have at most 1 dim, got shape %\", target.shape),"
     "if(input1.ndim == target.ndim + 1 and input2.ndim == target.ndim + 1,"
     "   reduced(by_sign(target, cosine(input1, input2), margin), reduction),"
     "   error(\"inputs must have one dim more than target, got shapes %, % and %\", input1.shape,"
     "         input2.shape, target.shape)))",
     .shapes = "input1 (N?, D), input2 (N?, D), target (N?) -> (N?) if reduction == 'none' | -> ()",
     .takes = "any, promoted; integers and bool count as float32");
PART(cosine, "(Tensor x1, Tensor x2)", "Cosine over the last dim.",
     "sum(x1 / longer(x1) * (x2 / longer(x2)), -1)");
PART(longer, "(Tensor x)", "The root of 1e-12 more than the sum of squares over the last dim.",
     "hypot(norm(x * 1.0, 2, -1, keepdim=true), 1e-6)");
PART(by_sign, "(Tensor target, Tensor cosine, float margin)",
     "1 - cosine for 1, max(0, cosine - margin) for -1, else 0.",
     "where(target == 1, 1 - cosine, 0.0) +"
     "where(target == -1, clamp_min(cosine - margin, 0), 0.0)");
LOSS(triplet_margin_loss,
     "(Tensor anchor, Tensor positive, Tensor negative, *, float margin=1, float p=2, "
     "float eps=1e-06, bool swap=false, str reduction=\"mean\")",
     "max(0, distance to positive - distance to negative + margin).",
     "if(margin <= 0, error(\"margin must be positive, got %\", margin),"
     "if(anchor.ndim == positive.ndim and anchor.ndim == negative.ndim,"
     "   reduced(clamp_min(margin + pairwise_distance(anchor, positive, p, eps) -"
     "           if(swap, minimum(pairwise_distance(anchor, negative, p, eps),"
     "                            pairwise_distance(positive, negative, p, eps)),"
     "              pairwise_distance(anchor, negative, p, eps)), 0), reduction),"
     "   error(\"anchor, positive and negative must have as many dims, got shapes %, % and %\","
     "         anchor.shape, positive.shape, negative.shape)))",
     .shapes =
         "anchor (*, D), positive (*, D), negative (*, D) -> (*) if reduction == 'none' | -> ()",
     .takes = "floating and integers, promoted; integers count as float32");
LOSS(multi_margin_loss,
     "(Tensor input, class Tensor target, *, int p=1, float margin=1, Tensor? weight=nil, "
     "str reduction=\"mean\")",
     "Mean over classes of max(0, margin - score of the target + score)^p, p being 1 or 2.",
     "if(p == 1 or p == 2, if(input.ndim <= 2,"
     "   reduced(multi_margin(if(input.ndim == 0, reshape(input, {1}), input),"
     "                        reshape(target, if(input.ndim == 2, {input.size(0)}, {1})),"
     "                        p, margin, weight), reduction),"
     "   error(\"input must be (N, C) or (C), got shape %\", input.shape)),"
     "   error(\"p must be 1 or 2, got %\", p))",
     .shapes = "input (N?, C), target (N?), weight (C) -> (N?) if reduction == 'none' | -> ()",
     .takes = "floating; target integers");
PART(multi_margin, "(Tensor x, class Tensor target, int p, float margin, Tensor? weight)",
     "Loss of each line.",
     "c = class_weights(if(x.ndim == 1, squeeze(target, 0), target), weight, x, nil).weights;"
     "at = if(x.ndim == 1, target, unsqueeze(target, 1));"
     "z = beyond_margin(x, gather(x, -1, at), margin);"
     "others = scatter(z, -1, at, 0.0);"
     "to(c, x.dtype) * sum(if(p == 1, others, square(others)), -1) / x.size(x.ndim - 1)");
ELEMENTS(beyond_margin, "(Tensor x, Tensor own, number margin)",
         "What each score lacks of lying the margin below that of the target.",
         "relu(margin - own + x)",
         "x: where(gt(margin - own + x, 0), g, 0); own: where(gt(margin - own + x, 0), -g, 0)");
LOSS(multilabel_margin_loss, "(Tensor input, class Tensor target, *, str reduction=\"mean\")",
     "Margins between the scores of the classes in target, up to its first -1, and of the others.",
     "x = loss_input(input, target); y = labels_or_none(target);"
     "if(input.ndim <= 2,"
     "   reduced(if(input.ndim == 0, multilabel_margin(reshape(x, {1}), reshape(y, {1})),"
     "              multilabel_margin(x, y)), reduction),"
     "   error(\"input must be (N, C) or (C), got shape %\", input.shape))",
     .shapes = "input (N?, C), target (N?, C) -> (N?) if reduction == 'none' | -> ()",
     .takes = "floating; target integers");
PART(multilabel_margin, "(Tensor x, class Tensor target)", "Loss of each line.",
     "listed = cumsum(target < 0, -1) == 0; at = clamp_min(target, 0);"
     "chosen = scatter_add(zeros_like(target), -1, at, to(listed, target.dtype)) > 0;"
     "z = relu(1 - unsqueeze(gather(x, -1, at), -1) + unsqueeze(x, -2));"
     "counted = logical_and(unsqueeze(listed, -1), unsqueeze(chosen == 0, -2));"
     "sum(where(counted, z, 0.0), {-1, -2}) / x.size(x.ndim - 1)");
LOSS(
    multilabel_soft_margin_loss,
    "(Tensor input, Tensor target, Tensor? weight=nil, *, str reduction=\"mean\")",
    "Mean over classes (the last dim) of their binary cross entropies.",
    "y = logit_error(widened(loss_input(input, target)), target);"
    "to(reduced(sum(if(weight == nil, y, y * weight), -1) / input.size(input.ndim - 1), reduction),"
    "   input.dtype)",
    .shapes = "input (..., C), target (..., C), weight to (..., C) -> (...) if reduction == 'none' "
              "| -> ()",
    .takes = "floating, promoted");

/* ---- checks ---- */

static td_status run_float_operand(td_call *call) {
    td_status status = td_check_float((td_dtype)call->args[0].tensor->dtype);
    if (status == TD_OK)
        call->out[0] = td_retain(call->args[0].tensor);
    return status;
}
TD_OPERATOR(float_operand) = {
    .schema = "(Tensor x) -> Tensor",
    .doc = "x, which must be floating.",
    .run = run_float_operand,
    .flags = TD_OP_INTERNAL,
};

static td_refusal no_label = {
    {"lt(x, -1)", NULL}, TD_EINDEX, "a target is a class, or -1 where they end"};
static td_status run_labels_or_none(td_call *call) {
    td_tensor *target = call->args[0].tensor;
    td_status status = td_check_index(target);
    if (status == TD_OK)
        status = td_refuse(&no_label, target);
    if (status == TD_OK)
        call->out[0] = td_retain(target);
    return status;
}
TD_OPERATOR(labels_or_none) = {
    .schema = "(class Tensor target) -> Tensor",
    .doc = "target, whose elements are at least -1.",
    .run = run_labels_or_none,
    .flags = TD_OP_INTERNAL,
};

static td_refusal negative = {{"lt(x, 0)", NULL}, TD_EVALUE, "var must not be negative"};

/* Is var of the input's shape but for one dim, of which it has one element? */
static bool one_for_a_dim(const td_tensor *input, const td_tensor *var) {
    int different = 0;
    if (input->ndim != var->ndim)
        return false;
    for (int d = 0; d < var->ndim; d++) {
        if (var->sizes[d] != input->sizes[d] && var->sizes[d] != 1)
            return false;
        different += var->sizes[d] != input->sizes[d];
    }
    return different <= 1;
}

static td_status run_variances(td_call *call) {
    const td_tensor *input = call->args[0].tensor;
    td_value v = call->args[1];
    td_tensor *var = td_arg_tensor(v);
    char want[TD_SHAPE_TEXT], got[TD_SHAPE_TEXT];
    if (!var && td_arg_double(v) < 0)
        return td_fail(TD_EVALUE, "var must not be negative");
    if (!var)
        return TD_APPLY(&call->out[0], full_like, call->args[0], TD_F(td_arg_double(v)));
    td_status status = td_refuse(&negative, var);
    if (status)
        return status;
    bool line = var->ndim == input->ndim - 1 &&
                !memcmp(var->sizes, input->sizes, sizeof(int64_t) * (size_t)var->ndim);
    if (line && !one_for_a_dim(input, var))
        return TD_APPLY(&call->out[0], unsqueeze, v, TD_I(-1));
    if (!one_for_a_dim(input, var))
        return td_fail(TD_ESHAPE, "var of shape %s doesn't fit input of shape %s",
                       td_tensor_shape_text(var, got), td_tensor_shape_text(input, want));
    call->out[0] = td_retain(var);
    return TD_OK;
}
TD_OPERATOR(variances) = {
    .schema = "(Tensor input, Tensor|number var) -> Tensor",
    .doc = "Variances that broadcast to the input.",
    .run = run_variances,
    .flags = TD_OP_INTERNAL,
};
