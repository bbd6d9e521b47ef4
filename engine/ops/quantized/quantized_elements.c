/* quantized_elements.c: operators that calculate with the elements of quantized tensors: sums and
 * products rounded to a scale of their own, and means, which keep the scale. */
#include "engine/ops/make/copy.h"
#include "engine/ops/plan/plan.h"
#include "engine/ops/quantized/quantized.h"
#include "engine/ops/rule_helpers.h"

#include <math.h>
#include <string.h>

#define TD_FAMILY "quantized"

/* ---- sums and products ---- */

enum { A, B, A_SCALE, A_POINT, B_SCALE, B_POINT, SCALE, POINT, RELU, MULTIPLY };

static td_status rule_combine_ints(const td_call *call, td_meta *out) {
    const td_value *a = call->args;
    const td_tensor *x = a[A].tensor;
    int64_t low = 0, high = 0;
    td_quantized_range((td_dtype)x->dtype, &low, &high);
    int32_t point = (int32_t)a[POINT].i;
    *TD_PLAN(call, td_quantized_binary_plan) =
        (td_quantized_binary_plan){.a_scale = (float)td_arg_double(a[A_SCALE]),
                                   .b_scale = (float)td_arg_double(a[B_SCALE]),
                                   .out_scale = (float)td_arg_double(a[SCALE]),
                                   .a_zero_point = (int32_t)a[A_POINT].i,
                                   .b_zero_point = (int32_t)a[B_POINT].i,
                                   .out_zero_point = point,
                                   .low = a[RELU].b ? point : (int32_t)low,
                                   .high = (int32_t)high,
                                   .multiply = a[MULTIPLY].b};
    td_meta_like(out, x, (td_dtype)x->dtype);
    td_meta_lay(td_tensor_format(x), out);
    return TD_OK;
}

TD_KERNEL(kernel_combine_ints, quantized_binary, td_quantized_binary_plan, 1, 2)

static td_status check_pair(const td_tensor *x, const td_tensor *y) {
    const td_quantized *p = td_quantized_of(x), *q = td_quantized_of(y);
    bool bytes = x->dtype == TD_U8 || x->dtype == TD_I8;
    if (!p || !q || p->scales || q->scales || x->dtype != y->dtype || !bytes)
        return td_fail(TD_ETYPE,
                       "a is %s%s, b is %s%s: two quint8 or two qint8 tensors of one scale each "
                       "expected",
                       td_tensor_dtype_name(x), p && p->scales ? ", quantized by channel" : "",
                       td_tensor_dtype_name(y), q && q->scales ? ", quantized by channel" : "");
    return TD_OK;
}

/* The integers of both in their common shape, lying the same way. */
static td_status open_pair(const td_tensor *x, const td_tensor *y, td_tensor **ints) {
    td_tensor *lists[2] = {NULL, NULL};
    int64_t sizes[TD_MAX_DIMS];
    int ndim;
    td_status status = td_broadcast(x->ndim, x->sizes, y->ndim, y->sizes, &ndim, sizes);
    if (status)
        return status;
    TD_TRY(TD_APPLY(&lists[0], expand, TD_T(td_quantized_of(x)->ints), TD_INTS(ndim, sizes)));
    TD_TRY(TD_APPLY(&lists[1], expand, TD_T(td_quantized_of(y)->ints), TD_INTS(ndim, sizes)));
    td_format format = td_tensor_format(lists[0]);
    TD_TRY(td_pack(lists[0], format, &ints[0]));
    TD_TRY(td_pack(lists[1], format, &ints[1]));
done:
    td_release(lists[0]);
    td_release(lists[1]);
    return status;
}

static td_status combine(td_call *call, bool multiply) {
    const td_value *a = call->args;
    td_tensor *x = a[0].tensor, *y = a[1].tensor, *ints[2] = {NULL, NULL}, *made = NULL;
    double scale = td_arg_double(a[2]);
    td_status status = check_pair(x, y);
    if (status == TD_OK)
        status = td_check_scale(scale);
    if (status == TD_OK)
        status = td_check_zero_point(a[3].i, (td_dtype)x->dtype);
    if (status)
        return status;
    const td_quantized *p = td_quantized_of(x), *q = td_quantized_of(y);
    TD_TRY(open_pair(x, y, ints));
    TD_TRY(TD_APPLY(&made, combine_ints, TD_T(ints[0]), TD_T(ints[1]), TD_F(p->scale),
                    TD_I(p->zero_point), TD_F(q->scale), TD_I(q->zero_point), TD_F(scale), a[3],
                    a[4], TD_B(multiply)));
    status = td_quantized_new(made, scale, a[3].i, &call->out[0]);
done:
    td_release(ints[0]);
    td_release(ints[1]);
    td_release(made);
    return status;
}

