/* loss.c: softmax and the losses, each a row: schema, doc, rule, kernel or composition, gradient.
 *
 * Losses element by element are formulas, then reduced; cross entropy with class targets is fused,
 * other forms of it are composed of parts, internal operators. Knows shapes and dtypes; rules make
 * the plans that devices carry out.
 */
#include "engine/ops/composite_rows.h"
#include "engine/ops/element_checks.h"
#include "engine/ops/plan/plan.h"
#include "engine/ops/rule_helpers.h"

#include <string.h>

#define TD_FAMILY "loss"

/* ---- rules ---- */

/* The dim of the classes in a tensor of scores: (C), (N, C) or (N, C, d1, ...). */
static int class_dim(const td_tensor *x) {
    return x->ndim > 1 ? 1 : 0;
}

/* (x, dim, dtype), or for the gradient (y, g, dim). */
static td_status plan_softmax(const td_call *call, td_meta *out, bool log) {
    const td_value *a = call->args;
    const td_tensor *x = a[0].tensor, *g = td_arg_tensor(a[1]);
    td_softmax_plan *p = TD_PLAN(call, td_softmax_plan);
    *p = (td_softmax_plan){.log = log};
    td_meta_like(out, x, a[2].kind == TD_KIND_DTYPE ? a[2].dtype : (td_dtype)x->dtype);
    td_status status = td_wrap_dim(a[g ? 2 : 1].i, x->ndim, &p->dim);
    if (status == TD_OK && g)
        status = td_check_same_shape(g, "gradient", x, "result");
    return status ? status : td_check_float(out->dtype);
}
TD_RULE(rule_softmax, plan_softmax, false)
TD_RULE(rule_log_softmax, plan_softmax, true)

static td_status read_reduction(const char *text, td_loss_reduction *reduction) {
    static const char *const names[] = {
        [TD_LOSS_NONE] = "none", [TD_LOSS_SUM] = "sum", [TD_LOSS_MEAN] = "mean"};
    for (int k = 0; k < 3; k++) {
        *reduction = (td_loss_reduction)k;
        if (!strcmp(text, names[k]))
            return TD_OK;
    }
    return td_fail(TD_EVALUE, "reduction is mean, sum or none, got %s", text);
}

static bool has_shape(const td_tensor *x, int n, const int64_t *sizes) {
    return x->ndim == n && !memcmp(x->sizes, sizes, sizeof(int64_t) * (size_t)n);
}

/* Scores (C), (N, C) or (N, C, d1, ...) and classes of that shape without C. */
static td_status check_classes(const td_tensor *x, const td_tensor *target) {
    int64_t sizes[TD_MAX_DIMS];
    char x_shape[TD_SHAPE_TEXT], want[TD_SHAPE_TEXT], got[TD_SHAPE_TEXT];
    int n = 0;
    if (!td_dtype_is_int(target->dtype))
        return td_fail(TD_EDTYPE,
                       "targets that are classes must be integers, got %s (target:long() converts)",
                       td_dtype_name(target->dtype));
    if (x->ndim == 0)
        return td_fail(TD_ESHAPE, "x has no dim of classes: its shape is ()");
    for (int d = 0; d < x->ndim; d++)
        if (d != class_dim(x))
            sizes[n++] = x->sizes[d];
    if (has_shape(target, n, sizes))
        return TD_OK;
    int64_t numel = 1;
    for (int d = 0; d < n; d++)
        numel *= sizes[d];
    bool one_hot = td_tensor_same_shape(x, target);
    bool one_more = target->ndim > n && target->numel == numel;
    return td_fail(TD_ESHAPE, "target of shape %s doesn't fit x of shape %s: expected %s%s",
                   td_tensor_shape_text(target, got), td_tensor_shape_text(x, x_shape),
                   td_shape_text(n, sizes, want, sizeof want),
                   one_hot    ? ", a class each: one-hot targets are target:float(), or classes by "
                                "target:argmax(dim)"
                   : one_more ? ": target:squeeze()"
                              : "");
}

