/* pad.c: pad: constants before and behind here, other modes by `extend` (resample.c); and
 * pixel_shuffle, pixel_unshuffle and channel_shuffle, which only move elements among channels and
 * places. Windows as columns are im2col.c's. */
#include "engine/ops/spatial/spatial.h"

#include <string.h>

#define TD_FAMILY "pad"

enum { WHOLE = 4096 }; /* elements that are filled at once */

/* ---- constants ---- */

/* The pair of a dim; pairs count from the last dim. */
static void pair_of(td_value pad, int ndim, int d, int64_t *before, int64_t *after) {
    int k = ndim - 1 - d;
    *before = 2 * k < pad.n ? pad.ints[2 * k] : 0;
    *after = 2 * k < pad.n ? pad.ints[2 * k + 1] : 0;
}

static td_status check_pairs(td_value pad, const td_tensor *x) {
    char shape[TD_SHAPE_TEXT], text[TD_SHAPE_TEXT];
    if (pad.n % 2)
        return td_fail(TD_EVALUE, "pad must have pairs of numbers, got %s",
                       td_shape_text(pad.n, pad.ints, text, sizeof text));
    if (pad.n > 2 * x->ndim)
        return td_fail(TD_EVALUE, "pad %s has more pairs than the input of shape %s has dims",
                       td_shape_text(pad.n, pad.ints, text, sizeof text),
                       td_tensor_shape_text(x, shape));
    return TD_OK;
}

static td_status rule_constant_pad(const td_call *call, td_meta *out) {
    const td_tensor *x = call->args[0].tensor;
    td_value pad = call->args[1];
    char shape[TD_SHAPE_TEXT], text[TD_SHAPE_TEXT];
    td_status status = check_pairs(pad, x);
    td_meta_like(out, x, (td_dtype)x->dtype);
    for (int d = 0; d < x->ndim && status == TD_OK; d++) {
        int64_t before, after, size = x->sizes[d];
        pair_of(pad, x->ndim, d, &before, &after);
        if (__builtin_add_overflow(size, before, &size) ||
            __builtin_add_overflow(size, after, &size) || size < 0)
            return td_fail(TD_ESHAPE, "an input of shape %s can't be padded by %s",
                           td_tensor_shape_text(x, shape),
                           td_shape_text(pad.n, pad.ints, text, sizeof text));
        out->sizes[d] = size;
    }
    if (status == TD_OK && td_numel(out->ndim, out->sizes) < 0)
        return td_fail(TD_ESHAPE, "a result of shape %s is too large",
                       td_shape_text(out->ndim, out->sizes, text, sizeof text));
    if (status == TD_OK)
        td_meta_lay_spatial(out, td_lies_channels_last(0, x));
    return status;
}

/* The part of a tensor that stays when `before` and `after` places of each dim go. */
static td_status inner_part(td_tensor *x, td_value pad, int sign, td_tensor **out) {
    int64_t sizes[TD_MAX_DIMS], offset = 0;
    for (int d = 0; d < x->ndim; d++) {
        int64_t before, after;
        pair_of(pad, x->ndim, d, &before, &after);
        before = sign * before > 0 ? sign * before : 0;
        after = sign * after > 0 ? sign * after : 0;
        sizes[d] = x->sizes[d] - before - after;
        sizes[d] = sizes[d] > 0 ? sizes[d] : 0;
        offset += before * x->strides[d];
    }
    if (td_numel(x->ndim, sizes) == 0)
        offset = 0;
    return td_tensor_view(x, x->ndim, sizes, x->strides, offset, out);
}

static td_status fill_with(td_tensor *x, td_value value) {
    return value.kind == TD_KIND_INT ? td_fill_int(x, value.i) : td_fill(x, value.f);
}

/* The n places from `first` on of a dim of x. */
static td_status fill_places(td_tensor *x, int d, int64_t first, int64_t n, td_value value) {
    int64_t sizes[TD_MAX_DIMS];
    td_tensor *part = NULL;
    memcpy(sizes, x->sizes, (size_t)x->ndim * sizeof *sizes);
    sizes[d] = n;
    if (td_numel(x->ndim, sizes) == 0)
        return TD_OK;
    td_status status = td_tensor_view(x, x->ndim, sizes, x->strides, first * x->strides[d], &part);
    if (status == TD_OK)
        status = fill_with(part, value);
    td_release(part);
    return status;
}

