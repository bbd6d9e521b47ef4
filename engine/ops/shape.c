/* shape.c: the table of the shape family: views (view.c), what is made of views, and triangles. */
#include "engine/ops/shape.h"

#include "engine/core/memory.h"
#include "engine/ops/copy.h"

#include <string.h>

#define TD_FAMILY "shape"

/* ---- composites of views ---- */

static td_status run_reshape(td_call *call) {
    td_tensor *x = call->args[0].tensor, *copy = NULL;
    int64_t sizes[TD_MAX_DIMS], strides[TD_MAX_DIMS];
    int n = call->args[1].n;
    td_status status = td_infer_size(x->numel, n, call->args[1].ints, sizes);
    if (status)
        return status;
    if (td_view_strides(x, n, sizes, strides))
        return TD_APPLY(&call->out[0], view, TD_T(x), TD_INTS(n, sizes));
    status = TD_APPLY(&copy, clone, TD_T(x), TD_STRING("contiguous"));
    if (status == TD_OK)
        status = TD_APPLY(&call->out[0], view, TD_T(copy), TD_INTS(n, sizes));
    td_release(copy);
    return status;
}

/* view_as, reshape_as, expand_as: the operator without "_as" with the other's shape. */
static td_status run_as(td_call *call, const td_op *op) {
    td_tensor *other = call->args[1].tensor;
    return td_op_apply(op, call->out, 2,
                       (td_value[]){call->args[0], TD_INTS(other->ndim, other->sizes)});
}

static td_status run_view_as(td_call *call) {
    return run_as(call, TD_OP(view));
}
static td_status run_reshape_as(td_call *call) {
    return run_as(call, TD_OP(reshape));
}
static td_status run_expand_as(td_call *call) {
    return run_as(call, TD_OP(expand));
}

static td_status run_broadcast_to(td_call *call) {
    return TD_APPLY(&call->out[0], expand, call->args[0], call->args[1]);
}

static td_status run_flatten(td_call *call) {
    td_tensor *x = call->args[0].tensor;
    int64_t sizes[TD_MAX_DIMS], joined = 1;
    int first, last, n = 0;
    td_status status = td_wrap_dim(call->args[1].i, x->ndim, &first);
    if (status == TD_OK)
        status = td_wrap_dim(call->args[2].i, x->ndim, &last);
    if (status)
        return status;
    if (first > last)
        return td_fail(TD_EVALUE, "start_dim %d comes after end_dim %d", first + 1, last + 1);
    for (int d = 0; d < first; d++)
        sizes[n++] = x->sizes[d];
    for (int d = first; d <= last && d < x->ndim; d++)
        joined *= x->sizes[d];
    sizes[n++] = joined;
    for (int d = last + 1; d < x->ndim; d++)
        sizes[n++] = x->sizes[d];
    return TD_APPLY(&call->out[0], reshape, TD_T(x), TD_INTS(n, sizes));
}

static td_status run_unflatten(td_call *call) {
    td_tensor *x = call->args[0].tensor;
    td_value parts = call->args[2];
    int64_t sizes[TD_MAX_DIMS];
    int dim, n = 0;
    td_status status = td_wrap_dim(call->args[1].i, x->ndim, &dim);
    if (status)
        return status;
    if (x->ndim - 1 + parts.n > TD_MAX_DIMS || x->ndim == 0)
        return td_fail(TD_ESHAPE, "dim %d can't be split into %d dims", dim + 1, parts.n);
    for (int d = 0; d < dim; d++)
        sizes[n++] = x->sizes[d];
    status = td_infer_size(x->sizes[dim], parts.n, parts.ints, sizes + n);
    if (status)
        return status;
    n += parts.n;
    for (int d = dim + 1; d < x->ndim; d++)
        sizes[n++] = x->sizes[d];
    return TD_APPLY(&call->out[0], view, TD_T(x), TD_INTS(n, sizes));
}

