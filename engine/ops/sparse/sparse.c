/* sparse.c: sparse tensors in coordinates (core/sparse.h): how they are taken apart, brought into
 * order and made dense. All of it is indexing and sorting by other operators; a gradient of a
 * sparse tensor may itself be sparse, and is picked apart at the places that are asked for. */
#include "engine/ops/sparse/sparse.h"

#include "engine/core/modes.h"
#include "engine/ops/make/copy.h"
#include "engine/ops/rule_helpers.h"

#include <string.h>

#define TD_FAMILY "sparse"

/* ---- places ---- */

/* Row d of the indices, a view. */
static td_status row_of(td_tensor *indices, int d, td_tensor **out) {
    return TD_APPLY(out, select, TD_T(indices), TD_I(0), TD_I(d));
}

td_status td_number_places(td_tensor *indices, const int64_t *sizes, td_tensor **out) {
    td_tensor *number = NULL, *row = NULL;
    const int64_t n = indices->sizes[1];
    td_status status = TD_OK;
    TD_TRY(TD_APPLY(&number, zeros, TD_INTS(1, &n), TD_DTYPE(TD_I64),
                    TD_DEVICE(td_tensor_device(indices))));
    for (int d = 0; d < indices->sizes[0]; d++) {
        TD_TRY(row_of(indices, d, &row));
        TD_STEP(&number, mul, TD_T(number), TD_I(sizes[d]));
        TD_STEP(&number, add, TD_T(number), TD_T(row));
        td_release(row);
        row = NULL;
    }
    *out = td_retain(number);
done:
    td_release(number);
    td_release(row);
    return status;
}

/* The columns of indices, of so many rows, that such numbers stand for. */
static td_status name_places(td_tensor *number, int ndim, const int64_t *sizes, td_tensor **out) {
    td_tensor *rows[TD_MAX_DIMS] = {NULL}, *left = td_retain(number);
    const int64_t shape[2] = {ndim, number->numel};
    td_status status = TD_OK;
    for (int d = ndim - 1; d >= 0 && number->numel; d--) {
        TD_TRY(TD_APPLY(&rows[d], remainder, TD_T(left), TD_I(sizes[d])));
        TD_STEP(&left, floor_divide, TD_T(left), TD_I(sizes[d]));
    }
    if (ndim && number->numel)
        status = TD_APPLY(out, stack, TD_TENSORS(ndim, rows), TD_I(0));
    else
        status = TD_APPLY(out, zeros, TD_INTS(2, shape), TD_DTYPE(TD_I64),
                          TD_DEVICE(td_tensor_device(number)));
done:
    for (int d = 0; d < ndim; d++)
        td_release(rows[d]);
    td_release(left);
    return status;
}

/* ---- parts ---- */

void td_parts_close(td_parts *parts) {
    td_release(parts->indices);
    td_release(parts->values);
    parts->indices = parts->values = NULL;
}

td_status td_parts_open(td_tensor *x, td_parts *parts) {
    const td_sparse *s = td_sparse_of(x);
    if (TD_UNLIKELY(x->requires_grad && td_is_recording()))
        return td_parts_open_coalesced(x, parts);
    *parts = (td_parts){td_retain(s->indices), td_retain(s->values), s->coalesced};
    return TD_OK;
}

td_status td_parts_open_coalesced(td_tensor *x, td_parts *parts) {
    td_tensor *whole = NULL;
    td_status status = TD_OK;
    *parts = (td_parts){NULL, NULL, true};
    TD_TRY(TD_APPLY(&whole, coalesce, TD_T(x)));
    parts->indices = td_retain(td_sparse_of(whole)->indices);
    status = TD_APPLY(&parts->values, sparse_values, TD_T(whole), TD_T(parts->indices));
done:
    td_release(whole);
    if (status)
        td_parts_close(parts);
    return status;
}

td_status td_parts_join(const td_tensor *x, const td_parts *parts, td_tensor **out) {
    return TD_APPLY(out, sparse_of, TD_T(parts->indices), TD_T(parts->values),
                    TD_INTS(x->ndim, x->sizes), TD_B(parts->coalesced));
}

/* No dim is sparse: all values are of the one place there is. */
static td_status add_whole(td_tensor *dense, const td_parts *parts) {
    const int64_t first = 0;
    td_tensor *total = NULL;
    td_status status = TD_OK;
    TD_TRY(TD_APPLY(&total, sum, TD_T(parts->values), TD_INTS(1, &first)));
    status = TD_APPLY_INPLACE(add, TD_T(dense), TD_T(total));
done:
    td_release(total);
    return status;
}

