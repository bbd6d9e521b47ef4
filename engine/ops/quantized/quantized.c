/* quantized.c: quantized tensors of floats and of integers, and back to floats. README.md has the
 * rule that rounds. */
#include "engine/ops/quantized/quantized.h"

#include "engine/ops/make/copy.h"
#include "engine/ops/plan/plan.h"
#include "engine/ops/rule_helpers.h"

#include <float.h>
#include <math.h>

#define TD_FAMILY "quantized"

/* ---- parameters ---- */

td_status td_check_scale(double scale) {
    if (scale >= (double)FLT_MIN && scale <= (double)FLT_MAX)
        return TD_OK;
    return td_fail(TD_EVALUE,
                   "a scale is above 0, finite and not denormal in float32 (from 1.175494e-38 on), "
                   "got %g",
                   isnan(scale) ? (double)NAN : scale); /* whose sign means nothing */
}

td_status td_check_zero_point(int64_t zero_point, td_dtype ints) {
    int64_t low, high;
    if (!td_quantized_range(ints, &low, &high))
        return td_fail(TD_EDTYPE,
                       "integers of a quantized tensor are uint8, int8 or int32, got "
                       "%s",
                       td_dtype_name(ints));
    if (zero_point >= low && zero_point <= high)
        return TD_OK;
    return td_fail(TD_EVALUE, "a zero point of %s is from %lld to %lld, got %lld",
                   td_quantized_name(ints), (long long)low, (long long)high, (long long)zero_point);
}

/* Scales and zero points by channel: one of each for every place along the axis of x, kept as
 * float64 and int64 on x's device, new. */
static td_status read_channels(const td_tensor *x, td_tensor *scales, td_tensor *zero_points,
                               int64_t dim, td_dtype ints, td_tensor **out_scales,
                               td_tensor **out_zero_points, int *axis) {
    td_status status = TD_OK;
    td_tensor *host_scales = NULL, *host_points = NULL;
    char shape[TD_SHAPE_TEXT], other[TD_SHAPE_TEXT];
    *out_scales = *out_zero_points = NULL;
    TD_TRY(td_wrap_dim(dim, x->ndim, axis));
    if (x->ndim == 0)
        return td_fail(TD_EINDEX, "a 0-dim tensor has no axis: quantize_per_tensor");
    if (scales->ndim != 1 || zero_points->ndim != 1 || scales->numel != x->sizes[*axis] ||
        zero_points->numel != scales->numel)
        return td_fail(TD_ESHAPE,
                       "scales and zero_points have an element for each of the %lld places along "
                       "dim %d, got shapes %s and %s",
                       (long long)x->sizes[*axis], *axis + 1, td_tensor_shape_text(scales, shape),
                       td_tensor_shape_text(zero_points, other));
    if (!td_dtype_is_float((td_dtype)scales->dtype) ||
        td_dtype_is_float((td_dtype)zero_points->dtype) || zero_points->dtype == TD_BOOL)
        return td_fail(TD_EDTYPE, "scales are floating and zero_points integers, got %s and %s",
                       td_tensor_dtype_name(scales), td_tensor_dtype_name(zero_points));
    td_value where = TD_DEVICE(td_tensor_device(x));
    TD_TRY(TD_APPLY(out_scales, to, TD_T(scales), TD_DTYPE(TD_F64), where, TD_B(true)));
    TD_TRY(TD_APPLY(out_zero_points, to, TD_T(zero_points), TD_DTYPE(TD_I64), where, TD_B(true)));
    TD_STEP(out_scales, contiguous, TD_T(*out_scales));
    TD_STEP(out_zero_points, contiguous, TD_T(*out_zero_points));
    if (!td_has_elements(scales) || !td_has_elements(zero_points))
        goto done;
    TD_TRY(TD_APPLY(&host_scales, to, TD_T(*out_scales), TD_NIL, TD_DEVICE(TD_DEVICE_CPU)));
    TD_TRY(TD_APPLY(&host_points, to, TD_T(*out_zero_points), TD_NIL, TD_DEVICE(TD_DEVICE_CPU)));
    for (int64_t k = 0; k < scales->numel && status == TD_OK; k++) {
        status = td_check_scale(((const double *)host_scales->data)[k]);
        if (status == TD_OK)
            status = td_check_zero_point(((const int64_t *)host_points->data)[k], ints);
    }
done:
    td_release(host_scales);
    td_release(host_points);
    if (status) {
        td_release(*out_scales);
        td_release(*out_zero_points);
        *out_scales = *out_zero_points = NULL;
    }
    return status;
}