/* The margins alone, unless all is as soon done: the inner part is copied. */
static td_status fill_margins(td_tensor *x, td_value pad, td_value value) {
    td_status status = TD_OK;
    if (x->numel <= WHOLE)
        return fill_with(x, value);
    for (int d = 0; d < x->ndim && status == TD_OK; d++) {
        int64_t before, after;
        pair_of(pad, x->ndim, d, &before, &after);
        before = before < 0 ? 0 : before < x->sizes[d] ? before : x->sizes[d];
        after = after < 0 ? 0 : after < x->sizes[d] ? after : x->sizes[d];
        status = fill_places(x, d, 0, before, value);
        if (status == TD_OK)
            status = fill_places(x, d, x->sizes[d] - after, after, value);
    }
    return status;
}

static td_status kernel_constant_pad(td_call *call) {
    td_value pad = call->args[1], value = call->args[2];
    td_tensor *from = NULL, *to = NULL;
    td_status status = TD_OK;
    TD_TRY(fill_margins(call->out[0], pad, value));
    TD_TRY(inner_part(call->args[0].tensor, pad, -1, &from));
    TD_TRY(inner_part(call->out[0], pad, 1, &to));
    if (to->numel && from->numel)
        status = td_copy_into(to, from);
done:
    td_release(from);
    td_release(to);
    return status;
}

static td_status grad_constant_pad(td_grad *grad) {
    td_value pad = grad->args[1];
    int64_t back[2 * TD_MAX_DIMS];
    for (int k = 0; k < pad.n; k++)
        back[k] = -pad.ints[k];
    return TD_APPLY(&grad->in[0], constant_pad, TD_T(grad->gout[0]), TD_INTS(pad.n, back), TD_I(0));
}

/* ---- pad ---- */

/* pad(input, pad, mode, value) */
static td_status run_pad(td_call *call) {
    const td_value *a = call->args;
    td_tensor *x = a[0].tensor;
    char shape[TD_SHAPE_TEXT];
    int n = a[1].n / 2;
    if (!strcmp(a[2].string, "constant"))
        return TD_APPLY(&call->out[0], constant_pad, a[0], a[1], td_is_nil(a[3]) ? TD_I(0) : a[3]);
    td_status status = check_pairs(a[1], x);
    if (status)
        return status;
    if (!td_is_nil(a[3]) && td_arg_double(a[3]) != 0)
        return td_fail(TD_EVALUE, "mode \"%s\" takes no value", a[2].string);
    if (n < 1 || n > TD_SPATIAL || (x->ndim != n + 1 && x->ndim != n + 2))
        return td_fail(TD_ESHAPE,
                       "mode \"%s\" pads the last dim of 2 or 3, two of 3 or 4 or three of 4 or 5, "
                       "got %d of an input of shape %s",
                       a[2].string, n, td_tensor_shape_text(x, shape));
    return TD_APPLY(&call->out[0], extend, a[0], a[1], a[2]);
}

/* ---- shuffles ---- */

/* x's dims with each of those in `parts` divided: the k-th dim of x has parts[k] places outside, or
 * 0 where it stays whole; then in the order that is given. */
static td_status divided_view(td_tensor *x, const int64_t *parts, const int *order,
                              td_tensor **out) {
    int64_t sizes[TD_MAX_DIMS], strides[TD_MAX_DIMS], in_order[TD_MAX_DIMS], steps[TD_MAX_DIMS];
    int n = 0;
    for (int d = 0; d < x->ndim; d++) {
        int64_t inside = parts[d] ? x->sizes[d] / parts[d] : x->sizes[d];
        if (parts[d]) {
            sizes[n] = parts[d];
            strides[n++] = x->strides[d] * inside;
        }
        sizes[n] = inside;
        strides[n++] = x->strides[d];
    }
    for (int k = 0; k < n; k++) {
        in_order[k] = sizes[order[k]];
        steps[k] = strides[order[k]];
    }
    return td_tensor_view(x, n, in_order, steps, 0, out);
}

/* (..., C, r, r, H, W) of the many channels and of the large planes, so that one is copied into the
 * other. */
