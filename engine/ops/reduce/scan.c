/* scan.c: what gathers along a dim: running sums, products, extremes, log-sum-exps. Knows shapes
 * and dtypes. Gradients that run the other way are linear recurrences, whose gradients are such
 * again. */
#include "engine/ops/plan/plan.h"
#include "engine/ops/plan/reduction.h"
#include "engine/ops/rule_helpers.h"

#define TD_FAMILY "scan"

/* ---- rules ---- */

static td_status plan_scan(const td_call *call, td_meta *out, td_scan_kind kind, td_dtype dtype) {
    const td_tensor *x = call->args[0].tensor;
    td_scan_plan *p = TD_PLAN(call, td_scan_plan);
    *p = (td_scan_plan){.kind = kind};
    td_status status = td_wrap_dim(call->args[1].i, x->ndim, &p->dim);
    if (status)
        return status;
    td_meta_like(out, x, dtype);
    return TD_OK;
}

static td_status plan_sum(const td_call *call, td_meta *out, td_scan_kind kind) {
    td_dtype dtype = td_reduce_sum_dtype(call->args[0].tensor->dtype, call->args[2]);
    return dtype != TD_BOOL ? plan_scan(call, out, kind, dtype)
                            : td_fail(TD_EDTYPE, "no bool result: give an integer dtype");
}
TD_RULE(rule_cumsum, plan_sum, TD_SCAN_SUM)
TD_RULE(rule_cumprod, plan_sum, TD_SCAN_PROD)

static td_status plan_extreme(const td_call *call, td_meta *out, td_scan_kind kind) {
    const td_tensor *x = call->args[0].tensor;
    td_meta_like(&out[1], x, TD_I64);
    return plan_scan(call, out, kind, (td_dtype)x->dtype);
}
TD_RULE(rule_cummax, plan_extreme, TD_SCAN_MAX)
TD_RULE(rule_cummin, plan_extreme, TD_SCAN_MIN)

static td_status plan_floats(const td_call *call, td_meta *out, td_scan_kind kind) {
    return plan_scan(call, out, kind, (td_dtype)call->args[0].tensor->dtype);
}
TD_RULE(rule_logcumsumexp, plan_floats, TD_SCAN_LOG_SUM_EXP)

static td_status rule_linear_scan(const td_call *call, td_meta *out) {
    td_status status = td_check_same_shape(call->args[0].tensor, "x", call->args[2].tensor, "a");
    return status ? status : plan_floats(call, out, TD_SCAN_LINEAR);
}

static td_status kernel_scan(td_call *call) {
    td_scan_plan *p = TD_PLAN(call, td_scan_plan);
    bool factors = p->kind == TD_SCAN_LINEAR;
    p->out = call->out[0];
    p->index = call->op->nresults > 1 ? call->out[1] : NULL;
    p->x = call->args[0].tensor;
    p->a = factors ? call->args[2].tensor : NULL;
    return p->out->numel ? TD_RUN(td_tensor_device(p->out), scan, p) : TD_OK;
}

/* ---- the table ---- */

/* Every element's share: the products before it, times the sum of the products behind it, each
 * times what comes in there. Without a division, so that zeros need no care. */
#define PRODUCT_SLOPE                                                                              \
    "n = x.size(dim); y = to(x, g.dtype);"                                                         \
    "behind = flip(linear_scan(flip(g, dim), dim, flip(y, dim)), dim);"                            \
    "x: if(x.ndim == 0 or x.numel == 0, g,"                                                        \
    "      behind * cat({ones_like(narrow(out, dim, 0, 1)), narrow(out, dim, 0, n - 1)}, dim))"
/* exp(x_i - y_i) times the sum over j >= i of g_j exp(y_i - y_j): no exponent is above 0. */
#define LOG_SLOPE                                                                                  \
    "n = x.size(dim); logs = unrounded_logs(x, out, dim); y = flip(logs, dim);"                    \
    "falls = exp(narrow(y, dim, 1, n - 1) - narrow(y, dim, 0, n - 1));"                            \
    "factors = cat({falls, zeros_like(narrow(y, dim, 0, 1))}, dim);"                               \
    "x: if(x.ndim == 0 or x.numel == 0, g,"                                                        \
    "      flip(linear_scan(flip(widened(g), dim), dim, factors), dim) * exp(x - logs))"
/* The recurrence from the other end; its factors are those of the places between. */
#define LINEAR_SLOPE                                                                               \
    "n = x.size(dim);"                                                                             \
    "back = flip(linear_scan(flip(g, dim), dim, roll(flip(a, dim), -1, dim)), dim);"               \
    "x: if(x.numel == 0, g, back);"                                                                \
    "a: if(x.numel == 0, g, cat({narrow(back, dim, 1, n - 1) * narrow(out, dim, 0, n - 1),"        \
    "                            zeros_like(narrow(out, dim, 0, 1))}, dim))"
