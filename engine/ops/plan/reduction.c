/* reduction.c: dims, shapes and walks of reductions. */
#include "engine/ops/plan/reduction.h"

#include <stdlib.h>

td_status td_reduce_dims(td_value dims, int ndim, uint32_t *mask) {
    uint32_t all = (1u << ndim) - 1;
    *mask = all;
    if (td_is_nil(dims) || (dims.kind == TD_KIND_INTS && dims.n == 0))
        return TD_OK;
    int n = dims.kind == TD_KIND_INT ? 1 : dims.n;
    const int64_t *list = dims.kind == TD_KIND_INT ? &dims.i : dims.ints;
    uint32_t named = 0;
    for (int k = 0; k < n; k++) {
        int d;
        td_status status = td_wrap_dim(list[k], ndim, &d);
        if (status != TD_OK)
            return status;
        if (named >> d & 1)
            return td_fail(TD_EVALUE, "dim %d is named twice", d + 1);
        named |= 1u << d;
    }
    *mask = named & all;
    return TD_OK;
}

td_dtype td_reduce_sum_dtype(td_dtype x, td_value option) {
    return option.kind == TD_KIND_DTYPE ? option.dtype : td_dtype_is_float(x) ? x : TD_I64;
}

int td_reduce_shape(const td_tensor *x, uint32_t mask, bool keepdim, int64_t *sizes) {
    int n = 0;
    for (int d = 0; d < x->ndim; d++)
        if (!(mask >> d & 1))
            sizes[n++] = x->sizes[d];
        else if (keepdim)
            sizes[n++] = 1;
    return n;
}

int64_t td_reduce_count(const td_tensor *x, uint32_t mask) {
    int64_t n = 1;
    for (int d = 0; d < x->ndim; d++)
        n *= mask >> d & 1 ? x->sizes[d] : 1;
    return n;
}

td_status td_reduce_dims_to(const td_tensor *x, int ndim, const int64_t *sizes, uint32_t *mask) {
    int lead = x->ndim - ndim;
    bool fits = lead >= 0;
    *mask = 0;
    for (int d = 0; d < x->ndim && fits; d++) {
        int64_t size = d < lead ? 1 : sizes[d - lead];
        fits = size == 1 || size == x->sizes[d];
        if (d < lead || (size == 1 && x->sizes[d] != 1))
            *mask |= 1u << d;
    }
    if (fits)
        return TD_OK;
    char wanted[TD_SHAPE_TEXT], given[TD_SHAPE_TEXT];
    return td_fail(TD_ESHAPE, "shape %s does not broadcast to %s",
                   td_shape_text(ndim, sizes, wanted, sizeof wanted),
                   td_tensor_shape_text(x, given));
}

/* Dim of `out` that dim d of x becomes, or -1. */
static int out_dim(const td_tensor *x, uint32_t mask, const td_tensor *out, int d) {
    int reduced = __builtin_popcount(mask);
    if (out->ndim == x->ndim - reduced)
        return mask >> d & 1 ? -1 : d - __builtin_popcount(mask & ((1u << d) - 1));
    return d - (x->ndim - out->ndim); /* the dims that are gone are the first ones */
}

typedef struct dim {
    int64_t size, stride, out_stride;
} dim;

/* Put a dim into a list that is sorted by stride, large first; 0 (a repeated element) counts as
 * the largest. */
static void insert_dim(dim *list, int n, dim added) {
    int64_t key = llabs(added.stride);
    int at = n;
    for (; at > 0 && key != 0; at--) {
        int64_t before = llabs(list[at - 1].stride);
        if (before == 0 || before >= key)
            break;
        list[at] = list[at - 1];
    }
    if (key == 0) { /* to the front */
        for (at = n; at > 0; at--)
            list[at] = list[at - 1];
    }
    list[at] = added;
}

static int merge_dims(dim *list, int n) {
    int merged = 0;
    for (int k = 1; k < n; k++) {
        dim *outer = &list[merged], inner = list[k];
        if (outer->stride == inner.stride * inner.size &&
            outer->out_stride == inner.out_stride * inner.size)
            *outer = (dim){outer->size * inner.size, inner.stride, inner.out_stride};
        else
            list[++merged] = inner;
    }
    if (n == 0)
        list[0] = (dim){1, 0, 0};
    return n ? merged + 1 : 1;
}

void td_reduction_plan(const td_tensor *x, uint32_t mask, const td_tensor *out,
                       td_reduction *plan) {
    dim kept[TD_MAX_DIMS], reduced[TD_MAX_DIMS];
    int nkept = 0, nreduced = 0;
    plan->outputs = plan->count = 1;
    for (int d = 0; d < x->ndim; d++) {
        dim added = {x->sizes[d], x->strides[d], 0};
        if (mask >> d & 1) {
            plan->count *= added.size;
            if (added.size != 1)
                insert_dim(reduced, nreduced++, added);
        } else {
            plan->outputs *= added.size;
            added.out_stride = out->strides[out_dim(x, mask, out, d)];
            if (added.size != 1)
                insert_dim(kept, nkept++, added);
        }
    }
    plan->nkept = merge_dims(kept, nkept);
    plan->nreduced = merge_dims(reduced, nreduced);
    for (int k = 0; k < plan->nkept; k++) {
        plan->kept_sizes[k] = kept[k].size;
        plan->kept_strides[k] = kept[k].stride;
        plan->out_strides[k] = kept[k].out_stride;
    }
    for (int k = 0; k < plan->nreduced; k++) {
        plan->reduced_sizes[k] = reduced[k].size;
        plan->reduced_strides[k] = reduced[k].stride;
    }
}

td_segment td_reduction_kept(const td_reduction *plan, int64_t at, int64_t end) {
    td_segment s = {.len = end - at};
    int last = plan->nkept - 1;
    for (int k = last; k >= 0; k--) {
        int64_t size = plan->kept_sizes[k], i = k ? at % size : at;
        if (k == last && s.len > size - i)
            s.len = size - i;
        s.offset += i * plan->kept_strides[k];
        s.out_offset += i * plan->out_strides[k];
        at = k ? at / size : 0;
    }
    return s;
}

td_segment td_reduction_reduced(const td_reduction *plan, int64_t at, int64_t end) {
    td_segment s = {.len = end - at};
    int last = plan->nreduced - 1;
    for (int k = last; k >= 0; k--) {
        int64_t size = plan->reduced_sizes[k], i = k ? at % size : at;
        if (k == last && s.len > size - i)
            s.len = size - i;
        s.offset += i * plan->reduced_strides[k];
        at = k ? at / size : 0;
    }
    return s;
}
