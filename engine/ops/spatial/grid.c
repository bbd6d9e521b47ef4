/* grid.c: images and volumes sampled at the places of a grid, and grids of affine maps.
 *
 * What is read of an image, what is given back to it and what a step of the grid is worth are three
 * operators of one plan. Each takes derivatives of any order in the place of what is read
 * (`orders`, by dim), so that they are one another's gradients. */
#include "engine/ops/spatial/spatial.h"

#include <string.h>

#define TD_FAMILY "grid"

/* ---- plans ---- */

/* `how`: mode, padding_mode, align_corners, orders. */
static td_status make_plan(const td_call *call, td_grid_kind kind, const td_tensor *grid, int ndim,
                           const int64_t *sizes, const td_value *how) {
    td_grid_plan *p = TD_PLAN(call, td_grid_plan);
    int n = ndim - 2;
    if (n < 2 || n > TD_SPATIAL || how[3].n != n || grid->ndim != ndim)
        return td_fail(TD_EVALUE, "two or three spatial dims expected, got %d", n);
    *p = (td_grid_plan){
        .kind = kind,
        .mode = !strcmp(how[0].string, "nearest")   ? TD_GRID_NEAREST
                : !strcmp(how[0].string, "bicubic") ? TD_GRID_CUBIC
                                                    : TD_GRID_LINEAR,
        .edge = !strcmp(how[1].string, "border")       ? TD_GRID_BORDER
                : !strcmp(how[1].string, "reflection") ? TD_GRID_REFLECTION
                                                       : TD_GRID_ZEROS,
        .aligned = how[2].b,
        .n = n,
        .batch = sizes[0],
        .channels = sizes[1],
        .places = td_numel(n, grid->sizes + 1),
    };
    memcpy(p->in, sizes + 2, sizeof(int64_t) * (size_t)n);
    memcpy(p->order, how[3].ints, sizeof(int64_t) * (size_t)n);
    return TD_OK;
}

/* grid_read(input, grid, how...) */
static td_status rule_grid_read(const td_call *call, td_meta *out) {
    const td_tensor *x = call->args[0].tensor, *grid = call->args[1].tensor;
    int64_t shape[TD_SPATIAL + 2] = {x->sizes[0], x->sizes[1]};
    td_status status = make_plan(call, TD_GRID_READ, grid, x->ndim, x->sizes, call->args + 2);
    if (status)
        return status;
    memcpy(shape + 2, grid->sizes + 1, sizeof(int64_t) * (size_t)(x->ndim - 2));
    td_meta_set(out, (td_dtype)x->dtype, x->ndim, shape);
    return td_check_places("a result", x->ndim, shape);
}

/* grid_give(gradient, grid, input_size, how...) */
static td_status rule_grid_give(const td_call *call, td_meta *out) {
    const td_value *a = call->args;
    td_meta_set(out, (td_dtype)a[0].tensor->dtype, a[2].n, a[2].ints);
    return make_plan(call, TD_GRID_GIVE, a[1].tensor, a[2].n, a[2].ints, a + 3);
}

/* grid_slope(input, grid, gradient, how...) */
static td_status rule_grid_slope(const td_call *call, td_meta *out) {
    const td_tensor *x = call->args[0].tensor, *grid = call->args[1].tensor;
    td_meta_set(out, (td_dtype)grid->dtype, grid->ndim, grid->sizes);
    return make_plan(call, TD_GRID_SLOPE, grid, x->ndim, x->sizes, call->args + 3);
}

/* Row-major forms of input, grid and gradient, as the plan wants them. */
static td_status run_plan(td_call *call, td_tensor *x, td_tensor *grid, td_tensor *gradient) {
    td_grid_plan *p = TD_PLAN(call, td_grid_plan);
    td_tensor *packed[3] = {NULL}, *given[3] = {grid, x, gradient};
    td_status status = TD_OK;
    p->out = call->out[0];
    for (int k = 0; k < 3; k++)
        if (given[k])
            TD_TRY(td_contiguous(given[k], &packed[k]));
    p->grid = packed[0];
    p->x = packed[1];
    p->gradient = packed[2];
    if (p->kind == TD_GRID_GIVE)
        TD_TRY(td_fill_int(p->out, 0));
    if (p->out->numel && p->grid->numel)
        status = TD_RUN(td_tensor_device(p->out), grid, p);
done:
    for (int k = 0; k < 3; k++)
        td_release(packed[k]);
    return status;
}

static td_status kernel_grid_read(td_call *call) {
    return run_plan(call, call->args[0].tensor, call->args[1].tensor, NULL);
}
static td_status kernel_grid_give(td_call *call) {
    return run_plan(call, NULL, call->args[1].tensor, call->args[0].tensor);
}
static td_status kernel_grid_slope(td_call *call) {
    return run_plan(call, call->args[0].tensor, call->args[1].tensor, call->args[2].tensor);
}

/* ---- the gradient of slopes ---- */

