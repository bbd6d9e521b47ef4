/* cat_split.c: cat and stack; unbind, chunk and split; tile, flip and roll. What is composed of
 * these is in repeat_split.c. */
#include "engine/core/interrupt.h"
#include "engine/core/memory.h"
#include "engine/ops/make/copy.h"
#include "engine/ops/quantized/quantized.h"
#include "engine/ops/rule_helpers.h"

#include <string.h>

#define TD_FAMILY "cat_split"

/* ---- lists of parts ---- */

/* The dim that is cut up. */
static td_status cut_dim(td_call *call, int param, int *dim) {
    td_tensor *x = call->args[0].tensor;
    if (x->ndim == 0)
        return td_fail(TD_ESHAPE, "a 0-dim tensor has no parts");
    return td_wrap_dim(call->args[param].i, x->ndim, dim);
}

static td_status run_unbind(td_call *call) {
    int dim;
    td_tensor *x = call->args[0].tensor;
    td_status status = cut_dim(call, 1, &dim);
    if (status == TD_OK)
        status = td_call_open_list(call, x->sizes[dim]);
    for (int k = 0; k < call->nlist && status == TD_OK; k++) {
        status = td_interrupt_check();
        if (status == TD_OK)
            status = TD_APPLY(&call->list[k], select, TD_T(x), TD_I(dim), TD_I(k));
    }
    return status;
}

/* Parts of `size` elements, the last perhaps smaller. */
static td_status cut_evenly(td_call *call, int dim, int64_t size) {
    td_tensor *x = call->args[0].tensor;
    int64_t all = x->sizes[dim];
    td_status status = td_call_open_list(call, all == 0 ? 1 : (all - 1) / size + 1);
    for (int64_t k = 0, from = 0; k < call->nlist && status == TD_OK; k++) {
        int64_t to = size < all - from ? from + size : all;
        status = td_interrupt_check();
        if (status == TD_OK)
            status = TD_APPLY(&call->list[k], slice, TD_T(x), TD_I(dim), TD_I(from), TD_I(to));
        from = to;
    }
    return status;
}

static td_status run_chunk(td_call *call) {
    int dim;
    int64_t n = call->args[1].i;
    td_status status = cut_dim(call, 2, &dim);
    if (status)
        return status;
    if (n < 1)
        return td_fail(TD_EVALUE, "chunks must be at least 1, got %lld", (long long)n);
    int64_t all = call->args[0].tensor->sizes[dim];
    return cut_evenly(call, dim, all == 0 ? 1 : (all - 1) / n + 1);
}

static td_status run_split(td_call *call) {
    td_value sizes = call->args[1];
    td_tensor *x = call->args[0].tensor;
    int64_t total = 0, from = 0;
    bool more = false; /* than int64 counts */
    int dim;
    td_status status = cut_dim(call, 2, &dim);
    if (status)
        return status;
    for (int k = 0; k < sizes.n; k++) {
        if (sizes.n > 1 && sizes.ints[k] > x->sizes[dim])
            return td_fail(TD_ESHAPE, "part %d has size %lld, dim %d has size %lld", k + 1,
                           (long long)sizes.ints[k], dim + 1, (long long)x->sizes[dim]);
        if (sizes.ints[k] < (sizes.n == 1 ? 1 : 0))
            return td_fail(TD_EVALUE, "a part must have at least 1 element, got %lld",
                           (long long)sizes.ints[k]);
        more |= __builtin_add_overflow(total, sizes.ints[k], &total);
    }
    if (sizes.n == 1)
        return cut_evenly(call, dim, sizes.ints[0]);
    if (more || total != x->sizes[dim])
        return td_fail(TD_ESHAPE, "the parts sum to %lld%s, dim %d has size %lld",
                       more ? INT64_MAX : (long long)total, more ? " and more" : "", dim + 1,
                       (long long)x->sizes[dim]);
    status = td_call_open_list(call, sizes.n);
    for (int k = 0; k < call->nlist && status == TD_OK; k++) {
        status = TD_APPLY(&call->list[k], slice, TD_T(x), TD_I(dim), TD_I(from),
                          TD_I(from + sizes.ints[k]));
        from += sizes.ints[k];
    }
    return status;
}

