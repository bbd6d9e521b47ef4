/* resample.c: what is linear in an input of one to three spatial dims and acts along each dim by
 * itself: means over windows, interpolation, reflected, repeated and circular padding. One kernel
 * serves them; the gradient of each is the same transposed. */
#include "engine/ops/quantized/quantized.h"
#include "engine/ops/spatial/spatial.h"

#include <math.h>
#include <string.h>

#define TD_FAMILY "resample"

/* ---- plans ---- */

/* Reads an operator's arguments behind the input into the axes of an input of n spatial dims. */
typedef td_status (*axes_reader)(int n, const td_value *args, td_resample_plan *p);

static td_status make_plan(const td_call *call, int n, int ndim, const int64_t *sizes,
                           const td_value *args, axes_reader read) {
    td_resample_plan *p = TD_PLAN(call, td_resample_plan);
    *p = (td_resample_plan){.transposed = false};
    td_status status = n >= 1 && n <= TD_SPATIAL
                           ? td_axes_init(n, ndim, sizes, p->axis)
                           : td_fail(TD_EVALUE, "one to three spatial dims expected, got %d", n);
    return status ? status : read(n, args, p);
}

static td_status finish_meta(const td_call *call, int n, bool channels_last, const int64_t *volumes,
                             td_meta *out) {
    td_resample_plan *p = TD_PLAN(call, td_resample_plan);
    td_volumes(n, out->ndim, volumes, channels_last, &p->outer, &p->inner);
    td_meta_lay_spatial(out, channels_last);
    return td_check_places("a result", out->ndim, out->sizes);
}

static td_status rule_forward(const td_call *call, td_meta *out, int n, axes_reader read) {
    const td_tensor *x = call->args[0].tensor;
    td_status status = make_plan(call, n, x->ndim, x->sizes, call->args + 1, read);
    if (status)
        return status;
    td_meta_axes(out, (td_dtype)x->dtype, n, x->ndim, x->sizes,
                 TD_PLAN(call, td_resample_plan)->axis);
    return finish_meta(call, n, td_lies_channels_last(n, x), x->sizes, out);
}

/* Arguments gradient, input_size, and those of the forward direction. */
static td_status rule_transposed(const td_call *call, td_meta *out, int n, axes_reader read) {
    const td_value *a = call->args;
    const td_tensor *g = a[0].tensor;
    td_status status = make_plan(call, n, a[1].n, a[1].ints, a + 2, read);
    if (status)
        return status;
    TD_PLAN(call, td_resample_plan)->transposed = true;
    td_meta_set(out, (td_dtype)g->dtype, a[1].n, a[1].ints);
    return finish_meta(call, n, td_lies_channels_last(n, g), a[1].ints, out);
}

static td_status kernel_resample(td_call *call) {
    td_resample_plan *p = TD_PLAN(call, td_resample_plan);
    td_tensor *packed = NULL, *out = call->out[0];
    td_status status = td_pack_spatial(call->args[0].tensor, p->inner > 1, &packed);
    p->out = out;
    p->x = packed;
    if (status == TD_OK && p->transposed)
        status = td_fill_int(out, 0);
    if (status == TD_OK && out->numel && packed->numel)
        status = TD_RUN(td_tensor_device(out), resample, p);
    td_release(packed);
    return status;
}

/* ---- means ---- */

static td_status read_mean(int n, const td_value *a, td_resample_plan *p) {
    if (!td_is_nil(a[5]) && a[5].i == 0)
        return td_fail(TD_EVALUE, "divisor_override must not be 0");
    p->divisor = td_is_nil(a[5]) ? 0 : a[5].i;
    for (int d = TD_SPATIAL - n; d < TD_SPATIAL; d++) {
        p->axis[d].mean = true;
        p->axis[d].count_padding = a[4].b;
    }
    return td_read_windows(n, a[0], a[1], a[2], TD_NIL, a[3].b, p->axis);
}

static td_status read_parts(int n, const td_value *a, td_resample_plan *p) {
    for (int d = TD_SPATIAL - n; d < TD_SPATIAL; d++)
        p->axis[d].mean = true;
    return td_read_parts(n, a[0], p->axis);
}

