/* quantized_linear.c: products of rows of bytes with packed weights: rows quantized beforehand, and
 * floats whose range is looked at in each call. */
#include "engine/ops/make/copy.h"
#include "engine/ops/plan/plan.h"
#include "engine/ops/plan/quantized_pack.h"
#include "engine/ops/quantized/quantized.h"
#include "engine/ops/rule_helpers.h"

#include <math.h>
#include <string.h>

#define TD_FAMILY "quantized"

/* ---- products of integers ---- */

enum { X, PACKED, BIAS, X_SCALE, X_POINT, OUT_SCALE, OUT_POINT, DTYPE, RELU };

static td_status rule_linear_ints(const td_call *call, td_meta *out) {
    const td_value *a = call->args;
    const td_tensor *x = a[X].tensor;
    td_quantized_linear_plan *plan = TD_PLAN(call, td_quantized_linear_plan);
    td_qweight weight;
    int64_t low = 0, high = 0;
    td_status status = td_qweight_read(a[PACKED].tensor, &weight);
    if (status)
        return status;
    td_quantized_range(a[DTYPE].dtype, &low, &high);
    int64_t point = a[OUT_POINT].i;
    *plan =
        (td_quantized_linear_plan){.rows = x->sizes[0],
                                   .columns = weight.columns,
                                   .depth = weight.depth,
                                   .to = {.x_scale = (float)td_arg_double(a[X_SCALE]),
                                          .out_scale = (float)td_arg_double(a[OUT_SCALE]),
                                          .x_zero_point = (int32_t)a[X_POINT].i,
                                          .out_zero_point = (int32_t)point,
                                          .low = (int32_t)(a[RELU].b && point > low ? point : low),
                                          .high = (int32_t)high,
                                          .relu = a[RELU].b}};
    td_meta_set(out, a[DTYPE].dtype, 2, (const int64_t[]){x->sizes[0], weight.columns});
    return TD_OK;
}

TD_KERNEL(kernel_linear_ints, quantized_linear, td_quantized_linear_plan, 1, 3)

td_status td_quantized_check_bias(const td_tensor *bias, int64_t columns) {
    char shape[TD_SHAPE_TEXT];
    if (!bias)
        return TD_OK;
    if (bias->dtype != TD_F32 || bias->layout != TD_STRIDED)
        return td_fail(TD_EDTYPE, "bias is %s: a float32 tensor expected",
                       td_tensor_dtype_name(bias));
    if (bias->ndim != 1 || bias->sizes[0] != columns)
        return td_fail(TD_ESHAPE, "bias of shape %s doesn't fit %lld features",
                       td_tensor_shape_text(bias, shape), (long long)columns);
    return TD_OK;
}

td_status td_quantized_check_packed(const td_tensor *x, const td_tensor *packed,
                                    td_qweight *weight) {
    if (!td_device_same(td_tensor_device(packed), td_tensor_device(x)))
        return td_fail(TD_EDEVICE, "x lies on %s, the packed weights on %s: pack them there",
                       td_device_name(td_tensor_device(x)),
                       td_device_name(td_tensor_device(packed)));
    return td_qweight_read(packed, weight);
}

/* What is known of the weights; x has their depth, and a bias one float32 for each of their
 * columns. */
static td_status check_operands(const td_tensor *x, const td_tensor *packed, const td_tensor *bias,
                                td_qweight *weight) {
    char shape[TD_SHAPE_TEXT];
    td_status status = td_quantized_check_packed(x, packed, weight);
    if (status)
        return status;
    if (weight->depthwise || weight->groups != 1)
        return td_fail(TD_ETYPE, "packed weights of a linear layer expected, got a convolution's");
    if (x->ndim < 1 || x->sizes[x->ndim - 1] != weight->depth)
        return td_fail(TD_ESHAPE, "x of shape %s doesn't fit a weight of shape (%lld, %lld)",
                       td_tensor_shape_text(x, shape), (long long)weight->columns,
                       (long long)weight->depth);
    return td_quantized_check_bias(bias, weight->columns);
}

