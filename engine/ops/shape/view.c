/* view.c: operators that make another view of the same memory. It computes sizes and strides; no
 * element is touched. */
#include "engine/ops/shape/shape.h"

#include <string.h>

/* ---- geometry ---- */

bool td_view_strides(const td_tensor *x, int ndim, const int64_t *sizes, int64_t *strides) {
    if (x->contiguous || x->numel == 0) {
        td_contiguous_strides(ndim, sizes, strides);
        return true;
    }
    /* Walk x's dims from the last in groups that lie without gaps; the new dims must fill each
     * group exactly. */
    int to = ndim - 1, d = x->ndim - 1;
    while (d >= 0) {
        int64_t group = x->sizes[d], stride = x->strides[d], inside = 1;
        while (d > 0 && (x->sizes[d - 1] == 1 || x->strides[d - 1] == stride * group)) {
            d--;
            group *= x->sizes[d];
        }
        while (to >= 0 && (inside < group || sizes[to] == 1)) {
            strides[to] = stride * inside;
            inside *= sizes[to];
            to--;
        }
        if (inside != group)
            return false;
        d--;
    }
    for (; to >= 0; to--) /* only ones are left */
        strides[to] = 1;
    return true;
}

td_status td_infer_size(int64_t numel, int n, const int64_t *sizes, int64_t *out) {
    char text[TD_SHAPE_TEXT];
    int open = -1;
    if (n > TD_MAX_DIMS)
        return td_fail(TD_ESHAPE, "a tensor has at most %d dims, got %d", TD_MAX_DIMS, n);
    for (int d = 0; d < n; d++) {
        if (sizes[d] == -1 && open >= 0)
            return td_fail(TD_ESHAPE, "only one size can be -1, got %s",
                           td_shape_text(n, sizes, text, sizeof text));
        if (sizes[d] < -1)
            return td_fail(TD_ESHAPE, "a size must not be negative (but one may be -1), got %s",
                           td_shape_text(n, sizes, text, sizeof text));
        if (sizes[d] == -1)
            open = d;
        out[d] = sizes[d] == -1 ? 1 : sizes[d];
    }
    int64_t known = td_numel(n, out);
    if (open >= 0 && known == 0)
        return td_fail(TD_ESHAPE, "-1 could be any size in %s, which has no elements",
                       td_shape_text(n, sizes, text, sizeof text));
    if (open >= 0 && known > 0 && numel % known == 0) {
        out[open] = numel / known;
        return TD_OK;
    }
    if (open < 0 && known == numel)
        return TD_OK;
    return td_fail(TD_ESHAPE, "%lld elements don't fit into shape %s", (long long)numel,
                   td_shape_text(n, sizes, text, sizeof text));
}

static td_status same_geometry(td_call *call) {
    td_tensor *x = call->args[0].tensor;
    return td_tensor_view(x, x->ndim, x->sizes, x->strides, 0, &call->out[0]);
}

/* ---- shape ---- */

td_status td_run_view(td_call *call) {
    td_tensor *x = call->args[0].tensor;
    int64_t sizes[TD_MAX_DIMS], strides[TD_MAX_DIMS];
    int n = call->args[1].n;
    td_status status = td_infer_size(x->numel, n, call->args[1].ints, sizes);
    if (status)
        return status;
    if (td_view_strides(x, n, sizes, strides))
        return td_tensor_view(x, n, sizes, strides, 0, &call->out[0]);
    char from[TD_SHAPE_TEXT], to[TD_SHAPE_TEXT];
    return td_fail(
        TD_ESHAPE,
        "a tensor of shape %s with strides like these can't be seen as %s without a copy: "
        "use reshape",
        td_tensor_shape_text(x, from), td_shape_text(n, sizes, to, sizeof to));
}

td_status td_run_squeeze(td_call *call) {
    td_tensor *x = call->args[0].tensor;
    td_value dims = call->args[1];
    int64_t sizes[TD_MAX_DIMS], strides[TD_MAX_DIMS];
    uint32_t drop = 0;
    int n = 0, d;
    for (int k = 0; k < dims.n && !td_is_nil(dims); k++) {
        td_status status = td_wrap_dim(dims.ints[k], x->ndim, &d);
        if (status)
            return status;
        drop |= 1u << d;
    }
    for (d = 0; d < x->ndim; d++) {
        if (x->sizes[d] == 1 && (td_is_nil(dims) || drop >> d & 1))
            continue;
        sizes[n] = x->sizes[d];
        strides[n++] = x->strides[d];
    }
    return td_tensor_view(x, n, sizes, strides, 0, &call->out[0]);
}

