/* format.c: arithmetic of memory formats; nothing here touches elements. */
#include "engine/core/format.h"

#include <string.h>

/* The dims of a format, innermost first. */
static const int orders[][5] = {
    [TD_CHANNELS_LAST] = {1, 3, 2, 0},
    [TD_CHANNELS_LAST_3D] = {1, 4, 3, 2, 0},
    [TD_CHANNELS_LAST_1D] = {1, 2, 0},
};

int td_format_ndim(td_format format) {
    static const int dims[] = {[TD_ROW_MAJOR] = 0,
                               [TD_CHANNELS_LAST] = 4,
                               [TD_CHANNELS_LAST_3D] = 5,
                               [TD_CHANNELS_LAST_1D] = 3};
    return dims[format];
}

void td_format_strides(td_format format, int ndim, const int64_t *sizes, int64_t *strides) {
    int64_t stride = 1;
    if (format == TD_ROW_MAJOR) {
        td_contiguous_strides(ndim, sizes, strides);
        return;
    }
    for (int k = 0; k < ndim; k++) {
        int d = orders[format][k];
        strides[d] = stride;
        stride *= sizes[d] > 1 ? sizes[d] : 1;
    }
}

bool td_tensor_is_in_format(const td_tensor *x, td_format format) {
    int64_t stride = 1;
    if (format == TD_ROW_MAJOR)
        return x->contiguous;
    if (x->ndim != td_format_ndim(format))
        return false;
    for (int k = 0; k < x->ndim && x->numel; k++) {
        int d = orders[format][k];
        if (x->sizes[d] != 1 && x->strides[d] != stride)
            return false;
        stride *= x->sizes[d];
    }
    return true;
}

/* Strides that grow from dim to dim, of shapes where this says more than row-major would. */
bool td_format_is_hinted(td_format format, const int64_t *sizes, const int64_t *strides) {
    int64_t least = 0;
    if (strides[1] == 0)
        return false;
    for (int k = 0; k < td_format_ndim(format); k++) {
        int d = orders[format][k];
        if (sizes[d] == 0 || strides[d] < least)
            return false;
        if (d == 0 && least == strides[1]) /* one pixel, or (N, 1, 1, W) */
            return false;
        least = strides[d] * (sizes[d] > 1 ? sizes[d] : 1);
    }
    return true;
}

td_format td_format_suggested(int ndim, const int64_t *sizes, const int64_t *strides) {
    if (ndim == 4 && td_format_is_hinted(TD_CHANNELS_LAST, sizes, strides))
        return TD_CHANNELS_LAST;
    if (ndim == 5 && td_format_is_hinted(TD_CHANNELS_LAST_3D, sizes, strides))
        return TD_CHANNELS_LAST_3D;
    return TD_ROW_MAJOR;
}

/* Does dim a lie outside of dim b? 0 where their strides don't say. */
static int compare_dims(const td_tensor *x, int a, int b) {
    int64_t left = x->strides[a], right = x->strides[b];
    if (left == 0 || right == 0)
        return 0;
    if (left != right)
        return left < right ? -1 : 1;
    return x->sizes[a] > x->sizes[b];
}

/* Dims from the innermost to the outermost; those that don't say keep their place. */
static void sort_dims(const td_tensor *x, int *order) {
    for (int k = 0; k < x->ndim; k++)
        order[k] = x->ndim - 1 - k;
    for (int k = 1; k < x->ndim; k++) {
        int at = k;
        for (int before = k - 1; before >= 0; before--) {
            int sign = compare_dims(x, order[before], order[at]);
            if (sign < 0)
                break;
            if (sign == 0)
                continue;
            int swap = order[before];
            order[before] = order[at];
            order[at] = swap;
            at = before;
        }
    }
}

void td_tensor_dense_strides(const td_tensor *x, int64_t *strides) {
    int order[TD_MAX_DIMS];
    int64_t stride = 1;
    if (td_tensor_is_dense(x)) {
        memcpy(strides, x->strides, sizeof(int64_t) * x->ndim);
        return;
    }
    sort_dims(x, order);
    for (int k = 0; k < x->ndim; k++) {
        strides[order[k]] = stride;
        stride *= x->sizes[order[k]] > 1 ? x->sizes[order[k]] : 1;
    }
}
