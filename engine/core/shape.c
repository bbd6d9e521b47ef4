/* shape.c: arithmetic of shapes and strides; nothing here touches elements. */
#include "engine/core/tensor.h"

#include <stdio.h>
#include <string.h>

int64_t td_numel(int ndim, const int64_t *sizes) {
    int64_t n = 1;
    bool empty = false;
    for (int d = 0; d < ndim; d++) {
        empty |= sizes[d] == 0;
        if (__builtin_mul_overflow(n, sizes[d] ? sizes[d] : 1, &n))
            return -1;
    }
    return empty ? 0 : n;
}

void td_contiguous_strides(int ndim, const int64_t *sizes, int64_t *strides) {
    int64_t stride = 1;
    for (int d = ndim - 1; d >= 0; d--) {
        strides[d] = stride;
        stride *= sizes[d] > 1 ? sizes[d] : 1;
    }
}

bool td_is_contiguous(int ndim, const int64_t *sizes, const int64_t *strides) {
    int64_t stride = 1;
    bool row_major = true;
    for (int d = ndim - 1; d >= 0; d--) {
        if (sizes[d] == 0)
            return true;
        if (sizes[d] != 1 && strides[d] != stride)
            row_major = false;
        stride *= sizes[d];
    }
    return row_major;
}

/* Dims with more than one element, ordered by stride (small first). Returns how many. */
static int sorted_dims(const td_tensor *x, int *order) {
    int n = 0;
    for (int d = x->ndim - 1; d >= 0; d--) {
        if (x->sizes[d] == 1)
            continue;
        int at = n++;
        for (; at > 0 && x->strides[order[at - 1]] > x->strides[d]; at--)
            order[at] = order[at - 1];
        order[at] = d;
    }
    return n;
}

bool td_tensor_is_dense(const td_tensor *x) {
    if (x->contiguous || x->numel == 0)
        return true;
    int order[TD_MAX_DIMS], n = sorted_dims(x, order);
    int64_t expected = 1;
    for (int k = 0; k < n; k++) {
        if (x->strides[order[k]] != expected)
            return false;
        expected *= x->sizes[order[k]];
    }
    return true;
}

bool td_tensor_overlaps(const td_tensor *x) {
    if (x->contiguous || x->numel == 0)
        return false;
    int order[TD_MAX_DIMS], n = sorted_dims(x, order);
    int64_t reach = 0; /* farthest element that the smaller strides reach */
    for (int k = 0; k < n; k++) {
        if (x->strides[order[k]] <= reach)
            return true;
        reach += x->strides[order[k]] * (x->sizes[order[k]] - 1);
    }
    return false;
}

td_status td_broadcast(int a_ndim, const int64_t *a, int b_ndim, const int64_t *b, int *ndim,
                       int64_t *sizes) {
    int n = a_ndim > b_ndim ? a_ndim : b_ndim;
    for (int k = 0; k < n; k++) {
        int da = a_ndim - 1 - k, db = b_ndim - 1 - k;
        int64_t sa = da >= 0 ? a[da] : 1, sb = db >= 0 ? b[db] : 1;
        if (sa != sb && sa != 1 && sb != 1) {
            char ta[TD_SHAPE_TEXT], tb[TD_SHAPE_TEXT];
            return td_fail(TD_ESHAPE, "shapes %s and %s don't broadcast: %lld ≠ %lld",
                           td_shape_text(a_ndim, a, ta, sizeof ta),
                           td_shape_text(b_ndim, b, tb, sizeof tb), (long long)sa, (long long)sb);
        }
        sizes[n - 1 - k] = sa == 1 ? sb : sa;
    }
    *ndim = n;
    return TD_OK;
}

const char *td_shape_text(int ndim, const int64_t *sizes, char *buffer, size_t size) {
    size_t at = (size_t)snprintf(buffer, size, "(");
    for (int d = 0; d < ndim; d++) {
        if (at + 28 > size) {
            snprintf(buffer + at, size - at, "...)");
            return buffer;
        }
        at += (size_t)snprintf(buffer + at, size - at, d ? ", %lld" : "%lld", (long long)sizes[d]);
    }
    snprintf(buffer + at, size - at, ")");
    return buffer;
}

td_status td_wrap_dim(int64_t dim, int ndim, int *out) {
    int64_t n = ndim ? ndim : 1;
    if (dim < -n || dim >= n)
        return td_fail(TD_EINDEX, "dim %lld is out of range for a tensor of %d dims",
                       (long long)(dim < 0 ? dim : dim + 1), ndim);
    *out = (int)(dim < 0 ? dim + n : dim);
    return TD_OK;
}
