/* conv.c: convolution over one to three spatial dims. It and its two gradients, as operators, are
 * linear in both of their tensors and are one another's gradients; the gradient by the input is the
 * transposed convolution as well. */
#include "engine/ops/spatial/spatial.h"

#include <stdio.h>
#include <string.h>

#define TD_FAMILY "conv"

/* ---- geometry ---- */

static td_status check_channels(const td_conv_geometry *g, int ndim, const int64_t *weight) {
    char text[TD_SHAPE_TEXT];
    if (g->groups < 1 || g->groups > INT32_MAX)
        return td_fail(TD_EVALUE, "groups must be from 1 to 2^31 - 1, got %lld",
                       (long long)g->groups);
    if (g->c % g->groups || g->c / g->groups != weight[1])
        return td_fail(TD_ESHAPE,
                       "weight of shape %s with groups = %lld takes %.0f channels, input has %lld",
                       td_shape_text(ndim, weight, text, sizeof text), (long long)g->groups,
                       (double)weight[1] * (double)g->groups, (long long)g->c);
    if (g->o % g->groups)
        return td_fail(TD_ESHAPE, "%lld output channels can't be divided into %lld groups",
                       (long long)g->o, (long long)g->groups);
    return TD_OK;
}

/* "3 x 3" */
static const char *by_text(int n, const int64_t *sizes, char *text) {
    size_t at = 0;
    for (int d = 0; d < n; d++)
        at += (size_t)snprintf(text + at, TD_SHAPE_TEXT - at, d ? " x %lld" : "%lld",
                               (long long)sizes[d]);
    return text;
}

/* Planes and kernels that stride, padding and dilation (each below 2^31) can't carry out of int64.
 */
static td_status check_planes(const td_conv_geometry *g) {
    char text[TD_SHAPE_TEXT];
    int first = TD_SPATIAL - g->spatial;
    for (int d = first; d < TD_SPATIAL; d++) {
        if (g->in[d] > INT64_MAX / 4)
            return td_fail(TD_ESHAPE, "planes of %s are too large",
                           by_text(g->spatial, g->in + first, text));
        if (g->kernel[d] > INT32_MAX)
            return td_fail(TD_ESHAPE, "a kernel of %s is too large",
                           by_text(g->spatial, g->kernel + first, text));
    }
    return TD_OK;
}

/* The padding before each dim and behind it, of a list that has both for each. */
static td_status read_pairs(td_value v, int n, int64_t *before, int64_t *behind) {
    int64_t all[2 * TD_SPATIAL];
    td_status status = td_read_spatial("padding", v, 2 * n, 0, all);
    for (int d = 0; d < n && status == TD_OK; d++) {
        before[d] = all[2 * d];
        behind[d] = all[2 * d + 1];
    }
    return status;
}

/* stride, padding, dilation and groups as the operators have them, of three dims. `behind`: the
 * padding behind the input, where it isn't what it is before; padding has `pairs` then. */
static td_status read_how(const td_value *a, bool pairs, td_conv_geometry *g, int64_t *behind) {
    int n = g->spatial, first = TD_SPATIAL - n;
    bool words = a[1].kind == TD_KIND_STRING, same = words && !strcmp(a[1].string, "same");
    g->groups = a[3].i;
    td_status status = td_read_spatial("stride", a[0], n, 1, g->stride + first);
    pairs = pairs && !words && a[1].n == 2 * n;
    if (status == TD_OK && !words)
        status = pairs ? read_pairs(a[1], n, g->padding + first, behind + first)
                       : td_read_spatial("padding", a[1], n, 0, g->padding + first);
    if (status == TD_OK)
        status = td_read_spatial("dilation", a[2], n, 1, g->dilation + first);
    for (int d = first; d < TD_SPATIAL && status == TD_OK && words; d++) {
        if (same && g->stride[d] != 1)
            return td_fail(TD_EVALUE, "padding \"same\" needs a stride of 1, got %lld",
                           (long long)g->stride[d]);
        g->padding[d] = same ? g->dilation[d] * (g->kernel[d] - 1) / 2 : 0;
    }
    for (int d = 0; d < TD_SPATIAL && !pairs; d++)
        behind[d] = g->padding[d];
    return status;
}

