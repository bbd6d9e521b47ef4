/* loss.c: softmax and the losses, each a row: schema, doc, rule, kernel or composition, gradient.
 *
 * Losses element by element are formulas, then reduced; cross entropy with class targets is fused,
 * other forms of it are composed. Knows shapes and dtypes; rules make the plans that devices carry
 * out.
 */
#include "engine/ops/loss.h"

#include "engine/ops/family.h"
#include "engine/ops/loss_grad.h"
#include "engine/ops/plan.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/reduce.h"

#include <string.h>

#define TD_FAMILY "loss"

/* ---- rules ---- */

static td_status need_same_shape(const td_tensor *a, const char *a_name, const td_tensor *b,
                                 const char *b_name) {
    char a_shape[TD_SHAPE_TEXT], b_shape[TD_SHAPE_TEXT];
    if (td_tensor_same_shape(a, b))
        return TD_OK;
    return td_fail(TD_ESHAPE, "%s of shape %s and %s of shape %s must have the same shape", a_name,
                   td_tensor_shape_text(a, a_shape), b_name, td_tensor_shape_text(b, b_shape));
}

static void meta_like(td_meta *out, const td_tensor *shape, td_dtype dtype) {
    out->dtype = dtype;
    out->ndim = shape->ndim;
    memcpy(out->sizes, shape->sizes, sizeof(int64_t) * (size_t)shape->ndim);
}

/* (x, dim, dtype), or for the gradient (y, g, dim). */
static td_status plan_softmax(const td_call *call, td_meta *out, bool log) {
    const td_value *a = call->args;
    const td_tensor *x = a[0].tensor, *g = td_arg_tensor(a[1]);
    td_softmax_plan *p = TD_PLAN(call, td_softmax_plan);
    *p = (td_softmax_plan){.log = log};
    meta_like(out, x, a[2].kind == TD_KIND_DTYPE ? a[2].dtype : (td_dtype)x->dtype);
    td_status status = td_wrap_dim(a[g ? 2 : 1].i, x->ndim, &p->dim);
    if (status == TD_OK && g)
        status = need_same_shape(g, "gradient", x, "result");
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
    return td_fail(TD_EVALUE, "reduction is \"mean\", \"sum\" or \"none\", got \"%s\"", text);
}

static td_status rule_class_weights(const td_call *call, td_meta *out) {
    const td_tensor *target = call->args[0].tensor, *weight = td_arg_tensor(call->args[1]);
    td_class_weights_plan *p = TD_PLAN(call, td_class_weights_plan);
    char shape[TD_SHAPE_TEXT];
    *p = (td_class_weights_plan){.nclasses = call->args[2].i, .ignores = !td_is_nil(call->args[3])};
    p->ignored = p->ignores ? call->args[3].i : 0;
    if (!td_dtype_is_int(target->dtype))
        return td_fail(TD_EDTYPE, "targets that are classes must be integers, got %s",
                       td_dtype_name(target->dtype));
    if (weight && (weight->ndim != 1 || weight->sizes[0] != p->nclasses))
        return td_fail(TD_ESHAPE, "weight of shape %s, expected one for each of %lld classes",
                       td_tensor_shape_text(weight, shape), (long long)p->nclasses);
    meta_like(&out[0], target, call->args[4].dtype);
    meta_like(&out[1], target, TD_I64);
    return TD_OK;
}

static td_status rule_cross_entropy_classes(const td_call *call, td_meta *out) {
    const td_tensor *x = call->args[0].tensor, *classes = call->args[1].tensor;
    td_cross_entropy_plan *p = TD_PLAN(call, td_cross_entropy_plan);
    *p = (td_cross_entropy_plan){.dim = td_class_dim(x)};
    meta_like(&out[0], classes, (td_dtype)x->dtype);
    meta_like(&out[1], classes, td_dtype_wide((td_dtype)x->dtype));
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
    *p = (td_cross_entropy_backward_plan){.dim = td_class_dim(x)};
    meta_like(out, x, (td_dtype)x->dtype);
    return read_reduction(call->args[6].string, &p->reduction);
}

/* ---- kernels ---- */

TD_KERNEL(kernel_softmax, softmax, td_softmax_plan, 1, 2)
TD_KERNEL(kernel_class_weights, class_weights, td_class_weights_plan, 2, 2)
TD_KERNEL(kernel_cross_entropy, cross_entropy, td_cross_entropy_plan, 3, 3)
TD_KERNEL(kernel_cross_entropy_backward, cross_entropy_backward, td_cross_entropy_backward_plan, 1,
          6)

