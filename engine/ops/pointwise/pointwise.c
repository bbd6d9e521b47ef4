/* pointwise.c: the pointwise operators, each a row: schema, doc, loop or formula, gradient. */
#include "engine/ops/pointwise/pointwise_rows.h"
#include "engine/ops/quantized/quantized.h"
#include "engine/ops/sparse/sparse.h"

#include <math.h>
#include <string.h>

#define TD_FAMILY "pointwise"

const td_op *td_pointwise_clamp(const td_value *args, td_value *chosen) {
    td_value low = args[1], high = args[2];
    bool tensors = td_arg_tensor(low) || td_arg_tensor(high);
    chosen[0] = args[0];
    chosen[1] = td_is_nil(low) ? high : low;
    chosen[2] = high;
    return td_is_nil(low) && td_is_nil(high) ? NULL
           : td_is_nil(high)                 ? TD_OP(clamp_min)
           : td_is_nil(low)                  ? TD_OP(clamp_max)
           : tensors                         ? TD_OP(clamp_both)
                                             : TD_OP(clamp_between);
}

static td_status run_clamp(td_call *call) {
    td_value args[3];
    const td_op *op = td_pointwise_clamp(call->args, args);
    return op ? td_pointwise_apply_as(call, op, args)
              : td_fail(TD_EVALUE, "at least one of min and max is needed");
}

static td_status choose_clamp_min(const td_value *args, const td_op **op) {
    if (args[1].kind != TD_KIND_TENSOR)
        *op = TD_OP(clamp_above);
    return TD_OK;
}

static td_status choose_clamp_max(const td_value *args, const td_op **op) {
    if (args[1].kind != TD_KIND_TENSOR)
        *op = TD_OP(clamp_below);
    return TD_OK;
}

static td_status choose_quotient(const td_value *args, const td_op **op) {
    if (args[2].kind == TD_KIND_STRING)
        *op = strcmp(args[2].string, "floor") ? TD_OP(trunc_divide) : TD_OP(floor_divide);
    return TD_OK;
}

static td_status choose_rounding(const td_value *args, const td_op **op) {
    if (args[1].i != 0)
        *op = TD_OP(round_decimals);
    return TD_OK;
}

static td_status choose_gelu(const td_value *args, const td_op **op) {
    if (!strcmp(args[1].string, "tanh"))
        *op = TD_OP(gelu_tanh);
    return TD_OK;
}

/* A number says once on which side of a half it lies, a tensor for every element. */
static td_status choose_lerp(const td_value *args, const td_op **op) {
    if (args[2].kind == TD_KIND_TENSOR)
        return TD_OK;
    double weight = args[2].kind == TD_KIND_INT ? (double)args[2].i : args[2].f;
    *op = fabs(weight) < 0.5 ? TD_OP(lerp_near) : TD_OP(lerp_far);
    return TD_OK;
}

/* Negative whole powers of integers are no integers. */
static td_status check_power(const td_value *args, const td_op **op) {
    const td_tensor *base = td_arg_tensor(args[0]);
    (void)op;
    if (args[1].kind != TD_KIND_INT || args[1].i >= 0 || !base ||
        td_dtype_is_float((td_dtype)base->dtype))
        return TD_OK;
    return td_fail(TD_EVALUE,
                   "%s to the power %lld is no integer: use x:float() or a float exponent",
                   td_dtype_name((td_dtype)base->dtype), (long long)args[1].i);
}

static td_status run_equal(td_call *call) {
    td_tensor *a = call->args[0].tensor, *b = call->args[1].tensor, *same = NULL, *all = NULL;
    td_status status = TD_OK;
    int64_t truth = 0;
    if (td_tensor_same_shape(a, b)) {
        TD_TRY(TD_APPLY(&same, eq, TD_T(a), TD_T(b)));
        TD_TRY(TD_APPLY(&all, all, TD_T(same)));
        TD_TRY(td_tensor_item_int(all, &truth));
    }
    call->result = TD_B(truth != 0);
done:
    td_release(same);
    td_release(all);
    return status;
}

