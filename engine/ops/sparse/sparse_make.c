/* sparse_make.c: sparse tensors of what a caller gives: places and values, which are checked, or a
 * dense tensor. */
#include "engine/ops/make/copy.h"
#include "engine/ops/rule_helpers.h"
#include "engine/ops/sparse/sparse.h"

#include <string.h>

#define TD_FAMILY "sparse"

/* ---- of parts ---- */

/* What the caller gives, checked and brought into form. */
typedef struct draft {
    td_parts parts;
    int ndim, nsparse;
    int64_t sizes[TD_MAX_DIMS];
} draft;

static td_status check_parts(const td_parts *p) {
    const td_tensor *indices = p->indices, *values = p->values;
    char shape[TD_SHAPE_TEXT];
    td_status status = td_check_index(indices);
    if (status)
        return status;
    if (indices->layout != TD_STRIDED || values->layout != TD_STRIDED)
        return td_fail(TD_ETYPE, "indices and values are strided tensors, got a sparse one");
    if (indices->ndim != 2)
        return td_fail(TD_ESHAPE,
                       "indices has a row for each sparse dim and a column for each "
                       "value, got shape %s",
                       td_tensor_shape_text(indices, shape));
    if (indices->sizes[1] != values->sizes[0])
        return td_fail(TD_ESHAPE, "indices names %lld places, but there are %lld values",
                       (long long)indices->sizes[1], (long long)values->sizes[0]);
    if (indices->sizes[0] + values->ndim - 1 > TD_MAX_DIMS)
        return td_fail(TD_ESHAPE, "a tensor has at most %d dims, got %lld sparse and %d dense",
                       TD_MAX_DIMS, (long long)indices->sizes[0], values->ndim - 1);
    return TD_OK;
}

/* The size that is given has as many dims as the parts, and the values' in the dense ones. */
static td_status read_size(draft *d, td_value size) {
    const td_tensor *values = d->parts.values;
    char want[TD_SHAPE_TEXT], have[TD_SHAPE_TEXT];
    if (size.n != d->ndim)
        return td_fail(TD_ESHAPE, "size has %d dims, but the parts have %d sparse and %d dense",
                       size.n, d->nsparse, d->ndim - d->nsparse);
    memcpy(d->sizes, size.ints, sizeof(int64_t) * (size_t)d->ndim);
    for (int k = 0; k < d->ndim; k++)
        if (d->sizes[k] < 0)
            return td_fail(TD_ESHAPE, "size %lld of dimension %d is negative",
                           (long long)d->sizes[k], k + 1);
    if (memcmp(d->sizes + d->nsparse, values->sizes + 1,
               sizeof(int64_t) * (size_t)(d->ndim - d->nsparse)))
        return td_fail(TD_ESHAPE, "values of shape %s don't fit size %s of %d sparse dims",
                       td_tensor_shape_text(values, have),
                       td_shape_text(d->ndim, d->sizes, want, sizeof want), d->nsparse);
    return TD_OK;
}

/* The smallest and the largest index of each sparse dim, on the host: (2, dims). */
static td_status find_bounds(td_tensor *indices, td_tensor **out) {
    const int64_t along = 1;
    td_tensor *low = NULL, *high = NULL;
    td_status status = TD_OK;
    TD_TRY(TD_APPLY(&low, amin, TD_T(indices), TD_INTS(1, &along)));
    TD_TRY(TD_APPLY(&high, amax, TD_T(indices), TD_INTS(1, &along)));
    TD_TRY(TD_APPLY(out, stack, TD_TENSORS(2, ((td_tensor *[]){low, high})), TD_I(0)));
    TD_STEP(out, to, TD_T(*out), TD_DTYPE(TD_I64), TD_DEVICE(TD_DEVICE_CPU));
done:
    td_release(low);
    td_release(high);
    if (status) {
        td_release(*out);
        *out = NULL;
    }
    return status;
}