static td_status run_t(td_call *call) {
    td_tensor *x = call->args[0].tensor;
    if (x->ndim > 2)
        return td_fail(TD_ESHAPE, "needs a tensor of at most 2 dims, got %d: use transpose",
                       x->ndim);
    return TD_APPLY(&call->out[0], transpose, TD_T(x), TD_I(0), TD_I(-1));
}

static td_status run_movedim(td_call *call) {
    td_tensor *x = call->args[0].tensor;
    td_value from = call->args[1], to = call->args[2];
    int64_t order[TD_MAX_DIMS];
    uint32_t moved = 0, taken = 0;
    if (from.n != to.n)
        return td_fail(TD_ESHAPE, "%d dims move to %d places", from.n, to.n);
    for (int k = 0; k < from.n; k++) {
        int a, b;
        td_status status = td_wrap_dim(from.ints[k], x->ndim, &a);
        if (status == TD_OK)
            status = td_wrap_dim(to.ints[k], x->ndim, &b);
        if (status)
            return status;
        if (moved >> a & 1 || taken >> b & 1)
            return td_fail(TD_EVALUE, "a dim is given twice");
        moved |= 1u << a;
        taken |= 1u << b;
        order[b] = a;
    }
    for (int place = 0, d = 0; place < x->ndim; place++) {
        if (taken >> place & 1)
            continue;
        while (moved >> d & 1)
            d++;
        order[place] = d++;
    }
    return TD_APPLY(&call->out[0], permute, TD_T(x), TD_INTS(x->ndim, order));
}

static td_status run_narrow(td_call *call) {
    const td_value *a = call->args;
    td_tensor *x = a[0].tensor;
    int64_t start = a[2].i, length = a[3].i;
    int dim;
    td_status status = td_wrap_dim(a[1].i, x->ndim, &dim);
    if (status)
        return status;
    if (x->ndim == 0)
        return td_fail(TD_EINDEX, "a 0-dim tensor can't be narrowed");
    int64_t size = x->sizes[dim], from = start < 0 ? start + size : start;
    if (length < 0 || from < 0 || from > size || length > size - from)
        return td_fail(TD_EINDEX, "%lld elements from %lld on don't lie in dim %d of size %lld",
                       (long long)length, (long long)(start < 0 ? start : start + 1), dim + 1,
                       (long long)size);
    return TD_APPLY(&call->out[0], slice, TD_T(x), TD_I(dim), TD_I(from), TD_I(from + length));
}

/* ---- triangles ---- */

typedef td_status (*band_fn)(const td_tensor *, int64_t, int64_t, td_tensor *);
static const band_fn band_functions[TD_DEVICE_TYPES] = {[TD_CPU] = td_cpu_band};

static td_status rule_triangle(const td_call *call, td_meta *out) {
    const td_tensor *x = call->args[0].tensor;
    if (x->ndim < 2)
        return td_fail(TD_ESHAPE, "needs a tensor of at least 2 dims, got %d", x->ndim);
    return td_rule_same(call, out);
}

static td_status band(td_call *call, int64_t first, int64_t last) {
    td_tensor *x = call->args[0].tensor, *out = call->out[0], *packed = NULL;
    band_fn fn = band_functions[td_tensor_device(x).type];
    if (out->contiguous && (out->storage != x->storage || (out->data == x->data && x->contiguous)))
        return fn(x, first, last, out);
    td_status status = td_tensor_empty_like(out, (td_dtype)out->dtype, &packed);
    if (status == TD_OK)
        status = fn(x, first, last, packed);
    if (status == TD_OK)
        status = td_copy_into(out, packed);
    td_release(packed);
    return status;
}

static td_status kernel_tril(td_call *call) {
    return band(call, INT64_MIN, call->args[1].i);
}
static td_status kernel_triu(td_call *call) {
    return band(call, call->args[1].i, INT64_MAX);
}

static td_status grad_triangle(td_grad *grad) {
    return td_op_apply(grad->op, &grad->in[0], 2, (td_value[]){TD_T(grad->gout[0]), grad->args[1]});
}

/* ---- gradients of parts ---- */