/* Unlike split's, one size is the whole dim's. */
static td_status run_split_with_sizes(td_call *call) {
    td_value sizes = call->args[1];
    const td_tensor *x = call->args[0].tensor;
    int dim;
    td_status status = cut_dim(call, 2, &dim);
    if (status || sizes.n != 1)
        return status ? status : run_split(call);
    if (sizes.ints[0] != x->sizes[dim])
        return td_fail(TD_ESHAPE, "the parts sum to %lld, dim %d has size %lld",
                       (long long)sizes.ints[0], dim + 1, (long long)x->sizes[dim]);
    status = td_call_open_list(call, 1);
    return status ? status
                  : TD_APPLY(&call->list[0], slice, call->args[0], TD_I(dim), TD_I(0),
                             TD_I(sizes.ints[0]));
}

/* ---- joining ---- */

/* An empty 1-dim tensor joins anything (as in PyTorch, for loops that start from nothing). */
static bool is_nothing(const td_tensor *x) {
    return x->ndim == 1 && x->sizes[0] == 0;
}

static td_status check_joins(const td_tensor *first, const td_tensor *x, int k, int dim) {
    char a[TD_SHAPE_TEXT], b[TD_SHAPE_TEXT];
    bool fits = x->ndim == first->ndim;
    for (int d = 0; fits && d < x->ndim; d++)
        fits = d == dim || x->sizes[d] == first->sizes[d];
    if (!fits)
        return td_fail(TD_ESHAPE, "tensor %d of shape %s doesn't join %s along dim %d", k + 1,
                       td_tensor_shape_text(x, a), td_tensor_shape_text(first, b), dim + 1);
    if (!td_device_same(td_tensor_device(x), td_tensor_device(first)))
        return td_fail(TD_EDEVICE, "tensor %d lies on another device than the first", k + 1);
    return TD_OK;
}

static td_status rule_cat(const td_call *call, td_meta *out) {
    td_value list = call->args[0];
    const td_tensor *first = NULL;
    int dim;
    if (list.n == 0)
        return td_fail(TD_EVALUE, "a list of at least one tensor expected");
    for (int k = 0; k < list.n && !first; k++)
        first = is_nothing(list.tensors[k]) ? NULL : list.tensors[k];
    first = first ? first : list.tensors[0];
    if (first->ndim == 0)
        return td_fail(TD_ESHAPE, "0-dim tensors can't be joined: stack them");
    td_status status = td_wrap_dim(call->args[1].i, first->ndim, &dim);
    if (status)
        return status;
    bool last = true, last_3d = true; /* are all of them channels_last? */
    out->dtype = (td_dtype)list.tensors[0]->dtype;
    out->ndim = first->ndim;
    memcpy(out->sizes, first->sizes, sizeof(int64_t) * first->ndim);
    out->sizes[dim] = 0;
    for (int k = 0; k < list.n; k++) {
        const td_tensor *x = list.tensors[k];
        out->dtype = td_dtype_promote(out->dtype, (td_dtype)x->dtype);
        last &= td_tensor_format(x) == TD_CHANNELS_LAST;
        last_3d &= td_tensor_format(x) == TD_CHANNELS_LAST_3D;
        if (is_nothing(x))
            continue;
        status = check_joins(first, x, k, dim);
        if (status)
            return status;
        if (__builtin_add_overflow(out->sizes[dim], x->sizes[dim], &out->sizes[dim]))
            return td_fail(TD_ESHAPE, "the result would have more than 2^63 - 1 places in dim %d",
                           dim + 1);
    }
    td_meta_lay(last ? TD_CHANNELS_LAST : last_3d ? TD_CHANNELS_LAST_3D : TD_ROW_MAJOR, out);
    return TD_OK;
}

static td_status kernel_cat(td_call *call) {
    td_tensor *out = call->out[0];
    td_value list = call->args[0];
    int64_t at = 0;
    int dim;
    td_status status = td_wrap_dim(call->args[1].i, out->ndim, &dim);
    for (int k = 0; k < list.n && status == TD_OK; k++) {
        const td_tensor *x = list.tensors[k];
        td_tensor *place = NULL;
        if (is_nothing(x))
            continue;
        status =
            td_tensor_view(out, out->ndim, x->sizes, out->strides, at * out->strides[dim], &place);
        if (status == TD_OK)
            status = td_copy_into(place, x);
        td_release(place);
        at += x->sizes[dim];
    }
    return status;
}

