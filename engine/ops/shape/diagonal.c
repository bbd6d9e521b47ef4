/* diagonal.c: diagonals and sliding windows as views, with their gradients; diag, diag_embed, trace
 * and fill_diagonal_; copies with one part replaced (select_scatter and its kin); the places of
 * triangles; rot90 and flips. */
#include "engine/core/interrupt.h"
#include "engine/ops/index/index.h"
#include "engine/ops/make/copy.h"
#include "engine/ops/plan/plan.h"
#include "engine/ops/rule_helpers.h"
#include "engine/ops/shape/shape.h"

#include <string.h>

#define TD_FAMILY "diagonal"

/* ---- geometry ---- */

/* Places on the diagonal that lies `offset` columns to the right of the main one. */
static int64_t diagonal_length(int64_t rows, int64_t columns, int64_t offset) {
    if (offset >= columns || offset <= -rows)
        return 0;
    rows += offset < 0 ? offset : 0;
    columns -= offset > 0 ? offset : 0;
    return rows < columns ? rows : columns;
}

static td_status wrap_plane(int ndim, td_value dim1, td_value dim2, int *rows, int *columns) {
    td_status status = td_wrap_dim(dim1.i, ndim, rows);
    if (status == TD_OK)
        status = td_wrap_dim(dim2.i, ndim, columns);
    if (status == TD_OK && *rows == *columns)
        status = td_fail(TD_EVALUE, "dim1 and dim2 must be two dims, both are dim %d", *rows + 1);
    return status;
}

/* args: x, offset, dim1, dim2. */
static td_status view_diagonal(td_tensor *x, const td_value *args, td_tensor **out) {
    int64_t sizes[TD_MAX_DIMS], strides[TD_MAX_DIMS], offset = args[0].i;
    int rows, columns, n = 0;
    td_status status = wrap_plane(x->ndim, args[1], args[2], &rows, &columns);
    if (status)
        return status;
    for (int d = 0; d < x->ndim; d++) {
        if (d == rows || d == columns)
            continue;
        sizes[n] = x->sizes[d];
        strides[n++] = x->strides[d];
    }
    sizes[n] = diagonal_length(x->sizes[rows], x->sizes[columns], offset);
    strides[n] = x->strides[rows] + x->strides[columns];
    bool empty = sizes[n++] == 0 || x->numel == 0;
    int64_t start = empty        ? 0
                    : offset > 0 ? offset * x->strides[columns]
                                 : -offset * x->strides[rows];
    return td_tensor_view(x, n, sizes, strides, start, out);
}

static td_status run_diagonal(td_call *call) {
    return view_diagonal(call->args[0].tensor, call->args + 1, &call->out[0]);
}

/* Windows of `size` places along a dim, one every `step`: the last dim of the result. */
static td_status run_unfold(td_call *call) {
    td_tensor *x = call->args[0].tensor;
    int64_t sizes[TD_MAX_DIMS + 1], strides[TD_MAX_DIMS + 1];
    int64_t size = call->args[2].i, step = call->args[3].i;
    int dim, n = x->ndim ? x->ndim : 1;
    td_status status = td_wrap_dim(call->args[1].i, x->ndim, &dim);
    if (status)
        return status;
    sizes[0] = strides[0] = 1;
    if (x->ndim) {
        memcpy(sizes, x->sizes, sizeof(int64_t) * x->ndim);
        memcpy(strides, x->strides, sizeof(int64_t) * x->ndim);
    }
    if (size < 0 || size > sizes[dim])
        return td_fail(TD_ESHAPE, "windows of %lld places don't fit into dim %d of size %lld",
                       (long long)size, dim + 1, (long long)sizes[dim]);
    if (step < 1)
        return td_fail(TD_EVALUE, "step must be at least 1, got %lld", (long long)step);
    int64_t count = (sizes[dim] - size) / step + 1;
    sizes[n] = size;
    strides[n] = strides[dim];
    sizes[dim] = count;
    strides[dim] *= count > 1 ? step : 1;
    /* a tensor without dims has one window: the dim that it lacks is the window's */
    return x->ndim ? td_tensor_view(x, n + 1, sizes, strides, 0, &call->out[0])
                   : td_tensor_view(x, 1, sizes + 1, strides + 1, 0, &call->out[0]);
}

/* ---- gradients of views ---- */

/* The dtype of the first argument, the sizes of the second. */
static td_status rule_whole(const td_call *call, td_meta *out) {
    td_value size = call->args[1];
    td_meta_set(out, (td_dtype)call->args[0].tensor->dtype, size.n, size.ints);
    return TD_OK;
}

