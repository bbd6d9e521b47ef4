/* spatial.c: shapes, layouts and windows of operators over one to three spatial dims. */
#include "engine/ops/spatial/spatial.h"

/* ---- arguments ---- */

static const char *const shapes[] = {"(N, C, ...)", "(N, C, L)", "(N, C, H, W)", "(N, C, D, H, W)"};
static const char *const unbatched[] = {"(C, ...)", "(C, L)", "(C, H, W)", "(C, D, H, W)"};

td_status td_check_spatial(int n, int ndim, const int64_t *sizes) {
    char text[TD_SHAPE_TEXT];
    if (ndim == n + 1 || ndim == n + 2)
        return TD_OK;
    return td_fail(TD_ESHAPE, "input must have shape %s or %s, got %s", shapes[n], unbatched[n],
                   td_shape_text(ndim, sizes, text, sizeof text));
}

td_status td_check_batched(int n, int ndim, const int64_t *sizes) {
    char text[TD_SHAPE_TEXT];
    if (ndim == n + 2)
        return TD_OK;
    return td_fail(TD_ESHAPE, "input must have shape %s, got %s", shapes[n],
                   td_shape_text(ndim, sizes, text, sizeof text));
}

td_status td_read_spatial(const char *name, td_value v, int n, int64_t least, int64_t *out) {
    char text[TD_SHAPE_TEXT];
    if (v.n != n && v.n != 1)
        return td_fail(TD_EVALUE, "%s must be a number or have %d of them, got %s", name, n,
                       td_shape_text(v.n, v.ints, text, sizeof text));
    for (int d = 0; d < n; d++) {
        out[d] = v.ints[v.n == 1 ? 0 : d];
        if (out[d] < least || out[d] > INT32_MAX)
            return td_fail(TD_EVALUE, "%s must be from %lld to 2^31 - 1, got %s", name,
                           (long long)least, td_shape_text(v.n, v.ints, text, sizeof text));
    }
    return TD_OK;
}

td_status td_check_places(const char *what, int n, const int64_t *sizes) {
    char text[TD_SHAPE_TEXT];
    int64_t places = td_numel(n, sizes);
    bool fits = places >= 0 && places <= INT64_MAX / 16; /* sums of costs and of bytes fit too */
    for (int d = 0; d < n; d++)
        fits = fits && sizes[d] <= INT32_MAX;
    return fits ? TD_OK
                : td_fail(TD_ESHAPE, "%s of %s is too large", what,
                          td_shape_text(n, sizes, text, sizeof text));
}

/* ---- layouts ---- */

void td_volumes(int n, int ndim, const int64_t *sizes, bool channels_last, int64_t *outer,
                int64_t *inner) {
    int64_t batch = ndim == n + 2 ? sizes[0] : 1, channels = sizes[ndim - n - 1];
    *outer = channels_last ? batch : batch * channels;
    *inner = channels_last ? channels : 1;
}

/* ---- windows ---- */

const td_axis td_axis_none = {
    .kind = TD_AXIS_SLIDE, .in = 1, .out = 1, .kernel = 1, .stride = 1, .dilation = 1};

td_status td_axes_init(int n, int ndim, const int64_t *sizes, td_axis *axis) {
    td_status status = td_check_spatial(n, ndim, sizes);
    if (status == TD_OK)
        status = td_check_places("an input", n, sizes + ndim - n);
    for (int d = 0; d < TD_SPATIAL && status == TD_OK; d++) {
        int from = d - (TD_SPATIAL - n);
        axis[d] = td_axis_none;
        if (from >= 0)
            axis[d].in = sizes[ndim - n + from];
    }
    return status;
}

/* How many windows there are along a dim; the last must begin inside the input or its left padding.
 */
static int64_t count_windows(const td_axis *a, bool ceil_mode) {
    int64_t reach = a->dilation * (a->kernel - 1) + 1;
    int64_t room = a->in + 2 * a->padding - reach + (ceil_mode ? a->stride - 1 : 0);
    if (room < 0)
        return 0;
    int64_t n = room / a->stride + 1;
    if (ceil_mode && (n - 1) * a->stride >= a->in + a->padding)
        n--;
    return n;
}