/* ---- to integers ---- */

/* Channels of x along an axis; all of x is one where the axis is negative. */
static td_status quantize_along(td_tensor *x, td_tensor *scales, td_tensor *zero_points, int axis,
                                td_dtype ints, td_tensor **out) {
    td_tensor *plain = NULL, *factors = NULL, *points = NULL;
    td_status status = td_check_float((td_dtype)x->dtype);
    if (status)
        return status;
    TD_TRY(TD_APPLY(&plain, detach, TD_T(x)));
    TD_STEP(&plain, to, TD_T(plain), TD_DTYPE(TD_F32));
    TD_STEP(&plain, contiguous, TD_T(plain));
    TD_TRY(TD_APPLY(&factors, to, TD_T(scales), TD_DTYPE(TD_F32)));
    TD_TRY(TD_APPLY(&points, to, TD_T(zero_points), TD_DTYPE(TD_I32)));
    status = TD_APPLY(out, quantize_ints, TD_T(plain), TD_T(factors), TD_T(points), TD_I(axis),
                      TD_DTYPE(ints));
done:
    td_release(plain);
    td_release(factors);
    td_release(points);
    return status;
}

td_status td_quantization_number(td_device device, td_value number, td_tensor **out) {
    td_dtype dtype = number.kind == TD_KIND_FLOAT ? TD_F32 : TD_I32;
    if (device.type != TD_CPU) /* written there: nothing is sent */
        return TD_APPLY(out, full, TD_INTS(0, NULL), number, TD_DTYPE(dtype), TD_DEVICE(device));
    return number.kind == TD_KIND_FLOAT ? td_tensor_scalar(dtype, number.f, out)
                                        : td_tensor_scalar_int(dtype, number.i, out);
}

td_status td_quantize_ints(td_tensor *x, double scale, int64_t zero_point, td_dtype ints,
                           td_tensor **out) {
    td_tensor *factor = NULL, *point = NULL;
    td_device device = td_tensor_device(x);
    td_status status = TD_OK;
    *out = NULL;
    TD_TRY(td_quantization_number(device, TD_F(scale), &factor));
    TD_TRY(td_quantization_number(device, TD_I(zero_point), &point));
    status = quantize_along(x, factor, point, -1, ints, out);
done:
    td_release(factor);
    td_release(point);
    return status;
}

td_status td_quantize_ints_as(td_tensor *x, const td_tensor *like, td_tensor **out) {
    const td_quantized *q = td_quantized_of(like);
    return q->scales
               ? quantize_along(x, q->scales, q->zero_points, q->axis, (td_dtype)like->dtype, out)
               : td_quantize_ints(x, q->scale, q->zero_point, (td_dtype)like->dtype, out);
}

static td_status rule_quantize_ints(const td_call *call, td_meta *out) {
    const td_tensor *x = call->args[0].tensor;
    int axis = (int)call->args[3].i;
    td_quantize_plan *plan = TD_PLAN(call, td_quantize_plan);
    int64_t low = 0, high = 0;
    *plan = (td_quantize_plan){.outer = 1, .channels = 1, .inner = 1};
    for (int d = 0; d < x->ndim; d++)
        *(d < axis ? &plan->outer : d == axis ? &plan->channels : &plan->inner) *= x->sizes[d];
    td_quantized_range(call->args[4].dtype, &low, &high);
    plan->low = (int32_t)low;
    plan->high = (int32_t)high;
    td_meta_like(out, x, call->args[4].dtype);
    return TD_OK;
}

TD_KERNEL(kernel_quantize_ints, quantize, td_quantize_plan, 1, 3)

