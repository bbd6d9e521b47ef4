/* repeat_split.c: composites of views, cat and index_select: repeat and repeat_interleave; hstack,
 * vstack and their kin, block_diag; atleast_1d to 3d; tensor_split, hsplit and their kin. */
#include "engine/core/interrupt.h"
#include "engine/core/memory.h"
#include "engine/ops/element_checks.h"
#include "engine/ops/make/copy.h"
#include "engine/ops/rule_helpers.h"

#include <string.h>

#define TD_FAMILY "repeat_split"

/* ---- lists ---- */

typedef struct tensor_list {
    int n;
    td_tensor **tensors; /* owned, as is the array */
} tensor_list;

static td_status open_list(int n, tensor_list *list) {
    *list = (tensor_list){n, td_calloc((size_t)(n ? n : 1), sizeof(td_tensor *))};
    return list->tensors ? TD_OK : td_fail(TD_ENOMEM, "out of memory");
}

static void close_list(tensor_list *list) {
    for (int k = 0; list->tensors && k < list->n; k++)
        td_release(list->tensors[k]);
    td_free(list->tensors);
}

/* ---- repeating ---- */

/* Shapes of a repetition: x as (1, s0, 1, s1, ...), that expanded, and the dims joined again; a dim
 * that is not repeated has no partner. False: more dims than there may be, or elements than can be
 * counted. */
typedef struct repetition {
    int napart, njoined;
    int64_t apart[TD_MAX_DIMS], wide[TD_MAX_DIMS], joined[TD_MAX_DIMS];
} repetition;

static bool plan_repetition(const td_tensor *x, td_value times, repetition *r) {
    int lead = times.n - x->ndim;
    *r = (repetition){.njoined = times.n};
    for (int d = 0; d < times.n; d++) {
        int64_t size = d < lead ? 1 : x->sizes[d - lead], count = times.ints[d];
        bool partner = count != 1 && d >= lead;
        if (r->napart + 1 + partner > TD_MAX_DIMS ||
            __builtin_mul_overflow(size, count, &r->joined[d]))
            return false;
        if (partner) {
            r->apart[r->napart] = 1;
            r->wide[r->napart++] = count;
        }
        r->apart[r->napart] = size;
        r->wide[r->napart++] = d < lead ? count : size;
    }
    return true;
}

static td_status run_repeat(td_call *call) {
    td_tensor *x = call->args[0].tensor, *y = NULL;
    td_value times = call->args[1];
    repetition r;
    char text[TD_SHAPE_TEXT];
    td_status status = TD_OK;
    if (times.n < x->ndim || times.n > TD_MAX_DIMS)
        return td_fail(TD_ESHAPE, "%d counts given for a tensor of %d dims: one for each, or more",
                       times.n, x->ndim);
    for (int d = 0; d < times.n; d++)
        if (times.ints[d] < 0)
            return td_fail(TD_EVALUE, "can't repeat %lld times", (long long)times.ints[d]);
    if (!plan_repetition(x, times, &r))
        return td_fail(TD_ESHAPE, "shape %s repeated so often is too large",
                       td_tensor_shape_text(x, text));
    TD_TRY(TD_APPLY(&y, reshape, TD_T(x), TD_INTS(r.napart, r.apart)));
    TD_STEP(&y, expand, TD_T(y), TD_INTS(r.napart, r.wide));
    TD_STEP(&y, clone, TD_T(y), TD_STRING("contiguous"));
    TD_TRY(TD_APPLY(&call->out[0], view, TD_T(y), TD_INTS(r.njoined, r.joined)));
done:
    td_release(y);
    return status;
}

static td_refusal negative_count = {{"lt(x, 0)", NULL}, TD_EVALUE, "repeats must not be negative"};

/* For each result its place along the dim: place k stands there counts[k] times. A one is set where
 * each place ends; their running sum is how many have ended before. */