/* ---- composing ---- */

/* The losses of all elements (stolen) as the reduction says. */
static td_status reduced(td_tensor *each, td_loss_reduction reduction, td_tensor **out) {
    td_status status = TD_OK;
    if (reduction == TD_LOSS_NONE)
        *out = td_retain(each);
    else if (reduction == TD_LOSS_SUM)
        status = TD_APPLY(out, sum, TD_T(each));
    else
        status = TD_APPLY(out, mean, TD_T(each));
    td_release(each);
    return status;
}

static td_status check_pair(const td_call *call, const char *text, td_loss_reduction *reduction) {
    const td_tensor *x = call->args[0].tensor, *target = call->args[1].tensor;
    td_status status = read_reduction(text, reduction);
    if (status == TD_OK)
        status = td_check_float((td_dtype)x->dtype);
    return status ? status : need_same_shape(x, "x", target, "target");
}

/* Losses that `each` gives from x, target and, where it takes one, the number behind `reduction`.
 */
static td_status run_elements(td_call *call, const td_op *each) {
    td_loss_reduction reduction;
    td_tensor *losses;
    td_value args[] = {call->args[0], call->args[1], call->args[each->nparams]};
    td_status status = check_pair(call, call->args[2].string, &reduction);
    if (status == TD_OK)
        status = td_op_apply(each, &losses, each->nparams, args);
    return status ? status : reduced(losses, reduction, &call->out[0]);
}

static td_status run_mse_loss(td_call *call) {
    return run_elements(call, TD_OP(squared_error));
}

static td_status run_l1_loss(td_call *call) {
    return run_elements(call, TD_OP(absolute_error));
}

static td_status run_smooth_l1_loss(td_call *call) {
    double beta = td_arg_double(call->args[3]);
    if (!(beta >= 0))
        return td_fail(TD_EVALUE, "beta must not be negative, got %g", beta);
    return run_elements(call, TD_OP(smooth_error));
}

static td_status run_huber_loss(td_call *call) {
    double delta = td_arg_double(call->args[3]);
    if (!(delta > 0))
        return td_fail(TD_EVALUE, "delta must be positive, got %g", delta);
    return run_elements(call, TD_OP(huber_error));
}

static td_status check_probabilities(td_tensor *x) {
    td_tensor *values = NULL, *low = NULL, *high = NULL;
    double least, most;
    td_status status = TD_OK;
    if (x->numel == 0)
        return TD_OK;
    TD_TRY(TD_APPLY(&values, detach, TD_T(x)));
    TD_TRY(TD_APPLY(&low, amin, TD_T(values)));
    TD_TRY(TD_APPLY(&high, amax, TD_T(values)));
    TD_TRY(td_tensor_item(low, &least));
    TD_TRY(td_tensor_item(high, &most));
    if (least < 0 || most > 1)
        status = td_fail(TD_EVALUE,
                         "x must lie between 0 and 1, got %g (scores go to "
                         "binary_cross_entropy_with_logits)",
                         least < 0 ? least : most);
done:
    td_release(values);
    td_release(low);
    td_release(high);
    return status;
}

static td_status run_binary_cross_entropy(td_call *call) {
    const td_value *a = call->args;
    td_loss_reduction reduction;
    td_tensor *each = NULL;
    td_status status = TD_OK;
    TD_TRY(check_pair(call, a[3].string, &reduction));
    TD_TRY(check_probabilities(a[0].tensor));
    TD_TRY(TD_APPLY(&each, probability_error, a[0], a[1]));
    if (!td_is_nil(a[2]))
        TD_STEP(&each, mul, TD_T(each), a[2]);
    return reduced(each, reduction, &call->out[0]);
done:
    td_release(each);
    return status;
}

static td_status run_binary_cross_entropy_with_logits(td_call *call) {
    const td_value *a = call->args;
    td_loss_reduction reduction;
    td_tensor *each = NULL;
    td_status status = TD_OK;
    TD_TRY(check_pair(call, a[4].string, &reduction));
    if (td_is_nil(a[3]))
        TD_TRY(TD_APPLY(&each, logit_error, a[0], a[1]));
    else
        TD_TRY(TD_APPLY(&each, weighted_logit_error, a[0], a[1], a[3]));
    if (!td_is_nil(a[2]))
        TD_STEP(&each, mul, TD_T(each), a[2]);
    return reduced(each, reduction, &call->out[0]);
done:
    td_release(each);
    return status;
}

