/* special.c: hyperbolic, gamma, Bessel and other special functions, further operators of two
 * operands, nan_to_num and isclose: pointwise rows, and composites of them. */
#include "engine/ops/pointwise/pointwise_rows.h"
#include "engine/ops/rule_helpers.h"

#include <float.h>

#define TD_FAMILY "special"

#define BINARY_FORMULA(name, kind, text, forward, ...)                                             \
    FORMULA(name, "(Tensor|number a, Tensor|number b) -> Tensor", kind, text, forward, __VA_ARGS__)

/* ---- variants ---- */

static td_status choose_logit(const td_value *args, const td_op **op) {
    if (!td_is_nil(args[1]))
        *op = TD_OP(logit_within);
    return TD_OK;
}

static td_status choose_polygamma(const td_value *args, const td_op **op) {
    if (args[1].i == 0)
        *op = TD_OP(digamma);
    else if (args[1].i == 1)
        *op = TD_OP(trigamma);
    return TD_OK;
}

static td_status choose_nextafter(const td_value *args, const td_op **op) {
    td_dtype dtype = td_promote_operands(2, args);
    if (dtype == TD_F16)
        *op = TD_OP(nextafter_half);
    else if (dtype == TD_BF16)
        *op = TD_OP(nextafter_brain);
    return TD_OK;
}

/* ---- numbers that depend on the dtype ---- */

static double largest_number(td_dtype dtype) {
    static const double ends[TD_DTYPE_COUNT] = {[TD_F16] = 0x1.ffcp15,
                                                [TD_BF16] = 0x1.fep127,
                                                [TD_F32] = (double)FLT_MAX,
                                                [TD_F64] = DBL_MAX};
    return ends[dtype];
}

static td_status run_nan_to_num(td_call *call) {
    td_tensor *x = call->args[0].tensor;
    double most = largest_number((td_dtype)x->dtype);
    bool ends = td_is_nil(call->args[2]) && td_is_nil(call->args[3]);
    if (!td_dtype_is_float((td_dtype)x->dtype)) {
        if (!call->inplace)
            return TD_APPLY(&call->out[0], clone, TD_T(x));
        td_tensor_bump_version(x);
        call->out[0] = td_retain(x);
        return TD_OK;
    }
    td_value args[4] = {TD_T(x), call->args[1],
                        td_is_nil(call->args[2]) ? TD_F(most) : call->args[2],
                        td_is_nil(call->args[3]) ? TD_F(-most) : call->args[3]};
    return td_pointwise_apply_as(call, ends ? TD_OP(nan_to_num_ends) : TD_OP(nan_to_num_with),
                                 args);
}

/* ---- nearness ---- */

/* Integers are compared as float64, beside equality. */
static td_status run_isclose(td_call *call) {
    td_tensor *a = call->args[0].tensor, *b = call->args[1].tensor;
    td_tensor *wide[2] = {NULL, NULL}, *same = NULL, *near = NULL;
    td_status status = TD_OK;
    if (a->dtype != b->dtype)
        return td_fail(TD_EDTYPE, "dtypes %s and %s differ: convert one with x:to(dtype)",
                       td_dtype_name((td_dtype)a->dtype), td_dtype_name((td_dtype)b->dtype));
    if (td_dtype_is_float((td_dtype)a->dtype))
        return TD_APPLY(&call->out[0], close_floats, TD_T(a), TD_T(b), call->args[2], call->args[3],
                        call->args[4]);
    TD_TRY(TD_APPLY(&wide[0], to, TD_T(a), TD_DTYPE(TD_F64)));
    TD_TRY(TD_APPLY(&wide[1], to, TD_T(b), TD_DTYPE(TD_F64)));
    TD_TRY(TD_APPLY(&near, close_floats, TD_T(wide[0]), TD_T(wide[1]), call->args[2], call->args[3],
                    TD_B(false)));
    TD_TRY(TD_APPLY(&same, eq, TD_T(a), TD_T(b)));
    TD_TRY(TD_APPLY(&call->out[0], logical_or, TD_T(same), TD_T(near)));
done:
    td_release(wide[0]);
    td_release(wide[1]);
    td_release(same);
    td_release(near);
    return status;
}

static td_status run_allclose(td_call *call) {
    td_tensor *near = NULL, *all = NULL;
    td_status status = TD_OK;
    int64_t truth = 0;
    TD_TRY(TD_APPLY(&near, isclose, call->args[0], call->args[1], call->args[2], call->args[3],
                    call->args[4]));
    TD_TRY(TD_APPLY(&all, all, TD_T(near)));
    TD_TRY(td_tensor_item_int(all, &truth));
    call->result = TD_B(truth != 0);
done:
    td_release(near);
    td_release(all);
    return status;
}