static td_status zeros_of(const td_tensor *like, td_value size, td_tensor **out) {
    return TD_APPLY(out, zeros, size, TD_DTYPE((td_dtype)like->dtype),
                    TD_DEVICE(td_tensor_device(like)));
}

static td_status run_slice_backward(td_call *call) {
    const td_value *a = call->args;
    td_tensor *whole = NULL, *part = NULL;
    td_status status = TD_OK;
    TD_TRY(zeros_of(a[0].tensor, a[1], &whole));
    TD_TRY(TD_APPLY(&part, slice, TD_T(whole), a[2], a[3], a[4], a[5]));
    TD_TRY(td_copy_into(part, a[0].tensor));
    call->out[0] = td_retain(whole);
done:
    td_release(whole);
    td_release(part);
    return status;
}

static td_status grad_slice_backward(td_grad *grad) {
    const td_value *a = grad->args;
    return TD_APPLY(&grad->in[0], slice, TD_T(grad->gout[0]), a[2], a[3], a[4], a[5]);
}

static td_status run_as_strided_backward(td_call *call) {
    const td_value *a = call->args;
    td_tensor *g = a[0].tensor;
    if (td_tensor_device(g).type != TD_CPU)
        return td_fail(TD_EDEVICE, "no gradient of as_strided on this device");
    td_status status = zeros_of(g, a[1], &call->out[0]);
    return status ? status : td_cpu_add_strided(call->out[0], g, a[2].ints, a[3].i);
}

static td_status grad_as_strided_backward(td_grad *grad) {
    int ndim;
    const int64_t *sizes = td_grad_shape(grad, 0, &ndim);
    td_tensor *whole = NULL;
    td_status status = TD_APPLY(&whole, contiguous, TD_T(grad->gout[0]));
    if (status == TD_OK)
        status = TD_APPLY(&grad->in[0], as_strided, TD_T(whole), TD_INTS(ndim, sizes),
                          grad->args[2], grad->args[3]);
    td_release(whole);
    return status;
}

/* ---- the table ---- */

#define VIEW(function, gradient)                                                                   \
    .run = function, .backward = gradient, .flags = TD_OP_VIEW | TD_OP_SHAPE_ONLY

