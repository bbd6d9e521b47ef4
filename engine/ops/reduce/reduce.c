/* reduce.c: the reductions, each a row: schema, doc, rule, kernel, gradient. Knows shapes and
 * dtypes; rules make the plans that devices carry out.
 */
#include "engine/core/modes.h"
#include "engine/ops/plan/plan.h"
#include "engine/ops/plan/reduction.h"
#include "engine/ops/pointwise/pointwise.h"
#include "engine/ops/quantized/quantized.h"
#include "engine/ops/rule_helpers.h"
#include "engine/ops/sparse/sparse.h"

#include <math.h>
#include <string.h>

#define TD_FAMILY "reduce"

/* ---- rules ---- */

static td_status float_dtype(td_dtype x, td_value option, td_dtype *dtype) {
    *dtype = option.kind == TD_KIND_DTYPE ? option.dtype : x;
    return td_check_float(*dtype);
}

/* Elements are converted where the result is of another kind, or has more precision. */
static td_dtype compute_dtype(td_dtype x, td_dtype result) {
    if (x == result)
        return x;
    if (td_dtype_is_float(x) != td_dtype_is_float(result))
        return result;
    return td_dtype_is_float(x) ? td_dtype_promote(x, result) : x;
}

/* The plan of a call whose first argument is reduced over `dims`, and its result. */
static td_status plan_over(const td_call *call, td_value dims, bool keepdim, td_reducer reducer,
                           td_dtype dtype, td_meta *out) {
    const td_tensor *x = call->args[0].tensor;
    td_dtype own = (td_dtype)x->dtype;
    td_reduce_plan *p = TD_PLAN(call, td_reduce_plan);
    *p = (td_reduce_plan){.reducer = reducer};
    p->compute = reducer == TD_REDUCE_NONZERO ? own : compute_dtype(own, dtype);
    td_status status = td_reduce_dims(dims, x->ndim, &p->mask);
    if (status)
        return status;
    out->dtype = dtype;
    out->ndim = td_reduce_shape(x, p->mask, keepdim, out->sizes);
    return TD_OK;
}

/* Divide by the count less `correction`; by 0 where nothing is left and `strict`. */
static void plan_division(const td_call *call, td_finish finish, double correction, bool strict) {
    td_reduce_plan *p = TD_PLAN(call, td_reduce_plan);
    double divisor = (double)td_reduce_count(call->args[0].tensor, p->mask) - correction;
    p->finish = finish;
    p->param = strict && !(divisor > 0) ? 0 : divisor;
}

/* Sums of truths are whether any holds, their products whether all do. */
static td_status plan_sum(const td_call *call, td_meta *out, td_reducer reducer) {
    const td_value *a = call->args;
    td_dtype dtype = td_reduce_sum_dtype(a[0].tensor->dtype, a[3]);
    bool truths = dtype == TD_BOOL, product = reducer == TD_REDUCE_PROD;
    td_status status =
        plan_over(call, a[1], a[2].b, truths ? TD_REDUCE_NONZERO : reducer, dtype, out);
    if (truths && product)
        TD_PLAN(call, td_reduce_plan)->finish = TD_FINISH_ALL;
    return status;
}
TD_RULE(rule_sum, plan_sum, TD_REDUCE_SUM)
TD_RULE(rule_nansum, plan_sum, TD_REDUCE_NANSUM)
TD_RULE(rule_prod, plan_sum, TD_REDUCE_PROD)

static td_status rule_mean(const td_call *call, td_meta *out) {
    const td_value *a = call->args;
    td_dtype dtype;
    td_status status = float_dtype(a[0].tensor->dtype, a[3], &dtype);
    if (status == TD_OK)
        status = plan_over(call, a[1], a[2].b, TD_REDUCE_SUM, dtype, out);
    if (status == TD_OK)
        plan_division(call, TD_FINISH_DIVIDE, 0, false);
    return status;
}