/* How many places a dim of the result has. */
static td_status find_out(td_conv_geometry *g, bool same, const int64_t *behind) {
    char kernel[TD_SHAPE_TEXT], in[TD_SHAPE_TEXT];
    int64_t reach[TD_SPATIAL], room[TD_SPATIAL];
    int first = TD_SPATIAL - g->spatial;
    bool fits = true;
    for (int d = 0; d < TD_SPATIAL; d++) {
        reach[d] = g->dilation[d] * (g->kernel[d] - 1) + 1;
        room[d] = g->in[d] + g->padding[d] + behind[d];
        fits = fits && g->kernel[d] >= 1 && (same || reach[d] <= room[d]);
        g->out[d] = same ? g->in[d] : (room[d] - reach[d]) / g->stride[d] + 1;
    }
    return fits ? TD_OK
                : td_fail(TD_ESHAPE, "a kernel of %s doesn't fit the padded input of %s",
                          by_text(g->spatial, reach + first, kernel),
                          by_text(g->spatial, room + first, in));
}

/* As td_conv_geometry_make; `pairs`: padding may have two numbers for each dim. */
static td_status make_geometry(int n, int ndim, const int64_t *x, int weight_ndim,
                               const int64_t *weight, const td_value *args, bool pairs,
                               td_conv_geometry *g) {
    int64_t behind[TD_SPATIAL] = {0};
    static const char *const kernels[] = {"...", "L", "H, W", "D, H, W"};
    char text[TD_SHAPE_TEXT];
    int spatial = n ? n : weight_ndim - 2;
    td_status status = td_check_spatial(spatial, ndim, x);
    if (status)
        return status;
    if (weight_ndim != spatial + 2)
        return td_fail(TD_ESHAPE, "weight must have shape (out, in / groups, %s), got %s",
                       kernels[spatial], td_shape_text(weight_ndim, weight, text, sizeof text));
    *g = (td_conv_geometry){.n = ndim == spatial + 2 ? x[0] : 1,
                            .c = x[ndim - spatial - 1],
                            .o = weight[0],
                            .spatial = spatial,
                            .ndim = ndim,
                            .in = {1, 1, 1},
                            .kernel = {1, 1, 1},
                            .stride = {1, 1, 1},
                            .dilation = {1, 1, 1}};
    int first = TD_SPATIAL - spatial;
    memcpy(g->in + first, x + ndim - spatial, sizeof(int64_t) * (size_t)spatial);
    memcpy(g->kernel + first, weight + 2, sizeof(int64_t) * (size_t)spatial);
    status = check_planes(g);
    if (status == TD_OK)
        status = read_how(args, pairs, g, behind);
    if (status == TD_OK)
        status = check_channels(g, weight_ndim, weight);
    bool same = args[1].kind == TD_KIND_STRING && !strcmp(args[1].string, "same");
    return status ? status : find_out(g, same, behind);
}

td_status td_conv_geometry_make(int n, int ndim, const int64_t *x, int weight_ndim,
                                const int64_t *weight, const td_value *args, td_conv_geometry *g) {
    return make_geometry(n, ndim, x, weight_ndim, weight, args, false, g);
}

void td_conv_images_meta(const td_conv_geometry *g, bool in, td_dtype dtype, td_meta *out) {
    int first = TD_SPATIAL - g->spatial;
    int64_t sizes[TD_SPATIAL + 2] = {g->n, in ? g->c : g->o};
    memcpy(sizes + 2, (in ? g->in : g->out) + first, sizeof(int64_t) * (size_t)g->spatial);
    td_meta_set(out, dtype, g->ndim, sizes + g->spatial + 2 - g->ndim);
    td_meta_lay_spatial(out, g->channels_last);
}

