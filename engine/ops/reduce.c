/* reduce.c: the reductions, each a row: schema, doc, shape rule, kernel, gradient. Knows shapes and
 * dtypes; the elements are the devices' affair (reduce.h). */
#include "engine/ops/reduce.h"

#include "engine/ops/reduce_grad.h"
#include "engine/ops/reduction.h"

#include <math.h>
#include <string.h>

#define TD_FAMILY "reduce"

/* ---- rules ---- */

static td_status rule_shape(const td_call *call, td_value dims, bool keepdim, td_dtype dtype,
                            td_meta *out) {
    const td_tensor *x = call->args[0].tensor;
    uint32_t mask;
    td_status status = td_reduce_dims(dims, x->ndim, &mask);
    if (status)
        return status;
    out->dtype = dtype;
    out->ndim = td_reduce_shape(x, mask, keepdim, out->sizes);
    return TD_OK;
}

/* sum, prod, cumsum: integers and bool give int64 unless the caller says otherwise. */
static td_status sum_dtype(td_dtype x, td_value option, td_dtype *dtype) {
    *dtype = option.kind == TD_KIND_DTYPE ? option.dtype : td_dtype_is_float(x) ? x : TD_I64;
    if (*dtype == TD_BOOL)
        return td_fail(TD_EDTYPE, "no bool result: ask any() or all()");
    return TD_OK;
}

static td_status float_dtype(td_dtype x, td_value option, td_dtype *dtype) {
    *dtype = option.kind == TD_KIND_DTYPE ? option.dtype : x;
    if (td_dtype_is_float(*dtype))
        return TD_OK;
    return td_fail(TD_EDTYPE, "needs a floating dtype, got %s: convert it first with x:float()",
                   td_dtype_name(*dtype));
}

static td_status rule_sum(const td_call *call, td_meta *out) {
    td_dtype dtype;
    td_status status = sum_dtype(call->args[0].tensor->dtype, call->args[3], &dtype);
    return status ? status : rule_shape(call, call->args[1], call->args[2].b, dtype, out);
}

static td_status rule_mean(const td_call *call, td_meta *out) {
    td_dtype dtype;
    td_status status = float_dtype(call->args[0].tensor->dtype, call->args[3], &dtype);
    return status ? status : rule_shape(call, call->args[1], call->args[2].b, dtype, out);
}

static td_status rule_var(const td_call *call, td_meta *out) {
    td_dtype dtype;
    td_status status = float_dtype(call->args[0].tensor->dtype, TD_NIL, &dtype);
    return status ? status : rule_shape(call, call->args[1], call->args[3].b, dtype, out);
}

/* Extremes of nothing do not exist. */
static td_status check_not_empty(const td_tensor *x, td_value dims, const char *what) {
    char shape[TD_SHAPE_TEXT];
    uint32_t mask;
    td_status status = td_reduce_dims(dims, x->ndim, &mask);
    if (status)
        return status;
    for (int d = 0; d < x->ndim; d++) {
        if (!(mask >> d & 1) || x->sizes[d] > 0)
            continue;
        td_tensor_shape_text(x, shape);
        if (td_is_nil(dims))
            return td_fail(TD_ESHAPE, "cannot take %s of an empty tensor of shape %s", what, shape);
        return td_fail(TD_ESHAPE, "cannot take %s over dim %d of shape %s, which is empty", what,
                       d + 1, shape);
    }
    return TD_OK;
}

static const char *extreme_name(const td_op *op) {
    return strstr(op->name, "min") ? "min" : "max";
}

static td_status rule_extreme(const td_call *call, td_meta *out) {
    const td_tensor *x = call->args[0].tensor;
    td_status status = check_not_empty(x, call->args[1], extreme_name(call->op));
    return status ? status
                  : rule_shape(call, call->args[1], call->args[2].b, (td_dtype)x->dtype, out);
}

static td_status rule_extreme_dim(const td_call *call, td_meta *out) {
    td_status status = rule_extreme(call, &out[0]);
    return status ? status : rule_shape(call, call->args[1], call->args[2].b, TD_I64, &out[1]);
}

static td_status rule_find(const td_call *call, td_meta *out) {
    td_status status = check_not_empty(call->args[0].tensor, call->args[1], extreme_name(call->op));
    return status ? status : rule_shape(call, call->args[1], call->args[2].b, TD_I64, out);
}

static td_status rule_bool(const td_call *call, td_meta *out) {
    return rule_shape(call, call->args[1], call->args[2].b, TD_BOOL, out);
}

