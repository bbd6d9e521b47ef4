/* grid.c: images and volumes sampled at the places of a grid, and grids of affine maps. Composed of
 * other operators, so that gradients of any order follow. */
#include "engine/ops/spatial.h"

#include <string.h>

#define TD_FAMILY "grid"

/* ---- grid_sample ---- */

enum { TAPS = 4 };

typedef struct sampling {
    int n;                           /* spatial dims */
    int64_t batch, channels, places; /* places: of the result */
    int64_t sizes[TD_SPATIAL];       /* of the input */
    td_tensor *x;                    /* (N, C, all places of the input) */
    td_tensor *at[TD_SPATIAL];       /* coordinates by dim: (N, 1, places) */
    td_tensor *low[TD_SPATIAL];      /* the same rounded down, or to the nearest */
    td_tensor *weight[TD_SPATIAL][TAPS];
    bool reflects, borders, align;
    td_tensor *sum;
} sampling;

static void sampling_clear(sampling *s) {
    td_release(s->x);
    td_release(s->sum);
    for (int d = 0; d < TD_SPATIAL; d++) {
        td_release(s->at[d]);
        td_release(s->low[d]);
        for (int k = 0; k < TAPS; k++)
            td_release(s->weight[d][k]);
    }
}

/* From [-1, 1] to places along a dim: the corners are the centres of corner elements, or their
 * outer edges. */
static td_status unnormalise(const sampling *s, td_tensor *grid, int d, td_tensor **out) {
    const int64_t shape[3] = {s->batch, 1, s->places};
    double size = (double)s->sizes[d];
    td_status status = TD_OK;
    TD_TRY(TD_APPLY(out, select, TD_T(grid), TD_I(-1), TD_I(s->n - 1 - d)));
    TD_STEP(out, reshape, TD_T(*out), TD_INTS(3, shape));
    TD_STEP(out, add, TD_T(*out), TD_I(1));
    TD_STEP(out, mul, TD_T(*out), TD_F((s->align ? size - 1 : size) / 2));
    if (!s->align)
        TD_STEP(out, sub, TD_T(*out), TD_F(0.5));
done:
    return status;
}

/* *x reflected at the edges until it lies between them. */
static td_status reflect(const sampling *s, int d, td_tensor **x) {
    double low = s->align ? 0 : -0.5, span = (double)s->sizes[d] - (s->align ? 1 : 0);
    td_tensor *extra = NULL, *odd = NULL, *back = NULL;
    td_status status = TD_OK;
    if (span == 0) {
        TD_STEP(x, mul, TD_T(*x), TD_I(0));
        goto done;
    }
    TD_STEP(x, sub, TD_T(*x), TD_F(low));
    TD_STEP(x, abs, TD_T(*x));
    TD_TRY(TD_APPLY(&extra, fmod, TD_T(*x), TD_F(span)));
    TD_TRY(TD_APPLY(&odd, detach, TD_T(*x)));
    TD_STEP(&odd, div, TD_T(odd), TD_F(span));
    TD_STEP(&odd, floor, TD_T(odd));
    TD_STEP(&odd, fmod, TD_T(odd), TD_I(2));
    TD_STEP(&odd, ne, TD_T(odd), TD_I(0));
    TD_TRY(TD_APPLY(&back, neg, TD_T(extra)));
    TD_STEP(&back, add, TD_T(back), TD_F(span));
    TD_STEP(x, where, TD_T(odd), TD_T(back), TD_T(extra));
    TD_STEP(x, add, TD_T(*x), TD_F(low));
done:
    td_release(extra);
    td_release(odd);
    td_release(back);
    return status;
}

/* *x held between the first and the last place: no gradient beyond, nor at them; NaN is the first.
 */