static td_status plan_var(const td_call *call, td_meta *out, td_finish finish) {
    const td_value *a = call->args;
    td_dtype dtype;
    td_status status = float_dtype(a[0].tensor->dtype, TD_NIL, &dtype);
    if (status == TD_OK)
        status = plan_over(call, a[1], a[3].b, TD_REDUCE_CENTERED, dtype, out);
    if (status == TD_OK)
        plan_division(call, finish, td_is_nil(a[4]) ? td_arg_double(a[2]) : (double)a[4].b, true);
    return status;
}
TD_RULE(rule_var, plan_var, TD_FINISH_DIVIDE)
TD_RULE(rule_std, plan_var, TD_FINISH_STD)

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

static td_status plan_extreme(const td_call *call, td_meta *out, bool least) {
    const td_value *a = call->args;
    td_status status = check_not_empty(a[0].tensor, a[1], least ? "min" : "max");
    return status ? status
                  : plan_over(call, a[1], a[2].b, least ? TD_REDUCE_MIN : TD_REDUCE_MAX,
                              (td_dtype)a[0].tensor->dtype, out);
}
TD_RULE(rule_amax, plan_extreme, false)
TD_RULE(rule_amin, plan_extreme, true)

/* Places, and before them values where the operator has two results. */
static td_status plan_find(const td_call *call, td_meta *out, bool least) {
    const td_tensor *x = call->args[0].tensor;
    td_find_plan *p = TD_PLAN(call, td_find_plan);
    *p = (td_find_plan){.least = least};
    td_status status = check_not_empty(x, call->args[1], least ? "min" : "max");
    if (status == TD_OK)
        status = td_reduce_dims(call->args[1], x->ndim, &p->mask);
    for (int k = 0, last = call->op->nresults - 1; k <= last && status == TD_OK; k++) {
        out[k].dtype = k == last ? TD_I64 : (td_dtype)x->dtype;
        out[k].ndim = td_reduce_shape(x, p->mask, call->args[2].b, out[k].sizes);
    }
    return status;
}
TD_RULE(rule_find_max, plan_find, false)
TD_RULE(rule_find_min, plan_find, true)

static td_status plan_count(const td_call *call, td_meta *out, td_finish finish, td_dtype dtype) {
    const td_value *a = call->args;
    td_status status = plan_over(call, a[1], a[2].b, TD_REDUCE_NONZERO, dtype, out);
    TD_PLAN(call, td_reduce_plan)->finish = finish;
    return status;
}
/* Truths are bool, but for uint8, which had been the dtype of masks. */
static td_status plan_truth(const td_call *call, td_meta *out, td_finish finish) {
    bool byte = call->args[0].tensor->dtype == TD_U8;
    return plan_count(call, out, byte && finish == TD_FINISH_PLAIN ? TD_FINISH_ANY : finish,
                      byte ? TD_U8 : TD_BOOL);
}
TD_RULE(rule_any, plan_truth, TD_FINISH_PLAIN)
TD_RULE(rule_all, plan_truth, TD_FINISH_ALL)
TD_RULE(rule_count_nonzero, plan_count, TD_FINISH_PLAIN, TD_I64)

static td_reducer norm_reducer(double p) {
    if (isinf(p))
        return p > 0 ? TD_REDUCE_ABS_MAX : TD_REDUCE_ABS_MIN;
    return p == 0   ? TD_REDUCE_NONZERO
           : p == 1 ? TD_REDUCE_ABS_SUM
           : p == 2 ? TD_REDUCE_SQUARE_SUM
                    : TD_REDUCE_POWER_SUM;
}

/* "fro" is 2, but over two dims at most, and "nuc" the sum of singular values. */
static td_status choose_norm(const td_value *args, const td_op **op) {
    if (args[1].kind != TD_KIND_STRING)
        return TD_OK;
    const char *word = args[1].string;
    bool nuclear = !strcmp(word, "nuc"), all = td_is_nil(args[2]);
    int n = all ? args[0].tensor->ndim : args[2].n;
    if (nuclear ? n != 2 : n > 2 && !all)
        return td_fail(TD_EVALUE, "p \"%s\" takes %stwo dims, got %d", word,
                       nuclear ? "" : "at most ", n);
    *op = nuclear ? TD_OP(nuclear_norm) : TD_OP(frobenius_norm);
    return TD_OK;
}