/* What a product is asked for. */
typedef struct product {
    td_tensor *ints, *packed, *bias; /* bias or NULL */
    td_qweight weight;
    double x_scale, out_scale;
    int64_t x_point, out_point;
    td_dtype to;
    bool relu;
} product;

/* The product of integers whose last dim is the depth, in the shape of the others and the columns.
 */
static td_status multiply(const product *p, td_tensor **out) {
    td_tensor *rows = NULL, *bias = NULL;
    td_tensor *x = p->ints;
    int64_t flat[2] = {x->numel / p->weight.depth, p->weight.depth}, sizes[TD_MAX_DIMS];
    td_status status = TD_OK;
    memcpy(sizes, x->sizes, sizeof(int64_t) * x->ndim);
    sizes[x->ndim - 1] = p->weight.columns;
    TD_TRY(td_contiguous(x, &rows));
    if (x->ndim != 2)
        TD_STEP(&rows, view, TD_T(rows), TD_INTS(2, flat));
    if (p->bias) {
        TD_TRY(TD_APPLY(&bias, detach, TD_T(p->bias)));
        TD_STEP(&bias, contiguous, TD_T(bias));
    }
    TD_TRY(TD_APPLY(out, linear_ints, TD_T(rows), TD_T(p->packed), td_tensor_or_nil(bias),
                    TD_F(p->x_scale), TD_I(p->x_point), TD_F(p->out_scale), TD_I(p->out_point),
                    TD_DTYPE(p->to), TD_B(p->relu)));
    if (x->ndim != 2)
        TD_STEP(out, view, TD_T(*out), TD_INTS(x->ndim, sizes));
done:
    td_release(rows);
    td_release(bias);
    if (status) {
        td_release(*out);
        *out = NULL;
    }
    return status;
}

/* ---- rows that are quantized ---- */

static td_status run_quantized_linear(td_call *call) {
    const td_value *a = call->args;
    td_tensor *x = a[0].tensor, *made = NULL;
    const td_quantized *q = td_quantized_of(x);
    product p = {.packed = a[1].tensor,
                 .bias = td_arg_tensor(a[2]),
                 .out_scale = td_arg_double(a[3]),
                 .out_point = a[4].i,
                 .to = TD_U8,
                 .relu = a[5].b};
    if (!q || q->scales || x->dtype != TD_U8)
        return td_fail(TD_ETYPE, "x is %s%s: a quint8 tensor of one scale expected",
                       td_tensor_dtype_name(x), q && q->scales ? ", quantized by channel" : "");
    td_status status = check_operands(x, p.packed, p.bias, &p.weight);
    if (status == TD_OK)
        status = td_check_scale(p.out_scale);
    if (status == TD_OK)
        status = td_check_zero_point(p.out_point, p.to);
    if (status)
        return status;
    p.ints = q->ints;
    p.x_scale = q->scale;
    p.x_point = q->zero_point;
    status = multiply(&p, &made);
    if (status == TD_OK)
        status = td_quantized_new(made, p.out_scale, p.out_point, &call->out[0]);
    td_release(made);
    return status;
}

/* ---- rows of floats ---- */

/* The scale and zero point of bytes up to `high` for floats from `low` to `above`, as PyTorch's
 * dynamic kernels choose them (ATen/native/quantized/cpu/QuantUtils.h, ChooseQuantizationParams):
 * 0 is an integer, and the zero point comes from the end that gives the smaller error. */
static void choose_parameters(float low, float above, int high, double *scale, int64_t *point) {
    const float least = 6.1e-5f;
    low = low < 0 ? low : 0;
    above = above > 0 ? above : 0;
    *scale = ((double)above - (double)low) / high;
    if ((float)*scale == 0 || isinf(1 / (float)*scale))
        *scale = 0.1;
    if (*scale < (double)least) {
        float original = (float)*scale, wider = least / original;
        *scale = (double)least;
        if (low == 0)
            above = least * (float)high;
        else if (above == 0)
            low = -least * (float)high;
        else {
            low *= wider;
            above *= wider;
        }
    }
    double from_low = -(double)low / *scale, from_high = high - (double)above / *scale;
    double low_error = -fabs((double)low / *scale),
           high_error = high - fabs((double)above / *scale);
    double start = low_error < high_error ? from_low : from_high;
    *point = start < 0 ? 0 : start > high ? high : (int64_t)nearbyint(start);
}