static td_status check_weight(const td_tensor *weight, int64_t classes) {
    char shape[TD_SHAPE_TEXT];
    if (weight->ndim == 1 && weight->sizes[0] == classes)
        return TD_OK;
    return td_fail(TD_ESHAPE, "weight of shape %s, expected one for each of %lld classes",
                   td_tensor_shape_text(weight, shape), (long long)classes);
}

static td_status rule_class_weights(const td_call *call, td_meta *out) {
    const td_value *a = call->args;
    const td_tensor *target = a[0].tensor, *weight = td_arg_tensor(a[1]), *x = a[2].tensor;
    td_class_weights_plan *p = TD_PLAN(call, td_class_weights_plan);
    *p = (td_class_weights_plan){.nclasses = x->ndim ? x->sizes[class_dim(x)] : 0,
                                 .ignored = td_is_nil(a[3]) ? INT64_MIN : a[3].i,
                                 .from_one = a[0].from_one};
    td_status status = td_check_float((td_dtype)x->dtype);
    if (status == TD_OK)
        status = check_classes(x, target);
    if (status == TD_OK && weight)
        status = check_weight(weight, p->nclasses);
    td_meta_like(&out[0], target, td_dtype_wide((td_dtype)x->dtype));
    td_meta_like(&out[1], target, TD_I64);
    return status;
}

static td_status rule_cross_entropy_classes(const td_call *call, td_meta *out) {
    const td_tensor *x = call->args[0].tensor, *classes = call->args[1].tensor;
    td_cross_entropy_plan *p = TD_PLAN(call, td_cross_entropy_plan);
    *p = (td_cross_entropy_plan){.dim = class_dim(x)};
    td_meta_like(&out[0], classes, (td_dtype)x->dtype);
    td_meta_like(&out[1], classes, td_dtype_wide((td_dtype)x->dtype));
    out[2].dtype = out[1].dtype;
    out[2].ndim = 0;
    td_status status = read_reduction(call->args[3].string, &p->reduction);
    if (p->reduction != TD_LOSS_NONE)
        out[0].ndim = 0;
    return status;
}

static td_status rule_cross_entropy_backward(const td_call *call, td_meta *out) {
    const td_tensor *x = call->args[1].tensor;
    td_cross_entropy_backward_plan *p = TD_PLAN(call, td_cross_entropy_backward_plan);
    *p = (td_cross_entropy_backward_plan){.dim = class_dim(x)};
    td_meta_like(out, x, (td_dtype)x->dtype);
    return read_reduction(call->args[6].string, &p->reduction);
}

static td_status rule_nll_classes(const td_call *call, td_meta *out) {
    const td_tensor *x = call->args[0].tensor, *classes = call->args[1].tensor;
    td_nll_plan *p = TD_PLAN(call, td_nll_plan);
    *p = (td_nll_plan){.dim = class_dim(x)};
    td_meta_like(&out[0], classes, (td_dtype)x->dtype);
    out[1].dtype = td_dtype_wide((td_dtype)x->dtype);
    out[1].ndim = 0;
    td_status status = read_reduction(call->args[3].string, &p->reduction);
    if (p->reduction != TD_LOSS_NONE)
        out[0].ndim = 0;
    return status;
}

static td_status rule_nll_backward(const td_call *call, td_meta *out) {
    const td_value *a = call->args;
    td_nll_backward_plan *p = TD_PLAN(call, td_nll_backward_plan);
    *p = (td_nll_backward_plan){.dim = a[5].n > 1};
    td_meta_set(out, (td_dtype)a[0].tensor->dtype, a[5].n, a[5].ints);
    return read_reduction(a[4].string, &p->reduction);
}

/* ---- kernels ---- */

TD_KERNEL(kernel_softmax, softmax, td_softmax_plan, 1, 2)
TD_KERNEL(kernel_class_weights, class_weights, td_class_weights_plan, 2, 2)
TD_KERNEL(kernel_cross_entropy, cross_entropy, td_cross_entropy_plan, 3, 3)
TD_KERNEL(kernel_cross_entropy_backward, cross_entropy_backward, td_cross_entropy_backward_plan, 1,
          6)