static td_status run_quantize_per_tensor(td_call *call) {
    const td_value *a = call->args;
    td_dtype ints = td_quantized_find(a[3].string);
    double scale = td_arg_double(a[1]);
    td_tensor *made = NULL;
    td_status status = td_check_scale(scale);
    if (status == TD_OK)
        status = td_check_zero_point(a[2].i, ints);
    if (status == TD_OK)
        status = td_quantize_ints(a[0].tensor, scale, a[2].i, ints, &made);
    if (status == TD_OK)
        status = td_quantized_new(made, scale, a[2].i, &call->out[0]);
    td_release(made);
    return status;
}

static td_status run_quantize_per_channel(td_call *call) {
    const td_value *a = call->args;
    td_dtype ints = td_quantized_find(a[4].string);
    td_tensor *made = NULL, *scales = NULL, *zero_points = NULL;
    int axis;
    td_status status = read_channels(a[0].tensor, a[1].tensor, a[2].tensor, a[3].i, ints, &scales,
                                     &zero_points, &axis);
    if (status == TD_OK)
        status = quantize_along(a[0].tensor, scales, zero_points, axis, ints, &made);
    if (status == TD_OK)
        status = td_quantized_new_by_channel(made, scales, zero_points, axis, &call->out[0]);
    td_release(made);
    td_release(scales);
    td_release(zero_points);
    return status;
}

/* ---- of integers ---- */

static td_status run_make_per_tensor(td_call *call) {
    const td_value *a = call->args;
    td_status status = td_check_scale(td_arg_double(a[1]));
    if (status == TD_OK)
        status = td_check_zero_point(a[2].i, (td_dtype)a[0].tensor->dtype);
    return status ? status
                  : td_quantized_new(a[0].tensor, td_arg_double(a[1]), a[2].i, &call->out[0]);
}

static td_status run_make_per_channel(td_call *call) {
    const td_value *a = call->args;
    td_tensor *scales = NULL, *zero_points = NULL;
    int axis;
    td_status status = td_check_zero_point(0, (td_dtype)a[0].tensor->dtype);
    if (status == TD_OK)
        status = read_channels(a[0].tensor, a[1].tensor, a[2].tensor, a[3].i,
                               (td_dtype)a[0].tensor->dtype, &scales, &zero_points, &axis);
    if (status == TD_OK)
        status = td_quantized_new_by_channel(a[0].tensor, scales, zero_points, axis, &call->out[0]);
    td_release(scales);
    td_release(zero_points);
    return status;
}

/* ---- to floats ---- */

/* One parameter for each place along the axis, in a shape that broadcasts over x. */
static td_status spread(td_tensor *parameters, td_dtype dtype, const td_tensor *x, int axis,
                        td_tensor **out) {
    int64_t sizes[TD_MAX_DIMS];
    for (int d = 0; d < x->ndim; d++)
        sizes[d] = d == axis ? x->sizes[d] : 1;
    td_status status = TD_APPLY(out, to, TD_T(parameters), TD_DTYPE(dtype));
    if (status == TD_OK)
        TD_STEP(out, reshape, TD_T(*out), TD_INTS(x->ndim, sizes));
done:
    return status;
}

/* (q - zero point) * scale: the difference is one of integers, the product one of float32. Bytes
 * are subtracted as floats, which is exact. */
static td_status run_dequantize(td_call *call) {
    td_tensor *x = call->args[0].tensor, *y = NULL, *scales = NULL, *points = NULL;
    const td_quantized *q = td_quantized_of(x);
    td_status status = TD_OK;
    if (x->layout != TD_STRIDED && !q)
        return td_fail(TD_ETYPE, "a quantized or a strided tensor expected, got a sparse one");
    if (!q)
        return TD_APPLY(&call->out[0], to, TD_T(x), TD_DTYPE(TD_F32));
    const td_dtype difference = q->ints->dtype == TD_I32 ? TD_I32 : TD_F32;
    if (q->scales) {
        TD_TRY(spread(q->zero_points, difference, x, q->axis, &points));
        TD_TRY(spread(q->scales, TD_F32, x, q->axis, &scales));
    } else if (difference == TD_F32) {
        TD_TRY(td_quantization_number(td_tensor_device(x), TD_F((double)q->zero_point), &points));
    }
    TD_TRY(TD_APPLY(&y, sub, TD_T(q->ints), points ? TD_T(points) : TD_I(q->zero_point)));
    TD_STEP(&y, to, TD_T(y), TD_DTYPE(TD_F32));
    TD_TRY(TD_APPLY_INPLACE(mul, TD_T(y), scales ? TD_T(scales) : TD_F((double)(float)q->scale)));
    call->out[0] = td_retain(y);
done:
    td_release(y);
    td_release(scales);
    td_release(points);
    return status;
}

