/* activation.c: the activations of neural networks beyond the first ones, which are in pointwise.c:
 * each a formula with its gradient; those that ask for more than single elements are composites. */
#include "engine/ops/pointwise/pointwise_rows.h"
#include "engine/ops/quantized/quantized.h"
#include "engine/ops/rule_helpers.h"

#define TD_FAMILY "activation"

/* ---- checks ---- */

static td_status check_bounds(const td_value *args, const td_op **op) {
    (void)op;
    double low = td_arg_double(args[1]), high = td_arg_double(args[2]);
    if (low > high)
        return td_fail(TD_EVALUE, "min_val %g is larger than max_val %g", low, high);
    return TD_OK;
}

static td_status check_alpha(const td_value *args, const td_op **op) {
    (void)op;
    return td_arg_double(args[1]) == 0 ? td_fail(TD_EVALUE, "alpha must not be 0") : TD_OK;
}

/* ---- with an operand of the channels, or halves ---- */

/* One slope for all, or one for each channel: x's second dim. */
static td_status run_prelu(td_call *call) {
    td_tensor *x = call->args[0].tensor, *weight = call->args[1].tensor, *slopes = NULL;
    int64_t sizes[TD_MAX_DIMS], channels = x->ndim >= 2 ? x->sizes[1] : 1;
    int ndim = weight->numel == 1 ? 0 : x->ndim;
    td_status status = TD_OK;
    if (weight->dtype != x->dtype)
        return td_fail(TD_EDTYPE, "dtypes %s and %s differ: convert one with x:to(dtype)",
                       td_dtype_name((td_dtype)x->dtype), td_dtype_name((td_dtype)weight->dtype));
    if (weight->ndim > 1 || (weight->numel != 1 && weight->numel != channels))
        return td_fail(
            TD_ESHAPE,
            "weight must have one element, or one for each of the %lld channels, got %lld "
            "in %d dims",
            (long long)channels, (long long)weight->numel, weight->ndim);
    for (int d = 0; d < ndim; d++)
        sizes[d] = d == 1 ? channels : 1;
    TD_TRY(TD_APPLY(&slopes, reshape, TD_T(weight), TD_INTS(ndim, sizes)));
    TD_TRY(TD_APPLY(&call->out[0], prelu_slope, TD_T(x), TD_T(slopes)));
done:
    td_release(slopes);
    return status;
}

static td_status run_glu(td_call *call) {
    td_tensor *x = call->args[0].tensor, *value = NULL, *gate = NULL;
    td_status status = TD_OK;
    int dim;
    if (x->ndim == 0)
        return td_fail(TD_ESHAPE, "a 0-dim tensor has no dim to be halved");
    TD_TRY(td_wrap_dim(call->args[1].i, x->ndim, &dim));
    int64_t half = x->sizes[dim] / 2;
    if (x->sizes[dim] % 2)
        return td_fail(TD_ESHAPE, "dim %d must be even to be halved, its size is %lld", dim + 1,
                       (long long)x->sizes[dim]);
    TD_TRY(TD_APPLY(&value, narrow, TD_T(x), TD_I(dim), TD_I(0), TD_I(half)));
    TD_TRY(TD_APPLY(&gate, narrow, TD_T(x), TD_I(dim), TD_I(half), TD_I(half)));
    TD_TRY(TD_APPLY(&call->out[0], gated, TD_T(value), TD_T(gate)));
done:
    td_release(value);
    td_release(gate);
    return status;
}

static td_status run_rrelu(td_call *call) {
    double lower = td_arg_double(call->args[1]), upper = td_arg_double(call->args[2]);
    td_tensor *slopes = NULL;
    td_status status = TD_OK;
    td_value args[2] = {call->args[0], TD_F((lower + upper) / 2)};
    if (!(lower <= upper))
        return td_fail(TD_EVALUE, "lower %g is larger than upper %g", lower, upper);
    if (!call->args[3].b)
        return td_pointwise_apply_as(call, TD_OP(leaky_relu), args);
    TD_TRY(TD_APPLY(&slopes, rand_like, args[0], TD_NIL, TD_NIL, TD_STRING("preserve"),
                    call->args[4]));
    TD_STEP(&slopes, mul, TD_T(slopes), TD_F(upper - lower));
    TD_STEP(&slopes, add, TD_T(slopes), TD_F(lower));
    args[1] = TD_T(slopes);
    status = td_pointwise_apply_as(call, TD_OP(prelu_slope), args);
done:
    td_release(slopes);
    return status;
}