TD_KERNEL(kernel_nll, nll, td_nll_plan, 2, 3)
TD_KERNEL(kernel_nll_backward, nll_backward, td_nll_backward_plan, 1, 4)

/* ---- parts of losses ---- */

/* How soft_cross_entropy calls its target; classes that are floats come here too. */
static const char PROBABILITIES[] = "a target of probabilities";

static td_status run_loss_input(td_call *call) {
    td_tensor *x = call->args[0].tensor;
    const td_tensor *target = call->args[1].tensor;
    char x_shape[TD_SHAPE_TEXT], got[TD_SHAPE_TEXT];
    td_status status = td_check_float((td_dtype)x->dtype);
    if (status == TD_OK && target->ndim < x->ndim && !strcmp(call->args[2].string, PROBABILITIES))
        status = td_fail(TD_ESHAPE,
                         "a floating target holds probabilities, of x's shape %s, got shape %s: "
                         "classes are integers (target:long())",
                         td_tensor_shape_text(x, x_shape), td_tensor_shape_text(target, got));
    if (status == TD_OK)
        status = td_check_same_shape(x, "x", target, call->args[2].string);
    if (status == TD_OK)
        call->out[0] = td_retain(x);
    return status;
}

static td_refusal no_probability = {{"lt(x, 0) + gt(x, 1)", NULL},
                                    TD_EVALUE,
                                    "x must lie between 0 and 1 (scores go to "
                                    "binary_cross_entropy_with_logits)"};

static td_status run_probabilities(td_call *call) {
    td_tensor *x = call->args[0].tensor;
    td_status status = td_refuse(&no_probability, x);
    if (status == TD_OK)
        call->out[0] = td_retain(x);
    return status;
}

static td_status run_class_row(td_call *call) {
    const td_tensor *weight = call->args[0].tensor, *x = call->args[1].tensor;
    int64_t sizes[TD_MAX_DIMS], classes = x->ndim ? x->sizes[class_dim(x)] : 0;
    td_status status = check_weight(weight, classes);
    if (status)
        return status;
    for (int d = 0; d < x->ndim; d++)
        sizes[d] = d == class_dim(x) ? classes : 1;
    return TD_APPLY(&call->out[0], reshape, call->args[0], TD_INTS(x->ndim, sizes));
}

/* ---- the table ---- */

#define CLASS_DIM "dim = if(x.ndim > 1, 1, 0); "

