/* norm.c: the normalisations, each a row: layer, rms, group and instance norm are one kernel over
 * rows, batch norm is sums and a map by channel.
 *
 * The first gradient runs kernels as well; where it is to be differentiated again it is a formula
 * over operators instead, so gradients of every order come from the same text.
 */
#include "engine/core/modes.h"
#include "engine/ops/plan/plan.h"
#include "engine/ops/pointwise/pointwise.h"
#include "engine/ops/rule_helpers.h"

#include <math.h>
#include <string.h>

#define TD_FAMILY "norm"

/* ---- checks ---- */

/* A weight, a bias or running statistics, or NULL: floats of x's dtype, or float32 beside 16-bit
 * floats. */
static td_status check_dtype(const char *name, const td_tensor *t, const td_tensor *x) {
    td_dtype own = (td_dtype)x->dtype, wide = td_dtype_wide(own);
    if (!t || t->dtype == own || t->dtype == wide)
        return TD_OK;
    return td_fail(TD_EDTYPE, "%s is %s, expected %s as the input", name,
                   td_dtype_name((td_dtype)t->dtype), td_dtype_name(own));
}

static td_status check_per_channel(const char *name, const td_tensor *t, const td_tensor *x) {
    char shape[TD_SHAPE_TEXT];
    if (t && (t->ndim != 1 || t->sizes[0] != x->sizes[1]))
        return td_fail(TD_ESHAPE, "%s of shape %s, expected one for each of %lld channels", name,
                       td_tensor_shape_text(t, shape), (long long)x->sizes[1]);
    return check_dtype(name, t, x);
}

/* Arguments `first` to `last` of a call, named by its schema. */
static td_status check_channels(const td_call *call, int first, int last) {
    const td_tensor *x = call->args[0].tensor;
    char shape[TD_SHAPE_TEXT];
    td_status status = td_check_float((td_dtype)x->dtype);
    if (status == TD_OK && x->ndim < 2)
        return td_fail(TD_ESHAPE, "input must be (N, C, ...), got shape %s",
                       td_tensor_shape_text(x, shape));
    for (int k = first; k <= last && status == TD_OK; k++)
        status = check_per_channel(call->op->params[k].name, td_arg_tensor(call->args[k]), x);
    return status;
}

/* Does x's memory hold the channels side by side, without gaps? */
static bool channels_last(const td_tensor *x) {
    int64_t stride = 1;
    if (x->ndim < 3 || x->contiguous || x->strides[1] != 1)
        return false;
    stride = x->sizes[1];
    for (int d = x->ndim - 1; d >= 0; d--) {
        if (d == 1)
            continue;
        if (x->sizes[d] != 1 && x->strides[d] != stride)
            return false;
        stride *= x->sizes[d];
    }
    return true;
}

/* A result of x's shape with its channels where x has them. */
static void meta_as(td_meta *out, const td_tensor *x, bool last) {
    td_meta_like(out, x, (td_dtype)x->dtype);
    if (last) {
        out->strided = true;
        memcpy(out->strides, x->strides, sizeof(int64_t) * (size_t)x->ndim);
    }
}

/* ---- rows ---- */

/* (x, weight, bias, batch, groups, per, inner, eps, centered), the shape from argument `at` on. */
static td_norm_shape read_shape(const td_value *a) {
    return (td_norm_shape){.batch = a[0].i,
                           .groups = a[1].i,
                           .per = a[2].i,
                           .inner = a[3].i,
                           .eps = a[4].f,
                           .centered = a[5].b};
}

static void meta_rows(td_meta *out, const td_norm_shape *s, td_dtype dtype) {
    const int64_t sizes[2] = {s->batch, s->groups};
    td_meta_set(out, dtype, 2, sizes);
}

static td_status rule_norm_rows(const td_call *call, td_meta *out) {
    const td_tensor *x = call->args[0].tensor;
    td_norm_plan *p = TD_PLAN(call, td_norm_plan);
    *p = (td_norm_plan){.shape = read_shape(call->args + 3)};
    meta_as(&out[0], x, channels_last(x));
    meta_rows(&out[1], &p->shape, td_dtype_wide((td_dtype)x->dtype));
    meta_rows(&out[2], &p->shape, td_dtype_wide((td_dtype)x->dtype));
    return TD_OK;
}

static td_status rule_norm_gradients(const td_call *call, td_meta *out) {
    const td_tensor *x = call->args[1].tensor;
    td_norm_backward_plan *p = TD_PLAN(call, td_norm_backward_plan);
    *p = (td_norm_backward_plan){.shape = read_shape(call->args + 5)};
    int64_t weights = p->shape.groups * p->shape.per;
    td_meta_like(&out[0], x, (td_dtype)x->dtype);
    td_meta_set(&out[1], td_dtype_wide((td_dtype)x->dtype), 1, &weights);
    td_meta_set(&out[2], td_dtype_wide((td_dtype)x->dtype), 1, &weights);
    return TD_OK;
}

