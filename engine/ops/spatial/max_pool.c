/* max_pool.c: max pooling over one to three dims with the places of the maxima, its gradient, and
 * max_unpool. */
#include "engine/core/modes.h"
#include "engine/ops/quantized/quantized.h"
#include "engine/ops/spatial/spatial.h"

#include <string.h>

#define TD_FAMILY "max_pool"

/* ---- plans ---- */

static td_status begin_plan(const td_call *call, int n, const td_tensor *x) {
    td_max_pool_plan *p = TD_PLAN(call, td_max_pool_plan);
    *p = (td_max_pool_plan){.kind = TD_MAX_POOL};
    return n >= 1 && n <= TD_SPATIAL
               ? td_axes_init(n, x->ndim, x->sizes, p->axis)
               : td_fail(TD_EVALUE, "one to three spatial dims expected, got %d", n);
}

/* Values, and places where they are a result, of a plan whose axes are known. */
static td_status finish_plan(const td_call *call, int n, const td_tensor *x, td_meta *out) {
    td_max_pool_plan *p = TD_PLAN(call, td_max_pool_plan);
    bool channels_last = td_lies_channels_last(n, x);
    const td_dtype dtypes[2] = {(td_dtype)x->dtype, TD_I64};
    td_volumes(n, x->ndim, x->sizes, channels_last, &p->outer, &p->inner);
    for (int k = 0; k < call->op->nresults; k++) {
        td_meta_axes(&out[k], dtypes[k], n, x->ndim, x->sizes, p->axis);
        td_meta_lay_spatial(&out[k], channels_last);
    }
    return td_check_places("a result", out->ndim, out->sizes);
}

/* Images may be none, but not without channels or elements. */
static td_status check_filled(int n, const td_tensor *x) {
    char text[TD_SHAPE_TEXT];
    for (int d = x->ndim == n + 2; d < x->ndim; d++)
        if (x->sizes[d] == 0)
            return td_fail(TD_ESHAPE, "dim %d of input of shape %s is empty: only the batch may be",
                           d + 1, td_tensor_shape_text(x, text));
    return TD_OK;
}

static td_status rule_max_pool(const td_call *call, td_meta *out) {
    const td_value *a = call->args;
    int n = a[1].n;
    td_status status = begin_plan(call, n, a[0].tensor);
    if (status == TD_OK)
        status = check_filled(n, a[0].tensor);
    if (status == TD_OK)
        status = td_read_windows(n, a[1], a[2], a[3], a[4], a[5].b,
                                 TD_PLAN(call, td_max_pool_plan)->axis);
    return status ? status : finish_plan(call, n, a[0].tensor, out);
}

static td_status rule_adaptive_max_pool(const td_call *call, td_meta *out) {
    const td_value *a = call->args;
    int n = a[1].n;
    td_status status = begin_plan(call, n, a[0].tensor);
    if (status == TD_OK)
        status = td_read_parts(n, a[1], TD_PLAN(call, td_max_pool_plan)->axis);
    return status ? status : finish_plan(call, n, a[0].tensor, out);
}

/* A plan by places, for volumes of these sizes and places' tensor, which lies as they do. */
static td_status place_plan(const td_call *call, td_max_pool_kind kind, int n, const int64_t *sizes,
                            const td_tensor *places, td_meta *out) {
    td_max_pool_plan *p = TD_PLAN(call, td_max_pool_plan);
    bool channels_last = td_lies_channels_last(n, places);
    *p = (td_max_pool_plan){.kind = kind};
    td_status status = td_axes_init(n, places->ndim, sizes, p->axis);
    for (int d = 0; d < n; d++)
        p->axis[TD_SPATIAL - n + d].out = places->sizes[places->ndim - n + d];
    td_volumes(n, places->ndim, sizes, channels_last, &p->outer, &p->inner);
    td_meta_lay_spatial(out, channels_last);
    return status;
}

/* max_scatter(values, places, size, like, stride, padding, dilation, ceil_mode): `like` has a
 * number for each spatial dim; with a padding it is the kernel of the windows that the places were
 * found in. */
