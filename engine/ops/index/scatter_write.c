/* scatter_write.c: scatter_reduce, index_reduce, index_put, put, masked_scatter, take_along_dim and
 * argwhere: composites of scatter, gather and indexing with tensors (gather.c, index.c). */
#include "engine/ops/element_checks.h"
#include "engine/ops/index/index.h"
#include "engine/ops/make/copy.h"
#include "engine/ops/rule_helpers.h"

#include <math.h>
#include <string.h>

#define TD_FAMILY "scatter_write"

/* ---- scatter_reduce ---- */

/* The part of src that goes along with index. */
static td_status cut_like(td_tensor *src, const td_tensor *index, td_tensor **out) {
    td_tensor *y = td_retain(src);
    char a[TD_SHAPE_TEXT], b[TD_SHAPE_TEXT];
    td_status status = TD_OK;
    bool fits = src->ndim == index->ndim || index->numel == 0;
    for (int d = 0; fits && index->numel && d < index->ndim; d++)
        fits = index->sizes[d] <= src->sizes[d];
    if (!fits) {
        status = td_fail(TD_ESHAPE, "index of shape %s doesn't fit src of shape %s",
                         td_tensor_shape_text(index, a), td_tensor_shape_text(src, b));
        goto done;
    }
    for (int d = 0; index->numel && d < index->ndim; d++)
        if (index->sizes[d] != src->sizes[d])
            TD_STEP(&y, slice, TD_T(y), TD_I(d), TD_I(0), TD_I(index->sizes[d]));
    *out = td_retain(y);
done:
    td_release(y);
    return status;
}

/* What does not change what it is reduced with: of integers the least or largest of the dtype. */
static td_value neutral(const char *reduce, td_dtype dtype) {
    bool most = !strcmp(reduce, "amax");
    if (!strcmp(reduce, "prod"))
        return TD_I(1);
    if (!most && strcmp(reduce, "amin"))
        return TD_I(0);
    if (td_dtype_is_float(dtype))
        return TD_F(most ? -(double)INFINITY : (double)INFINITY);
    if (dtype == TD_BOOL || dtype == TD_U8)
        return TD_I(most ? 0 : dtype == TD_BOOL ? 1 : 255);
    int bits = 8 * (int)td_dtype_size(dtype);
    int64_t least = INT64_MIN >> (64 - bits);
    return TD_I(most ? least : -1 - least);
}

/* The sums by how many elements made them; places that nothing came to stay as they are. */
static td_status divide(const td_call *call, td_tensor *src, td_tensor **y) {
    const td_value *a = call->args;
    td_tensor *count = NULL, *one = NULL, *none = NULL;
    td_status status = TD_OK;
    TD_TRY(a[5].b ? TD_APPLY(&count, ones_like, TD_T(*y)) : TD_APPLY(&count, zeros_like, TD_T(*y)));
    TD_TRY(TD_APPLY(&one, ones_like, TD_T(src)));
    TD_STEP(&count, scatter_add, TD_T(count), a[1], a[2], TD_T(one));
    TD_TRY(TD_APPLY(&none, eq, TD_T(count), TD_I(0)));
    TD_STEP(&count, masked_fill, TD_T(count), TD_T(none), TD_I(1));
    if (td_dtype_is_float((td_dtype)(*y)->dtype))
        TD_STEP(y, div, TD_T(*y), TD_T(count));
    else
        TD_STEP(y, floor_divide, TD_T(*y), TD_T(count));
done:
    td_release(count);
    td_release(one);
    td_release(none);
    return status;
}

static td_status check_reduce(const td_call *call) {
    const td_tensor *x = call->args[0].tensor, *src = call->args[3].tensor;
    const char *reduce = call->args[4].string;
    if (src->dtype != x->dtype)
        return td_fail(TD_EDTYPE, "src must have x's dtype %s, got %s",
                       td_dtype_name((td_dtype)x->dtype), td_dtype_name((td_dtype)src->dtype));
    if (x->dtype == TD_BOOL && !strcmp(reduce, "mean"))
        return td_fail(TD_EDTYPE, "bool has no mean");
    return TD_OK;
}