static td_status run_int_repr(td_call *call) {
    td_quantized *q = td_quantized_of(call->args[0].tensor);
    if (!q)
        return td_fail(TD_ETYPE, "x is %s: a quantized tensor expected",
                       td_tensor_dtype_name(call->args[0].tensor));
    return TD_APPLY(&call->out[0], clone, TD_T(q->ints));
}

/* ---- the table ---- */

#define DTYPES "\"quint8\"|\"qint8\"|\"qint32\" dtype"

TD_OPERATOR(quantize_per_tensor) = {
    .schema = "(Tensor x, number scale, int zero_point, " DTYPES ") -> Tensor",
    .doc = "x as integers of one scale and zero point: clamp(zero_point + rint(x * (1 / scale))), "
           "half to even, in float32. A scale is above 0 and not denormal; no gradient flows.",
    .shapes = "x (...) -> (...)",
    .takes = "floating",
    .run = run_quantize_per_tensor,
    .flags = TD_OP_NONDIFF | TD_OP_FUNCTION_ONLY,
};
TD_OPERATOR(quantize_per_channel) = {
    .schema = "(Tensor x, Tensor scales, Tensor zero_points, dim axis, " DTYPES ") -> Tensor",
    .doc = "x as integers with a scale and a zero point for each place along an axis.",
    .shapes = "x (...), scales (c), zero_points (c) -> (...)",
    .takes = "x and scales: floating; zero_points: integers",
    .run = run_quantize_per_channel,
    .flags = TD_OP_NONDIFF | TD_OP_FUNCTION_ONLY,
};
TD_OPERATOR(quantize_ints) = {
    .schema = "(Tensor x, Tensor scales, Tensor zero_points, int axis, dtype dtype) -> Tensor",
    .doc = "The integers of quantize_per_channel, or, axis -1, of quantize_per_tensor.",
    .rule = rule_quantize_ints,
    .kernel = kernel_quantize_ints,
    .dtypes = TD_DTYPES_ALL,
    .flags = TD_OP_NONDIFF | TD_OP_INTERNAL,
};
TD_OPERATOR(make_per_tensor_quantized_tensor) = {
    .schema = "(Tensor ints, number scale, int zero_point) -> Tensor",
    .doc = "A quantized tensor of integers that are there, which it shares.",
    .run = run_make_per_tensor,
    .flags = TD_OP_NONDIFF | TD_OP_INTERNAL | TD_OP_FUNCTION_ONLY,
};
TD_OPERATOR(make_per_channel_quantized_tensor) = {
    .schema = "(Tensor ints, Tensor scales, Tensor zero_points, dim axis) -> Tensor",
    .doc = "The same with a scale and a zero point for each place along an axis.",
    .run = run_make_per_channel,
    .flags = TD_OP_NONDIFF | TD_OP_INTERNAL | TD_OP_FUNCTION_ONLY,
};
TD_OPERATOR(dequantize) = {
    .schema = "(Tensor x) -> Tensor",
    .doc =
        "The floats that a quantized tensor stands for, in float32: (q - zero point) * scale; of "
        "another tensor itself in float32. Without gradient.",
    .shapes = "x (...) -> (...)",
    .takes = "any; the result is float32",
    .run = run_dequantize,
    .flags = TD_OP_NONDIFF | TD_OP_ANY_LAYOUT,
};
TD_OPERATOR(int_repr) = {
    .schema = "(Tensor x) -> Tensor",
    .doc = "The integers of a quantized tensor, a copy: uint8, int8 or int32.",
    .shapes = "x (...) -> (...)",
    .run = run_int_repr,
    .flags = TD_OP_NONDIFF | TD_OP_METHOD_ONLY | TD_OP_ANY_LAYOUT,
};