static td_status kernel_norm_rows(td_call *call) {
    td_norm_plan *p = TD_PLAN(call, td_norm_plan);
    for (int k = 0; k < 3; k++) {
        p->tensors[k] = call->out[k];
        p->tensors[3 + k] = td_arg_tensor(call->args[k]);
    }
    return TD_RUN(td_tensor_device(p->out), norm, p);
}
TD_KERNEL(kernel_norm_gradients, norm_backward, td_norm_backward_plan, 3, 5)

/* ---- channels ---- */

/* (x, eps) with three results, or (x, gy, mean, rstd) with two. */
static td_status rule_channel_sums(const td_call *call, td_meta *out) {
    const td_tensor *x = call->args[0].tensor;
    const bool own = call->op->nresults == 3;
    *TD_PLAN(call, td_channel_sums_plan) = (td_channel_sums_plan){
        .last = channels_last(x), .eps = own ? td_arg_double(call->args[1]) : 0};
    for (int k = 0; k < call->op->nresults; k++)
        td_meta_set(&out[k], td_dtype_wide((td_dtype)x->dtype), 1, &x->sizes[1]);
    return TD_OK;
}

static td_status kernel_channel_sums(td_call *call) {
    td_channel_sums_plan *p = TD_PLAN(call, td_channel_sums_plan);
    for (int k = 0; k < call->op->nresults; k++)
        p->tensors[k] = call->out[k];
    for (int k = 0; k < (call->op->nresults == 3 ? 1 : 4); k++)
        p->tensors[3 + k] = td_arg_tensor(call->args[k]);
    return TD_RUN(td_tensor_device(p->first), channel_sums, p);
}

static td_status rule_channel_map(const td_call *call, td_meta *out) {
    const td_tensor *g = td_arg_tensor(call->args[0]), *x = td_arg_tensor(call->args[1]);
    td_channel_map_plan *p = TD_PLAN(call, td_channel_map_plan);
    x = x ? x : g;
    *p = (td_channel_map_plan){.last = channels_last(x)};
    meta_as(out, x, p->last);
    return TD_OK;
}
TD_KERNEL(kernel_channel_map, channel_map, td_channel_map_plan, 1, 7)

/* ---- gradients: by kernels, or to be differentiated ---- */

static td_status run_norm_backward(td_call *call) {
    const td_op *op = td_grad_enabled() ? TD_OP(norm_slopes) : TD_OP(norm_gradients);
    return td_op_apply(op, call->out, op->nparams, call->args);
}
static td_status run_batch_backward(td_call *call) {
    const td_op *op = td_grad_enabled() ? TD_OP(batch_slopes) : TD_OP(batch_gradients);
    return td_op_apply(op, call->out, op->nparams, call->args);
}

/* ---- layer, rms, group, instance norm ---- */

static int64_t product(const int64_t *sizes, int from, int to) {
    int64_t n = 1;
    for (int d = from; d < to; d++)
        n *= sizes[d];
    return n;
}

/* The first result of norm_rows of a call (input, ..., weight, bias). */
static td_status normalise(td_call *call, td_value weight, td_value bias, const int64_t *shape,
                           double eps, bool centered) {
    td_tensor *out[3] = {NULL};
    td_status status =
        td_op_apply(TD_OP(norm_rows), out, 9,
                    (td_value[]){call->args[0], weight, bias, TD_I(shape[0]), TD_I(shape[1]),
                                 TD_I(shape[2]), TD_I(shape[3]), TD_F(eps), TD_B(centered)});
    call->out[0] = out[0];
    td_release(out[1]);
    td_release(out[2]);
    return status;
}

static td_status check_normalized(const td_tensor *x, td_value shape, const td_call *call,
                                  int last) {
    char got[TD_SHAPE_TEXT], want[TD_SHAPE_TEXT];
    int first = x->ndim - shape.n;
    td_shape_text(shape.n, shape.ints, want, sizeof want);
    if (shape.n == 0)
        return td_fail(TD_ESHAPE, "normalized_shape has no size");
    if (first < 0 || memcmp(x->sizes + first, shape.ints, sizeof(int64_t) * (size_t)shape.n) != 0)
        return td_fail(TD_ESHAPE, "input of shape %s doesn't end in normalized_shape %s",
                       td_tensor_shape_text(x, got), want);
    for (int k = 2; k <= last; k++) {
        const td_tensor *t = td_arg_tensor(call->args[k]);
        const char *name = call->op->params[k].name;
        if (t && (t->ndim != shape.n ||
                  memcmp(t->sizes, shape.ints, sizeof(int64_t) * (size_t)shape.n) != 0))
            return td_fail(TD_ESHAPE, "%s of shape %s, expected normalized_shape %s", name,
                           td_tensor_shape_text(t, got), want);
        td_status status = check_dtype(name, t, x);
        if (status)
            return status;
    }
    return td_check_float((td_dtype)x->dtype);
}

