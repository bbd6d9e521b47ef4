/* pool.c: pooling and nearest interpolation of images. The windows of an operator are worked out
 * once per call (td_pool_windows); every kernel works from them. */
#include "engine/ops/pool.h"

#include "engine/core/memory.h"
#include "engine/ops/copy.h"
#include "engine/ops/images.h"

#include <math.h>
#include <string.h>

#define TD_FAMILY "pool"

/* ---- plans ---- */

void td_pool_windows_free(td_pool_windows *plan) {
    td_free(plan->row_begin);
    td_free(plan->scale);
    *plan = (td_pool_windows){0};
}

/* Room for the windows; planes are x's dims before the last two. */
static td_status plan_new(int ndim, const int64_t *x, int64_t oh, int64_t ow, bool scaled,
                          td_pool_windows *plan) {
    *plan = (td_pool_windows){.planes = td_numel(ndim - 2, x),
                              .h = x[ndim - 2],
                              .w = x[ndim - 1],
                              .oh = oh,
                              .ow = ow,
                              .row_step = 1,
                              .column_step = 1};
    if (oh > INT32_MAX / (ow ? ow : 1))
        return td_fail(TD_ESHAPE, "a result of %lld x %lld is too large", (long long)oh,
                       (long long)ow);
    if (plan->h > INT32_MAX / (plan->w ? plan->w : 1))
        return td_fail(TD_ESHAPE, "planes of more than 2^31 - 1 elements");
    plan->row_begin = td_malloc((size_t)(2 * oh + 2 * ow + 1) * sizeof(int32_t));
    if (scaled)
        plan->scale = td_malloc((size_t)(oh * ow + 1) * sizeof(double));
    if (!plan->row_begin || (scaled && !plan->scale)) {
        td_pool_windows_free(plan);
        return td_fail(TD_ENOMEM, "out of memory");
    }
    plan->row_end = plan->row_begin + oh;
    plan->column_begin = plan->row_end + oh;
    plan->column_end = plan->column_begin + ow;
    return TD_OK;
}

/* ---- windows that slide ---- */

typedef struct sliding {
    int64_t kernel[2], stride[2], padding[2], dilation[2];
    bool ceil_mode;
    int64_t in[2], out[2];
} sliding;

/* How many windows there are along a dim; the last must begin inside the input or its left padding.
 */
static int64_t count_windows(const sliding *s, int d) {
    int64_t reach = s->dilation[d] * (s->kernel[d] - 1) + 1;
    int64_t room = s->in[d] + 2 * s->padding[d] - reach;
    if (room < 0)
        return 0;
    int64_t n = (room + (s->ceil_mode ? s->stride[d] - 1 : 0)) / s->stride[d] + 1;
    if (s->ceil_mode && (n - 1) * s->stride[d] >= s->in[d] + s->padding[d])
        n--;
    return n;
}

/* Arguments kernel_size, stride (nil: kernel_size), padding, then dilation where there is one. */
static td_status read_sliding(const int64_t *x, int ndim, const td_value *a, td_value dilation,
                              bool ceil_mode, sliding *s) {
    td_status status = td_check_images(ndim, x);
    if (status == TD_OK)
        status = td_read_pair("kernel_size", a[0], 1, s->kernel);
    if (status == TD_OK)
        status = td_read_pair("stride", td_is_nil(a[1]) ? a[0] : a[1], 1, s->stride);
    if (status == TD_OK)
        status = td_read_pair("padding", a[2], 0, s->padding);
    s->dilation[0] = s->dilation[1] = 1;
    if (status == TD_OK && !td_is_nil(dilation))
        status = td_read_pair("dilation", dilation, 1, s->dilation);
    if (status)
        return status;
    s->ceil_mode = ceil_mode;
    for (int d = 0; d < 2; d++) {
        if (2 * s->padding[d] > s->kernel[d])
            return td_fail(TD_EVALUE,
                           "padding must be at most half of kernel_size, got %lld and %lld",
                           (long long)s->padding[d], (long long)s->kernel[d]);
        s->in[d] = x[ndim - 2 + d];
        s->out[d] = count_windows(s, d);
        if (s->out[d] < 1)
            return td_fail(TD_ESHAPE, "a window of %lld x %lld doesn't fit an input of %lld x %lld",
                           (long long)s->kernel[0], (long long)s->kernel[1], (long long)x[ndim - 2],
                           (long long)x[ndim - 1]);
    }
    return TD_OK;
}

