/* shape.c: the rows of views, whose geometry is in view.c; composites of views, such as reshape and
 * flatten; tril and triu; gradients of slices and of expanded tensors. */
#include "engine/ops/shape/shape.h"
#include "engine/ops/quantized/quantized.h"

#include "engine/ops/make/copy.h"
#include "engine/ops/plan/plan.h"
#include "engine/ops/plan/reduction.h"
#include "engine/ops/pointwise/pointwise.h"
#include "engine/ops/rule_helpers.h"

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

static td_status rule_triangle(const td_call *call, td_meta *out) {
    const td_tensor *x = call->args[0].tensor;
    if (x->ndim < 2)
        return td_fail(TD_ESHAPE, "needs a tensor of at least 2 dims, got %d", x->ndim);
    return td_rule_same(call, out);
}

static td_status band(td_call *call, int64_t first, int64_t last) {
    td_band_plan plan = {
        .out = call->out[0], .x = call->args[0].tensor, .first = first, .last = last};
    return TD_RUN(td_tensor_device(plan.out), band, &plan);
}

static td_status kernel_tril(td_call *call) {
    return band(call, INT64_MIN, call->args[1].i);
}
static td_status kernel_triu(td_call *call) {
    return band(call, call->args[1].i, INT64_MAX);
}

/* ---- gradients of parts ---- */

/* The dtype of the first argument, the sizes of the second. */
static td_status rule_whole(const td_call *call, td_meta *out) {
    td_value size = call->args[1];
    out->dtype = (td_dtype)call->args[0].tensor->dtype;
    out->ndim = size.n;
    if (size.n)
        memcpy(out->sizes, size.ints, sizeof(int64_t) * (size_t)size.n);
    return TD_OK;
}

static td_status kernel_slice_backward(td_call *call) {
    const td_value *a = call->args;
    td_tensor *part = NULL;
    td_status status = TD_OK;
    TD_TRY(td_fill_int(call->out[0], 0));
    TD_TRY(td_slice_view(call->out[0], a[2].i, a[3], a[4], a[5].i, &part));
    TD_TRY(td_copy_into(part, a[0].tensor));
done:
    td_release(part);
    return status;
}

/* Added to zeros, as a sum of such tensors adds them: the zeros of the result are positive. */
static td_status kernel_slices_backward(td_call *call) {
    const td_value list = call->args[0], starts = call->args[3];
    const int64_t dim = call->args[2].i;
    td_tensor *place = NULL;
    td_status status = TD_OK;
    TD_TRY(td_fill_int(call->out[0], 0));
    for (int k = 0; k < list.n; k++) {
        int64_t start = starts.ints[k], stop = start + list.tensors[k]->sizes[dim];
        TD_TRY(td_slice_view(call->out[0], dim, TD_I(start), TD_I(stop), 1, &place));
        const td_operand both[] = {{.tensor = place}, {.tensor = list.tensors[k]}};
        td_pointwise_plan sum = {.program = td_primitive_program(TD_PW_add),
                                 .operands = both,
                                 .compute = (td_dtype)place->dtype,
                                 .out = place};
        TD_TRY(TD_RUN(td_tensor_device(place), pointwise, &sum));
        td_release(place);
        place = NULL;
    }
done:
    td_release(place);
    return status;
}

static td_status rule_slices_backward(const td_call *call, td_meta *out) {
    const td_value list = call->args[0], size = call->args[1], starts = call->args[3];
    if (list.n == 0 || list.n != starts.n || size.n == 0)
        return td_fail(TD_EVALUE, "a start for each of one part or more expected");
    out->dtype = (td_dtype)list.tensors[0]->dtype;
    out->ndim = size.n;
    memcpy(out->sizes, size.ints, sizeof(int64_t) * (size_t)size.n);
    return TD_OK;
}

static td_status run_expand_back(td_call *call) {
    td_tensor *x = call->args[0].tensor, *kept = NULL;
    td_value size = call->args[1];
    int64_t sizes[TD_MAX_DIMS];
    uint32_t mask;
    if (call->args[3].b || size.n == x->ndim)
        return TD_APPLY(&call->out[0], expand, TD_T(x), size);
    td_status status = td_reduce_dims(call->args[2], size.n, &mask);
    for (int d = 0; d < size.n; d++)
        sizes[d] = mask >> d & 1 ? 1 : size.ints[d];
    if (status == TD_OK)
        status = TD_APPLY(&kept, reshape, TD_T(x), TD_INTS(size.n, sizes));
    if (status == TD_OK)
        status = TD_APPLY(&call->out[0], expand, TD_T(kept), size);
    td_release(kept);
    return status;
}

/* ---- the table ---- */

#define VIEW(function, text) .run = function, .gradient = text, .flags = TD_OP_VIEW
#define TURN(function, text)                                                                       \
    .run = function, .gradient = text, .flags = TD_OP_VIEW | TD_OP_INPLACE | TD_OP_TURNS