/* arithmetic */
TD_OPERATOR(add) = {
    .schema = "(Tensor|number a, Tensor|number b, *, number alpha=1) -> Tensor",
    .doc = "Sum a + alpha * b.",
    .pointwise = PLAN(.type = TD_PW_ARITH, .numbers = true, .primitive = TD_PW_add,
                      .formula = "a + alpha * b"),
    .forms[TD_SPARSE_COO] = td_sparse_add,
    .gradient = "a: g; b: g * alpha",
    .flags = FORMS,
};
TD_OPERATOR(sub) = {
    .schema = "(Tensor|number a, Tensor|number b, *, number alpha=1) -> Tensor",
    .doc = "Difference a - alpha * b.",
    .pointwise = PLAN(.type = TD_PW_ARITH, .no_bool = true, .numbers = true, .primitive = TD_PW_sub,
                      .formula = "a - alpha * b"),
    .forms[TD_SPARSE_COO] = td_sparse_add,
    .gradient = "a: g; b: -(g * alpha)",
    .flags = FORMS,
};
TD_OPERATOR(mul) = {
    .schema = "(Tensor|number a, Tensor|number b) -> Tensor",
    .doc = "Product a * b.",
    .pointwise = PLAN(.type = TD_PW_ARITH, .numbers = true, .primitive = TD_PW_mul),
    .forms[TD_SPARSE_COO] = td_sparse_mul,
    .gradient = "a: g * b; b: g * a",
    .flags = FORMS,
};
TD_OPERATOR(div) = {
    .schema =
        "(Tensor|number a, Tensor|number b, *, \"trunc\"|\"floor\"? rounding_mode=nil) -> Tensor",
    .doc = "Quotient a / b; integers give floats, unless it is rounded.",
    .notes = "Integers give floats; with rounding_mode \"floor\" or \"trunc\" integers stay, and a "
             "division by 0 of these is an error.",
    .pointwise = PLAN(.type = TD_PW_FLOATS, .numbers = true, .primitive = TD_PW_div),
    .variant = choose_quotient,
    .forms[TD_SPARSE_COO] = td_sparse_div,
    .gradient = "a: g / b; b: -(g / b * (a / b))",
    .flags = FORMS,
};
FORMULA(rsub, "(Tensor|number a, Tensor|number b, *, number alpha=1) -> Tensor", TD_PW_ARITH,
        "Difference b - alpha * a.", "b - alpha * a", "a: -(g * alpha); b: g",
        .dtypes = TD_DTYPES_NUMBERS);
WHOLE_QUOTIENT(floor_divide, "Quotient rounded down (a // b).");
WHOLE_QUOTIENT(trunc_divide, "Quotient rounded towards zero.");
BINARY(remainder, TD_PW_ARITH, "Remainder with the sign of b (a % b).",
       "a: g; b: -(g * floor_divide(a, b))", .dtypes = TD_DTYPES_NUMBERS, .notes = NO_ZERO);
BINARY(fmod, TD_PW_ARITH, "Remainder with the sign of a.", "a: g; b: -(g * trunc(a / b))",
       .dtypes = TD_DTYPES_NUMBERS, .notes = NO_ZERO);
TD_OPERATOR(pow) = {
    .schema = "(Tensor|number a, Tensor|number b) -> Tensor",
    .doc = "a to the power b.",
    .notes = "Integers to a negative power are an error.",
    .pointwise = PLAN(.type = TD_PW_ARITH, .primitive = TD_PW_pow),
    .variant = check_power,
    .gradient = POWER_SLOPES,
    .autocast = {[TD_CUDA] = TD_AUTOCAST_FP32},
    .dtypes = TD_DTYPES_NUMBERS,
    .flags = FORMS,
};
/* Where neither is less than the other, one of them NaN, both are passed on to. */
BINARY(maximum, TD_PW_ARITH, "Larger of a and b; NaN wins.",
       "a: g * (1 - lt(a, b) - 0.5 * eq(a, b)); b: g * (1 - gt(a, b) - 0.5 * eq(a, b))");
BINARY(minimum, TD_PW_ARITH, "Smaller of a and b; NaN wins.",
       "a: g * (1 - gt(a, b) - 0.5 * eq(a, b)); b: g * (1 - lt(a, b) - 0.5 * eq(a, b))");
/* Squares would vanish or overflow where the distance does not; at the origin all gradients are 0.
 */
#define DISTANCE "where(eq(hypot(a, b), 0), inf, hypot(a, b))"
BINARY(atan2, TD_PW_FLOATS, "Angle of the point (b, a) in radians.",
       "a: g * (b / " DISTANCE " / " DISTANCE "); b: -(g * (a / " DISTANCE " / " DISTANCE "))",
       .autocast = {[TD_CUDA] = TD_AUTOCAST_PROMOTE});