static td_status kernel_diagonal_backward(td_call *call) {
    td_tensor *part = NULL;
    td_status status = td_fill_int(call->out[0], 0);
    if (status == TD_OK)
        status = view_diagonal(call->out[0], call->args + 2, &part);
    if (status == TD_OK)
        status = td_copy_into(part, call->args[0].tensor);
    td_release(part);
    return status;
}

static td_status kernel_unfold_backward(td_call *call) {
    const td_value *a = call->args;
    td_add_strided_plan plan = {.out = call->out[0], .x = a[0].tensor};
    int dim, n = plan.out->ndim;
    td_status status = td_wrap_dim(a[2].i, n, &dim);
    if (status)
        return status;
    for (int d = 0; d < n; d++)
        plan.strides[d] = plan.out->strides[d];
    if (n && plan.x->sizes[dim] > 1) /* of one window the step is of no matter, and may be any */
        plan.strides[dim] *= a[4].i;
    plan.strides[n] = n ? plan.out->strides[dim] : 1;
    return td_add_meeting(&plan, a[4].i > 0 ? 1 + (a[3].i - 1) / a[4].i : a[3].i);
}

/* ---- written through a view ---- */

/* Lies as x does. */
static td_status rule_part(const td_call *call, td_meta *out) {
    td_status status = td_rule_same(call, out);
    return status ? status : td_meta_format(TD_STRING("preserve"), call->args[0].tensor, out);
}

/* A copy of x with src in the part that `view` makes of it. */
static td_status scatter_part(td_call *call, td_status (*view)(td_tensor *x, const td_value *args,
                                                               td_tensor **out)) {
    td_tensor *x = call->args[0].tensor, *src = call->args[1].tensor, *part = NULL;
    char have[TD_SHAPE_TEXT], want[TD_SHAPE_TEXT];
    td_status status = TD_OK;
    TD_TRY(view(call->out[0], call->args + 2, &part));
    if (!td_tensor_same_shape(part, src)) {
        status = td_fail(TD_ESHAPE, "src of shape %s can't take the place of a part of shape %s",
                         td_tensor_shape_text(src, have), td_tensor_shape_text(part, want));
        goto done;
    }
    if (part->numel < x->numel)
        TD_TRY(td_copy_into(call->out[0], x));
    status = td_copy_into(part, src);
done:
    td_release(part);
    return status;
}

static td_status view_select(td_tensor *x, const td_value *args, td_tensor **out) {
    return TD_APPLY(out, select, TD_T(x), args[0], args[1]);
}
static td_status view_slice(td_tensor *x, const td_value *args, td_tensor **out) {
    return td_slice_view(x, args[0].i, args[1], args[2], args[3].i, out);
}

static td_status kernel_diagonal_scatter(td_call *call) {
    return scatter_part(call, view_diagonal);
}
static td_status kernel_select_scatter(td_call *call) {
    return scatter_part(call, view_select);
}
static td_status kernel_slice_scatter(td_call *call) {
    return scatter_part(call, view_slice);
}

/* ---- diagonals made of elements ---- */

static td_status rule_diag_embed(const td_call *call, td_meta *out) {
    const td_tensor *x = call->args[0].tensor;
    int64_t offset = call->args[1].i, side;
    int rows, columns, from = 0;
    if (offset == INT64_MIN)
        return td_fail(TD_ESHAPE, "offset %lld makes the matrix too large", (long long)offset);
    if (x->ndim == 0 || x->ndim == TD_MAX_DIMS)
        return td_fail(TD_ESHAPE, "needs a tensor of 1 to %d dims, got %d", TD_MAX_DIMS - 1,
                       x->ndim);
    td_status status = wrap_plane(x->ndim + 1, call->args[2], call->args[3], &rows, &columns);
    if (status)
        return status;
    if (__builtin_add_overflow(x->sizes[x->ndim - 1], offset < 0 ? -offset : offset, &side))
        return td_fail(TD_ESHAPE, "offset %lld makes the matrix too large", (long long)offset);
    out->dtype = (td_dtype)x->dtype;
    out->ndim = x->ndim + 1;
    for (int d = 0; d <= x->ndim; d++)
        out->sizes[d] = d == rows || d == columns ? side : x->sizes[from++];
    return TD_OK;
}