/* The distance from 1 to the next number of the dtype that is computed in. */
static const double epsilons[TD_DTYPE_COUNT] = {
    [TD_F16] = 0x1p-23, [TD_BF16] = 0x1p-23, [TD_F32] = 0x1p-23, [TD_F64] = 0x1p-52};

/* (input, normalized_shape, weight, bias, eps) and (input, normalized_shape, weight, eps). */
static td_status run_over_last(td_call *call, bool centered) {
    const td_value *a = call->args, eps = a[centered ? 4 : 3];
    const td_tensor *x = a[0].tensor;
    td_status status = check_normalized(x, a[1], call, centered ? 3 : 2);
    if (status)
        return status;
    int first = x->ndim - a[1].n;
    const int64_t shape[4] = {product(x->sizes, 0, first), 1, product(a[1].ints, 0, a[1].n), 1};
    return normalise(call, a[2], centered ? a[3] : TD_NIL, shape,
                     td_is_nil(eps) ? epsilons[x->dtype] : td_arg_double(eps), centered);
}
static td_status run_layer_norm(td_call *call) {
    return run_over_last(call, true);
}
static td_status run_rms_norm(td_call *call) {
    return run_over_last(call, false);
}

static td_status run_group_norm(td_call *call) {
    const td_value *a = call->args;
    char text[TD_SHAPE_TEXT];
    const td_tensor *x = a[0].tensor;
    td_status status = check_channels(call, 2, 3);
    if (status)
        return status;
    int64_t groups = a[1].i;
    if (groups < 1 || x->sizes[1] % groups)
        return td_fail(TD_EVALUE, "%lld channels can't be divided into %lld groups",
                       (long long)x->sizes[1], (long long)groups);
    const int64_t shape[4] = {x->sizes[0], groups, x->sizes[1] / groups,
                              product(x->sizes, 2, x->ndim)};
    if (shape[2] * shape[3] == 0)
        return td_fail(TD_ESHAPE, "the groups are empty: input of shape %s",
                       td_tensor_shape_text(x, text));
    return normalise(call, a[2], a[3], shape, a[4].f, true);
}

/* running += momentum (value - running), in running's dtype. */
static td_status follow(td_value running, td_tensor *value, double momentum) {
    td_tensor *cast = NULL;
    td_status status = TD_OK;
    if (!td_arg_tensor(running))
        return TD_OK;
    TD_TRY(TD_APPLY(&cast, detach, TD_T(value)));
    TD_STEP(&cast, to, TD_T(cast), TD_DTYPE((td_dtype)running.tensor->dtype));
    status = TD_APPLY_INPLACE(lerp, running, TD_T(cast), TD_F(momentum));
done:
    td_release(cast);
    return status;
}

/* May both be written? Asked before one of them is. */
static td_status check_followers(const td_call *call) {
    for (int k = 1; k <= 2; k++) {
        const td_tensor *t = td_arg_tensor(call->args[k]);
        const char *name = call->op->params[k].name;
        if (t && td_tensor_overlaps(t))
            return td_fail(TD_EVALUE, "%s can't be written: its elements share memory", name);
        if (t && t->requires_grad && td_grad_enabled())
            return td_fail(TD_EAUTOGRAD, "%s requires grad and would be written: detach it", name);
    }
    return TD_OK;
}

/* Running mean and unbiased variance follow those of `count` elements. */
static td_status follow_both(const td_value *running, td_tensor *mean, td_tensor *var, double count,
                             double momentum) {
    td_tensor *unbiased = NULL;
    td_status status = TD_OK;
    TD_TRY(TD_APPLY(&unbiased, detach, TD_T(var)));
    TD_STEP(&unbiased, mul, TD_T(unbiased), TD_F(count / (count - 1)));
    TD_TRY(follow(running[0], mean, momentum));
    TD_TRY(follow(running[1], unbiased, momentum));
done:
    td_release(unbiased);
    return status;
}

static td_status check_several(const td_tensor *x, int64_t count, const char *per) {
    char shape[TD_SHAPE_TEXT];
    return count != 1 ? TD_OK
                      : td_fail(TD_EVALUE,
                                "more than one value per %s is needed in training, got shape %s",
                                per, td_tensor_shape_text(x, shape));
}

/* Batch and instance norm by the running statistics, with which 16-bit floats are used in float32.
 */