static td_status run_scatter_reduce(td_call *call) {
    const td_value *a = call->args;
    const char *reduce = a[4].string;
    td_tensor *y = td_retain(a[0].tensor), *src = NULL;
    bool adds = !strcmp(reduce, "sum") || !strcmp(reduce, "mean");
    td_status status = TD_OK;
    TD_TRY(check_reduce(call));
    TD_TRY(cut_like(a[3].tensor, a[2].tensor, &src));
    if (call->inplace) /* what gradients read must not be overwritten */
        TD_STEP(&y, clone, TD_T(y));
    if (!strcmp(reduce, "mean") && td_dtype_wide((td_dtype)y->dtype) != (td_dtype)y->dtype) {
        /* the sums, and how many there are, don't fit into 16 bits */
        TD_STEP(&y, to, TD_T(y), TD_DTYPE(TD_F32));
        TD_STEP(&src, to, TD_T(src), TD_DTYPE(TD_F32));
    }
    if (!a[5].b)
        TD_STEP(&y, scatter, TD_T(y), a[1], a[2], neutral(reduce, (td_dtype)y->dtype));
    if (adds)
        TD_STEP(&y, scatter_add, TD_T(y), a[1], a[2], TD_T(src));
    else
        TD_STEP(&y, scatter_combine, TD_T(y), a[1], a[2], TD_T(src), a[4], TD_B(!a[5].b));
    if (!strcmp(reduce, "mean"))
        TD_TRY(divide(call, src, &y));
    if (y->dtype != a[0].tensor->dtype)
        TD_STEP(&y, to, TD_T(y), TD_DTYPE((td_dtype)a[0].tensor->dtype));
    call->out[0] = td_retain(y);
done:
    td_release(y);
    td_release(src);
    return status;
}

/* index_reduce is scatter_reduce by an index that is the same in all lines. */
static td_status run_index_reduce(td_call *call) {
    const td_value *a = call->args;
    td_tensor *x = a[0].tensor, *index = a[2].tensor, *source = a[3].tensor;
    td_tensor *wide = NULL, *kept = NULL;
    int64_t line[TD_MAX_DIMS];
    char have[TD_SHAPE_TEXT], want[TD_SHAPE_TEXT];
    int dim;
    td_status status = td_wrap_dim(a[1].i, x->ndim, &dim);
    if (status == TD_OK && index->ndim > 1)
        status = td_check_ndim(index, "index", 1);
    if (status)
        return status;
    bool fits = source->ndim == x->ndim;
    for (int d = 0; fits && d < x->ndim; d++) {
        fits = source->sizes[d] == (d == dim ? index->numel : x->sizes[d]);
        line[d] = d == dim ? index->numel : 1;
    }
    if (!fits)
        return td_fail(TD_ESHAPE, "source of shape %s doesn't fit x of shape %s with %lld indices",
                       td_tensor_shape_text(source, have), td_tensor_shape_text(x, want),
                       (long long)index->numel);
    TD_TRY(TD_APPLY(&wide, reshape, TD_T(index), TD_INTS(x->ndim, line)));
    TD_STEP(&wide, expand, TD_T(wide), TD_INTS(x->ndim, source->sizes));
    if (call->inplace) /* what gradients read must not be overwritten */
        TD_TRY(TD_APPLY(&kept, clone, TD_T(x)));
    TD_TRY(TD_APPLY(&call->out[0], scatter_reduce, TD_T(kept ? kept : x), a[1],
                    TD_INDEX(wide, a[2]), a[3], a[4], a[5]));
done:
    td_release(wide);
    td_release(kept);
    return status;
}

/* ---- index_put, put, masked_scatter ---- */

static td_status check_values(const td_tensor *x, const td_tensor *values, const char *name) {
    return values->dtype == x->dtype
               ? TD_OK
               : td_fail(TD_EDTYPE, "%s must have x's dtype %s, got %s", name,
                         td_dtype_name((td_dtype)x->dtype), td_dtype_name((td_dtype)values->dtype));
}

/* In place the target itself, else a copy. */
static td_status target(td_call *call, td_tensor **x) {
    *x = call->inplace ? td_retain(call->args[0].tensor) : NULL;
    return *x ? TD_OK : TD_APPLY(x, clone, call->args[0]);
}

static td_status run_index_put(td_call *call) {
    const td_value *a = call->args;
    td_tensor *x = NULL;
    td_status status = check_values(a[0].tensor, a[2].tensor, "values");
    if (status == TD_OK)
        status = target(call, &x);
    if (status == TD_OK)
        status = td_index_put(x, a[1], a[2].tensor, a[3].b);
    if (status)
        td_release(x);
    else
        call->out[0] = x;
    return status;
}