TD_OPERATOR(softmax) = {
    .schema = "(Tensor x, dim dim, *, dtype? dtype=nil) -> Tensor",
    .doc = "exp(x) over its sum along a dim.",
    .shapes = "x (...) -> (...)",
    .takes = "floating; any with dtype",
    .notes = "Where all elements are -inf the result is nan.",
    .rule = rule_softmax,
    .kernel = kernel_softmax,
    .dtypes = TD_DTYPES_ALL,
    .gradient = "x: softmax_backward(out, g, dim)",
    .autocast = {[TD_CUDA] = TD_AUTOCAST_FP32_RESULT},
    .flags = TD_OP_OUT | TD_OP_OUT_EXACT,
};
TD_OPERATOR(log_softmax) = {
    .schema = "(Tensor x, dim dim, *, dtype? dtype=nil) -> Tensor",
    .doc = "Logarithm of softmax along a dim, without overflow.",
    .shapes = "x (...) -> (...)",
    .takes = "floating; any with dtype",
    .notes = "Where all elements are -inf the result is nan.",
    .rule = rule_log_softmax,
    .kernel = kernel_softmax,
    .dtypes = TD_DTYPES_ALL,
    .gradient = "x: log_softmax_backward(out, g, dim)",
    .autocast = {[TD_CUDA] = TD_AUTOCAST_FP32_RESULT},
    .flags = TD_OP_OUT | TD_OP_OUT_EXACT,
};
TD_OPERATOR(softmax_backward) = {
    .schema = "(Tensor y, Tensor gy, dim dim) -> Tensor",
    .doc = "Gradient of softmax from that of its result y.",
    .rule = rule_softmax,
    .kernel = kernel_softmax,
    .dtypes = TD_DTYPES_FLOATS,
    .gradient = "gy: softmax_backward(y, g, dim);"
                "y: g * (gy - sum(gy * y, dim, keepdim=true)) - gy * sum(g * y, dim, keepdim=true)",
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(log_softmax_backward) = {
    .schema = "(Tensor y, Tensor gy, dim dim) -> Tensor",
    .doc = "Gradient of log_softmax from that of its result y.",
    .rule = rule_log_softmax,
    .kernel = kernel_softmax,
    .dtypes = TD_DTYPES_FLOATS,
    .gradient = "p = g * exp(y);"
                "gy: g - sum(p, dim, keepdim=true); y: -p * sum(gy, dim, keepdim=true)",
    .flags = TD_OP_INTERNAL,
};

/* over classes */
LOSS(cross_entropy,
     "(Tensor x, class Tensor target, Tensor? weight=nil, *, "
     "index ignore_index=-100, str reduction=\"mean\", float label_smoothing=0)",
     "Cross entropy of scores x (N, C, ...) with classes (N, ...) or probabilities of x's "
     "shape.",
     "if(label_smoothing >= 0 and label_smoothing <= 1,"
     "   if(target.floating,"
     "      if(ignore_index < 0,"
     "         soft_cross_entropy(x, target, weight, reduction, label_smoothing),"
     "         error(\"ignore_index is for class targets, these are probabilities\")),"
     "   if(label_smoothing > 0,"
     "      smoothed_cross_entropy(x, target, weight, ignore_index, reduction, label_smoothing),"
     "      fused_cross_entropy(x, target, weight, ignore_index, reduction))),"
     "   error(\"label_smoothing lies between 0 and 1, got %\", label_smoothing))",
     .shapes =
         "x (N, C, ...), target (N, ...), weight (C) -> (N, ...) if reduction == 'none' | -> () | "
         "x (C), target (), weight (C) -> () | x (N, C, ...), target (N, C, ...), weight (C) -> "
         "(N, ...) if reduction == 'none' | -> () | x (C), target (C), weight (C) -> ()",
     .takes = "floating; target integers, or floating for probabilities",
     .notes = "Classes from 1 to C. Those that are ignore_index count neither in the sum nor in "
              "the mean, which is over the weights of the others: of none it is nan. "
              "label_smoothing is shared out among all classes. One-hot integers are an error: "
              "target:float() makes them probabilities.");
PART(soft_cross_entropy,
     "(Tensor x, Tensor target, Tensor? weight, str reduction, float label_smoothing)",
     "The same for targets that are probabilities. The mean is over lines, whatever their weights.",
     CLASS_DIM "p = if(label_smoothing > 0,"
               "       target * (1 - label_smoothing) + label_smoothing / x.size(dim), target);"
               "y = p * log_softmax(loss_input(x, target, \"a target of probabilities\"), dim);"
               "reduced(-sum(if(weight == nil, y, y * class_row(weight, x)), dim), reduction)");
PART(smoothed_cross_entropy,
     "(Tensor x, class Tensor target, Tensor? weight, index ignore_index, str reduction, "
     "float label_smoothing)",
     "The same against classes and, in part, all classes alike.",
     CLASS_DIM "c = class_weights(target, weight, x, ignore_index); logs = log_softmax(x, dim);"
               "uniform = -sum(if(weight == nil, logs, logs * class_row(weight, x)), dim);"
               "kept = where(target ~= ignore_index, uniform, 0);"
               "to(weighted(picked(logs, c.classes, c.weights) * (1 - label_smoothing) +"
               "         kept * (label_smoothing / x.size(dim)), c.weights, reduction), x.dtype)");
PART(fused_cross_entropy,
     "(Tensor x, class Tensor target, Tensor? weight, index ignore_index, str reduction)",
     "The same against classes alone.",
     "c = class_weights(target, weight, x, ignore_index);"
     "cross_entropy_classes(x, c.classes, c.weights, reduction).loss");
LOSS(nll_loss,
     "(Tensor x, class Tensor target, Tensor? weight=nil, *, "
     "index ignore_index=-100, str reduction=\"mean\")",
     "Negative log likelihood: minus the log probabilities x (N, C, ...) of the target classes.",
     "c = class_weights(target, weight, x, ignore_index);"
     "nll_classes(x, c.classes, c.weights, reduction).loss",
     .shapes = "x (N, C, ...), target (N, ...), weight (C) -> (N, ...) if reduction == 'none' | -> "
               "() | x (C), target (), weight (C) -> ()",
     .takes = "floating; target integers",
     .notes = "x are log probabilities, as log_softmax gives them. Classes from 1 to C; those that "
              "are ignore_index don't count.");
PART(picked, "(Tensor x, index Tensor classes, Tensor weights)",
     "Minus weight times log probability x of each line's class, and not 0 * inf.",
     CLASS_DIM "lost(squeeze(gather(x, dim, unsqueeze(classes, dim)), dim), weights)");
ELEMENTS(lost, "(Tensor y, Tensor weights)", "-(y * weights), and 0 for a weight of 0.",
         "where(eq(weights, 0), 0, -(y * weights))",
         "y: where(eq(weights, 0), 0, -(g * weights));"
         "weights: where(eq(weights, 0), 0, -(g * y))");
PART(weighted, "(Tensor losses, Tensor weights, str reduction)",
     "Losses of lines reduced; the mean is over their weights.",
     "if(reduction == \"mean\", sum(losses) / sum(weights), reduced(losses, reduction))");
PART(weighted_errors, "(Tensor losses, Tensor? weight, Tensor x, str reduction)",
     "Losses of elements, each with a weight where there are weights, of x's shape.",
     "if(weight == nil, reduced(losses, reduction),"
     "   weighted(losses * loss_input(weight, x, \"input\"), weight, reduction))");
PART(reduced, "(Tensor losses, str reduction)", "Losses as `reduction` says.",
     "if(reduction == \"mean\", mean(losses), if(reduction == \"sum\", sum(losses),"
     "if(reduction == \"none\", losses,"
     "   error(\"reduction is mean, sum or none, got %\", reduction))))");
TD_OPERATOR(class_row) = {
    .schema = "(Tensor weight, Tensor x) -> Tensor",
    .doc = "The weight of each class, shaped to broadcast to scores x.",
    .run = run_class_row,
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(loss_input) = {
    .schema = "(Tensor x, Tensor target, str name=\"target\") -> Tensor",
    .doc = "x, which must be floating and have the target's shape.",
    .run = run_loss_input,
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(probabilities) = {
    .schema = "(Tensor x) -> Tensor",
    .doc = "x, which must lie between 0 and 1.",
    .run = run_probabilities,
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(class_weights) = {
    .schema = "(class Tensor target, Tensor? weight, Tensor x, index? ignore_index) -> "
              "(Tensor weights, index Tensor classes)",
    .doc = "Checks the target classes of scores x; the weight of each (0: ignored) and the classes "
           "as int64.",
    .rule = rule_class_weights,
    .kernel = kernel_class_weights,
    .dtypes = TD_DTYPES_ALL,
    .flags = TD_OP_INTERNAL | TD_OP_NONDIFF | TD_OP_ANY_BASE,
};
TD_OPERATOR(cross_entropy_classes) = {
    .schema = "(Tensor x, class Tensor classes, Tensor weights, "
              "str reduction) -> (Tensor loss, Tensor lse, Tensor total)",
    .doc =
        "Cross entropy with what class_weights gives; log-sum-exp and total weight for backward.",
    .rule = rule_cross_entropy_classes,
    .kernel = kernel_cross_entropy,
    .dtypes = TD_DTYPES_FLOATS,
    .gradient = "x: cross_entropy_backward(g.loss, x, classes, weights, lse, total, reduction)",
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(cross_entropy_backward) = {
    .schema = "(Tensor gy, Tensor x, class Tensor classes, Tensor weights, "
              "Tensor lse, Tensor total, str reduction) -> Tensor",
    .doc = "Gradient of cross_entropy_classes by x.",
    .rule = rule_cross_entropy_backward,
    .kernel = kernel_cross_entropy_backward,
    .dtypes = TD_DTYPES_FLOATS,
    .gradient = CLASS_DIM
    "unit = ones_like(gy);"
    "scale = gy * if(reduction == \"mean\", weights / total, weights);"
    "gy: sum(g * cross_entropy_backward(unit, x, classes, weights, lse, total, reduction),"
    "        if(reduction == \"none\", dim, nil));"
    "x: softmax_backward(softmax(x, dim), g * unsqueeze(scale, dim), dim)",
    .flags = TD_OP_INTERNAL,
};

TD_OPERATOR(nll_classes) = {
    .schema = "(Tensor x, class Tensor classes, Tensor weights, "
              "str reduction) -> (Tensor loss, Tensor total)",
    .doc = "Negative log likelihood with what class_weights gives; total weight for backward.",
    .rule = rule_nll_classes,
    .kernel = kernel_nll,
    .dtypes = TD_DTYPES_FLOATS,
    .gradient = "x: nll_backward(g.loss, classes, weights, total, reduction, x.shape)",
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(nll_backward) = {
    .schema = "(Tensor gy, class Tensor classes, Tensor weights, Tensor total, str reduction, "
              "int[] size) -> Tensor",
    .doc = "Gradient of nll_classes by x of this size.",
    .rule = rule_nll_backward,
    .kernel = kernel_nll_backward,
    .dtypes = TD_DTYPES_FLOATS,
    .gradient = "gy: nll_classes(g, classes, weights, reduction).loss",
    .flags = TD_OP_INTERNAL,
};

/* element by element */
LOSS_AS(TD_OP_ALIKE, mse_loss,
        "(Tensor x, Tensor target, *, str reduction=\"mean\", Tensor? weight=nil)",
        "Squared error between x and target, which broadcast.",
        "weighted_errors(squared_error(float_operand(x), target), weight, x, reduction)",
        .shapes = "x (*), target (*), weight (whole...) -> (*) if reduction == 'none' | -> (); "
                  "whole: the sizes that x and target broadcast to",
        .takes = "floating, promoted");
LOSS_AS(TD_OP_ALIKE, l1_loss,
        "(Tensor x, Tensor target, *, str reduction=\"mean\", Tensor? weight=nil)",
        "Absolute error between x and target, which broadcast.",
        "weighted_errors(absolute_error(float_operand(x), target), weight, x, reduction)",
        .shapes = "x (*), target (*), weight (whole...) -> (*) if reduction == 'none' | -> (); "
                  "whole: the sizes that x and target broadcast to",
        .takes = "floating, promoted");
LOSS_AS(TD_OP_ALIKE, smooth_l1_loss,
        "(Tensor x, Tensor target, *, str reduction=\"mean\", float beta=1)",
        "Absolute error, but squared (over 2 beta) where it is under beta.",
        "if(beta > 0, reduced(smooth_error(float_operand(x), target, beta), reduction),"
        "if(beta == 0, reduced(absolute_error(float_operand(x), target), reduction),"
        "   error(\"beta must not be negative, got %\", beta)))",
        .takes = "floating, promoted");
LOSS_AS(
    TD_OP_ALIKE, huber_loss,
    "(Tensor x, Tensor target, *, str reduction=\"mean\", float delta=1, Tensor? weight=nil)",
    "Half the squared error, but linear where the error is over delta.",
    "y = huber_error(float_operand(x), target, delta);"
    "if(delta > 0, reduced(if(weight == nil, y, y * loss_input(weight, x, \"input\")), reduction),"
    "   error(\"delta must be positive, got %\", delta))",
    .shapes = "x (*), target (*), weight (whole...) -> (*) if reduction == 'none' | -> (); whole: "
              "the sizes that x and target broadcast to",
    .takes = "floating, promoted");
TD_OPERATOR(binary_cross_entropy) = {
    .schema = "(Tensor x, Tensor target, Tensor? weight=nil, *, "
              "str reduction=\"mean\") -> Tensor",
    .doc = "Cross entropy of probabilities x with targets between 0 and 1.",
    .shapes = "x (...), target (...), weight to (...) -> (...) if reduction == 'none' | -> ()",
    .takes = "floating, promoted",
    .notes = "x outside of 0 to 1 is an error: scores go to binary_cross_entropy_with_logits. "
             "Shapes that differ are an error.",
    .formula = "y = probability_error(probabilities(loss_input(x, target)), target);"
               "reduced(if(weight == nil, y, y * weight), reduction)",
    .autocast = {[TD_CPU] = TD_AUTOCAST_FP32, [TD_CUDA] = TD_AUTOCAST_BANNED},
    .flags = TD_OP_FUNCTION_ONLY,
};
LOSS(binary_cross_entropy_with_logits,
     "(Tensor x, Tensor target, Tensor? weight=nil, *, "
     "Tensor? pos_weight=nil, str reduction=\"mean\")",
     "Cross entropy of sigmoid(x) with targets between 0 and 1, without overflow.",
     "y = if(pos_weight == nil, logit_error(loss_input(x, target), target),"
     "       weighted_logit_error(loss_input(x, target), target, pos_weight));"
     "reduced(if(weight == nil, y, y * weight), reduction)",
     .shapes = "x (...), target (...), weight to (...), pos_weight to (...) -> (...) if reduction "
               "== 'none' | -> ()",
     .takes = "floating, promoted",
     .notes = "x are scores, of which sigmoid is taken. Shapes that differ are an error.");
ELEMENTS(squared_error, "(Tensor x, Tensor target)", "(x - target)^2.", "square(x - target)",
         "x: g * 2 * (x - target); target: g * 2 * (target - x)");
ELEMENTS(absolute_error, "(Tensor x, Tensor target)", "|x - target|.", "abs(x - target)",
         "x: g * sign(x - target); target: g * sign(target - x)");
ELEMENTS(smooth_error, "(Tensor x, Tensor target, number beta)", "Smooth L1 of each element.",
         "minimum(abs(x - target), beta) *"
         "  ((abs(x - target) - 0.5 * minimum(abs(x - target), beta)) / beta)",
         "x: g * where(lt(abs(x - target), beta), (x - target) / beta, sign(x - target));"
         "target: g * where(lt(abs(x - target), beta), (target - x) / beta, sign(target - x))");
ELEMENTS(huber_error, "(Tensor x, Tensor target, number delta)", "Huber's loss of each element.",
         "minimum(abs(x - target), delta) *"
         "  (abs(x - target) - 0.5 * minimum(abs(x - target), delta))",
         "x: g * where(lt(abs(x - target), delta), x - target, delta * sign(x - target));"
         "target: g * where(lt(abs(x - target), delta), target - x, delta * sign(target - x))");
ELEMENTS(probability_error, "(Tensor x, Tensor target)",
         "Binary cross entropy of each element; logarithms are at least -100.",
         "-(target * maximum(log(x), -100) + (1 - target) * maximum(log1p(-x), -100))",
         "x: g * (x - target) / maximum(x * (1 - x), 1e-12);"
         "target: g * (maximum(log1p(-x), -100) - maximum(log(x), -100))");
ELEMENTS(logit_error, "(Tensor x, Tensor target)",
         "Binary cross entropy of each element's sigmoid.",
         "x - x * target + log1p(exp(-abs(x))) + relu(-x)",
         "x: g * (sigmoid(x) - target); target: -(g * x)");
ELEMENTS(weighted_logit_error, "(Tensor x, Tensor target, Tensor pos_weight)",
         "The same with a weight on what is positive.",
         "(1 - target) * x +"
         "(1 + (pos_weight - 1) * target) * (log1p(exp(-abs(x))) + relu(-x))",
         "x: g * (1 - target - (1 + (pos_weight - 1) * target) * sigmoid(-x));"
         "target: g * ((pos_weight - 1) * (log1p(exp(-abs(x))) + relu(-x)) - x)");