static td_status rule_max_scatter(const td_call *call, td_meta *out) {
    const td_value *a = call->args;
    td_max_pool_plan *p = TD_PLAN(call, td_max_pool_plan);
    td_meta_set(out, (td_dtype)a[0].tensor->dtype, a[2].n, a[2].ints);
    td_status status = place_plan(call, TD_MAX_SCATTER, a[3].n, a[2].ints, a[1].tensor, out);
    p->in_windows = !td_is_nil(a[5]) && a[1].tensor->numel > 0;
    if (status == TD_OK && p->in_windows)
        status = td_read_windows(a[3].n, a[3], a[4], a[5], a[6], a[7].b, p->axis);
    return status;
}

static td_status rule_max_gather(const td_call *call, td_meta *out) {
    const td_value *a = call->args;
    const td_tensor *x = a[0].tensor, *places = a[1].tensor;
    td_meta_like(out, places, (td_dtype)x->dtype);
    return place_plan(call, TD_MAX_GATHER, a[2].n, x->sizes, places, out);
}

static td_status run(td_call *call, td_tensor *places) {
    td_max_pool_plan *p = TD_PLAN(call, td_max_pool_plan);
    td_tensor *packed = NULL, *packed_places = NULL;
    td_status status = TD_OK;
    TD_TRY(td_pack_spatial(call->args[0].tensor, p->inner > 1, &packed));
    if (places)
        TD_TRY(td_pack_spatial(places, p->inner > 1, &packed_places));
    p->out = call->out[0];
    p->x = packed;
    p->places = packed_places;
    if (p->kind == TD_MAX_SCATTER)
        TD_TRY(td_fill_int(p->out, 0));
    if (p->out->numel && packed->numel)
        status = TD_RUN(td_tensor_device(p->out), max_pool, p);
done:
    td_release(packed);
    td_release(packed_places);
    return status;
}

static td_status kernel_max_pool(td_call *call) {
    return run(call, call->op->nresults > 1 ? call->out[1] : NULL);
}

static td_status kernel_by_places(td_call *call) {
    return run(call, call->args[1].tensor);
}

/* ---- with or without places ---- */

/* Values, with places where these are asked for or the gradient will ask for them. */
static td_status pool(td_call *call, const td_op *both, const td_op *values, int nargs,
                      bool wants_places) {
    const td_tensor *x = call->args[0].tensor;
    bool recorded = td_op_records(x);
    if (!wants_places && !recorded)
        return td_op_apply(values, call->out, nargs, call->args);
    td_status status = td_op_apply(both, call->out, nargs, call->args);
    if (status == TD_OK && !wants_places) {
        td_release(call->out[1]);
        call->out[1] = NULL;
    }
    return status;
}

/* A batch may be empty, its images not. */
static td_status check_pooled(const td_tensor *x, int n) {
    char text[TD_SHAPE_TEXT];
    td_status status = td_check_spatial(n, x->ndim, x->sizes);
    return status || x->sizes[x->ndim - n - 1] != 0
               ? status
               : td_fail(TD_ESHAPE, "input of shape %s has no channels",
                         td_tensor_shape_text(x, text));
}

/* max_poolNd(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices) */
static td_status run_max_pool(td_call *call) {
    const td_value *a = call->args;
    td_status status = check_pooled(a[0].tensor, a[1].n);
    if (status)
        return status;
    return pool(call, TD_OP(max_pool), TD_OP(max_values), 6, a[6].b);
}

/* adaptive_max_poolNd(input, output_size, return_indices) */
static td_status run_adaptive_max_pool(td_call *call) {
    return pool(call, TD_OP(adaptive_max_pool), TD_OP(adaptive_max_values), 2, call->args[2].b);
}

/* ---- max_unpool ---- */

/* Sizes of the result: what pooling by these windows would have come from, or as they are given,
 * all of them or the spatial ones. */