static void slide(const sliding *s, int d, int32_t *begin, int32_t *end) {
    for (int64_t k = 0; k < s->out[d]; k++) {
        int64_t from = k * s->stride[d] - s->padding[d];
        int64_t to = from + s->dilation[d] * (s->kernel[d] - 1) + 1;
        if (from < 0)
            from += (s->dilation[d] - 1 - from) / s->dilation[d] * s->dilation[d];
        begin[k] = (int32_t)from;
        end[k] = (int32_t)(to < s->in[d] ? to : s->in[d]);
    }
}

static td_status plan_sliding(const int64_t *x, int ndim, const sliding *s, bool scaled,
                              td_pool_windows *plan) {
    td_status status = plan_new(ndim, x, s->out[0], s->out[1], scaled, plan);
    if (status)
        return status;
    slide(s, 0, plan->row_begin, plan->row_end);
    slide(s, 1, plan->column_begin, plan->column_end);
    plan->row_step = s->dilation[0];
    plan->column_step = s->dilation[1];
    plan->pairs = true;
    for (int d = 0; d < 2; d++)
        plan->pairs &= s->kernel[d] == 2 && s->stride[d] == 2 && s->padding[d] == 0 &&
                       s->dilation[d] == 1 && 2 * s->out[d] <= s->in[d];
    return TD_OK;
}

static void set_meta(td_meta *out, td_dtype dtype, int ndim, const int64_t *sizes, int64_t oh,
                     int64_t ow) {
    out->dtype = dtype;
    out->ndim = ndim;
    memcpy(out->sizes, sizes, sizeof(int64_t) * (size_t)ndim);
    out->sizes[ndim - 2] = oh;
    out->sizes[ndim - 1] = ow;
}

/* ---- max pooling ---- */

static td_status sliding_max(const int64_t *x, int ndim, const td_value *a, sliding *s) {
    return read_sliding(x, ndim, a, a[3], a[4].b, s);
}

static td_status rule_max_places(const td_call *call, td_meta *out) {
    const td_tensor *x = call->args[0].tensor;
    sliding s;
    td_status status = td_check_floating(x);
    if (status == TD_OK)
        status = sliding_max(x->sizes, x->ndim, call->args + 1, &s);
    if (status)
        return status;
    set_meta(&out[0], (td_dtype)x->dtype, x->ndim, x->sizes, s.out[0], s.out[1]);
    set_meta(&out[1], TD_I32, x->ndim, x->sizes, s.out[0], s.out[1]);
    return TD_OK;
}

static td_status kernel_max_places(td_call *call) {
    td_tensor *x = NULL;
    td_pool_windows plan = {0};
    sliding s;
    td_status status = TD_OK;
    TD_TRY(td_contiguous(call->args[0].tensor, &x));
    TD_TRY(sliding_max(x->sizes, x->ndim, call->args + 1, &s));
    TD_TRY(plan_sliding(x->sizes, x->ndim, &s, false, &plan));
    TD_TRY(td_cpu_max_pool(&plan, x, call->out[0], call->out[1]));
done:
    td_pool_windows_free(&plan);
    td_release(x);
    return status;
}

static td_status grad_max_places(td_grad *grad) {
    int ndim;
    const int64_t *sizes = td_grad_shape(grad, 0, &ndim);
    return TD_APPLY(&grad->in[0], pool_scatter, TD_T(grad->gout[0]), TD_T(grad->out[1]),
                    TD_INTS(ndim, sizes));
}

static td_status run_max_pool2d(td_call *call) {
    td_tensor *out[2];
    td_status status = td_op_apply(TD_OP(max_pool2d_with_indices), out, 6, call->args);
    if (status)
        return status;
    call->out[0] = out[0];
    td_release(out[1]);
    return TD_OK;
}

