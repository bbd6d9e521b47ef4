/* pool.c: pooling of images. A rule works out the windows along each dim (td_pool_window); devices
 * expand them. */
#include "engine/ops/copy.h"
#include "engine/ops/meta.h"
#include "engine/ops/plan.h"

#define TD_FAMILY "pool"

/* ---- windows that slide ---- */

/* How many windows there are along a dim; the last must begin inside the input or its left padding.
 */
static int64_t count_windows(const td_pool_window *w, bool ceil_mode) {
    int64_t reach = w->dilation * (w->kernel - 1) + 1;
    int64_t room = w->in + 2 * w->padding - reach;
    if (room < 0)
        return 0;
    int64_t n = (room + (ceil_mode ? w->stride - 1 : 0)) / w->stride + 1;
    if (ceil_mode && (n - 1) * w->stride >= w->in + w->padding)
        n--;
    return n;
}

/* Arguments kernel_size, stride (nil: kernel_size), padding, then dilation where there is one. */
static td_status read_sliding(const td_value *a, td_value dilation, bool ceil_mode,
                              td_pool_window *window) {
    int64_t kernel[2], stride[2], padding[2], step[2] = {1, 1};
    td_status status = td_read_pair("kernel_size", a[0], 1, kernel);
    if (status == TD_OK)
        status = td_read_pair("stride", td_is_nil(a[1]) ? a[0] : a[1], 1, stride);
    if (status == TD_OK)
        status = td_read_pair("padding", a[2], 0, padding);
    if (status == TD_OK && !td_is_nil(dilation))
        status = td_read_pair("dilation", dilation, 1, step);
    if (status)
        return status;
    for (int d = 0; d < 2; d++) {
        td_pool_window *w = &window[d];
        if (2 * padding[d] > kernel[d])
            return td_fail(TD_EVALUE,
                           "padding must be at most half of kernel_size, got %lld and %lld",
                           (long long)padding[d], (long long)kernel[d]);
        *w = (td_pool_window){.in = w->in,
                              .kernel = kernel[d],
                              .stride = stride[d],
                              .padding = padding[d],
                              .dilation = step[d]};
        w->out = count_windows(w, ceil_mode);
        if (w->out < 1)
            return td_fail(TD_ESHAPE, "a window of %lld x %lld doesn't fit an input of %lld x %lld",
                           (long long)kernel[0], (long long)kernel[1], (long long)window[0].in,
                           (long long)window[1].in);
    }
    return TD_OK;
}

static td_status read_max(const td_value *a, td_pool_plan *p) {
    return read_sliding(a, a[3], a[4].b, p->window);
}

static td_status read_mean(const td_value *a, td_pool_plan *p) {
    if (!td_is_nil(a[5]) && a[5].i == 0)
        return td_fail(TD_EVALUE, "divisor_override must not be 0");
    p->count_padding = a[4].b;
    p->divisor = td_is_nil(a[5]) ? 0 : a[5].i;
    return read_sliding(a, TD_NIL, a[3].b, p->window);
}

/* ---- plans ---- */

static bool is_plane(int64_t high, int64_t wide) {
    return high <= INT32_MAX && wide <= INT32_MAX && high <= INT32_MAX / (wide ? wide : 1);
}

static td_status check_input(const td_pool_plan *p) {
    return is_plane(p->window[0].in, p->window[1].in)
               ? TD_OK
               : td_fail(TD_ESHAPE, "planes of more than 2^31 - 1 elements");
}

static td_status check_result(const td_pool_plan *p) {
    const td_pool_window *w = p->window;
    return is_plane(w[0].out, w[1].out) ? TD_OK
                                        : td_fail(TD_ESHAPE, "a result of %lld x %lld is too large",
                                                  (long long)w[0].out, (long long)w[1].out);
}

typedef td_status (*window_reader)(const td_value *args, td_pool_plan *p);