/* ---- losses over classes ---- */

/* Scores (C), (N, C) or (N, C, d1, ...) and classes of that shape without C. */
static td_status check_classes(const td_tensor *x, const td_tensor *target) {
    int64_t sizes[TD_MAX_DIMS];
    char x_shape[TD_SHAPE_TEXT], want[TD_SHAPE_TEXT], got[TD_SHAPE_TEXT];
    int n = 0;
    if (x->ndim == 0)
        return td_fail(TD_ESHAPE, "x has no dim of classes: its shape is ()");
    for (int d = 0; d < x->ndim; d++)
        if (d != td_class_dim(x))
            sizes[n++] = x->sizes[d];
    if (target->ndim == n && !memcmp(target->sizes, sizes, sizeof(int64_t) * (size_t)n))
        return TD_OK;
    return td_fail(TD_ESHAPE, "target of shape %s doesn't fit x of shape %s: expected %s",
                   td_tensor_shape_text(target, got), td_tensor_shape_text(x, x_shape),
                   td_shape_text(n, sizes, want, sizeof want));
}

/* Weight and class of each line; errors name classes that do not exist. out[2], new. */
static td_status weigh(td_tensor *x, td_value target, td_value weight, td_value ignore,
                       td_tensor **out) {
    return TD_APPLY(out, class_weights, target, weight, TD_I(x->sizes[td_class_dim(x)]), ignore,
                    TD_DTYPE(td_dtype_wide((td_dtype)x->dtype)));
}

/* -weight * log probability of each line's class; `lines` from weigh. */
static td_status picked(td_tensor *logs, td_tensor *const *lines, td_tensor **out) {
    td_tensor *index = NULL, *y = NULL, *ignored = NULL;
    td_status status = TD_OK;
    TD_TRY(td_with_class_dim(lines[1], logs, &index));
    TD_TRY(TD_APPLY(&y, gather, TD_T(logs), TD_I(td_class_dim(logs)), TD_T(index)));
    TD_STEP(&y, reshape, TD_T(y), TD_INTS(lines[0]->ndim, lines[0]->sizes));
    TD_STEP(&y, mul, TD_T(y), TD_T(lines[0]));
    TD_STEP(&y, neg, TD_T(y));
    TD_TRY(TD_APPLY(&ignored, eq, TD_T(lines[0]), TD_F(0)));
    TD_STEP(&y, where, TD_T(ignored), TD_F(0), TD_T(y)); /* not 0 * inf */
    *out = y;
    y = NULL;
done:
    td_release(index);
    td_release(ignored);
    td_release(y);
    return status;
}

/* Losses of lines (stolen) as the reduction says, in the dtype of the scores; the mean is over the
 * lines' weights. */
static td_status reduced_lines(td_tensor *each, td_tensor *weights, td_loss_reduction reduction,
                               td_dtype dtype, td_tensor **out) {
    td_tensor *sum = NULL, *total = NULL;
    td_status status = TD_OK;
    if (reduction == TD_LOSS_MEAN) {
        TD_TRY(TD_APPLY(&sum, sum, TD_T(each)));
        TD_TRY(TD_APPLY(&total, sum, TD_T(weights)));
        TD_TRY(TD_APPLY(out, div, TD_T(sum), TD_T(total)));
    } else {
        TD_TRY(reduced(td_retain(each), reduction, out));
    }
    TD_STEP(out, to, TD_T(*out), TD_DTYPE(dtype));
done:
    td_release(each);
    td_release(sum);
    td_release(total);
    return status;
}

/* (x, target, weight, ignore_index, reduction) */
static td_status run_nll_loss(td_call *call) {
    const td_value *a = call->args;
    td_tensor *x = a[0].tensor, *lines[2] = {NULL}, *each = NULL;
    td_loss_reduction reduction;
    td_status status = TD_OK;
    TD_TRY(read_reduction(a[4].string, &reduction));
    TD_TRY(td_check_float((td_dtype)x->dtype));
    TD_TRY(check_classes(x, a[1].tensor));
    TD_TRY(weigh(x, a[1], a[2], a[3], lines));
    TD_TRY(picked(x, lines, &each));
    status = reduced_lines(each, lines[0], reduction, (td_dtype)x->dtype, &call->out[0]);
done:
    td_release(lines[0]);
    td_release(lines[1]);
    return status;
}