static td_status hold(const sampling *s, int d, td_tensor **x) {
    double last = (double)(s->sizes[d] - 1);
    td_tensor *inside = NULL;
    td_status status = TD_OK;
    TD_TRY(TD_APPLY(&inside, lt, TD_T(*x), TD_F(last)));
    TD_STEP(x, where, TD_T(inside), TD_T(*x), TD_F(last));
    TD_STEP(&inside, gt, TD_T(*x), TD_I(0));
    TD_STEP(x, where, TD_T(inside), TD_T(*x), TD_I(0));
done:
    td_release(inside);
    return status;
}

static td_status bring_inside(const sampling *s, int d, td_tensor **x) {
    td_status status = s->reflects ? reflect(s, d, x) : TD_OK;
    return status == TD_OK && (s->borders || s->reflects) ? hold(s, d, x) : status;
}

/* sum += weight * (the elements at these places; those outside are 0). */
static td_status add_tap(sampling *s, td_tensor *const *places, td_tensor *weight) {
    td_tensor *flat = NULL, *valid = NULL, *part = NULL, *test = NULL;
    const int64_t all[3] = {s->batch, s->channels, s->places};
    td_status status = TD_OK;
    for (int d = 0; d < s->n; d++) {
        TD_TRY(TD_APPLY(&part, ge, TD_T(places[d]), TD_I(0)));
        TD_TRY(TD_APPLY(&test, le, TD_T(places[d]), TD_I(s->sizes[d] - 1)));
        TD_STEP(&part, logical_and, TD_T(part), TD_T(test));
        if (valid)
            TD_STEP(&valid, logical_and, TD_T(valid), TD_T(part));
        else
            valid = td_retain(part);
        TD_STEP(&part, where, TD_T(part), TD_T(places[d]), TD_I(0));
        TD_STEP(&part, to_copy, TD_T(part), TD_DTYPE(TD_I64), TD_NIL);
        if (flat) {
            TD_STEP(&flat, mul, TD_T(flat), TD_I(s->sizes[d]));
            TD_STEP(&flat, add, TD_T(flat), TD_T(part));
        } else {
            flat = td_retain(part);
        }
        td_release(part);
        td_release(test);
        part = test = NULL;
    }
    TD_STEP(&flat, expand, TD_T(flat), TD_INTS(3, all));
    TD_TRY(TD_APPLY(&part, gather, TD_T(s->x), TD_I(2), TD_T(flat)));
    TD_STEP(&part, where, TD_T(valid), TD_T(part), TD_I(0));
    if (weight)
        TD_STEP(&part, mul, TD_T(part), TD_T(weight));
    if (s->sum)
        TD_STEP(&s->sum, add, TD_T(s->sum), TD_T(part));
    else
        s->sum = td_retain(part);
done:
    td_release(flat);
    td_release(valid);
    td_release(part);
    td_release(test);
    return status;
}

/* Weight of a tap: the product of those of its dims. */
static td_status tap_weight(const sampling *s, const int *tap, td_tensor **out) {
    td_status status = TD_OK;
    *out = td_retain(s->weight[0][tap[0]]);
    for (int d = 1; d < s->n; d++)
        TD_STEP(out, mul, TD_T(*out), TD_T(s->weight[d][tap[d]]));
done:
    return status;
}

/* All taps, `count` along each dim, the first at `shift` from the place rounded down; `again`: each
 * place is brought inside by itself. */
static td_status add_taps(sampling *s, int count, int shift, bool again) {
    td_tensor *places[TD_SPATIAL] = {NULL}, *weight = NULL;
    int tap[TD_SPATIAL], total = 1;
    td_status status = TD_OK;
    for (int d = 0; d < s->n; d++)
        total *= count;
    for (int k = 0; k < total; k++) {
        for (int d = 0, rest = k; d < s->n; d++, rest /= count) {
            tap[d] = rest % count;
            td_release(places[d]);
            places[d] = NULL;
            TD_TRY(TD_APPLY(&places[d], add, TD_T(s->low[d]), TD_I(tap[d] + shift)));
            if (again)
                TD_TRY(bring_inside(s, d, &places[d]));
        }
        td_release(weight);
        weight = NULL;
        TD_TRY(tap_weight(s, tap, &weight));
        TD_TRY(add_tap(s, places, weight));
    }
done:
    td_release(weight);
    for (int d = 0; d < s->n; d++)
        td_release(places[d]);
    return status;
}