/* ---- the table ---- */

FORMULA(relu6, "(Tensor x) -> Tensor", TD_PW_ARITH, "x between 0 and 6.",
        "minimum(maximum(x, 0), 6)", "x: where(logical_or(le(x, 0), ge(x, 6)), 0, g)",
        .dtypes = TD_DTYPES_NUMBERS, .forms[TD_QUANTIZED] = td_quantized_clamp);
TD_OPERATOR(hardtanh) = {
    .schema = "(Tensor x, number min_val=-1, number max_val=1) -> Tensor",
    .doc = "x between two bounds.",
    .pointwise = PLAN(.type = TD_PW_ARITH, .bounds = true, .keeps = true, .primitive = -1,
                      .formula = "minimum(maximum(x, min_val), max_val)"),
    .variant = check_bounds,
    .gradient = "x: where(logical_or(le(x, min_val), ge(x, max_val)), 0, g)",
    .forms[TD_QUANTIZED] = td_quantized_clamp,
    .dtypes = TD_DTYPES_NUMBERS,
    .flags = FORMS,
};
TD_OPERATOR(threshold) = {
    .schema = "(Tensor x, number threshold, number value) -> Tensor",
    .doc = "x where it is over the threshold, else value.",
    .pointwise = PLAN(.type = TD_PW_ARITH, .keeps = true, .primitive = -1,
                      .formula = "where(le(x, threshold), value, x)"),
    .gradient = "x: where(le(x, threshold), 0, g)",
    .dtypes = TD_DTYPES_NUMBERS,
    .flags = FORMS,
};
TD_OPERATOR(celu) = {
    .schema = "(Tensor x, number alpha=1) -> Tensor",
    .doc = "x where positive, else alpha * (exp(x / alpha) - 1).",
    .pointwise = PLAN(.type = TD_PW_FLOATS, .primitive = -1,
                      .formula = "where(gt(x, 0), x, alpha * expm1(x / alpha))"),
    .variant = check_alpha,
    .gradient = "x: where(le(x, 0), g * exp(minimum(x, 0) / alpha), g)",
    .dtypes = TD_DTYPES_FLOATS,
    .flags = FORMS,
};
FORMULA(selu, "(Tensor x) -> Tensor", TD_PW_FLOATS,
        "Scaled elu whose outputs keep mean 0 and variance 1.",
        "1.0507009873554805 * where(gt(x, 0), x, 1.6732632423543772 * expm1(x))",
        "x: where(le(x, 0), g * 1.7580993408473766 * exp(minimum(x, 0)), g * 1.0507009873554805)",
        .dtypes = TD_DTYPES_FLOATS);
FORMULA(mish, "(Tensor x) -> Tensor", TD_PW_FLOATS, "x * tanh(softplus(x)).",
        "x * tanh(log1p(exp(x)))",
        "x: g * (tanh(log1p(exp(minimum(x, 40)))) + " BOUNDED " * sigmoid(" BOUNDED ") *"
        "        (1 - tanh(log1p(exp(minimum(x, 40)))) * tanh(log1p(exp(minimum(x, 40))))))",
        .dtypes = TD_DTYPES_FLOATS);
FORMULA(softsign, "(Tensor x) -> Tensor", TD_PW_FLOATS, "x / (1 + |x|).", "x / (1 + abs(x))",
        "x: g / ((1 + abs(x)) * (1 + abs(x)))", .dtypes = TD_DTYPES_NUMBERS);
FORMULA(hardsigmoid, "(Tensor x) -> Tensor", TD_PW_FLOATS, "x / 6 + 1 / 2 between 0 and 1.",
        "minimum(maximum(x + 3, 0), 6) / 6", "x: where(logical_and(gt(x, -3), lt(x, 3)), g / 6, 0)",
        .dtypes = TD_DTYPES_FLOATS, .forms[TD_QUANTIZED] = td_quantized_unit);
FORMULA(hardswish, "(Tensor x) -> Tensor", TD_PW_FLOATS, "x * hardsigmoid(x).",
        "x * minimum(maximum(x + 3, 0), 6) / 6",
        "x: where(le(x, -3), 0, where(lt(x, 3), g * (x / 3 + 0.5), g))",
        .dtypes = TD_DTYPES_FLOATS);