static td_status rule_norm(const td_call *call, td_meta *out) {
    const td_value *a = call->args;
    double power = td_arg_double(a[1]);
    td_reduce_plan *p = TD_PLAN(call, td_reduce_plan);
    td_dtype dtype;
    td_status status = float_dtype(a[0].tensor->dtype, a[4], &dtype);
    if (status == TD_OK && (power < 0 || isinf(power)))
        status = check_not_empty(a[0].tensor, a[2], "this norm");
    if (status == TD_OK)
        status = plan_over(call, a[2], a[3].b, norm_reducer(power), dtype, out);
    if (status == TD_OK &&
        (p->reducer == TD_REDUCE_SQUARE_SUM || p->reducer == TD_REDUCE_POWER_SUM)) {
        p->finish = TD_FINISH_POWER;
        p->param = 1 / power;
        p->power = power;
    }
    return status;
}

static td_status rule_sum_to_size(const td_call *call, td_meta *out) {
    const td_tensor *x = call->args[0].tensor;
    const td_value *sizes = &call->args[1];
    td_reduce_plan *p = TD_PLAN(call, td_reduce_plan);
    *p = (td_reduce_plan){.reducer = TD_REDUCE_SUM, .compute = (td_dtype)x->dtype};
    td_status status = td_reduce_dims_to(x, sizes->n, sizes->ints, &p->mask);
    if (status)
        return status;
    if (!td_dtype_is_float(x->dtype) && x->dtype != TD_I64)
        return td_fail(TD_EDTYPE, "not for %s", td_dtype_name(x->dtype));
    td_meta_set(out, (td_dtype)x->dtype, sizes->n, sizes->ints);
    return TD_OK;
}

/* ---- kernels ---- */

TD_KERNEL(kernel_reduce, reduce, td_reduce_plan, 1, 1)

static td_status kernel_find(td_call *call) {
    td_find_plan *p = TD_PLAN(call, td_find_plan);
    bool both = call->op->nresults == 2;
    p->values = both ? call->out[0] : NULL;
    p->index = call->out[both];
    p->x = call->args[0].tensor;
    return TD_RUN(td_tensor_device(p->index), find, p);
}

/* ---- composites ---- */

/* Without a dim the value alone; with one, values and where they are. */
static td_status run_max(td_call *call) {
    return td_is_nil(call->args[1])
               ? TD_APPLY(call->out, amax, call->args[0], TD_NIL, call->args[2])
               : td_call_as(call, TD_OP(max_dim), 3);
}

static td_status run_min(td_call *call) {
    return td_is_nil(call->args[1])
               ? TD_APPLY(call->out, amin, call->args[0], TD_NIL, call->args[2])
               : td_call_as(call, TD_OP(min_dim), 3);
}

/* ---- products without one factor ---- */

/* Replace *y by the products of the elements before each one along a dim, by doubling. */
static td_status products_before(td_tensor **y, int64_t dim) {
    td_tensor *ones = NULL, *head = NULL, *tail = NULL;
    int64_t n = (*y)->sizes[dim];
    td_status status = TD_OK;
    TD_TRY(TD_APPLY(&ones, ones_like, TD_T(*y)));
    for (int64_t shift = 0; shift < n; shift = shift ? 2 * shift : 1) {
        int64_t by = shift ? shift : 1; /* the first step moves, the others multiply */
        TD_STEP(&head, narrow, TD_T(ones), TD_I(dim), TD_I(0), TD_I(by));
        TD_STEP(&tail, narrow, TD_T(*y), TD_I(dim), TD_I(0), TD_I(n - by));
        TD_STEP(&tail, cat, TD_TENSORS(2, ((td_tensor *[]){head, tail})), TD_I(dim));
        if (shift)
            TD_STEP(&tail, mul, TD_T(*y), TD_T(tail));
        td_release(*y);
        *y = td_retain(tail);
    }
done:
    td_release(ones);
    td_release(head);
    td_release(tail);
    return status;
}

/* Without a graph by division, for which one looks whether there are zeros. */
static td_status divide_prod(const td_value *a, td_tensor **out) {
    td_tensor *whole = NULL;
    double none = 0;
    td_status status = TD_APPLY(&whole, all, a[2]);
    if (status == TD_OK && td_has_elements(whole))
        status = td_tensor_item(whole, &none);
    td_release(whole);
    return status      ? status
           : none != 0 ? TD_APPLY(out, div, a[1], a[2])
                       : TD_APPLY(out, quotients, a[0], a[2], a[3]);
}

