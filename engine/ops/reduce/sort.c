/* sort.c: elements along a dim in order: sorts, the first few, single ranks, medians, modes. Knows
 * shapes and dtypes; equal elements go by where they stand. */
#include "engine/ops/make/copy.h"
#include "engine/ops/plan/plan.h"
#include "engine/ops/plan/reduction.h"
#include "engine/ops/rule_helpers.h"

#include <math.h>

#define TD_FAMILY "sort"

/* ---- sort and topk ---- */

/* x's shape with so many places along the plan's dim, for values and for where they are. */
static void results_along(const td_tensor *x, int dim, int64_t size, td_meta *out) {
    td_meta_like(&out[0], x, (td_dtype)x->dtype);
    td_meta_like(&out[1], x, TD_I64);
    if (x->ndim)
        out[0].sizes[dim] = out[1].sizes[dim] = size;
}

static int64_t size_along(const td_tensor *x, int dim) {
    return x->ndim ? x->sizes[dim] : 1;
}

static td_status rule_sort(const td_call *call, td_meta *out) {
    const td_tensor *x = call->args[0].tensor;
    td_sort_plan *p = TD_PLAN(call, td_sort_plan);
    *p = (td_sort_plan){.descending = call->args[2].b};
    td_status status = td_wrap_dim(call->args[1].i, x->ndim, &p->dim);
    if (status)
        return status;
    results_along(x, p->dim, size_along(x, p->dim), out);
    return TD_OK;
}

static td_status rule_argsort(const td_call *call, td_meta *out) {
    td_meta both[2] = {*out, *out};
    td_status status = rule_sort(call, both);
    *out = both[1];
    return status;
}

static td_status rule_topk(const td_call *call, td_meta *out) {
    const td_tensor *x = call->args[0].tensor;
    int64_t k = call->args[1].i;
    td_sort_plan *p = TD_PLAN(call, td_sort_plan);
    *p = (td_sort_plan){.descending = call->args[3].b};
    td_status status = td_wrap_dim(call->args[2].i, x->ndim, &p->dim);
    if (status)
        return status;
    if (k < 0 || k > size_along(x, p->dim))
        return td_fail(TD_EVALUE, "k must be from 0 to the size of dim %d, %lld; got %lld",
                       p->dim + 1, (long long)size_along(x, p->dim), (long long)k);
    results_along(x, p->dim, k, out);
    return TD_OK;
}

static td_status kernel_sort(td_call *call) {
    td_sort_plan *p = TD_PLAN(call, td_sort_plan);
    bool both = call->op->nresults == 2;
    p->values = both ? call->out[0] : NULL;
    p->index = call->out[both];
    p->x = call->args[0].tensor;
    return p->index->numel ? TD_RUN(td_tensor_device(p->index), sort, p) : TD_OK;
}

/* ---- one of the order ---- */

static td_status plan_selection(const td_call *call, int arg, td_selection selection,
                                td_meta *out) {
    const td_tensor *x = call->args[0].tensor;
    td_select_plan *p = TD_PLAN(call, td_select_plan);
    char shape[TD_SHAPE_TEXT];
    *p = (td_select_plan){.selection = selection};
    td_status status = td_wrap_dim(call->args[arg].i, x->ndim, &p->dim);
    if (status)
        return status;
    if (size_along(x, p->dim) == 0)
        return td_fail(TD_ESHAPE, "dim %d of shape %s is empty", p->dim + 1,
                       td_tensor_shape_text(x, shape));
    uint32_t mask = x->ndim ? 1u << p->dim : 0;
    for (int k = 0; k < 2; k++) {
        out[k].dtype = k ? TD_I64 : (td_dtype)x->dtype;
        out[k].ndim = td_reduce_shape(x, mask, call->args[arg + 1].b, out[k].sizes);
    }
    return TD_OK;
}

static td_status rule_kthvalue(const td_call *call, td_meta *out) {
    const td_tensor *x = call->args[0].tensor;
    td_select_plan *p = TD_PLAN(call, td_select_plan);
    int64_t k = call->args[1].i;
    td_status status = plan_selection(call, 2, TD_SELECT_RANK, out);
    if (status)
        return status;
    if (k < 1 || k > size_along(x, p->dim))
        return td_fail(TD_EVALUE, "k must be from 1 to the size of dim %d, %lld; got %lld",
                       p->dim + 1, (long long)size_along(x, p->dim), (long long)k);
    p->rank = k - 1;
    return TD_OK;
}

static td_status plan_along(const td_call *call, td_meta *out, td_selection selection) {
    return plan_selection(call, 1, selection, out);
}
TD_RULE(rule_median, plan_along, TD_SELECT_MEDIAN)
TD_RULE(rule_nanmedian, plan_along, TD_SELECT_NANMEDIAN)
TD_RULE(rule_mode, plan_along, TD_SELECT_MODE)

