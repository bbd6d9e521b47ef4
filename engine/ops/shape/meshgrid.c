/* meshgrid.c: broadcast_tensors, meshgrid, cartesian_prod and combinations. */
#include "engine/core/memory.h"
#include "engine/ops/element_checks.h"
#include "engine/ops/rule_helpers.h"

#include <string.h>

#define TD_FAMILY "meshgrid"

static td_status run_broadcast_tensors(td_call *call) {
    td_value list = call->args[0];
    int64_t sizes[TD_MAX_DIMS];
    int ndim = 0;
    td_status status = td_call_open_list(call, list.n);
    for (int k = 0; k < list.n && status == TD_OK; k++)
        status =
            td_broadcast(ndim, sizes, list.tensors[k]->ndim, list.tensors[k]->sizes, &ndim, sizes);
    for (int k = 0; k < list.n && status == TD_OK; k++)
        status = TD_APPLY(&call->list[k], expand, TD_T(list.tensors[k]), TD_INTS(ndim, sizes));
    return status;
}

static td_status check_grid(td_value list) {
    if (list.n == 0 || list.n > TD_MAX_DIMS)
        return td_fail(TD_EVALUE, "1 to %d tensors expected, got %d", TD_MAX_DIMS, list.n);
    for (int k = 0; k < list.n; k++) {
        const td_tensor *x = list.tensors[k];
        if (x->ndim > 1)
            return td_fail(TD_ESHAPE, "tensor %d must have 1 dim, got %d", k + 1, x->ndim);
        if (x->dtype != list.tensors[0]->dtype)
            return td_fail(TD_EDTYPE, "tensor %d is of dtype %s, the first of %s", k + 1,
                           td_dtype_name((td_dtype)x->dtype),
                           td_dtype_name((td_dtype)list.tensors[0]->dtype));
    }
    return TD_OK;
}

/* Tensor k runs along dim k; "xy" exchanges the first two dims. */
static td_status run_meshgrid(td_call *call) {
    td_value list = call->args[0];
    int64_t sizes[TD_MAX_DIMS], line[TD_MAX_DIMS];
    bool swap = !strcmp(call->args[1].string, "xy") && list.n > 1;
    td_status status = check_grid(list);
    if (status == TD_OK)
        status = td_call_open_list(call, list.n);
    for (int k = 0; k < call->nlist; k++) {
        line[k] = 1;
        sizes[swap && k < 2 ? 1 - k : k] = list.tensors[k]->numel;
    }
    for (int k = 0; k < call->nlist && status == TD_OK; k++) {
        int dim = swap && k < 2 ? 1 - k : k;
        td_tensor *x = NULL;
        line[dim] = list.tensors[k]->numel;
        status = TD_APPLY(&x, view, TD_T(list.tensors[k]), TD_INTS(list.n, line));
        if (status == TD_OK)
            status = TD_APPLY(&call->list[k], expand, TD_T(x), TD_INTS(list.n, sizes));
        td_release(x);
        line[dim] = 1;
    }
    return status;
}

/* The grids of some vectors as the columns of one matrix. */
static td_status grid_rows(td_value vectors, td_tensor **out) {
    td_call grid = {.op = TD_OP(meshgrid), .args = (td_value[]){vectors, TD_STRING("ij")}};
    td_tensor *stacked = NULL;
    const int64_t rows[2] = {-1, vectors.n};
    td_status status = td_op_call(&grid);
    if (status)
        return status;
    TD_TRY(TD_APPLY(&stacked, stack, TD_TENSORS(grid.nlist, grid.list), TD_I(-1)));
    if (stacked->numel)
        status = TD_APPLY(out, reshape, TD_T(stacked), TD_INTS(2, rows));
    else
        status =
            TD_APPLY(out, reshape, TD_T(stacked), TD_INTS(2, ((const int64_t[]){0, vectors.n})));
done:
    td_release(stacked);
    for (int k = 0; k < grid.nlist; k++)
        td_release(grid.list[k]);
    td_free(grid.list);
    return status;
}

static td_status run_cartesian_prod(td_call *call) {
    td_value list = call->args[0];
    for (int k = 0; k < list.n; k++)
        if (list.tensors[k]->ndim != 1)
            return td_fail(TD_ESHAPE, "tensor %d must have 1 dim, got %d", k + 1,
                           list.tensors[k]->ndim);
    if (list.n == 1)
        return TD_APPLY(&call->out[0], view_as, TD_T(list.tensors[0]), TD_T(list.tensors[0]));
    return grid_rows(list, &call->out[0]);
}

/* How many such rows there are: n over r, of n + r - 1 where places may stay. */
static td_status count_rising(int64_t n, int r, bool stay, int64_t *count) {
    __int128 rows = 1;
    n = stay && n > 0 ? n + r - 1 : n;
    for (int k = 1; k <= r; k++) {
        rows = rows * (n - r + k) / k;
        if (rows > INT64_MAX / 16)
            return td_fail(TD_ENOMEM, "out of memory for so many rows");
    }
    *count = n < r ? 0 : (int64_t)rows;
    return TD_OK;
}