static td_status kernel_diag_embed(td_call *call) {
    td_tensor *part = NULL;
    td_status status = td_fill_int(call->out[0], 0);
    if (status == TD_OK)
        status = view_diagonal(call->out[0], call->args + 1, &part);
    if (status == TD_OK)
        status = td_copy_into(part, call->args[0].tensor);
    td_release(part);
    return status;
}

/* ---- fill_diagonal_ ---- */

static td_status rule_fill_diagonal_(const td_call *call, td_meta *out) {
    const td_tensor *x = call->args[0].tensor;
    char text[TD_SHAPE_TEXT];
    if (x->ndim < 2)
        return td_fail(TD_ESHAPE, "needs a tensor of at least 2 dims, got %d", x->ndim);
    for (int d = 1; d < x->ndim && x->ndim > 2; d++)
        if (x->sizes[d] != x->sizes[0])
            return td_fail(TD_ESHAPE, "all dims must have one size, got %s",
                           td_tensor_shape_text(x, text));
    return td_rule_same(call, out);
}

static td_status fill_part(td_tensor *x, int ndim, const int64_t *sizes, const int64_t *strides,
                           int64_t offset, td_value v) {
    td_tensor *part = NULL;
    td_status status = td_tensor_view(x, ndim, sizes, strides, offset, &part);
    if (status == TD_OK)
        status = v.kind == TD_KIND_INT ? td_fill_int(part, v.i) : td_fill(part, v.f);
    td_release(part);
    return status;
}

/* The diagonal begins anew one row below its end, every `width + 1` rows. */
static td_status fill_wrapped(td_tensor *x, td_value v) {
    int64_t width = x->sizes[1], block = width + 1, whole = x->sizes[0] / block;
    int64_t rest = x->sizes[0] % block, step = x->strides[0] + x->strides[1];
    const int64_t sizes[2] = {whole, width}, strides[2] = {block * x->strides[0], step};
    td_status status = fill_part(x, 2, sizes, strides, 0, v);
    if (status || rest == 0)
        return status;
    return fill_part(x, 1, &rest, &step, whole * block * x->strides[0], v);
}

static td_status kernel_fill_diagonal_(td_call *call) {
    td_tensor *out = call->out[0], *x = call->args[0].tensor;
    int64_t least = INT64_MAX, step = 0;
    td_status status = out == x ? TD_OK : td_copy_into(out, x);
    if (status || out->numel == 0)
        return status;
    for (int d = 0; d < out->ndim; d++) {
        least = out->sizes[d] < least ? out->sizes[d] : least;
        step += out->strides[d];
    }
    if (call->args[2].b && out->ndim == 2 && out->sizes[0] > out->sizes[1])
        return fill_wrapped(out, call->args[1]);
    return fill_part(out, 1, &least, &step, 0, call->args[1]);
}

static td_status grad_fill_diagonal_(td_grad *grad) {
    td_tensor *rest = NULL;
    td_status status = TD_APPLY(&rest, clone, TD_T(grad->gout[0]));
    if (status == TD_OK)
        status = TD_APPLY_INPLACE(fill_diagonal_, TD_T(rest), TD_I(0), grad->args[2]);
    if (status)
        td_release(rest);
    else
        grad->in[0] = rest;
    return status;
}

/* ---- triangles and turns ---- */

/* Columns [from, to) of a row that lie in a triangle. */
typedef struct row_part {
    int64_t from, to;
} row_part;

static row_part part_of_row(int64_t row, int64_t columns, int64_t offset, bool upper) {
    __int128 edge = (__int128)row + offset + !upper; /* where the triangle ends or begins */
    int64_t at = edge < 0 ? 0 : edge > columns ? columns : (int64_t)edge;
    return upper ? (row_part){at, columns} : (row_part){0, at};
}

/* Places up to the diagonal that lies `offset` columns to the right, and on it. */
static __int128 count_lower(int64_t rows, int64_t columns, __int128 offset) {
    __int128 first = -offset, full = columns - offset - 1; /* rows: with a place, with all */
    first = first < 0 ? 0 : first > rows ? rows : first;
    full = full < first ? first : full > rows ? rows : full;
    return (full - first) * (offset + 1) + (full - first) * (full + first - 1) / 2 +
           (rows - full) * columns;
}

/* Room for the places of a triangle on a device: rows, then columns. */
static td_status empty_triangle(int64_t rows, int64_t columns, int64_t offset, bool upper,
                                td_device device, td_tensor **out) {
    __int128 n = upper ? (__int128)rows * columns - count_lower(rows, columns, (__int128)offset - 1)
                       : count_lower(rows, columns, offset);
    const int64_t sizes[2] = {2, (int64_t)n};
    if (n > INT64_MAX / 16)
        return td_fail(TD_ENOMEM, "out of memory for the places of a triangle");
    return td_tensor_empty(TD_I64, device, 2, sizes, out);
}