FORMULA(hardshrink, "(Tensor x, number lambd=0.5) -> Tensor", TD_PW_FLOATS,
        "x, but 0 where it is nearer to 0 than lambd.", "where(le(abs(x), lambd), 0, x)",
        "x: where(le(abs(x), lambd), 0, g)", .dtypes = TD_DTYPES_FLOATS);
FORMULA(tanhshrink, "(Tensor x) -> Tensor", TD_PW_FLOATS, "x - tanh(x).", "x - tanh(x)",
        "x: g * tanh(x) * tanh(x)", .dtypes = TD_DTYPES_NUMBERS);
FORMULA(logsigmoid, "(Tensor x) -> Tensor", TD_PW_FLOATS, "Logarithm of sigmoid(x).",
        "minimum(x, 0) - log1p(exp(-abs(x)))", "x: g * sigmoid(-x)", .dtypes = TD_DTYPES_FLOATS);
#define TANH                                                                                       \
    "tanh(0.7978845608028654 * (" BOUNDED " + 0.044715 * " BOUNDED " * " BOUNDED " * " BOUNDED ")" \
    ")"
TD_OPERATOR(gelu_tanh) = {
    .schema = "(Tensor x) -> Tensor",
    .doc = "gelu with an approximation of the normal distribution by tanh.",
    .pointwise = PLAN(.type = TD_PW_FLOATS, .primitive = -1,
                      .formula = "0.5 * x * (1 + tanh(0.7978845608028654 * "
                                 "(x + 0.044715 * x * x * x)))"),
    .gradient = "x: g * (0.5 * (1 + " TANH ") + 0.5 * " BOUNDED " * (1 - " TANH " * " TANH ") *"
                "  0.7978845608028654 * (1 + 0.134145 * " BOUNDED " * " BOUNDED "))",
    .dtypes = TD_DTYPES_FLOATS,
    .flags = TD_OP_INTERNAL | TD_OP_OUT_EXACT,
};
TD_OPERATOR(prelu_slope) = {
    .schema = "(Tensor x, Tensor slope) -> Tensor",
    .doc = "x where positive, else slope * x.",
    .pointwise = PLAN(.type = TD_PW_FLOATS, .primitive = -1,
                      .formula = "where(gt(x, 0), x, slope * x)"),
    .gradient = "x: where(gt(x, 0), g, slope * g); slope: where(gt(x, 0), 0, x * g)",
    .dtypes = TD_DTYPES_FLOATS,
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(prelu) = {
    .schema = "(Tensor x, Tensor weight) -> Tensor",
    .doc = "x where positive, else weight * x, with one weight or one for each channel.",
    .shapes = "x (N, C, ...), weight (C) -> (N, C, ...) | x (...), weight (one...) -> (...); one: "
              "(1) or ()",
    .takes = "floating, one dtype",
    .run = run_prelu,
    .autocast = {[TD_CUDA] = TD_AUTOCAST_LOWER, [TD_CPU] = TD_AUTOCAST_LOWER},
};
TD_OPERATOR(rrelu) = {
    .schema = "(Tensor x, number lower=0.125, number upper=0.3333333333333333, "
              "bool training=false, *, generator? generator=nil) -> Tensor",
    .doc = "x where positive, else x times a slope: in training drawn between lower and upper for "
           "each element, otherwise their mean.",
    .takes = "floating",
    .run = run_rrelu,
    .flags = TD_OP_INPLACE | TD_OP_RANDOM,
};
TD_OPERATOR(gated) = {
    .schema = "(Tensor x, Tensor gate) -> Tensor",
    .doc = "x * sigmoid(gate).",
    .pointwise = PLAN(.type = TD_PW_FLOATS, .primitive = -1, .formula = "x * sigmoid(gate)"),
    .gradient = "x: g * sigmoid(gate); gate: g * x * sigmoid(gate) * (1 - sigmoid(gate))",
    .dtypes = TD_DTYPES_FLOATS,
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(glu) = {
    .schema = "(Tensor x, dim dim=-1) -> Tensor",
    .doc = "The first half along dim times sigmoid of the second half.",
    .shapes = "x (...) -> (...) with x[dim]//2 at dim",
    .takes = "floating",
    .run = run_glu,
};