td_status td_parts_add_to(td_tensor *dense, const td_parts *parts) {
    int64_t ndim = parts->indices->sizes[0];
    td_tensor *rows[TD_MAX_DIMS] = {NULL};
    td_status status = TD_OK;
    if (ndim == 0)
        return add_whole(dense, parts);
    for (int d = 0; d < ndim; d++)
        TD_TRY(row_of(parts->indices, d, &rows[d]));
    if (ndim == 1)
        status =
            TD_APPLY_INPLACE(index_add, TD_T(dense), TD_I(0), TD_T(rows[0]), TD_T(parts->values));
    else
        status = TD_APPLY_INPLACE(index_put, TD_T(dense), TD_TENSORS((int32_t)ndim, rows),
                                  TD_T(parts->values), TD_B(true));
done:
    for (int d = 0; d < ndim; d++)
        td_release(rows[d]);
    return status;
}

/* ---- operators on the parts ---- */

static td_status check_sparse(const td_tensor *x) {
    return td_sparse_of(x) ? TD_OK
                           : td_fail(TD_ETYPE, "needs a sparse tensor, got a strided one: convert "
                                               "with x:to_sparse()");
}

static td_status check_coalesced(const td_tensor *x) {
    td_status status = check_sparse(x);
    if (status == TD_OK && !td_sparse_of(x)->coalesced)
        return td_fail(TD_EVALUE, "x is not coalesced: take those of x:coalesce()");
    return status;
}

static td_status run_sparse_of(td_call *call) {
    const td_value *a = call->args;
    td_tensor *indices = NULL, *values = NULL;
    td_status status = TD_OK;
    TD_TRY(td_contiguous_as(a[0].tensor, TD_I64, &indices));
    TD_TRY(td_tensor_alias(a[1].tensor, &values));
    status = td_sparse_new(a[2].n, a[2].ints, indices, values, a[3].b, &call->out[0]);
done:
    td_release(indices);
    td_release(values);
    return status;
}

/* A write into what shares memory with a tensor that has a history would escape that history. */
static td_status run_sparse_values(td_call *call) {
    td_tensor *x = call->args[0].tensor, *values = td_sparse_of(x)->values;
    return x->requires_grad ? TD_APPLY(&call->out[0], clone, TD_T(values))
                            : td_tensor_alias(values, &call->out[0]);
}

static td_status run_values(td_call *call) {
    td_tensor *x = call->args[0].tensor;
    td_status status = check_coalesced(x);
    return status ? status
                  : TD_APPLY(&call->out[0], sparse_values, TD_T(x), TD_T(td_sparse_of(x)->indices));
}

static td_status run_own_values(td_call *call) {
    td_status status = check_sparse(call->args[0].tensor);
    return status ? status
                  : td_tensor_alias(td_sparse_of(call->args[0].tensor)->values, &call->out[0]);
}

static td_status run_own_indices(td_call *call) {
    td_status status = check_sparse(call->args[0].tensor);
    return status ? status
                  : td_tensor_alias(td_sparse_of(call->args[0].tensor)->indices, &call->out[0]);
}

static td_status run_indices(td_call *call) {
    td_status status = check_coalesced(call->args[0].tensor);
    return status ? status : run_own_indices(call);
}

static td_status run_is_coalesced(td_call *call) {
    td_status status = check_sparse(call->args[0].tensor);
    if (status == TD_OK)
        call->result = TD_B(td_sparse_of(call->args[0].tensor)->coalesced);
    return status;
}

static td_status run_count(td_call *call) {
    td_status status = check_sparse(call->args[0].tensor);
    if (status == TD_OK)
        call->result = TD_I(td_sparse_count(td_sparse_of(call->args[0].tensor)));
    return status;
}

static td_status run_sparse_dim(td_call *call) {
    const td_sparse *s = td_sparse_of(call->args[0].tensor);
    call->result = TD_I(s ? td_sparse_dims(s) : 0);
    return TD_OK;
}

static td_status run_dense_dim(td_call *call) {
    const td_tensor *x = call->args[0].tensor;
    const td_sparse *s = td_sparse_of(x);
    call->result = TD_I(s ? x->ndim - td_sparse_dims(s) : x->ndim);
    return TD_OK;
}

/* ---- order ---- */

