/* conv.c: two-dimensional convolution. It and its two gradients, as operators, are linear in both
 * of their tensors and are one another's gradients. */
#include "engine/ops/copy.h"
#include "engine/ops/meta.h"
#include "engine/ops/plan.h"

#include <string.h>

#define TD_FAMILY "conv"

/* ---- geometry ---- */

static td_status check_channels(const td_conv_geometry *g, const int64_t *weight) {
    char text[TD_SHAPE_TEXT];
    if (g->groups < 1 || g->groups > INT32_MAX)
        return td_fail(TD_EVALUE, "groups must be from 1 to 2^31 - 1, got %lld",
                       (long long)g->groups);
    if (g->c % g->groups || g->c / g->groups != weight[1])
        return td_fail(TD_ESHAPE,
                       "weight of shape %s with groups = %lld takes %.0f channels, input has %lld",
                       td_shape_text(4, weight, text, sizeof text), (long long)g->groups,
                       (double)weight[1] * (double)g->groups, (long long)g->c);
    if (g->o % g->groups)
        return td_fail(TD_ESHAPE, "%lld output channels can't be divided into %lld groups",
                       (long long)g->o, (long long)g->groups);
    return TD_OK;
}

/* Planes and kernels that stride, padding and dilation (each below 2^31) can't carry out of int64.
 */
static td_status check_planes(const td_conv_geometry *g) {
    if (g->h > INT64_MAX / 4 || g->w > INT64_MAX / 4)
        return td_fail(TD_ESHAPE, "planes of %lld x %lld are too large", (long long)g->h,
                       (long long)g->w);
    if (g->kh > INT32_MAX || g->kw > INT32_MAX)
        return td_fail(TD_ESHAPE, "a kernel of %lld x %lld is too large", (long long)g->kh,
                       (long long)g->kw);
    return TD_OK;
}

/* From the shapes of x and weight and four arguments stride, padding, dilation, groups. */
static td_status make_geometry(int ndim, const int64_t *x, int weight_ndim, const int64_t *weight,
                               const td_value *args, td_conv_geometry *g) {
    char text[TD_SHAPE_TEXT];
    td_status status = td_check_images(ndim, x);
    if (status)
        return status;
    if (weight_ndim != 4)
        return td_fail(TD_ESHAPE, "weight must have shape (out, in / groups, H, W), got %s",
                       td_shape_text(weight_ndim, weight, text, sizeof text));
    const int64_t *plane = x + ndim - 3;
    *g = (td_conv_geometry){.n = ndim == 4 ? x[0] : 1,
                            .c = plane[0],
                            .h = plane[1],
                            .w = plane[2],
                            .o = weight[0],
                            .kh = weight[2],
                            .kw = weight[3],
                            .groups = args[3].i,
                            .ndim = ndim};
    status = td_read_pair("stride", args[0], 1, g->stride);
    if (status == TD_OK)
        status = td_read_pair("padding", args[1], 0, g->padding);
    if (status == TD_OK)
        status = td_read_pair("dilation", args[2], 1, g->dilation);
    if (status == TD_OK)
        status = check_channels(g, weight);
    if (status == TD_OK)
        status = check_planes(g);
    if (status)
        return status;
    int64_t high = g->h + 2 * g->padding[0], wide = g->w + 2 * g->padding[1];
    int64_t kernel_high = g->dilation[0] * (g->kh - 1) + 1;
    int64_t kernel_wide = g->dilation[1] * (g->kw - 1) + 1;
    if (g->kh < 1 || g->kw < 1 || kernel_high > high || kernel_wide > wide)
        return td_fail(
            TD_ESHAPE, "a kernel of %lld x %lld doesn't fit the padded input of %lld x %lld",
            (long long)kernel_high, (long long)kernel_wide, (long long)high, (long long)wide);
    g->oh = (high - kernel_high) / g->stride[0] + 1;
    g->ow = (wide - kernel_wide) / g->stride[1] + 1;
    return TD_OK;
}

/* The tensors of a gradient: floating, of one dtype, on one device. */
static td_status check_floats(const td_tensor *a, const td_tensor *b) {
    td_status status = td_check_float((td_dtype)a->dtype);
    return status ? status : td_check_pair(a, b);
}