static td_status fixed_norm(td_call *call) {
    const td_value *a = call->args;
    td_value wide = TD_DTYPE(td_dtype_wide((td_dtype)a[0].tensor->dtype));
    td_tensor *mean = NULL, *var = NULL;
    td_status status = TD_OK;
    if (td_is_nil(a[1]) || td_is_nil(a[2]))
        return td_fail(TD_EVALUE, "running_mean and running_var are needed unless %s is true",
                       call->op->params[5].name);
    TD_TRY(TD_APPLY(&mean, to, a[1], wide));
    TD_TRY(TD_APPLY(&var, to, a[2], wide));
    status =
        TD_APPLY(&call->out[0], batch_norm_fixed, a[0], TD_T(mean), TD_T(var), a[3], a[4], a[7]);
done:
    td_release(mean);
    td_release(var);
    return status;
}

/* Are factors of channels on the CPU such that squares left the dtype? What is small counts where
 * eps is smaller still. (Elsewhere the factors are not at hand.) */
static bool squares_left(const td_tensor *factors, double eps) {
    static const double bounds[TD_DTYPE_COUNT] = {[TD_F32] = 0x1p45, [TD_F64] = 0x1p480};
    const double most = bounds[factors->dtype];
    bool left = false;
    for (int64_t c = 0; td_tensor_device(factors).type == TD_CPU && c < factors->numel; c++) {
        double r = td_load_double((td_dtype)factors->dtype,
                                  (const char *)factors->data +
                                      c * (int64_t)td_dtype_size((td_dtype)factors->dtype));
        left |= !(r >= 1 / most) || (r > most && eps < 1 / most / most);
    }
    return left;
}

/* batch_norm_own by way of rows, for which the size of the elements is no matter: the channels of
 * all samples are the groups of one. */
static td_status by_rows(td_call *call, int64_t count, td_tensor **out) {
    const td_value *a = call->args;
    td_tensor *x = a[0].tensor, *turned = NULL, *var = NULL, *rows[3] = {NULL};
    td_status status = TD_OK;
    TD_TRY(TD_APPLY(&turned, transpose, a[0], TD_I(0), TD_I(1)));
    TD_TRY(td_op_apply(TD_OP(norm_rows), rows, 9,
                       (td_value[]){TD_T(turned), a[3], a[4], TD_I(1), TD_I(x->sizes[1]), TD_I(1),
                                    TD_I(count), TD_F(a[7].f), TD_B(true)}));
    TD_STEP(&rows[0], transpose, TD_T(rows[0]), TD_I(0), TD_I(1));
    TD_TRY(TD_APPLY(&var, detach, TD_T(turned)));
    TD_STEP(&var, flatten, TD_T(var), TD_I(1), TD_I(-1));
    TD_STEP(&var, to, TD_T(var), TD_DTYPE((td_dtype)rows[1]->dtype));
    TD_STEP(&var, var, TD_T(var), TD_INTS(1, ((int64_t[]){1})), TD_F(0), TD_B(false));
    for (int k = 0; k < 3; k++)
        td_release(out[k]);
    out[0] = td_retain(rows[0]);
    out[1] = td_retain(rows[1]);
    out[2] = td_retain(var);
    TD_STEP(&out[1], flatten, TD_T(out[1]), TD_I(0), TD_I(-1));
done:
    td_release(turned);
    td_release(var);
    for (int k = 0; k < 3; k++)
        td_release(rows[k]);
    return status;
}

static td_status run_batch_norm(td_call *call) {
    const td_value *a = call->args;
    const td_tensor *x = a[0].tensor;
    td_tensor *out[4] = {NULL};
    td_status status = TD_OK;
    if (x->ndim == 1 && x->numel == 0) /* no batch, so no channels are missed */
        return TD_APPLY(&call->out[0], clone, a[0]);
    TD_TRY(check_channels(call, 1, 4));
    if (!a[5].b)
        return fixed_norm(call);
    int64_t count = x->sizes[0] * product(x->sizes, 2, x->ndim);
    TD_TRY(check_several(x, count, "channel"));
    TD_TRY(check_followers(call));
    TD_TRY(td_op_apply(TD_OP(batch_norm_own), out, 4, (td_value[]){a[0], a[3], a[4], a[7]}));
    if (x->numel && TD_UNLIKELY(squares_left(out[3], a[7].f)))
        TD_TRY(by_rows(call, count, out));
    if (x->numel) /* statistics of nothing are not followed */
        TD_TRY(follow_both(a + 1, out[1], out[2], (double)count, a[6].f));
    call->out[0] = td_retain(out[0]);
done:
    for (int k = 0; k < 4; k++)
        td_release(out[k]);
    return status;
}