#define TO_THE_PLACES                                                                              \
    "w = widened(g.values);"                                                                       \
    "x: if(x.numel == 0, g.values, scatter_add(zeros_like(w), dim, indices, w))"

/* In 16 bits a logarithm is rounded by as much as decides whether its exponential is e or 1 / e. */
static td_status run_unrounded_logs(td_call *call) {
    td_tensor *wide = NULL;
    td_status status = TD_OK;
    if (td_dtype_wide((td_dtype)call->args[1].tensor->dtype) == call->args[1].tensor->dtype)
        return TD_APPLY(&call->out[0], view_as, call->args[1], call->args[1]);
    TD_TRY(TD_APPLY(&wide, widened, call->args[0]));
    status = TD_APPLY(&call->out[0], logcumsumexp, TD_T(wide), call->args[2]);
done:
    td_release(wide);
    return status;
}
TD_OPERATOR(unrounded_logs) = {
    .schema = "(Tensor x, Tensor out, dim dim) -> Tensor",
    .doc = "out, the logcumsumexp of x, in float32 where it has 16 bits.",
    .run = run_unrounded_logs,
    .flags = TD_OP_INTERNAL,
};

TD_OPERATOR(cumsum) = {
    .schema = "(Tensor x, dim dim, *, dtype? dtype=nil) -> Tensor",
    .doc = "Running sums along a dim.",
    .takes = "any; integers and bool count as int64",
    .rule = rule_cumsum,
    .kernel = kernel_scan,
    .dtypes = TD_DTYPES_ALL,
    .gradient = "x: flip(cumsum(flip(g, dim), dim), dim)",
    .autocast = {[TD_CUDA] = TD_AUTOCAST_FP32_RESULT},
    .flags = TD_OP_OUT | TD_OP_INPLACE,
};
TD_OPERATOR(cumprod) = {
    .schema = "(Tensor x, dim dim, *, dtype? dtype=nil) -> Tensor",
    .doc = "Running products along a dim.",
    .takes = "any; integers and bool count as int64",
    .rule = rule_cumprod,
    .kernel = kernel_scan,
    .dtypes = TD_DTYPES_ALL,
    .gradient = PRODUCT_SLOPE,
    .autocast = {[TD_CUDA] = TD_AUTOCAST_FP32_RESULT},
    .flags = TD_OP_OUT | TD_OP_INPLACE,
};
TD_OPERATOR(cummax) = {
    .schema = "(Tensor x, dim dim) -> (Tensor values, index Tensor indices)",
    .doc = "Largest element so far along a dim, and where the last of its equals is.",
    .shapes = "x (...) -> (...), (...)",
    .rule = rule_cummax,
    .kernel = kernel_scan,
    .dtypes = TD_DTYPES_ALL,
    .gradient = TO_THE_PLACES,
    .flags = TD_OP_OUT | TD_OP_OUT_EXACT,
};
TD_OPERATOR(cummin) = {
    .schema = "(Tensor x, dim dim) -> (Tensor values, index Tensor indices)",
    .doc = "Smallest element so far along a dim, and where the last of its equals is.",
    .shapes = "x (...) -> (...), (...)",
    .rule = rule_cummin,
    .kernel = kernel_scan,
    .dtypes = TD_DTYPES_ALL,
    .gradient = TO_THE_PLACES,
    .flags = TD_OP_OUT | TD_OP_OUT_EXACT,
};
TD_OPERATOR(logcumsumexp) = {
    .schema = "(Tensor x, dim dim) -> Tensor",
    .doc = "Logarithm of the running sums of exp(x) along a dim, without overflow.",
    .shapes = "x (...) -> (...)",
    .rule = rule_logcumsumexp,
    .kernel = kernel_scan,
    .dtypes = TD_DTYPES_FLOATS,
    .gradient = LOG_SLOPE,
    .flags = TD_OP_OUT | TD_OP_OUT_EXACT,
};
TD_OPERATOR(linear_scan) = {
    .schema = "(Tensor x, dim dim, Tensor a) -> Tensor",
    .doc = "y_k = x_k + a_(k-1) * y_(k-1) along a dim.",
    .rule = rule_linear_scan,
    .kernel = kernel_scan,
    .dtypes = TD_DTYPES_FLOATS,
    .gradient = LINEAR_SLOPE,
    .flags = TD_OP_INTERNAL,
};
