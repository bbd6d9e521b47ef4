/* vec_math.h: what SLEEF's functions lack: the ends of their domains, and functions made of several
 * that would lose digits if each step were rounded. Errors are at most 1 ulp unless a name says
 * otherwise; tests/torture/ulp measures them.
 *
 * Where a whole vector needs nothing but SLEEF, one comparison more finds that out; lanes that do
 * are done one by one in a wider type.
 */
#ifndef TD_CPU_MATH_VEC_MATH_H
#define TD_CPU_MATH_VEC_MATH_H

#include "engine/cpu/math/vec_angle.h"
#include "engine/cpu/math/vec_double_angle.h"
#include "engine/cpu/math/vec_float.h"

/* ---- lane by lane, for the few that need it ---- */

#define TD_VEC_LANES1(V, T, W, M, name, expression)                                                \
    static __attribute__((noinline, cold)) V V##_##name##_lanes(V r, V from, M which) {            \
        for (size_t k = 0; k < sizeof(V) / sizeof(T); k++) {                                       \
            W x = from[k];                                                                         \
            if (which[k])                                                                          \
                r[k] = (T)(expression);                                                            \
        }                                                                                          \
        return r;                                                                                  \
    }
#define TD_VEC_LANES2(V, T, W, M, name, expression)                                                \
    static __attribute__((noinline, cold)) V V##_##name##_lanes(V r, V a, V b, M which) {          \
        for (size_t k = 0; k < sizeof(V) / sizeof(T); k++) {                                       \
            W x = a[k], y = b[k];                                                                  \
            if (which[k])                                                                          \
                r[k] = (T)(expression);                                                            \
        }                                                                                          \
        return r;                                                                                  \
    }
TD_VEC_LANES1(vf, float, double, vi, sinh, sinh(x))
TD_VEC_LANES1(vd, double, long double, vl, sinh, sinhl(x))
TD_VEC_LANES1(vf, float, double, vi, cosh, cosh(x))
TD_VEC_LANES1(vd, double, long double, vl, cosh, coshl(x))
TD_VEC_LANES1(vf, float, double, vi, rsqrt, 1 / sqrt(x))
TD_VEC_LANES1(vd, double, long double, vl, rsqrt, 1 / sqrtl(x))
TD_VEC_LANES2(vf, float, double, vi, atan2, atan2(x, y))
TD_VEC_LANES2(vd, double, long double, vl, atan2, atan2l(x, y))
TD_VEC_LANES2(vf, float, float, vi, fmod, fmodf(x, y))
TD_VEC_LANES2(vd, double, double, vl, fmod, fmod(x, y))
#undef TD_VEC_LANES1
#undef TD_VEC_LANES2

/* ---- angles ----
 *
 * SLEEF takes a quick way where all lanes lie near 0 and slower ones for the whole vector where one
 * does not; their last bits differ. An element's result must not depend on its neighbours, nor on
 * how threads cut a tensor: lanes that go different ways are done apart. Where the set has fused
 * products there are own ways (vec_angle.h, vec_double_angle.h). */

#define TD_VEC_ANGLE(V, T, M, name, near, far)                                                     \
    static __attribute__((noinline)) V V##_##name##_apart(V x) {                                   \
        M quick = (M)(V##_abs(x) < (T)(near)), slow = ~(M)(V##_abs(x) < (T)(far));                 \
        M between = ~quick & ~slow;                                                                \
        V r = V##_##name##_most(V##_select(quick, x, (V){0}));                                     \
        if (V##_any(between))                                                                      \
            r = V##_select(between, V##_##name##_most(V##_select(between, x, (V){0} + (T)(near))), \
                           r);                                                                     \
        if (V##_any(slow))                                                                         \
            r = V##_select(slow, V##_##name##_most(V##_select(slow, x, (V){0} + (T)(far))), r);    \
        return r;                                                                                  \
    }                                                                                              \
    static inline V V##_##name(V x) {                                                              \
        M quick = (M)(V##_abs(x) < (T)(near));                                                     \
        return __builtin_expect(V##_any(~quick), 0) ? V##_##name##_apart(x)                        \
                                                    : V##_##name##_most(x);                        \
    }
#if !TD_DOUBLE_ANGLES_OURS
TD_VEC_ANGLE(vd, double, vl, sin, 15, 1e14)
TD_VEC_ANGLE(vd, double, vl, cos, 15, 1e14)
TD_VEC_ANGLE(vd, double, vl, tan, 15, 1e14)
#endif
#if !TD_ANGLES_OURS
TD_VEC_ANGLE(vf, float, vi, sin, 125, 125)
TD_VEC_ANGLE(vf, float, vi, cos, 125, 125)
TD_VEC_ANGLE(vf, float, vi, tan, 125, 125)
#endif
#undef TD_VEC_ANGLE

#if !TD_ANGLES_OURS
/* Angles within 3.5 ulp, of which 16-bit floats see nothing. Far ones go the way of floats; no lane
 * goes another way for its neighbours' sake. */
#define TD_VEC_ANGLE(name)                                                                         \
    static inline vf vf_##name##_for_halves(vf x) {                                                \
        vi near = (vi)(vf_abs(x) < 125);                                                           \
        vf r = (vf)TD_SLEEF_F(name, u35)((td_native_f)vf_select(near, x, (vf){0}));                \
        return __builtin_expect(vf_any(~near), 0) ? vf_select(near, r, vf_##name##_apart(x)) : r;  \
    }
TD_VEC_ANGLE(sin)
TD_VEC_ANGLE(cos)
TD_VEC_ANGLE(tan)
#undef TD_VEC_ANGLE

#define TD_VEC_ARC(name)                                                                           \
    static inline vf vf_##name(vf x) {                                                             \
        return (vf)TD_SLEEF_F(name, u10)((td_native_f)x);                                          \
    }
TD_VEC_ARC(asin)
TD_VEC_ARC(acos)
TD_VEC_ARC(atan)
#undef TD_VEC_ARC

static inline vf vf_log10(vf x) {
    return vf_log10_most(x);
}
#endif

#if !TD_DOUBLE_ANGLES_OURS
#define TD_VEC_ARC(name)                                                                           \
    static inline vd vd_##name(vd x) {                                                             \
        return vd_##name##_most(x);                                                                \
    }