static td_status rule_count(const td_call *call, td_meta *out) {
    return rule_shape(call, call->args[1], call->args[2].b, TD_I64, out);
}

static td_status rule_norm(const td_call *call, td_meta *out) {
    const td_tensor *x = call->args[0].tensor;
    double p = td_arg_double(call->args[1]);
    td_dtype dtype;
    td_status status = float_dtype(x->dtype, call->args[4], &dtype);
    if (status == TD_OK && (p < 0 || isinf(p)))
        status = check_not_empty(x, call->args[2], "this norm");
    return status ? status : rule_shape(call, call->args[2], call->args[3].b, dtype, out);
}

static td_status rule_cumsum(const td_call *call, td_meta *out) {
    const td_tensor *x = call->args[0].tensor;
    td_dtype dtype;
    int dim;
    td_status status = td_wrap_dim(call->args[1].i, x->ndim, &dim);
    if (status == TD_OK)
        status = sum_dtype(x->dtype, call->args[2], &dtype);
    if (status)
        return status;
    out->dtype = dtype;
    out->ndim = x->ndim;
    memcpy(out->sizes, x->sizes, sizeof(int64_t) * (size_t)x->ndim);
    return TD_OK;
}

static td_status rule_sum_to_size(const td_call *call, td_meta *out) {
    const td_tensor *x = call->args[0].tensor;
    const td_value *sizes = &call->args[1];
    uint32_t mask;
    td_status status = td_reduce_dims_to(x, sizes->n, sizes->ints, &mask);
    if (status)
        return status;
    if (!td_dtype_is_float(x->dtype) && x->dtype != TD_I64)
        return td_fail(TD_EDTYPE, "not for %s", td_dtype_name(x->dtype));
    out->dtype = x->dtype;
    out->ndim = sizes->n;
    memcpy(out->sizes, sizes->ints, sizeof(int64_t) * (size_t)sizes->n);
    return TD_OK;
}

double td_var_divisor(int64_t count, td_value correction, td_value unbiased) {
    double less = td_arg_double(correction);
    if (unbiased.kind == TD_KIND_BOOL)
        less = unbiased.b ? 1 : 0;
    return (double)count - less;
}

/* ---- composites ---- */

/* Without a dim the value alone; with one, values and where they are. */
static td_status run_extreme(td_call *call, const char *name, const td_op *all, const td_op *dim) {
    const td_value *a = call->args;
    td_status status = check_not_empty(a[0].tensor, a[1], name);
    if (status)
        return status;
    return td_op_apply(td_is_nil(a[1]) ? all : dim, call->out, 3, a);
}

static td_status run_max(td_call *call) {
    return run_extreme(call, "max", TD_OP(amax), TD_OP(max_dim));
}

static td_status run_min(td_call *call) {
    return run_extreme(call, "min", TD_OP(amin), TD_OP(min_dim));
}

/* log(sum(exp(x - m))) + m with m the largest element, or 0 where that is infinite. */
static td_status run_logsumexp(td_call *call) {
    td_tensor *x = call->args[0].tensor, *m = NULL, *finite = NULL, *y = NULL, *next = NULL;
    td_value dims = call->args[1], keep = TD_B(true);
    int64_t sizes[TD_MAX_DIMS];
    uint32_t mask;
    td_status status = TD_OK;
    TD_TRY(td_reduce_dims(dims, x->ndim, &mask));
    TD_TRY(x->numel == 0 ? TD_APPLY(&m, sum, TD_T(x), dims, keep)
                         : TD_APPLY(&m, amax, TD_T(x), dims, keep));
    TD_TRY(TD_APPLY(&finite, isfinite, TD_T(m)));
    TD_TRY(TD_APPLY(&next, where, TD_T(finite), TD_T(m), TD_F(0)));
    td_release(m);
    m = next;
    TD_TRY(TD_APPLY(&y, sub, TD_T(x), TD_T(m)));
    TD_TRY(TD_APPLY(&next, exp, TD_T(y)));
    td_release(y);
    y = next;
    TD_TRY(TD_APPLY(&next, sum, TD_T(y), dims, keep));
    td_release(y);
    y = next;
    TD_TRY(TD_APPLY(&next, log, TD_T(y)));
    td_release(y);
    y = next;
    TD_TRY(TD_APPLY(&next, add, TD_T(y), TD_T(m)));
    td_release(y);
    y = next;
    int ndim = td_reduce_shape(x, mask, call->args[2].b, sizes);
    TD_TRY(TD_APPLY(&call->out[0], reshape, TD_T(y), TD_INTS(ndim, sizes)));
done:
    td_release(m);
    td_release(finite);
    td_release(y);
    return status;
}