TD_OPERATOR(view) = {
    .schema = "(Tensor x, int[] size) -> Tensor",
    .doc = "The same elements in another shape, without a copy; one size may be -1.",
    VIEW(td_run_view, td_grad_reshaped),
};
TD_OPERATOR(reshape) = {
    .schema = "(Tensor x, int[] size) -> Tensor",
    .doc = "The same elements in another shape, a view where possible; one size may be -1.",
    .run = run_reshape,
};
TD_OPERATOR(view_as) = {
    .schema = "(Tensor x, Tensor other) -> Tensor",
    .doc = "View in the other's shape.",
    .run = run_view_as,
    .flags = TD_OP_METHOD_ONLY,
};
TD_OPERATOR(reshape_as) = {
    .schema = "(Tensor x, Tensor other) -> Tensor",
    .doc = "Reshape to the other's shape.",
    .run = run_reshape_as,
    .flags = TD_OP_METHOD_ONLY,
};
TD_OPERATOR(flatten) = {
    .schema = "(Tensor x, dim start_dim=0, dim end_dim=-1) -> Tensor",
    .doc = "Join the dims from start_dim to end_dim into one.",
    .run = run_flatten,
};
TD_OPERATOR(unflatten) = {
    .schema = "(Tensor x, dim dim, int[] sizes) -> Tensor",
    .doc = "Split a dim into several; one size may be -1.",
    .run = run_unflatten,
};
TD_OPERATOR(permute) = {
    .schema = "(Tensor x, dim[] dims) -> Tensor",
    .doc = "The dims in another order.",
    VIEW(td_run_permute, td_grad_permute),
};
TD_OPERATOR(transpose) = {
    .schema = "(Tensor x, dim dim0, dim dim1) -> Tensor",
    .doc = "Two dims exchanged.",
    VIEW(td_run_transpose, td_grad_transpose),
};
TD_OPERATOR(t) = {
    .schema = "(Tensor x) -> Tensor",
    .doc = "A matrix with its dims exchanged.",
    .run = run_t,
};
TD_OPERATOR(movedim) = {
    .schema = "(Tensor x, dim[] source, dim[] destination) -> Tensor",
    .doc = "Dims moved to other places, the rest in order.",
    .run = run_movedim,
};
TD_OPERATOR(squeeze) = {
    .schema = "(Tensor x, dim[]? dim=nil) -> Tensor",
    .doc = "Without the dims of size 1, all or those given.",
    VIEW(td_run_squeeze, td_grad_reshaped),
};
TD_OPERATOR(unsqueeze) = {
    .schema = "(Tensor x, dim dim) -> Tensor",
    .doc = "With a dim of size 1 inserted.",
    VIEW(td_run_unsqueeze, td_grad_reshaped),
};
TD_OPERATOR(expand) = {
    .schema = "(Tensor x, int[] size) -> Tensor",
    .doc = "Dims of size 1 repeated without a copy; -1 keeps a size.",
    VIEW(td_run_expand, td_grad_expand),
};
TD_OPERATOR(expand_as) = {
    .schema = "(Tensor x, Tensor other) -> Tensor",
    .doc = "Expand to the other's shape.",
    .run = run_expand_as,
    .flags = TD_OP_METHOD_ONLY,
};
TD_OPERATOR(broadcast_to) = {
    .schema = "(Tensor x, int[] size) -> Tensor",
    .doc = "Expand under the name that NumPy gives it.",
    .run = run_broadcast_to,
};
TD_OPERATOR(select) = {
    .schema = "(Tensor x, dim dim, index index) -> Tensor",
    .doc = "One place along a dim, which is left out.",
    VIEW(td_run_select, td_grad_select),
};
TD_OPERATOR(slice) = {
    .schema = "(Tensor x, dim dim=0, index? start=nil, int? stop=nil, int step=1) -> Tensor",
    .doc = "The places from start to stop, both included, along a dim.",
    VIEW(td_run_slice, td_grad_slice),
};
TD_OPERATOR(narrow) = {
    .schema = "(Tensor x, dim dim, index start, int length) -> Tensor",
    .doc = "So many places from start on along a dim.",
    .run = run_narrow,
};
TD_OPERATOR(as_strided) = {
    .schema = "(Tensor x, int[] size, int[] stride, int offset=0) -> Tensor",
    .doc = "Any sizes and strides over x's memory; offset counts elements from x's first.",
    VIEW(td_run_as_strided, td_grad_as_strided),
};
TD_OPERATOR(tril) = {
    .schema = "(Tensor x, int diagonal=0) -> Tensor",
    .doc = "The lower triangle of matrices, zeros above the diagonal.",
    .rule = rule_triangle,
    .kernel = kernel_tril,
    .backward = grad_triangle,
    .flags = TD_OP_INPLACE | TD_OP_WRITES_SELF,
};
TD_OPERATOR(triu) = {
    .schema = "(Tensor x, int diagonal=0) -> Tensor",
    .doc = "The upper triangle of matrices, zeros below the diagonal.",
    .rule = rule_triangle,
    .kernel = kernel_triu,
    .backward = grad_triangle,
    .flags = TD_OP_INPLACE | TD_OP_WRITES_SELF,
};
TD_OPERATOR(slice_backward) = {
    .schema = "(Tensor g, int[] size, int dim, int start, int stop, int step) "
              "-> Tensor",
    .doc = "g in its place along a dim of a tensor of zeros.",
    .run = run_slice_backward,
    .backward = grad_slice_backward,
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(as_strided_backward) = {
    .schema = "(Tensor g, int[] size, int[] stride, int offset) -> Tensor",
    .doc = "g added in its places in a tensor of zeros.",
    .run = run_as_strided_backward,
    .backward = grad_as_strided_backward,
    .flags = TD_OP_INTERNAL | TD_OP_SHAPE_ONLY,
};
