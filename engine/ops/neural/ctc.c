/* ctc.c: connectionist temporal classification, a loss over all alignments of a sequence of classes
 * with a longer one of scores. Knows shapes and lengths; the device knows the sums. */
#include "engine/ops/element_checks.h"
#include "engine/ops/plan/plan.h"
#include "engine/ops/rule_helpers.h"

#include <string.h>

#define TD_FAMILY "ctc"

/* (log_probs, targets, input_lengths, target_lengths, blank, width, finite) */
static td_status rule_ctc(const td_call *call, td_meta *out) {
    const td_value *a = call->args;
    const td_tensor *x = a[0].tensor;
    *TD_PLAN(call, td_ctc_plan) =
        (td_ctc_plan){.blank = a[4].i, .width = a[5].i, .joined = a[1].tensor->ndim == 1};
    const int64_t alpha[3] = {x->sizes[1], x->sizes[0], 2 * a[5].i + 1};
    td_meta_set(&out[0], (td_dtype)x->dtype, 1, &x->sizes[1]);
    td_meta_set(&out[1], TD_F64, 3, alpha);
    return td_numel(3, alpha) < 0 ? td_fail(TD_ESHAPE, "too many alignments") : TD_OK;
}
TD_KERNEL(kernel_ctc, ctc, td_ctc_plan, 2, 4)

/* (gy, log_probs, targets, input_lengths, target_lengths, loss, alpha, blank, width, finite) */
static td_status rule_ctc_backward(const td_call *call, td_meta *out) {
    const td_value *a = call->args;
    *TD_PLAN(call, td_ctc_backward_plan) = (td_ctc_backward_plan){
        .blank = a[7].i, .width = a[8].i, .joined = a[2].tensor->ndim == 1, .finite = a[9].b};
    td_meta_like(out, a[1].tensor, (td_dtype)a[1].tensor->dtype);
    return TD_OK;
}
TD_KERNEL(kernel_ctc_backward, ctc_backward, td_ctc_backward_plan, 1, 7)

/* It is not the derivative of a function of log_probs. */
static td_status refuse_slope(td_grad *grad) {
    (void)grad;
    return td_fail(TD_EAUTOGRAD, "the gradient of ctc_loss has no derivative");
}

static td_status check_lengths(const char *name, const td_tensor *lengths, int64_t batch) {
    char shape[TD_SHAPE_TEXT];
    td_status status = td_check_index(lengths);
    if (status)
        return td_fail(TD_EDTYPE, "%s must be integers, got %s", name,
                       td_dtype_name((td_dtype)lengths->dtype));
    if (lengths->ndim > 1 || lengths->numel != batch)
        return td_fail(TD_ESHAPE, "%s of shape %s, expected one for each of %lld sequences", name,
                       td_tensor_shape_text(lengths, shape), (long long)batch);
    return TD_OK;
}

static td_status check_ctc(const td_value *a) {
    const td_tensor *x = a[0].tensor, *targets = a[1].tensor;
    char shape[TD_SHAPE_TEXT];
    if (x->ndim != 2 && x->ndim != 3)
        return td_fail(TD_ESHAPE, "log_probs must be (T, N, C) or (T, C), got shape %s",
                       td_tensor_shape_text(x, shape));
    if (x->dtype != TD_F32 && x->dtype != TD_F64)
        return td_fail(TD_EDTYPE, "log_probs must be float32 or float64, got %s",
                       td_dtype_name((td_dtype)x->dtype));
    int64_t batch = x->ndim == 3 ? x->sizes[1] : 1, classes = x->sizes[x->ndim - 1];
    if (targets->ndim != 1 && (targets->ndim != 2 || targets->sizes[0] != batch))
        return td_fail(TD_ESHAPE, "targets of shape %s, expected (%lld, S) or all in one row",
                       td_tensor_shape_text(targets, shape), (long long)batch);
    if (!td_dtype_is_int(targets->dtype))
        return td_fail(TD_EDTYPE, "targets must be integers, got %s",
                       td_dtype_name((td_dtype)targets->dtype));
    if (a[4].i < -classes || a[4].i >= classes)
        return td_fail(TD_EINDEX, "blank %lld is not a class from 1 to %lld",
                       (long long)(a[4].i < 0 ? a[4].i : a[4].i + 1), (long long)classes);
    td_status status = check_lengths("input_lengths", a[2].tensor, batch);
    return status ? status : check_lengths("target_lengths", a[3].tensor, batch);
}

/* Room for the longest target, which is read from the device. */
static td_status longest(const td_tensor *lengths, int64_t *width) {
    td_tensor *most = NULL;
    td_status status = TD_OK;
    *width = 0;
    if (lengths->numel == 0 || !td_may_look(lengths))
        return TD_OK;
    status = TD_APPLY(&most, amax, TD_T((td_tensor *)lengths));
    if (status == TD_OK)
        status = td_tensor_item_int(most, width);
    td_release(most);
    if (status == TD_OK && (*width < 0 || *width > INT32_MAX))
        status =
            td_fail(TD_EVALUE, "target_lengths: no target has %lld classes", (long long)*width);
    return status;
}