static td_status grad_cat(td_grad *grad) {
    td_tensor *g = grad->gout[0];
    int64_t at = 0;
    int dim;
    td_status status = td_wrap_dim(grad->args[1].i, g->ndim, &dim);
    for (int k = 0; k < grad->args[0].n && status == TD_OK; k++) {
        int ndim, slot = td_grad_slot(grad, 0, k);
        const int64_t *sizes = td_grad_shape(grad, slot, &ndim);
        if (ndim == 1 && sizes[0] == 0)
            continue;
        if (td_grad_needs(grad, slot))
            status = TD_APPLY(&grad->in[slot], slice, TD_T(g), TD_I(dim), TD_I(at),
                              TD_I(at + sizes[dim]));
        at += sizes[dim];
    }
    return status;
}

static td_status run_stack(td_call *call) {
    td_value list = call->args[0];
    td_status status = TD_OK;
    char a[TD_SHAPE_TEXT], b[TD_SHAPE_TEXT];
    int dim;
    if (list.n == 0)
        return td_fail(TD_EVALUE, "a list of at least one tensor expected");
    const td_tensor *first = list.tensors[0];
    status = td_wrap_dim(call->args[1].i, first->ndim + 1, &dim);
    if (status)
        return status;
    for (int k = 1; k < list.n; k++)
        if (!td_tensor_same_shape(first, list.tensors[k]))
            return td_fail(TD_ESHAPE, "tensor %d has shape %s, the first %s", k + 1,
                           td_tensor_shape_text(list.tensors[k], a),
                           td_tensor_shape_text(first, b));
    td_tensor **rows = td_calloc((size_t)list.n, sizeof *rows);
    if (!rows)
        return td_fail(TD_ENOMEM, "out of memory");
    for (int k = 0; k < list.n && status == TD_OK; k++)
        status = TD_APPLY(&rows[k], unsqueeze, TD_T(list.tensors[k]), TD_I(dim));
    if (status == TD_OK)
        status = TD_APPLY(&call->out[0], cat, TD_TENSORS(list.n, rows), TD_I(dim));
    for (int k = 0; k < list.n; k++)
        td_release(rows[k]);
    td_free(rows);
    return status;
}

/* ---- repeating and turning ---- */

/* x `count` times along a dim: a dim of that many before it, joined with it. */
static td_status repeat_dim(td_tensor *x, int dim, int64_t count, td_tensor **out) {
    td_tensor *apart = NULL, *wide = NULL;
    int64_t sizes[TD_MAX_DIMS + 1], joined[TD_MAX_DIMS];
    td_status status = TD_OK;
    *out = NULL;
    TD_TRY(TD_APPLY(&apart, unsqueeze, TD_T(x), TD_I(dim)));
    memcpy(sizes, apart->sizes, sizeof(int64_t) * apart->ndim);
    memcpy(joined, x->sizes, sizeof(int64_t) * x->ndim);
    sizes[dim] = count;
    if (__builtin_mul_overflow(joined[dim], count, &joined[dim])) {
        status = td_fail(TD_ESHAPE, "can't repeat %lld times", (long long)count);
        goto done;
    }
    TD_TRY(TD_APPLY(&wide, expand, TD_T(apart), TD_INTS(apart->ndim, sizes)));
    TD_TRY(TD_APPLY(out, reshape, TD_T(wide), TD_INTS(x->ndim, joined)));
done:
    td_release(apart);
    td_release(wide);
    return status;
}

static td_status run_tile(td_call *call) {
    td_tensor *x = call->args[0].tensor, *y = NULL, *next;
    td_value times = call->args[1];
    int64_t sizes[TD_MAX_DIMS];
    int n = times.n > x->ndim ? times.n : x->ndim;
    td_status status = TD_OK;
    if (n > TD_MAX_DIMS)
        return td_fail(TD_ESHAPE, "a tensor has at most %d dims, got %d", TD_MAX_DIMS, n);
    for (int d = 0; d < n; d++)
        sizes[d] = d < n - x->ndim ? 1 : x->sizes[d - (n - x->ndim)];
    TD_TRY(TD_APPLY(&y, reshape, TD_T(x), TD_INTS(n, sizes)));
    for (int k = 0; k < times.n; k++) {
        int64_t count = times.ints[k];
        int dim = n - times.n + k;
        if (count < 0) {
            status = td_fail(TD_EVALUE, "can't repeat %lld times", (long long)count);
            goto done;
        }
        if (count == 1)
            continue;
        status = repeat_dim(y, dim, count, &next);
        if (status)
            goto done;
        td_release(y);
        y = next;
    }
    if (y->storage == x->storage) /* nothing was repeated: a copy all the same */
        TD_STEP(&y, clone, TD_T(y), TD_STRING("contiguous"));
    call->out[0] = td_retain(y);
done:
    td_release(y);
    return status;
}