/* The operators of n dims: how many, the kernel's length says. */
static td_status rule_avg_pool(const td_call *call, td_meta *out) {
    return rule_forward(call, out, call->args[1].n, read_mean);
}
static td_status rule_avg_pool_backward(const td_call *call, td_meta *out) {
    return rule_transposed(call, out, call->args[2].n, read_mean);
}
static td_status rule_adaptive_avg_pool(const td_call *call, td_meta *out) {
    return rule_forward(call, out, call->args[1].n, read_parts);
}
static td_status rule_adaptive_avg_pool_backward(const td_call *call, td_meta *out) {
    return rule_transposed(call, out, call->args[2].n, read_parts);
}

/* The largest magnitude of each window, or with p = -inf the smallest. */
static td_status pool_ends(td_call *call, double p) {
    const td_value *a = call->args;
    const int64_t none[TD_SPATIAL] = {0}, one[TD_SPATIAL] = {1, 1, 1};
    const td_op *const pools[] = {TD_OP(max_pool1d), TD_OP(max_pool2d), TD_OP(max_pool3d)};
    const int n = a[2].n;
    td_tensor *x = NULL;
    td_status status = TD_OK;
    TD_TRY(TD_APPLY(&x, abs, a[0]));
    if (p < 0)
        TD_STEP(&x, neg, TD_T(x));
    TD_TRY(td_op_apply(
        pools[n - 1], call->out, 7,
        (td_value[]){TD_T(x), a[2], a[3], TD_INTS(n, none), TD_INTS(n, one), a[4], TD_B(false)}));
    if (p < 0)
        TD_STEP(&call->out[0], neg, TD_T(call->out[0]));
done:
    td_release(x);
    return status;
}

/* lp_poolNd(input, norm_type, kernel_size, stride, ceil_mode): the p-th root of the sum of p-th
 * powers, by way of their mean; of floats in double and divided by what keeps the powers in it. */
static td_status run_lp_pool(td_call *call) {
    const td_value *a = call->args;
    const int64_t none[TD_SPATIAL] = {0};
    td_tensor *y = NULL, *size = NULL, *whole = NULL;
    const bool floats = td_dtype_is_float((td_dtype)a[0].tensor->dtype);
    double p = td_arg_double(a[1]), count = 1;
    td_status status = TD_OK;
    for (int d = 0; d < a[2].n; d++)
        count *= (double)a[2].ints[d];
    TD_TRY(td_check_spatial(a[2].n, a[0].tensor->ndim, a[0].tensor->sizes));
    if (p == 0)
        return td_fail(TD_EVALUE, "norm_type must not be 0");
    if (isinf(p))
        return pool_ends(call, p);
    if (floats) {
        TD_TRY(TD_APPLY(&y, to, a[0], TD_DTYPE(TD_F64)));
        TD_TRY(TD_APPLY(&whole, size_of_powers, TD_T(y), TD_F(p)));
        TD_STEP(&y, div, TD_T(y), TD_T(whole));
        TD_STEP(&y, pow, TD_T(y), a[1]);
    } else {
        TD_TRY(TD_APPLY(&y, pow, a[0], a[1]));
    }
    TD_STEP(&y, avg_pool, TD_T(y), a[2], a[3], TD_INTS(a[2].n, none), a[4], TD_B(true), TD_NIL);
    TD_TRY(TD_APPLY(&size, abs, TD_T(y)));
    TD_STEP(&size, relu, TD_T(size));
    TD_STEP(&y, sign, TD_T(y));
    TD_STEP(&y, mul, TD_T(y), TD_T(size));
    TD_STEP(&y, mul, TD_T(y), TD_F(count));
    TD_STEP(&y, pow, TD_T(y), TD_F(1 / p));
    if (floats) {
        TD_STEP(&y, mul, TD_T(y), TD_T(whole));
        TD_STEP(&y, to, TD_T(y), TD_DTYPE((td_dtype)a[0].tensor->dtype));
    }
    call->out[0] = td_retain(y);
done:
    td_release(y);
    td_release(size);
    td_release(whole);
    return status;
}

/* ---- interpolation ---- */