static td_status fractions(sampling *s, int d, td_tensor **fraction) {
    td_status status = TD_OK;
    TD_TRY(TD_APPLY(&s->low[d], detach, TD_T(s->at[d])));
    TD_STEP(&s->low[d], floor, TD_T(s->low[d]));
    status = TD_APPLY(fraction, sub, TD_T(s->at[d]), TD_T(s->low[d]));
done:
    return status;
}

static td_status sample_linear(sampling *s) {
    td_status status = TD_OK;
    for (int d = 0; d < s->n; d++) {
        TD_TRY(bring_inside(s, d, &s->at[d]));
        TD_TRY(fractions(s, d, &s->weight[d][1]));
        TD_TRY(TD_APPLY(&s->weight[d][0], neg, TD_T(s->weight[d][1])));
        TD_STEP(&s->weight[d][0], add, TD_T(s->weight[d][0]), TD_I(1));
    }
    status = add_taps(s, 2, 0, false);
done:
    return status;
}

static td_status sample_nearest(sampling *s) {
    td_status status = TD_OK;
    for (int d = 0; d < s->n; d++) {
        TD_TRY(bring_inside(s, d, &s->at[d]));
        TD_TRY(TD_APPLY(&s->low[d], detach, TD_T(s->at[d])));
        TD_STEP(&s->low[d], round, TD_T(s->low[d]));
    }
    status = add_tap(s, s->low, NULL);
done:
    return status;
}

/* c[0] x^3 + c[1] x^2 + c[2] x + c[3] */
static td_status polynomial(td_tensor *x, const double *c, td_tensor **out) {
    td_status status = TD_OK;
    TD_TRY(TD_APPLY(out, mul, TD_T(x), TD_F(c[0])));
    for (int k = 1; k < 4; k++) {
        TD_STEP(out, add, TD_T(*out), TD_F(c[k]));
        if (k < 3)
            TD_STEP(out, mul, TD_T(*out), TD_T(x));
    }
done:
    return status;
}

/* Keys' cubic convolution with a = -3/4, by powers of the fraction. */
static td_status sample_cubic(sampling *s) {
    static const double weights[TAPS][4] = {
        {-0.75, 1.5, -0.75, 0}, {1.25, -2.25, 0, 1}, {-1.25, 1.5, 0.75, 0}, {0.75, -0.75, 0, 0}};
    td_tensor *fraction = NULL;
    td_status status = TD_OK;
    for (int d = 0; d < s->n; d++) {
        TD_TRY(fractions(s, d, &fraction));
        for (int k = 0; k < TAPS; k++)
            TD_TRY(polynomial(fraction, weights[k], &s->weight[d][k]));
        td_release(fraction);
        fraction = NULL;
    }
    status = add_taps(s, TAPS, -1, true);
done:
    td_release(fraction);
    return status;
}