/* The result lies as x does. */
static td_status rule_flip(const td_call *call, td_meta *out) {
    const td_tensor *x = call->args[0].tensor;
    td_status status = td_rule_same(call, out);
    return status ? status : td_meta_format(TD_STRING("preserve"), x, out);
}

/* A copy from a view that runs backwards. */
static td_status kernel_flip(td_call *call) {
    td_tensor *x = call->args[0].tensor, *turned = NULL;
    td_value dims = call->args[1];
    int64_t strides[TD_MAX_DIMS], offset = 0;
    uint32_t seen = 0;
    int dim;
    td_status status;
    memcpy(strides, x->strides, sizeof(int64_t) * x->ndim);
    for (int k = 0; k < dims.n; k++) {
        status = td_wrap_dim(dims.ints[k], x->ndim, &dim);
        if (status)
            return status;
        if (seen >> dim & 1)
            return td_fail(TD_EVALUE, "dim %d is given twice", dim + 1);
        seen |= 1u << dim;
        if (x->ndim == 0 || x->sizes[dim] < 2)
            continue;
        offset += strides[dim] * (x->sizes[dim] - 1);
        strides[dim] = -strides[dim];
    }
    status = td_tensor_view(x, x->ndim, x->sizes, strides, x->numel ? offset : 0, &turned);
    if (status == TD_OK)
        status = td_copy_into(call->out[0], turned);
    td_release(turned);
    return status;
}

/* Roll along one dim: what lies behind the cut comes first. */
static td_status roll_dim(td_tensor *x, int64_t shift, int64_t wanted, td_tensor **out) {
    td_tensor *parts[2] = {NULL, NULL};
    td_status status = TD_OK;
    int dim;
    TD_TRY(td_wrap_dim(wanted, x->ndim, &dim));
    int64_t size = x->ndim ? x->sizes[dim] : 1;
    int64_t rest = size ? shift % size : 0, cut = rest > 0 ? size - rest : -rest;
    if (cut == 0)
        return TD_APPLY(out, clone, TD_T(x));
    TD_TRY(TD_APPLY(&parts[0], slice, TD_T(x), TD_I(dim), TD_I(cut), TD_I(size)));
    TD_TRY(TD_APPLY(&parts[1], slice, TD_T(x), TD_I(dim), TD_I(0), TD_I(cut)));
    TD_TRY(TD_APPLY(out, cat, TD_TENSORS(2, parts), TD_I(dim)));
done:
    td_release(parts[0]);
    td_release(parts[1]);
    return status;
}

static td_status run_roll(td_call *call) {
    td_value shifts = call->args[1], dims = call->args[2];
    td_tensor *x = call->args[0].tensor, *y = NULL, *next = NULL;
    int64_t flat = -1;
    td_status status = TD_OK;
    if (td_is_nil(dims)) { /* as one row */
        if (shifts.n != 1)
            return td_fail(TD_EVALUE, "%d shifts without dims", shifts.n);
        TD_TRY(TD_APPLY(&y, reshape, TD_T(x), TD_INTS(1, &flat)));
        TD_TRY(roll_dim(y, shifts.ints[0], 0, &next));
        TD_TRY(TD_APPLY(&call->out[0], reshape, TD_T(next), TD_INTS(x->ndim, x->sizes)));
    } else {
        if (shifts.n != dims.n || dims.n == 0)
            return td_fail(TD_EVALUE, "%d shifts for %d dims", shifts.n, dims.n);
        if (x->ndim == 0)
            return td_fail(TD_EINDEX, "a 0-dim tensor has no dim to roll along");
        y = td_retain(x);
        for (int k = 0; k < dims.n; k++) {
            TD_TRY(roll_dim(y, shifts.ints[k], dims.ints[k], &next));
            td_release(y);
            y = next;
            next = NULL;
        }
        call->out[0] = td_retain(y);
    }
done:
    td_release(y);
    td_release(next);
    return status;
}