/* The running statistics of instance norm are means over the batch. */
static td_status follow_instances(const td_call *call) {
    const td_value *a = call->args;
    td_tensor *flat = NULL, *mean = NULL, *var = NULL;
    const int64_t zero = 0, two = 2;
    int64_t count = product(a[0].tensor->sizes, 2, a[0].tensor->ndim);
    td_status status = TD_OK;
    if (td_is_nil(a[1]) && td_is_nil(a[2]))
        return TD_OK;
    TD_TRY(TD_APPLY(&flat, detach, a[0]));
    TD_STEP(&flat, flatten, TD_T(flat), TD_I(2), TD_I(-1));
    TD_TRY(TD_APPLY(&mean, mean, TD_T(flat), TD_INTS(1, &two)));
    TD_TRY(TD_APPLY(&var, var, TD_T(flat), TD_INTS(1, &two), TD_F(0)));
    TD_STEP(&mean, mean, TD_T(mean), TD_INTS(1, &zero));
    TD_STEP(&var, mean, TD_T(var), TD_INTS(1, &zero));
    status = follow_both(a + 1, mean, var, (double)count, a[6].f);
done:
    td_release(flat);
    td_release(mean);
    td_release(var);
    return status;
}

static td_status run_instance_norm(td_call *call) {
    const td_value *a = call->args;
    const td_tensor *x = a[0].tensor;
    char text[TD_SHAPE_TEXT];
    td_status status = check_channels(call, 1, 4);
    if (status)
        return status;
    if (x->ndim < 3)
        return td_fail(TD_ESHAPE, "input must be (N, C, ...) with 3 dims or more, got shape %s",
                       td_tensor_shape_text(x, text));
    if (!a[5].b)
        return fixed_norm(call);
    const int64_t shape[4] = {x->sizes[0], x->sizes[1], 1, product(x->sizes, 2, x->ndim)};
    status = check_several(x, shape[3], "instance");
    if (status == TD_OK)
        status = check_followers(call);
    if (status == TD_OK)
        status = normalise(call, a[3], a[4], shape, a[7].f, true);
    if (status == TD_OK)
        status = follow_instances(call);
    if (status) {
        td_release(call->out[0]);
        call->out[0] = NULL;
    }
    return status;
}

/* Of `size` neighbouring channels, with zeros around them, the means, or the roots of the sums of
 * squares. */
static td_status over_channels(td_call *call, bool lengths) {
    td_tensor *x = NULL, *sum = NULL, *from = NULL, *to = NULL;
    int64_t size = call->args[1].i, channels = call->args[0].tensor->sizes[1];
    td_dtype dtype = (td_dtype)call->args[0].tensor->dtype;
    td_status status = TD_OK;
    TD_TRY(TD_APPLY(&x, to, call->args[0], TD_DTYPE(lengths ? td_dtype_wide(dtype) : dtype)));
    TD_TRY(TD_APPLY(&sum, zeros_like, TD_T(x)));
    for (int64_t by = -(size / 2); by <= (size - 1) / 2; by++) {
        int64_t apart = by < 0 ? -by : by, left = channels - apart;
        if (left <= 0) {
            by = by < 0 ? -channels : by; /* windows reach beyond all channels */
            if (by > 0)
                break;
            continue;
        }
        TD_STEP(&from, narrow, TD_T(x), TD_I(1), TD_I(by > 0 ? by : 0), TD_I(left));
        TD_STEP(&to, zeros_like, TD_T(x));
        TD_STEP(&to, narrow, TD_T(to), TD_I(1), TD_I(0), TD_I(apart));
        if (by > 0)
            TD_STEP(&to, cat, TD_TENSORS(2, ((td_tensor *[]){from, to})), TD_I(1));
        else
            TD_STEP(&to, cat, TD_TENSORS(2, ((td_tensor *[]){to, from})), TD_I(1));
        if (lengths)
            TD_STEP(&sum, hypot, TD_T(sum), TD_T(to));
        else
            TD_STEP(&sum, add, TD_T(sum), TD_T(to));
    }
    if (!lengths)
        TD_STEP(&sum, div, TD_T(sum), TD_F((double)size));
    call->out[0] = td_retain(sum);
done:
    td_release(x);
    td_release(sum);
    td_release(from);
    td_release(to);
    return status;
}

static td_status run_channel_windows(td_call *call) {
    return over_channels(call, false);
}
static td_status run_channel_lengths(td_call *call) {
    return over_channels(call, true);
}

/* ---- the table ---- */

#define NORM(name, parameters, text, ...)                                                          \
    TD_OPERATOR(name) = {.schema = parameters " -> Tensor",                                        \
                         .doc = text,                                                              \
                         .run = __VA_ARGS__,                                                       \
                         .autocast = {[TD_CUDA] = TD_AUTOCAST_FP32},                               \
                         .flags = TD_OP_FUNCTION_ONLY}
#define ROWS "int batch, int groups, int per, int inner, float eps, bool centered"