static const struct {
    const char *mode;
    int ndim; /* spatial dims that it is for; 0: any */
    td_axis_kind kind, wide;
    bool aligns;
} modes[] = {
    {"nearest", 0, TD_AXIS_NEAREST, TD_AXIS_NEAREST, false},
    {"nearest-exact", 0, TD_AXIS_NEAREST_EXACT, TD_AXIS_NEAREST_EXACT, false},
    {"linear", 1, TD_AXIS_LINEAR, TD_AXIS_LINEAR, true},
    {"bilinear", 2, TD_AXIS_LINEAR, TD_AXIS_LINEAR_WIDE, true},
    {"bicubic", 2, TD_AXIS_CUBIC, TD_AXIS_CUBIC_WIDE, true},
    {"trilinear", 3, TD_AXIS_LINEAR, TD_AXIS_LINEAR, true},
};
enum { MODES = sizeof modes / sizeof *modes };

static int find_mode(const char *name) {
    int k = 0;
    while (k < MODES && strcmp(modes[k].mode, name) != 0)
        k++;
    return k;
}

/* Places of the input per place of the result. */
static double step_of(const td_axis *a, bool aligned, double factor) {
    if (aligned)
        return a->out > 1 ? (double)(a->in - 1) / (double)(a->out - 1) : 0;
    return factor > 0 ? 1 / factor : (double)a->in / (double)a->out;
}

/* resize(input, size, factors, mode, align_corners, antialias) */
static td_status read_resize(int n, const td_value *a, td_resample_plan *p) {
    int64_t size[TD_SPATIAL];
    int mode = find_mode(a[2].string);
    if (mode == MODES)
        return td_fail(TD_EVALUE, "mode '%s' is none", a[2].string);
    td_status status = td_read_spatial("size", a[0], n, 1, size);
    for (int d = 0; d < n && status == TD_OK; d++) {
        td_axis *axis = &p->axis[TD_SPATIAL - n + d];
        if (axis->in < 1)
            return td_fail(TD_ESHAPE, "the input's spatial dims must not be empty");
        axis->kind = a[4].b ? modes[mode].wide : modes[mode].kind;
        axis->out = size[d];
        axis->aligned = a[3].b;
        axis->scale = step_of(axis, a[3].b, td_is_nil(a[1]) ? 0 : a[1].floats[d]);
    }
    return status;
}

static td_status rule_resize(const td_call *call, td_meta *out) {
    td_status status = rule_forward(call, out, call->args[1].n, read_resize);
    for (int d = 0; d < TD_SPATIAL; d++)
        TD_PLAN(call, td_resample_plan)->axis[d].pixels = call->args[0].tensor->dtype == TD_U8;
    return status;
}
static td_status rule_resize_backward(const td_call *call, td_meta *out) {
    return rule_transposed(call, out, call->args[2].n, read_resize);
}

/* Sizes from the argument size, or from factors of the input's. */
static td_status resized(const td_tensor *x, int n, td_value size, td_value factor, int64_t *sizes,
                         double *factors) {
    bool by_size = !td_is_nil(size);
    int given = by_size ? size.n : factor.n;
    td_status status = td_check_places("an input", n, x->sizes + 2);
    if (status == TD_OK && by_size && (given == n || given == 1))
        status = td_read_spatial("size", size, n, 1, sizes);
    if (status)
        return status;
    if (by_size == !td_is_nil(factor))
        return td_fail(TD_EVALUE, "either size or scale_factor must be given");
    if (given != n && given != 1)
        return td_fail(TD_ESHAPE, "%s must be a number or have %d of them, got %d",
                       by_size ? "size" : "scale_factor", n, given);
    for (int d = 0; d < n; d++) {
        int k = given == 1 ? 0 : d;
        factors[d] = by_size ? 0 : factor.floats[k];
        if (!by_size && !(factors[d] > 0 && factors[d] < 1e6))
            return td_fail(TD_EVALUE, "scale_factor must be positive and below 1e6, got %g",
                           factors[d]);
        sizes[d] =
            by_size ? size.ints[k] : (int64_t)floor((double)x->sizes[x->ndim - n + d] * factors[d]);
        if (sizes[d] < 1 || sizes[d] > INT32_MAX)
            return td_fail(TD_ESHAPE, "the result would have a size of %lld", (long long)sizes[d]);
    }
    return TD_OK;
}