/* ---- to and from places ---- */

static td_status rule_pool_scatter(const td_call *call, td_meta *out) {
    const td_value *a = call->args;
    out->dtype = (td_dtype)a[0].tensor->dtype;
    out->ndim = a[2].n;
    memcpy(out->sizes, a[2].ints, sizeof(int64_t) * (size_t)a[2].n);
    return TD_OK;
}

static td_status plan_places(const int64_t *x, int ndim, const td_tensor *y,
                             td_pool_windows *plan) {
    return plan_new(ndim, x, y->sizes[ndim - 2], y->sizes[ndim - 1], false, plan);
}

static td_status kernel_pool_scatter(td_call *call) {
    td_tensor *g = NULL, *gx = call->out[0];
    td_pool_windows plan = {0};
    td_status status = TD_OK;
    TD_TRY(td_contiguous(call->args[0].tensor, &g));
    TD_TRY(plan_places(gx->sizes, gx->ndim, g, &plan));
    TD_TRY(td_fill_int(gx, 0));
    TD_TRY(td_cpu_pool_scatter(&plan, g, call->args[1].tensor, gx));
done:
    td_pool_windows_free(&plan);
    td_release(g);
    return status;
}

static td_status grad_pool_scatter(td_grad *grad) {
    return TD_APPLY(&grad->in[0], pool_gather, TD_T(grad->gout[0]), grad->args[1]);
}

static td_status rule_pool_gather(const td_call *call, td_meta *out) {
    const td_tensor *places = call->args[1].tensor;
    out->dtype = (td_dtype)call->args[0].tensor->dtype;
    out->ndim = places->ndim;
    memcpy(out->sizes, places->sizes, sizeof(int64_t) * places->ndim);
    return TD_OK;
}

static td_status kernel_pool_gather(td_call *call) {
    td_tensor *x = NULL;
    td_pool_windows plan = {0};
    td_status status = TD_OK;
    TD_TRY(td_contiguous(call->args[0].tensor, &x));
    TD_TRY(plan_places(x->sizes, x->ndim, call->args[1].tensor, &plan));
    TD_TRY(td_cpu_pool_gather(&plan, x, call->args[1].tensor, call->out[0]));
done:
    td_pool_windows_free(&plan);
    td_release(x);
    return status;
}

static td_status grad_pool_gather(td_grad *grad) {
    int ndim;
    const int64_t *sizes = td_grad_shape(grad, 0, &ndim);
    return TD_APPLY(&grad->in[0], pool_scatter, TD_T(grad->gout[0]), grad->args[1],
                    TD_INTS(ndim, sizes));
}

/* ---- mean pooling: windows of avg_pool2d or adaptive_avg_pool2d ---- */

static td_status sliding_mean(const int64_t *x, int ndim, const td_value *a, sliding *s) {
    td_status status = read_sliding(x, ndim, a, TD_NIL, a[3].b, s);
    if (status == TD_OK && !td_is_nil(a[5]) && a[5].i == 0)
        return td_fail(TD_EVALUE, "divisor_override must not be 0");
    return status;
}

/* The part of a window that lies in the padded input, which count_include_pad divides by. */
static int64_t padded_extent(const sliding *s, int d, int64_t k) {
    int64_t from = k * s->stride[d] - s->padding[d], to = from + s->kernel[d];
    int64_t end = s->in[d] + s->padding[d];
    return (to < end ? to : end) - from;
}

static td_status plan_avg(const int64_t *x, int ndim, const td_value *a, td_pool_windows *plan) {
    sliding s;
    td_status status = sliding_mean(x, ndim, a, &s);
    if (status == TD_OK)
        status = plan_sliding(x, ndim, &s, true, plan);
    if (status)
        return status;
    for (int64_t i = 0; i < plan->oh; i++)
        for (int64_t j = 0; j < plan->ow; j++) {
            int64_t inside = (int64_t)(plan->row_end[i] - plan->row_begin[i]) *
                             (plan->column_end[j] - plan->column_begin[j]);
            int64_t count = !td_is_nil(a[5]) ? a[5].i
                            : a[4].b         ? padded_extent(&s, 0, i) * padded_extent(&s, 1, j)
                                             : inside;
            plan->scale[i * plan->ow + j] = 1.0 / (double)count;
        }
    return TD_OK;
}