/* Values added up by the number of their place, `n` places. */
static td_status add_up(td_tensor *values, td_tensor *number, int64_t n, td_tensor **out) {
    int64_t sizes[TD_MAX_DIMS + 1];
    td_tensor *total = NULL, *counts = NULL;
    bool truths = values->dtype == TD_BOOL;
    td_status status = TD_OK;
    memcpy(sizes, values->sizes, sizeof(int64_t) * values->ndim);
    sizes[0] = n;
    TD_TRY(TD_APPLY(&total, zeros, TD_INTS(values->ndim, sizes),
                    TD_DTYPE(truths ? TD_I64 : (td_dtype)values->dtype),
                    TD_DEVICE(td_tensor_device(values))));
    TD_TRY(TD_APPLY(&counts, to, TD_T(values), TD_DTYPE((td_dtype)total->dtype)));
    TD_TRY(TD_APPLY_INPLACE(index_add, TD_T(total), TD_I(0), TD_T(number), TD_T(counts)));
    status = TD_APPLY(out, to, TD_T(total), TD_DTYPE((td_dtype)values->dtype));
done:
    td_release(total);
    td_release(counts);
    return status;
}

static td_status run_sparse_coalesced(td_call *call) {
    td_tensor *x = call->args[0].tensor;
    const td_sparse *s = td_sparse_of(x);
    td_tensor *number = NULL, *unique[3] = {NULL, NULL, NULL};
    td_parts parts = {NULL, NULL, true};
    td_status status = TD_OK;
    TD_TRY(td_number_places(s->indices, x->sizes, &number));
    TD_TRY(TD_APPLY(unique, unique, TD_T(number), TD_B(true), TD_B(true)));
    TD_TRY(name_places(unique[0], td_sparse_dims(s), x->sizes, &parts.indices));
    TD_TRY(add_up(s->values, unique[1], unique[0]->numel, &parts.values));
    status = td_parts_join(x, &parts, &call->out[0]);
done:
    td_release(number);
    for (int k = 0; k < 3; k++)
        td_release(unique[k]);
    td_parts_close(&parts);
    return status;
}

static td_status run_coalesce(td_call *call) {
    td_tensor *x = call->args[0].tensor;
    td_status status = check_sparse(x);
    if (status || !td_sparse_of(x)->coalesced)
        return status ? status : TD_APPLY(&call->out[0], sparse_coalesced, TD_T(x));
    call->out[0] = td_retain(x);
    return TD_OK;
}

/* ---- dense and sparse ---- */

static td_status run_to_dense(td_call *call) {
    td_tensor *x = call->args[0].tensor, *whole = NULL;
    td_value dtype = call->args[1];
    td_parts parts = {NULL, NULL, false};
    td_status status = TD_OK;
    if (td_is_nil(dtype))
        dtype = TD_DTYPE((td_dtype)x->dtype);
    if (!td_sparse_of(x))
        return TD_APPLY(&call->out[0], to, TD_T(x), dtype);
    td_dtype sums = x->dtype == TD_BOOL ? TD_I64 : (td_dtype)x->dtype;
    TD_TRY(td_parts_open(x, &parts));
    TD_TRY(TD_APPLY(&whole, zeros, TD_INTS(x->ndim, x->sizes), TD_DTYPE(sums),
                    TD_DEVICE(td_tensor_device(x))));
    TD_STEP(&parts.values, to, TD_T(parts.values), TD_DTYPE(sums));
    TD_TRY(td_parts_add_to(whole, &parts));
    TD_STEP(&whole, to, TD_T(whole), TD_DTYPE((td_dtype)x->dtype));
    status = TD_APPLY(&call->out[0], to, TD_T(whole), dtype);
done:
    td_release(whole);
    td_parts_close(&parts);
    return status;
}

/* ---- picking ---- */

/* The elements, or dense parts, of a strided tensor at places. */
static td_status pick_dense(td_tensor *x, td_tensor *indices, td_tensor **out) {
    td_tensor *rows[TD_MAX_DIMS] = {NULL}, *whole = NULL;
    int ndim = (int)indices->sizes[0];
    int64_t sizes[TD_MAX_DIMS + 1];
    td_status status = TD_OK;
    for (int d = 0; d < ndim; d++)
        TD_TRY(row_of(indices, d, &rows[d]));
    if (ndim) {
        status = TD_APPLY(out, advanced_index, TD_T(x), TD_TENSORS(ndim, rows));
    } else {
        sizes[0] = indices->sizes[1];
        memcpy(sizes + 1, x->sizes, sizeof(int64_t) * x->ndim);
        TD_TRY(TD_APPLY(&whole, expand, TD_T(x), TD_INTS(x->ndim + 1, sizes)));
        status = TD_APPLY(out, clone, TD_T(whole));
    }
done:
    for (int d = 0; d < ndim; d++)
        td_release(rows[d]);
    td_release(whole);
    return status;
}