FORMULA(lerp, "(Tensor x, Tensor target, Tensor|number weight) -> Tensor", TD_PW_FLOATS,
        "x + weight * (target - x), target itself where weight is 1.",
        "where(lt(abs(weight), 0.5), x + weight * (target - x),"
        "      target - (target - x) * (1 - weight))",
        "x: g * (1 - weight); target: g * weight; weight: g * (target - x)",
        .dtypes = TD_DTYPES_FLOATS, .variant = choose_lerp);
#define LERP_NUMBER(name, text)                                                                    \
    TD_OPERATOR(name) = {                                                                          \
        .schema = "(Tensor x, Tensor target, number weight) -> Tensor",                            \
        .doc = "lerp with a number.",                                                              \
        .pointwise = PLAN(.type = TD_PW_FLOATS, .primitive = -1, .formula = text),                 \
        .gradient = "x: g * (1 - weight); target: g * weight",                                     \
        .dtypes = TD_DTYPES_FLOATS,                                                                \
        .flags = FORMS | TD_OP_INTERNAL,                                                           \
    }
LERP_NUMBER(lerp_near, "x + weight * (target - x)");
LERP_NUMBER(lerp_far, "target - (target - x) * (1 - weight)");
FORMULA(addcmul, "(Tensor x, Tensor a, Tensor b, *, number value=1) -> Tensor", TD_PW_ARITH,
        "x + value * a * b.", "x + value * a * b", "x: g; a: g * value * b; b: g * value * a",
        .dtypes = TD_DTYPES_NUMBERS, .autocast = {[TD_CUDA] = TD_AUTOCAST_PROMOTE});
FORMULA(addcdiv, "(Tensor x, Tensor a, Tensor b, *, number value=1) -> Tensor", TD_PW_FLOATS,
        "x + value * a / b.", "x + value * a / b",
        "x: g; a: g * value / b; b: -(g * value / b * (a / b))", .dtypes = TD_DTYPES_FLOATS,
        .autocast = {[TD_CUDA] = TD_AUTOCAST_PROMOTE});
TD_OPERATOR(neg) = {
    .schema = "(Tensor x) -> Tensor",
    .doc = "Negative of each element.",
    .pointwise = PLAN(.type = TD_PW_ARITH, .no_bool = true, .primitive = TD_PW_neg),
    .forms[TD_SPARSE_COO] = td_sparse_linear,
    .gradient = "x: -g",
    .flags = FORMS | TD_OP_OUT_EXACT,
};
UNARY(abs, TD_PW_ARITH, "Absolute value.", "x: g * sign(x)", .dtypes = TD_DTYPES_NUMBERS,
      .forms[TD_SPARSE_COO] = td_sparse_each);
UNARY(sign, TD_PW_ARITH, "-1, 0 or 1 by sign.", "x: 0");
TD_OPERATOR(square) = {
    .schema = "(Tensor x) -> Tensor",
    .doc = "Square of each element.",
    .pointwise = PLAN(.type = TD_PW_ARITH, .counts = true, .primitive = TD_PW_square),
    .forms[TD_SPARSE_COO] = td_sparse_each,
    .gradient = "x: g * 2 * x",
    .flags = FORMS,
};
UNARY_FP32(reciprocal, "1 / x.", "x: -(g * out * out)");

/* powers, exponentials, logarithms */
UNARY(sqrt, TD_PW_FLOATS, "Square root.", "x: g * 0.5 / out");
UNARY_FP32(rsqrt, "1 / sqrt(x).", "x: -0.5 * g * out * out * out");
UNARY_FP32(exp, "e to the power x.", "x: g * out");
UNARY(exp2, TD_PW_FLOATS, "2 to the power x.", "x: g * out * 0.6931471805599453");
UNARY_FP32(expm1, "exp(x) - 1, exact near zero.", "x: g * (out + 1)");
UNARY_FP32(log, "Natural logarithm.", "x: g / x");
UNARY_FP32(log2, "Logarithm to base 2.", "x: g / (x * 0.6931471805599453)");
UNARY_FP32(log10, "Logarithm to base 10.", "x: g / (x * 2.302585092994046)");
UNARY_FP32(log1p, "log(1 + x), exact near zero.", "x: g / (x + 1)");