NORM(
    layer_norm,
    "(Tensor input, int[] normalized_shape, Tensor? weight=nil, Tensor? bias=nil, float eps=1e-05)",
    "Deviations from the mean over the standard deviation of the last dims, then weight and bias.",
    run_layer_norm,
    .shapes = "input (..., normalized_shape...), weight (normalized_shape...), bias "
              "(normalized_shape...) -> (..., normalized_shape...)",
    .takes = "floating, one dtype",
    .notes = "The variance is that of all elements, with no correction. normalized_shape are the "
             "last dims of input, a number for one.");
NORM(rms_norm, "(Tensor input, int[] normalized_shape, Tensor? weight=nil, float? eps=nil)",
     "input over the root of the mean square of the last dims, times weight.", run_rms_norm,
     .shapes = "input (..., normalized_shape...), weight (normalized_shape...) -> (..., "
               "normalized_shape...)",
     .takes = "floating, one dtype");
NORM(group_norm,
     "(Tensor input, int num_groups, Tensor? weight=nil, Tensor? bias=nil, float eps=1e-05)",
     "Channels (N, C, ...) normalised by groups, then weight and bias for each channel.",
     run_group_norm, .shapes = "input (N, C, ...), weight (C), bias (C) -> (N, C, ...)",
     .takes = "floating, one dtype",
     .notes = "Channels that can't be divided into groups are an error.");