/* Dim by dim times the product of those before each element, of those after it, and of whole lines:
 * unlike quotients it has a derivative that is right where there are zeros. */
static td_status run_prod_backward(td_call *call) {
    const td_value *a = call->args;
    td_tensor *x = a[2].tensor, *g = td_retain(a[0].tensor), *y = td_retain(x), *side = NULL;
    uint32_t mask;
    td_status status = TD_OK;
    TD_TRY(td_reduce_dims(a[3], x->ndim, &mask));
    if (!td_grad_enabled()) {
        status = divide_prod(a, &call->out[0]);
        goto done;
    }
    for (int64_t d = 0; d < x->ndim; d++) {
        if (!(mask >> d & 1))
            continue;
        td_release(side);
        side = td_retain(y);
        TD_TRY(products_before(&side, d));
        TD_STEP(&g, mul, TD_T(g), TD_T(side));
        TD_STEP(&side, flip, TD_T(y), TD_INTS(1, &d));
        TD_TRY(products_before(&side, d));
        TD_STEP(&side, flip, TD_T(side), TD_INTS(1, &d));
        TD_STEP(&g, mul, TD_T(g), TD_T(side));
        TD_STEP(&y, prod, TD_T(y), TD_INTS(1, &d), TD_B(true));
    }
    call->out[0] = td_retain(g);
done:
    td_release(g);
    td_release(y);
    td_release(side);
    return status;
}

/* ---- the table ---- */

/* The incoming gradient among the elements of y, x or |x|, that equal the result. */
#define SHARED(y)                                                                                  \
    "where(" y " == expand_back(out, x.shape, dim, keepdim),"                                      \
    "      expand_back(g / sum(" y " == expand_back(out, x.shape, dim, keepdim),"                  \
    "                          dim, keepdim=keepdim), x.shape, dim, keepdim), 0)"
/* Where the divisor is not positive: what comes in for the variance, times NaN or infinity. */
#define DIVISOR                                                                                    \
    "divisor = x.numel / g.numel - if(unbiased == nil, correction, if(unbiased == true, 1, 0));"
#define NO_SPREAD(incoming)                                                                        \
    "expand_back(" incoming ", x.shape, dim, keepdim) *"                                           \
    "   where(x == mean(x, dim, keepdim=true), nan, inf)"
#define TO_THE_PLACE                                                                               \
    "x: scatter(expand_back(zeros_like(g.values), x.shape, dim, keepdim), dim,"                    \
    "           if(keepdim, indices, unsqueeze(indices, dim)),"                                    \
    "           if(keepdim, g.values, unsqueeze(g.values, dim)))"
/* p = 2: y / |y|, at 0 with the infinite length that makes it and what follows from it 0; else
 * sign(y) |y|^(p - 1) / norm^(p - 1), without 0 * inf, as quotients, whose powers neither overflow
 * nor vanish; 0 where the norm is. */
#define NORM_SLOPE                                                                                 \
    "y = to(x, g.dtype); real = where(out == 0, 1, out);"                                          \
    "long = expand_back(real, x.shape, dim, keepdim);"                                             \
    "x: if(p == 2, expand_back(g, x.shape, dim, keepdim) *"                                        \
    "         (y / expand_back(where(out == 0, inf, out), x.shape, dim, keepdim)),"                \
    "   if(p == 1, expand_back(g, x.shape, dim, keepdim) * sign(y),"                               \
    "   if(p == 0, zeros_like(y),"                                                                 \
    "   if(p == inf or p == -inf, sign(y) * " SHARED(                                              \
        "abs(y)") ","                                                                              \
                  "   expand_back(g, x.shape, dim, keepdim) * sign(y) *"                           \
                  "   if(p < 0, where(y == 0, 0, (abs(y) /"                                        \
                  "                expand_back(out, x.shape, dim, keepdim)) ^ (p - 1)),"           \
                  "   if(p < 1, where(y == 0, 0, (abs(y) / long) ^ (p - 1)),"                      \
                  "      (abs(y) / long) ^ (p - 1)))))))"