/* ---- calls ---- */

/* The geometry to be filled in of the call's plan. */
static td_conv_geometry *plan_convolution(const td_call *call, td_conv_direction direction) {
    td_convolution_plan *p = TD_PLAN(call, td_convolution_plan);
    *p = (td_convolution_plan){.direction = direction};
    return &p->geometry;
}

/* A result that no product reaches: a bias for each channel, or zero. */
static td_status fill_result(td_tensor *out, td_tensor *bias, int spatial) {
    td_tensor *seen = NULL;
    if (!bias)
        return td_fill_int(out, 0);
    int64_t sizes[TD_SPATIAL + 1] = {bias->sizes[0], 1, 1, 1};
    int64_t strides[TD_SPATIAL + 1] = {bias->strides[0]};
    td_status status = td_tensor_view(bias, spatial + 1, sizes, strides, 0, &seen);
    if (status == TD_OK)
        status = td_copy_into(out, seen);
    td_release(seen);
    return status;
}

/* Images lie channels last where one of two tensors does, and as images without a batch never. */
static void choose_layout(td_conv_geometry *g, const td_tensor *a, const td_tensor *b) {
    g->channels_last = g->ndim == g->spatial + 2 && g->spatial > 1 &&
                       (td_lies_channels_last(0, a) || td_lies_channels_last(0, b));
}

/* Hand the rule's plan to the device, its tensors packed: a has images, b the weight or images, and
 * `added` (NULL: none) those that are added to the result. */
static td_status convolve(td_call *call, td_tensor *a, td_tensor *b, td_tensor *bias,
                          td_tensor *added) {
    td_convolution_plan *p = TD_PLAN(call, td_convolution_plan);
    td_tensor *packed[4] = {NULL};
    td_conv_geometry *g = &p->geometry;
    bool weighs = p->direction == TD_CONV_WEIGHT;
    td_status status = TD_OK;
    p->out = call->out[0];
    g->weight_last = weighs ? g->channels_last : td_lies_channels_last(0, b);
    if (a->numel == 0 || b->numel == 0)
        return fill_result(p->out, bias, g->spatial);
    TD_TRY(td_pack_spatial(a, g->channels_last, &packed[0]));
    TD_TRY(td_pack_spatial(b, weighs ? g->channels_last : g->weight_last, &packed[1]));
    if (bias)
        TD_TRY(td_contiguous(bias, &packed[2]));
    if (added)
        TD_TRY(td_pack_spatial(added, g->channels_last, &packed[3]));
    p->added = packed[3];
    p->a = packed[0];
    p->b = packed[1];
    p->bias = packed[2];
    status = p->out->numel ? TD_RUN(td_tensor_device(p->out), convolution, p) : TD_OK;
done:
    for (int k = 0; k < 4; k++)
        td_release(packed[k]);
    return status;
}

/* ---- forward(input, weight, bias, ...), of `n` spatial dims ---- */

static td_status make_rule(const td_call *call, td_meta *out, int n, bool pairs) {
    const td_value *a = call->args;
    const td_tensor *x = a[0].tensor, *weight = a[1].tensor, *bias = td_arg_tensor(a[2]);
    td_conv_geometry *g = plan_convolution(call, TD_CONV_FORWARD);
    td_status status =
        make_geometry(n, x->ndim, x->sizes, weight->ndim, weight->sizes, a + 3, pairs, g);
    if (status == TD_OK)
        status = td_check_pair(x, weight);
    if (status == TD_OK)
        status = td_check_bias(x, bias, g->o);
    if (status)
        return status;
    choose_layout(g, x, weight);
    td_conv_images_meta(g, false, (td_dtype)x->dtype, out);
    return TD_OK;
}
static td_status rule_conv(const td_call *call, td_meta *out, int n) {
    return make_rule(call, out, n, false);
}
TD_RULE(rule_conv1d, rule_conv, 1)
TD_RULE(rule_conv2d, rule_conv, 2)
TD_RULE(rule_conv3d, rule_conv, 3)
TD_RULE(rule_convolution, rule_conv, 0)