/* In the host's memory. */
static td_status list_triangle(int64_t rows, int64_t columns, int64_t offset, bool upper,
                               td_tensor **out) {
    td_status status = empty_triangle(rows, columns, offset, upper, TD_DEVICE_CPU, out);
    if (status)
        return status;
    const int64_t n = (*out)->sizes[1];
    int64_t *row = (*out)->data, *column = row + n, *end = column;
    for (int64_t r = !upper && offset < 0 ? -offset : 0; row < end; r++) {
        row_part part = part_of_row(r, columns, offset, upper);
        if (td_interrupt_requested())
            return td_interrupted();
        const int64_t len = part.to > part.from ? part.to - part.from : 0;
        for (int64_t k = 0; k < len; k++)
            row[k] = r;
        for (int64_t k = 0; k < len; k++)
            column[k] = part.from + k;
        row += len;
        column += len;
    }
    return TD_OK;
}

/* The places of a matrix's triangle, row by row, as (2, n). */
static td_status triangle_places(td_call *call, const td_op *triangle) {
    const td_value *a = call->args;
    const int64_t sizes[2] = {a[0].i, a[1].i};
    td_tensor *x = NULL;
    td_meta meta = {.device = TD_DEVICE_CPU};
    td_status status = td_creation_meta(TD_INTS(2, sizes), a[3], a[4], &meta);
    if (status)
        return status;
    if (meta.device.type == TD_CPU || meta.device.type == TD_META) {
        const bool upper = triangle == TD_OP(triu);
        if (meta.device.type == TD_CPU)
            TD_TRY(list_triangle(sizes[0], sizes[1], a[2].i, upper, &x));
        else
            TD_TRY(empty_triangle(sizes[0], sizes[1], a[2].i, upper, meta.device, &x));
        if (!td_is_nil(a[3]))
            TD_STEP(&x, to, TD_T(x), a[3]);
        call->out[0] = td_retain(x);
        goto done;
    }
    TD_TRY(TD_APPLY(&x, ones, TD_INTS(2, sizes), TD_DTYPE(TD_BOOL), a[4]));
    td_tensor *part = NULL;
    TD_TRY(td_op_apply(triangle, &part, 2, (td_value[]){TD_T(x), a[2]}));
    td_release(x);
    x = part;
    TD_STEP(&x, nonzero, TD_T(x));
    TD_STEP(&x, transpose, TD_T(x), TD_I(0), TD_I(1));
    TD_STEP(&x, contiguous, TD_T(x));
    TD_STEP(&x, to, TD_T(x), td_is_nil(a[3]) ? TD_DTYPE(TD_I64) : a[3]);
    call->out[0] = td_retain(x);
done:
    td_release(x);
    return status;
}

static td_status run_tril_indices(td_call *call) {
    return triangle_places(call, TD_OP(tril));
}
static td_status run_triu_indices(td_call *call) {
    return triangle_places(call, TD_OP(triu));
}

static td_status run_trace(td_call *call) {
    td_tensor *x = call->args[0].tensor, *diagonal = NULL;
    td_status status = td_check_ndim(x, "x", 2);
    if (status == TD_OK && x->dtype == TD_BOOL)
        status = td_fail(TD_EDTYPE, "not for bool: convert with x:float() or x:long()");
    if (status == TD_OK)
        status = TD_APPLY(&diagonal, diagonal, TD_T(x));
    if (status == TD_OK)
        status = TD_APPLY(&call->out[0], sum, TD_T(diagonal));
    td_release(diagonal);
    return status;
}

static td_status run_rot90(td_call *call) {
    const td_value *a = call->args;
    td_tensor *x = a[0].tensor, *y = NULL;
    td_value dims = a[2];
    int rows, columns, turns = (int)(((a[1].i % 4) + 4) % 4);
    td_status status = TD_OK;
    if (dims.n != 2)
        return td_fail(TD_EVALUE, "two dims expected, got %d", dims.n);
    TD_TRY(wrap_plane(x->ndim, TD_I(dims.ints[0]), TD_I(dims.ints[1]), &rows, &columns));
    const int64_t both[2] = {rows, columns};
    if (turns == 0)
        return TD_APPLY(&call->out[0], clone, TD_T(x), TD_STRING("contiguous"));
    if (turns == 2)
        return TD_APPLY(&call->out[0], flip, TD_T(x), TD_INTS(2, both));
    TD_TRY(TD_APPLY(&y, flip, TD_T(x), TD_INTS(1, turns == 1 ? both + 1 : both)));
    TD_TRY(TD_APPLY(&call->out[0], transpose, TD_T(y), TD_I(rows), TD_I(columns)));
done:
    td_release(y);
    return status;
}