static td_status places_of(td_tensor *counts, int64_t total, td_tensor **out) {
    td_tensor *ends = NULL, *marks = NULL, *ones = NULL;
    td_device device = td_tensor_device(counts);
    const int64_t size = total + 1;
    td_status status = TD_OK;
    TD_TRY(TD_APPLY(&ends, cumsum, TD_T(counts), TD_I(0)));
    TD_TRY(TD_APPLY(&marks, zeros, TD_INTS(1, &size), TD_DTYPE(TD_I64), TD_DEVICE(device)));
    TD_TRY(TD_APPLY(&ones, ones_like, TD_T(ends)));
    TD_TRY(TD_APPLY_INPLACE(index_add, TD_T(marks), TD_I(0), TD_T(ends), TD_T(ones)));
    TD_STEP(&marks, cumsum, TD_T(marks), TD_I(0));
    TD_TRY(TD_APPLY(out, slice, TD_T(marks), TD_I(0), TD_I(0), TD_I(total)));
done:
    td_release(ends);
    td_release(marks);
    td_release(ones);
    return status;
}

static td_status repeat_by_tensor(td_tensor *x, int dim, td_tensor *repeats, td_value wanted,
                                  td_tensor **out) {
    td_tensor *counts = NULL, *total = NULL, *places = NULL;
    int64_t n, flat = x->sizes[dim];
    td_status status = TD_OK;
    if (repeats->dtype != TD_I32 && repeats->dtype != TD_I64)
        return td_fail(TD_EDTYPE, "repeats must be int32 or int64, got %s",
                       td_dtype_name((td_dtype)repeats->dtype));
    if (repeats->ndim > 1 || (repeats->numel != 1 && repeats->numel != flat))
        return td_fail(TD_ESHAPE, "repeats holds %lld numbers, dim %d has size %lld",
                       (long long)repeats->numel, dim + 1, (long long)flat);
    TD_TRY(td_refuse(&negative_count, repeats));
    TD_TRY(TD_APPLY(&counts, reshape, TD_T(repeats), TD_INTS(1, (int64_t[]){-1})));
    TD_STEP(&counts, expand, TD_T(counts), TD_INTS(1, &flat));
    TD_STEP(&counts, to, TD_T(counts), TD_DTYPE(TD_I64));
    TD_TRY(TD_APPLY(&total, sum, TD_T(counts)));
    TD_TRY(td_tensor_item_int(total, &n));
    if (!td_is_nil(wanted) && wanted.i != n) {
        status = td_fail(TD_EVALUE, "output_size is %lld, repeats sum to %lld", (long long)wanted.i,
                         (long long)n);
        goto done;
    }
    TD_TRY(places_of(counts, n, &places));
    TD_TRY(TD_APPLY(out, index_select, TD_T(x), TD_I(dim), TD_T(places)));
done:
    td_release(counts);
    td_release(total);
    td_release(places);
    return status;
}

/* Each place along the dim so many times: expanded behind the dim, then joined with it. */
static td_status repeat_by_number(td_tensor *x, int dim, int64_t count, td_tensor **out) {
    int64_t sizes[TD_MAX_DIMS + 1], joined[TD_MAX_DIMS];
    td_tensor *y = NULL;
    td_status status = TD_OK;
    if (count < 0)
        return td_fail(TD_EVALUE, "repeats must not be negative, got %lld", (long long)count);
    memcpy(joined, x->sizes, sizeof(int64_t) * x->ndim);
    if (__builtin_mul_overflow(joined[dim], count, &joined[dim]))
        return td_fail(TD_ESHAPE, "can't repeat %lld times", (long long)count);
    TD_TRY(TD_APPLY(&y, unsqueeze, TD_T(x), TD_I(dim + 1)));
    memcpy(sizes, y->sizes, sizeof(int64_t) * y->ndim);
    sizes[dim + 1] = count;
    TD_STEP(&y, expand, TD_T(y), TD_INTS(y->ndim, sizes));
    TD_STEP(&y, clone, TD_T(y), TD_STRING("contiguous"));
    TD_TRY(TD_APPLY(out, view, TD_T(y), TD_INTS(x->ndim, joined)));
done:
    td_release(y);
    return status;
}

/* repeat_interleave(repeats): the places themselves. */
static td_status repeat_places(td_call *call) {
    td_tensor *repeats = call->args[0].tensor, *range = NULL;
    td_status status = td_check_ndim(repeats, "repeats", 1);
    if (status == TD_OK)
        status = TD_APPLY(&range, arange, TD_I(1), TD_I(repeats->numel + 1), TD_I(1),
                          TD_DTYPE((td_dtype)repeats->dtype), TD_DEVICE(td_tensor_device(repeats)));
    if (status == TD_OK)
        status = repeat_by_tensor(range, 0, repeats, call->args[3], &call->out[0]);
    td_release(range);
    return status;
}