/* ---- the table ---- */

TD_OPERATOR(sum) = {
    .schema = "(Tensor x, dim[]? dim=nil, *, bool keepdim=false, dtype? dtype=nil) -> Tensor",
    .doc = "Sum of all elements, or over the given dims; integers and masks give int64.",
    .rule = rule_sum,
    .kernel = td_cpu_sum,
    .backward = td_grad_sum,
    .flags = TD_OP_OUT | TD_OP_SHAPE_ONLY,
};
TD_OPERATOR(nansum) = {
    .schema = "(Tensor x, dim[]? dim=nil, *, bool keepdim=false, dtype? dtype=nil) -> Tensor",
    .doc = "Sum that takes NaN for 0.",
    .rule = rule_sum,
    .kernel = td_cpu_nansum,
    .backward = td_grad_nansum,
    .saves = "x",
    .flags = TD_OP_OUT,
};
TD_OPERATOR(mean) = {
    .schema = "(Tensor x, dim[]? dim=nil, *, bool keepdim=false, dtype? dtype=nil) -> Tensor",
    .doc = "Mean of all elements, or over the given dims.",
    .rule = rule_mean,
    .kernel = td_cpu_mean,
    .backward = td_grad_mean,
    .flags = TD_OP_OUT | TD_OP_SHAPE_ONLY,
};
TD_OPERATOR(prod) = {
    .schema = "(Tensor x, dim[]? dim=nil, *, bool keepdim=false, dtype? dtype=nil) -> Tensor",
    .doc = "Product of all elements, or over the given dims; integers and masks give int64.",
    .rule = rule_sum,
    .kernel = td_cpu_prod,
    .backward = td_grad_prod,
    .saves = "x, out",
    .autocast = TD_AUTOCAST_FP32,
    .flags = TD_OP_OUT,
};
TD_OPERATOR(var) = {
    .schema = "(Tensor x, dim[]? dim=nil, *, number correction=1, bool keepdim=false, "
              "bool? unbiased=nil) -> Tensor",
    .doc = "Variance: squared deviations from the mean over count - correction.",
    .rule = rule_var,
    .kernel = td_cpu_var,
    .backward = td_grad_var,
    .saves = "x",
    .flags = TD_OP_OUT,
};
TD_OPERATOR(std) = {
    .schema = "(Tensor x, dim[]? dim=nil, *, number correction=1, bool keepdim=false, "
              "bool? unbiased=nil) -> Tensor",
    .doc = "Standard deviation, the square root of var.",
    .rule = rule_var,
    .kernel = td_cpu_std,
    .backward = td_grad_std,
    .saves = "x, out",
    .flags = TD_OP_OUT,
};
TD_OPERATOR(amax) = {
    .schema = "(Tensor x, dim[]? dim=nil, *, bool keepdim=false) -> Tensor",
    .doc = "Largest element, of all or over the given dims; equals share the gradient.",
    .rule = rule_extreme,
    .kernel = td_cpu_amax,
    .backward = td_grad_extreme,
    .saves = "x, out",
    .flags = TD_OP_OUT,
};
TD_OPERATOR(amin) = {
    .schema = "(Tensor x, dim[]? dim=nil, *, bool keepdim=false) -> Tensor",
    .doc = "Smallest element, of all or over the given dims; equals share the gradient.",
    .rule = rule_extreme,
    .kernel = td_cpu_amin,
    .backward = td_grad_extreme,
    .saves = "x, out",
    .flags = TD_OP_OUT,
};
TD_OPERATOR(max) = {
    .schema = "(Tensor x, dim? dim=nil, *, bool keepdim=false) -> "
              "(Tensor values, index Tensor indices)",
    .doc = "Largest element; along a dim, the largest elements and where they are.",
    .run = run_max,
};
TD_OPERATOR(min) = {
    .schema = "(Tensor x, dim? dim=nil, *, bool keepdim=false) -> "
              "(Tensor values, index Tensor indices)",
    .doc = "Smallest element; along a dim, the smallest elements and where they are.",
    .run = run_min,
};
TD_OPERATOR(max_dim) = {
    .schema = "(Tensor x, dim dim, bool keepdim=false) -> "
              "(Tensor values, index Tensor indices)",
    .doc = "Largest elements along a dim and the first place of each.",
    .rule = rule_extreme_dim,
    .kernel = td_cpu_max_dim,
    .backward = td_grad_extreme_dim,
    .saves = "indices",
    .flags = TD_OP_INTERNAL | TD_OP_SHAPE_ONLY,
};
TD_OPERATOR(min_dim) = {
    .schema = "(Tensor x, dim dim, bool keepdim=false) -> "
              "(Tensor values, index Tensor indices)",
    .doc = "Smallest elements along a dim and the first place of each.",
    .rule = rule_extreme_dim,
    .kernel = td_cpu_min_dim,
    .backward = td_grad_extreme_dim,
    .saves = "indices",
    .flags = TD_OP_INTERNAL | TD_OP_SHAPE_ONLY,
};
TD_OPERATOR(argmax) = {
    .schema = "(Tensor x, dim? dim=nil, *, bool keepdim=false) -> index Tensor",
    .doc = "Where the largest element is, the first of equals; without a dim in row-major order.",
    .rule = rule_find,
    .kernel = td_cpu_argmax,
    .flags = TD_OP_NONDIFF,
};
TD_OPERATOR(argmin) = {
    .schema = "(Tensor x, dim? dim=nil, *, bool keepdim=false) -> index Tensor",
    .doc = "Where the smallest element is, the first of equals; without a dim in row-major order.",
    .rule = rule_find,
    .kernel = td_cpu_argmin,
    .flags = TD_OP_NONDIFF,
};
TD_OPERATOR(any) = {
    .schema = "(Tensor x, dim[]? dim=nil, *, bool keepdim=false) -> Tensor",
    .doc = "Is an element different from zero?",
    .rule = rule_bool,
    .kernel = td_cpu_any,
    .flags = TD_OP_NONDIFF,
};
TD_OPERATOR(all) = {
    .schema = "(Tensor x, dim[]? dim=nil, *, bool keepdim=false) -> Tensor",
    .doc = "Are all elements different from zero?",
    .rule = rule_bool,
    .kernel = td_cpu_all,
    .flags = TD_OP_NONDIFF,
};
TD_OPERATOR(count_nonzero) = {
    .schema = "(Tensor x, dim[]? dim=nil, *, bool keepdim=false) -> Tensor",
    .doc = "Number of elements different from zero.",
    .rule = rule_count,
    .kernel = td_cpu_count_nonzero,
    .flags = TD_OP_NONDIFF,
};
TD_OPERATOR(nanmean) = {
    .schema = "(Tensor x, dim[]? dim=nil, *, bool keepdim=false) -> Tensor",
    .doc = "Mean of what is not NaN, of all elements or over the given dims.",
    .formula = "nansum(x, dim, keepdim) / sum(x == x, dim, keepdim)",
};
TD_OPERATOR(norm) = {
    .schema = "(Tensor x, number p=2, dim[]? dim=nil, *, bool keepdim=false, "
              "dtype? dtype=nil) -> Tensor",
    .doc = "Vector p-norm of all elements or over the given dims; p may be math.huge, 1, 0, ...",
    .rule = rule_norm,
    .kernel = td_cpu_norm,
    .backward = td_grad_norm,
    .saves = "x, out",
    .autocast = TD_AUTOCAST_FP32,
    .flags = TD_OP_OUT,
};
TD_OPERATOR(logsumexp) = {
    .schema = "(Tensor x, dim[]? dim=nil, *, bool keepdim=false) -> Tensor",
    .doc = "Logarithm of the sum of exp(x), without overflow.",
    .run = run_logsumexp,
    .backward = td_grad_logsumexp,
    .saves = "x, out",
    .autocast = TD_AUTOCAST_FP32,
    .flags = TD_OP_OUT,
};
TD_OPERATOR(cumsum) = {
    .schema = "(Tensor x, dim dim, *, dtype? dtype=nil) -> Tensor",
    .doc = "Running sums along a dim.",
    .rule = rule_cumsum,
    .kernel = td_cpu_cumsum,
    .backward = td_grad_cumsum,
    .flags = TD_OP_OUT | TD_OP_INPLACE | TD_OP_SHAPE_ONLY,
};
TD_OPERATOR(sum_to_size) = {
    .schema = "(Tensor x, int[] sizes) -> Tensor",
    .doc = "Sum x to a shape that broadcasts to its own.",
    .rule = rule_sum_to_size,
    .kernel = td_cpu_sum_to_size,
    .backward = td_grad_sum_to_size,
    .flags = TD_OP_INTERNAL | TD_OP_SHAPE_ONLY,
};