static td_status check_sample(const td_tensor *x, const td_tensor *grid, const char *mode) {
    char shape[TD_SHAPE_TEXT], other[TD_SHAPE_TEXT];
    int n = x->ndim - 2;
    td_tensor_shape_text(x, shape);
    td_tensor_shape_text(grid, other);
    if (n < 2 || n > TD_SPATIAL)
        return td_fail(TD_ESHAPE, "input must have shape (N, C, H, W) or (N, C, D, H, W), got %s",
                       shape);
    if (grid->ndim != x->ndim || grid->sizes[0] != x->sizes[0] || grid->sizes[n + 1] != n)
        return td_fail(TD_ESHAPE,
                       "grid for an input of shape %s must have shape (%lld, %s, %d), "
                       "got %s",
                       shape, (long long)x->sizes[0], n == 2 ? "H, W" : "D, H, W", n, other);
    for (int d = 2; d < x->ndim; d++)
        if (x->sizes[d] == 0)
            return td_fail(TD_ESHAPE, "the input's spatial dims must not be empty, got shape %s",
                           shape);
    if (n > 2 && !strcmp(mode, "bicubic"))
        return td_fail(TD_ESHAPE, "mode \"bicubic\" is for an input (N, C, H, W), got shape %s",
                       shape);
    td_status status = td_check_float((td_dtype)x->dtype);
    return status ? status : td_check_pair(x, grid);
}

/* What is the same for all modes, in float32 at least. */
static td_status begin_sampling(sampling *s, td_tensor *x, td_tensor *grid) {
    td_dtype wide = td_dtype_wide((td_dtype)x->dtype);
    td_tensor *wide_grid = NULL;
    const int64_t flat[3] = {s->batch, s->channels, td_numel(s->n, s->sizes)};
    td_status status = TD_OK;
    TD_TRY(TD_APPLY(&s->x, to, TD_T(x), TD_DTYPE(wide)));
    TD_TRY(TD_APPLY(&wide_grid, to, TD_T(grid), TD_DTYPE(wide)));
    TD_STEP(&s->x, reshape, TD_T(s->x), TD_INTS(3, flat));
    for (int d = 0; d < s->n; d++)
        TD_TRY(unnormalise(s, wide_grid, d, &s->at[d]));
done:
    td_release(wide_grid);
    return status;
}

/* grid_sample(input, grid, mode, padding_mode, align_corners) */
static td_status run_grid_sample(td_call *call) {
    const td_value *a = call->args;
    td_tensor *x = a[0].tensor, *grid = a[1].tensor;
    const char *mode = a[2].string;
    int64_t shape[TD_SPATIAL + 2];
    sampling s = {.n = x->ndim - 2,
                  .reflects = !strcmp(a[3].string, "reflection"),
                  .borders = !strcmp(a[3].string, "border"),
                  .align = !td_is_nil(a[4]) && a[4].b};
    td_status status = check_sample(x, grid, mode);
    if (status)
        return status;
    s.batch = shape[0] = x->sizes[0];
    s.channels = shape[1] = x->sizes[1];
    s.places = td_numel(s.n, grid->sizes + 1);
    for (int d = 0; d < s.n; d++) {
        s.sizes[d] = x->sizes[d + 2];
        shape[d + 2] = grid->sizes[d + 1];
    }
    TD_TRY(begin_sampling(&s, x, grid));
    TD_TRY(!strcmp(mode, "nearest")   ? sample_nearest(&s)
           : !strcmp(mode, "bicubic") ? sample_cubic(&s)
                                      : sample_linear(&s));
    TD_STEP(&s.sum, to, TD_T(s.sum), TD_DTYPE((td_dtype)x->dtype));
    status = TD_APPLY(&call->out[0], reshape, TD_T(s.sum), TD_INTS(x->ndim, shape));
done:
    sampling_clear(&s);
    return status;
}

/* ---- affine_grid ---- */

/* Places along dim d of n in [-1, 1], as a tensor that broadcasts over the others. */
static td_status steps(int n, int d, int64_t size, bool align, const td_tensor *like,
                       const int64_t *all, td_tensor **out) {
    double end = size > 1 ? align ? 1 : (double)(size - 1) / (double)size : 0;
    int64_t shape[TD_SPATIAL] = {1, 1, 1};
    td_status status = TD_OK;
    shape[d] = size;
    TD_TRY(TD_APPLY(out, linspace, TD_F(-end), TD_F(end), TD_I(size),
                    TD_DTYPE((td_dtype)like->dtype), TD_DEVICE(td_tensor_device(like))));
    TD_STEP(out, view, TD_T(*out), TD_INTS(n, shape));
    TD_STEP(out, expand, TD_T(*out), TD_INTS(n, all));
done:
    return status;
}