TD_OPERATOR(view) = {
    .schema = "(Tensor x, int[] size) -> Tensor",
    .doc = "The same elements in another shape, without a copy; one size may be -1.",
    .shapes = "x (...) -> (size...)",
    .notes =
        "A size of -1 is worked out. Memory that does not lie so is an error: reshape copies it.",
    VIEW(td_run_view, "x: reshape(g, x.shape)"),
};
TD_OPERATOR(reshape) = {
    .schema = "(Tensor x, int[] size) -> Tensor",
    .doc = "The same elements in another shape, a view where possible; one size may be -1.",
    .shapes = "x (...) -> (size...)",
    .notes = "A size of -1 is worked out. A view where memory allows it, otherwise a copy.",
    .run = run_reshape,
    .forms[TD_QUANTIZED] = td_quantized_move,
};
TD_OPERATOR(view_as) = {
    .schema = "(Tensor x, Tensor other) -> Tensor",
    .doc = "View in the other's shape.",
    .shapes = "x (sizes...), other (...) -> (...)",
    .formula = "view(x, other.shape)",
    .flags = TD_OP_METHOD_ONLY,
};
TD_OPERATOR(reshape_as) = {
    .schema = "(Tensor x, Tensor other) -> Tensor",
    .doc = "Reshape to the other's shape.",
    .shapes = "x (sizes...), other (...) -> (...)",
    .formula = "reshape(x, other.shape)",
    .flags = TD_OP_METHOD_ONLY,
};
TD_OPERATOR(flatten) = {
    .schema = "(Tensor x, dim start_dim=0, dim end_dim=-1) -> Tensor",
    .doc = "Join the dims from start_dim to end_dim into one.",
    .shapes =
        "x (...) -> (sizes...); sizes: those of x, from start_dim to end_dim multiplied into one",
    .run = run_flatten,
    .forms[TD_QUANTIZED] = td_quantized_composite,
};
TD_OPERATOR(ravel) = {
    .schema = "(Tensor x) -> Tensor",
    .doc = "All elements as one row, a view where possible.",
    .shapes = "x (...) -> (numel(x))",
    .formula = "reshape(contiguous(x), -1)",
};
TD_OPERATOR(unflatten) = {
    .schema = "(Tensor x, dim dim, int[] sizes) -> Tensor",
    .doc = "Split a dim into several; one size may be -1.",
    .shapes = "x (...) -> (result...); result: those of x, with sizes in place of the one at dim",
    .run = run_unflatten,
    .forms[TD_QUANTIZED] = td_quantized_composite,
};
TD_OPERATOR(permute) = {
    .schema = "(Tensor x, dim[] dims) -> Tensor",
    .doc = "The dims in another order.",
    .shapes = "x (...) -> (x[dims]...)",
    .notes = "Each dim once.",
    .run = td_run_permute,
    .backward = td_grad_permute,
    .flags = TD_OP_VIEW,
};
TD_OPERATOR(transpose) = {
    .schema = "(Tensor x, dim dim0, dim dim1) -> Tensor",
    .doc = "Two dims exchanged.",
    .shapes = "x (...) -> (swap(x, dim0, dim1)...)",
    TURN(td_run_transpose, "x: transpose(g, dim0, dim1)"),
};
TD_OPERATOR(t) = {
    .schema = "(Tensor x) -> Tensor",
    .doc = "A matrix with its dims exchanged.",
    .shapes = "x (n, m) -> (m, n) | x (...) -> (...)",
    .formula = "if(x.ndim <= 2, transpose(x, 0, -1),"
               "   error(\"needs a tensor of at most 2 dims, got %: use transpose\", x.ndim))",
    .flags = TD_OP_INPLACE | TD_OP_TURNS,
};
TD_OPERATOR(movedim) = {
    .schema = "(Tensor x, dim[] source, dim[] destination) -> Tensor",
    .doc = "Dims moved to other places, the rest in order.",
    .shapes =
        "x (...) -> (sizes...); sizes: those of x, source's at destination, the rest in order",
    .run = run_movedim,
    .forms[TD_QUANTIZED] = td_quantized_composite,
};
TD_OPERATOR(squeeze) = {
    .schema = "(Tensor x, dim[]? dim=nil) -> Tensor",
    .doc = "Without the dims of size 1, all or those given.",
    .shapes = "x (...) -> (rest...); rest: those of x without 1, or without 1 at dim",
    .notes = "Dims of another size than 1 stay.",
    TURN(td_run_squeeze, "x: reshape(g, x.shape)"),
};
TD_OPERATOR(unsqueeze) = {
    .schema = "(Tensor x, dim dim) -> Tensor",
    .doc = "With a dim of size 1 inserted.",
    .shapes = "x (...) -> (...) with 1 inserted at dim",
    TURN(td_run_unsqueeze, "x: reshape(g, x.shape)"),
};
TD_OPERATOR(expand) = {
    .schema = "(Tensor x, int[] size) -> Tensor",
    .doc = "Dims of size 1 repeated without a copy; -1 keeps a size.",
    .shapes = "x (...) -> (size...)",
    .notes =
        "A size of -1 stays. Dims of size 1 and new dims in front are repeated, without memory.",
    VIEW(td_run_expand, "x: if(g.numel == x.numel, reshape(g, x.shape), sum_to(g, x.shape))"),
};
TD_OPERATOR(expand_as) = {
    .schema = "(Tensor x, Tensor other) -> Tensor",
    .doc = "Expand to the other's shape.",
    .shapes = "x to (...), other (...) -> (...)",
    .formula = "expand(x, other.shape)",
    .flags = TD_OP_METHOD_ONLY,
};
TD_OPERATOR(broadcast_to) = {
    .schema = "(Tensor x, int[] size) -> Tensor",
    .doc = "Expand under the name that NumPy gives it.",
    .shapes = "x (...) -> (size...)",
    .formula = "expand(x, size)",
};
TD_OPERATOR(select) = {
    .schema = "(Tensor x, dim dim, index index) -> Tensor",
    .doc = "One place along a dim, which is left out.",
    .shapes = "x (...) -> (...) without dim",
    .notes = "An index outside of the dim is an error, 0 too; negative ones count from the end.",
    VIEW(td_run_select, "x: slice_backward(unsqueeze(g, dim), x.shape, dim, index,"
                        "                  if(index < 0, index, index + 1), 1)") |
        TD_OP_PART,
};
TD_OPERATOR(slice) = {
    .schema = "(Tensor x, dim dim=0, index? start=nil, int? stop=nil, int step=1) -> Tensor",
    .doc = "The places from start to stop, both included, along a dim.",
    .shapes = "x (...) -> (...) with n at dim; n: the places from start to stop in steps of step",
    .notes = "Both ends belong to it; negative ones count from the end, so -1 is the last. Ends "
             "beyond are cut. step is 1 or more.",
    VIEW(td_run_slice, "x: slice_backward(g, x.shape, dim, start, stop, step)") | TD_OP_PART,
};
TD_OPERATOR(narrow) = {
    .schema = "(Tensor x, dim dim, index start, int length) -> Tensor",
    .doc = "So many places from start on along a dim.",
    .shapes = "x (...) -> (...) with length at dim",
    .notes = "Elements outside of the dim are an error.",
    .run = run_narrow,
    .forms[TD_QUANTIZED] = td_quantized_composite,
};
TD_OPERATOR(tril) = {
    .schema = "(Tensor x, int diagonal=0) -> Tensor",
    .doc = "The lower triangle of matrices, zeros above the diagonal.",
    .shapes = "x (..., n, m) -> (..., n, m)",
    .rule = rule_triangle,
    .kernel = kernel_tril,
    .dtypes = TD_DTYPES_ALL,
    .gradient = "x: tril(g, diagonal)",
    .flags = TD_OP_INPLACE | TD_OP_WRITES_SELF | TD_OP_OUT | TD_OP_OUT_EXACT,
};
TD_OPERATOR(triu) = {
    .schema = "(Tensor x, int diagonal=0) -> Tensor",
    .doc = "The upper triangle of matrices, zeros below the diagonal.",
    .shapes = "x (..., n, m) -> (..., n, m)",
    .rule = rule_triangle,
    .kernel = kernel_triu,
    .dtypes = TD_DTYPES_ALL,
    .gradient = "x: triu(g, diagonal)",
    .flags = TD_OP_INPLACE | TD_OP_WRITES_SELF | TD_OP_OUT | TD_OP_OUT_EXACT,
};
TD_OPERATOR(slice_backward) = {
    .schema = "(Tensor part, int[] size, dim dim, index? start, int? stop, int step) -> Tensor",
    .doc = "The part in its place along a dim of a tensor of zeros.",
    .rule = rule_whole,
    .kernel = kernel_slice_backward,
    .dtypes = TD_DTYPES_ALL,
    .gradient = "part: slice(g, dim, start, stop, step)",
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(slices_backward) = {
    .schema = "(Tensor[] parts, int[] size, int dim, int[] starts) -> Tensor",
    .doc = "Parts that don't overlap in their places along a dim of a tensor of zeros.",
    .rule = rule_slices_backward,
    .kernel = kernel_slices_backward,
    .dtypes = TD_DTYPES_ALL,
    .flags = TD_OP_INTERNAL | TD_OP_NONDIFF,
};
TD_OPERATOR(expand_back) = {
    .schema = "(Tensor x, int[] size, dim[]? dim, bool keepdim) -> Tensor",
    .doc = "What was reduced over dims of a tensor of this size, repeated along them.",
    .run = run_expand_back,
    .flags = TD_OP_INTERNAL,
};