/* The rows of places 0 .. n-1, r of them in each, that rise from column to column (or stay). */
static td_status rising_places(int64_t n, int r, bool stay, td_device device, td_tensor **out) {
    td_tensor *line = NULL, *lines[TD_MAX_DIMS], *rows = NULL, *parts[3] = {NULL, NULL, NULL};
    td_status status = TD_OK;
    TD_TRY(TD_APPLY(&line, arange, TD_I(n), TD_NIL, TD_I(1), TD_NIL, TD_DEVICE(device)));
    if (!td_may_look(line)) {
        int64_t sizes[2] = {0, r};
        TD_TRY(count_rising(n, r, stay, &sizes[0]));
        TD_TRY(td_tensor_empty(TD_I64, device, 2, sizes, out));
        goto done;
    }
    for (int k = 0; k < r; k++)
        lines[k] = line;
    TD_TRY(grid_rows(TD_TENSORS(r, lines), &rows));
    if (r > 1) {
        TD_TRY(TD_APPLY(&parts[0], slice, TD_T(rows), TD_I(1), TD_I(0), TD_I(r - 1)));
        TD_TRY(TD_APPLY(&parts[1], slice, TD_T(rows), TD_I(1), TD_I(1), TD_I(r)));
        TD_TRY(stay ? TD_APPLY(&parts[2], le, TD_T(parts[0]), TD_T(parts[1]))
                    : TD_APPLY(&parts[2], lt, TD_T(parts[0]), TD_T(parts[1])));
        TD_STEP(&parts[2], all, TD_T(parts[2]), TD_INTS(1, (int64_t[]){1}));
        TD_STEP(&rows, advanced_index, TD_T(rows), TD_TENSORS(1, &parts[2]));
    }
    *out = td_retain(rows);
done:
    td_release(line);
    td_release(rows);
    for (int k = 0; k < 3; k++)
        td_release(parts[k]);
    return status;
}

static td_status run_combinations(td_call *call) {
    td_tensor *x = call->args[0].tensor, *rows = NULL;
    int64_t r = call->args[1].i;
    td_status status = td_check_ndim(x, "x", 1);
    if (status)
        return status;
    if (r < 0 || r > TD_MAX_DIMS - 1)
        return td_fail(TD_EVALUE, "r must lie between 0 and %d, got %lld", TD_MAX_DIMS - 1,
                       (long long)r);
    if (r == 0)
        return TD_APPLY(&call->out[0], empty, TD_INTS(1, (int64_t[]){0}),
                        TD_DTYPE((td_dtype)x->dtype), TD_DEVICE(td_tensor_device(x)));
    status = rising_places(x->numel, (int)r, call->args[2].b, td_tensor_device(x), &rows);
    if (status == TD_OK)
        status = TD_APPLY(&call->out[0], advanced_index, TD_T(x), TD_TENSORS(1, &rows));
    td_release(rows);
    return status;
}

/* ---- the table ---- */

TD_OPERATOR(broadcast_tensors) = {
    .schema = "(Tensor... tensors) -> Tensor[]",
    .doc = "The tensors expanded to the shape that they broadcast to.",
    .shapes = "tensors {(*)} -> {(*)}",
    .run = run_broadcast_tensors,
    .flags = TD_OP_FUNCTION_ONLY,
};
TD_OPERATOR(meshgrid) = {
    .schema = "(Tensor... tensors, *, \"ij\"|\"xy\" indexing=\"ij\") -> Tensor[]",
    .doc =
        "Coordinates of a grid: vector k varies along dim k; \"xy\" exchanges the first two dims.",
    .shapes = "tensors {(length...)} -> {(sizes...)}; length: one size, or none for a single "
              "element; sizes: the lengths of all, the first two exchanged where indexing is 'xy'",
    .takes = "any, one dtype",
    .notes = "indexing \"ij\": the first tensor goes along the rows; NumPy's is \"xy\".",
    .run = run_meshgrid,
    .flags = TD_OP_FUNCTION_ONLY,
};
TD_OPERATOR(cartesian_prod) = {
    .schema = "(Tensor... tensors) -> Tensor",
    .doc = "All rows made of an element of each vector.",
    .shapes = "tensors {(n)} -> (tensors[1][1]) if #tensors == 1 | -> (prod(tensors, 1), "
              "#tensors); n: its own",
    .takes = "any, one dtype",
    .run = run_cartesian_prod,
    .flags = TD_OP_FUNCTION_ONLY,
};
TD_OPERATOR(combinations) = {
    .schema = "(Tensor x, int r=2, bool with_replacement=false) -> Tensor",
    .doc = "All rows of r elements of a vector, in their order.",
    .shapes = "x (n) -> (0) if r == 0 or n == 0 or r > n and not with_replacement | -> (count, r); "
              "count: how many ways there are to take r of n",
    .run = run_combinations,
};