/* The weight of each class, shaped to broadcast to the scores. */
static td_status class_row(td_tensor *weight, const td_tensor *x, td_tensor **out) {
    int64_t sizes[TD_MAX_DIMS];
    char shape[TD_SHAPE_TEXT];
    int64_t classes = x->sizes[td_class_dim(x)];
    if (weight->ndim != 1 || weight->sizes[0] != classes)
        return td_fail(TD_ESHAPE, "weight of shape %s, expected one for each of %lld classes",
                       td_tensor_shape_text(weight, shape), (long long)classes);
    for (int d = 0; d < x->ndim; d++)
        sizes[d] = d == td_class_dim(x) ? classes : 1;
    return TD_APPLY(out, reshape, TD_T(weight), TD_INTS(x->ndim, sizes));
}

/* -sum over classes of logs * factors (* weight): the loss against probabilities. */
static td_status expected_loss(td_tensor *logs, td_value factors, td_value weight,
                               td_tensor **out) {
    td_tensor *y = td_retain(logs), *row = NULL;
    int64_t dim = td_class_dim(logs);
    td_status status = TD_OK;
    if (!td_is_nil(factors))
        TD_STEP(&y, mul, TD_T(y), factors);
    if (td_arg_tensor(weight)) {
        TD_TRY(class_row(weight.tensor, logs, &row));
        TD_STEP(&y, mul, TD_T(y), TD_T(row));
    }
    TD_STEP(&y, sum, TD_T(y), TD_INTS(1, &dim));
    TD_STEP(&y, neg, TD_T(y));
    *out = y;
    y = NULL;
done:
    td_release(y);
    td_release(row);
    return status;
}

/* (1 - s) * each + s / C * uniform loss, both over the lines that are not ignored. */
static td_status smoothed_cross_entropy(td_call *call, td_loss_reduction reduction) {
    const td_value *a = call->args;
    td_tensor *logs = NULL, *each = NULL, *uniform = NULL, *lines[2] = {NULL}, *real = NULL;
    td_tensor *x = a[0].tensor;
    double smoothing = td_arg_double(a[5]);
    int64_t dim = td_class_dim(x);
    td_status status = TD_OK;
    TD_TRY(weigh(x, a[1], a[2], a[3], lines));
    TD_TRY(TD_APPLY(&logs, log_softmax, a[0], TD_I(dim)));
    TD_TRY(picked(logs, lines, &each));
    TD_TRY(expected_loss(logs, TD_NIL, a[2], &uniform));
    if (!td_is_nil(a[3])) {
        TD_TRY(TD_APPLY(&real, ne, a[1], a[3]));
        TD_STEP(&uniform, where, TD_T(real), TD_T(uniform), TD_F(0));
    }
    TD_STEP(&each, mul, TD_T(each), TD_F(1 - smoothing));
    TD_STEP(&uniform, mul, TD_T(uniform), TD_F(smoothing / (double)x->sizes[dim]));
    TD_STEP(&each, add, TD_T(each), TD_T(uniform));
    status = reduced_lines(each, lines[0], reduction, (td_dtype)x->dtype, &call->out[0]);
    each = NULL;
done:
    td_release(logs);
    td_release(each);
    td_release(uniform);
    td_release(lines[0]);
    td_release(lines[1]);
    td_release(real);
    return status;
}

/* Targets that are probabilities. The mean is over lines, whatever their weights, as in PyTorch. */
static td_status soft_cross_entropy(td_call *call, td_loss_reduction reduction) {
    const td_value *a = call->args;
    td_tensor *logs = NULL, *target = td_retain(a[1].tensor), *each = NULL;
    double smoothing = td_arg_double(a[5]);
    int64_t dim = td_class_dim(a[0].tensor);
    td_status status = TD_OK;
    if (!td_is_nil(a[3])) {
        status = td_fail(TD_EVALUE, "ignore_index is for class targets, these are probabilities");
        goto done;
    }
    TD_TRY(TD_APPLY(&logs, log_softmax, a[0], TD_I(dim)));
    if (smoothing > 0) {
        TD_STEP(&target, mul, TD_T(target), TD_F(1 - smoothing));
        TD_STEP(&target, add, TD_T(target), TD_F(smoothing / (double)logs->sizes[dim]));
    }
    TD_TRY(expected_loss(logs, TD_T(target), a[2], &each));
    status = reduced(each, reduction, &call->out[0]);
done:
    td_release(logs);
    td_release(target);
    return status;
}