static td_status kernel_conv(td_call *call) {
    const td_value *a = call->args;
    return convolve(call, a[0].tensor, a[1].tensor, td_arg_tensor(a[2]), NULL);
}

/* ---- fused_convolution(input, weight, bias, ..., added, curve, least, most) ---- */

enum { FUSED_ADDED = 7, FUSED_CURVE, FUSED_LEAST, FUSED_MOST };

static td_status rule_fused_convolution(const td_call *call, td_meta *out) {
    const td_value *a = call->args;
    const td_tensor *added = td_arg_tensor(a[FUSED_ADDED]);
    td_status status = make_rule(call, out, 0, true);
    if (status)
        return status;
    if (added && (added->ndim != out->ndim ||
                  memcmp(added->sizes, out->sizes, sizeof *out->sizes * (size_t)out->ndim)))
        return td_fail(TD_ESHAPE, "added must have the result's shape");
    td_epilogue *e = &TD_PLAN(call, td_convolution_plan)->epilogue;
    const char *curve = a[FUSED_CURVE].string;
    *e = (td_epilogue){.curve = !strcmp(curve, "limited")     ? TD_CURVE_LIMITED
                                : !strcmp(curve, "hardswish") ? TD_CURVE_HARDSWISH
                                                              : TD_CURVE_NONE,
                       .least = (float)td_arg_double(a[FUSED_LEAST]),
                       .most = (float)td_arg_double(a[FUSED_MOST])};
    return TD_OK;
}

static td_status kernel_fused_convolution(td_call *call) {
    const td_value *a = call->args;
    if (td_tensor_device(call->out[0]).type != TD_CPU)
        return td_fail(TD_EVALUE, "a convolution with an epilogue is for the CPU alone");
    return convolve(call, a[0].tensor, a[1].tensor, td_arg_tensor(a[2]),
                    td_arg_tensor(a[FUSED_ADDED]));
}

/* ---- conv_input(input_size, weight, gradient, ...) ---- */

static td_status rule_conv_input(const td_call *call, td_meta *out) {
    const td_value *a = call->args;
    const td_tensor *weight = a[1].tensor, *gy = a[2].tensor;
    td_conv_geometry *g = plan_convolution(call, TD_CONV_INPUT);
    td_status status =
        td_conv_geometry_make(0, a[0].n, a[0].ints, weight->ndim, weight->sizes, a + 3, g);
    if (status == TD_OK)
        status = td_check_pair(gy, weight);
    if (status)
        return status;
    choose_layout(g, gy, weight);
    td_conv_images_meta(g, true, (td_dtype)gy->dtype, out);
    return TD_OK;
}

static td_status kernel_conv_input(td_call *call) {
    return convolve(call, call->args[2].tensor, call->args[1].tensor, NULL, NULL);
}

/* ---- conv_weight(input, weight_size, gradient, ...) ---- */

static td_status rule_conv_weight(const td_call *call, td_meta *out) {
    const td_value *a = call->args;
    const td_tensor *x = a[0].tensor, *gy = a[2].tensor;
    td_conv_geometry *g = plan_convolution(call, TD_CONV_WEIGHT);
    td_status status = td_conv_geometry_make(0, x->ndim, x->sizes, a[1].n, a[1].ints, a + 3, g);
    if (status == TD_OK)
        status = td_check_pair(x, gy);
    if (status)
        return status;
    choose_layout(g, x, gy);
    td_meta_set(out, (td_dtype)x->dtype, a[1].n, a[1].ints);
    td_meta_lay_spatial(out, g->channels_last);
    return TD_OK;
}

static td_status kernel_conv_weight(td_call *call) {
    return convolve(call, call->args[0].tensor, call->args[2].tensor, NULL, NULL);
}

/* ---- transposed ---- */