static td_status check_mode(const char *name, int mode, int n, td_value align, bool antialias) {
    static const char *const inputs[] = {"", "(N, C, L)", "(N, C, H, W)", "(N, C, D, H, W)"};
    if (mode < MODES && modes[mode].ndim && modes[mode].ndim != n)
        return td_fail(TD_ESHAPE, "mode \"%s\" is for an input %s, got one %s", name,
                       inputs[modes[mode].ndim], inputs[n]);
    if (!td_is_nil(align) && (mode == MODES || !modes[mode].aligns))
        return td_fail(TD_EVALUE, "align_corners is for the linear and cubic modes, got \"%s\"",
                       name);
    if (antialias && (mode == MODES || modes[mode].kind == modes[mode].wide))
        return td_fail(TD_EVALUE, "antialias is for bilinear and bicubic, got \"%s\"", name);
    return TD_OK;
}

/* Pixels between others: dim by dim from the last on, rounded each time. */
static td_status resize_pixels(td_call *call, int n, const int64_t *sizes, const double *factors) {
    const td_value *a = call->args;
    td_tensor *x = td_retain(a[0].tensor);
    int64_t step[TD_SPATIAL];
    td_status status = TD_OK;
    memcpy(step, x->sizes + 2, sizeof(int64_t) * (size_t)n);
    for (int d = n - 1; d >= 0; d--) {
        double factor[TD_SPATIAL] = {0};
        step[d] = sizes[d];
        factor[d] = factors[d];
        TD_STEP(&x, resize, TD_T(x), TD_INTS(n, step), TD_FLOATS(n, factor), a[3],
                TD_B(!td_is_nil(a[4]) && a[4].b), a[6]);
    }
    call->out[0] = td_retain(x);
done:
    td_release(x);
    return status;
}

/* interpolate(input, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias) */
static td_status run_interpolate(td_call *call) {
    const td_value *a = call->args;
    td_tensor *x = a[0].tensor;
    int n = x->ndim - 2, mode = find_mode(a[3].string);
    bool area = !strcmp(a[3].string, "area"), recompute = !td_is_nil(a[5]) && a[5].b;
    int64_t sizes[TD_SPATIAL];
    double factors[TD_SPATIAL];
    td_status status = n >= 1 && n <= TD_SPATIAL ? TD_OK : td_check_batched(2, x->ndim, x->sizes);
    if (status == TD_OK)
        status = check_mode(a[3].string, mode, n, a[4], a[6].b);
    if (status == TD_OK && recompute && !td_is_nil(a[1]))
        return td_fail(TD_EVALUE, "recompute_scale_factor is for scale_factor, not for size");
    if (status == TD_OK)
        status = resized(x, n, a[1], a[2], sizes, factors);
    if (status)
        return status;
    if (area)
        return TD_APPLY(&call->out[0], adaptive_avg_pool, TD_T(x), TD_INTS(n, sizes));
    for (int d = 0; d < n && recompute; d++)
        factors[d] = 0;
    if (x->dtype == TD_U8 && modes[mode].aligns)
        return resize_pixels(call, n, sizes, factors);
    return TD_APPLY(&call->out[0], resize, TD_T(x), TD_INTS(n, sizes), TD_FLOATS(n, factors), a[3],
                    TD_B(!td_is_nil(a[4]) && a[4].b), a[6]);
}

/* ---- padding with the input's own elements ---- */

static td_status check_pad(const char *mode, const td_axis *a, int64_t before, int64_t after) {
    int64_t most = !strcmp(mode, "reflect")    ? a->in - 1
                   : !strcmp(mode, "circular") ? a->in
                                               : INT32_MAX;
    if (a->in == 0 || before > most || after > most)
        return td_fail(TD_ESHAPE, "a dim of %lld can't be padded by %lld and %lld in mode \"%s\"",
                       (long long)a->in, (long long)before, (long long)after, mode);
    bool cut = a->in + (before < 0 ? before : 0) + (after < 0 ? after : 0) < 1;
    if (a->out < 1 || (cut && strcmp(mode, "replicate") != 0))
        return td_fail(TD_ESHAPE, "a dim of %lld padded by %lld and %lld would be empty",
                       (long long)a->in, (long long)before, (long long)after);
    return TD_OK;
}