/* The geometry to be filled in of the call's plan. */
static td_conv_geometry *plan_convolution(const td_call *call, td_conv_direction direction) {
    td_convolution_plan *p = TD_PLAN(call, td_convolution_plan);
    *p = (td_convolution_plan){.direction = direction};
    return &p->geometry;
}

/* A result that no product reaches: a bias for each channel, or zero. */
static td_status fill_result(td_tensor *out, td_tensor *bias) {
    td_tensor *seen = NULL;
    if (!bias)
        return td_fill_int(out, 0);
    const int64_t sizes[3] = {bias->sizes[0], 1, 1}, strides[3] = {bias->strides[0], 0, 0};
    td_status status = td_tensor_view(bias, 3, sizes, strides, 0, &seen);
    if (status == TD_OK)
        status = td_copy_into(out, seen);
    td_release(seen);
    return status;
}

static bool is_last(const td_tensor *x) {
    return td_tensor_format(x) == TD_CHANNELS_LAST;
}

/* The layout of the result, from what two of the three tensors lie like: channels_last where one of
 * them does, as PyTorch has it. */
static void lay(const td_call *call, const td_tensor *a, const td_tensor *b, td_meta *out) {
    td_conv_geometry *g = &TD_PLAN(call, td_convolution_plan)->geometry;
    g->channels_last = g->ndim == 4 && (is_last(a) || is_last(b));
    td_meta_lay(g->channels_last ? TD_CHANNELS_LAST : TD_ROW_MAJOR, out);
}

/* What is image and what is weight among a plan's tensors is packed in that layout; weights that
 * lie with channels last stay so. */
static td_status pack(td_convolution_plan *p, td_tensor *x, bool weight, td_tensor **out) {
    td_conv_geometry *g = &p->geometry;
    bool last = weight ? is_last(x) : g->channels_last;
    if (weight)
        g->weight_last = last;
    return td_pack(x, last ? TD_CHANNELS_LAST : TD_ROW_MAJOR, out);
}

/* Hand the rule's plan to the device. */
static td_status convolve(td_call *call, td_tensor *a, td_tensor *b, td_tensor *bias) {
    td_convolution_plan *p = TD_PLAN(call, td_convolution_plan);
    td_tensor *packed[3] = {NULL};
    td_status status = TD_OK;
    p->out = call->out[0];
    if (a->numel == 0 || b->numel == 0)
        return fill_result(p->out, bias);
    p->geometry.weight_last = p->geometry.channels_last; /* of a result */
    TD_TRY(pack(p, a, false, &packed[0]));
    TD_TRY(pack(p, b, p->direction != TD_CONV_WEIGHT, &packed[1]));
    if (bias)
        TD_TRY(td_contiguous(bias, &packed[2]));
    p->a = packed[0];
    p->b = packed[1];
    p->bias = packed[2];
    status = p->out->numel ? TD_RUN(td_tensor_device(p->out), convolution, p) : TD_OK;
done:
    for (int k = 0; k < 3; k++)
        td_release(packed[k]);
    return status;
}

/* ---- conv2d ---- */

static td_status rule_conv2d(const td_call *call, td_meta *out) {
    const td_value *a = call->args;
    const td_tensor *x = a[0].tensor, *weight = a[1].tensor, *bias = td_arg_tensor(a[2]);
    td_conv_geometry *g = plan_convolution(call, TD_CONV_FORWARD);
    td_status status = make_geometry(x->ndim, x->sizes, weight->ndim, weight->sizes, a + 3, g);
    if (status == TD_OK)
        status = td_check_pair(x, weight);
    if (status == TD_OK)
        status = td_check_bias(x, bias, g->o);
    if (status)
        return status;
    const int64_t sizes[4] = {g->n, g->o, g->oh, g->ow};
    td_meta_set(out, (td_dtype)x->dtype, g->ndim, sizes + 4 - g->ndim);
    lay(call, x, weight, out);
    return TD_OK;
}

static td_status kernel_conv2d(td_call *call) {
    const td_value *a = call->args;
    return convolve(call, a[0].tensor, a[1].tensor, td_arg_tensor(a[2]));
}