/* Which of the rows of coalesced parts, n of them and not 0, stand at places: their numbers, and a
 * mask of the places that have none, of so many dims. */
static td_status match(const td_parts *parts, const int64_t *sizes, td_tensor *indices,
                       td_tensor **row, td_tensor **none) {
    td_tensor *have = NULL, *want = NULL, *found = NULL;
    int64_t shape[TD_MAX_DIMS + 1];
    td_status status = TD_OK;
    for (int d = 0; d < parts->values->ndim; d++)
        shape[d] = d ? 1 : indices->sizes[1];
    TD_TRY(td_number_places(parts->indices, sizes, &have));
    TD_TRY(td_number_places(indices, sizes, &want));
    TD_TRY(TD_APPLY(row, searchsorted, TD_T(have), TD_T(want)));
    TD_STEP(row, clamp_max, TD_T(*row), TD_I(have->numel - 1));
    TD_TRY(TD_APPLY(&found, index_select, TD_T(have), TD_I(0), TD_T(*row)));
    TD_TRY(TD_APPLY(none, ne, TD_T(found), TD_T(want)));
    TD_STEP(none, reshape, TD_T(*none), TD_INTS(parts->values->ndim, shape));
done:
    td_release(have);
    td_release(want);
    td_release(found);
    return status;
}

/* As many zeros as there are places, with the history of values of which there are none. */
static td_status pick_nothing(td_tensor *values, int64_t n, td_tensor **out) {
    int64_t sizes[TD_MAX_DIMS + 1];
    const int64_t first = 0;
    td_tensor *zero = NULL;
    td_status status = TD_OK;
    memcpy(sizes, values->sizes, sizeof(int64_t) * values->ndim);
    sizes[0] = n;
    TD_TRY(TD_APPLY(&zero, sum, TD_T(values), TD_INTS(1, &first), TD_B(true),
                    TD_DTYPE((td_dtype)values->dtype)));
    TD_STEP(&zero, expand, TD_T(zero), TD_INTS(values->ndim, sizes));
    status = TD_APPLY(out, clone, TD_T(zero));
done:
    td_release(zero);
    return status;
}

/* The same of a sparse tensor, 0 where it has nothing. */
static td_status pick_sparse(td_tensor *x, td_tensor *indices, td_tensor **out) {
    td_parts parts;
    td_tensor *row = NULL, *none = NULL, *rows = NULL;
    td_status status = td_parts_open_coalesced(x, &parts);
    if (status)
        return status;
    if (parts.values->sizes[0] == 0) {
        status = pick_nothing(parts.values, indices->sizes[1], out);
    } else {
        TD_TRY(match(&parts, x->sizes, indices, &row, &none));
        TD_TRY(TD_APPLY(&rows, index_select, TD_T(parts.values), TD_I(0), TD_T(row)));
        status = TD_APPLY(out, masked_fill, TD_T(rows), TD_T(none), TD_I(0));
    }
done:
    td_release(row);
    td_release(none);
    td_release(rows);
    td_parts_close(&parts);
    return status;
}

static td_status run_sparse_pick(td_call *call) {
    td_tensor *x = call->args[0].tensor, *indices = call->args[1].tensor, *dense = NULL;
    const td_sparse *s = td_sparse_of(x);
    if (!s)
        return pick_dense(x, indices, &call->out[0]);
    if (td_sparse_dims(s) == indices->sizes[0])
        return pick_sparse(x, indices, &call->out[0]);
    td_status status = TD_APPLY(&dense, to_dense, TD_T(x));
    if (status == TD_OK)
        status = pick_dense(dense, indices, &call->out[0]);
    td_release(dense);
    return status;
}

static td_status run_sparse_mask(td_call *call) {
    td_tensor *x = call->args[0].tensor, *mask = call->args[1].tensor;
    const td_sparse *s = td_sparse_of(mask);
    if (!s)
        return td_fail(TD_ETYPE, "mask must be a sparse tensor, got a strided one");
    td_status status = td_check_same_shape(x, "x", mask, "mask");
    if (status)
        return status;
    td_parts parts = {td_retain(s->indices), NULL, s->coalesced};
    TD_TRY(TD_APPLY(&parts.values, sparse_pick, TD_T(x), TD_T(parts.indices)));
    status = td_parts_join(x, &parts, &call->out[0]);
done:
    td_parts_close(&parts);
    return status;
}