/* trigonometry */
UNARY(sin, TD_PW_FLOATS, "Sine of x in radians.", "x: g * cos(x)");
UNARY(cos, TD_PW_FLOATS, "Cosine of x in radians.", "x: -(g * sin(x))");
UNARY_FP32(tan, "Tangent of x in radians.", "x: g * (1 + out * out)");
/* Of 1 - x * x too little would be left near 1. */
UNARY_FP32(asin, "Arc sine in radians.", "x: g * rsqrt((1 - x) * (1 + x))");
UNARY_FP32(acos, "Arc cosine in radians.", "x: -(g * rsqrt((1 - x) * (1 + x)))");
UNARY(atan, TD_PW_FLOATS, "Arc tangent in radians.", "x: g / (1 + x * x)");
UNARY_FP32(sinh, "Hyperbolic sine.", "x: g * cosh(x)");
UNARY_FP32(cosh, "Hyperbolic cosine.", "x: g * sinh(x)");
UNARY(tanh, TD_PW_FLOATS, "Hyperbolic tangent.", "x: g * (1 - out * out)",
      .forms[TD_QUANTIZED] = td_quantized_signed_unit);

/* rounding */
UNARY(floor, TD_PW_ARITH, "Rounded down.", "x: 0", .dtypes = TD_DTYPES_NUMBERS);
UNARY(ceil, TD_PW_ARITH, "Rounded up.", "x: 0", .dtypes = TD_DTYPES_NUMBERS);
TD_OPERATOR(round) = {
    .schema = "(Tensor x, *, int decimals=0) -> Tensor",
    .doc = "Rounded to nearest, halves to even; to so many decimals.",
    .notes = "Halves go to the even neighbour.",
    .pointwise = PLAN(.type = TD_PW_ARITH, .primitive = TD_PW_round),
    .variant = choose_rounding,
    .gradient = "x: 0",
    .dtypes = TD_DTYPES_NUMBERS,
    .flags = FORMS | TD_OP_OUT_EXACT,
};
TD_OPERATOR(round_decimals) = {
    .schema = "(Tensor x, int decimals) -> Tensor",
    .doc = "Rounded to nearest at so many decimals; left of the point where they are negative.",
    .pointwise =
        PLAN(.type = TD_PW_FLOATS, .keeps = true, .primitive = -1,
             .formula = "where(ge(decimals, 0),"
                        "      round(x * pow(10, abs(decimals))) / pow(10, abs(decimals)),"
                        "      round(x / pow(10, abs(decimals))) * pow(10, abs(decimals)))"),
    .gradient = "x: 0",
    .dtypes = TD_DTYPES_FLOATS,
    .flags = TD_OP_INTERNAL | TD_OP_OUT_EXACT,
};
UNARY(trunc, TD_PW_ARITH, "Rounded towards zero.", "x: 0", .dtypes = TD_DTYPES_NUMBERS);
FORMULA(frac, "(Tensor x) -> Tensor", TD_PW_FLOATS, "Fractional part, with the sign of x.",
        "x - trunc(x)", "x: g", .dtypes = TD_DTYPES_FLOATS);

/* activations and special functions */
UNARY(relu, TD_PW_ARITH, "max(x, 0).", "x: where(le(out, 0), 0, g)", .dtypes = TD_DTYPES_NUMBERS,
      .forms[TD_QUANTIZED] = td_quantized_relu);
UNARY(sigmoid, TD_PW_FLOATS, "1 / (1 + exp(-x)).", "x: g * out * (1 - out)",
      .forms[TD_QUANTIZED] = td_quantized_unit);
UNARY(erf, TD_PW_FLOATS, "Error function.", "x: g * 1.1283791670955126 * exp(-(x * x))");
UNARY(erfc, TD_PW_FLOATS, "1 - erf(x).", "x: -(g * 1.1283791670955126 * exp(-(x * x)))");
UNARY(silu, TD_PW_FLOATS, "x * sigmoid(x).",
      "x: g * sigmoid(" BOUNDED ") * (1 + " BOUNDED " * (1 - sigmoid(" BOUNDED ")))",
      .dtypes = TD_DTYPES_FLOATS);