TD_VEC_ARC(asin)
TD_VEC_ARC(acos)
TD_VEC_ARC(atan)
#undef TD_VEC_ARC
#endif

/* ---- the ends of domains ---- */

/* V, mask and any; results below `tiny` are too small for SLEEF's way of keeping low parts, and
 * beyond `high` its sinh and cosh are infinite. */
#define TD_VEC_ENDS(V, T, M, tiny, high, least, most)                                              \
    static inline V V##_sinh(V x) {                                                                \
        V r = V##_sinh_most(x);                                                                    \
        M far = (M)(V##_abs(x) > (T)(high));                                                       \
        return __builtin_expect(V##_any(far), 0) ? V##_sinh_lanes(r, x, far) : r;                  \
    }                                                                                              \
    static inline V V##_cosh(V x) {                                                                \
        V r = V##_cosh_most(x);                                                                    \
        M far = (M)(V##_abs(x) > (T)(high));                                                       \
        return __builtin_expect(V##_any(far), 0) ? V##_cosh_lanes(r, x, far) : r;                  \
    }                                                                                              \
    static inline V V##_atan2(V y, V x) {                                                          \
        V r = V##_atan2_most(y, x);                                                                \
        M low = (M)(V##_abs(r) < (T)(tiny)) & (M)(r != 0);                                         \
        return __builtin_expect(V##_any(low), 0) ? V##_atan2_lanes(r, y, x, low) : r;              \
    }                                                                                              \
    /* SLEEF gives up where the quotient is too large for it. */                                   \
    static inline V V##_fmod(V x, V y) {                                                           \
        V r = V##_fmod_most(x, y);                                                                 \
        if (__builtin_expect(V##_any((M)(r != r)), 0))                                             \
            r = V##_fmod_lanes(r, x, y, (M)(r != r));                                              \
        return r;                                                                                  \
    }                                                                                              \
    /* The root halves the error of the reciprocal, which must be neither infinite nor             \
     * subnormal. */                                                                               \
    static inline V V##_rsqrt(V x) {                                                               \
        V r = V##_sqrt(1 / x);                                                                     \
        M far = (M)(x < (T)(least)) | (M)(x > (T)(most));                                          \
        return __builtin_expect(V##_any(far), 0) ? V##_rsqrt_lanes(r, x, far) : r;                 \
    }
TD_VEC_ENDS(vf, float, vi, 0x1p-120, 87.5, 0x1p-126, 0x1p126)
TD_VEC_ENDS(vd, double, vl, 0x1p-1010, 709, 0x1p-1022, 0x1p1022)
#undef TD_VEC_ENDS

/* ---- sigmoid and its products ---- */

/* 1 / k! from k = 2. */
#define TD_TAYLOR_F                                                                                \
    { 0.5f, 1 / 6.0f, 1 / 24.0f, 1 / 120.0f, 1 / 720.0f, 1 / 5040.0f }

#define P        vf
#define T        float
#define V        vf
#define M        vi
#define I        int32_t
#define DIGITS   23
#define BIAS     127
#define LN2_HIGH 0x1.62e4p-1f
#define LN2_LOW  0x1.7f7d1cf79abc9p-20f
#define TAYLOR   TD_TAYLOR_F
#define POWER    vi
#define LOWEST   -125 /* exp and all its products with a float are 0 below it */
#if TD_EXP_BY_TABLE
#define TD_SIGMOID_LEAST_F -87
#define LEAST              TD_SIGMOID_LEAST_F
#endif
#include "engine/cpu/math/vec_sigmoid.h"

#define P      vd
#define T      double
#define V      vd
#define M      vl
#define POWER  vd_power
#define LOWEST -765
#if TD_EXP_BY_TABLE_D
#define TD_SIGMOID_LEAST -700
#define LEAST            TD_SIGMOID_LEAST
#endif
#include "engine/cpu/math/vec_sigmoid.h"

#if defined(TD_ISA_avx2)
/* A polynomial by interval takes half as long again: entries of 16 are looked up in two halves. */
static inline vf vf_sigmoid(vf x) {
    return vf_sigmoid_wide(x);
}
/* Below that the logistic function has not all its digits. */
static __attribute__((noinline, cold)) vf vf_silu_ends(vf r, vf x) {
    return vf_select((vi)(x < TD_SIGMOID_LEAST_F), vf_silu_far(x), r);
}
static inline vf vf_silu(vf x) {
    vf more, y = vf_sigmoid_and_more(x, &more), r = x * vf_fma(y, more, y);
    bool far = vf_any((vi)(x < TD_SIGMOID_LEAST_F));
    return __builtin_expect(far, 0) ? vf_silu_ends(r, x) : r;
}
#else
#if TD_EXP_BY_TABLE
static inline vf vf_sigmoid_far(vf x) {
    return vf_sigmoid_wide(x);
}
#else
static inline vf vf_sigmoid_far(vf x) {
    return vf_sigmoid_of(x);
}
#endif
TD_VEC_NEAR_AND_FAR(sigmoid, TD_SIGMOID_NEAR_LIMIT)
TD_VEC_NEAR_AND_FAR(silu, TD_SILU_NEAR_LIMIT)
#endif

/* x sigmoid(x), with the sign of x. Far out it is x or 0. */
static inline vd vd_silu_of(vd x) {
    vd_power n;
    vd near = vd_min(vd_max(x, (vd){0} - 765), (vd){0} + 765);
    vd low, high = vd_sigmoid_parts(near, &low, &n), rest;
    vd product = vd_product(near, high, &rest);
    vd y = vd_scaled(product + (rest + near * low), n);
    y += x - x; /* NaN for an infinite one */
    y = (vd)((vl)y | ((vl)x & (vl)((vd){0} * -1.0)));
    return vd_select((vl)(x > 765), x, y);
}

#if TD_EXP_BY_TABLE_D
static inline vd vd_sigmoid(vd x) {
    return vd_sigmoid_wide(x);
}
static __attribute__((noinline, cold)) vd vd_silu_ends(vd r, vd x, vl outside) {
    return vd_select(outside, vd_silu_of(x), r);
}
static inline vd vd_silu(vd x) {
    vd more, rest, y = vd_sigmoid_and_more(x, &more), product = vd_product(x, y, &rest);
    vd r = vd_signed_as(product + vd_fma(product, more, rest), x);
    vl outside = vd_outside(x, TD_SIGMOID_LEAST, (double)INFINITY);
    return __builtin_expect(vd_any(outside), 0) ? vd_silu_ends(r, x, outside) : r;
}
#else
static inline vd vd_sigmoid(vd x) {
    return vd_sigmoid_of(x);
}
static inline vd vd_silu(vd x) {
    return vd_silu_of(x);
}
#endif

/* ---- powers ---- */

/* SLEEF's pow is infinite already where a result is within some hundred ulp of the largest number:
 * where finite numbers give that by little, C's library is asked. */
#define TD_VEC_POW(V, T, M, scalar, limit)                                                         \
    static __attribute__((noinline, cold)) V V##_pow_again(V x, V y, V power, M asked) {           \
        asked &= (M)(V##_log2(V##_abs(x)) * y < (T)(limit));                                       \
        for (size_t k = 0; k < sizeof(V) / sizeof(T); k++)                                         \
            if (asked[k])                                                                          \
                power[k] = scalar(x[k], y[k]);                                                     \
        return power;                                                                              \
    }                                                                                              \
    static inline V V##_pow(V x, V y) {                                                            \
        V power = V##_pow_most(x, y);                                                              \
        M asked = (M)(V##_abs(power) == (T)INFINITY) & (M)(V##_abs(x) < (T)INFINITY) &             \
                  (M)(V##_abs(y) < (T)INFINITY) & (M)(x != 0);                                     \
        return __builtin_expect(V##_any(asked), 0) ? V##_pow_again(x, y, power, asked) : power;    \
    }
TD_VEC_POW(vf, float, vi, powf, 128.01)
TD_VEC_POW(vd, double, vl, pow, 1024.01)
#undef TD_VEC_POW

#endif