/* A result as a plan takes it: with one element along the dim. */
static td_status with_dim(td_tensor *x, int ndim, int dim, td_tensor **out) {
    int64_t sizes[TD_MAX_DIMS], strides[TD_MAX_DIMS];
    if (x->ndim == ndim) {
        *out = td_retain(x);
        return TD_OK;
    }
    for (int d = 0; d < ndim; d++) {
        sizes[d] = d == dim ? 1 : x->sizes[d - (d > dim)];
        strides[d] = d == dim ? 1 : x->strides[d - (d > dim)];
    }
    return td_tensor_view(x, ndim, sizes, strides, 0, out);
}

static td_status kernel_select(td_call *call) {
    td_select_plan *p = TD_PLAN(call, td_select_plan);
    td_tensor *values = NULL, *index = NULL;
    td_status status = TD_OK;
    p->x = call->args[0].tensor;
    if (call->out[0]->numel == 0)
        return TD_OK;
    TD_TRY(with_dim(call->out[0], p->x->ndim, p->dim, &values));
    TD_TRY(with_dim(call->out[1], p->x->ndim, p->dim, &index));
    p->values = values;
    p->index = index;
    status = TD_RUN(td_tensor_device(values), select, p);
done:
    td_release(values);
    td_release(index);
    return status;
}

static td_status rule_median_all(const td_call *call, td_meta *out) {
    const td_tensor *x = call->args[0].tensor;
    td_meta_set(out, (td_dtype)x->dtype, 0, NULL);
    return TD_OK;
}

/* The median of no elements: NaN, or the least number that there is. */
static td_status fill_with_nothing(td_tensor *out) {
    int bits = 8 * (int)td_tensor_itemsize(out);
    if (td_dtype_is_float((td_dtype)out->dtype))
        return td_fill(out, NAN);
    return td_fill_int(out, out->dtype == TD_U8 ? 0 : INT64_MIN >> (64 - bits));
}

static td_status kernel_median_all(td_call *call) {
    td_tensor *x = call->args[0].tensor, *out = call->out[0], *row = NULL, *value = NULL;
    const int64_t flat = -1, one = 1, stride = 1;
    td_status status = TD_OK;
    if (x->numel == 0)
        return fill_with_nothing(out);
    TD_TRY(TD_APPLY(&row, reshape, TD_T(x), TD_INTS(1, &flat)));
    TD_TRY(td_tensor_view(out, 1, &one, &stride, 0, &value));
    td_select_plan p = {.values = value, .x = row};
    p.selection = call->args[1].b ? TD_SELECT_NANMEDIAN : TD_SELECT_MEDIAN;
    status = TD_RUN(td_tensor_device(out), select, &p);
done:
    td_release(row);
    td_release(value);
    return status;
}

static td_status median_of(td_call *call, const td_op *along, bool ignore) {
    const td_value *a = call->args;
    if (td_is_nil(a[1]))
        return TD_APPLY(call->out, median_all, a[0], TD_B(ignore));
    return td_call_as(call, along, 3);
}

static td_status run_median(td_call *call) {
    return median_of(call, TD_OP(median_dim), false);
}
static td_status run_nanmedian(td_call *call) {
    return median_of(call, TD_OP(nanmedian_dim), true);
}

/* ---- the table ---- */

#define TO_THE_PLACES                                                                              \
    "x: scatter(zeros(x.shape, dtype=g.values.dtype, device=g.values.device), dim, indices,"       \
    "           g.values)"
#define TO_THE_PLACE                                                                               \
    "x: scatter(zeros(x.shape, dtype=g.values.dtype, device=g.values.device), dim,"                \
    "           if(keepdim, indices, unsqueeze(indices, dim)),"                                    \
    "           if(keepdim, g.values, unsqueeze(g.values, dim)))"