TD_OPERATOR(gelu) = {
    .schema = "(Tensor x, *, \"none\"|\"tanh\" approximate=\"none\") -> Tensor",
    .doc = "Gaussian error linear unit, x times the normal distribution function of x.",
    .pointwise = PLAN(.type = TD_PW_FLOATS, .primitive = TD_PW_gelu),
    .variant = choose_gelu,
    .gradient = "x: g * (0.5 * erfc(x * -0.7071067811865476) +"
                "        " BOUNDED " * 0.3989422804014327 * exp(-0.5 * " BOUNDED " * " BOUNDED "))",
    .dtypes = TD_DTYPES_FLOATS,
    .forms[TD_QUANTIZED] = td_quantized_pointwise,
    .flags = FORMS | TD_OP_OUT_EXACT,
};
FORMULA(softplus, "(Tensor x, number beta=1, number threshold=20) -> Tensor", TD_PW_FLOATS,
        "log(1 + exp(beta * x)) / beta; x itself where beta * x is over the threshold.",
        "where(gt(x * beta, threshold), x, log1p(exp(minimum(x * beta, threshold))) / beta)",
        "x: g * where(gt(x * beta, threshold), 1, sigmoid(x * beta))", .dtypes = TD_DTYPES_FLOATS,
        .autocast = {[TD_CUDA] = TD_AUTOCAST_FP32});
FORMULA(leaky_relu, "(Tensor x, number negative_slope=0.01) -> Tensor", TD_PW_FLOATS,
        "x where positive, else negative_slope * x.", "where(gt(x, 0), x, x * negative_slope)",
        "x: where(gt(x, 0), g, g * negative_slope)", .dtypes = TD_DTYPES_FLOATS,
        .forms[TD_QUANTIZED] = td_quantized_pointwise);
FORMULA(softshrink, "(Tensor x, number(0..) lambd=0.5) -> Tensor", TD_PW_FLOATS,
        "x drawn towards zero by lambd; 0 where it is nearer.",
        "x - maximum(minimum(x, lambd), -lambd)", "x: where(eq(out, 0), 0, g)",
        .dtypes = TD_DTYPES_FLOATS);
FORMULA(elu, "(Tensor x, number alpha=1) -> Tensor", TD_PW_FLOATS,
        "x where positive, else alpha * (exp(x) - 1).", "where(gt(x, 0), x, alpha * expm1(x))",
        "x: g * where(le(x, 0), alpha * exp(minimum(x, 0)), 1)", .dtypes = TD_DTYPES_FLOATS);
/* A number is no bound to move: there the gradient is 0 on it. With a tensor it is shared. */
#define CLAMP_NUMBER(name, numbers, text, inside)                                                  \
    TD_OPERATOR(name) = {                                                                          \
        .schema = "(Tensor x, " numbers ") -> Tensor",                                             \
        .doc = "Clamped by numbers.",                                                              \
        .pointwise = PLAN(.type = TD_PW_ARITH, .bounds = true, .primitive = -1, .formula = text),  \
        .gradient = "x: " inside,                                                                  \
        .flags = TD_OP_INPLACE | TD_OP_INTERNAL,                                                   \
    }
CLAMP_NUMBER(clamp_above, "number min", "maximum(x, min)", "where(gt(x, min), g, 0)");
CLAMP_NUMBER(clamp_below, "number max", "minimum(x, max)", "where(lt(x, max), g, 0)");
CLAMP_NUMBER(clamp_between, "number min, number max", "minimum(maximum(x, min), max)",
             "where(gt(x, min), where(lt(x, max), g, 0), 0)");