/* extend(input, pad, mode): pad has a pair for each of n dims, the last dim's first. */
static td_status read_extend(int n, const td_value *a, td_resample_plan *p) {
    const char *mode = a[1].string;
    td_axis_kind kind = !strcmp(mode, "reflect")    ? TD_AXIS_REFLECT
                        : !strcmp(mode, "circular") ? TD_AXIS_CIRCULAR
                                                    : TD_AXIS_REPLICATE;
    for (int d = 0; d < n; d++) {
        td_axis *axis = &p->axis[TD_SPATIAL - 1 - d];
        int64_t before = a[0].ints[2 * d], after = a[0].ints[2 * d + 1];
        if (before < -INT32_MAX || before > INT32_MAX || after < -INT32_MAX || after > INT32_MAX)
            return td_fail(TD_EVALUE, "pad must lie within 2^31, got %lld and %lld",
                           (long long)before, (long long)after);
        axis->kind = kind;
        axis->padding = before;
        axis->out = axis->in + before + after;
        td_status status = check_pad(mode, axis, before, after);
        if (status)
            return status;
    }
    return TD_OK;
}

static td_status rule_extend(const td_call *call, td_meta *out) {
    return rule_forward(call, out, call->args[1].n / 2, read_extend);
}
static td_status rule_extend_backward(const td_call *call, td_meta *out) {
    return rule_transposed(call, out, call->args[2].n / 2, read_extend);
}

/* ---- the table ---- */

/* Operators linear in the input, and back, with the same arguments behind. */
#define MAP(name, takes, arguments)                                                                \
    .rule = rule_##name, .kernel = kernel_resample, .dtypes = (takes),                             \
    .gradient = "input: " #name "_backward(g, input.shape, " arguments ")",                        \
    .flags = TD_OP_INTERNAL
#define MAP_BACKWARD(name, arguments)                                                              \
    .rule = rule_##name##_backward, .kernel = kernel_resample, .dtypes = TD_DTYPES_FLOATS,         \
    .gradient = "gradient: " #name "(g, " arguments ")", .flags = TD_OP_INTERNAL
#define AVG_POOL "kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override"
#define RESIZE   "size, scale_factor, mode, align_corners, antialias"

/* What help says of the length of a result along a dim. */
#define AVG_LENGTH                                                                                 \
    "; l(n, d) = min(round((n + 2*padding[d] - kernel_size[d])/s[d]), (n + padding[d] - 1)//s[d])" \
    " + 1" TD_WINDOW_STEPS
#define LP_LENGTH                                                                                  \
    "; l(n, d) = min(round((n - kernel_size[d])/s[d]), (n - 1)//s[d]) + 1" TD_WINDOW_STEPS
#define PARTS_LENGTH "; l(n, d) = output_size[d] or n"