/* The range of x, which has elements. */
static td_status find_range(td_tensor *x, double *low, double *high) {
    td_tensor *ends[2] = {NULL, NULL};
    td_status status = TD_OK;
    TD_TRY(TD_APPLY(ends, aminmax, TD_T(x)));
    TD_TRY(td_tensor_item(ends[0], low));
    TD_TRY(td_tensor_item(ends[1], high));
    if (!isfinite(*low) || !isfinite(*high))
        status = td_fail(TD_EVALUE, "x has NaN or infinity in it: there is no scale for it");
done:
    td_release(ends[0]);
    td_release(ends[1]);
    return status;
}

static td_status run_quantized_linear_dynamic(td_call *call) {
    const td_value *a = call->args;
    td_tensor *x = NULL, *ints = NULL, *scale = NULL, *point = NULL;
    product p = {.packed = a[1].tensor,
                 .bias = td_arg_tensor(a[2]),
                 .out_scale = 1,
                 .to = TD_F32,
                 .relu = a[3].b};
    double low = 0, high = 0;
    td_status status = td_check_float((td_dtype)a[0].tensor->dtype);
    if (status == TD_OK)
        status = check_operands(a[0].tensor, p.packed, p.bias, &p.weight);
    if (status)
        return status;
    TD_TRY(TD_APPLY(&x, detach, a[0]));
    TD_STEP(&x, to, TD_T(x), TD_DTYPE(TD_F32));
    TD_STEP(&x, contiguous, TD_T(x));
    if (x->numel)
        TD_TRY(find_range(x, &low, &high));
    choose_parameters((float)low, (float)high, a[4].b ? INT8_MAX : UINT8_MAX, &p.x_scale,
                      &p.x_point);
    TD_TRY(td_quantization_number(td_tensor_device(x), TD_F(p.x_scale), &scale));
    TD_TRY(td_quantization_number(td_tensor_device(x), TD_I(p.x_point), &point));
    TD_TRY(TD_APPLY(&ints, quantize_ints, TD_T(x), TD_T(scale), TD_T(point), TD_I(-1),
                    TD_DTYPE(TD_U8)));
    p.ints = ints;
    status = multiply(&p, &call->out[0]);
done:
    td_release(x);
    td_release(ints);
    td_release(scale);
    td_release(point);
    return status;
}

/* ---- the table ---- */

TD_OPERATOR(linear_ints) = {
    .schema = "(Tensor x, Tensor packed, Tensor? bias, number x_scale, int x_zero_point, "
              "number scale, int zero_point, dtype dtype, bool relu) -> Tensor",
    .doc = "Rows of bytes times packed weights, plus a bias, as float32, uint8 or int8.",
    .rule = rule_linear_ints,
    .kernel = kernel_linear_ints,
    .dtypes = TD_DTYPES_ALL,
    .flags = TD_OP_NONDIFF | TD_OP_INTERNAL,
};
TD_OPERATOR(quantized_linear) = {
    .schema = "(Tensor x, Tensor packed, Tensor? bias, number scale, int zero_point, "
              "bool relu=false) -> Tensor",
    .doc = "quint8 x times packed weights, plus bias, as quint8 of a scale and a zero point.",
    .run = run_quantized_linear,
    .flags = TD_OP_NONDIFF | TD_OP_INTERNAL | TD_OP_FUNCTION_ONLY | TD_OP_ANY_LAYOUT,
};
TD_OPERATOR(quantized_linear_dynamic) = {
    .schema = "(Tensor x, Tensor packed, Tensor? bias=nil, bool relu=false, "
              "bool reduce_range=false) -> Tensor",
    .doc = "float32 x, quantized by its own range, times packed weights, plus bias, in float32.",
    .run = run_quantized_linear_dynamic,
    .flags = TD_OP_NONDIFF | TD_OP_INTERNAL | TD_OP_FUNCTION_ONLY,
};