static td_status run_positive(td_call *call) {
    td_tensor *x = call->args[0].tensor;
    if (x->dtype == TD_BOOL)
        return td_fail(TD_EDTYPE, "not for bool: convert with x:float() or x:long()");
    call->out[0] = td_retain(x);
    return TD_OK;
}

/* ---- one operand ---- */

UNARY(asinh, TD_PW_FLOATS, "Inverse hyperbolic sine.", "x: g / hypot(x, 1)");
UNARY(acosh, TD_PW_FLOATS, "Inverse hyperbolic cosine.", "x: g * rsqrt(x - 1) * rsqrt(x + 1)");
UNARY(atanh, TD_PW_FLOATS, "Inverse hyperbolic tangent.", "x: g / ((1 - x) * (1 + x))");
UNARY(lgamma, TD_PW_FLOATS, "Logarithm of the gamma function's absolute value.",
      "x: g * digamma(x)");
UNARY(digamma, TD_PW_FLOATS, "Derivative of lgamma.", "x: g * trigamma(x)");
TD_OPERATOR(trigamma) = {
    .schema = "(Tensor x) -> Tensor",
    .doc = "Derivative of digamma.",
    .pointwise = PLAN(.type = TD_PW_FLOATS, .primitive = TD_PW_trigamma),
    .gradient = "x: -2 * g * zeta(3, x)",
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(zeta) = {
    .schema = "(Tensor|number a, Tensor|number b) -> Tensor",
    .doc = "Hurwitz' zeta function: the sum of (b + k)^-a over k from 0 on.",
    .pointwise = PLAN(.type = TD_PW_FLOATS, .primitive = TD_PW_zeta),
    .gradient = "b: -(g * a * zeta(a + 1, b))",
    .flags = FORMS,
};
TD_OPERATOR(polygamma) = {
    .schema = "(Tensor x, int(0..) n) -> Tensor",
    .doc = "The n-th derivative of digamma; also polygamma(n, x).",
    .pointwise = PLAN(.type = TD_PW_FLOATS, .keeps = true, .primitive = -1,
                      .formula = "(1 - 2 * remainder(n + 1, 2)) * exp(lgamma(n + 1)) *"
                                 " zeta(n + 1, x)"),
    .variant = choose_polygamma,
    .gradient = "x: g * ((1 - 2 * remainder(n, 2)) * exp(lgamma(n + 2)) * zeta(n + 2, x))",
    .flags = FORMS,
};
TD_OPERATOR(mvlgamma) = {
    .schema = "(Tensor x, int(1..) p) -> Tensor",
    .doc = "Logarithm of the multivariate gamma function of dimension p.",
    .takes = "any; integers and bool count as float32",
    .formula = "half = 0.5 * arange(0, p, 1, device=x.device);"
               "sum(lgamma(unsqueeze(x, -1) - if(x.floating, to(half, x.dtype), half)), {-1}) +"
               "p * (p - 1) * 0.28618247146235004",
    .flags = TD_OP_OUT | TD_OP_INPLACE,
};
UNARY(erfinv, TD_PW_FLOATS, "Inverse of erf.", "x: g * 0.886226925452758 * exp(out * out)",
      .autocast = {[TD_CUDA] = TD_AUTOCAST_FP32});
TD_OPERATOR(logit) = {
    .schema = "(Tensor x, number? eps=nil) -> Tensor",
    .doc =
        "log(x / (1 - x)), the inverse of sigmoid; x between eps and 1 - eps where eps is given.",
    .pointwise = PLAN(.type = TD_PW_FLOATS, .primitive = -1, .formula = "log(x / (1 - x))"),
    .variant = choose_logit,
    .gradient = "x: where(logical_or(lt(x, 0), gt(x, 1)), nan, g / (x * (1 - x)))",
    .flags = FORMS,
};
/* Of bounds that have changed places the lower holds first. */
#define WITHIN "where(lt(x, eps), eps, where(gt(x, 1 - eps), 1 - eps, x))"
TD_OPERATOR(logit_within) = {
    .schema = "(Tensor x, number eps) -> Tensor",
    .doc = "logit of x between eps and 1 - eps.",
    .pointwise = PLAN(.type = TD_PW_FLOATS, .primitive = -1,
                      .formula = "log(" WITHIN " / (1 - " WITHIN "))"),
    .gradient = "x: where(logical_or(lt(x, eps), gt(x, 1 - eps)), 0, g / (x * (1 - x)))",
    .flags = TD_OP_INTERNAL,
};
/* Near 0 the gradient is a difference of what is nearly equal, and taken from its series instead;
 * the numbers of the branch that isn't taken stay harmless, since derivatives go through both. */
#define NEAR "(where(lt(abs(x), 0.3), x, 0) * 3.141592653589793)"
#define FAR  "(where(lt(abs(x), 0.3), 1, x) * 3.141592653589793)"
FORMULA(sinc, "(Tensor x) -> Tensor", TD_PW_FLOATS, "sin(pi x) / (pi x), 1 at 0.",
        "where(eq(x, 0), 1, sin(x * 3.141592653589793) / (x * 3.141592653589793))",
        "x: g * 3.141592653589793 * where(lt(abs(x), 0.3), " NEAR " * (-0.3333333333333333 + " NEAR
        "   * " NEAR " * (0.03333333333333333 + " NEAR " * " NEAR
        " * (-0.0011904761904761906 + " NEAR "   * " NEAR " * (2.2045855379188714e-05 + " NEAR
        " * " NEAR " * (-2.505210838544172e-07 +"
        "   " NEAR " * " NEAR " * (1.9270852604185938e-09 + " NEAR " * " NEAR " *"
        "   (-1.0706029224547743e-11 + " NEAR " * " NEAR " * (4.498331606952833e-14 +"
        "   " NEAR " * " NEAR " * -1.4797143443923792e-16)))))))),"
        "   (cos(" FAR ") - sin(" FAR ") / " FAR ") / " FAR ")");
UNARY(i0, TD_PW_FLOATS, "Modified Bessel function of the first kind, of order 0.", "x: g * i1(x)");
UNARY(i1, TD_PW_FLOATS, "Modified Bessel function of the first kind, of order 1.",
      "x: g * where(eq(x, 0), 0.5, i0(x) - i1(x) / where(eq(x, 0), 1, x))");
/* 1 - i1(x) / i0(x) for x from 100 on, in powers of 1 / x: the two are nearly equal there. */
#define OUTER "(1 / maximum(abs(x), 99))"
#define APART                                                                                      \
    "(" OUTER " * (0.5 + " OUTER " * (0.125 + " OUTER " * (0.125 + " OUTER " * (0.1953125 +"       \
    " " OUTER " * (0.40625 + " OUTER " * (1.0478515625 + " OUTER " * (3.21875 +"                   \
    " " OUTER " * 11.466461181640625))))))))"
UNARY(i0e, TD_PW_FLOATS, "i0 times exp(-|x|).",
      "x: g * where(lt(abs(x), 100), i1e(x) - sign(x) * i0e(x), -sign(x) * i0e(x) * " APART ")");
UNARY(i1e, TD_PW_FLOATS, "i1 times exp(-|x|).",
      "x: g * where(eq(x, 0), 0.5, where(lt(abs(x), 100),"
      "   i0e(x) - i1e(x) * (sign(x) + 1 / where(eq(x, 0), 1, x)),"
      "   i0e(x) * (" APART " - (1 - " APART ") * " OUTER ")))");
/* From 10 on in powers of (10 / x)^2; the bounds lie beyond, where they are no corner. */
#define INNER  "minimum(x, 11)"
#define BEYOND "maximum(x, 9)"
#define SQUARE "(10 / " BEYOND " * 10 / " BEYOND ")"
UNARY(erfcx, TD_PW_FLOATS, "exp(x^2) erfc(x), which does not vanish far out.",
      "x: g * where(gt(x, 10), -0.005641895835477563 * " SQUARE " * (1 + " SQUARE " * (-0.015 +"
      "   " SQUARE " * (0.000375 + " SQUARE " * (-1.3125e-05 + " SQUARE " * (5.90625e-07 +"
      "   " SQUARE " * (-3.2484375e-08 + " SQUARE " * (2.111484375e-09 + " SQUARE " *"
      "   (-1.58361328125e-10 + " SQUARE " * (1.3460712890625e-11 + " SQUARE " *"
      "   (-1.278767724609375e-12 + " SQUARE " * 1.3427061108398437e-13)))))))))),"
      "   2 * " INNER " * out - 1.1283791670955126)");
UNARY(ndtri, TD_PW_FLOATS, "The quantile of the standard normal distribution: ndtr's inverse.",
      "x: g * exp(out * out * 0.5) * 2.5066282746310002");
FORMULA(ndtr, "(Tensor x) -> Tensor", TD_PW_FLOATS,
        "The share of the standard normal distribution below x.",
        "erfc(x * -0.7071067811865476) * 0.5", "x: g * exp(x * x * -0.5) * 0.3989422804014327");
FORMULA(log_ndtr, "(Tensor x) -> Tensor", TD_PW_FLOATS,
        "Logarithm of ndtr, also where that vanishes.",
        "where(lt(x, -1), log(erfcx(x * -0.7071067811865476) * 0.5) - x * x * 0.5,"
        "      log1p(erfc(x * 0.7071067811865476) * -0.5))",
        "x: g * where(lt(x, -1), 0.7978845608028654 / erfcx(minimum(x, 0) * -0.7071067811865476),"
        "   0.3989422804014327 * exp(maximum(x, -2) * maximum(x, -2) * -0.5 - maximum(out, -2)))");
FORMULA(entr, "(Tensor x) -> Tensor", TD_PW_FLOATS, "-x log(x), 0 at 0, -inf below.",
        "where(eq(x, 0), 0, where(lt(x, 0), -inf, -x * log(x)))", "x: g * (-log(x) - 1)");
FORMULA(deg2rad, "(Tensor x) -> Tensor", TD_PW_FLOATS, "Degrees in radians.",
        "x * 0.017453292519943295", "x: g * 0.017453292519943295");
FORMULA(rad2deg, "(Tensor x) -> Tensor", TD_PW_FLOATS, "Radians in degrees.",
        "x * 57.29577951308232", "x: g * 57.29577951308232");
TD_OPERATOR(positive) = {
    .schema = "(Tensor x) -> Tensor",
    .doc = "x itself.",
    .shapes = "x (...) -> (...)",
    .takes = "floating and integers",
    .run = run_positive,
};
TD_OPERATOR(nan_to_num_with) = {
    .schema = "(Tensor x, number nan, number posinf, number neginf) -> Tensor",
    .doc = "x with these numbers for NaN and the infinite ones.",
    .pointwise = PLAN(.type = TD_PW_ARITH, .keeps = true, .primitive = -1,
                      .formula = "where(ne(x, x), nan,"
                                 " where(eq(x, inf), posinf, where(eq(x, -inf), neginf, x)))"),
    .gradient = "x: where(lt(abs(x), inf), g, 0)",
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(nan_to_num_ends) = {
    .schema = "(Tensor x, number nan, number most, number least) -> Tensor",
    .doc = "x with the dtype's ends for what is infinite.",
    .pointwise = PLAN(.type = TD_PW_ARITH, .keeps = true, .primitive = -1,
                      .formula = "where(ne(x, x), nan, maximum(minimum(x, most), least))"),
    .gradient = "x: where(lt(abs(x), inf), g, 0)",
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(nan_to_num) = {
    .schema = "(Tensor x, number nan=0, number? posinf=nil, number? neginf=nil) -> Tensor",
    .doc = "x with numbers for NaN and the infinite ones: the dtype's ends where none are given.",
    .run = run_nan_to_num,
    .flags = TD_OP_OUT | TD_OP_INPLACE | TD_OP_OUT_EXACT,
};

/* ---- two operands ---- */

BINARY(fmax, TD_PW_ARITH, "Larger of a and b; of a number and NaN the number.",
       "a: g * where(ne(b, b), 1, gt(a, b) + 0.5 * eq(a, b));"
       "b: g * where(ne(b, b), 0, where(ne(a, a), 1, lt(a, b) + 0.5 * eq(a, b)))");
BINARY(fmin, TD_PW_ARITH, "Smaller of a and b; of a number and NaN the number.",
       "a: g * where(ne(b, b), 1, lt(a, b) + 0.5 * eq(a, b));"
       "b: g * where(ne(b, b), 0, where(ne(a, a), 1, gt(a, b) + 0.5 * eq(a, b)))");
BINARY(hypot, TD_PW_FLOATS, "sqrt(a^2 + b^2), which neither overflows nor vanishes on the way.",
       "a: g * (a / where(eq(out, 0), inf, out)); b: g * (b / where(eq(out, 0), inf, out))",
       .dtypes = TD_DTYPES_FLOATS);
/* a - b; of one infinite number and itself 0. */
#define LEAD "where(logical_and(eq(a, b), eq(abs(a), inf)), 0, a - b)"
BINARY_FORMULA(logaddexp, TD_PW_FLOATS, "log(exp(a) + exp(b)).",
               "where(eq(a, b), a + 0.6931471805599453,"
               "      maximum(a, b) + log1p(exp(-abs(a - b))))",
               "a: g / (1 + exp(-" LEAD ")); b: g / (1 + exp(" LEAD "))",
               .dtypes = TD_DTYPES_FLOATS);
BINARY_FORMULA(logaddexp2, TD_PW_FLOATS, "log2(2^a + 2^b).",
               "where(eq(a, b), a + 1,"
               "      maximum(a, b) + log1p(exp2(-abs(a - b))) * 1.4426950408889634)",
               "a: g / (1 + exp2(-" LEAD ")); b: g / (1 + exp2(" LEAD "))",
               .dtypes = TD_DTYPES_FLOATS);
BINARY_FORMULA(xlogy, TD_PW_FLOATS, "a * log(b), 0 where a is 0.",
               "where(ne(b, b), b, where(eq(a, 0), 0, a * log(b)))",
               "a: where(logical_and(eq(a, 0), le(b, 0)), 0, g * log(b));"
               "b: where(logical_and(eq(a, 0), eq(b, 0)), 0, g * a / b)");
BINARY_FORMULA(xlog1py, TD_PW_FLOATS, "a * log(1 + b), 0 where a is 0.",
               "where(ne(b, b), b, where(eq(a, 0), 0, a * log1p(b)))",
               "a: where(logical_and(eq(a, 0), le(b, -1)), 0, g * log1p(b));"
               "b: where(logical_and(eq(a, 0), eq(b, -1)), 0, g * a / (b + 1))");
/* b^(a - 1) exp(-b) / gamma(a); for large a by Stirling's series, since the terms of the exponent
 * are large and nearly cancel. */
#define LARGE "maximum(a, 30)"
#define SHARE "((b - " LARGE ") / " LARGE ")"
#define GAMMA_DENSITY                                                                              \
    "where(le(a, 30), exp(where(eq(a, 1), 0, (a - 1) * log(b)) - b - lgamma(a)),"                  \
    "   where(eq(b, 0), 0, sqrt(" LARGE " * 0.15915494309189535) / b *"                            \
    "      exp(-" LARGE " * (" SHARE " - log1p(" SHARE ")) -"                                      \
    "          (0.08333333333333333 - (0.002777777777777778 - 0.0007936507936507937 /"             \
    "           " LARGE " / " LARGE ") / " LARGE " / " LARGE ") / " LARGE ")))"
BINARY(igamma, TD_PW_FLOATS,
       "Regularised lower incomplete gamma function of order a at b; its gradient by a is NaN.",
       "a: g * nan; b: g * " GAMMA_DENSITY, .dtypes = TD_DTYPES_FLOATS);
BINARY(igammac, TD_PW_FLOATS,
       "Regularised upper incomplete gamma function of order a at b; its gradient by a is NaN.",
       "a: g * nan; b: -(g * " GAMMA_DENSITY ")", .dtypes = TD_DTYPES_FLOATS);
BINARY(copysign, TD_PW_FLOATS, "The size of a with the sign of b.",
       "a: where(eq(a, 0), 0, g * copysign(1, a) * copysign(1, b)); b: 0");
#define NEXTAFTER_SLOPE "a: where(eq(a, b), 0, g); b: 0"
BINARY(nextafter, TD_PW_ARITH, "The next number after a in the direction of b.", NEXTAFTER_SLOPE,
       .dtypes = TD_DTYPES_FLOATS, .variant = choose_nextafter);
/* The step to the next float32 times 2 to the power of the digits that the narrow dtype lacks;
 * `step` is that step where all of them are alike. From an infinite number down to the largest. */
#define NARROW_NEXTAFTER(name, bit, step, most)                                                    \
    TD_OPERATOR(name) = {                                                                          \
        .schema = "(Tensor|number a, Tensor|number b) -> Tensor",                                  \
        .doc = "nextafter of a 16-bit dtype.",                                                     \
        .pointwise =                                                                               \
            PLAN(.type = TD_PW_ARITH, .primitive = -1,                                             \
                 .formula = "where(eq(a, b), b, where(eq(abs(a), inf),"                            \
                            "   where(eq(b, b), copysign(" most ", a), b), a + " step "))"),       \
        .dtypes = TD_DTYPE_BIT(bit),                                                               \
        .gradient = NEXTAFTER_SLOPE,                                                               \
        .flags = TD_OP_INTERNAL,                                                                   \
    }
NARROW_NEXTAFTER(nextafter_brain, BF16, "(nextafter(a, b) - a) * 65536",
                 "338953138925153547590470800371487866880");
NARROW_NEXTAFTER(nextafter_half, F16,
                 "where(le(abs(a), 6.103515625e-05),"
                 "      copysign(5.9604644775390625e-08, nextafter(a, b) - a),"
                 "      (nextafter(a, b) - a) * 8192)",
                 "65504");
TD_OPERATOR(heaviside) = {
    .schema = "(Tensor|number a, Tensor|number b) -> Tensor",
    .doc = "0 where a is negative, b where it is 0, else 1.",
    .pointwise = PLAN(.type = TD_PW_ARITH, .same = true, .primitive = -1,
                      .formula = "where(eq(a, 0), b, where(gt(a, 0), 1, 0))"),
    .flags = FORMS | TD_OP_NONDIFF | TD_OP_OUT_EXACT,
};
BINARY_FORMULA(ldexp, TD_PW_FLOATS, "a * 2^b.", "a * pow(2, b)",
               "a: g * pow(2, b); b: g * out * 0.6931471805599453");
TD_OPERATOR(float_power) = {
    .schema = "(Tensor|number a, Tensor|number b) -> Tensor",
    .doc = "a to the power b, in float64.",
    .pointwise = PLAN(.type = TD_PW_DOUBLES, .primitive = TD_PW_pow),
    .gradient = POWER_SLOPES,
    .autocast = {[TD_CUDA] = TD_AUTOCAST_FP32},
    .flags = FORMS | TD_OP_OUT_EXACT,
};

/* ---- tests ---- */

FLOAT_TEST(signbit, "Is it negative, -0 among them?", "lt(copysign(1, x), 0)", below_zero);
FLOAT_TEST(isposinf, "Is it positive and infinite?", "eq(x, inf)", no_element);
FLOAT_TEST(isneginf, "Is it negative and infinite?", "eq(x, -inf)", no_element);
static td_status choose_isreal(const td_value *args, const td_op **op) {
    (void)args;
    *op = TD_OP(each_element);
    return TD_OK;
}
TD_OPERATOR(isreal) = {
    .schema = "(Tensor x) -> Tensor",
    .doc = "Is it a real number? All are.",
    .pointwise = PLAN(.type = TD_PW_FLOAT_TEST, .primitive = -1,
                      .formula = "logical_or(eq(x, x), ne(x, x))"), /* of lists */
    .variant = choose_isreal,
    .flags = TD_OP_OUT | TD_OP_NONDIFF,
};
TD_OPERATOR(close_floats) = {
    .schema = "(Tensor a, Tensor b, number rtol, number atol, bool equal_nan) -> Tensor",
    .doc = "isclose of floats.",
    .pointwise = PLAN(.type = TD_PW_FLOAT_TEST, .primitive = -1,
                      .formula = "logical_or(logical_or(eq(a, b),"
                                 "      logical_and(equal_nan, logical_and(ne(a, a), ne(b, b)))),"
                                 "   logical_and(le(abs(a - b), atol + abs(rtol * b)),"
                                 "      lt(abs(a - b), inf)))"),
    .flags = TD_OP_INTERNAL | TD_OP_NONDIFF,
};
TD_OPERATOR(isclose) = {
    .schema = "(Tensor a, Tensor b, number(0..) rtol=1e-05, number(0..) atol=1e-08, "
              "bool equal_nan=false) -> Tensor",
    .doc = "Is |a - b| at most atol + rtol * |b|?",
    .shapes = "a (*), b (*) -> (*)",
    .takes = "any, one dtype; the result is bool",
    .notes = "|a - b| <= atol + rtol |b|.",
    .run = run_isclose,
    .flags = TD_OP_NONDIFF,
};
TD_OPERATOR(allclose) = {
    .schema = "(Tensor a, Tensor b, number(0..) rtol=1e-05, number(0..) atol=1e-08, "
              "bool equal_nan=false) -> bool",
    .doc = "Are all elements close, as isclose says?",
    .shapes = "a (*), b (*) -> bool",
    .takes = "any, one dtype; the result is bool",
    .notes = "|a - b| <= atol + rtol |b|.",
    .run = run_allclose,
    .flags = TD_OP_BY_ELEMENTS | TD_OP_NONDIFF,
};