td_status td_run_unsqueeze(td_call *call) {
    td_tensor *x = call->args[0].tensor;
    int64_t sizes[TD_MAX_DIMS + 1], strides[TD_MAX_DIMS + 1];
    int dim;
    td_status status = td_wrap_dim(call->args[1].i, x->ndim + 1, &dim);
    if (status)
        return status;
    for (int d = 0, from = 0; d <= x->ndim; d++) {
        bool fresh = d == dim;
        sizes[d] = fresh ? 1 : x->sizes[from];
        strides[d] = !fresh           ? x->strides[from]
                     : from < x->ndim ? x->strides[from] * x->sizes[from]
                                      : 1;
        from += !fresh;
    }
    return td_tensor_view(x, x->ndim + 1, sizes, strides, 0, &call->out[0]);
}

/* ---- order ---- */

/* The dims of a permutation, wrapped. */
static td_status read_order(td_value dims, int ndim, int *order) {
    char text[TD_SHAPE_TEXT];
    int64_t shown[TD_MAX_DIMS];
    uint32_t seen = 0;
    if (dims.n != ndim)
        return td_fail(TD_ESHAPE, "%d dims given for a tensor of %d dims", dims.n, ndim);
    for (int k = 0; k < ndim; k++) {
        td_status status = td_wrap_dim(dims.ints[k], ndim, &order[k]);
        if (status)
            return status;
        shown[k] = order[k] + 1;
        if (seen >> order[k] & 1)
            return td_fail(TD_EVALUE, "dim %d is given twice in %s", order[k] + 1,
                           td_shape_text(k + 1, shown, text, sizeof text));
        seen |= 1u << order[k];
    }
    return TD_OK;
}

td_status td_run_permute(td_call *call) {
    td_tensor *x = call->args[0].tensor;
    int64_t sizes[TD_MAX_DIMS], strides[TD_MAX_DIMS];
    int order[TD_MAX_DIMS];
    td_status status = read_order(call->args[1], x->ndim, order);
    if (status)
        return status;
    for (int k = 0; k < x->ndim; k++) {
        sizes[k] = x->sizes[order[k]];
        strides[k] = x->strides[order[k]];
    }
    return td_tensor_view(x, x->ndim, sizes, strides, 0, &call->out[0]);
}

td_status td_grad_permute(td_grad *grad) {
    int64_t back[TD_MAX_DIMS];
    int order[TD_MAX_DIMS], ndim = grad->args[1].n;
    td_status status = read_order(grad->args[1], ndim, order);
    if (status)
        return status;
    for (int k = 0; k < ndim; k++)
        back[order[k]] = k;
    return TD_APPLY(&grad->in[0], permute, TD_T(grad->gout[0]), TD_INTS(ndim, back));
}

td_status td_run_transpose(td_call *call) {
    td_tensor *x = call->args[0].tensor;
    int64_t sizes[TD_MAX_DIMS], strides[TD_MAX_DIMS];
    int a, b;
    td_status status = td_wrap_dim(call->args[1].i, x->ndim, &a);
    if (status == TD_OK)
        status = td_wrap_dim(call->args[2].i, x->ndim, &b);
    if (status)
        return status;
    if (x->ndim == 0)
        return same_geometry(call);
    memcpy(sizes, x->sizes, sizeof(int64_t) * x->ndim);
    memcpy(strides, x->strides, sizeof(int64_t) * x->ndim);
    sizes[a] = x->sizes[b];
    sizes[b] = x->sizes[a];
    strides[a] = x->strides[b];
    strides[b] = x->strides[a];
    return td_tensor_view(x, x->ndim, sizes, strides, 0, &call->out[0]);
}

/* ---- repetition ---- */

static td_status fail_expand(const td_tensor *x, td_value size) {
    char from[TD_SHAPE_TEXT], to[TD_SHAPE_TEXT];
    return td_fail(TD_ESHAPE, "shape %s can't be expanded to %s", td_tensor_shape_text(x, from),
                   td_shape_text(size.n, size.ints, to, sizeof to));
}

