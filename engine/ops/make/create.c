/* create.c: tensors made from a shape: uninitialised, of one value, of a progression. */
#include "engine/ops/make/copy.h"
#include "engine/ops/plan/plan.h"
#include "engine/ops/rule_helpers.h"
#include "engine/ops/sparse/sparse.h"

#include <math.h>
#include <string.h>

#define TD_FAMILY "create"

/* ---- rules ---- */

static td_status rule_size(const td_call *call, td_meta *out) {
    return td_creation_meta_out(call, call->args[0], call->args[1], call->args[2], out);
}

static td_status rule_empty(const td_call *call, td_meta *out) {
    td_format format = TD_ROW_MAJOR;
    td_status status = rule_size(call, out);
    if (status == TD_OK)
        status = td_read_format(call->args[3], out->ndim, &format);
    if (status == TD_OK)
        td_meta_lay(format, out);
    return status;
}

static td_status rule_like(const td_call *call, td_meta *out) {
    const td_value *a = call->args;
    return td_creation_meta_like(a[0].tensor, a[1], a[2], a[3], out);
}

/* The dtype that a number has by itself, unless another is asked for, or out= has one. */
static td_value number_dtype(const td_call *call, td_value option, bool integer) {
    if (!td_is_nil(option) || td_call_given(call, 0))
        return option;
    return TD_DTYPE(integer ? TD_I64 : td_default_dtype());
}

static td_status rule_full(const td_call *call, td_meta *out) {
    const td_value *a = call->args;
    td_value dtype = a[1].kind == TD_KIND_BOOL && td_is_nil(a[2]) && !td_call_given(call, 0)
                         ? TD_DTYPE(TD_BOOL)
                         : number_dtype(call, a[2], a[1].kind == TD_KIND_INT);
    td_status status = td_creation_meta_out(call, a[0], dtype, a[3], out);
    return status ? status : td_check_holds(out->dtype, a[1]);
}

static td_status rule_full_like(const td_call *call, td_meta *out) {
    const td_value *a = call->args;
    td_status status = td_creation_meta_like(a[0].tensor, a[2], a[3], a[4], out);
    return status ? status : td_check_holds(out->dtype, a[1]);
}

/* ---- kernels: any device that can fill and copy ---- */

static td_status kernel_empty(td_call *call) {
    (void)call;
    return TD_OK;
}

static td_status kernel_zeros(td_call *call) {
    return td_fill_int(call->out[0], 0);
}

static td_status kernel_ones(td_call *call) {
    return td_fill_int(call->out[0], 1);
}

static td_status kernel_full(td_call *call) {
    td_value v = call->args[1];
    return v.kind == TD_KIND_INT ? td_fill_int(call->out[0], v.i)
                                 : td_fill(call->out[0], td_arg_double(v));
}

/* ---- progressions ---- */

/* The bounds of arange: (end) or (start, end, step). */
static void read_range(const td_value *a, td_value *start, td_value *end, td_value *step) {
    bool alone = td_is_nil(a[1]);
    *start = alone ? TD_I(0) : a[0];
    *end = alone ? a[0] : a[1];
    *step = a[2];
}

/* Integers step by whole numbers from a whole one: by the whole part of what is none. */
static td_status cut(td_value *v) {
    td_status status = td_check_holds(TD_I64, *v);
    if (status == TD_OK && v->kind == TD_KIND_FLOAT)
        *v = TD_I((int64_t)v->f);
    return status;
}