TD_OPERATOR(sum) = {
    .schema = "(Tensor x, dim[]? dim=nil, *, bool keepdim=false, dtype? dtype=nil) -> Tensor",
    .doc = "Sum of all elements, or over the given dims; integers and masks give int64.",
    .takes = "any; integers and bool count as int64",
    .rule = rule_sum,
    .kernel = kernel_reduce,
    .dtypes = TD_DTYPES_ALL,
    .forms[TD_SPARSE_COO] = td_sparse_sum,
    .gradient = "x: expand_back(g, x.shape, dim, keepdim)",
    .autocast = {[TD_CUDA] = TD_AUTOCAST_FP32_RESULT},
    .flags = TD_OP_OUT,
};
TD_OPERATOR(nansum) = {
    .schema = "(Tensor x, dim[]? dim=nil, *, bool keepdim=false, dtype? dtype=nil) -> Tensor",
    .doc = "Sum that takes NaN for 0.",
    .takes = "any; integers and bool count as int64",
    .rule = rule_nansum,
    .kernel = kernel_reduce,
    .dtypes = TD_DTYPES_ALL,
    .gradient = "x: where(x == x, expand_back(g, x.shape, dim, keepdim), 0)",
    .flags = TD_OP_OUT,
};
TD_OPERATOR(mean) = {
    .schema = "(Tensor x, dim[]? dim=nil, *, bool keepdim=false, dtype? dtype=nil) -> Tensor",
    .doc = "Mean of all elements, or over the given dims.",
    .takes = "floating; any with dtype",
    .rule = rule_mean,
    .kernel = kernel_reduce,
    .dtypes = TD_DTYPES_ALL,
    .gradient = "x: expand_back(g / (x.numel / g.numel), x.shape, dim, keepdim)",
    .flags = TD_OP_OUT,
    .forms[TD_QUANTIZED] = td_quantized_average,
};
TD_OPERATOR(prod) = {
    .schema = "(Tensor x, dim[]? dim=nil, *, bool keepdim=false, dtype? dtype=nil) -> Tensor",
    .doc = "Product of all elements, or over the given dims; integers and masks give int64.",
    .takes = "any; integers and bool count as int64",
    .rule = rule_prod,
    .kernel = kernel_reduce,
    .dtypes = TD_DTYPES_ALL,
    .gradient = "x: if(x.ndim == 0, g, prod_backward(expand_back(g, x.shape, dim, keepdim),"
                "                                    expand_back(g * out, x.shape, dim, keepdim),"
                "                                    to(x, g.dtype), dim))",
    .autocast = {[TD_CPU] = TD_AUTOCAST_FP32, [TD_CUDA] = TD_AUTOCAST_FP32_RESULT},
    .flags = TD_OP_OUT,
};
TD_OPERATOR(prod_backward) = {
    .schema = "(Tensor gy, Tensor gy_product, Tensor x, dim[]? dim) -> Tensor",
    .doc = "gy times the product of the elements that prod multiplies each one by.",
    .run = run_prod_backward,
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(quotients) = {
    .schema = "(Tensor gy, Tensor x, dim[]? dim) -> Tensor",
    .doc = "prod_backward by division, where it need not be differentiated.",
    .formula = "product = prod(factor(x), dim, keepdim=true);"
               "zeros = x.numel - count_nonzero(x, dim, keepdim=true) * product.numel;"
               "quotient(gy, x, product, zeros / product.numel)",
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(factor) = {
    .schema = "(Tensor x) -> Tensor",
    .doc = "1 in the place of 0.",
    .pointwise = &(const td_pointwise){.type = TD_PW_FLOATS,
                                       .primitive = -1,
                                       .formula = "where(eq(x, 0), 1, x)"},
    .flags = TD_OP_INTERNAL | TD_OP_NONDIFF,
};
TD_OPERATOR(quotient) = {
    .schema = "(Tensor gy, Tensor x, Tensor product, Tensor zeros) -> Tensor",
    .doc = "gy * product / x where no other factor is 0, else 0; zeros counts them all.",
    .pointwise = &(const td_pointwise){.type = TD_PW_FLOATS,
                                       .primitive = -1,
                                       .formula = "where(eq(zeros, eq(x, 0)),"
                                                  "      gy * product / where(eq(x, 0), 1, x), 0)"},
    .flags = TD_OP_INTERNAL | TD_OP_NONDIFF,
};
TD_OPERATOR(var) = {
    .schema = "(Tensor x, dim[]? dim=nil, *, number correction=1, bool keepdim=false, "
              "bool? unbiased=nil) -> Tensor",
    .doc = "Variance: squared deviations from the mean over count - correction.",
    .notes = "Divides by n - correction; of one element nan.",
    .rule = rule_var,
    .kernel = kernel_reduce,
    .dtypes = TD_DTYPES_FLOATS,
    .gradient = DIVISOR "x: if(divisor > 0,"
                        "      expand_back(g * (2 / divisor), x.shape, dim, keepdim) * (x - "
                        "mean(x, dim, keepdim=true)),"
                        "   " NO_SPREAD("g") ")",
    .flags = TD_OP_OUT,
};
TD_OPERATOR(std) = {
    .schema = "(Tensor x, dim[]? dim=nil, *, number correction=1, bool keepdim=false, "
              "bool? unbiased=nil) -> Tensor",
    .doc = "Standard deviation, the square root of var.",
    .notes = "Divides by n - correction; of one element nan.",
    .rule = rule_std,
    .kernel = kernel_reduce,
    .dtypes = TD_DTYPES_FLOATS,
    .gradient = DIVISOR /* a quotient near 1, of which no gradient leaves the dtype by a square */
    "x: if(divisor > 0, expand_back(g * (1 / divisor), x.shape, dim, keepdim) *"
    "      ((x - mean(x, dim, keepdim=true)) /"
    "       expand_back(where(out == 0, inf, out), x.shape, dim, keepdim)),"
    "   " NO_SPREAD("where(out == 0, 0, g / (2 * out))") ")",
    .flags = TD_OP_OUT,
};
TD_OPERATOR(amax) = {
    .schema = "(Tensor x, dim[]? dim=nil, *, bool keepdim=false) -> Tensor",
    .doc = "Largest element, of all or over the given dims; equals share the gradient.",
    .rule = rule_amax,
    .kernel = kernel_reduce,
    .dtypes = TD_DTYPES_ALL,
    .gradient = "x: " SHARED("x"),
    .flags = TD_OP_OUT | TD_OP_OUT_EXACT,
};
TD_OPERATOR(amin) = {
    .schema = "(Tensor x, dim[]? dim=nil, *, bool keepdim=false) -> Tensor",
    .doc = "Smallest element, of all or over the given dims; equals share the gradient.",
    .rule = rule_amin,
    .kernel = kernel_reduce,
    .dtypes = TD_DTYPES_ALL,
    .gradient = "x: " SHARED("x"),
    .flags = TD_OP_OUT | TD_OP_OUT_EXACT,
};
TD_OPERATOR(max) = {
    .schema = "(Tensor x, dim? dim=nil, *, bool keepdim=false) -> "
              "(Tensor values, index Tensor indices)",
    .doc = "Largest element; along a dim, the largest elements and where they are.",
    .notes = "NaN wins. Without dim one element, without indices; max(x, y) is maximum. No "
             "elements are an error.",
    .run = run_max,
    .flags = TD_OP_OUT,
};
TD_OPERATOR(min) = {
    .schema = "(Tensor x, dim? dim=nil, *, bool keepdim=false) -> "
              "(Tensor values, index Tensor indices)",
    .doc = "Smallest element; along a dim, the smallest elements and where they are.",
    .notes = "NaN wins. Without dim one element, without indices; min(x, y) is minimum. No "
             "elements are an error.",
    .run = run_min,
    .flags = TD_OP_OUT,
};
TD_OPERATOR(max_dim) = {
    .schema = "(Tensor x, dim dim, bool keepdim=false) -> "
              "(Tensor values, index Tensor indices)",
    .doc = "Largest elements along a dim and the first place of each.",
    .rule = rule_find_max,
    .kernel = kernel_find,
    .dtypes = TD_DTYPES_ALL,
    .gradient = TO_THE_PLACE,
    .flags = TD_OP_INTERNAL | TD_OP_OUT | TD_OP_OUT_EXACT | TD_OP_OUT_APART,
};
TD_OPERATOR(min_dim) = {
    .schema = "(Tensor x, dim dim, bool keepdim=false) -> "
              "(Tensor values, index Tensor indices)",
    .doc = "Smallest elements along a dim and the first place of each.",
    .rule = rule_find_min,
    .kernel = kernel_find,
    .dtypes = TD_DTYPES_ALL,
    .gradient = TO_THE_PLACE,
    .flags = TD_OP_INTERNAL | TD_OP_OUT | TD_OP_OUT_EXACT | TD_OP_OUT_APART,
};
TD_OPERATOR(argmax) = {
    .schema = "(Tensor x, dim? dim=nil, *, bool keepdim=false) -> index Tensor",
    .doc = "Where the largest element is, the first of equals; without a dim in row-major order.",
    .notes = "Of equal elements the first. NaN is larger than all. Without dim the place among all "
             "elements, row by row.",
    .rule = rule_find_max,
    .kernel = kernel_find,
    .dtypes = TD_DTYPES_ALL,
    .flags = TD_OP_NONDIFF | TD_OP_OUT | TD_OP_OUT_EXACT,
};
TD_OPERATOR(argmin) = {
    .schema = "(Tensor x, dim? dim=nil, *, bool keepdim=false) -> index Tensor",
    .doc = "Where the smallest element is, the first of equals; without a dim in row-major order.",
    .notes = "Of equal elements the first. NaN counts before all. Without dim the place among all "
             "elements, row by row.",
    .rule = rule_find_min,
    .kernel = kernel_find,
    .dtypes = TD_DTYPES_ALL,
    .flags = TD_OP_NONDIFF | TD_OP_OUT | TD_OP_OUT_EXACT,
};
TD_OPERATOR(any) = {
    .schema = "(Tensor x, dim[]? dim=nil, *, bool keepdim=false) -> Tensor",
    .doc = "Is an element different from zero?",
    .takes = "any; the result is bool; uint8 gives uint8",
    .rule = rule_any,
    .kernel = kernel_reduce,
    .dtypes = TD_DTYPES_ALL,
    .flags = TD_OP_NONDIFF | TD_OP_OUT | TD_OP_OUT_EXACT,
};
TD_OPERATOR(all) = {
    .schema = "(Tensor x, dim[]? dim=nil, *, bool keepdim=false) -> Tensor",
    .doc = "Are all elements different from zero?",
    .takes = "any; the result is bool; uint8 gives uint8",
    .rule = rule_all,
    .kernel = kernel_reduce,
    .dtypes = TD_DTYPES_ALL,
    .flags = TD_OP_NONDIFF | TD_OP_OUT | TD_OP_OUT_EXACT,
};
TD_OPERATOR(count_nonzero) = {
    .schema = "(Tensor x, dim[]? dim=nil, *, bool keepdim=false) -> Tensor",
    .doc = "Number of elements different from zero.",
    .takes = "any; the result is int64",
    .rule = rule_count_nonzero,
    .kernel = kernel_reduce,
    .dtypes = TD_DTYPES_ALL,
    .flags = TD_OP_NONDIFF,
};
TD_OPERATOR(nanmean) = {
    .schema = "(Tensor x, dim[]? dim=nil, *, bool keepdim=false) -> Tensor",
    .doc = "Mean of what is not NaN, of all elements or over the given dims.",
    .takes = "any; integers and bool count as float32",
    .formula = "nansum(x, dim, keepdim) / sum(x == x, dim, keepdim)",
    .flags = TD_OP_OUT,
};
TD_OPERATOR(norm) = {
    .schema = "(Tensor x, number|\"fro\"|\"nuc\" p=2, dim[]? dim=nil, *, bool keepdim=false, "
              "dtype? dtype=nil) -> Tensor",
    .doc = "Vector p-norm of all elements or over the given dims; p may be math.huge, 1, 0, ...; "
           "\"nuc\": the sum of singular values over two dims.",
    .takes = "floating",
    .variant = choose_norm,
    .rule = rule_norm,
    .kernel = kernel_reduce,
    .dtypes = TD_DTYPES_ALL,
    .forms[TD_SPARSE_COO] = td_sparse_norm,
    .gradient = NORM_SLOPE,
    .autocast = {[TD_CUDA] = TD_AUTOCAST_FP32},
    .flags = TD_OP_OUT | TD_OP_OUT_EXACT,
};
TD_OPERATOR(frobenius_norm) = {
    .schema =
        "(Tensor x, str p, dim[]? dim=nil, *, bool keepdim=false, dtype? dtype=nil) -> Tensor",
    .doc = "Square root of the sum of squares.",
    .formula = "norm(x, 2, dim, keepdim=keepdim, dtype=dtype)",
    .flags = TD_OP_INTERNAL | TD_OP_OUT | TD_OP_OUT_EXACT,
};
TD_OPERATOR(nuclear_norm) = {
    .schema =
        "(Tensor x, str p, dim[]? dim=nil, *, bool keepdim=false, dtype? dtype=nil) -> Tensor",
    .doc = "Sum of the singular values of the matrices in two dims.",
    .formula = "dims = if(dim == nil, {-2, -1}, dim);"
               "m = movedim(if(dtype == nil, x, to(x, dtype)), dims, {-2, -1});"
               "s = sum(linalg_svdvals(m), -1);"
               "if(keepdim, movedim(unsqueeze(unsqueeze(s, -1), -1), {-2, -1}, dims), s)",
    .flags = TD_OP_INTERNAL | TD_OP_OUT | TD_OP_OUT_EXACT,
};
TD_OPERATOR(logsumexp) = {
    .schema = "(Tensor x, dim[]? dim=nil, *, bool keepdim=false) -> Tensor",
    .doc = "Logarithm of the sum of exp(x), without overflow.",
    .takes = "any; integers and bool count as float32",
    .formula = "m = if(x.numel == 0, sum(x, dim, keepdim=true), amax(x, dim, keepdim=true));"
               "least = where(isfinite(m), m, 0.0);"
               "s = sum(exp(x - least), dim, keepdim=keepdim);"
               "log(s) + reshape(least, s.shape)",
    .gradient = "x: expand_back(g, x.shape, dim, keepdim) *"
                "   exp(x - expand_back(out, x.shape, dim, keepdim))",
    .autocast = {[TD_CUDA] = TD_AUTOCAST_FP32},
    .flags = TD_OP_OUT,
};
/* x itself where it is of that shape; integers sum to int64, as everywhere. */
static td_status run_sum_to_size(td_call *call) {
    td_tensor *x = call->args[0].tensor, *wide = NULL;
    td_value size = call->args[1];
    td_status status = TD_OK;
    if (size.n > 0 && size.n == x->ndim &&
        !memcmp(size.ints, x->sizes, sizeof(int64_t) * (size_t)size.n))
        return TD_APPLY(&call->out[0], view_as, TD_T(x), TD_T(x));
    TD_TRY(TD_APPLY(&wide, to, TD_T(x), TD_DTYPE(td_reduce_sum_dtype(x->dtype, TD_NIL))));
    status = TD_APPLY(&call->out[0], sum_to, TD_T(wide), size);
done:
    td_release(wide);
    return status;
}
TD_OPERATOR(sum_to_size) = {
    .schema = "(Tensor x, int[] size) -> Tensor",
    .doc = "Sum x to a shape that broadcasts to its own.",
    .shapes = "x (...) -> (size...)",
    .takes = "any; integers and bool count as int64",
    .run = run_sum_to_size,
    .flags = TD_OP_METHOD_ONLY,
};
TD_OPERATOR(sum_to) = {
    .schema = "(Tensor x, int[] sizes) -> Tensor",
    .doc = "Sum x to a shape that broadcasts to its own.",
    .rule = rule_sum_to_size,
    .kernel = kernel_reduce,
    .dtypes = TD_DTYPES_ALL,
    .gradient = "x: expand(g, x.shape)",
    .flags = TD_OP_INTERNAL,
};