/* (x, target, weight, ignore_index, reduction, label_smoothing) */
static td_status run_cross_entropy(td_call *call) {
    const td_value *a = call->args;
    td_tensor *x = a[0].tensor, *target = a[1].tensor, *lines[2] = {NULL}, *results[3] = {NULL};
    double smoothing = td_arg_double(a[5]);
    td_loss_reduction reduction;
    td_status status = TD_OK;
    TD_TRY(read_reduction(a[4].string, &reduction));
    TD_TRY(td_check_float((td_dtype)x->dtype));
    if (!(smoothing >= 0 && smoothing <= 1))
        return td_fail(TD_EVALUE, "label_smoothing lies between 0 and 1, got %g", smoothing);
    if (td_dtype_is_float(target->dtype)) {
        if (x->ndim == 0 || !td_tensor_same_shape(x, target))
            return need_same_shape(x, "x", target, "a target of probabilities");
        return soft_cross_entropy(call, reduction);
    }
    TD_TRY(check_classes(x, target));
    if (smoothing > 0)
        return smoothed_cross_entropy(call, reduction);
    TD_TRY(weigh(x, a[1], a[2], a[3], lines));
    TD_TRY(TD_APPLY(results, cross_entropy_classes, a[0], TD_T(lines[1]), TD_T(lines[0]), a[4]));
    call->out[0] = td_retain(results[0]);
done:
    for (int k = 0; k < 3; k++)
        td_release(results[k]);
    td_release(lines[0]);
    td_release(lines[1]);
    return status;
}

/* ---- the table ---- */

#define ELEMENTS(name, parameters, text, forward, grad)                                            \
    TD_OPERATOR(name) = {                                                                          \
        .schema = parameters " -> Tensor",                                                         \
        .doc = text,                                                                               \
        .pointwise =                                                                               \
            &(const td_pointwise){.type = TD_PW_FLOATS, .primitive = -1, .formula = forward},      \
        .gradient = grad,                                                                          \
        .flags = TD_OP_INTERNAL}
#define LOSS(name, parameters, text, function)                                                     \
    TD_OPERATOR(name) = {.schema = parameters " -> Tensor",                                        \
                         .doc = text,                                                              \
                         .run = function,                                                          \
                         .autocast = TD_AUTOCAST_FP32,                                             \
                         .flags = TD_OP_FUNCTION_ONLY}

