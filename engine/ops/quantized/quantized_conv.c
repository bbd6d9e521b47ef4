/* quantized_conv.c: convolutions of quint8 tensors with packed weights, whose results are rounded,
 * rectified and added to others in one step. */
#include "engine/ops/plan/quantized_pack.h"
#include "engine/ops/quantized/quantized.h"
#include "engine/ops/spatial/spatial.h"

#include <string.h>

#define TD_FAMILY "quantized"

/* ---- of integers ---- */

enum {
    X,
    PACKED,
    BIAS,
    RESIDUAL,
    X_SCALE,
    X_POINT,
    OUT_SCALE,
    OUT_POINT,
    RESIDUAL_SCALE,
    RESIDUAL_POINT,
    RELU,
    KERNEL,
    STRIDE,
    PADDING,
    DILATION
};

static int64_t count_places(td_value kernel) {
    int64_t places = 1;
    for (int d = 0; d < kernel.n; d++)
        if (kernel.ints[d] < 1 || __builtin_mul_overflow(places, kernel.ints[d], &places))
            return 0;
    return places;
}

/* The geometry of x (batched) with packed weights of a kernel of so many places. */
static td_status read_geometry(const td_value *a, const td_qpack *head, td_conv_geometry *g) {
    const td_tensor *x = a[X].tensor;
    const td_value kernel = a[KERNEL];
    int64_t places = count_places(kernel);
    if (kernel.n < 1 || kernel.n > TD_SPATIAL || x->ndim != kernel.n + 2 || places == 0 ||
        head->depth % places)
        return td_fail(TD_ESHAPE,
                       "packed weights of %lld by %lld don't have a kernel of %lld elements",
                       (long long)head->columns, (long long)head->depth, (long long)places);
    int64_t groups =
        head->depthwise ? x->sizes[x->ndim - kernel.n - 1] : td_qpack_count(a[PACKED].tensor);
    int64_t weight[TD_SPATIAL + 2] = {head->depthwise ? head->columns : groups * head->columns,
                                      head->depth / places};
    if (head->depthwise && (groups == 0 || head->columns % groups))
        return td_fail(TD_ESHAPE, "input has %lld channels, a depthwise weight has %lld",
                       (long long)groups, (long long)head->columns);
    memcpy(weight + 2, kernel.ints, sizeof(int64_t) * (size_t)kernel.n);
    const td_value how[] = {a[STRIDE], a[PADDING], a[DILATION], TD_I(groups)};
    td_status status =
        td_conv_geometry_make(kernel.n, x->ndim, x->sizes, kernel.n + 2, weight, how, g);
    g->channels_last = true;
    return status;
}

static td_status rule_conv_ints(const td_call *call, td_meta *out) {
    const td_value *a = call->args;
    td_quantized_conv_plan *plan = TD_PLAN(call, td_quantized_conv_plan);
    const td_qpack *head;
    int32_t point = (int32_t)a[OUT_POINT].i;
    *plan =
        (td_quantized_conv_plan){.to = {.x_scale = (float)td_arg_double(a[X_SCALE]),
                                        .out_scale = (float)td_arg_double(a[OUT_SCALE]),
                                        .x_zero_point = (int32_t)a[X_POINT].i,
                                        .out_zero_point = point,
                                        .low = a[RELU].b ? point : 0,
                                        .high = UINT8_MAX,
                                        .relu = a[RELU].b,
                                        .residual_scale = (float)td_arg_double(a[RESIDUAL_SCALE]),
                                        .residual_zero_point = (int32_t)a[RESIDUAL_POINT].i}};
    td_status status = td_qpack_check(a[PACKED].tensor, &head);
    if (status == TD_OK)
        status = read_geometry(a, head, &plan->geometry);
    if (status)
        return status;
    for (int d = 0; d < TD_SPATIAL; d++) {
        plan->every[d] = 1;
        plan->whole[d] = plan->geometry.out[d];
    }
    td_conv_images_meta(&plan->geometry, false, TD_U8, out);
    return TD_OK;
}

TD_KERNEL(run_conv_ints, quantized_conv, td_quantized_conv_plan, 1, 4)

/* Integers that lie channels last, whatever they were. */
static td_status kernel_conv_ints(td_call *call) {
    const td_tensor *residual = td_arg_tensor(call->args[RESIDUAL]);
    char shape[TD_SHAPE_TEXT], other[TD_SHAPE_TEXT];
    if (residual && !td_tensor_same_shape(residual, call->out[0]))
        return td_fail(TD_ESHAPE, "residual has shape %s, the result %s",
                       td_tensor_shape_text(residual, shape),
                       td_tensor_shape_text(call->out[0], other));
    return call->out[0]->numel ? run_conv_ints(call) : TD_OK;
}

/* ---- of quantized tensors ---- */

static td_status check_bytes(const char *name, const td_tensor *x) {
    const td_quantized *q = td_quantized_of(x);
    if (q && !q->scales && x->dtype == TD_U8)
        return TD_OK;
    return td_fail(TD_ETYPE, "%s is %s%s: a quint8 tensor of one scale expected", name,
                   td_tensor_dtype_name(x), q && q->scales ? ", quantized by channel" : "");
}