static td_status run_quantized_add(td_call *call) {
    return combine(call, false);
}
static td_status run_quantized_mul(td_call *call) {
    return combine(call, true);
}

/* ---- forms ---- */

static td_status check_whole(const td_tensor *x) {
    return td_quantized_of(x)->scales
               ? td_fail(TD_ETYPE, "x is %s, quantized by channel: give x:dequantize() instead",
                         td_tensor_dtype_name(x))
               : TD_OK;
}

/* The call with the integers less the zero point, as floats: these are exact but for qint32. */
td_status td_quantized_average(td_call *call) {
    td_tensor *x = call->args[0].tensor, *y = NULL, *ints = NULL;
    const td_quantized *q = td_quantized_of(x);
    td_value args[TD_MAX_PARAMS];
    td_call floats = {.op = call->op, .args = args};
    if (call->ngiven)
        return td_fail(TD_ETYPE, "a quantized result can't go into out=");
    td_status status = check_whole(x);
    if (status)
        return status;
    TD_TRY(TD_APPLY(&y, to, TD_T(q->ints), TD_DTYPE(TD_F32)));
    TD_STEP(&y, sub, TD_T(y), TD_I(q->zero_point));
    for (int k = 0; k < call->op->nparams; k++)
        args[k] = k ? call->args[k] : TD_T(y);
    TD_TRY(td_op_call(&floats));
    if (floats.out[0]->dtype != TD_F32) {
        status = td_fail(TD_ETYPE, "a quantized result has no other dtype: give x:dequantize()");
        goto done;
    }
    TD_TRY(td_quantize_ints(floats.out[0], 1, q->zero_point, (td_dtype)x->dtype, &ints));
    status = td_quantized_new(ints, q->scale, q->zero_point, &call->out[0]);
done:
    floats.args = NULL;
    td_call_drop(&floats);
    td_release(y);
    td_release(ints);
    return status;
}

/* Integers as the call's result, or written into its first argument, whose parameters they have. */
static td_status deliver(td_call *call, td_tensor *ints, double scale, int64_t point) {
    td_tensor *x = call->args[0].tensor;
    if (!call->inplace)
        return td_quantized_new(ints, scale, point, &call->out[0]);
    td_status status = TD_APPLY_INPLACE(copy_, TD_T(td_quantized_of(x)->ints), TD_T(ints));
    if (status == TD_OK) {
        td_tensor_bump_version(x);
        call->out[0] = td_retain(x);
    }
    return status;
}

td_status td_quantized_relu(td_call *call) {
    td_tensor *x = call->args[0].tensor, *ints = NULL;
    const td_quantized *q = td_quantized_of(x);
    td_status status = check_whole(x);
    if (status == TD_OK && call->ngiven && !call->inplace)
        status = td_fail(TD_ETYPE, "a quantized result can't go into out=");
    if (status)
        return status;
    TD_TRY(TD_APPLY(&ints, clamp_min, TD_T(q->ints), TD_I(q->zero_point)));
    status = deliver(call, ints, q->scale, q->zero_point);
done:
    td_release(ints);
    return status;
}

/* The integers (new) of the call on the floats that x stands for. */
static td_status apply_floats(const td_call *call, td_tensor *x, double scale, int64_t point,
                              td_tensor **ints) {
    td_tensor *y = NULL;
    td_value args[TD_MAX_PARAMS];
    td_call floats = {.op = call->op, .args = args};
    td_status status = TD_OK;
    TD_TRY(TD_APPLY(&y, dequantize, TD_T(x)));
    for (int k = 0; k < call->op->nparams; k++)
        args[k] = k ? call->args[k] : TD_T(y);
    TD_TRY(td_op_call(&floats));
    status = td_quantize_ints(floats.out[0], scale, point, (td_dtype)x->dtype, ints);
done:
    floats.args = NULL;
    td_call_drop(&floats);
    td_release(y);
    return status;
}