static td_status run_with_values(td_call *call) {
    td_tensor *x = call->args[0].tensor, *values = call->args[1].tensor;
    td_status status = check_sparse(x);
    if (status)
        return status;
    const td_sparse *s = td_sparse_of(x);
    status = td_check_same_shape(values, "values", s->values, "those of x");
    return status ? status
                  : td_parts_join(x, &(td_parts){s->indices, values, s->coalesced}, &call->out[0]);
}

/* ---- gradients that are sparse ---- */

/* Of gather: each element of g stands at the place that it was read from. */
static td_status run_gather_slope(td_call *call) {
    td_tensor *g = call->args[0].tensor, *index = call->args[1].tensor;
    td_value size = call->args[2];
    td_tensor *rows[TD_MAX_DIMS] = {NULL}, *all = NULL, *values = NULL;
    int64_t shape[TD_MAX_DIMS], n = index->numel;
    td_status status = TD_OK;
    for (int d = 0; d < size.n; d++) {
        for (int k = 0; k < size.n; k++)
            shape[k] = k == d ? index->sizes[k] : 1;
        if (d == call->args[3].i)
            TD_TRY(td_contiguous_as(index, TD_I64, &rows[d]));
        else
            TD_TRY(TD_APPLY(&rows[d], arange, TD_I(index->sizes[d]), TD_NIL, TD_I(1),
                            TD_DTYPE(TD_I64), TD_DEVICE(td_tensor_device(g))));
        if (d != call->args[3].i)
            TD_STEP(&rows[d], reshape, TD_T(rows[d]), TD_INTS(size.n, shape));
        else if (n) /* some count from the end */
            TD_STEP(&rows[d], remainder, TD_T(rows[d]), TD_I(size.ints[d]));
        TD_STEP(&rows[d], expand, TD_T(rows[d]), TD_INTS(index->ndim, index->sizes));
        TD_STEP(&rows[d], reshape, TD_T(rows[d]), TD_INTS(1, &n));
    }
    if (size.n)
        TD_TRY(TD_APPLY(&all, stack, TD_TENSORS(size.n, rows), TD_I(0)));
    else
        TD_TRY(TD_APPLY(&all, zeros, TD_INTS(2, ((int64_t[]){0, n})), TD_DTYPE(TD_I64),
                        TD_DEVICE(td_tensor_device(g))));
    TD_TRY(TD_APPLY(&values, reshape, TD_T(g), TD_INTS(1, &n)));
    status = TD_APPLY(&call->out[0], sparse_of, TD_T(all), TD_T(values), size, TD_B(false));
done:
    for (int d = 0; d < size.n; d++)
        td_release(rows[d]);
    td_release(all);
    td_release(values);
    return status;
}

/* ---- the table ---- */

TD_OPERATOR(to_dense) = {
    .schema = "(Tensor x, dtype? dtype=nil) -> Tensor",
    .doc = "A sparse tensor with all its elements in strided memory; a strided one as it is.",
    .shapes = "x (...) -> (...)",
    .run = run_to_dense,
    .flags = TD_OP_METHOD_ONLY | TD_OP_ANY_LAYOUT,
};
TD_OPERATOR(coalesce) = {
    .schema = "(Tensor x) -> Tensor",
    .doc = "A sparse tensor whose places stand once each, in order; x itself where it is so.",
    .shapes = "x (...) -> (...)",
    .run = run_coalesce,
    .flags = TD_OP_BY_ELEMENTS | TD_OP_METHOD_ONLY | TD_OP_ANY_LAYOUT,
};
TD_OPERATOR(sparse_mask) = {
    .schema = "(Tensor x, Tensor mask) -> Tensor",
    .doc = "The elements of x at the places that a sparse tensor has, as a sparse tensor.",
    .shapes = "x (...), mask (...) -> (...)",
    .run = run_sparse_mask,
    .flags = TD_OP_BY_ELEMENTS | TD_OP_METHOD_ONLY | TD_OP_ANY_LAYOUT,
};
TD_OPERATOR(values) = {
    .schema = "(Tensor x) -> Tensor",
    .doc = "The elements that a coalesced sparse tensor keeps, one row for each place.",
    .shapes = "x (...) -> (n, dense...); n: how many places there are; dense: the dense dims",
    .run = run_values,
    .flags = TD_OP_METHOD_ONLY | TD_OP_ANY_LAYOUT,
};