static td_status check_affine(const td_tensor *theta, td_value size) {
    char shape[TD_SHAPE_TEXT], text[TD_SHAPE_TEXT];
    int n = size.n - 2;
    if (n < 2 || n > TD_SPATIAL)
        return td_fail(TD_EVALUE, "size must have 4 or 5 sizes, got %s",
                       td_shape_text(size.n, size.ints, text, sizeof text));
    for (int d = 0; d < size.n; d++)
        if (size.ints[d] < 1)
            return td_fail(TD_EVALUE, "sizes must be at least 1, got %s",
                           td_shape_text(size.n, size.ints, text, sizeof text));
    if (theta->ndim != 3 || theta->sizes[0] != size.ints[0] || theta->sizes[1] != n ||
        theta->sizes[2] != n + 1)
        return td_fail(TD_ESHAPE, "theta must have shape (%lld, %d, %d), got %s",
                       (long long)size.ints[0], n, n + 1, td_tensor_shape_text(theta, shape));
    return td_check_float((td_dtype)theta->dtype);
}

/* affine_grid(theta, size, align_corners) */
static td_status run_affine_grid(td_call *call) {
    const td_value *a = call->args;
    td_tensor *theta = a[0].tensor, *parts[TD_SPATIAL + 1] = {NULL}, *grid = NULL, *turned = NULL;
    int n = a[1].n - 2;
    int64_t shape[TD_SPATIAL + 2], flat[2];
    td_status status = check_affine(theta, a[1]);
    if (status)
        return status;
    const int64_t *sizes = a[1].ints + 2;
    for (int d = 0; d < n; d++)
        TD_TRY(steps(n, d, sizes[d], !td_is_nil(a[2]) && a[2].b, theta, sizes, &parts[n - 1 - d]));
    TD_TRY(TD_APPLY(&parts[n], ones_like, TD_T(parts[0])));
    TD_TRY(TD_APPLY(&grid, stack, TD_TENSORS(n + 1, parts), TD_I(n)));
    flat[0] = td_numel(n, sizes);
    flat[1] = n + 1;
    TD_STEP(&grid, reshape, TD_T(grid), TD_INTS(2, flat));
    TD_TRY(TD_APPLY(&turned, transpose, TD_T(theta), TD_I(1), TD_I(2)));
    TD_STEP(&grid, matmul, TD_T(grid), TD_T(turned));
    shape[0] = theta->sizes[0];
    memcpy(shape + 1, sizes, sizeof(int64_t) * (size_t)n);
    shape[n + 1] = n;
    status = TD_APPLY(&call->out[0], reshape, TD_T(grid), TD_INTS(n + 2, shape));
done:
    for (int k = 0; k <= TD_SPATIAL; k++)
        td_release(parts[k]);
    td_release(grid);
    td_release(turned);
    return status;
}

/* ---- the table ---- */

TD_OPERATOR(grid_sample) = {
    .schema = "(Tensor input, Tensor grid, \"bilinear\"|\"nearest\"|\"bicubic\" mode=\"bilinear\", "
              "\"zeros\"|\"border\"|\"reflection\" padding_mode=\"zeros\", "
              "bool? align_corners=nil) -> Tensor",
    .doc = "Images or volumes at the places of grid, whose last dim has (x, y) or (x, y, z) in "
           "[-1, 1].",
    .run = run_grid_sample,
};
TD_OPERATOR(affine_grid) = {
    .schema = "(Tensor theta, int[] size, bool? align_corners=nil) -> Tensor",
    .doc = "The grid for grid_sample that affine maps (N, 2, 3) or (N, 3, 4) make for a result of "
           "this size.",
    .run = run_affine_grid,
};