TD_OPERATOR(clamp_min) = {
    .schema = "(Tensor x, Tensor|number min) -> Tensor",
    .doc = "Each element, but at least min.",
    .pointwise = PLAN(.type = TD_PW_ARITH, .bounds = true, .primitive = -1,
                      .formula = "maximum(x, min)"),
    .variant = choose_clamp_min,
    .gradient = "x: where(eq(x, min), g * 0.5, where(lt(x, min), 0, g));"
                "min: where(eq(x, min), g * 0.5, where(gt(x, min), 0, g))",
    .flags = FORMS,
};
TD_OPERATOR(clamp_max) = {
    .schema = "(Tensor x, Tensor|number max) -> Tensor",
    .doc = "Each element, but at most max.",
    .pointwise = PLAN(.type = TD_PW_ARITH, .bounds = true, .primitive = -1,
                      .formula = "minimum(x, max)"),
    .variant = choose_clamp_max,
    .gradient = "x: where(eq(x, max), g * 0.5, where(gt(x, max), 0, g));"
                "max: where(eq(x, max), g * 0.5, where(lt(x, max), 0, g))",
    .flags = FORMS,
};
TD_OPERATOR(clamp_both) = {
    .schema = "(Tensor x, Tensor|number min, Tensor|number max) -> Tensor",
    .doc = "Each element, but at least min, and at most max whatever min is.",
    .pointwise = PLAN(.type = TD_PW_ARITH, .bounds = true, .primitive = -1,
                      .formula = "minimum(maximum(x, min), max)"),
    .gradient = "x: where(lt(min, max),"
                "   where(logical_or(eq(x, min), eq(x, max)), g * 0.5,"
                "         where(logical_or(lt(x, min), gt(x, max)), 0, g)),"
                "   where(logical_or(ne(x, x), logical_and(eq(x, min), eq(x, max))), g, 0));"
                "min: where(le(min, max), where(lt(x, min), g,"
                "   where(logical_and(eq(x, min), lt(min, max)), g * 0.5, 0)), 0);"
                "max: where(gt(min, max), g, where(gt(x, max), g,"
                "   where(logical_and(eq(x, max), lt(min, max)), g * 0.5, 0)))",
    .flags = TD_OP_INPLACE | TD_OP_INTERNAL,
};
TD_OPERATOR(clamp) = {
    .schema = "(Tensor x, Tensor|number? min=nil, Tensor|number? max=nil) -> Tensor",
    .doc = "Each element, but at least min and at most max.",
    .shapes = "x (*), min (*), max (*) -> (*)",
    .takes = "any, promoted",
    .notes = "Where min is over max the result is max.",
    .run = run_clamp,
    .forms[TD_QUANTIZED] = td_quantized_clamp,
    .flags = TD_OP_INPLACE | TD_OP_OUT | TD_OP_OUT_EXACT,
};

/* choice, comparison, logic */
TD_OPERATOR(where) = {
    .schema = "(Tensor condition, Tensor|number a, Tensor|number b) -> Tensor",
    .doc = "a where the condition holds, else b.",
    .notes = "The condition must be bool: x:ne(0) makes one. Without a and b: where(condition) "
             "gives the places of true, one tensor for each dim.",
    .pointwise = PLAN(.type = TD_PW_SELECT, .primitive = TD_PW_where),
    .gradient = "a: where(condition, g, 0); b: where(condition, 0, g)",
    .flags = TD_OP_OUT | TD_OP_OUT_EXACT,
};
COMPARE(eq, "Is a equal to b, element by element?");
COMPARE(ne, "Is a different from b?");
COMPARE(lt, "Is a less than b?");
COMPARE(le, "Is a less than or equal to b?");
COMPARE(gt, "Is a greater than b?");
COMPARE(ge, "Is a greater than or equal to b?");
LOGICAL(logical_and, "Tensor a, Tensor b", "Are both different from zero?");
LOGICAL(logical_or, "Tensor a, Tensor b", "Is one of them different from zero?");
LOGICAL(logical_xor, "Tensor a, Tensor b", "Is exactly one of them different from zero?");
LOGICAL(logical_not, "Tensor x", "Is it zero?");
TD_OPERATOR(equal) = {
    .schema = "(Tensor a, Tensor b) -> bool",
    .doc = "Have a and b the same shape and the same elements?",
    .shapes = "a (...), b (others...) -> bool",
    .takes = "any; the result is bool",
    .run = run_equal,
    .forms[TD_QUANTIZED] = td_quantized_equal,
    .flags = TD_OP_BY_ELEMENTS | TD_OP_NONDIFF,
};
FLOAT_TEST(isnan, "Is it not a number?", "ne(x, x)", no_element);
FLOAT_TEST(isinf, "Is it infinite?", "eq(abs(x), inf)", no_element);
FLOAT_TEST(isfinite, "Is it neither infinite nor NaN?", "lt(abs(x), inf)", each_element);
BITWISE(bitwise_and, "Tensor|number a, Tensor|number b", "Bitwise and of integers or masks.");
BITWISE(bitwise_or, "Tensor|number a, Tensor|number b", "Bitwise or of integers or masks.");
BITWISE(bitwise_xor, "Tensor|number a, Tensor|number b", "Bitwise exclusive or.");
BITWISE(bitwise_not, "Tensor x", "Bitwise complement; of a mask its opposite.");
INTEGERS(bitwise_left_shift, TD_PW_BITWISE,
         "a times 2^b (a << b); 0 where b is negative or more than a has bits.");
INTEGERS(bitwise_right_shift, TD_PW_BITWISE,
         "a over 2^b, rounded down (a >> b); what only the sign is left of where b is negative.");
INTEGERS(gcd, TD_PW_ARITH, "Greatest common divisor.");
INTEGERS(lcm, TD_PW_ARITH, "Least common multiple.");