/* The call's plan for planes of this shape, with windows as the operator's arguments say. */
static td_status make_plan(const td_call *call, td_pool_kind kind, int ndim, const int64_t *sizes,
                           const td_value *args, window_reader read) {
    td_pool_plan *p = TD_PLAN(call, td_pool_plan);
    td_status status = td_check_images(ndim, sizes);
    if (status)
        return status;
    *p = (td_pool_plan){.kind = kind, .planes = td_numel(ndim - 2, sizes)};
    p->window[0].in = sizes[ndim - 2];
    p->window[1].in = sizes[ndim - 1];
    status = check_input(p);
    if (status == TD_OK)
        status = read(args, p);
    return status ? status : check_result(p);
}

/* Planes of a small shape and of a large one, where places say which is which. */
static td_status make_place_plan(const td_call *call, td_pool_kind kind, int ndim,
                                 const int64_t *large, const int64_t *small) {
    td_pool_plan *p = TD_PLAN(call, td_pool_plan);
    *p = (td_pool_plan){.kind = kind, .planes = td_numel(ndim - 2, large)};
    for (int d = 0; d < 2; d++) {
        p->window[d].in = large[ndim - 2 + d];
        p->window[d].out = small[ndim - 2 + d];
    }
    td_status status = check_input(p);
    return status ? status : check_result(p);
}

/* The smaller planes of a plan. */
static void set_small_meta(const td_call *call, td_meta *out, td_dtype dtype, const td_tensor *x) {
    const td_pool_plan *p = TD_PLAN(call, td_pool_plan);
    td_meta_set(out, dtype, x->ndim, x->sizes);
    out->sizes[x->ndim - 2] = p->window[0].out;
    out->sizes[x->ndim - 1] = p->window[1].out;
}

/* Hand the rule's plan to the device, its tensors row-major. */
static td_status run(td_call *call, td_tensor *x, td_tensor *places) {
    td_pool_plan *p = TD_PLAN(call, td_pool_plan);
    bool adds = p->kind == TD_POOL_SCATTER || p->kind == TD_POOL_MEAN_BACKWARD;
    td_tensor *packed = NULL, *y = NULL;
    td_status status = TD_OK;
    TD_TRY(td_contiguous(x, &packed));
    TD_TRY(td_contiguous(call->out[0], &y)); /* out= may lie otherwise */
    p->out = y;
    p->x = packed;
    p->places = places;
    if (adds)
        TD_TRY(td_fill_int(p->out, 0));
    TD_TRY(TD_RUN(td_tensor_device(p->out), pool, p));
    if (y->data != call->out[0]->data)
        status = td_copy_into(call->out[0], y);
done:
    td_release(packed);
    td_release(y);
    return status;
}

/* ---- max pooling ---- */

static td_status rule_max_places(const td_call *call, td_meta *out) {
    const td_tensor *x = call->args[0].tensor;
    td_status status = td_check_float((td_dtype)x->dtype);
    if (status == TD_OK)
        status = make_plan(call, TD_POOL_MAX, x->ndim, x->sizes, call->args + 1, read_max);
    if (status)
        return status;
    set_small_meta(call, &out[0], (td_dtype)x->dtype, x);
    set_small_meta(call, &out[1], TD_I32, x);
    return TD_OK;
}

static td_status kernel_max_places(td_call *call) {
    return run(call, call->args[0].tensor, call->out[1]);
}

/* ---- to and from places ---- */

static td_status rule_pool_scatter(const td_call *call, td_meta *out) {
    const td_value *a = call->args;
    td_meta_set(out, (td_dtype)a[0].tensor->dtype, a[2].n, a[2].ints);
    return make_place_plan(call, TD_POOL_SCATTER, a[2].n, a[2].ints, a[0].tensor->sizes);
}

static td_status rule_pool_gather(const td_call *call, td_meta *out) {
    const td_tensor *x = call->args[0].tensor, *places = call->args[1].tensor;
    td_meta_set(out, (td_dtype)x->dtype, places->ndim, places->sizes);
    return make_place_plan(call, TD_POOL_GATHER, x->ndim, x->sizes, places->sizes);
}

static td_status kernel_by_places(td_call *call) {
    return run(call, call->args[0].tensor, call->args[1].tensor);
}

/* ---- means: forward(x, arguments...), backward(gy, input_size, arguments...) ---- */