/* ---- the table ---- */

/* Kernels that may still refuse the part. */
#define PART(name) .rule = rule_part, .kernel = name, .dtypes = TD_DTYPES_ALL
#define BLANK      "zeros(src.shape, dtype=g.dtype, device=g.device)"

TD_OPERATOR(diagonal) = {
    .schema = "(Tensor x, int offset=0, dim dim1=0, dim dim2=1) -> Tensor",
    .doc = "The diagonal of the matrices in two dims as the last dim, offset columns to the right.",
    .shapes = "x (...) -> (others(x, dim1, dim2)..., n); n = max(0, min(x[dim1] + min(offset, 0), "
              "x[dim2] - max(offset, 0)))",
    .run = run_diagonal,
    .gradient = "x: diagonal_backward(g, x.shape, offset, dim1, dim2)",
    .flags = TD_OP_VIEW,
};
TD_OPERATOR(diagonal_backward) = {
    .schema = "(Tensor part, int[] size, int offset, dim dim1, dim dim2) -> Tensor",
    .doc = "A diagonal in its place in a tensor of zeros.",
    .rule = rule_whole,
    .kernel = kernel_diagonal_backward,
    .dtypes = TD_DTYPES_ALL,
    .gradient = "part: diagonal(g, offset, dim1, dim2)",
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(diag_embed) = {
    .schema = "(Tensor x, int offset=0, dim dim1=-2, dim dim2=-1) -> Tensor",
    .doc = "Matrices of zeros with the last dim as their diagonal.",
    .shapes = "x (..., n) -> (sizes...); sizes: those before n, with n + abs(offset) inserted at "
              "dim1 and dim2",
    .rule = rule_diag_embed,
    .kernel = kernel_diag_embed,
    .dtypes = TD_DTYPES_ALL,
    .gradient = "x: diagonal(g, offset, dim1, dim2)",
};
TD_OPERATOR(diag) = {
    .schema = "(Tensor x, int diagonal=0) -> Tensor",
    .doc = "The matrix with this diagonal, or a copy of the diagonal of a matrix.",
    .shapes = "x (n) -> (n + abs(diagonal), n + abs(diagonal)) | x (n, m) -> (max(0, min(n + "
              "min(diagonal, 0), m - max(diagonal, 0))))",
    .formula = "if(x.ndim == 1, diag_embed(x, diagonal),"
               "   if(x.ndim == 2, clone(diagonal(x, diagonal), memory_format=\"contiguous\"),"
               "      error(\"needs a vector or a matrix, got shape %\", x.shape)))",
    .flags = TD_OP_OUT | TD_OP_OUT_EXACT,
};
TD_OPERATOR(diagflat) = {
    .schema = "(Tensor x, int offset=0) -> Tensor",
    .doc = "The matrix that has the elements of x on its diagonal.",
    .shapes = "x (...) -> (numel(x) + abs(offset), numel(x) + abs(offset))",
    .formula = "diag_embed(reshape(x, -1), offset)",
};
TD_OPERATOR(trace) = {
    .autocast = {[TD_CPU] = TD_AUTOCAST_FP32},
    .schema = "(Tensor x) -> Tensor",
    .doc = "The sum of a matrix's diagonal.",
    .shapes = "x (n, m) -> ()",
    .takes = "floating and integers; integers count as int64",
    .run = run_trace,
};
TD_OPERATOR(diagonal_scatter) = {
    .schema = "(Tensor x, Tensor src, int offset=0, dim dim1=0, dim dim2=1) -> Tensor",
    .doc = "A copy of x with src as the diagonal that diagonal would give.",
    .shapes = "x (...), src (others(x, dim1, dim2)..., n) -> (...); n = max(0, min(x[dim1] + "
              "min(offset, 0), x[dim2] - max(offset, 0)))",
    PART(kernel_diagonal_scatter),
    .gradient = "x: diagonal_scatter(g, " BLANK ", offset, dim1, dim2);"
                "src: diagonal(g, offset, dim1, dim2)",
};
TD_OPERATOR(select_scatter) = {
    .schema = "(Tensor x, Tensor src, dim dim, index index) -> Tensor",
    .doc = "A copy of x with src at one place along a dim.",
    .shapes = "x (...), src (...) without dim -> (...)",
    PART(kernel_select_scatter),
    .gradient = "x: select_scatter(g, " BLANK ", dim, index); src: select(g, dim, index)",
};
TD_OPERATOR(slice_scatter) = {
    .schema = "(Tensor x, Tensor src, dim dim=0, index? start=nil, int? stop=nil, int step=1) "
              "-> Tensor",
    .doc = "A copy of x with src at the places from start to stop, both included, along a dim.",
    .shapes = "x (...), src (...) with n at dim -> (...); n: the places from start to stop in "
              "steps of step",
    PART(kernel_slice_scatter),
    .gradient = "x: slice_scatter(g, " BLANK ", dim, start, stop, step);"
                "src: slice(g, dim, start, stop, step)",
    .flags = TD_OP_OUT | TD_OP_OUT_EXACT | TD_OP_REFUSES,
};
TD_OPERATOR(fill_diagonal_) = {
    .schema = "(Tensor x, number value, bool wrap=false) -> Tensor",
    .doc = "One value on the main diagonal, which begins anew below its end if wrap is true.",
    .rule = rule_fill_diagonal_,
    .kernel = kernel_fill_diagonal_,
    .dtypes = TD_DTYPES_ALL,
    .backward = grad_fill_diagonal_,
    .flags = TD_OP_INPLACE_ONLY | TD_OP_METHOD_ONLY | TD_OP_WRITES_SELF,
};
TD_OPERATOR(unfold) = {
    .schema = "(Tensor x, dim dimension, int size, int step) -> Tensor",
    .doc = "A view of windows of size places along a dim, one every step, as the last dim.",
    .shapes = "x () -> (size) | x (...) -> (with(x, dimension, n)..., size); n = (x[dimension] - "
              "size)//step + 1",
    .run = run_unfold,
    .gradient = "x: unfold_backward(g, x.shape, dimension, size, step)",
    .flags = TD_OP_VIEW | TD_OP_METHOD_ONLY,
};
TD_OPERATOR(unfold_backward) = {
    .schema = "(Tensor part, int[] size, dim dimension, int length, int step) -> Tensor",
    .doc = "Windows added in their places in a tensor of zeros.",
    .rule = rule_whole,
    .kernel = kernel_unfold_backward,
    .dtypes = TD_DTYPES_ALL,
    .gradient = "part: unfold(g, dimension, length, step)",
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(tril_indices) = {
    .schema = "(int row, int col, int offset=0, *, dtype? dtype=nil, device? device=nil) "
              "-> index Tensor",
    .doc = "Rows and columns of the places of a lower triangle.",
    .shapes = "-> (2, n); n: the places of the triangle",
    .run = run_tril_indices,
    .flags = TD_OP_FUNCTION_ONLY | TD_OP_NONDIFF,
};
TD_OPERATOR(triu_indices) = {
    .schema = "(int row, int col, int offset=0, *, dtype? dtype=nil, device? device=nil) "
              "-> index Tensor",
    .doc = "Rows and columns of the places of an upper triangle.",
    .shapes = "-> (2, n); n: the places of the triangle",
    .run = run_triu_indices,
    .flags = TD_OP_FUNCTION_ONLY | TD_OP_NONDIFF,
};
TD_OPERATOR(rot90) = {
    .schema = "(Tensor x, int k=1, dim[] dims={0, 1}) -> Tensor",
    .doc = "The plane of two dims turned k quarters from the first dim to the second.",
    .shapes = "x (...) -> (...) if k%2 == 0 | -> (swap(x, dims[1], dims[2])...)",
    .run = run_rot90,
};
TD_OPERATOR(fliplr) = {
    .schema = "(Tensor x) -> Tensor",
    .doc = "The columns in reverse order.",
    .shapes = "x (...) -> (...)",
    .formula = "if(x.ndim >= 2, flip(x, 1),"
               "   error(\"needs a tensor of at least 2 dims, got %\", x.ndim))",
};
TD_OPERATOR(flipud) = {
    .schema = "(Tensor x) -> Tensor",
    .doc = "The rows in reverse order.",
    .shapes = "x (...) -> (...)",
    .formula = "if(x.ndim >= 1, flip(x, 0), error(\"needs a tensor of at least 1 dim, got 0\"))",
};