/* A tensor of all that a byte of x can be, with x's parameters. */
static td_status open_all_bytes(const td_tensor *x, td_tensor **out) {
    int64_t low = 0, high = 0;
    td_tensor *ints = NULL;
    td_quantized_range((td_dtype)x->dtype, &low, &high);
    td_status status = TD_APPLY(&ints, arange, TD_I(low), TD_I(high + 1), TD_I(1),
                                TD_DTYPE((td_dtype)x->dtype), TD_DEVICE(td_tensor_device(x)));
    if (status == TD_OK)
        status = td_quantized_like(x, ints, out);
    td_release(ints);
    return status;
}

/* The same by a table of all bytes. */
static td_status apply_table(const td_call *call, td_tensor *x, double scale, int64_t point,
                             td_tensor **ints) {
    td_tensor *all = NULL, *table = NULL, *packed = NULL, *whole = td_quantized_of(x)->ints;
    td_status status = TD_OK;
    TD_TRY(open_all_bytes(x, &all));
    TD_TRY(apply_floats(call, all, scale, point, &table));
    TD_TRY(td_pack(whole, td_tensor_format(whole), &packed));
    status = TD_APPLY(ints, lookup_bytes, TD_T(packed), TD_T(table));
done:
    td_release(all);
    td_release(table);
    td_release(packed);
    return status;
}

enum { TABLE_PAYS = 2048 }; /* elements, from which on a table of 256 is quicker */

/* Is there one function of an element that the call is for all of them? */
static bool has_table(const td_call *call, const td_tensor *x) {
    bool one = x->numel >= TABLE_PAYS && (x->dtype == TD_U8 || x->dtype == TD_I8);
    for (int k = 1; k < call->op->nparams; k++)
        one = one && !td_arg_tensor(call->args[k]);
    return one;
}

/* The call on each element of x, quantized with these parameters. */
static td_status apply_elements(td_call *call, double scale, int64_t point) {
    td_tensor *x = call->args[0].tensor, *ints = NULL;
    td_status status = check_whole(x);
    if (status)
        return status;
    TD_TRY((has_table(call, x) ? apply_table : apply_floats)(call, x, scale, point, &ints));
    status = deliver(call, ints, scale, point);
done:
    td_release(ints);
    return status;
}

td_status td_quantized_pointwise(td_call *call) {
    const td_quantized *q = td_quantized_of(call->args[0].tensor);
    if (!q)
        return td_quantized_otherwise(call);
    if (call->ngiven && !call->inplace)
        return td_fail(TD_ETYPE, "a quantized result can't go into out=");
    return apply_elements(call, q->scale, q->zero_point);
}

/* The integer that a bound becomes, within the dtype's. */
static int64_t round_bound(double bound, const td_quantized *q, int64_t low, int64_t high) {
    float steps = rintf((float)bound * (1 / (float)q->scale));
    if (!(steps > (float)(low - q->zero_point)))
        return low;
    return steps < (float)(high - q->zero_point) ? (int64_t)steps + q->zero_point : high;
}

/* Bounds of numbers are rounded as elements are, and integers compared: rounding keeps the order.
 */
static td_status clamp_ints(td_call *call, td_tensor *x, const td_value bounds[2]) {
    const td_quantized *q = td_quantized_of(x);
    td_value ends[2] = {TD_NIL, TD_NIL};
    td_tensor *ints = NULL;
    int64_t low = 0, high = 0;
    td_status status = check_whole(x);
    if (status)
        return status;
    td_quantized_range((td_dtype)x->dtype, &low, &high);
    for (int k = 0; k < 2; k++)
        if (!td_is_nil(bounds[k]))
            ends[k] = TD_I(round_bound(td_arg_double(bounds[k]), q, low, high));
    TD_TRY(TD_APPLY(&ints, clamp, TD_T(q->ints), ends[0], ends[1]));
    status = deliver(call, ints, q->scale, q->zero_point);
done:
    td_release(ints);
    return status;
}

static bool is_number(td_value bound) {
    return td_is_nil(bound) || (!td_arg_tensor(bound) && !isnan(td_arg_double(bound)));
}