TD_OPERATOR(avg_pool) = {
    .schema = "(Tensor input, int[] kernel_size, int[]? stride, int[] padding, bool ceil_mode, "
              "bool count_include_pad, int? divisor_override) -> Tensor",
    .doc = "Mean of each window of one to three dims.",
    MAP(avg_pool, TD_DTYPES_FLOATS | TD_DTYPE_BIT(I64), AVG_POOL),
    .forms[TD_QUANTIZED] = td_quantized_average,
};
TD_OPERATOR(avg_pool_backward) = {
    .schema = "(Tensor gradient, int[] input_size, int[] kernel_size, int[]? stride, "
              "int[] padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> "
              "Tensor",
    .doc = "Gradient of avg_pool.",
    MAP_BACKWARD(avg_pool, AVG_POOL),
};
TD_OPERATOR(avg_pool1d) = {
    .schema = "(Tensor input, int[1] kernel_size, int[1]? stride=nil, int[1] padding={0}, "
              "bool ceil_mode=false, bool count_include_pad=true) -> Tensor",
    .doc = "Mean of each window of (N, C, L) or (C, L).",
    .shapes = "input (N?, C, L) -> (N?, C, l(L, 1))" AVG_LENGTH,
    .takes = "floating and int64",
    .notes = "padding is at most half of the window.",
    .formula = "avg_pool(input, kernel_size, stride, padding, ceil_mode, count_include_pad, nil)",
};
TD_OPERATOR(avg_pool2d) = {
    .schema = "(Tensor input, int[2] kernel_size, int[2]? stride=nil, int[2] padding={0, 0}, "
              "bool ceil_mode=false, bool count_include_pad=true, int? divisor_override=nil) -> "
              "Tensor",
    .doc = "Mean of each window of images (N, C, H, W) or (C, H, W).",
    .shapes = "input (N?, C, H, W) -> (N?, C, l(H, 1), l(W, 2))" AVG_LENGTH,
    .takes = "floating and int64",
    .notes = "padding is at most half of the window.",
    .formula = "avg_pool(input, " AVG_POOL ")",
    .flags = TD_OP_OUT,
};
TD_OPERATOR(avg_pool3d) = {
    .autocast = {[TD_CPU] = TD_AUTOCAST_FP32},
    .schema = "(Tensor input, int[3] kernel_size, int[3]? stride=nil, int[3] padding={0, 0, 0}, "
              "bool ceil_mode=false, bool count_include_pad=true, int? divisor_override=nil) -> "
              "Tensor",
    .doc = "Mean of each window of volumes (N, C, D, H, W) or (C, D, H, W).",
    .shapes = "input (N?, C, D, H, W) -> (N?, C, l(D, 1), l(H, 2), l(W, 3))" AVG_LENGTH,
    .takes = "floating and int64",
    .notes = "padding is at most half of the window.",
    .formula = "avg_pool(input, " AVG_POOL ")",
    .flags = TD_OP_OUT | TD_OP_OUT_EXACT,
};
TD_OPERATOR(size_of_powers) = {
    .schema = "(Tensor x, float p) -> Tensor",
    .doc = "The power of two below the largest |x|, a float64, where p-th powers of that, or the "
           "cubes "
           "of these that further gradients meet, leave the dtype; else 1.",
    .formula = "e = if(x.numel == 0, zeros({}, dtype=x.dtype, device=x.device),"
               "       floor(log2(amax(abs(detach(x))))));"
               "exp2(where(abs(e * p) > 300, where(isfinite(e), e, 0.0), 0.0))",
    .flags = TD_OP_INTERNAL | TD_OP_NONDIFF,
};
#define LP_POOL(n)                                                                                 \
    "(Tensor input, number norm_type, int[" #n "] kernel_size, int[" #n "]? stride=nil, "          \
    "bool ceil_mode=false) -> Tensor"