typedef struct transposed {
    int n, ndim;
    int64_t stride[TD_SPATIAL], padding[TD_SPATIAL], extra[TD_SPATIAL], dilation[TD_SPATIAL];
    int64_t size[TD_SPATIAL + 2]; /* of the result; without a batch from the second on */
    bool beyond;                  /* more places behind than one step of the stride has */
} transposed;

static td_status check_transposed(const td_value *a, int n) {
    const td_tensor *x = a[0].tensor, *weight = a[1].tensor;
    char text[TD_SHAPE_TEXT], shape[TD_SHAPE_TEXT];
    td_status status = td_check_spatial(n, x->ndim, x->sizes);
    if (status)
        return status;
    int64_t channels = x->sizes[x->ndim - n - 1], groups = a[6].i;
    if (weight->ndim != n + 2)
        return td_fail(TD_ESHAPE, "weight must have %d dims, (in, out / groups, kernel), got %s",
                       n + 2, td_tensor_shape_text(weight, text));
    if (groups < 1 || groups > INT32_MAX)
        return td_fail(TD_EVALUE, "groups must be from 1 to 2^31 - 1, got %lld", (long long)groups);
    if (weight->sizes[0] != channels || channels % groups)
        return td_fail(TD_ESHAPE,
                       "weight of shape %s with groups = %lld doesn't take the %lld channels of an "
                       "input of shape %s",
                       td_tensor_shape_text(weight, text), (long long)groups, (long long)channels,
                       td_tensor_shape_text(x, shape));
    return td_check_pair(x, weight);
}

/* Arguments input, weight, bias, stride, padding, output_padding, groups, dilation. */
static td_status read_transposed(const td_value *a, transposed *t) {
    const td_tensor *x = a[0].tensor, *weight = a[1].tensor;
    int n = t->n;
    td_status status = check_transposed(a, n);
    if (status == TD_OK)
        status = td_read_spatial("stride", a[3], n, 1, t->stride);
    if (status == TD_OK)
        status = td_read_spatial("padding", a[4], n, 0, t->padding);
    if (status == TD_OK)
        status = td_read_spatial("output_padding", a[5], n, 0, t->extra);
    if (status == TD_OK)
        status = td_read_spatial("dilation", a[7], n, 1, t->dilation);
    if (status == TD_OK)
        status = td_check_places("an input", n, x->sizes + x->ndim - n);
    for (int d = 0; d < n && status == TD_OK; d++) {
        int64_t in = x->sizes[x->ndim - n + d], kernel = weight->sizes[d + 2];
        if (t->extra[d] >= t->stride[d] && t->extra[d] >= t->dilation[d])
            return td_fail(TD_EVALUE,
                           "output_padding must be smaller than stride or dilation, got %lld, %lld "
                           "and %lld",
                           (long long)t->extra[d], (long long)t->stride[d],
                           (long long)t->dilation[d]);
        t->beyond = t->beyond || t->extra[d] >= t->stride[d];
        if (kernel > INT32_MAX)
            return td_fail(TD_ESHAPE, "a kernel of %lld is too large", (long long)kernel);
        t->size[d + 2] = (in - 1) * t->stride[d] - 2 * t->padding[d] +
                         t->dilation[d] * (kernel - 1) + t->extra[d] + 1;
        if (in < 1)
            return td_fail(TD_ESHAPE, "the input's spatial dims must not be empty");
        if (t->size[d + 2] < 1)
            return td_fail(TD_ESHAPE, "the result would have a size of %lld",
                           (long long)t->size[d + 2]);
    }
    t->ndim = x->ndim;
    t->size[0] = x->ndim == n + 2 ? x->sizes[0] : 1;
    if (status == TD_OK && __builtin_mul_overflow(weight->sizes[1], a[6].i, &t->size[1]))
        return td_fail(TD_ESHAPE, "too many channels");
    return status ? status : td_check_bias(x, td_arg_tensor(a[2]), t->size[1]);
}