static td_status fail_window(int n, const td_axis *axis) {
    char kernel[TD_SHAPE_TEXT], in[TD_SHAPE_TEXT];
    int64_t kernels[TD_SPATIAL], ins[TD_SPATIAL];
    for (int d = 0; d < n; d++) {
        kernels[d] = axis[d].kernel;
        ins[d] = axis[d].in;
    }
    return td_fail(TD_ESHAPE, "a window of %s doesn't fit an input of %s",
                   td_shape_text(n, kernels, kernel, sizeof kernel),
                   td_shape_text(n, ins, in, sizeof in));
}

/* Taps far apart may all miss a short input, though the window around them does not. */
static bool sees_nothing(const td_axis *a) {
    for (int64_t k = 0; k < a->out && a->dilation > 1; k++) {
        int64_t from = k * a->stride - a->padding;
        int64_t tap = from < 0 ? (a->dilation - 1 - from) / a->dilation : 0;
        if (tap >= a->kernel || from + tap * a->dilation >= a->in)
            return true;
    }
    return false;
}

td_status td_read_windows(int n, td_value kernel, td_value stride, td_value padding,
                          td_value dilation, bool ceil_mode, td_axis *axis) {
    int64_t kernels[TD_SPATIAL], strides[TD_SPATIAL], paddings[TD_SPATIAL];
    int64_t dilations[TD_SPATIAL] = {1, 1, 1};
    bool no_stride = td_is_nil(stride) || stride.n == 0;
    td_status status = td_read_spatial("kernel_size", kernel, n, 1, kernels);
    if (status == TD_OK)
        status = td_read_spatial("stride", no_stride ? kernel : stride, n, 1, strides);
    if (status == TD_OK)
        status = td_read_spatial("padding", padding, n, 0, paddings);
    if (status == TD_OK && !td_is_nil(dilation))
        status = td_read_spatial("dilation", dilation, n, 1, dilations);
    axis += TD_SPATIAL - n;
    for (int d = 0; d < n && status == TD_OK; d++) {
        td_axis *a = &axis[d];
        int64_t reach = dilations[d] * (kernels[d] - 1) + 1;
        a->kernel = kernels[d];
        a->stride = strides[d];
        a->padding = paddings[d];
        a->dilation = dilations[d];
        a->out = count_windows(a, ceil_mode);
        if (a->padding > reach / 2)
            return td_fail(TD_EVALUE,
                           "padding must be at most half of the window, got %lld and %lld",
                           (long long)a->padding, (long long)reach);
    }
    for (int d = 0; d < n && status == TD_OK; d++)
        if (axis[d].out < 1 || axis[d].in < 1)
            status = fail_window(n, axis);
        else if (sees_nothing(&axis[d]))
            status = td_fail(TD_ESHAPE,
                             "a window of %lld elements %lld apart with a padding of %lld sees "
                             "nothing of a dim of %lld",
                             (long long)axis[d].kernel, (long long)axis[d].dilation,
                             (long long)axis[d].padding, (long long)axis[d].in);
    return status;
}

td_status td_read_parts(int n, td_value size, td_axis *axis) {
    char text[TD_SHAPE_TEXT];
    if (size.n != n && size.n != 1)
        return td_fail(TD_EVALUE, "output_size must be a number or have %d of them, got %d", n,
                       size.n);
    axis += TD_SPATIAL - n;
    for (int d = 0; d < n; d++) {
        int64_t out = size.ints[size.n == 1 ? 0 : d];
        if (out != TD_LEFT_OUT && (out < 0 || out > INT32_MAX))
            return td_fail(TD_EVALUE, "output_size must be from 0 to 2^31 - 1, got %s",
                           td_shape_text(size.n, size.ints, text, sizeof text));
        if (axis[d].in == 0)
            return td_fail(TD_ESHAPE, "the input's spatial dims must not be empty");
        axis[d].kind = TD_AXIS_DIVIDE;
        axis[d].out = out == TD_LEFT_OUT ? axis[d].in : out;
    }
    return TD_OK;
}

void td_meta_axes(td_meta *out, td_dtype dtype, int n, int ndim, const int64_t *sizes,
                  const td_axis *axis) {
    td_meta_set(out, dtype, ndim, sizes);
    for (int d = 0; d < n; d++)
        out->sizes[ndim - n + d] = axis[TD_SPATIAL - n + d].out;
}