static td_status rule_forward(const td_call *call, td_meta *out, td_pool_kind kind,
                              window_reader read) {
    const td_tensor *x = call->args[0].tensor;
    td_status status = td_check_float((td_dtype)x->dtype);
    if (status == TD_OK)
        status = make_plan(call, kind, x->ndim, x->sizes, call->args + 1, read);
    if (status == TD_OK)
        set_small_meta(call, out, (td_dtype)x->dtype, x);
    return status;
}

static td_status rule_backward(const td_call *call, td_meta *out, td_pool_kind kind,
                               window_reader read) {
    const td_value *a = call->args;
    td_meta_set(out, (td_dtype)a[0].tensor->dtype, a[1].n, a[1].ints);
    return make_plan(call, kind, a[1].n, a[1].ints, a + 2, read);
}

static td_status kernel_planes(td_call *call) {
    return run(call, call->args[0].tensor, NULL);
}

#define DEFINE_MAP(name, kind, read)                                                               \
    TD_RULE(rule_##name, rule_forward, kind, read)                                                 \
    TD_RULE(rule_##name##_backward, rule_backward, kind##_BACKWARD, read)
DEFINE_MAP(avg_pool2d, TD_POOL_MEAN, read_mean)

/* ---- the table ---- */

/* Operators linear in planes, and back, with the same arguments behind. */
#define MAP(name, arguments)                                                                       \
    .rule = rule_##name, .kernel = kernel_planes, .dtypes = TD_DTYPES_FLOATS,                      \
    .gradient = "input: " #name "_backward(g, input.shape, " arguments ")"
#define MAP_BACKWARD(name, arguments)                                                              \
    .rule = rule_##name##_backward, .kernel = kernel_planes, .dtypes = TD_DTYPES_FLOATS,           \
    .gradient = "gy: " #name "(g, " arguments ")", .flags = TD_OP_INTERNAL
#define AVG_POOL "kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override"

TD_OPERATOR(max_pool2d_with_indices) = {
    .schema = "(Tensor input, int[2] kernel_size, int[2]? stride=nil, "
              "int[2] padding={0, 0}, int[2] dilation={1, 1}, bool ceil_mode=false) -> "
              "(Tensor values, Tensor places)",
    .doc = "max_pool2d with the place of each element in its plane, as int32.",
    .rule = rule_max_places,
    .kernel = kernel_max_places,
    .dtypes = TD_DTYPES_FLOATS,
    .gradient = "input: pool_scatter(g.values, places, input.shape)",
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(pool_scatter) = {
    .schema = "(Tensor gy, Tensor places, int[] input_size) -> Tensor",
    .doc = "Elements added at their places in planes of zeros.",
    .rule = rule_pool_scatter,
    .kernel = kernel_by_places,
    .dtypes = TD_DTYPES_FLOATS | TD_DTYPE_BIT(I32),
    .gradient = "gy: pool_gather(g, places)",
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(pool_gather) = {
    .schema = "(Tensor x, Tensor places) -> Tensor",
    .doc = "Elements at places in planes.",
    .rule = rule_pool_gather,
    .kernel = kernel_by_places,
    .dtypes = TD_DTYPES_ALL,
    .gradient = "x: pool_scatter(g, places, x.shape)",
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(avg_pool2d) = {
    .schema = "(Tensor input, int[2] kernel_size, int[2]? stride=nil, "
              "int[2] padding={0, 0}, bool ceil_mode=false, bool count_include_pad=true, "
              "int? divisor_override=nil) -> Tensor",
    .doc = "Mean of each window of images (N, C, H, W) or (C, H, W).",
    MAP(avg_pool2d, AVG_POOL),
    .flags = TD_OP_OUT,
};
TD_OPERATOR(avg_pool2d_backward) = {
    .schema = "(Tensor gy, int[] input_size, int[2] kernel_size, "
              "int[2]? stride, int[2] padding, bool ceil_mode, bool count_include_pad, "
              "int? divisor_override) -> Tensor",
    .doc = "Gradient of avg_pool2d.",
    MAP_BACKWARD(avg_pool2d, AVG_POOL),
};