/* Where output_padding exceeds the stride: all places that products reach, then those asked for. */
static td_status transpose_beyond(const td_value *a, transposed *t, td_tensor **out) {
    int64_t pad[2 * TD_SPATIAL];
    const int64_t none[TD_SPATIAL] = {0};
    int n = t->n, shift = n + 2 - t->ndim;
    for (int d = 0; d < n; d++) {
        int64_t before = t->padding[d], after = t->padding[d] - t->extra[d];
        t->size[d + 2] += before + after;
        pad[2 * (n - 1 - d)] = -before;
        pad[2 * (n - 1 - d) + 1] = -after;
    }
    td_tensor *whole = NULL;
    td_status status =
        TD_APPLY(&whole, conv_input, TD_INTS(t->ndim, t->size + shift), a[1], a[0],
                 TD_INTS(n, t->stride), TD_INTS(n, none), TD_INTS(n, t->dilation), a[6]);
    if (status == TD_OK)
        status = TD_APPLY(out, constant_pad, TD_T(whole), TD_INTS(2 * n, pad), TD_I(0));
    td_release(whole);
    return status;
}

static td_status add_bias(int n, td_tensor *bias, td_tensor **y) {
    const int64_t shape[TD_SPATIAL + 1] = {bias->sizes[0], 1, 1, 1};
    td_tensor *seen = NULL;
    td_status status = TD_OK;
    TD_TRY(TD_APPLY(&seen, view, TD_T(bias), TD_INTS(n + 1, shape)));
    TD_STEP(y, add, TD_T(*y), TD_T(seen));
done:
    td_release(seen);
    return status;
}

static td_status transpose(td_call *call, int n) {
    const td_value *a = call->args;
    transposed t = {.n = n};
    td_tensor *y = NULL, *bias = td_arg_tensor(a[2]);
    td_status status = read_transposed(a, &t);
    if (status)
        return status;
    if (t.beyond)
        status = transpose_beyond(a, &t, &y);
    else
        status =
            TD_APPLY(&y, conv_input, TD_INTS(t.ndim, t.size + n + 2 - t.ndim), a[1], a[0],
                     TD_INTS(n, t.stride), TD_INTS(n, t.padding), TD_INTS(n, t.dilation), a[6]);
    if (status == TD_OK && bias)
        status = add_bias(n, bias, &y);
    if (status == TD_OK)
        call->out[0] = y;
    else
        td_release(y);
    return status;
}

static td_status run_conv_transpose1d(td_call *call) {
    return transpose(call, 1);
}
static td_status run_conv_transpose2d(td_call *call) {
    return transpose(call, 2);
}
static td_status run_conv_transpose3d(td_call *call) {
    return transpose(call, 3);
}

/* ---- the table ---- */

#define HOW "stride, padding, dilation, groups"
#define HOW_TYPES                                                                                  \
    "int[] stride, int[]|\"same\"|\"valid\" padding, int[] dilation, int groups) -> Tensor"
#define GRADIENT                                                                                   \
    "input: conv_input(input.shape, weight, g, " HOW ");"                                          \
    "weight: conv_weight(input, weight.shape, g, " HOW ");"
#define LOWER .autocast = {[TD_CPU] = TD_AUTOCAST_LOWER, [TD_CUDA] = TD_AUTOCAST_LOWER}

/* What help says of the length of a result along a dim. */
#define CONV_LENGTH                                                                                \
    "; l(n, k, d) = n if padding == 'same' else (n + 2*padding[d] - dilation[d]*(k - 1) - 1)"      \
    "//stride[d] + 1"
#define TRANSPOSED_LENGTH                                                                          \
    "; l(n, k, d) = (n - 1)*stride[d] - 2*padding[d] + dilation[d]*(k - 1) + output_padding[d] + " \
    "1"