/* Indices lie within the size; without one that is found from them. */
static td_status check_bounds(draft *d, bool sized) {
    td_tensor *bounds = NULL;
    td_status status = TD_OK;
    if (!sized)
        memset(d->sizes, 0, sizeof(int64_t) * (size_t)d->nsparse);
    if (d->nsparse == 0 || d->parts.indices->sizes[1] == 0)
        return TD_OK;
    TD_TRY(find_bounds(d->parts.indices, &bounds));
    const int64_t *low = bounds->data, *high = low + d->nsparse;
    for (int k = 0; k < d->nsparse && status == TD_OK; k++) {
        if (low[k] < 0)
            status = td_fail(TD_EINDEX, "indices has %lld in row %d: places count from 1",
                             (long long)low[k], k + 1);
        else if (!sized && high[k] < INT64_MAX)
            d->sizes[k] = high[k] + 1;
        else if (high[k] >= d->sizes[k])
            status = td_fail(TD_EINDEX, "indices has %lld in row %d, but size %d is %lld",
                             (long long)(high[k] + (high[k] < INT64_MAX)), k + 1, k + 1,
                             (long long)d->sizes[k]);
    }
done:
    td_release(bounds);
    return status;
}

/* What is said to be coalesced is in order, and names no place twice. */
static td_status check_order(const draft *d) {
    td_tensor *number = NULL, *steps = NULL;
    double good = 1;
    td_status status = TD_OK;
    if (d->parts.indices->sizes[1] < 2)
        return TD_OK;
    TD_TRY(td_number_places(d->parts.indices, d->sizes, &number));
    TD_STEP(&number, diff, TD_T(number));
    TD_TRY(TD_APPLY(&steps, gt, TD_T(number), TD_I(0)));
    TD_STEP(&steps, all, TD_T(steps));
    TD_TRY(td_tensor_item(steps, &good));
    if (good == 0)
        status = td_fail(TD_EVALUE, "is_coalesced is true, but indices are not in order, or name a "
                                    "place twice");
done:
    td_release(number);
    td_release(steps);
    return status;
}

enum { INDICES, VALUES, SIZE, DTYPE, DEVICE, IS_COALESCED };

static td_status read_draft(const td_value *a, draft *d) {
    td_tensor *indices = a[INDICES].tensor;
    const int64_t one = 1;
    td_status status = TD_OK;
    if (a[VALUES].tensor->ndim == 0)
        TD_TRY(TD_APPLY(&d->parts.values, reshape, a[VALUES], TD_INTS(1, &one)));
    else
        d->parts.values = td_retain(a[VALUES].tensor);
    d->parts.indices = td_retain(indices);
    d->parts.coalesced = !td_is_nil(a[IS_COALESCED]) && a[IS_COALESCED].b;
    TD_TRY(check_parts(&d->parts));
    d->nsparse = (int)indices->sizes[0];
    d->ndim = d->nsparse + d->parts.values->ndim - 1;
    memcpy(d->sizes + d->nsparse, d->parts.values->sizes + 1,
           sizeof(int64_t) * (size_t)(d->ndim - d->nsparse));
    if (!td_is_nil(a[SIZE]))
        TD_TRY(read_size(d, a[SIZE]));
    TD_TRY(check_bounds(d, !td_is_nil(a[SIZE])));
    if (td_numel(d->ndim, d->sizes) < 0)
        return td_fail(TD_ESHAPE, "the size has too many elements to be counted");
    if (d->parts.coalesced)
        status = check_order(d);
done:
    return status;
}