/* *sum becomes x, or *sum + x. */
static td_status add_up(td_tensor **sum, td_tensor *x) {
    td_status status = TD_OK;
    if (!*sum)
        *sum = td_retain(x);
    else
        TD_STEP(sum, add, TD_T(*sum), TD_T(x));
done:
    return status;
}

/* What the slopes by dim d, whose gradient is g, give: they are what is read one derivative on,
 * times the gradient of that. */
static td_status back_from_dim(td_grad *grad, int d, td_tensor *g) {
    const td_value *a = grad->args;
    int64_t orders[TD_SPATIAL];
    int n = a[6].n, ndim;
    const int64_t *size = td_grad_shape(grad, 0, &ndim);
    td_value on = TD_INTS(n, orders);
    td_tensor *weighted = NULL, *parts[4] = {NULL};
    td_status status = TD_OK;
    memcpy(orders, a[6].ints, sizeof(int64_t) * (size_t)n);
    orders[d]++;
    TD_TRY(TD_APPLY(&weighted, mul, a[2], TD_T(g)));
    if (td_grad_needs(grad, 0)) {
        TD_TRY(TD_APPLY(&parts[0], grid_give, TD_T(weighted), a[1], TD_INTS(ndim, size), a[3], a[4],
                        a[5], on));
        TD_TRY(add_up(&grad->in[0], parts[0]));
    }
    if (td_grad_needs(grad, 1)) {
        TD_TRY(TD_APPLY(&parts[1], grid_slope, a[0], a[1], TD_T(weighted), a[3], a[4], a[5], on));
        TD_TRY(add_up(&grad->in[1], parts[1]));
    }
    if (td_grad_needs(grad, 2)) {
        TD_TRY(TD_APPLY(&parts[2], grid_read, a[0], a[1], a[3], a[4], a[5], on));
        TD_TRY(TD_APPLY(&parts[3], mul, TD_T(parts[2]), TD_T(g)));
        TD_TRY(add_up(&grad->in[2], parts[3]));
    }
done:
    td_release(weighted);
    for (int k = 0; k < 4; k++)
        td_release(parts[k]);
    return status;
}

static td_status grid_slope_backward(td_grad *grad) {
    int n = grad->args[6].n;
    td_tensor *g = NULL;
    td_status status = TD_OK;
    for (int d = 0; d < n; d++) {
        TD_TRY(TD_APPLY(&g, select, TD_T(grad->gout[0]), TD_I(-1), TD_I(n - 1 - d)));
        TD_STEP(&g, unsqueeze, TD_T(g), TD_I(1));
        TD_TRY(back_from_dim(grad, d, g));
        td_release(g);
        g = NULL;
    }
done:
    td_release(g);
    return status;
}

/* ---- grid_sample ---- */

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

/* grid_sample(input, grid, mode, padding_mode, align_corners), in float32 at least */
static td_status run_grid_sample(td_call *call) {
    static const int64_t orders[TD_SPATIAL] = {0};
    const td_value *a = call->args;
    td_tensor *x = a[0].tensor, *wide = NULL, *wide_grid = NULL;
    td_dtype dtype = (td_dtype)x->dtype;
    td_value to = TD_DTYPE(td_dtype_wide(dtype)), aligned = TD_B(!td_is_nil(a[4]) && a[4].b);
    td_status status = check_sample(x, a[1].tensor, a[2].string);
    if (status)
        return status;
    if (to.dtype == dtype)
        return TD_APPLY(&call->out[0], grid_read, a[0], a[1], a[2], a[3], aligned,
                        TD_INTS(x->ndim - 2, orders));
    TD_TRY(TD_APPLY(&wide, to, a[0], to));
    TD_TRY(TD_APPLY(&wide_grid, to, a[1], to));
    TD_STEP(&wide, grid_read, TD_T(wide), TD_T(wide_grid), a[2], a[3], aligned,
            TD_INTS(x->ndim - 2, orders));
    status = TD_APPLY(&call->out[0], to, TD_T(wide), TD_DTYPE(dtype));
done:
    td_release(wide);
    td_release(wide_grid);
    return status;
}

/* ---- affine_grid ---- */

/* Column `at` of theta as the last of n + 2 dims, of which the ones between are 1. */
static td_status column_of(td_tensor *theta, int n, int at, td_tensor **out) {
    int64_t shape[TD_SPATIAL + 2] = {theta->sizes[0], 1, 1, 1, 1};
    td_status status = TD_OK;
    shape[n + 1] = n;
    TD_TRY(TD_APPLY(out, select, TD_T(theta), TD_I(2), TD_I(at)));
    TD_STEP(out, reshape, TD_T(*out), TD_INTS(n + 2, shape));
done:
    return status;
}

/* Places along dim d of n in [-1, 1], rounded to theta's own dtype, times what theta has for them.
 */