TD_OPERATOR(conv1d) = {
    .schema = "(Tensor input, Tensor weight, Tensor? bias=nil, int[1] stride={1}, "
              "int[1]|\"same\"|\"valid\" padding={0}, int[1] dilation={1}, int groups=1) -> Tensor",
    .doc = "Cross-correlation of signals (N, C, L) or one (C, L) with kernels, plus bias.",
    .shapes =
        "input (N?, C, L), weight (O, C//groups, kL), bias (O) -> (N?, O, l(L, kL, 1))" CONV_LENGTH,
    .notes = "padding \"same\" needs a stride of 1. C is the size of weight's second dim times "
             "groups, and groups divides O; the padded input must hold the kernel.",
    .rule = rule_conv1d,
    .kernel = kernel_conv,
    .dtypes = TD_DTYPES_NUMBERS,
    .gradient = GRADIENT "bias: if(g.ndim == 3, sum(g, {0, 2}), sum(g, {1}))",
    LOWER,
};
TD_OPERATOR(conv2d) = {
    .schema = "(Tensor input, Tensor weight, Tensor? bias=nil, int[2] stride={1, 1}, "
              "int[2]|\"same\"|\"valid\" padding={0, 0}, int[2] dilation={1, 1}, int groups=1) -> "
              "Tensor",
    .doc = "Cross-correlation of images (N, C, H, W) or one (C, H, W) with kernels, plus bias.",
    .shapes = "input (N?, C, H, W), weight (O, C//groups, kH, kW), bias (O) -> (N?, O, l(H, kH, "
              "1), l(W, kW, 2))" CONV_LENGTH,
    .notes = "padding \"same\" needs a stride of 1. C is the size of weight's second dim times "
             "groups, and groups divides O; the padded input must hold the kernel.",
    .rule = rule_conv2d,
    .kernel = kernel_conv,
    .dtypes = TD_DTYPES_NUMBERS,
    .gradient = GRADIENT "bias: if(g.ndim == 4, sum(g, {0, 2, 3}), sum(g, {1, 2}))",
    LOWER,
};
TD_OPERATOR(conv3d) = {
    .schema = "(Tensor input, Tensor weight, Tensor? bias=nil, int[3] stride={1, 1, 1}, "
              "int[3]|\"same\"|\"valid\" padding={0, 0, 0}, int[3] dilation={1, 1, 1}, "
              "int groups=1) -> Tensor",
    .doc = "Cross-correlation of volumes (N, C, D, H, W) or one (C, D, H, W) with kernels, plus "
           "bias.",
    .shapes = "input (N?, C, D, H, W), weight (O, C//groups, kD, kH, kW), bias (O) -> (N?, O, l(D, "
              "kD, 1), l(H, kH, 2), l(W, kW, 3))" CONV_LENGTH,
    .notes = "padding \"same\" needs a stride of 1. C is the size of weight's second dim times "
             "groups, and groups divides O; the padded input must hold the kernel.",
    .rule = rule_conv3d,
    .kernel = kernel_conv,
    .dtypes = TD_DTYPES_NUMBERS,
    .gradient = GRADIENT "bias: if(g.ndim == 5, sum(g, {0, 2, 3, 4}), sum(g, {1, 2, 3}))",
    LOWER,
};
TD_OPERATOR(convolution) = {
    .schema = "(Tensor input, Tensor weight, Tensor? bias, " HOW_TYPES,
    .doc = "Cross-correlation over as many dims as the weight has.",
    .rule = rule_convolution,
    .kernel = kernel_conv,
    .dtypes = TD_DTYPES_NUMBERS,
    .gradient = GRADIENT,
    LOWER,
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(fused_convolution) = {
    .schema = "(Tensor input, Tensor weight, Tensor? bias, int[] stride, "
              "int[]|\"same\"|\"valid\" padding, int[] dilation, int groups, Tensor? added, "
              "\"none\"|\"limited\"|\"hardswish\" curve, number least, number most) -> Tensor",
    .doc = "A convolution whose padding may differ before and behind, to which a tensor is added "
           "and then an activation applied: a step of graphs on the CPU that aren't recorded.",
    .rule = rule_fused_convolution,
    .kernel = kernel_fused_convolution,
    .dtypes = TD_DTYPE_BIT(F32),
    .flags = TD_OP_NONDIFF | TD_OP_INTERNAL,
};
TD_OPERATOR(conv_input) = {
    .schema = "(int[] input_size, Tensor weight, Tensor gradient, " HOW_TYPES,
    .doc = "Gradient of a convolution with respect to its input.",
    .rule = rule_conv_input,
    .kernel = kernel_conv_input,
    .dtypes = TD_DTYPES_FLOATS | TD_DTYPE_BIT(I64),
    .gradient = "weight: conv_weight(g, weight.shape, gradient, " HOW ");"
                "gradient: convolution(g, weight, nil, " HOW ")",
    LOWER,
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(conv_weight) = {
    .schema = "(Tensor input, int[] weight_size, Tensor gradient, " HOW_TYPES,
    .doc = "Gradient of a convolution with respect to its weight.",
    .rule = rule_conv_weight,
    .kernel = kernel_conv_weight,
    .dtypes = TD_DTYPES_FLOATS,
    .gradient = "input: conv_input(input.shape, g, gradient, " HOW ");"
                "gradient: convolution(input, g, nil, " HOW ")",
    LOWER,
    .flags = TD_OP_INTERNAL,
};

#define TRANSPOSED(n, zeros, ones)                                                                 \
    "(Tensor input, Tensor weight, Tensor? bias=nil, int[" #n "] stride=" ones ", int[" #n         \
    "] padding=" zeros ", int[" #n "] output_padding=" zeros ", int groups=1, int[" #n             \
    "] dilation=" ones ") -> Tensor"

TD_OPERATOR(conv_transpose1d) = {
    .autocast = {[TD_CPU] = TD_AUTOCAST_LOWER, [TD_CUDA] = TD_AUTOCAST_LOWER},
    .schema = TRANSPOSED(1, "{0}", "{1}"),
    .doc = "Signals (N, C, L) or one (C, L) spread by kernels, plus bias: conv1d transposed.",
    .shapes = "input (N?, C, L), weight (C, O, kL), bias (O*groups) -> (N?, O*groups, l(L, kL, "
              "1))" TRANSPOSED_LENGTH,
    .takes = "floating and int64, one dtype",
    .run = run_conv_transpose1d,
};
TD_OPERATOR(conv_transpose2d) = {
    .autocast = {[TD_CPU] = TD_AUTOCAST_LOWER, [TD_CUDA] = TD_AUTOCAST_LOWER},
    .schema = TRANSPOSED(2, "{0, 0}", "{1, 1}"),
    .doc = "Images (N, C, H, W) or one (C, H, W) spread by kernels, plus bias: conv2d transposed.",
    .shapes = "input (N?, C, H, W), weight (C, O, kH, kW), bias (O*groups) -> (N?, O*groups, l(H, "
              "kH, 1), l(W, kW, 2))" TRANSPOSED_LENGTH,
    .takes = "floating and int64, one dtype",
    .run = run_conv_transpose2d,
};
TD_OPERATOR(conv_transpose3d) = {
    .autocast = {[TD_CPU] = TD_AUTOCAST_LOWER, [TD_CUDA] = TD_AUTOCAST_LOWER},
    .schema = TRANSPOSED(3, "{0, 0, 0}", "{1, 1, 1}"),
    .doc = "Volumes (N, C, D, H, W) or one (C, D, H, W) spread by kernels, plus bias: conv3d "
           "transposed.",
    .shapes = "input (N?, C, D, H, W), weight (C, O, kD, kH, kW), bias (O*groups) -> (N?, "
              "O*groups, l(D, kD, 1), l(H, kH, 2), l(W, kW, 3))" TRANSPOSED_LENGTH,
    .takes = "floating and int64, one dtype",
    .run = run_conv_transpose3d,
};