static td_status run_repeat_interleave(td_call *call) {
    const td_value *a = call->args;
    td_tensor *x = NULL;
    int dim = 0;
    td_status status = TD_OK;
    if (td_is_nil(a[1]))
        return repeat_places(call);
    if (td_is_nil(a[2]) || a[0].tensor->ndim == 0)
        TD_TRY(TD_APPLY(&x, reshape, a[0], TD_INTS(1, (int64_t[]){-1})));
    else
        x = td_retain(a[0].tensor);
    if (!td_is_nil(a[2]))
        TD_TRY(td_wrap_dim(a[2].i, x->ndim, &dim));
    if (a[1].kind == TD_KIND_FLOAT)
        status = td_fail(TD_EVALUE, "repeats must be an integer, got %g", a[1].f);
    else if (a[1].kind == TD_KIND_TENSOR)
        status = repeat_by_tensor(x, dim, a[1].tensor, a[3], &call->out[0]);
    else
        status = repeat_by_number(x, dim, a[1].i, &call->out[0]);
    if (status == TD_OK && !td_is_nil(a[3]) && call->out[0]->sizes[dim] != a[3].i)
        status = td_fail(TD_EVALUE, "output_size is %lld, the result has %lld places",
                         (long long)a[3].i, (long long)call->out[0]->sizes[dim]);
done:
    td_release(x);
    return status;
}

/* ---- joining ---- */

/* The tensors, each brought to at least `least` dims, joined along a dim. */
static td_status join(td_call *call, const td_op *raise, int dim) {
    td_value list = call->args[0];
    tensor_list raised;
    td_status status = open_list(list.n, &raised);
    for (int k = 0; k < list.n && status == TD_OK; k++)
        status = td_op_apply(raise, &raised.tensors[k], 1, (td_value[]){TD_T(list.tensors[k])});
    if (dim < 0 && status == TD_OK) /* columns: vectors have none */
        dim = list.n && raised.tensors[0]->ndim == 1 ? 0 : 1;
    if (status == TD_OK)
        status = TD_APPLY(&call->out[0], cat, TD_TENSORS(raised.n, raised.tensors), TD_I(dim));
    close_list(&raised);
    return status;
}

static td_status run_hstack(td_call *call) {
    return join(call, TD_OP(atleast_1d), -1);
}
static td_status run_vstack(td_call *call) {
    return join(call, TD_OP(atleast_2d), 0);
}
static td_status run_dstack(td_call *call) {
    return join(call, TD_OP(atleast_3d), 2);
}
static td_status run_column_stack(td_call *call) {
    return join(call, TD_OP(as_columns), 1);
}

static td_status rule_place_blocks(const td_call *call, td_meta *out) {
    td_value blocks = call->args[0];
    out->dtype = (td_dtype)blocks.tensors[0]->dtype;
    out->ndim = 2;
    out->sizes[0] = out->sizes[1] = 0;
    for (int k = 0; k < blocks.n; k++) {
        const td_tensor *x = blocks.tensors[k];
        out->dtype = td_dtype_promote(out->dtype, (td_dtype)x->dtype);
        const char *many =
            __builtin_add_overflow(out->sizes[1], x->sizes[1], &out->sizes[1])   ? "columns"
            : __builtin_add_overflow(out->sizes[0], x->sizes[0], &out->sizes[0]) ? "rows"
                                                                                 : NULL;
        if (many)
            return td_fail(TD_ENOMEM, "out of memory: more than 2^63 - 1 %s", many);
    }
    td_meta_lay(TD_ROW_MAJOR, out);
    return TD_OK;
}

static td_status kernel_place_blocks(td_call *call) {
    td_value blocks = call->args[0];
    td_tensor *out = call->out[0];
    int64_t offset = 0;
    td_status status = td_fill_int(out, 0);
    for (int k = 0; k < blocks.n && status == TD_OK; k++) {
        const td_tensor *x = blocks.tensors[k];
        td_tensor *place = NULL;
        if (x->numel > 0)
            status = td_tensor_view(out, 2, x->sizes, out->strides, offset, &place);
        if (place && status == TD_OK)
            status = td_copy_into(place, x);
        td_release(place);
        offset += x->sizes[0] * out->strides[0] + x->sizes[1] * out->strides[1];
    }
    return status;
}