static td_status run_sparse_coo_tensor(td_call *call) {
    const td_value *a = call->args;
    draft d = {.parts = {NULL, NULL, false}};
    td_value device = a[DEVICE];
    td_status status = TD_OK;
    if (td_is_nil(device))
        device = TD_DEVICE(td_tensor_device(a[VALUES].tensor));
    TD_TRY(read_draft(a, &d));
    TD_STEP(&d.parts.indices, to, TD_T(d.parts.indices), TD_DTYPE(TD_I64), device);
    TD_STEP(&d.parts.values, to, TD_T(d.parts.values), a[DTYPE], device);
    status = TD_APPLY(&call->out[0], sparse_of, TD_T(d.parts.indices), TD_T(d.parts.values),
                      TD_INTS(d.ndim, d.sizes), TD_B(d.parts.coalesced));
done:
    td_parts_close(&d.parts);
    return status;
}

/* ---- of a dense tensor ---- */

/* Where something other than 0 stands in the first dims, so many of them: indices. */
static td_status find_places(td_tensor *x, int ndim, td_tensor **out) {
    td_tensor *there = NULL;
    int64_t dims[TD_MAX_DIMS];
    int n = 0;
    td_status status = TD_OK;
    for (int d = ndim; d < x->ndim; d++)
        dims[n++] = d;
    TD_TRY(TD_APPLY(&there, ne, TD_T(x), TD_I(0)));
    if (n)
        TD_STEP(&there, any, TD_T(there), TD_INTS(n, dims));
    TD_STEP(&there, nonzero, TD_T(there));
    TD_STEP(&there, transpose, TD_T(there), TD_I(0), TD_I(1));
    status = td_contiguous(there, out);
done:
    td_release(there);
    return status;
}

static td_status check_sparse_dim(const td_tensor *x, td_value option) {
    const td_sparse *s = td_sparse_of(x);
    if (td_is_nil(option))
        return TD_OK;
    if (s && option.i != td_sparse_dims(s))
        return td_fail(TD_EVALUE, "x is sparse in %d dims: make it dense first to have %lld",
                       td_sparse_dims(s), (long long)option.i);
    if (option.i < (x->ndim > 0) || option.i > x->ndim)
        return td_fail(TD_EVALUE,
                       "sparse_dim must be from %d to %d for a tensor of %d dims, got %lld",
                       x->ndim > 0, x->ndim, x->ndim, (long long)option.i);
    return TD_OK;
}

static td_status run_to_sparse(td_call *call) {
    td_tensor *x = call->args[0].tensor;
    td_value option = call->args[1];
    td_parts parts = {NULL, NULL, true};
    td_status status = check_sparse_dim(x, option);
    if (status)
        return status;
    if (td_sparse_of(x)) {
        call->out[0] = td_retain(x);
        return TD_OK;
    }
    TD_TRY(find_places(x, td_is_nil(option) ? x->ndim : (int)option.i, &parts.indices));
    TD_TRY(TD_APPLY(&parts.values, sparse_pick, TD_T(x), TD_T(parts.indices)));
    status = td_parts_join(x, &parts, &call->out[0]);
done:
    td_parts_close(&parts);
    return status;
}

/* ---- the table ---- */

TD_OPERATOR(sparse_coo_tensor) = {
    .schema = "(index Tensor indices, Tensor values, int[]? size=nil, *, dtype? dtype=nil, "
              "device? device=nil, bool? is_coalesced=nil, bool? check_invariants=nil) -> Tensor",
    .doc =
        "A sparse tensor with values at the places that the columns of indices name, 0 elsewhere.",
    .shapes = "indices (d, n), values (n, dense...) -> (size...) if size ~= nil | -> (sizes..., "
              "dense...); sizes: the largest index in each row of indices",
    .run = run_sparse_coo_tensor,
    .flags = TD_OP_BY_ELEMENTS | TD_OP_FUNCTION_ONLY | TD_OP_CREATES,
};
TD_OPERATOR(to_sparse) = {
    .schema = "(Tensor x, int? sparse_dim=nil) -> Tensor",
    .doc = "The elements that are not 0, sparse in all dims or in the first ones.",
    .shapes = "x (...) -> (...)",
    .run = run_to_sparse,
    .flags = TD_OP_BY_ELEMENTS | TD_OP_METHOD_ONLY | TD_OP_ANY_LAYOUT,
};
