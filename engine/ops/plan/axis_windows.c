/* axis_windows.c: expands the axes of spatial plans. The formulas of positions and weights are
 * PyTorch's, so that the same pixels are chosen; nothing here touches elements. */
#include "engine/ops/plan/axis_windows.h"

#include "engine/core/memory.h"

#include <math.h>

/* ---- windows ---- */

static void slide(td_taps *t, const td_axis *a) {
    t->stride = a->stride;
    t->padding = a->padding;
    t->kernel = a->kernel;
    t->pairs = a->kernel == 2 && a->stride == 2 && a->dilation == 1 && a->padding == 0 &&
               2 * a->out <= a->in;
    for (int64_t k = 0; k < a->out; k++) {
        int64_t from = k * a->stride - a->padding, to = from + a->dilation * (a->kernel - 1) + 1;
        int64_t padded_end = a->in + a->padding, whole = (to < padded_end ? to : padded_end) - from;
        if (from < 0)
            from += (a->dilation - 1 - from) / a->dilation * a->dilation;
        to = to < a->in ? to : a->in;
        t->begin[k] = (int32_t)(from < a->in ? from : a->in);
        t->end[k] = (int32_t)(to > from ? to : t->begin[k]);
        if (t->divisor)
            t->divisor[k] = (double)(a->count_padding ? whole : to > from ? to - from : 1);
    }
}

static void divide(td_taps *t, const td_axis *a) {
    for (int64_t k = 0; k < a->out; k++) {
        t->begin[k] = (int32_t)(k * a->in / a->out);
        t->end[k] = (int32_t)(((k + 1) * a->in + a->out - 1) / a->out);
        if (t->divisor)
            t->divisor[k] = (double)(t->end[k] - t->begin[k]);
    }
}

/* ---- single places ---- */

static int64_t clamp_place(int64_t at, int64_t in) {
    return at < 0 ? 0 : at < in ? at : in - 1;
}

/* Single precision decides which pixel is the nearest, as it does elsewhere. */
static int64_t nearest(const td_axis *a, int64_t k) {
    if (a->out == a->in)
        return k;
    if (a->out == 2 * a->in)
        return k / 2;
    return (int64_t)floorf((float)k * (float)a->scale);
}

static int64_t nearest_exact(const td_axis *a, int64_t k) {
    return (int64_t)floorf((float)(((double)k + 0.5) * (double)(float)a->scale));
}

static int64_t reflect(const td_axis *a, int64_t k) {
    int64_t at = k - a->padding;
    at = at < 0 ? -at : at;
    return at < a->in ? at : 2 * (a->in - 1) - at;
}

/* What is taken away goes first; the rest is counted around. */
static int64_t around(const td_axis *a, int64_t k) {
    int64_t before = a->padding, after = a->out - a->in - before;
    int64_t first = before < 0 ? -before : 0, n = a->in - first + (after < 0 ? after : 0);
    int64_t at = (k - before - first) % n;
    return first + (at < 0 ? at + n : at);
}

static int64_t replicate(const td_axis *a, int64_t k) {
    return k - a->padding;
}

static void choose(td_taps *t, const td_axis *a, int64_t (*place)(const td_axis *a, int64_t k)) {
    for (int64_t k = 0; k < a->out; k++) {
        t->begin[k] = (int32_t)clamp_place(place(a, k), a->in);
        t->end[k] = t->begin[k] + 1;
    }
}

/* ---- between places ---- */

/* Weights of the places from `from` on; those beyond the ends go to the places there. */
static void put_weights(td_taps *t, int64_t k, int64_t from, int n, const double *weight) {
    int64_t first = clamp_place(from, t->in), last = clamp_place(from + n - 1, t->in);
    double *to = t->weight + t->first[k];
    t->begin[k] = (int32_t)first;
    t->end[k] = (int32_t)last + 1;
    for (int64_t at = first; at <= last; at++)
        to[at - first] = 0;
    for (int j = 0; j < n; j++)
        to[clamp_place(from + j, t->in) - first] += weight[j];
}

static double source_of(const td_axis *a, int64_t k) {
    return a->aligned ? a->scale * (double)k : a->scale * ((double)k + 0.5) - 0.5;
}