TD_OPERATOR(softmax) = {
    .schema = "(Tensor x, dim dim, *, dtype? dtype=nil) -> Tensor",
    .doc = "exp(x) over its sum along a dim.",
    .rule = rule_softmax,
    .kernel = kernel_softmax,
    .dtypes = TD_DTYPES_ALL,
    .backward = td_grad_softmax,
    .saves = "out",
    .autocast = TD_AUTOCAST_FP32,
    .flags = TD_OP_OUT,
};
TD_OPERATOR(log_softmax) = {
    .schema = "(Tensor x, dim dim, *, dtype? dtype=nil) -> Tensor",
    .doc = "Logarithm of softmax along a dim, without overflow.",
    .rule = rule_log_softmax,
    .kernel = kernel_softmax,
    .dtypes = TD_DTYPES_ALL,
    .backward = td_grad_log_softmax,
    .saves = "out",
    .autocast = TD_AUTOCAST_FP32,
    .flags = TD_OP_OUT,
};
TD_OPERATOR(softmax_backward) = {
    .schema = "(Tensor y, Tensor g, dim dim) -> Tensor",
    .doc = "Gradient of softmax from that of its result y.",
    .rule = rule_softmax,
    .kernel = kernel_softmax,
    .dtypes = TD_DTYPES_FLOATS,
    .backward = td_grad_softmax_backward,
    .saves = "y, g",
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(log_softmax_backward) = {
    .schema = "(Tensor y, Tensor g, dim dim) -> Tensor",
    .doc = "Gradient of log_softmax from that of its result y.",
    .rule = rule_log_softmax,
    .kernel = kernel_softmax,
    .dtypes = TD_DTYPES_FLOATS,
    .backward = td_grad_log_softmax_backward,
    .saves = "y, g",
    .flags = TD_OP_INTERNAL,
};

/* over classes */
LOSS(cross_entropy,
     "(Tensor x, class Tensor target, Tensor? weight=nil, *, "
     "index? ignore_index=nil, str reduction=\"mean\", float label_smoothing=0)",
     "Cross entropy of scores x (N, C, ...) with classes (N, ...) or probabilities of x's "
     "shape.",
     run_cross_entropy);
LOSS(nll_loss,
     "(Tensor x, class Tensor target, Tensor? weight=nil, *, "
     "index? ignore_index=nil, str reduction=\"mean\")",
     "Negative log likelihood: minus the log probabilities x (N, C, ...) of the target classes.",
     run_nll_loss);
TD_OPERATOR(class_weights) = {
    .schema = "(class Tensor target, Tensor? weight, int classes, "
              "index? ignore_index, dtype dtype) -> (Tensor weights, index Tensor classes)",
    .doc = "Checks target classes; the weight of each (0: ignored) and the classes as int64.",
    .rule = rule_class_weights,
    .kernel = kernel_class_weights,
    .dtypes = TD_DTYPES_ALL,
    .flags = TD_OP_INTERNAL | TD_OP_NONDIFF,
};
TD_OPERATOR(cross_entropy_classes) = {
    .schema = "(Tensor x, class Tensor classes, Tensor weights, "
              "str reduction) -> (Tensor loss, Tensor lse, Tensor total)",
    .doc =
        "Cross entropy with what class_weights gives; log-sum-exp and total weight for backward.",
    .rule = rule_cross_entropy_classes,
    .kernel = kernel_cross_entropy,
    .dtypes = TD_DTYPES_FLOATS,
    .backward = td_grad_cross_entropy_classes,
    .saves = "x, classes, weights, lse, total",
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(cross_entropy_backward) = {
    .schema = "(Tensor g, Tensor x, class Tensor classes, Tensor weights, "
              "Tensor lse, Tensor total, str reduction) -> Tensor",
    .doc = "Gradient of cross_entropy_classes by x.",
    .rule = rule_cross_entropy_backward,
    .kernel = kernel_cross_entropy_backward,
    .dtypes = TD_DTYPES_FLOATS,
    .backward = td_grad_cross_entropy_backward,
    .saves = "g, x, classes, weights, lse, total",
    .flags = TD_OP_INTERNAL,
};

/* element by element */
LOSS(mse_loss, "(Tensor x, Tensor target, *, str reduction=\"mean\")",
     "Squared error between x and target.", run_mse_loss);
LOSS(l1_loss, "(Tensor x, Tensor target, *, str reduction=\"mean\")",
     "Absolute error between x and target.", run_l1_loss);
LOSS(smooth_l1_loss, "(Tensor x, Tensor target, *, str reduction=\"mean\", float beta=1)",
     "Absolute error, but squared (over 2 beta) where it is under beta.", run_smooth_l1_loss);
LOSS(huber_loss, "(Tensor x, Tensor target, *, str reduction=\"mean\", float delta=1)",
     "Half the squared error, but linear where the error is over delta.", run_huber_loss);
TD_OPERATOR(binary_cross_entropy) = {
    .schema = "(Tensor x, Tensor target, Tensor? weight=nil, *, "
              "str reduction=\"mean\") -> Tensor",
    .doc = "Cross entropy of probabilities x with targets between 0 and 1.",
    .run = run_binary_cross_entropy,
    .autocast = TD_AUTOCAST_BANNED,
    .flags = TD_OP_FUNCTION_ONLY,
};
LOSS(binary_cross_entropy_with_logits,
     "(Tensor x, Tensor target, Tensor? weight=nil, *, "
     "Tensor? pos_weight=nil, str reduction=\"mean\")",
     "Cross entropy of sigmoid(x) with targets between 0 and 1, without overflow.",
     run_binary_cross_entropy_with_logits);
ELEMENTS(squared_error, "(Tensor x, Tensor target)", "(x - target)^2.", "square(x - target)",
         "x: g * 2 * (x - target); target: g * 2 * (target - x)");
ELEMENTS(absolute_error, "(Tensor x, Tensor target)", "|x - target|.", "abs(x - target)",
         "x: g * sign(x - target); target: g * sign(target - x)");
ELEMENTS(smooth_error, "(Tensor x, Tensor target, number beta)", "Smooth L1 of each element.",
         "where(lt(abs(x - target), beta), 0.5 * square(x - target) / beta,"
         "      abs(x - target) - 0.5 * beta)",
         "x: g * where(lt(abs(x - target), beta), (x - target) / beta, sign(x - target));"
         "target: g * where(lt(abs(x - target), beta), (target - x) / beta, sign(target - x))");
ELEMENTS(huber_error, "(Tensor x, Tensor target, number delta)", "Huber's loss of each element.",
         "where(lt(abs(x - target), delta), 0.5 * square(x - target),"
         "      delta * (abs(x - target) - 0.5 * delta))",
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