static td_status grad_place_blocks(td_grad *grad) {
    td_tensor *g = grad->gout[0];
    int64_t top = 0, left = 0;
    td_status status = TD_OK;
    for (int k = 0; k < grad->args[0].n && status == TD_OK; k++) {
        int ndim, slot = td_grad_slot(grad, 0, k);
        const int64_t *sizes = td_grad_shape(grad, slot, &ndim);
        td_tensor *rows = NULL;
        if (td_grad_needs(grad, slot))
            status = TD_APPLY(&rows, slice, TD_T(g), TD_I(0), TD_I(top), TD_I(top + sizes[0]));
        if (rows && status == TD_OK)
            status = TD_APPLY(&grad->in[slot], slice, TD_T(rows), TD_I(1), TD_I(left),
                              TD_I(left + sizes[1]));
        td_release(rows);
        top += sizes[0];
        left += sizes[1];
    }
    return status;
}

static td_status run_block_diag(td_call *call) {
    td_value list = call->args[0];
    tensor_list blocks;
    char text[TD_SHAPE_TEXT];
    td_status status = TD_OK;
    if (list.n == 0)
        return TD_APPLY(&call->out[0], zeros, TD_INTS(2, ((const int64_t[]){1, 0})));
    TD_TRY(open_list(list.n, &blocks));
    for (int k = 0; k < list.n; k++) {
        if (list.tensors[k]->ndim > 2) {
            status = td_fail(TD_ESHAPE, "tensor %d has shape %s, at most 2 dims are possible",
                             k + 1, td_tensor_shape_text(list.tensors[k], text));
            goto done;
        }
        TD_TRY(TD_APPLY(&blocks.tensors[k], atleast_2d, TD_T(list.tensors[k])));
    }
    status = TD_APPLY(&call->out[0], place_blocks, TD_TENSORS(blocks.n, blocks.tensors));
done:
    close_list(&blocks);
    return status;
}

/* ---- cutting ---- */

/* At the places where[0], where[1], ...: each part goes from one to the next. */
static td_status cut_at(td_call *call, int dim, int n, const int64_t *where) {
    td_tensor *x = call->args[0].tensor;
    int64_t size = x->sizes[dim];
    td_status status = td_call_open_list(call, n + 1);
    for (int64_t k = 0, from = 0; k <= n && status == TD_OK; k++) {
        int64_t to = k == n ? size : where[k];
        to = to < 0 ? to + size : to;
        to = to < 0 ? 0 : to > size ? size : to;
        status = TD_APPLY(&call->list[k], slice, TD_T(x), TD_I(dim), TD_I(from),
                          TD_I(to < from ? from : to));
        from = to;
    }
    return status;
}

/* Into n parts, of which the first are larger by one where they don't come out even. */
static td_status cut_into(td_call *call, int dim, int64_t n) {
    td_tensor *x = call->args[0].tensor;
    int64_t size = x->sizes[dim];
    if (n < 1)
        return td_fail(TD_EVALUE, "at least 1 part expected, got %lld", (long long)n);
    td_status status = td_call_open_list(call, n);
    for (int64_t k = 0, from = 0; k < call->nlist && status == TD_OK; k++) {
        int64_t to = from + size / n + (k < size % n);
        status = td_interrupt_check();
        if (status == TD_OK)
            status = TD_APPLY(&call->list[k], slice, TD_T(x), TD_I(dim), TD_I(from), TD_I(to));
        from = to;
    }
    return status;
}

static td_status cut(td_call *call, int dim, bool evenly) {
    td_tensor *x = call->args[0].tensor;
    td_value how = call->args[1];
    if (how.kind == TD_KIND_INTS)
        return cut_at(call, dim, how.n, how.ints);
    if (evenly && how.i > 0 && x->sizes[dim] % how.i)
        return td_fail(TD_ESHAPE, "dim %d of size %lld can't be cut into %lld equal parts", dim + 1,
                       (long long)x->sizes[dim], (long long)how.i);
    return cut_into(call, dim, how.i);
}

static td_status run_tensor_split(td_call *call) {
    td_tensor *x = call->args[0].tensor;
    int dim;
    if (x->ndim == 0)
        return td_fail(TD_ESHAPE, "a 0-dim tensor has no parts");
    td_status status = td_wrap_dim(call->args[2].i, x->ndim, &dim);
    return status ? status : cut(call, dim, false);
}