/* What is asked of a sparse tensor, or of its parts. */
#define ASK(name, function, result, ...)                                                           \
    TD_OPERATOR(name) = {.schema = "(Tensor x) -> " result,                                        \
                         .doc = __VA_ARGS__,                                                       \
                         .run = function,                                                          \
                         .flags = TD_OP_METHOD_ONLY | TD_OP_NONDIFF | TD_OP_ANY_LAYOUT}
ASK(indices, run_indices, "index Tensor",
    "The places of a coalesced sparse tensor, one column each.",
    .shapes = "x (...) -> (d, n); d: how many dims are sparse; n: how many places there are");
ASK(_indices, run_own_indices, "index Tensor",
    "The places of a sparse tensor, coalesced or not, one column each.",
    .shapes = "x (...) -> (d, n); d: how many dims are sparse; n: how many places there are");
ASK(_values, run_own_values, "Tensor",
    "The elements of a sparse tensor, coalesced or not, without history.",
    .shapes = "x (...) -> (n, dense...); n: how many places there are; dense: the dense dims");
ASK(_nnz, run_count, "number", "How many places a sparse tensor names.");
ASK(is_coalesced, run_is_coalesced, "bool", "Does a sparse tensor name each place once, in order?");
ASK(sparse_dim, run_sparse_dim, "number", "How many dims are sparse; of a strided tensor 0.");
ASK(dense_dim, run_dense_dim, "number", "How many dims are dense.");

TD_OPERATOR(sparse_of) = {
    .schema = "(Tensor indices, Tensor values, int[] size, bool coalesced) -> Tensor",
    .doc = "sparse_coo_tensor of parts that are known to fit.",
    .run = run_sparse_of,
    .gradient = "values: sparse_pick(g, indices)",
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(sparse_values) = {
    .schema = "(Tensor x, Tensor indices) -> Tensor",
    .doc = "The values of a coalesced sparse tensor with these indices.",
    .run = run_sparse_values,
    .gradient = "x: sparse_of(indices, g, x.shape, true)",
    .flags = TD_OP_INTERNAL | TD_OP_ANY_LAYOUT,
};
TD_OPERATOR(sparse_coalesced) = {
    .schema = "(Tensor x) -> Tensor",
    .doc = "coalesce of what is not.",
    .run = run_sparse_coalesced,
    .gradient = "x: g",
    .flags = TD_OP_INTERNAL | TD_OP_ANY_LAYOUT,
};
TD_OPERATOR(sparse_pick) = {
    .schema = "(Tensor x, Tensor indices) -> Tensor",
    .doc = "The elements, or dense parts, of x at the places that columns of indices name.",
    .run = run_sparse_pick,
    .flags = TD_OP_INTERNAL | TD_OP_ANY_LAYOUT,
};
TD_OPERATOR(sparse_with_values) = {
    .schema = "(Tensor x, Tensor values) -> Tensor",
    .doc = "Other values at the places that a sparse tensor names.",
    .run = run_with_values,
    .flags = TD_OP_FUNCTION_ONLY | TD_OP_INTERNAL | TD_OP_ANY_LAYOUT,
};
TD_OPERATOR(gather_slope) = {
    .schema = "(Tensor gy, Tensor index, int[] size, dim dim) -> Tensor",
    .doc = "The gradient of gather as a sparse tensor.",
    .run = run_gather_slope,
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(embedding_slope_sparse) = {
    .schema = "(Tensor gy, index Tensor index, int rows, int width, int padding) -> Tensor",
    .doc = "Gradients of rows as a sparse table, which has none for padding.",
    .formula =
        "all = reshape(index, {index.numel});"
        "flat = if(rows == 0, all, remainder(all, rows));" /* some count from the end */
        "each = reshape(gy, {index.numel, width});"
        "kept = reshape(nonzero(flat ~= padding), {-1});"
        "if(padding < 0, sparse_of(unsqueeze(flat, 0), each, {rows, width}, false),"
        "   sparse_of(unsqueeze(index_select(flat, 0, kept), 0), index_select(each, 0, kept),"
        "             {rows, width}, false))",
    .flags = TD_OP_BY_ELEMENTS | TD_OP_INTERNAL,
};