static void divide(int64_t in, int64_t out, int32_t *begin, int32_t *end) {
    for (int64_t k = 0; k < out; k++) {
        begin[k] = (int32_t)(k * in / out);
        end[k] = (int32_t)(((k + 1) * in + out - 1) / out);
    }
}

static td_status plan_adaptive(const int64_t *x, int ndim, const td_value *a,
                               td_pool_windows *plan) {
    int64_t out[2];
    td_status status = td_check_images(ndim, x);
    if (status == TD_OK)
        status = td_read_pair("output_size", a[0], 1, out);
    if (status == TD_OK && (x[ndim - 2] == 0 || x[ndim - 1] == 0))
        status = td_fail(TD_ESHAPE, "the input's planes are empty");
    if (status == TD_OK)
        status = plan_new(ndim, x, out[0], out[1], true, plan);
    if (status)
        return status;
    divide(plan->h, plan->oh, plan->row_begin, plan->row_end);
    divide(plan->w, plan->ow, plan->column_begin, plan->column_end);
    for (int64_t i = 0; i < plan->oh; i++)
        for (int64_t j = 0; j < plan->ow; j++)
            plan->scale[i * plan->ow + j] =
                1.0 / ((double)(plan->row_end[i] - plan->row_begin[i]) *
                       (double)(plan->column_end[j] - plan->column_begin[j]));
    return TD_OK;
}

/* ---- nearest interpolation ---- */

static td_status output_size(const int64_t *x, int ndim, const td_value *a, int64_t *out,
                             double *step) {
    td_status status = td_check_images(ndim, x);
    bool by_size = !td_is_nil(a[0]), by_factor = !td_is_nil(a[1]);
    if (status)
        return status;
    if (strcmp(a[2].string, "nearest") != 0)
        return td_fail(TD_EVALUE, "mode must be \"nearest\", got \"%s\"", a[2].string);
    if (by_size == by_factor)
        return td_fail(TD_EVALUE, "either size or scale_factor must be given");
    if (by_size && (status = td_read_pair("size", a[0], 1, out)))
        return status;
    for (int d = 0; d < 2; d++) {
        int64_t in = x[ndim - 2 + d];
        double factor = by_factor ? td_arg_double(a[1]) : 0;
        if (by_factor && !(factor > 0 && factor < 1e6))
            return td_fail(TD_EVALUE, "scale_factor must be positive, got %g", factor);
        if (by_factor)
            out[d] = (int64_t)floor((double)in * factor);
        if (out[d] < 1 || out[d] > INT32_MAX || in < 1)
            return td_fail(TD_ESHAPE, "the result would have size %lld", (long long)out[d]);
        step[d] = by_size ? (double)in / (double)out[d] : 1 / factor;
    }
    return TD_OK;
}

static void nearest_places(int64_t in, int64_t out, double step, int32_t *begin, int32_t *end) {
    for (int64_t k = 0; k < out; k++) {
        int64_t at = (int64_t)floor((double)k * step);
        begin[k] = (int32_t)(at < in ? at : in - 1);
        end[k] = begin[k] + 1;
    }
}

static td_status plan_nearest(const int64_t *x, int ndim, const td_value *a,
                              td_pool_windows *plan) {
    int64_t out[2];
    double step[2];
    td_status status = output_size(x, ndim, a, out, step);
    if (status == TD_OK)
        status = plan_new(ndim, x, out[0], out[1], false, plan);
    if (status)
        return status;
    nearest_places(plan->h, plan->oh, step[0], plan->row_begin, plan->row_end);
    nearest_places(plan->w, plan->ow, step[1], plan->column_begin, plan->column_end);
    return TD_OK;
}

/* ---- operators that map planes to planes by a plan, and back ---- */

/* What the three have in common: forward(x, arguments...) and backward(g, input_size,
 * arguments...). */