static td_status unpooled_sizes(const td_value *a, int n, const td_tensor *x, int64_t *sizes) {
    char text[TD_SHAPE_TEXT], wanted[TD_SHAPE_TEXT];
    int64_t kernel[TD_SPATIAL], stride[TD_SPATIAL], padding[TD_SPATIAL];
    td_status status = td_read_spatial("kernel_size", a[2], n, 1, kernel);
    if (status == TD_OK)
        status = td_read_spatial("stride", td_is_nil(a[3]) ? a[2] : a[3], n, 1, stride);
    if (status == TD_OK)
        status = td_read_spatial("padding", a[4], n, 0, padding);
    if (status)
        return status;
    td_value size = a[5];
    if (!td_is_nil(size) && size.n != n && size.n != x->ndim)
        return td_fail(TD_EVALUE, "output_size must have %d or %d sizes, got %s", n, x->ndim,
                       td_shape_text(size.n, size.ints, text, sizeof text));
    for (int d = 0; d < n; d++) {
        int64_t in = x->sizes[x->ndim - n + d];
        int64_t out = (in - 1) * stride[d] - 2 * padding[d] + kernel[d];
        sizes[d] = td_is_nil(size) ? out : size.ints[size.n - n + d];
        if (sizes[d] < 1 || sizes[d] <= out - stride[d] || sizes[d] >= out + stride[d])
            return td_fail(TD_ESHAPE,
                           "an output_size of %s doesn't go with an input of %s: %lld is "
                           "not within %lld of %lld",
                           td_shape_text(d + 1, sizes, wanted, sizeof wanted),
                           td_tensor_shape_text(x, text), (long long)sizes[d], (long long)stride[d],
                           (long long)out);
    }
    return TD_OK;
}

/* max_unpoolNd(input, indices, kernel_size, stride, padding, output_size) */
static td_status run_max_unpool(td_call *call) {
    const td_value *a = call->args;
    td_tensor *x = a[0].tensor, *index = NULL, *flat = NULL, *y = NULL;
    int n = a[2].n, lead = x->ndim - n;
    int64_t sizes[TD_SPATIAL], shape[TD_MAX_DIMS], joined[TD_MAX_DIMS];
    td_status status = TD_OK;
    TD_TRY(td_check_spatial(n, x->ndim, x->sizes));
    TD_TRY(td_check_same_shape(x, "input", a[1].tensor, "indices"));
    TD_TRY(unpooled_sizes(a, n, x, sizes));
    memcpy(shape, x->sizes, sizeof(int64_t) * (size_t)lead);
    memcpy(shape + lead, sizes, sizeof(int64_t) * (size_t)n);
    memcpy(joined, shape, sizeof(int64_t) * (size_t)lead);
    TD_TRY(td_check_places("a result", n, sizes));
    joined[lead] = td_numel(n, x->sizes + lead);
    TD_TRY(TD_APPLY(&index, reshape, a[1], TD_INTS(lead + 1, joined)));
    TD_TRY(TD_APPLY(&flat, reshape, a[0], TD_INTS(lead + 1, joined)));
    joined[lead] = td_numel(n, sizes);
    TD_TRY(TD_APPLY(&y, zeros, TD_INTS(lead + 1, joined), TD_DTYPE((td_dtype)x->dtype),
                    TD_DEVICE(td_tensor_device(x))));
    TD_STEP(&y, scatter, TD_T(y), TD_I(-1), TD_T(index), TD_T(flat));
    TD_STEP(&y, view, TD_T(y), TD_INTS(x->ndim, shape));
    status =
        TD_APPLY(&call->out[0], contiguous, TD_T(y),
                 TD_STRING(n == 2 && td_lies_channels_last(n, x) ? "channels_last" : "contiguous"));
done:
    td_release(index);
    td_release(flat);
    td_release(y);
    return status;
}

/* ---- the table ---- */

#define POOL(n, zeros, ones)                                                                       \
    "(Tensor input, int[" #n "] kernel_size, int[" #n "]? stride=nil, int[" #n "] padding=" zeros  \
    ", int[" #n "] dilation=" ones ", bool ceil_mode=false, bool return_indices=false) -> "        \
    "(Tensor values, index Tensor indices)"
#define ADAPTIVE(n)                                                                                \
    "(Tensor input, int?[" #n "] output_size, bool return_indices=false) -> "                      \
    "(Tensor values, index Tensor indices)"
#define UNPOOL(n, zeros)                                                                           \
    "(Tensor input, index Tensor indices, int[" #n "] kernel_size, int[" #n "]? stride=nil, "      \
    "int[" #n "] padding=" zeros ", int[]? output_size=nil) -> Tensor"

/* What help says of the length of a result along a dim. */
#define MAX_LENGTH                                                                                 \
    "; l(n, d) = min(round((n + 2*padding[d] - dilation[d]*(kernel_size[d] - 1) - 1)/s[d]), "      \
    "(n + padding[d] - 1)//s[d]) + 1" TD_WINDOW_STEPS