/* ---- conv2d_input(input_size, weight, gy, ...) ---- */

static td_status rule_conv2d_input(const td_call *call, td_meta *out) {
    const td_value *a = call->args;
    td_status status = make_geometry(a[0].n, a[0].ints, a[1].tensor->ndim, a[1].tensor->sizes,
                                     a + 3, plan_convolution(call, TD_CONV_INPUT));
    if (status == TD_OK)
        status = check_floats(a[2].tensor, a[1].tensor);
    if (status)
        return status;
    td_meta_set(out, (td_dtype)a[2].tensor->dtype, a[0].n, a[0].ints);
    lay(call, a[2].tensor, a[1].tensor, out);
    return TD_OK;
}

static td_status kernel_conv2d_input(td_call *call) {
    return convolve(call, call->args[2].tensor, call->args[1].tensor, NULL);
}

/* ---- conv2d_weight(x, weight_size, gy, ...) ---- */

static td_status rule_conv2d_weight(const td_call *call, td_meta *out) {
    const td_value *a = call->args;
    td_status status = make_geometry(a[0].tensor->ndim, a[0].tensor->sizes, a[1].n, a[1].ints,
                                     a + 3, plan_convolution(call, TD_CONV_WEIGHT));
    if (status == TD_OK)
        status = check_floats(a[0].tensor, a[2].tensor);
    if (status)
        return status;
    td_meta_set(out, (td_dtype)a[0].tensor->dtype, a[1].n, a[1].ints);
    lay(call, a[0].tensor, a[2].tensor, out);
    return TD_OK;
}

static td_status kernel_conv2d_weight(td_call *call) {
    return convolve(call, call->args[0].tensor, call->args[2].tensor, NULL);
}

/* ---- the table ---- */

#define HOW "stride, padding, dilation, groups"

TD_OPERATOR(conv2d) = {
    .schema = "(Tensor input, Tensor weight, Tensor? bias=nil, int[2] stride={1, 1}, "
              "int[2] padding={0, 0}, int[2] dilation={1, 1}, int groups=1) -> Tensor",
    .doc = "Cross-correlation of images (N, C, H, W) or one (C, H, W) with kernels, plus bias.",
    .rule = rule_conv2d,
    .kernel = kernel_conv2d,
    .dtypes = TD_DTYPES_NUMBERS,
    .gradient = "input: conv2d_input(input.shape, weight, g, " HOW ");"
                "weight: conv2d_weight(input, weight.shape, g, " HOW ");"
                "bias: if(g.ndim == 4, sum(g, {0, 2, 3}), sum(g, {1, 2}))",
    .autocast = {TD_AUTOCAST_LOWER, TD_AUTOCAST_LOWER},
};
TD_OPERATOR(conv2d_input) = {
    .schema = "(int[] input_size, Tensor weight, Tensor gradient, int[2] stride, "
              "int[2] padding, int[2] dilation, int groups) -> Tensor",
    .doc = "Gradient of conv2d with respect to its input.",
    .rule = rule_conv2d_input,
    .kernel = kernel_conv2d_input,
    .dtypes = TD_DTYPES_FLOATS,
    .gradient = "weight: conv2d_weight(g, weight.shape, gradient, " HOW ");"
                "gradient: conv2d(g, weight, nil, " HOW ")",
    .autocast = {TD_AUTOCAST_LOWER, TD_AUTOCAST_LOWER},
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(conv2d_weight) = {
    .schema = "(Tensor input, int[] weight_size, Tensor gradient, int[2] stride, "
              "int[2] padding, int[2] dilation, int groups) -> Tensor",
    .doc = "Gradient of conv2d with respect to its weight.",
    .rule = rule_conv2d_weight,
    .kernel = kernel_conv2d_weight,
    .dtypes = TD_DTYPES_FLOATS,
    .gradient = "input: conv2d_input(input.shape, g, gradient, " HOW ");"
                "gradient: conv2d(input, g, nil, " HOW ")",
    .autocast = {TD_AUTOCAST_LOWER, TD_AUTOCAST_LOWER},
    .flags = TD_OP_INTERNAL,
};