static double fraction(double source, int64_t at) {
    double f = source - (double)at;
    return f < 0 ? 0 : f > 1 ? 1 : f;
}

static void linear(td_taps *t, const td_axis *a) {
    for (int64_t k = 0; k < a->out; k++) {
        double source = a->in == a->out ? (double)k : fmax(source_of(a, k), 0);
        int64_t at = clamp_place((int64_t)source, a->in);
        double f = fraction(source, at);
        t->first[k] = 2 * k;
        put_weights(t, k, at, 2, (double[]){1 - f, f});
    }
}

/* Keys' cubic convolution: near the middle, and beyond a distance of 1. */
static double cubic_near(double x, double a) {
    return ((a + 2) * x - (a + 3)) * x * x + 1;
}
static double cubic_far(double x, double a) {
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}

static void cubic(td_taps *t, const td_axis *a) {
    const double c = -0.75;
    for (int64_t k = 0; k < a->out; k++) {
        double source = a->in == a->out ? (double)k : source_of(a, k), below = floor(source);
        int64_t at = (int64_t)below < a->in ? (int64_t)below : a->in - 1;
        double f = fraction(source, at);
        t->first[k] = 4 * k;
        put_weights(t, k, at - 1, 4,
                    (double[]){cubic_far(f + 1, c), cubic_near(f, c), cubic_near(1 - f, c),
                               cubic_far(2 - f, c)});
    }
}

static double triangle(double x) {
    x = fabs(x);
    return x < 1 ? 1 - x : 0;
}

static double cubic_wide(double x) {
    const double c = -0.5;
    x = fabs(x);
    return x < 1 ? cubic_near(x, c) : x < 2 ? cubic_far(x, c) : 0;
}

/* Half the width of a kernel that is `size` wide. */
static double support_of(const td_axis *a, double size) {
    return a->scale >= 1 ? size / 2 * a->scale : size / 2;
}

static int64_t wide_taps(const td_axis *a) {
    return 2 * (int64_t)ceil(support_of(a, a->kind == TD_AXIS_CUBIC_WIDE ? 4 : 2)) + 2;
}

static void wide(td_taps *t, const td_axis *a) {
    bool is_cubic = a->kind == TD_AXIS_CUBIC_WIDE;
    double support = support_of(a, is_cubic ? 4 : 2), shrink = a->scale >= 1 ? 1 / a->scale : 1;
    int64_t most = wide_taps(a);
    for (int64_t k = 0; k < a->out; k++) {
        double centre = a->scale * ((double)k + 0.5), sum = 0;
        int64_t from = (int64_t)(centre - support + 0.5), to = (int64_t)(centre + support + 0.5);
        from = from < 0 ? 0 : from;
        to = to < a->in ? to : a->in;
        to = to - from < most ? to : from + most;
        t->first[k] = k * most;
        t->begin[k] = (int32_t)from;
        t->end[k] = (int32_t)to;
        double *weight = t->weight + t->first[k];
        for (int64_t at = from; at < to; at++) {
            double x = ((double)at - centre + 0.5) * shrink;
            sum += weight[at - from] = is_cubic ? cubic_wide(x) : triangle(x);
        }
        for (int64_t at = from; at < to && sum != 0; at++)
            weight[at - from] /= sum;
    }
}

/* Weights as fixed-point numbers of 16 bits, with as many places as the greatest leaves, which is
 * how pixels are resampled elsewhere. */
static void round_weights(td_taps *t) {
    double most = 0, unit = 1;
    for (int64_t k = 0; k < t->out; k++)
        for (int64_t at = 0; at < t->end[k] - t->begin[k]; at++)
            most = fmax(most, t->weight[t->first[k] + at]);
    for (int places = 0; places < 22 && floor(0.5 + most * unit * 2) < 32768; places++)
        unit *= 2;
    for (int64_t k = 0; k < t->out; k++)
        for (int64_t at = 0; at < t->end[k] - t->begin[k]; at++) {
            double *w = &t->weight[t->first[k] + at];
            *w = round(*w * unit) / unit;
        }
}

/* What places see, one after the other: the firsts of all, the seconds, ... */
static void list_few(td_taps *t) {
    for (int64_t k = 0; k < t->out; k++)
        for (int64_t j = 0; j < t->few; j++) {
            bool there = j < t->end[k] - t->begin[k];
            t->near[j * t->out + k] = (int32_t)(there ? t->begin[k] + j : t->in);
            t->share[j * t->out + k] = there ? t->weight[t->first[k] + j] : 0;
        }
}