typedef struct plane_map {
    const char *forward, *backward;
    td_status (*plan)(const int64_t *x, int ndim, const td_value *args, td_pool_windows *plan);
    td_status (*run)(const td_pool_windows *plan, const td_tensor *x, td_tensor *y);
    td_status (*run_backward)(const td_pool_windows *plan, const td_tensor *g, td_tensor *gx);
} plane_map;

static const plane_map plane_maps[] = {
    {"avg_pool2d", "avg_pool2d_backward", plan_avg, td_cpu_mean_pool, td_cpu_mean_pool_backward},
    {"adaptive_avg_pool2d", "adaptive_avg_pool2d_backward", plan_adaptive, td_cpu_mean_pool,
     td_cpu_mean_pool_backward},
    {"interpolate", "interpolate_backward", plan_nearest, td_cpu_nearest, td_cpu_nearest_backward},
};

static const plane_map *map_of(const td_op *op) {
    const plane_map *map = plane_maps;
    while (strcmp(map->forward, op->name) != 0 && strcmp(map->backward, op->name) != 0)
        map++;
    return map;
}

static td_status rule_map(const td_call *call, td_meta *out) {
    const td_tensor *x = call->args[0].tensor;
    td_pool_windows plan = {0};
    td_status status = td_check_floating(x);
    if (status == TD_OK)
        status = map_of(call->op)->plan(x->sizes, x->ndim, call->args + 1, &plan);
    if (status == TD_OK)
        set_meta(out, (td_dtype)x->dtype, x->ndim, x->sizes, plan.oh, plan.ow);
    td_pool_windows_free(&plan);
    return status;
}

static td_status kernel_map(td_call *call) {
    const plane_map *map = map_of(call->op);
    td_tensor *x = NULL;
    td_pool_windows plan = {0};
    td_status status = TD_OK;
    TD_TRY(td_contiguous(call->args[0].tensor, &x));
    TD_TRY(map->plan(x->sizes, x->ndim, call->args + 1, &plan));
    TD_TRY(map->run(&plan, x, call->out[0]));
done:
    td_pool_windows_free(&plan);
    td_release(x);
    return status;
}

/* op(g, input_size, arguments...) */
static td_status grad_map(td_grad *grad) {
    td_value args[TD_MAX_PARAMS];
    int ndim, n = grad->op->nparams;
    const int64_t *sizes = td_grad_shape(grad, 0, &ndim);
    args[0] = TD_T(grad->gout[0]);
    args[1] = TD_INTS(ndim, sizes);
    for (int k = 1; k < n; k++)
        args[k + 1] = grad->args[k];
    return td_op_apply(td_op_find(map_of(grad->op)->backward), &grad->in[0], n + 1, args);
}

static td_status rule_map_backward(const td_call *call, td_meta *out) {
    const td_value *a = call->args;
    out->dtype = (td_dtype)a[0].tensor->dtype;
    out->ndim = a[1].n;
    memcpy(out->sizes, a[1].ints, sizeof(int64_t) * (size_t)a[1].n);
    return TD_OK;
}

static td_status kernel_map_backward(td_call *call) {
    const plane_map *map = map_of(call->op);
    td_tensor *g = NULL, *gx = call->out[0];
    td_pool_windows plan = {0};
    td_status status = TD_OK;
    TD_TRY(td_contiguous(call->args[0].tensor, &g));
    TD_TRY(map->plan(gx->sizes, gx->ndim, call->args + 2, &plan));
    TD_TRY(td_fill_int(gx, 0));
    TD_TRY(map->run_backward(&plan, g, gx));
done:
    td_pool_windows_free(&plan);
    td_release(g);
    return status;
}

static td_status grad_map_backward(td_grad *grad) {
    td_value args[TD_MAX_PARAMS];
    int n = grad->op->nparams;
    args[0] = TD_T(grad->gout[0]);
    for (int k = 2; k < n; k++)
        args[k - 1] = grad->args[k];
    return td_op_apply(td_op_find(map_of(grad->op)->forward), &grad->in[0], n - 1, args);
}

/* ---- the table ---- */