TD_OPERATOR(lp_pool1d) = {
    .schema = LP_POOL(1),
    .doc = "Root of the sum of powers over each window of (N, C, L) or (C, L).",
    .shapes = "input (N?, C, L) -> (N?, C, l(L, 1))" LP_LENGTH,
    .takes = "floating, int64 and bool; int64 and bool count as float32",
    .run = run_lp_pool,
};
TD_OPERATOR(lp_pool2d) = {
    .schema = LP_POOL(2),
    .doc = "Root of the sum of powers over each window of (N, C, H, W) or (C, H, W).",
    .shapes = "input (N?, C, H, W) -> (N?, C, l(H, 1), l(W, 2))" LP_LENGTH,
    .takes = "floating, int64 and bool; int64 and bool count as float32",
    .run = run_lp_pool,
};
TD_OPERATOR(lp_pool3d) = {
    .schema = LP_POOL(3),
    .doc = "Root of the sum of powers over each window of (N, C, D, H, W) or (C, D, H, W).",
    .shapes = "input (N?, C, D, H, W) -> (N?, C, l(D, 1), l(H, 2), l(W, 3))" LP_LENGTH,
    .takes = "floating, int64 and bool; int64 and bool count as float32",
    .run = run_lp_pool,
};
TD_OPERATOR(adaptive_avg_pool) = {
    .schema = "(Tensor input, int?[] output_size) -> Tensor",
    .doc = "Means of windows that divide one to three dims.",
    MAP(adaptive_avg_pool, TD_DTYPES_FLOATS, "output_size"),
    .forms[TD_QUANTIZED] = td_quantized_average,
};
TD_OPERATOR(adaptive_avg_pool_backward) = {
    .schema = "(Tensor gradient, int[] input_size, int?[] output_size) -> Tensor",
    .doc = "Gradient of adaptive_avg_pool.",
    MAP_BACKWARD(adaptive_avg_pool, "output_size"),
};
TD_OPERATOR(adaptive_avg_pool1d) = {
    .schema = "(Tensor input, int?[1] output_size) -> Tensor",
    .doc = "Means of windows that divide the last dim into output_size parts.",
    .shapes = "input (N?, C, L) -> (N?, C, l(L, 1))" PARTS_LENGTH,
    .takes = "floating",
    .formula = "adaptive_avg_pool(input, output_size)",
};
TD_OPERATOR(adaptive_avg_pool2d) = {
    .schema = "(Tensor input, int?[2] output_size) -> Tensor",
    .doc = "Means of windows that divide each plane into output_size parts; false leaves a size as "
           "it is.",
    .shapes = "input (N?, C, H, W) -> (N?, C, l(H, 1), l(W, 2))" PARTS_LENGTH,
    .takes = "floating",
    .formula = "adaptive_avg_pool(input, output_size)",
};
TD_OPERATOR(adaptive_avg_pool3d) = {
    .autocast = {[TD_CPU] = TD_AUTOCAST_FP32},
    .schema = "(Tensor input, int?[3] output_size) -> Tensor",
    .doc = "Means of windows that divide each volume into output_size parts; false leaves a size "
           "as it is.",
    .shapes = "input (N?, C, D, H, W) -> (N?, C, l(D, 1), l(H, 2), l(W, 3))" PARTS_LENGTH,
    .takes = "floating",
    .formula = "adaptive_avg_pool(input, output_size)",
};
TD_OPERATOR(interpolate) = {
    .schema = "(Tensor input, int[]? size=nil, number[]? scale_factor=nil, "
              "\"nearest\"|\"nearest-exact\"|\"linear\"|\"bilinear\"|\"bicubic\"|\"trilinear\"|"
              "\"area\" mode=\"nearest\", bool? align_corners=nil, "
              "bool? recompute_scale_factor=nil, bool antialias=false) -> Tensor",
    .doc = "Signals, images or volumes (N, C, ...) in another size.",
    .shapes =
        "input (N, C, sizes...) -> (N, C, result...); result: size, or floor(sizes*scale_factor)",
    .takes = "floating and uint8",
    .notes = "Either size or scale_factor. align_corners is for the linear and cubic modes, "
             "antialias for bilinear and bicubic. linear is for one spatial dim, bilinear and "
             "bicubic for two, trilinear for three.",
    .run = run_interpolate,
    .forms[TD_QUANTIZED] = td_quantized_average,
};
TD_OPERATOR(resize) = {
    .schema = "(Tensor input, int[] size, number[]? scale_factor, str mode, bool align_corners, "
              "bool antialias) -> Tensor",
    .doc = "interpolate in a size and a mode that are known.",
    MAP(resize, TD_DTYPES_FLOATS | TD_DTYPE_BIT(U8), RESIZE),
};
TD_OPERATOR(resize_backward) = {
    .schema = "(Tensor gradient, int[] input_size, int[] size, number[]? scale_factor, str mode, "
              "bool align_corners, bool antialias) -> Tensor",
    .doc = "Gradient of resize.",
    MAP_BACKWARD(resize, RESIZE),
};
TD_OPERATOR(extend) = {
    .schema = "(Tensor input, int[] pad, str mode) -> Tensor",
    .doc = "Spatial dims made longer by elements of the input.",
    MAP(extend, TD_DTYPES_ALL, "pad, mode"),
};
TD_OPERATOR(extend_backward) = {
    .schema = "(Tensor gradient, int[] input_size, int[] pad, str mode) -> Tensor",
    .doc = "Gradient of extend.",
    MAP_BACKWARD(extend, "pad, mode"),
};