/* The integers of a quantized tensor, with a batch (of one where it has none), channels last. */
static td_status open_images(const td_tensor *x, bool batched, td_tensor **out) {
    td_tensor *ints = NULL;
    td_status status = TD_APPLY(&ints, detach, TD_T(td_quantized_of(x)->ints));
    if (status)
        return status;
    if (!batched)
        TD_STEP(&ints, unsqueeze, TD_T(ints), TD_I(0));
    status = td_pack_spatial(ints, true, out);
done:
    td_release(ints);
    return status;
}

enum { SCALE = 3, ZERO_POINT, SIZES, RECTIFY = 9, ADDED };

static td_status check_call(const td_value *a, const td_tensor *residual) {
    const td_tensor *x = a[X].tensor;
    const td_qpack *head;
    td_status status = check_bytes("x", x);
    if (status == TD_OK && residual)
        status = check_bytes("residual", residual);
    if (status == TD_OK)
        status = td_check_spatial(a[SIZES].n, x->ndim, x->sizes);
    if (status == TD_OK && residual && residual->ndim != x->ndim)
        status = td_fail(TD_ESHAPE, "residual has %d dims, x has %d", residual->ndim, x->ndim);
    if (status == TD_OK)
        status = td_quantized_check_packed(x, a[PACKED].tensor, &head);
    if (status == TD_OK)
        status = td_quantized_check_bias(
            td_arg_tensor(a[BIAS]),
            head->depthwise ? head->columns : td_qpack_count(a[PACKED].tensor) * head->columns);
    if (status == TD_OK)
        status = td_check_scale(td_arg_double(a[SCALE]));
    return status ? status : td_check_zero_point(a[ZERO_POINT].i, TD_U8);
}

static td_status run_quantized_conv(td_call *call) {
    const td_value *a = call->args;
    td_tensor *x = a[X].tensor, *residual = td_arg_tensor(a[ADDED]), *bias = td_arg_tensor(a[BIAS]);
    td_tensor *images = NULL, *added = NULL, *addends = NULL, *made = NULL;
    td_status status = check_call(a, residual);
    if (status)
        return status;
    const td_quantized *q = td_quantized_of(x), *r = residual ? td_quantized_of(residual) : NULL;
    bool batched = x->ndim == a[SIZES].n + 2;
    TD_TRY(open_images(x, batched, &images));
    if (residual)
        TD_TRY(open_images(residual, batched, &added));
    if (bias) {
        TD_TRY(TD_APPLY(&addends, detach, TD_T(bias)));
        TD_STEP(&addends, contiguous, TD_T(addends));
    }
    TD_TRY(TD_APPLY(&made, conv_ints, TD_T(images), a[PACKED], td_tensor_or_nil(addends),
                    td_tensor_or_nil(added), TD_F(q->scale), TD_I(q->zero_point), a[SCALE],
                    a[ZERO_POINT], TD_F(r ? r->scale : 0), TD_I(r ? r->zero_point : 0), a[RECTIFY],
                    a[SIZES], a[SIZES + 1], a[SIZES + 2], a[SIZES + 3]));
    if (!batched)
        TD_STEP(&made, squeeze, TD_T(made), TD_INTS(1, (int64_t[]){0}));
    status = td_quantized_new(made, td_arg_double(a[SCALE]), a[ZERO_POINT].i, &call->out[0]);
done:
    td_release(images);
    td_release(added);
    td_release(addends);
    td_release(made);
    return status;
}

/* ---- the table ---- */

#define PADDING_TYPE "int[]|\"same\"|\"valid\" padding, "

TD_OPERATOR(conv_ints) = {
    .schema = "(Tensor x, Tensor packed, Tensor? bias, Tensor? residual, number x_scale, "
              "int x_zero_point, number scale, int zero_point, number residual_scale, "
              "int residual_zero_point, bool relu, int[] kernel_size, int[] stride, " PADDING_TYPE
              "int[] dilation) -> Tensor",
    .doc = "A convolution of bytes (N, C, ...), channels last, with packed weights, plus a bias "
           "and bytes of the result's shape, as uint8.",
    .rule = rule_conv_ints,
    .kernel = kernel_conv_ints,
    .dtypes = TD_DTYPES_ALL,
    .flags = TD_OP_NONDIFF | TD_OP_INTERNAL,
};
TD_OPERATOR(quantized_conv) = {
    .schema = "(Tensor x, Tensor packed, Tensor? bias, number scale, int zero_point, "
              "int[] kernel_size, int[] stride, " PADDING_TYPE
              "int[] dilation, bool relu=false, Tensor? residual=nil) -> Tensor",
    .doc = "Convolution of quint8 x (N, C, ...) or (C, ...) with packed weights, plus bias and "
           "residual, as quint8 of a scale and a zero point; a batch lies channels last.",
    .run = run_quantized_conv,
    .flags = TD_OP_NONDIFF | TD_OP_INTERNAL | TD_OP_FUNCTION_ONLY | TD_OP_ANY_LAYOUT,
};