static td_status pixel_views(td_tensor *many, td_tensor *large, int64_t r, td_tensor **from,
                             td_tensor **to) {
    int lead = many->ndim - 3, order[TD_MAX_DIMS];
    int64_t parts[TD_MAX_DIMS] = {0};
    td_tensor *split = NULL;
    for (int k = 0; k < many->ndim + 2; k++)
        order[k] = k;
    parts[lead] = large->sizes[lead] * r; /* (C r, r), and then (C, r, r) */
    td_status status = TD_OK;
    TD_TRY(divided_view(many, parts, order, &split));
    parts[lead] = large->sizes[lead];
    TD_TRY(divided_view(split, parts, order, from));
    parts[lead] = 0;
    parts[lead + 1] = many->sizes[lead + 1];
    parts[lead + 2] = many->sizes[lead + 2];
    order[lead + 1] = lead + 2;
    order[lead + 2] = lead + 4;
    order[lead + 3] = lead + 1;
    order[lead + 4] = lead + 3;
    TD_TRY(divided_view(large, parts, order, to));
done:
    td_release(split);
    return status;
}

static td_status check_shuffle(const td_tensor *x, const char *name, int64_t r) {
    char text[TD_SHAPE_TEXT];
    if (x->ndim < 3 || x->ndim > TD_MAX_DIMS - 2)
        return td_fail(TD_ESHAPE, "input must have shape (..., C, H, W), got %s",
                       td_tensor_shape_text(x, text));
    return r >= 1 && r <= INT32_MAX
               ? TD_OK
               : td_fail(TD_EVALUE, "%s must be from 1 to 2^31 - 1, got %lld", name, (long long)r);
}

static td_status rule_pixel_shuffle(const td_call *call, td_meta *out) {
    const td_tensor *x = call->args[0].tensor;
    int64_t r = call->args[1].i;
    td_status status = check_shuffle(x, "upscale_factor", r);
    if (status)
        return status;
    td_meta_like(out, x, (td_dtype)x->dtype);
    int64_t *size = out->sizes + x->ndim - 3;
    if (size[0] % (r * r))
        return td_fail(TD_ESHAPE,
                       "%lld channels can't be divided by the square of upscale_factor, "
                       "%lld",
                       (long long)size[0], (long long)(r * r));
    size[0] /= r * r;
    size[1] *= r;
    size[2] *= r;
    td_meta_lay_spatial(out, td_lies_channels_last(0, x));
    return TD_OK;
}

static td_status rule_pixel_unshuffle(const td_call *call, td_meta *out) {
    const td_tensor *x = call->args[0].tensor;
    int64_t r = call->args[1].i;
    td_status status = check_shuffle(x, "downscale_factor", r);
    if (status)
        return status;
    td_meta_like(out, x, (td_dtype)x->dtype);
    int64_t *size = out->sizes + x->ndim - 3;
    if (size[1] % r || size[2] % r)
        return td_fail(TD_ESHAPE, "planes of %lld x %lld can't be divided by downscale_factor %lld",
                       (long long)size[1], (long long)size[2], (long long)r);
    if (r > 1 && __builtin_mul_overflow(size[0], r * r, &size[0]))
        return td_fail(TD_ESHAPE, "too many channels");
    size[1] /= r;
    size[2] /= r;
    td_meta_lay_spatial(out, td_lies_channels_last(0, x));
    return TD_OK;
}

static td_status shuffle(td_call *call, bool up) {
    td_tensor *x = call->args[0].tensor, *y = call->out[0], *many = NULL, *large = NULL;
    td_status status = TD_OK;
    if (y->numel == 0)
        return TD_OK;
    TD_TRY(pixel_views(up ? x : y, up ? y : x, call->args[1].i, &many, &large));
    status = up ? td_copy_into(large, many) : td_copy_into(many, large);
done:
    td_release(many);
    td_release(large);
    return status;
}

static td_status kernel_pixel_shuffle(td_call *call) {
    return shuffle(call, true);
}
static td_status kernel_pixel_unshuffle(td_call *call) {
    return shuffle(call, false);
}

static td_status rule_channel_shuffle(const td_call *call, td_meta *out) {
    const td_tensor *x = call->args[0].tensor;
    int64_t groups = call->args[1].i;
    char text[TD_SHAPE_TEXT];
    if (x->ndim < 3 || x->ndim > TD_MAX_DIMS - 1)
        return td_fail(TD_ESHAPE, "input must have shape (N, C, ...), got %s",
                       td_tensor_shape_text(x, text));
    if (groups < 1 || x->sizes[1] % groups)
        return td_fail(TD_ESHAPE, "%lld channels can't be divided into %lld groups",
                       (long long)x->sizes[1], (long long)groups);
    td_meta_like(out, x, (td_dtype)x->dtype);
    td_meta_lay_spatial(out, td_lies_channels_last(0, x));
    return TD_OK;
}