static td_status rule_arange(const td_call *call, td_meta *out) {
    td_value start, end, step;
    read_range(call->args, &start, &end, &step);
    double from = td_arg_double(start), to = td_arg_double(end), by = td_arg_double(step);
    bool integer = start.kind == TD_KIND_INT && end.kind == TD_KIND_INT && step.kind == TD_KIND_INT;
    if (!isfinite(from) || !isfinite(to) || !isfinite(by))
        return td_fail(TD_EVALUE, "start, end and step must be finite, got %g, %g, %g", from, to,
                       by);
    if (call->args[3].kind == TD_KIND_DTYPE && call->args[3].dtype == TD_BOOL)
        return td_fail(TD_EDTYPE, "truths are no progression: dtype must be a number's");
    if (by == 0)
        return td_fail(TD_EVALUE, "step must not be 0");
    if (by > 0 ? from > to : from < to)
        return td_fail(TD_EVALUE, "a step of %g never leads from %g to %g", by, from, to);
    double count = ceil((to - from) / by);
    if (integer) { /* exact beyond 2^53 */
        uint64_t distance =
            by > 0 ? (uint64_t)end.i - (uint64_t)start.i : (uint64_t)start.i - (uint64_t)end.i;
        uint64_t stride = by > 0 ? (uint64_t)step.i : -(uint64_t)step.i;
        count = (double)(distance / stride + (distance % stride != 0));
    }
    if (count > 0x1p62)
        return td_fail(TD_ENOMEM, "out of memory: %g elements", count);
    int64_t n = (int64_t)count;
    td_status status = td_creation_meta_out(
        call, TD_INTS(1, &n), number_dtype(call, call->args[3], integer), call->args[4], out);
    bool whole = status == TD_OK && td_dtype_is_int(out->dtype);
    td_value *bounds[3] = {&start, &end, &step};
    for (int k = 0; whole && k < 3 && status == TD_OK; k++)
        status = cut(bounds[k]);
    *TD_PLAN(call, td_progression_plan) =
        (td_progression_plan){.integer = start.kind == TD_KIND_INT && step.kind == TD_KIND_INT,
                              .ifirst = start.i,
                              .istep = step.i,
                              .first = from,
                              .step = by};
    return status;
}

static td_status rule_linspace(const td_call *call, td_meta *out) {
    const td_value *a = call->args;
    if (a[2].i < 0)
        return td_fail(TD_EVALUE, "steps must not be negative, got %lld", (long long)a[2].i);
    if (a[3].kind == TD_KIND_DTYPE && a[3].dtype == TD_BOOL)
        return td_fail(TD_EDTYPE, "truths are no progression: dtype must be a number's");
    double first = td_arg_double(a[0]), last = td_arg_double(a[1]), steps = (double)(a[2].i - 1);
    double step = (last - first) / steps;
    if (isinf(last - first)) /* each alone may be in range */
        step = last / steps - first / steps;
    *TD_PLAN(call, td_progression_plan) = (td_progression_plan){
        .anchored = a[2].i > 1, .first = first, .last = last, .step = a[2].i > 1 ? step : 0};
    return td_creation_meta_out(call, TD_INTS(1, &a[2].i), a[3], a[4], out);
}

static td_status kernel_progression(td_call *call) {
    td_progression_plan *p = TD_PLAN(call, td_progression_plan);
    td_tensor *out = call->out[0], *row = NULL; /* one that out= gives may have strides */
    td_status status = TD_OK;
    if (out->numel == 0)
        return TD_OK;
    if (out->contiguous)
        row = td_retain(out);
    else
        TD_TRY(td_tensor_empty((td_dtype)out->dtype, td_tensor_device(out), 1, out->sizes, &row));
    p->out = row;
    TD_TRY(TD_RUN(td_tensor_device(out), progression, p));
    if (row != out)
        status = td_copy_into(out, row);
done:
    td_release(row);
    return status;
}

static td_status rule_eye(const td_call *call, td_meta *out) {
    const td_value *a = call->args;
    int64_t size[2] = {a[0].i, td_is_nil(a[1]) ? a[0].i : a[1].i};
    return td_creation_meta_out(call, TD_INTS(2, size), a[2], a[3], out);
}

static td_status kernel_eye(td_call *call) {
    td_tensor *out = call->out[0], *diagonal = NULL;
    int64_t n = out->sizes[0] < out->sizes[1] ? out->sizes[0] : out->sizes[1];
    int64_t step = out->strides[0] + out->strides[1];
    td_status status = td_fill_int(out, 0);
    if (status == TD_OK)
        status = td_tensor_view(out, 1, &n, &step, 0, &diagonal);
    if (status == TD_OK)
        status = td_fill_int(diagonal, 1);
    td_release(diagonal);
    return status;
}

/* ---- the table ---- */