td_status td_run_expand(td_call *call) {
    td_tensor *x = call->args[0].tensor;
    td_value size = call->args[1];
    int64_t sizes[TD_MAX_DIMS], strides[TD_MAX_DIMS];
    if (size.n < x->ndim || size.n > TD_MAX_DIMS)
        return fail_expand(x, size);
    for (int d = 0; d < size.n; d++) {
        int from = d - (size.n - x->ndim);
        int64_t have = from >= 0 ? x->sizes[from] : 1, want = size.ints[d];
        if (want == -1 && from >= 0)
            want = have;
        if (want < 0 || (have != want && have != 1))
            return fail_expand(x, size);
        sizes[d] = want;
        strides[d] = from >= 0 && have == want ? x->strides[from] : 0;
    }
    return td_tensor_view(x, size.n, sizes, strides, 0, &call->out[0]);
}

/* ---- parts ---- */

td_status td_run_select(td_call *call) {
    td_tensor *x = call->args[0].tensor;
    int64_t sizes[TD_MAX_DIMS], strides[TD_MAX_DIMS], index = call->args[2].i;
    int dim, n = 0;
    if (x->ndim == 0)
        return td_fail(TD_EINDEX, "a 0-dim tensor has no elements to choose from");
    td_status status = td_wrap_dim(call->args[1].i, x->ndim, &dim);
    if (status)
        return status;
    int64_t size = x->sizes[dim];
    if (index < -size || index >= size)
        return td_fail(TD_EINDEX, "index %lld is out of range for dim %d of size %lld",
                       (long long)(index < 0 ? index : index + 1), dim + 1, (long long)size);
    if (index < 0)
        index += size;
    for (int d = 0; d < x->ndim; d++) {
        if (d == dim)
            continue;
        sizes[n] = x->sizes[d];
        strides[n++] = x->strides[d];
    }
    return td_tensor_view(x, n, sizes, strides, index * x->strides[dim], &call->out[0]);
}

/* Bounds of a slice as [start, stop). A negative stop counts from the end, -1 being the end itself:
 * what in Lua is the last one included. */
static void slice_bounds(int64_t size, td_value start, td_value stop, int64_t *from, int64_t *to) {
    int64_t a = td_is_nil(start) ? 0 : start.i, b = td_is_nil(stop) ? size : stop.i;
    a = a < 0 ? a + size : a;
    b = b < 0 ? b + size + 1 : b;
    a = a < 0 ? 0 : a > size ? size : a;
    b = b < a ? a : b > size ? size : b;
    *from = a;
    *to = b;
}

td_status td_slice_view(td_tensor *x, int64_t dim, td_value start, td_value stop, int64_t step,
                        td_tensor **out) {
    int64_t sizes[TD_MAX_DIMS], strides[TD_MAX_DIMS], from, to;
    int d;
    *out = NULL;
    if (x->ndim == 0)
        return td_fail(TD_EINDEX, "a 0-dim tensor can't be sliced");
    td_status status = td_wrap_dim(dim, x->ndim, &d);
    if (status)
        return status;
    if (step < 1)
        return td_fail(TD_EVALUE, "step must be at least 1, got %lld", (long long)step);
    slice_bounds(x->sizes[d], start, stop, &from, &to);
    memcpy(sizes, x->sizes, sizeof(int64_t) * x->ndim);
    memcpy(strides, x->strides, sizeof(int64_t) * x->ndim);
    sizes[d] = to > from ? (to - from - 1) / step + 1 : 0;
    strides[d] *= sizes[d] > 1 ? step : 1;
    return td_tensor_view(x, x->ndim, sizes, strides, from * x->strides[d], out);
}

td_status td_run_slice(td_call *call) {
    const td_value *a = call->args;
    return td_slice_view(a[0].tensor, a[1].i, a[2], a[3], a[4].i, &call->out[0]);
}

/* ---- any strides ---- */

td_status td_run_strided(td_call *call) {
    td_value size = call->args[1];
    return td_tensor_view(call->args[0].tensor, size.n, size.ints, call->args[2].ints,
                          call->args[3].i, &call->out[0]);
}