static td_status kernel_channel_shuffle(td_call *call) {
    td_tensor *x = call->args[0].tensor, *y = call->out[0], *from = NULL, *to = NULL;
    int64_t parts[TD_MAX_DIMS] = {0}, groups = call->args[1].i;
    int order[TD_MAX_DIMS];
    td_status status = TD_OK;
    if (y->numel == 0)
        return TD_OK;
    for (int k = 0; k <= x->ndim; k++)
        order[k] = k;
    parts[1] = groups;
    TD_TRY(divided_view(x, parts, order, &from));
    parts[1] = x->sizes[1] / groups;
    order[1] = 2;
    order[2] = 1;
    TD_TRY(divided_view(y, parts, order, &to));
    status = td_copy_into(to, from);
done:
    td_release(from);
    td_release(to);
    return status;
}

static td_status grad_channel_shuffle(td_grad *grad) {
    int ndim;
    int64_t channels = td_grad_shape(grad, 0, &ndim)[1], groups = grad->args[1].i;
    return TD_APPLY(&grad->in[0], channel_shuffle, TD_T(grad->gout[0]),
                    TD_I(channels ? channels / groups : 1));
}

/* ---- the table ---- */

TD_OPERATOR(constant_pad) = {
    .schema = "(Tensor input, int[] pad, number value) -> Tensor",
    .doc = "A constant before and behind; fewer places where a number is negative.",
    .rule = rule_constant_pad,
    .kernel = kernel_constant_pad,
    .dtypes = TD_DTYPES_ALL,
    .backward = grad_constant_pad,
    .saves = "",
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(pad) = {
    .schema = "(Tensor input, int[] pad, \"constant\"|\"reflect\"|\"replicate\"|\"circular\" "
              "mode=\"constant\", number? value=nil) -> Tensor",
    .doc = "Places before and behind the last dims: pad has a pair for each, the last dim's first; "
           "negative ones take away.",
    .shapes = "input (...) -> (padded(input, pad)...)",
    .notes = "pad has pairs, before and behind, for the last dim first; negative ones cut off. "
             "\"constant\" takes any number of dims; others the last dim of 2 or 3, two of 3 or 4, "
             "three of 4 or 5. \"reflect\" needs a dim larger than what it adds.",
    .run = run_pad,
};
TD_OPERATOR(pixel_shuffle) = {
    .schema = "(Tensor input, int upscale_factor) -> Tensor",
    .doc = "Channels (C r^2) of (..., C r^2, H, W) become places: (..., C, H r, W r).",
    .shapes = "input (..., C, H, W) -> (..., C//r^2, H*r, W*r); r = upscale_factor",
    .rule = rule_pixel_shuffle,
    .kernel = kernel_pixel_shuffle,
    .dtypes = TD_DTYPES_ALL,
    .gradient = "input: pixel_unshuffle(g, upscale_factor)",
};
TD_OPERATOR(pixel_unshuffle) = {
    .schema = "(Tensor input, int downscale_factor) -> Tensor",
    .doc = "Places of (..., C, H r, W r) become channels: (..., C r^2, H, W).",
    .shapes = "input (..., C, H, W) -> (..., C*r^2, H//r, W//r); r = downscale_factor",
    .rule = rule_pixel_unshuffle,
    .kernel = kernel_pixel_unshuffle,
    .dtypes = TD_DTYPES_ALL,
    .gradient = "input: pixel_shuffle(g, downscale_factor)",
};
TD_OPERATOR(channel_shuffle) = {
    .schema = "(Tensor input, int groups) -> Tensor",
    .doc = "Channels of (N, C, ...) in another order: the first of each group, then the second.",
    .shapes = "input (N, C, ...) -> (N, C, ...)",
    .rule = rule_channel_shuffle,
    .kernel = kernel_channel_shuffle,
    .dtypes = TD_DTYPES_ALL,
    .backward = grad_channel_shuffle,
    .saves = "",
};