#define OPTIONS  "*, dtype? dtype=nil, device? device=nil) -> Tensor"
#define LIKE     "*, dtype? dtype=nil, device? device=nil, str memory_format=\"preserve\") -> Tensor"
#define CREATION .flags = TD_OP_FUNCTION_ONLY | TD_OP_NONDIFF | TD_OP_OUT
#define COPYING  .flags = TD_OP_FUNCTION_ONLY | TD_OP_NONDIFF

TD_OPERATOR(empty) = {
    .schema = "(int[] size, *, dtype? dtype=nil, device? device=nil, "
              "str memory_format=\"contiguous\") -> Tensor",
    .doc = "Uninitialised elements: whatever lay in memory.",
    .rule = rule_empty,
    .kernel = kernel_empty,
    .dtypes = TD_DTYPES_ALL,
    CREATION,
};
TD_OPERATOR(zeros) = {
    .schema = "(int[] size, " OPTIONS,
    .doc = "Zeros.",
    .rule = rule_size,
    .kernel = kernel_zeros,
    .dtypes = TD_DTYPES_ALL,
    CREATION,
};
TD_OPERATOR(ones) = {
    .schema = "(int[] size, " OPTIONS,
    .doc = "Ones.",
    .rule = rule_size,
    .kernel = kernel_ones,
    .dtypes = TD_DTYPES_ALL,
    CREATION,
};
TD_OPERATOR(full) = {
    .schema = "(int[] size, number|bool value, " OPTIONS,
    .doc = "One value everywhere; an integer gives int64, a float the default dtype, a truth bool.",
    .rule = rule_full,
    .kernel = kernel_full,
    .dtypes = TD_DTYPES_ALL,
    CREATION,
};
TD_OPERATOR(empty_like) = {
    .schema = "(Tensor x, " LIKE,
    .doc = "Uninitialised elements in x's shape, dtype and device.",
    .rule = rule_like,
    .kernel = kernel_empty,
    .dtypes = TD_DTYPES_ALL,
    .forms[TD_SPARSE_COO] = td_sparse_zeros,
    COPYING,
};
TD_OPERATOR(zeros_like) = {
    .schema = "(Tensor x, " LIKE,
    .doc = "Zeros in x's shape, dtype and device.",
    .rule = rule_like,
    .kernel = kernel_zeros,
    .dtypes = TD_DTYPES_ALL,
    .forms[TD_SPARSE_COO] = td_sparse_zeros,
    COPYING,
};
TD_OPERATOR(ones_like) = {
    .schema = "(Tensor x, " LIKE,
    .doc = "Ones in x's shape, dtype and device.",
    .rule = rule_like,
    .kernel = kernel_ones,
    .dtypes = TD_DTYPES_ALL,
    COPYING,
};
TD_OPERATOR(full_like) = {
    .schema = "(Tensor x, number|bool value, " LIKE,
    .doc = "One value everywhere in x's shape, dtype and device.",
    .rule = rule_full_like,
    .kernel = kernel_full,
    .dtypes = TD_DTYPES_ALL,
    COPYING,
};
TD_OPERATOR(arange) = {
    .schema = "(number start, number? end=nil, number step=1, " OPTIONS,
    .doc = "start, start + step, ... below end; with one number from 0 below it.",
    .shapes = "-> (n); n: how many steps there are before end",
    .notes = "Values as in PyTorch: from start, 0 where it is not given, without end.",
    .rule = rule_arange,
    .kernel = kernel_progression,
    .dtypes = TD_DTYPES_ALL,
    CREATION,
};
TD_OPERATOR(linspace) = {
    .schema = "(number start, number end, int steps, " OPTIONS,
    .doc =
        "So many numbers evenly spaced from start to end, both included; of an integer dtype their "
        "whole parts.",
    .shapes = "-> (steps)",
    .notes = "Both ends belong to it.",
    .rule = rule_linspace,
    .kernel = kernel_progression,
    .dtypes = TD_DTYPES_ALL,
    CREATION,
};
TD_OPERATOR(eye) = {
    .schema = "(int n, int? m=nil, " OPTIONS,
    .doc = "Ones on the diagonal of an n by m matrix, zeros elsewhere.",
    .shapes = "-> (n, n if m == nil else m)",
    .rule = rule_eye,
    .kernel = kernel_eye,
    .dtypes = TD_DTYPES_ALL,
    CREATION,
};