static td_status cut_dim(td_call *call, int least, int dim) {
    td_tensor *x = call->args[0].tensor;
    if (x->ndim < least)
        return td_fail(TD_ESHAPE, "needs a tensor of at least %d dims, got %d", least, x->ndim);
    return cut(call, dim, true);
}

static td_status run_hsplit(td_call *call) {
    return cut_dim(call, 1, call->args[0].tensor->ndim > 1);
}
static td_status run_vsplit(td_call *call) {
    return cut_dim(call, 2, 0);
}
static td_status run_dsplit(td_call *call) {
    return cut_dim(call, 3, 2);
}

/* ---- the table ---- */

TD_OPERATOR(repeat) = {
    .schema = "(Tensor x, int[] sizes) -> Tensor",
    .doc = "x so many times along each dim. The name is a keyword of Lua: x:rep(2, 3) is the same.",
    .shapes = "x (...) -> (times(x, sizes)...)",
    .run = run_repeat,
};
TD_OPERATOR(rep) = {
    .schema = "(Tensor x, int[] sizes) -> Tensor",
    .doc = "x so many times along each dim: PyTorch's repeat, which is a keyword of Lua.",
    .shapes = "x (...) -> (times(x, sizes)...)",
    .formula = "repeat(x, sizes)",
};
TD_OPERATOR(repeat_interleave) = {
    .schema = "(Tensor x, Tensor|number? repeats=nil, dim? dim=nil, *, int? output_size=nil) "
              "-> Tensor",
    .doc =
        "Each place along a dim (of the flattened x) so many times; of counts alone, the places.",
    .shapes = "x (...), repeats (counts...) -> (...) with n at dim if dim ~= nil | -> (n); counts: "
              "one, or one for each place; n: all repeats added up",
    .run = run_repeat_interleave,
    .flags = TD_OP_BY_ELEMENTS,
};
TD_OPERATOR(atleast_1d) = {
    .schema = "(Tensor x) -> Tensor",
    .doc = "x, or a view with as many dims.",
    .shapes = "x () -> (1) | x (...) -> (...)",
    .formula = "if(x.ndim == 0, view(x, 1), x)",
};
TD_OPERATOR(atleast_2d) = {
    .schema = "(Tensor x) -> Tensor",
    .doc = "x, or a view with as many dims: a vector becomes a row.",
    .shapes = "x () -> (1, 1) | x (n) -> (1, n) | x (...) -> (...)",
    .formula = "if(x.ndim == 0, view(x, {1, 1}), if(x.ndim == 1, unsqueeze(x, 0), x))",
};
TD_OPERATOR(atleast_3d) = {
    .schema = "(Tensor x) -> Tensor",
    .doc = "x, or a view with as many dims: a matrix gets a last one.",
    .shapes = "x () -> (1, 1, 1) | x (n) -> (1, n, 1) | x (n, m) -> (n, m, 1) | x (...) -> (...)",
    .formula = "if(x.ndim == 0, view(x, {1, 1, 1}),"
               "   if(x.ndim == 1, unsqueeze(unsqueeze(x, 0), -1),"
               "      if(x.ndim == 2, unsqueeze(x, -1), x)))",
};
TD_OPERATOR(as_columns) = {
    .schema = "(Tensor x) -> Tensor",
    .doc = "x; a vector or a number becomes a column.",
    .formula = "if(x.ndim <= 1, reshape(x, {x.numel, 1}), x)",
    .flags = TD_OP_INTERNAL,
};
#define JOIN(fn) .run = fn, .autocast = {[TD_CPU] = TD_AUTOCAST_PROMOTE}
TD_OPERATOR(hstack) = {
    .schema = "(Tensor[] tensors) -> Tensor",
    .doc = "Tensors side by side: along the second dim, vectors along the only one.",
    .shapes =
        "tensors {(own...)} -> (n) if #tensors[1] <= 1 | tensors {(...) with m at 2} -> (...) with "
        "sum(tensors, 2) at 2; own: () or one size; n: the elements of all; m: its own",
    .takes = "any, promoted",
    JOIN(run_hstack),
    .flags = TD_OP_OUT,
};
TD_OPERATOR(vstack) = {
    .schema = "(Tensor[] tensors) -> Tensor",
    .doc = "Tensors one below the other: along the first dim, vectors as rows.",
    .shapes = "tensors {()} -> (#tensors, 1) | tensors {(m)} -> (#tensors, m) | tensors {(...) "
              "with n at 1} -> (...) with sum(tensors, 1) at 1; n: its own",
    .takes = "any, promoted",
    JOIN(run_vstack),
    .flags = TD_OP_OUT | TD_OP_OUT_APART,
};
TD_OPERATOR(row_stack) = {
    .schema = "(Tensor[] tensors) -> Tensor",
    .doc = "Another name for vstack.",
    .shapes = "tensors {()} -> (#tensors, 1) | tensors {(m)} -> (#tensors, m) | tensors {(...) "
              "with n at 1} -> (...) with sum(tensors, 1) at 1; n: its own",
    .takes = "any, promoted",
    JOIN(run_vstack),
    .flags = TD_OP_OUT | TD_OP_OUT_APART,
};
TD_OPERATOR(dstack) = {
    .schema = "(Tensor[] tensors) -> Tensor",
    .doc = "Tensors one behind the other: along the third dim.",
    .shapes = "tensors {()} -> (1, 1, #tensors) | tensors {(m)} -> (1, m, #tensors) | tensors {(m, "
              "k)} -> (m, k, #tensors) | tensors {(...) with n at 3} -> (...) with sum(tensors, 3) "
              "at 3; n: its own",
    .takes = "any, promoted",
    JOIN(run_dstack),
    .flags = TD_OP_OUT,
};
TD_OPERATOR(column_stack) = {
    .schema = "(Tensor[] tensors) -> Tensor",
    .doc = "Vectors as the columns of a matrix; matrices side by side.",
    .shapes = "tensors {(own...)} -> (n, m, others...); own: (n), or (n, columns, others...); m: "
              "the columns of all, one of each vector; n: its rows; others: the same of all",
    .takes = "any, promoted",
    JOIN(run_column_stack),
    .flags = TD_OP_OUT | TD_OP_OUT_APART,
};
TD_OPERATOR(place_blocks) = {
    .schema = "(Tensor[] blocks) -> Tensor",
    .doc = "Matrices as the blocks along the diagonal of one, zeros elsewhere.",
    .rule = rule_place_blocks,
    .kernel = kernel_place_blocks,
    .dtypes = TD_DTYPES_ALL,
    .backward = grad_place_blocks,
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(block_diag) = {
    .schema = "(Tensor... tensors) -> Tensor",
    .doc = "A matrix with the tensors as blocks along its diagonal, zeros elsewhere.",
    .shapes = "tensors {(sizes...)} -> (n, m); sizes: two at most; n: the rows of all; m: the "
              "columns of all",
    .takes = "any, promoted",
    .run = run_block_diag,
    .flags = TD_OP_FUNCTION_ONLY,
};
TD_OPERATOR(tensor_split) = {
    .schema = "(Tensor x, int|int[] indices_or_sections, dim dim=0) -> Tensor[]",
    .doc = "So many parts along a dim, or a cut behind each of the numbers of places given.",
    .shapes = "x (...) -> {(...) with n at dim}; n: parts that differ by 1 at most, or those "
              "between the indices",
    .run = run_tensor_split,
};
TD_OPERATOR(hsplit) = {
    .schema = "(Tensor x, int|int[] indices_or_sections) -> Tensor[]",
    .doc = "Equal parts side by side, or a cut behind each of the numbers of columns given.",
    .shapes = "x (...) -> {(...) with n at d}; d = 1 if #x == 1 else 2; n: as tensor_split has it",
    .run = run_hsplit,
};
TD_OPERATOR(vsplit) = {
    .schema = "(Tensor x, int|int[] indices_or_sections) -> Tensor[]",
    .doc = "Equal parts one below the other, or a cut behind each of the numbers of rows given.",
    .shapes = "x (...) -> {(...) with n at 1}; n: as tensor_split has it",
    .run = run_vsplit,
};
TD_OPERATOR(dsplit) = {
    .schema = "(Tensor x, int|int[] indices_or_sections) -> Tensor[]",
    .doc = "Equal parts along the third dim, or a cut behind each of the numbers of places given.",
    .shapes = "x (...) -> {(...) with n at 3}; n: as tensor_split has it",
    .run = run_dsplit,
};