#define MAP                                                                                        \
    .rule = rule_map, .kernel = kernel_map, .backward = grad_map, .layout = TD_LAYOUT_CHANNELS,    \
    .flags = TD_OP_SHAPE_ONLY
#define MAP_BACKWARD                                                                               \
    .rule = rule_map_backward, .kernel = kernel_map_backward, .backward = grad_map_backward,       \
    .layout = TD_LAYOUT_CHANNELS, .flags = TD_OP_INTERNAL

TD_OPERATOR(max_pool2d) = {
    .schema = "(Tensor input, int[2] kernel_size, int[2]? stride=nil, "
              "int[2] padding={0, 0}, int[2] dilation={1, 1}, bool ceil_mode=false) -> Tensor",
    .doc = "Largest element of each window of images (N, C, H, W) or (C, H, W).",
    .run = run_max_pool2d,
    .layout = TD_LAYOUT_CHANNELS,
};
TD_OPERATOR(max_pool2d_with_indices) = {
    .schema = "(Tensor input, int[2] kernel_size, int[2]? stride=nil, "
              "int[2] padding={0, 0}, int[2] dilation={1, 1}, bool ceil_mode=false) -> "
              "(Tensor values, Tensor places)",
    .doc = "max_pool2d with the place of each element in its plane, as int32.",
    .rule = rule_max_places,
    .kernel = kernel_max_places,
    .backward = grad_max_places,
    .saves = "places",
    .layout = TD_LAYOUT_CHANNELS,
    .flags = TD_OP_INTERNAL | TD_OP_SHAPE_ONLY,
};
TD_OPERATOR(pool_scatter) = {
    .schema = "(Tensor g, Tensor places, int[] input_size) -> Tensor",
    .doc = "Elements added at their places in planes of zeros.",
    .rule = rule_pool_scatter,
    .kernel = kernel_pool_scatter,
    .backward = grad_pool_scatter,
    .saves = "places",
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(pool_gather) = {
    .schema = "(Tensor x, Tensor places) -> Tensor",
    .doc = "Elements at places in planes.",
    .rule = rule_pool_gather,
    .kernel = kernel_pool_gather,
    .backward = grad_pool_gather,
    .saves = "places",
    .flags = TD_OP_INTERNAL | TD_OP_SHAPE_ONLY,
};
TD_OPERATOR(avg_pool2d) = {
    .schema = "(Tensor input, int[2] kernel_size, int[2]? stride=nil, "
              "int[2] padding={0, 0}, bool ceil_mode=false, bool count_include_pad=true, "
              "int? divisor_override=nil) -> Tensor",
    .doc = "Mean of each window of images (N, C, H, W) or (C, H, W).",
    MAP,
};
TD_OPERATOR(avg_pool2d_backward) = {
    .schema = "(Tensor g, int[] input_size, int[2] kernel_size, "
              "int[2]? stride, int[2] padding, bool ceil_mode, bool count_include_pad, "
              "int? divisor_override) -> Tensor",
    .doc = "Gradient of avg_pool2d.",
    MAP_BACKWARD,
};
TD_OPERATOR(adaptive_avg_pool2d) = {
    .schema = "(Tensor input, int[2] output_size) -> Tensor",
    .doc = "Means of windows that divide each plane into output_size parts.",
    MAP,
};
TD_OPERATOR(adaptive_avg_pool2d_backward) = {
    .schema = "(Tensor g, int[] input_size, int[2] output_size) "
              "-> Tensor",
    .doc = "Gradient of adaptive_avg_pool2d.",
    MAP_BACKWARD,
};
TD_OPERATOR(interpolate) = {
    .schema = "(Tensor input, int[2]? size=nil, number? scale_factor=nil, "
              "str mode=\"nearest\") -> Tensor",
    .doc = "Images (N, C, H, W) or (C, H, W) in another size; the nearest pixel is taken.",
    MAP,
};
TD_OPERATOR(interpolate_backward) = {
    .schema = "(Tensor g, int[] input_size, int[2]? size, "
              "number? scale_factor, str mode) -> Tensor",
    .doc = "Gradient of interpolate.",
    MAP_BACKWARD,
};