static td_status run_put(td_call *call) {
    const td_value *a = call->args;
    td_tensor *x = a[0].tensor, *source = a[2].tensor, *row = NULL, *values = NULL, *places = NULL;
    const int64_t flat = -1;
    bool itself = call->inplace && x->contiguous; /* seen as a row, which is written */
    td_status status = TD_OK;
    TD_TRY(check_values(x, source, "source"));
    TD_TRY(td_check_index(a[1].tensor));
    if (a[1].tensor->numel != source->numel) {
        status = td_fail(TD_ESHAPE, "source has %lld elements, index %lld",
                         (long long)source->numel, (long long)a[1].tensor->numel);
        goto done;
    }
    TD_TRY(TD_APPLY(&row, reshape, TD_T(x), TD_INTS(1, &flat)));
    if (!itself)
        TD_STEP(&row, clone, TD_T(row), TD_STRING("contiguous"));
    TD_TRY(TD_APPLY(&values, reshape, TD_T(source), TD_INTS(1, &flat)));
    TD_TRY(TD_APPLY(&places, reshape, TD_T(a[1].tensor), TD_INTS(1, &flat)));
    td_value list = TD_TENSORS(1, &places);
    list.from_one = a[1].from_one;
    TD_TRY(td_index_put(row, list, values, a[3].b));
    if (itself)
        call->out[0] = td_retain(x);
    else
        TD_TRY(TD_APPLY(&call->out[0], view, TD_T(row), TD_INTS(x->ndim, x->sizes)));
done:
    td_release(row);
    td_release(values);
    td_release(places);
    return status;
}

static td_status run_masked_scatter(td_call *call) {
    const td_value *a = call->args;
    td_tensor *x = a[0].tensor, *mask = a[1].tensor, *wide = NULL, *y = NULL;
    td_tensor *count = NULL, *values = NULL;
    int64_t sizes[TD_MAX_DIMS], n, flat = -1;
    int ndim;
    td_status status = TD_OK;
    if (mask->dtype != TD_BOOL)
        return td_fail(TD_EDTYPE, "the mask must be bool, got %s",
                       td_dtype_name((td_dtype)mask->dtype));
    TD_TRY(check_values(x, a[2].tensor, "source"));
    TD_TRY(td_broadcast(x->ndim, x->sizes, mask->ndim, mask->sizes, &ndim, sizes));
    TD_TRY(TD_APPLY(&wide, expand, TD_T(mask), TD_INTS(ndim, sizes)));
    TD_TRY(TD_APPLY(&y, expand, TD_T(x), TD_INTS(ndim, sizes)));
    TD_TRY(TD_APPLY(&count, count_nonzero, TD_T(wide)));
    if (!td_may_look(x)) {
        call->out[0] = td_retain(y);
        TD_STEP(&call->out[0], clone, TD_T(y));
        goto done;
    }
    TD_TRY(td_tensor_item_int(count, &n));
    if (n > a[2].tensor->numel) {
        status = td_fail(TD_ESHAPE, "the mask names %lld places, source has %lld elements",
                         (long long)n, (long long)a[2].tensor->numel);
        goto done;
    }
    TD_TRY(TD_APPLY(&values, reshape, a[2], TD_INTS(1, &flat)));
    TD_STEP(&values, slice, TD_T(values), TD_I(0), TD_I(0), TD_I(n));
    if (ndim == 0) { /* a mask of no dims has no places to name: give it one */
        TD_STEP(&wide, unsqueeze, TD_T(wide), TD_I(0));
        TD_STEP(&y, unsqueeze, TD_T(y), TD_I(0));
    }
    TD_STEP(&y, index_put, TD_T(y), TD_TENSORS(1, &wide), TD_T(values));
    TD_TRY(TD_APPLY(&call->out[0], view, TD_T(y), TD_INTS(ndim, sizes)));
done:
    td_release(wide);
    td_release(y);
    td_release(count);
    td_release(values);
    return status;
}

/* ---- take_along_dim ---- */

/* x expanded to a shape, but for one dim, which stays. */
static td_status expand_beside(td_tensor *x, int ndim, const int64_t *sizes, int dim,
                               td_tensor **out) {
    int64_t wide[TD_MAX_DIMS];
    memcpy(wide, sizes, sizeof(int64_t) * (size_t)ndim);
    wide[dim] = x->sizes[dim];
    return TD_APPLY(out, expand, TD_T(x), TD_INTS(ndim, wide));
}

static td_status run_take_along_dim(td_call *call) {
    const td_value *a = call->args;
    td_tensor *x = a[0].tensor, *index = a[1].tensor, *wide = NULL, *places = NULL;
    int64_t sizes[TD_MAX_DIMS], other[TD_MAX_DIMS];
    int dim, ndim, n = x->ndim;
    td_status status = td_check_index(index);
    if (status)
        return status;
    if (td_is_nil(a[2])) {
        TD_TRY(TD_APPLY(&wide, reshape, TD_T(x), TD_INTS(1, (int64_t[]){-1})));
        TD_TRY(TD_APPLY(&places, reshape, TD_T(index), TD_INTS(1, (int64_t[]){-1})));
        dim = 0;
    } else {
        if (index->ndim != n || n == 0)
            return td_fail(TD_ESHAPE, "x has %d dims and indices %d: as many, and at least 1", n,
                           index->ndim);
        TD_TRY(td_wrap_dim(a[2].i, n, &dim));
        memcpy(sizes, x->sizes, sizeof(int64_t) * (size_t)n);
        memcpy(other, index->sizes, sizeof(int64_t) * (size_t)n);
        sizes[dim] = other[dim] = 1;
        TD_TRY(td_broadcast(n, sizes, n, other, &ndim, sizes));
        TD_TRY(expand_beside(x, n, sizes, dim, &wide));
        TD_TRY(expand_beside(index, n, sizes, dim, &places));
    }
    TD_TRY(TD_APPLY(&call->out[0], gather, TD_T(wide), TD_I(dim), TD_INDEX(places, a[1])));
done:
    td_release(wide);
    td_release(places);
    return status;
}