/* ---- the table ---- */

TD_OPERATOR(unbind) = {
    .schema = "(Tensor x, dim dim=0) -> Tensor[]",
    .doc = "The parts along a dim, which is left out.",
    .shapes = "x (...) -> {(...) without dim}",
    .run = run_unbind,
    .forms[TD_QUANTIZED] = td_quantized_composite,
};
TD_OPERATOR(chunk) = {
    .schema = "(Tensor x, int chunks, dim dim=0) -> Tensor[]",
    .doc = "At most so many parts of equal size along a dim.",
    .shapes = "x (...) -> {(...) with n at dim}; n: ceil(x[dim]/chunks), and what is left",
    .notes = "Fewer parts than asked for where the sizes don't give as many.",
    .run = run_chunk,
    .forms[TD_QUANTIZED] = td_quantized_composite,
};
TD_OPERATOR(split) = {
    .schema = "(Tensor x, int[] split_size, dim dim=0) -> Tensor[]",
    .doc = "Parts of the given size or sizes along a dim.",
    .shapes =
        "x (...) -> {(...) with n at dim}; n: split_size, and what is left, or those in the list",
    .notes = "Sizes in a list must add up to the dim.",
    .run = run_split,
    .forms[TD_QUANTIZED] = td_quantized_composite,
};
TD_OPERATOR(split_with_sizes) = {
    .schema = "(Tensor x, int[] split_sizes, dim dim=0) -> Tensor[]",
    .doc = "Parts of the given sizes along a dim.",
    .shapes = "x (...) -> {(...) with n at dim}; n: of split_sizes, one by one",
    .notes = "Sizes in a list must add up to the dim.",
    .run = run_split_with_sizes,
    .forms[TD_QUANTIZED] = td_quantized_composite,
};
TD_OPERATOR(cat) = {
    .schema = "(Tensor[] tensors, dim dim=0) -> Tensor",
    .doc = "Tensors joined along a dim.",
    .shapes = "tensors {(...) with n at dim} -> (...) with sum(tensors, dim) at dim; n: its own",
    .takes = "any, promoted",
    .notes = "A tensor of shape (0) joins any. Others must agree in all dims but dim; no tensors "
             "at all are an error.",
    .rule = rule_cat,
    .kernel = kernel_cat,
    .dtypes = TD_DTYPES_ALL,
    .backward = grad_cat,
    .autocast = {[TD_CPU] = TD_AUTOCAST_PROMOTE},
    .forms[TD_QUANTIZED] = td_quantized_cat,
    .flags = TD_OP_OUT | TD_OP_OUT_APART,
};
TD_OPERATOR(stack) = {
    .schema = "(Tensor[] tensors, dim dim=0) -> Tensor",
    .doc = "Tensors of one shape joined along a new dim.",
    .shapes = "tensors {(...)} -> (...) with #tensors inserted at dim",
    .takes = "any, promoted",
    .notes = "Tensors of different shapes are an error: cat joins these.",
    .run = run_stack,
    .forms[TD_QUANTIZED] = td_quantized_composite,
    .autocast = {[TD_CPU] = TD_AUTOCAST_PROMOTE},
    .flags = TD_OP_OUT | TD_OP_OUT_APART,
};
TD_OPERATOR(tile) = {
    .schema = "(Tensor x, int[] dims) -> Tensor",
    .doc = "x repeated so many times along each dim.",
    .shapes = "x (...) -> (times(x, dims)...)",
    .run = run_tile,
};
TD_OPERATOR(flip) = {
    .schema = "(Tensor x, dim[] dims) -> Tensor",
    .doc = "The order of elements along the dims reversed.",
    .shapes = "x (...) -> (...)",
    .rule = rule_flip,
    .kernel = kernel_flip,
    .dtypes = TD_DTYPES_ALL,
    .gradient = "x: flip(g, dims)",
    .forms[TD_QUANTIZED] = td_quantized_move,
};
TD_OPERATOR(roll) = {
    .schema = "(Tensor x, int[] shifts, dim[]? dims=nil) -> Tensor",
    .doc = "Elements moved along dims; what leaves at the end comes in at the start.",
    .shapes = "x (...) -> (...)",
    .run = run_roll,
};