#define PARTS_LENGTH "; l(n, d) = output_size[d] or n"

TD_OPERATOR(max_pool) = {
    .schema = "(Tensor input, int[] kernel_size, int[]? stride, int[] padding, int[] dilation, "
              "bool ceil_mode) -> (Tensor values, Tensor indices)",
    .doc = "Largest element of each window of one to three dims, and where it is.",
    .rule = rule_max_pool,
    .kernel = kernel_max_pool,
    .dtypes = TD_DTYPES_NUMBERS,
    .gradient = "input: max_scatter(g.values, indices, input.shape, kernel_size, stride, padding, "
                "dilation, ceil_mode)",
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(adaptive_max_pool) = {
    .schema = "(Tensor input, int?[] output_size) -> (Tensor values, Tensor indices)",
    .doc = "Largest element of each window of those that divide one to three dims.",
    .rule = rule_adaptive_max_pool,
    .kernel = kernel_max_pool,
    .dtypes = TD_DTYPES_NUMBERS,
    .gradient = "input: max_scatter(g.values, indices, input.shape, output_size)",
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(max_values) = {
    .schema = "(Tensor input, int[] kernel_size, int[]? stride, int[] padding, int[] dilation, "
              "bool ceil_mode) -> Tensor",
    .doc = "max_pool without places, which its gradient would need.",
    .rule = rule_max_pool,
    .kernel = kernel_max_pool,
    .dtypes = TD_DTYPES_NUMBERS,
    .flags = TD_OP_INTERNAL | TD_OP_NONDIFF,
    .forms[TD_QUANTIZED] = td_quantized_move,
};
TD_OPERATOR(adaptive_max_values) = {
    .schema = "(Tensor input, int?[] output_size) -> Tensor",
    .doc = "adaptive_max_pool without places, which its gradient would need.",
    .rule = rule_adaptive_max_pool,
    .kernel = kernel_max_pool,
    .dtypes = TD_DTYPES_NUMBERS,
    .flags = TD_OP_INTERNAL | TD_OP_NONDIFF,
    .forms[TD_QUANTIZED] = td_quantized_move,
};
TD_OPERATOR(max_scatter) = {
    .schema = "(Tensor values, index Tensor places, int[] size, int?[] like, int[]? stride=nil, "
              "int[]? padding=nil, int[]? dilation=nil, bool ceil_mode=false) -> Tensor",
    .doc = "Elements added at their places in volumes of zeros.",
    .rule = rule_max_scatter,
    .kernel = kernel_by_places,
    .dtypes = TD_DTYPES_FLOATS,
    .gradient = "values: max_gather(g, places, like)",
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(max_gather) = {
    .schema = "(Tensor x, index Tensor places, int?[] like) -> Tensor",
    .doc = "Elements at places in volumes.",
    .rule = rule_max_gather,
    .kernel = kernel_by_places,
    .dtypes = TD_DTYPES_ALL,
    .gradient = "x: max_scatter(g, places, x.shape, like)",
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(max_pool1d) = {
    .schema = POOL(1, "{0}", "{1}"),
    .doc = "Largest element of each window of (N, C, L) or (C, L); with return_indices, where each "
           "is too.",
    .shapes = "input (N?, C, L) -> (N?, C, l(L, 1)), (N?, C, l(L, 1))" MAX_LENGTH,
    .takes = "floating and integers",
    .notes = "padding is at most half of the window.",
    .run = run_max_pool,
    .forms[TD_QUANTIZED] = td_quantized_composite,
};
TD_OPERATOR(max_pool2d) = {
    .schema = POOL(2, "{0, 0}", "{1, 1}"),
    .doc = "Largest element of each window of images (N, C, H, W) or (C, H, W); with "
           "return_indices, where in its plane each is too.",
    .shapes =
        "input (N?, C, H, W) -> (N?, C, l(H, 1), l(W, 2)), (N?, C, l(H, 1), l(W, 2))" MAX_LENGTH,
    .takes = "floating and integers",
    .notes = "padding is at most half of the window.",
    .run = run_max_pool,
    .forms[TD_QUANTIZED] = td_quantized_composite,
};
TD_OPERATOR(max_pool3d) = {
    .autocast = {[TD_CPU] = TD_AUTOCAST_FP32},
    .schema = POOL(3, "{0, 0, 0}", "{1, 1, 1}"),
    .doc = "Largest element of each window of volumes (N, C, D, H, W) or (C, D, H, W); with "
           "return_indices, where in its volume each is too.",
    .shapes = "input (N?, C, D, H, W) -> (N?, C, l(D, 1), l(H, 2), l(W, 3)), (N?, C, l(D, 1), l(H, "
              "2), l(W, 3))" MAX_LENGTH,
    .takes = "floating and integers",
    .notes = "padding is at most half of the window.",
    .run = run_max_pool,
    .forms[TD_QUANTIZED] = td_quantized_composite,
};
TD_OPERATOR(adaptive_max_pool1d) = {
    .schema = ADAPTIVE(1),
    .doc = "Largest elements of windows that divide the last dim into output_size parts.",
    .shapes = "input (N?, C, L) -> (N?, C, l(L, 1)), (N?, C, l(L, 1))" PARTS_LENGTH,
    .takes = "floating and integers",
    .run = run_adaptive_max_pool,
    .forms[TD_QUANTIZED] = td_quantized_composite,
};
TD_OPERATOR(adaptive_max_pool2d) = {
    .schema = ADAPTIVE(2),
    .doc = "Largest elements of windows that divide each plane into output_size parts; false "
           "leaves a size as it is.",
    .shapes =
        "input (N?, C, H, W) -> (N?, C, l(H, 1), l(W, 2)), (N?, C, l(H, 1), l(W, 2))" PARTS_LENGTH,
    .takes = "floating and integers",
    .run = run_adaptive_max_pool,
    .forms[TD_QUANTIZED] = td_quantized_composite,
};
TD_OPERATOR(adaptive_max_pool3d) = {
    .autocast = {[TD_CPU] = TD_AUTOCAST_FP32},
    .schema = ADAPTIVE(3),
    .doc = "Largest elements of windows that divide each volume into output_size parts; false "
           "leaves a size as it is.",
    .shapes = "input (N?, C, D, H, W) -> (N?, C, l(D, 1), l(H, 2), l(W, 3)), (N?, C, l(D, 1), l(H, "
              "2), l(W, 3))" PARTS_LENGTH,
    .takes = "floating and integers",
    .run = run_adaptive_max_pool,
    .forms[TD_QUANTIZED] = td_quantized_composite,
};
TD_OPERATOR(max_unpool1d) = {
    .schema = UNPOOL(1, "{0}"),
    .doc = "Elements of (N, C, L) or (C, L) at the places that max_pool1d found, zeros elsewhere.",
    .shapes = "input (N?, C, L), indices (N?, C, L) -> (N?, C, l(L, 1)); l(n, d) = (n - 1)*s[d] - "
              "2*padding[d] + kernel_size[d] if output_size == nil else output_size[#output_size - "
              "1 + d]; s = kernel_size if stride == nil else stride",
    .run = run_max_unpool,
};
TD_OPERATOR(max_unpool2d) = {
    .autocast = {[TD_CPU] = TD_AUTOCAST_FP32},
    .schema = UNPOOL(2, "{0, 0}"),
    .doc = "Elements of images at the places that max_pool2d found, zeros elsewhere.",
    .shapes = "input (N?, C, H, W), indices (N?, C, H, W) -> (N?, C, l(H, 1), l(W, 2)); l(n, d) = "
              "(n - 1)*s[d] - 2*padding[d] + kernel_size[d] if output_size == nil else "
              "output_size[#output_size - 2 + d]; s = kernel_size if stride == nil else stride",
    .run = run_max_unpool,
};
TD_OPERATOR(max_unpool3d) = {
    .autocast = {[TD_CPU] = TD_AUTOCAST_FP32},
    .schema = UNPOOL(3, "{0, 0, 0}"),
    .doc = "Elements of volumes at the places that max_pool3d found, zeros elsewhere.",
    .shapes =
        "input (N?, C, D, H, W), indices (N?, C, D, H, W) -> (N?, C, l(D, 1), l(H, 2), l(W, 3)); "
        "l(n, d) = (n - 1)*s[d] - 2*padding[d] + kernel_size[d] if output_size == nil else "
        "output_size[#output_size - 3 + d]; s = kernel_size if stride == nil else stride",
    .run = run_max_unpool,
};