/* ---- the table ---- */

#define REDUCE "\"sum\"|\"prod\"|\"mean\"|\"amax\"|\"amin\" reduce"

TD_OPERATOR(scatter_reduce) = {
    .schema = "(Tensor x, dim dim, index Tensor index, Tensor src, " REDUCE ", *, "
              "bool include_self=true) -> Tensor",
    .doc = "x with what src brings to the places that index names along a dim reduced there.",
    .shapes = "x (...), index (places...), src (values...) -> (...); places: as many dims as x "
              "has, but at dim none larger; values: no dim smaller than of places",
    .takes = "any, one dtype; index integers",
    .run = run_scatter_reduce,
    .flags = TD_OP_INPLACE | TD_OP_OUT | TD_OP_OUT_APART | TD_OP_OUT_EXACT | TD_OP_ANY_BASE,
};
TD_OPERATOR(index_reduce) = {
    .schema = "(Tensor x, dim dim, index Tensor index, Tensor source, "
              "\"prod\"|\"mean\"|\"amax\"|\"amin\" reduce, *, bool include_self=true) -> Tensor",
    .doc = "x with the rows of source reduced at the places along a dim that index names.",
    .shapes = "x (...), index (n), source (...) with n at dim -> (...)",
    .takes = "any, one dtype; index integers",
    .run = run_index_reduce,
    .flags = TD_OP_INPLACE | TD_OP_OUT | TD_OP_OUT_APART | TD_OP_OUT_EXACT | TD_OP_ANY_BASE,
};
TD_OPERATOR(index_put) = {
    .schema = "(Tensor x, index Tensor?[] indices, Tensor values, bool accumulate=false) -> Tensor",
    .doc = "Write values to the places that index tensors and masks name, or add them there.",
    .shapes =
        "x (...), indices {(places...)}, values (elements...) -> (...); places: any, which are "
        "broadcast, or of a mask those that it covers; elements: broadcast to what x[indices] is",
    .takes = "any, one dtype; indices integers, or masks",
    .notes = "With accumulate all elements for one place are added, otherwise the last stays.",
    .run = run_index_put,
    .autocast = {[TD_CUDA] = TD_AUTOCAST_PROMOTE},
    .flags = TD_OP_INPLACE | TD_OP_ANY_BASE,
};
TD_OPERATOR(put) = {
    .schema = "(Tensor x, index Tensor index, Tensor source, bool accumulate=false) -> Tensor",
    .doc = "Write source to places in row-major order, or add it there.",
    .shapes =
        "x (...), index (places...), source (elements...) -> (...); elements: as many as places",
    .takes = "any, one dtype; index integers",
    .run = run_put,
    .flags = TD_OP_INPLACE | TD_OP_ANY_BASE,
};
TD_OPERATOR(masked_scatter) = {
    .schema = "(Tensor x, Tensor mask, Tensor source) -> Tensor",
    .doc = "x with the elements of source, in their order, where the mask is true.",
    .shapes =
        "x (*), mask (*), source (elements...) -> (*); elements: at least as many as mask is true",
    .notes = "The mask must be bool.",
    .run = run_masked_scatter,
    .flags = TD_OP_INPLACE,
};
TD_OPERATOR(take_along_dim) = {
    .schema = "(Tensor x, index Tensor indices, dim? dim=nil) -> Tensor",
    .doc = "gather with broadcasting; without a dim of the flattened tensors.",
    .shapes = "x (...), indices (places...) -> (numel(indices)) if dim == nil | -> (sizes...); "
              "sizes: those of indices, broadcast with x's but at dim",
    .run = run_take_along_dim,
    .flags = TD_OP_OUT | TD_OP_OUT_APART | TD_OP_OUT_EXACT | TD_OP_ANY_BASE,
};
TD_OPERATOR(argwhere) = {
    .schema = "(Tensor x) -> index Tensor",
    .doc = "Places of the elements different from zero, one row of indices each.",
    .shapes = "x (...) -> (n, #x); n: how many elements are not 0",
    .formula = "nonzero(x)",
    .flags = TD_OP_BY_ELEMENTS | TD_OP_NONDIFF,
};