TD_OPERATOR(sort) = {
    .schema = "(Tensor x, dim dim=-1, bool descending=false, *, bool stable=false) -> "
              "(Tensor values, index Tensor indices)",
    .doc = "The elements along a dim in order and where they stood; equal ones keep their order.",
    .shapes = "x (...) -> (...), (...)",
    .notes = "Equal elements keep their order, as in PyTorch with stable=True alone. NaN is larger "
             "than all.",
    .rule = rule_sort,
    .kernel = kernel_sort,
    .dtypes = TD_DTYPES_ALL,
    .gradient = TO_THE_PLACES,
    .flags = TD_OP_OUT | TD_OP_OUT_EXACT,
};
TD_OPERATOR(argsort) = {
    .schema = "(Tensor x, dim dim=-1, bool descending=false, *, bool stable=false) -> "
              "index Tensor",
    .doc = "Where the elements stand that come first, second, ... along a dim.",
    .shapes = "x (...) -> (...)",
    .notes = "Equal elements keep their order, as in PyTorch with stable=True alone. NaN is larger "
             "than all.",
    .rule = rule_argsort,
    .kernel = kernel_sort,
    .dtypes = TD_DTYPES_ALL,
    .flags = TD_OP_NONDIFF,
};
TD_OPERATOR(msort) = {
    .schema = "(Tensor x) -> Tensor",
    .doc = "The elements in order along the first dim.",
    .shapes = "x (...) -> (...)",
    .formula = "sort(x, 0).values",
    .flags = TD_OP_OUT | TD_OP_OUT_EXACT,
};
TD_OPERATOR(topk) = {
    .schema = "(Tensor x, int k, dim dim=-1, bool largest=true, bool sorted=true) -> "
              "(Tensor values, index Tensor indices)",
    .doc = "The k largest (or smallest) elements along a dim and where they are.",
    .shapes = "x (...) -> (...) with k at dim, (...) with k at dim",
    .notes = "The largest first, or with largest=false the smallest. NaN is larger than all. k "
             "beyond the size of dim is an error.",
    .rule = rule_topk,
    .kernel = kernel_sort,
    .dtypes = TD_DTYPES_NUMBERS,
    .gradient = TO_THE_PLACES,
    .flags = TD_OP_OUT | TD_OP_OUT_EXACT | TD_OP_OUT_APART,
};
TD_OPERATOR(kthvalue) = {
    .schema = "(Tensor x, int k, dim dim=-1, bool keepdim=false) -> "
              "(Tensor values, index Tensor indices)",
    .doc = "The k-th smallest element along a dim and where it is.",
    .rule = rule_kthvalue,
    .kernel = kernel_select,
    .dtypes = TD_DTYPES_NUMBERS,
    .gradient = TO_THE_PLACE,
    .flags = TD_OP_OUT | TD_OP_OUT_EXACT | TD_OP_OUT_APART,
};
TD_OPERATOR(median) = {
    .schema = "(Tensor x, dim? dim=nil, bool keepdim=false) -> "
              "(Tensor values, index Tensor indices)",
    .doc = "The lower median, NaN where there is one; along a dim, medians and where they are.",
    .takes = "floating and integers",
    .notes = "Of two in the middle the smaller: quantile(x, 0.5) is between them.",
    .run = run_median,
    .flags = TD_OP_OUT | TD_OP_OUT_EXACT,
};
TD_OPERATOR(nanmedian) = {
    .schema = "(Tensor x, dim? dim=nil, bool keepdim=false) -> "
              "(Tensor values, index Tensor indices)",
    .doc = "The lower median of what is not NaN; along a dim, medians and where they are.",
    .takes = "floating and integers",
    .run = run_nanmedian,
    .flags = TD_OP_OUT | TD_OP_OUT_EXACT,
};
TD_OPERATOR(median_dim) = {
    .schema = "(Tensor x, dim dim, bool keepdim=false) -> (Tensor values, index Tensor indices)",
    .doc = "Medians along a dim.",
    .rule = rule_median,
    .kernel = kernel_select,
    .dtypes = TD_DTYPES_NUMBERS,
    .gradient = TO_THE_PLACE,
    .flags = TD_OP_INTERNAL | TD_OP_OUT | TD_OP_OUT_EXACT,
};
TD_OPERATOR(nanmedian_dim) = {
    .schema = "(Tensor x, dim dim, bool keepdim=false) -> (Tensor values, index Tensor indices)",
    .doc = "Medians along a dim of what is not NaN.",
    .rule = rule_nanmedian,
    .kernel = kernel_select,
    .dtypes = TD_DTYPES_NUMBERS,
    .gradient = TO_THE_PLACE,
    .flags = TD_OP_INTERNAL | TD_OP_OUT | TD_OP_OUT_EXACT,
};
TD_OPERATOR(median_all) = {
    .schema = "(Tensor x, bool ignore) -> Tensor",
    .doc = "The median of all elements; equal ones share the gradient.",
    .rule = rule_median_all,
    .kernel = kernel_median_all,
    .dtypes = TD_DTYPES_NUMBERS,
    .gradient = "hits = logical_or(x == out, logical_and(isnan(x), isnan(out)));"
                "x: where(hits, g / sum(hits), 0)",
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(mode) = {
    .schema = "(Tensor x, dim dim=-1, bool keepdim=false) -> "
              "(Tensor values, index Tensor indices)",
    .doc = "The most frequent element along a dim, the smallest of several, and where its last is.",
    .rule = rule_mode,
    .kernel = kernel_select,
    .dtypes = TD_DTYPES_ALL,
    .gradient = TO_THE_PLACE,
    .flags = TD_OP_OUT | TD_OP_OUT_EXACT | TD_OP_OUT_APART,
};