/* ---- all kinds ---- */

/* How many weights a place has; 0: it needs none. */
static int64_t weights_of(const td_axis *a) {
    switch (a->kind) {
    case TD_AXIS_LINEAR:
        return 2;
    case TD_AXIS_CUBIC:
        return 4;
    case TD_AXIS_LINEAR_WIDE:
    case TD_AXIS_CUBIC_WIDE:
        return wide_taps(a);
    case TD_AXIS_SLIDE:
    case TD_AXIS_DIVIDE:
    case TD_AXIS_NEAREST:
    case TD_AXIS_NEAREST_EXACT:
    case TD_AXIS_REFLECT:
    case TD_AXIS_REPLICATE:
    case TD_AXIS_CIRCULAR:
        break;
    }
    return 0;
}

static td_status allocate(td_taps *t, const td_axis *a) {
    int64_t weights = weights_of(a), n = a->out + 1, all, words;
    int64_t few = weights == 2 || weights == 4 ? weights : 0;
    bool divides = a->mean;
    if (__builtin_mul_overflow(weights + 2 * few, n, &all) ||
        __builtin_add_overflow(all, (weights > 0) * n + divides * n + n, &words) ||
        words > INT64_MAX / 16)
        return td_fail(TD_ENOMEM, "out of memory");
    int64_t *block = td_malloc((size_t)words * sizeof *block);
    if (!block)
        return td_fail(TD_ENOMEM, "out of memory");
    *t = (td_taps){.in = a->in, .out = a->out, .step = 1};
    t->begin = (int32_t *)block;
    t->end = t->begin + n;
    block += n;
    if (divides)
        t->divisor = (double *)block;
    block += divides * n;
    if (weights) {
        t->first = block;
        t->weight = (double *)(block + n);
    }
    if (few) {
        t->few = few;
        t->share = t->weight + weights * n;
        t->near = (int32_t *)(t->share + few * n);
    }
    return TD_OK;
}

td_status td_taps_init(td_taps *t, const td_axis *a) {
    td_status status = allocate(t, a);
    if (status)
        return status;
    switch (a->kind) {
    case TD_AXIS_SLIDE:
        t->step = a->dilation;
        slide(t, a);
        break;
    case TD_AXIS_DIVIDE:
        divide(t, a);
        break;
    case TD_AXIS_NEAREST:
        choose(t, a, nearest);
        break;
    case TD_AXIS_NEAREST_EXACT:
        choose(t, a, nearest_exact);
        break;
    case TD_AXIS_REFLECT:
        choose(t, a, reflect);
        break;
    case TD_AXIS_REPLICATE:
        choose(t, a, replicate);
        break;
    case TD_AXIS_CIRCULAR:
        choose(t, a, around);
        break;
    case TD_AXIS_LINEAR:
        linear(t, a);
        break;
    case TD_AXIS_CUBIC:
        cubic(t, a);
        break;
    case TD_AXIS_LINEAR_WIDE:
    case TD_AXIS_CUBIC_WIDE:
        wide(t, a);
        break;
    }
    if (a->pixels && t->weight)
        round_weights(t);
    list_few(t);
    t->single_place = !t->weight;
    for (int64_t k = 0; k < a->out && t->single_place; k++)
        t->single_place = t->end[k] - t->begin[k] == 1;
    t->single = t->single_place && !t->divisor;
    return TD_OK;
}

void td_taps_clear(td_taps *t) {
    td_free(t->begin);
    t->begin = NULL;
}

td_status td_taps_init_all(td_taps *taps, const td_axis *axes) {
    for (int d = 0; d < TD_SPATIAL; d++)
        taps[d].begin = NULL;
    for (int d = 0; d < TD_SPATIAL; d++) {
        td_status status = td_taps_init(&taps[d], &axes[d]);
        if (status) {
            td_taps_clear_all(taps);
            return status;
        }
    }
    return TD_OK;
}

void td_taps_clear_all(td_taps *taps) {
    for (int d = 0; d < TD_SPATIAL; d++)
        td_taps_clear(&taps[d]);
}