TD_OPERATOR(instance_norm) = {
    .schema = "(Tensor input, Tensor? running_mean=nil, Tensor? running_var=nil, "
              "Tensor? weight=nil, Tensor? bias=nil, bool use_input_stats=true, "
              "float momentum=0.1, float eps=1e-05) -> Tensor",
    .doc = "Each channel of each of (N, C, ...) normalised by itself; running statistics follow.",
    .shapes =
        "input (N, C, ...), running_mean (C), running_var (C), weight (C), bias (C) -> (N, C, ...)",
    .takes = "floating, one dtype",
    .run = run_instance_norm,
    .flags = TD_OP_FUNCTION_ONLY,
};
TD_OPERATOR(batch_norm) = {
    .schema = "(Tensor input, Tensor? running_mean=nil, Tensor? running_var=nil, "
              "Tensor? weight=nil, Tensor? bias=nil, bool training=false, float momentum=0.1, "
              "float eps=1e-05) -> Tensor",
    .doc = "Channels (N, C, ...) normalised over the batch, which running statistics follow, or by "
           "these.",
    .shapes =
        "input (N, C, ...), running_mean (C), running_var (C), weight (C), bias (C) -> (N, C, ...)",
    .takes = "any, one dtype; floating where the batch is what it is normalised by",
    .notes = "With training the batch's own variance without correction; running_var follows the "
             "corrected one by momentum. One value per channel is then an error.",
    .run = run_batch_norm,
    .flags = TD_OP_FUNCTION_ONLY,
};
TD_OPERATOR(local_response_norm) = {
    .schema = "(Tensor input, int size, float alpha=0.0001, float beta=0.75, float k=1) -> Tensor",
    .doc = "input over (k + alpha * mean square of `size` neighbouring channels) ^ beta.",
    .shapes = "input (N, C, ...) -> (N, C, ...)",
    .takes = "floating",
    .formula =
        "if(input.ndim < 3, error(\"input must have 3 dims or more, got shape %\","
        "                         input.shape),"
        "if(size < 1, error(\"size must be positive, got %\", size),"
        "if(input.numel == 0, clone(input),"
        "if(alpha >= 0 and k >= 0,"
        "   over_twice(float_operand(input),"
        "              scaled_power(hypot(channel_lengths(float_operand(input), size) *"
        "                                 (alpha / size) ^ 0.5, k ^ 0.5), beta)),"
        "   input / (channel_windows(square(float_operand(input)), size) * alpha + k) ^ beta))))",
    .flags = TD_OP_FUNCTION_ONLY,
};
TD_OPERATOR(channel_windows) = {
    .schema = "(Tensor x, int size) -> Tensor",
    .doc = "Means over windows of neighbouring channels, zeros counted beyond the ends.",
    .run = run_channel_windows,
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(over_twice) = {
    .schema = "(Tensor x, Tensor y) -> Tensor",
    .doc = "x over the square of y, which may leave the dtype.",
    .formula = "to(x / y / y, x.dtype)",
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(scaled_power) = {
    .schema = "(Tensor x, float p) -> Tensor",
    .doc =
        "x ^ p by way of x over a power of two, so that powers of further gradients stay near 1.",
    .formula = "size = size_of_squares(x, x, 20); size ^ p * (x / size) ^ p",
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(channel_lengths) = {
    .schema = "(Tensor x, int size) -> Tensor",
    .doc = "Roots of sums of squares over windows of neighbouring channels, in the wide dtype.",
    .run = run_channel_lengths,
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(normalize) = {
    .schema = "(Tensor input, float p=2, dim dim=1, float eps=1e-12) -> Tensor",
    .doc = "input over its p-norm along a dim, or over eps where that is larger.",
    .shapes = "input (...) -> (...)",
    .takes = "floating",
    .notes = "dim counts from 1: as in PyTorch it is the second, the vectors of a batch, where it "
             "is not given.",
    .formula = "input / clamp_min(norm(input, p, dim, keepdim=true), eps)",
    .flags = TD_OP_OUT | TD_OP_FUNCTION_ONLY,
};

/* rows */
TD_OPERATOR(norm_rows) = {
    .schema = "(Tensor x, Tensor? weight, Tensor? bias, " ROWS ") -> "
              "(Tensor y, Tensor mean, Tensor rstd)",
    .doc = "batch x groups rows of per x inner elements normalised, with groups x per weights.",
    .rule = rule_norm_rows,
    .kernel = kernel_norm_rows,
    .dtypes = TD_DTYPES_FLOATS,
    .gradient =
        "d = norm_backward(g.y, x, weight, mean, rstd, batch, groups, per, inner, eps, centered);"
        "x: d.x; weight: reshape(d.weight, weight.shape); bias: reshape(d.bias, bias.shape)",
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(norm_backward) = {
    .schema = "(Tensor gy, Tensor x, Tensor? weight, Tensor mean, Tensor rstd, " ROWS ") -> "
              "(Tensor x, Tensor weight, Tensor bias)",
    .doc = "The gradients of norm_rows.",
    .run = run_norm_backward,
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(norm_gradients) = {
    .schema = "(Tensor gy, Tensor x, Tensor? weight, Tensor mean, Tensor rstd, " ROWS ") -> "
              "(Tensor dx, Tensor dweight, Tensor dbias)",
    .doc = "The gradients of norm_rows by a kernel.",
    .rule = rule_norm_gradients,
    .kernel = kernel_norm_gradients,
    .dtypes = TD_DTYPES_FLOATS,
    .flags = TD_OP_INTERNAL | TD_OP_NONDIFF,
};
TD_OPERATOR(norm_slopes) = {
    .schema = "(Tensor gy, Tensor x, Tensor? weight, Tensor mean, Tensor rstd, " ROWS ") -> "
              "(Tensor dx, Tensor dweight, Tensor dbias)",
    .doc = "The gradients of norm_rows by operators.",
    .formula = "rows = {batch, groups, per * inner}; v = reshape(gy, rows);"
               "wide = if(weight == nil, nil, flatten(expand(reshape(weight, {groups, per, 1}),"
               "                                      {groups, per, inner}), 1, 2));"
               "s = row_slopes(v, reshape(x, rows), wide, eps, centered);"
               "dx: reshape(s.dx, x.shape);"
               "dweight: reshape(sum(reshape(s.along, {batch, groups * per, inner}), {0, 2}), -1);"
               "dbias: reshape(sum(reshape(gy, {batch, groups * per, inner}), {0, 2}), -1)",
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(row_slopes) = {
    .schema = "(Tensor gy, Tensor x, Tensor? weight, float eps, bool centered) -> "
              "(Tensor dx, Tensor along)",
    .doc =
        "Gradient of normalised rows (the last dim), and gy times what was normalised; by lengths "
        "and quotients, since squares may leave the dtype.",
    .formula = "d = if(centered, x - mean(x, -1, keepdim=true), x);"
               "long = hypot(norm(d, 2, -1, keepdim=true) * x.size(-1) ^ -0.5, eps ^ 0.5);"
               "h = d / long; v = if(weight == nil, gy, gy * weight);"
               "u = if(centered, v - mean(v, -1, keepdim=true), v);"
               "dx: (u - h * mean(v * h, -1, keepdim=true)) / long; along: gy * h",
    .flags = TD_OP_INTERNAL,
};

/* channels */
TD_OPERATOR(channel_moments) = {
    .schema = "(Tensor x, float eps) -> (Tensor mean, Tensor variance, Tensor rstd)",
    .doc = "Mean and variance of each channel, and 1 over the root of the variance plus eps.",
    .rule = rule_channel_sums,
    .kernel = kernel_channel_sums,
    .dtypes = TD_DTYPES_FLOATS,
    .flags = TD_OP_INTERNAL | TD_OP_NONDIFF,
};
TD_OPERATOR(channel_sums) = {
    .schema = "(Tensor x, Tensor gy, Tensor mean, Tensor rstd) -> (Tensor first, Tensor second)",
    .doc = "Sums of gy and of gy (x - mean) rstd over each channel.",
    .rule = rule_channel_sums,
    .kernel = kernel_channel_sums,
    .dtypes = TD_DTYPES_FLOATS,
    .flags = TD_OP_INTERNAL | TD_OP_NONDIFF,
};
TD_OPERATOR(channel_map) = {
    .schema = "(Tensor? gy, Tensor? x, Tensor? k0, Tensor? k1, Tensor? k2, Tensor? k3, "
              "Tensor? k4=nil) -> Tensor",
    .doc = "gy k0 + (x - k1) k2 k4 + k3 with numbers for each channel.",
    .rule = rule_channel_map,
    .kernel = kernel_channel_map,
    .dtypes = TD_DTYPES_FLOATS,
    .flags = TD_OP_INTERNAL | TD_OP_NONDIFF,
};
TD_OPERATOR(batch_norm_own) = {
    .schema = "(Tensor x, Tensor? weight, Tensor? bias, float eps) -> "
              "(Tensor y, Tensor mean, Tensor variance, Tensor rstd)",
    .doc = "batch_norm by the batch's own statistics.",
    .formula = "m = channel_moments(x, eps);"
               "y: channel_map(nil, x, nil, m.mean, if(weight == nil, m.rstd, m.rstd * weight),"
               "               bias);"
               "mean: m.mean; variance: m.variance; rstd: m.rstd",
    .gradient = "d = batch_backward(g.y, x, weight, mean, rstd, eps, true);"
                "x: d.x; weight: d.weight; bias: d.bias",
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(batch_norm_fixed) = {
    .schema = "(Tensor x, Tensor mean, Tensor variance, Tensor? weight, Tensor? bias, float eps) "
              "-> Tensor",
    .doc = "batch_norm by given statistics.",
    .formula = "r = rsqrt(variance + eps);"
               "channel_map(nil, x, nil, mean, if(weight == nil, r, r * weight), bias)",
    .gradient = "r = rsqrt(variance + eps);"
                "d = batch_backward(g, x, weight, mean, r, eps, false);"
                "x: d.x; weight: d.weight; bias: d.bias;"
                "mean: -(if(weight == nil, r, r * weight) * d.bias);"
                "variance: -(if(weight == nil, d.weight, d.weight * weight) * r * r / 2)",
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(batch_backward) = {
    .schema = "(Tensor gy, Tensor x, Tensor? weight, Tensor mean, Tensor rstd, float eps, "
              "bool own) -> (Tensor x, Tensor weight, Tensor bias)",
    .doc = "The gradients of batch_norm; `own`: the statistics follow from x.",
    .run = run_batch_backward,
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(batch_gradients) = {
    .schema = "(Tensor gy, Tensor x, Tensor? weight, Tensor mean, Tensor rstd, float eps, "
              "bool own) -> (Tensor dx, Tensor dweight, Tensor dbias)",
    .doc = "The gradients of batch_norm by kernels.",
    .formula = "s = channel_sums(x, gy, mean, rstd); f = if(weight == nil, rstd, rstd * weight);"
               "n = x.numel / x.size(1);"
               "dx: if(own, channel_map(gy, x, f, mean, rstd, batch_share(f, s.first, n),"
               "                        batch_share(f, s.second, n)),"
               "       channel_map(gy, nil, f, nil, nil, nil));"
               "dweight: s.second; dbias: s.first",
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(batch_share) = {
    .schema = "(Tensor factor, Tensor total, number count) -> Tensor",
    .doc =
        "-(factor total / count): what a statistic of the batch takes from each of its elements.",
    .pointwise = &(const td_pointwise){.type = TD_PW_FLOATS,
                                       .primitive = -1,
                                       .formula = "-(factor * total / count)"},
    .dtypes = TD_DTYPES_FLOATS,
    .flags = TD_OP_INTERNAL | TD_OP_NONDIFF,
};
TD_OPERATOR(batch_slopes) = {
    .schema = "(Tensor gy, Tensor x, Tensor? weight, Tensor mean, Tensor rstd, float eps, "
              "bool own) -> (Tensor dx, Tensor dweight, Tensor dbias)",
    .doc = "The gradients of batch_norm by operators.",
    .formula = "t = transpose(x, 0, 1); h = flatten(t, 1, -1);"
               "v = flatten(transpose(gy, 0, 1), 1, -1); r = unsqueeze(rstd, 1);"
               "w = if(weight == nil, nil, unsqueeze(weight, 1));"
               "s = row_slopes(v, h, w, eps, true);"
               "dx: transpose(reshape(if(own, s.dx, v * if(weight == nil, r, r * w)), t.shape),"
               "              0, 1);"
               "dweight: sum(if(own, s.along, v * (h - unsqueeze(mean, 1)) * r), 1);"
               "dbias: sum(v, 1)",
    .flags = TD_OP_INTERNAL,
};