td_status td_quantized_clamp(td_call *call) {
    td_value bounds[2] = {TD_F(0), TD_F(6)}; /* of relu6, which has no other arguments */
    td_tensor *x = call->args[0].tensor;
    if (call->op->nparams == 3)
        memcpy(bounds, call->args + 1, sizeof bounds);
    if (!td_quantized_of(x) || !is_number(bounds[0]) || !is_number(bounds[1]))
        return td_quantized_pointwise(call);
    if (call->ngiven && !call->inplace)
        return td_fail(TD_ETYPE, "a quantized result can't go into out=");
    return clamp_ints(call, x, bounds);
}

/* A result of `steps` for 1, whose zero point is `from_low` above the lowest integer. */
static td_status apply_fixed(td_call *call, double steps, int64_t from_low) {
    const td_tensor *x = call->args[0].tensor;
    int64_t low = 0, high = 0;
    if (call->ngiven || call->inplace)
        return td_fail(TD_ETYPE, "a quantized result of another scale can't be written in place or "
                                 "go into out=");
    if (x->dtype != TD_U8 && x->dtype != TD_I8)
        return td_fail(TD_ETYPE, "x is %s: quint8 or qint8 expected: give x:dequantize() instead",
                       td_tensor_dtype_name(x));
    td_quantized_range((td_dtype)x->dtype, &low, &high);
    return apply_elements(call, 1 / steps, low + from_low);
}

td_status td_quantized_unit(td_call *call) {
    return apply_fixed(call, 256, 0);
}
td_status td_quantized_signed_unit(td_call *call) {
    return apply_fixed(call, 128, 128);
}

static td_status rule_lookup_bytes(const td_call *call, td_meta *out) {
    const td_tensor *x = call->args[0].tensor, *table = call->args[1].tensor;
    bool bytes = x->dtype == TD_U8 || x->dtype == TD_I8;
    if (!bytes || table->dtype != x->dtype || table->numel != 256 || !table->contiguous)
        return td_fail(TD_ETYPE, "bytes and a table of 256 of their dtype expected");
    if (!td_tensor_is_in_format(x, td_tensor_format(x)))
        return td_fail(TD_EVALUE, "x lies with gaps: give x:contiguous()");
    *TD_PLAN(call, td_quantized_lookup_plan) = (td_quantized_lookup_plan){0};
    td_meta_like(out, x, (td_dtype)x->dtype);
    td_meta_lay(td_tensor_format(x), out);
    return TD_OK;
}

TD_KERNEL(kernel_lookup_bytes, quantized_lookup, td_quantized_lookup_plan, 1, 2)

/* ---- the table ---- */

TD_OPERATOR(lookup_bytes) = {
    .schema = "(Tensor x, Tensor table) -> Tensor",
    .doc =
        "What a table of 256 has for each byte, in the order of the integers from the lowest on.",
    .rule = rule_lookup_bytes,
    .kernel = kernel_lookup_bytes,
    .dtypes = TD_DTYPES_ALL,
    .flags = TD_OP_NONDIFF | TD_OP_INTERNAL | TD_OP_FUNCTION_ONLY,
};
TD_OPERATOR(combine_ints) = {
    .schema = "(Tensor a, Tensor b, number a_scale, int a_zero_point, number b_scale, "
              "int b_zero_point, number scale, int zero_point, bool relu, bool multiply) -> Tensor",
    .doc = "Sums or products of what bytes stand for, as bytes.",
    .rule = rule_combine_ints,
    .kernel = kernel_combine_ints,
    .dtypes = TD_DTYPES_ALL,
    .flags = TD_OP_NONDIFF | TD_OP_INTERNAL,
};
TD_OPERATOR(quantized_add) = {
    .schema = "(Tensor a, Tensor b, number scale, int zero_point, bool relu=false) -> Tensor",
    .doc = "a + b of two quantized tensors, quantized with a scale and a zero point.",
    .run = run_quantized_add,
    .flags = TD_OP_NONDIFF | TD_OP_INTERNAL | TD_OP_FUNCTION_ONLY | TD_OP_ANY_LAYOUT,
};
TD_OPERATOR(quantized_mul) = {
    .schema = "(Tensor a, Tensor b, number scale, int zero_point, bool relu=false) -> Tensor",
    .doc = "a * b of two quantized tensors, quantized with a scale and a zero point.",
    .run = run_quantized_mul,
    .flags = TD_OP_NONDIFF | TD_OP_INTERNAL | TD_OP_FUNCTION_ONLY | TD_OP_ANY_LAYOUT,
};