static td_status run_ctc_loss(td_call *call) {
    const td_value *a = call->args;
    td_tensor *x = td_retain(a[0].tensor), *targets = td_retain(a[1].tensor);
    td_tensor *loss = NULL, *lengths = NULL;
    int64_t width, last;
    td_status status = TD_OK;
    TD_TRY(check_ctc(a));
    TD_TRY(longest(a[3].tensor, &width));
    if (x->ndim == 2)
        TD_STEP(&x, unsqueeze, TD_T(x), TD_I(1));
    last = targets->ndim == 2 ? targets->sizes[1] : 0;
    if (targets->ndim == 2 && width < last)
        TD_STEP(&targets, narrow, TD_T(targets), TD_I(1), TD_I(0), TD_I(width));
    else if (targets->ndim == 2)
        width = last;
    TD_TRY(TD_APPLY(&lengths, reshape, a[3], TD_INTS(1, &x->sizes[1])));
    int64_t blank = a[4].i < 0 ? a[4].i + x->sizes[2] : a[4].i;
    TD_TRY(TD_APPLY(&loss, ctc_reduced, TD_T(x), TD_T(targets), a[2], TD_T(lengths), TD_I(blank),
                    TD_I(width), a[6], a[5], TD_B(a[0].tensor->ndim == 2)));
    call->out[0] = td_retain(loss);
done:
    td_release(x);
    td_release(targets);
    td_release(loss);
    td_release(lengths);
    return status;
}

TD_OPERATOR(ctc_loss) = {
    .schema = "(Tensor log_probs, class Tensor targets, Tensor input_lengths, "
              "Tensor target_lengths, index blank=0, *, str reduction=\"mean\", "
              "bool zero_infinity=false) -> Tensor",
    .doc =
        "Minus log probability of target sequences over all alignments with log_probs (T, N, C).",
    .shapes = "log_probs (T, N, C), targets (S...), input_lengths (N), target_lengths (N) -> (N) "
              "if reduction == 'none' | -> () | log_probs (T, C), targets (S...), input_lengths "
              "(one...), target_lengths (one...) -> (); S: (N, longest), or the targets one after "
              "another; one: () or (1)",
    .takes = "float32 and float64; targets integers",
    .notes = "blank and targets are classes that count from 1. A target that is longer than its "
             "input has no path: the loss is inf, or 0 with zero_infinity.",
    .run = run_ctc_loss,
    .autocast = {[TD_CPU] = TD_AUTOCAST_FP32, [TD_CUDA] = TD_AUTOCAST_FP32},
    .flags = TD_OP_FUNCTION_ONLY,
};
TD_OPERATOR(ctc_reduced) = {
    .schema = "(Tensor log_probs, class Tensor targets, Tensor input_lengths, "
              "Tensor target_lengths, index blank, int width, bool finite, str reduction, "
              "bool single) -> Tensor",
    .doc = "ctc_loss with what its run has worked out.",
    .formula = "y = ctc_alignments(log_probs, targets, input_lengths, target_lengths, blank, width,"
               "                   finite).loss;"
               "z = if(finite, where(isinf(y), 0.0, y), y);"
               "if(reduction == \"mean\", mean(z / clamp_min(target_lengths, 1)),"
               "   reduced(if(single and reduction == \"none\", squeeze(z, 0), z), reduction))",
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(ctc_alignments) = {
    .schema = "(Tensor log_probs, class Tensor targets, Tensor input_lengths, "
              "Tensor target_lengths, index blank, int width, bool finite) -> "
              "(Tensor loss, Tensor alpha)",
    .doc = "Loss of each sequence, and the log probabilities of all beginnings.",
    .rule = rule_ctc,
    .kernel = kernel_ctc,
    .dtypes = TD_DTYPES_ALL,
    .gradient = "log_probs: ctc_slope(g.loss, log_probs, targets, input_lengths, target_lengths,"
                "                     loss, alpha, blank, width, finite)",
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(ctc_slope) = {
    .schema = "(Tensor gy, Tensor log_probs, class Tensor targets, Tensor input_lengths, "
              "Tensor target_lengths, Tensor loss, Tensor alpha, index blank, int width, "
              "bool finite) -> Tensor",
    .doc = "Gradient of ctc_loss by the scores that log_probs are the log_softmax of.",
    .rule = rule_ctc_backward,
    .kernel = kernel_ctc_backward,
    .dtypes = TD_DTYPES_ALL,
    .backward = refuse_slope,
    .saves = "",
    .flags = TD_OP_INTERNAL,
};