static td_status along(td_tensor *theta, td_dtype dtype, int n, int d, int64_t size, bool align,
                       td_tensor **out) {
    double end = size > 1 ? align ? 1 : (double)(size - 1) / (double)size : 0;
    int64_t shape[TD_SPATIAL + 2] = {1, 1, 1, 1, 1};
    td_tensor *column = NULL;
    td_status status = TD_OK;
    shape[d + 1] = size;
    TD_TRY(column_of(theta, n, n - 1 - d, &column));
    TD_TRY(TD_APPLY(out, linspace, TD_F(-end), TD_F(end), TD_I(size), TD_DTYPE(dtype),
                    TD_DEVICE(td_tensor_device(theta))));
    TD_STEP(out, view, TD_T(*out), TD_INTS(n + 2, shape));
    TD_STEP(out, mul, TD_T(*out), TD_T(column));
done:
    td_release(column);
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

/* affine_grid(theta, size, align_corners): a product is a sum of one part for each dim, which are
 * small but for the last sum. 16-bit floats are added in float32. */
static td_status run_affine_grid(td_call *call) {
    const td_value *a = call->args;
    td_dtype dtype = (td_dtype)a[0].tensor->dtype;
    bool align = !td_is_nil(a[2]) && a[2].b;
    td_tensor *theta = NULL, *part = NULL, *grid = NULL;
    int n = a[1].n - 2;
    td_status status = TD_OK;
    TD_TRY(check_affine(a[0].tensor, a[1]));
    TD_TRY(TD_APPLY(&theta, to, a[0], TD_DTYPE(td_dtype_compute(dtype))));
    TD_TRY(column_of(theta, n, n, &grid));
    for (int d = 0; d < n; d++) {
        TD_TRY(along(theta, dtype, n, d, a[1].ints[d + 2], align, &part));
        TD_STEP(&grid, add, TD_T(grid), TD_T(part));
        td_release(part);
        part = NULL;
    }
    status = TD_APPLY(&call->out[0], to, TD_T(grid), TD_DTYPE(dtype));
done:
    td_release(theta);
    td_release(part);
    td_release(grid);
    return status;
}

/* ---- the table ---- */

#define HOW_TYPES "str mode, str padding_mode, bool align_corners, int[] orders) -> Tensor"
#define HOW_NAMES "mode, padding_mode, align_corners, orders"
#define DTYPES    (TD_DTYPE_BIT(F32) | TD_DTYPE_BIT(F64))

TD_OPERATOR(grid_read) = {
    .schema = "(Tensor input, Tensor grid, " HOW_TYPES,
    .doc = "grid_sample, or its derivative of an order by each coordinate.",
    .rule = rule_grid_read,
    .kernel = kernel_grid_read,
    .dtypes = DTYPES,
    .gradient = "input: grid_give(g, grid, input.shape, " HOW_NAMES "); "
                "grid: grid_slope(input, grid, g, " HOW_NAMES ")",
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(grid_give) = {
    .schema = "(Tensor gradient, Tensor grid, int[] input_size, " HOW_TYPES,
    .doc = "What grid_read gives to its input.",
    .rule = rule_grid_give,
    .kernel = kernel_grid_give,
    .dtypes = DTYPES,
    .gradient = "gradient: grid_read(g, grid, " HOW_NAMES "); "
                "grid: grid_slope(g, grid, gradient, " HOW_NAMES ")",
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(grid_slope) = {
    .schema = "(Tensor input, Tensor grid, Tensor gradient, " HOW_TYPES,
    .doc = "What grid_read gives to its grid.",
    .rule = rule_grid_slope,
    .kernel = kernel_grid_slope,
    .dtypes = DTYPES,
    .backward = grid_slope_backward,
    .saves = "input, grid, gradient",
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(grid_sample) = {
    .schema = "(Tensor input, Tensor grid, \"bilinear\"|\"nearest\"|\"bicubic\" mode=\"bilinear\", "
              "\"zeros\"|\"border\"|\"reflection\" padding_mode=\"zeros\", "
              "bool? align_corners=nil) -> Tensor",
    .doc = "Images or volumes at the places of grid, whose last dim has (x, y) or (x, y, z) in "
           "[-1, 1].",
    .shapes = "input (N, C, H, W), grid (N, Ho, Wo, 2) -> (N, C, Ho, Wo) | input (N, C, D, H, W), "
              "grid (N, Do, Ho, Wo, 3) -> (N, C, Do, Ho, Wo)",
    .takes = "floating, one dtype",
    .notes = "Places are (x, y) from -1 to 1 over the last dim of grid. align_corners is false "
             "where it is not given.",
    .run = run_grid_sample,
};
TD_OPERATOR(affine_grid) = {
    .schema = "(Tensor theta, int[] size, bool? align_corners=nil) -> Tensor",
    .doc = "The grid for grid_sample that affine maps (N, 2, 3) or (N, 3, 4) make for a result of "
           "this size.",
    .shapes = "theta (N, 2, 3) -> (N, size[3], size[4], 2) | theta (N, 3, 4) -> (N, size[3], "
              "size[4], size[5], 3)",
    .takes = "floating",
    .run = run_affine_grid,
};
