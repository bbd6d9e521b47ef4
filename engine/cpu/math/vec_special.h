/* vec_special.h: the sign and the neighbours of floats, hyperbolic and special functions: what
 * SLEEF has, with its ends mended, and what it lacks. The latter are computed in double; vectors of
 * float go through them in halves. tests/torture/ulp measures all of them.
 */
#ifndef TD_CPU_MATH_VEC_SPECIAL_H
#define TD_CPU_MATH_VEC_SPECIAL_H

#include "engine/cpu/math/vec_wide.h"

/* ---- bits ---- */

#define TD_VEC_BITS(V, M, I, most)                                                                 \
    static inline V V##_copysign(V x, V y) {                                                       \
        return (V)(((M)x & most) | ((M)y & ~(I)most));                                             \
    }                                                                                              \
    /* Away from 0 the bits grow by one, towards it they shrink. */                                \
    static inline V V##_nextafter(V x, V y) {                                                      \
        M away = ~((M)(x < y) ^ (M)(x > 0));                                                       \
        V r = (V)((M)x + ((away & 2) - 1)), least = (V)(((M)y & ~(I)most) | 1);                    \
        r = V##_select((M)(x == 0), least, r);                                                     \
        r = V##_select((M)(x == y), y, r);                                                         \
        return V##_select((M)(x != x) | (M)(y != y), x + y, r);                                    \
    }
TD_VEC_BITS(vf, vi, int32_t, INT32_MAX)
TD_VEC_BITS(vd, vl, int64_t, INT64_MAX)
#undef TD_VEC_BITS

/* ---- SLEEF's, with their ends ---- */

/* `far`: from where on asinh(x) is log(2 x) to the last bit; `near`: up to where it is x. */
#define TD_VEC_HYPERBOLIC(V, T, M, far, near)                                                      \
    static inline V V##_asinh(V x) {                                                               \
        V a = V##_abs(x), r = V##_asinh_most(x);                                                   \
        M out = (M)(a > (T)(far)), in = (M)(a < (T)(near));                                        \
        r = V##_select(in, x, r);                                                                  \
        if (__builtin_expect(V##_any(out), 0))                                                     \
            r = V##_select(out, V##_copysign(V##_log(a) + (T)0.6931471805599453, x), r);           \
        return r;                                                                                  \
    }                                                                                              \
    static inline V V##_acosh(V x) {                                                               \
        V r = V##_acosh_most(x);                                                                   \
        M out = (M)(x > (T)(far));                                                                 \
        if (__builtin_expect(V##_any(out), 0))                                                     \
            r = V##_select(out, V##_log(x) + (T)0.6931471805599453, r);                            \
        return r;                                                                                  \
    }                                                                                              \
    static inline V V##_atanh(V x) {                                                               \
        return V##_select((M)(V##_abs(x) < (T)(near)), x, V##_atanh_most(x));                      \
    }                                                                                              \
    /* SLEEF's is infinite a little early. */                                                      \
    static inline V V##_lgamma(V x) {                                                              \
        V r = V##_lgamma_most(x);                                                                  \
        M out = (M)(x > (T)(far)) & (M)(r == (T)INFINITY);                                         \
        if (__builtin_expect(V##_any(out), 0))                                                     \
            r = V##_select(out, x * (V##_log(x) - 1), r);                                          \
        return V##_select((M)(x == -(T)INFINITY), V##_abs(x), r);                                  \
    }
TD_VEC_HYPERBOLIC(vf, float, vi, 0x1p30, 0x1p-13)
TD_VEC_HYPERBOLIC(vd, double, vl, 0x1p60, 0x1p-28)
#undef TD_VEC_HYPERBOLIC

/* ---- the derivatives of lgamma ---- */

/* From an argument below 10 up to one that is not: the sum of `term` of y on the way, and in `rest`
 * what its roundings took. Terms shrink, so each is the smaller one of those that are added. */
#define TD_VEC_CLIMB(y, sum, rest, term)                                                           \
    for (vl low = (vl)((y) < 10); vd_any(low); low = (vl)((y) < 10)) {                             \
        vd more = vd_select(low, (term), (vd){0}), next = (sum) + more;                            \
        (rest) +=                                                                                  \
            vd_select((vl)(vd_abs(next) < (double)INFINITY), more - (next - (sum)), (vd){0});      \
        (sum) = next;                                                                              \
        (y) += vd_select(low, (vd){0} + 1, (vd){0});                                               \
    }

/* Asymptotic series from 10 on (Abramowitz and Stegun, 6.3.18 and 6.4.12), the recurrence below,
 * reflection of what is negative (6.3.7 and 6.4.7). NaN ends no climb: comparisons are false. */
static __attribute__((noinline)) vd vd_digamma(vd x) {
    vl negative = (vl)(x < 0);
    vd y = vd_select(negative, 1 - x, x), sum = {0}, rest = {0};
    TD_VEC_CLIMB(y, sum, rest, -1 / y)
    vd z = 1 / (y * y), series = z * (1 / 12.0) - 691 / 32760.0;
    series = series * z + 1 / 132.0;
    series = series * z - 1 / 240.0;
    series = series * z + 1 / 252.0;
    series = series * z - 1 / 120.0;
    series = series * z + 1 / 12.0;
    vd r = vd_log(y) + sum + (rest - (0.5 / y + series * z));
    r = vd_select((vl)(x == 0), -1 / x, r);
    if (!vd_any(negative))
        return r;
    vd part = x - vd_rint(x), cotangent = 3.141592653589793 / vd_tan(part * 3.141592653589793);
    cotangent = vd_select((vl)(part == 0), (vd){0} + (double)NAN, cotangent);
    return vd_select(negative, r - cotangent, r);
}

static __attribute__((noinline)) vd vd_trigamma(vd x) {
    vl negative = (vl)(x < 0);
    vd y = vd_select(negative, 1 - x, x), sum = {0}, rest = {0};
    TD_VEC_CLIMB(y, sum, rest, 1 / (y * y))
    vd z = 1 / (y * y), series = z * (-3617 / 510.0) + 7 / 6.0;
    series = series * z - 691 / 2730.0;
    series = series * z + 5 / 66.0;
    series = series * z - 1 / 30.0;
    series = series * z + 1 / 42.0;
    series = series * z - 1 / 30.0;
    series = series * z + 1 / 6.0;
    vd r = sum + (rest + (1 / y + z * (0.5 + series / y)));
    if (!vd_any(negative))
        return r;
    vd sine = vd_sin((x - vd_rint(x)) * 3.141592653589793) * 0.3183098861837907;
    return vd_select(negative, 1 / (sine * sine) - r, r);
}

/* sum (q + k)^-s over k from 0 on, for s > 1 and q > 0: by Euler and Maclaurin, from a place on
 * where their series is good. */
static double zeta_of_positive(double s, double q) {
    static const double bernoulli[] = {1 / 6.0,       -1 / 30.0,      1 / 42.0, -1 / 30.0,
                                       5 / 66.0,      -691 / 2730.0,  7 / 6.0,  -3617 / 510.0,
                                       43867 / 798.0, -174611 / 330.0};
    enum { TERMS = (int)(sizeof bernoulli / sizeof *bernoulli) };
    double sum = 0;
    for (; q < 10 + s; q++) {
        double term = pow(q, -s);
        sum += term;
        if (term <= sum * 0x1p-60) /* both 0 where the first term is too small for a number */
            return sum;
    }
    double power = pow(q, -s), factor = power * s / (2 * q);
    sum += power * q / (s - 1) + power / 2;
    for (int k = 0; k < TERMS; k++) {
        sum += bernoulli[k] * factor;
        factor *= (s + 2 * k + 1) * (s + 2 * k + 2) / ((2 * k + 3) * (2 * k + 4) * q * q);
    }
    return sum;
}

/* Hurwitz' zeta function. Below 0, for whole s: what lies between q and 1 is a sum from the other
 * side, less what that has too many. */
static __attribute__((noinline)) double zeta_of(double s, double q) {
    double whole = floor(q);
    if (!(s > 1) || q != q)
        return s == 1 ? INFINITY : NAN;
    if (q > 0)
        return zeta_of_positive(s, q);
    if (q == whole || s != floor(s))
        return q == whole ? INFINITY : NAN;
    double rest = q - whole, between = zeta_of_positive(s, 1 - rest) - zeta_of_positive(s, 1 - q);
    return (fmod(s, 2) == 0 ? between : -between) + zeta_of_positive(s, rest);
}
static inline vf vf_zeta(vf s, vf q) {
    for (int k = 0; k < VF_N; k++)
        q[k] = (float)zeta_of((double)s[k], (double)q[k]);
    return q;
}
static inline vd vd_zeta(vd s, vd q) {
    for (int k = 0; k < VD_N; k++)
        q[k] = zeta_of(s[k], q[k]);
    return q;
}

/* ---- the inverse of erf ---- */

/* Where log erfc is r, far out, where erfc has no digits left: from Winitzki's approximation (2008)
 * by Newton's steps, which go nearly straight. */
static __attribute__((noinline, cold)) vd vd_erfinv_far(vd r) {
    vd w = r + 0.6931471805599453, c = 4.330746750799873 + w * 0.5;
    vd x = vd_sqrt(vd_sqrt(c * c - w * 6.802721088435374) - c);
    for (int step = 0; step < 3; step++) {
        vd scaled = vd_erfcx_of(x);
        x -= (r + x * x - vd_log(scaled)) * scaled * 0.886226925452758;
    }
    return x;
}

/* Of a >= 0 and 1 - a; times sqrt(2) for a `normal` quantile. a is a factor, and so is what
 * rounding took from a sqrt(2). */
static inline vd vd_erfinv_of(vd a, vd rest, bool normal) {
    vl central = (vl)(a < 0.5), ends = ~((vl)(rest > 0) & (vl)(a >= 0));
    vd w = vd_at_least(-vd_log(vd_select(central, 1 - a * a, rest * (1 + a))), 0);
    vl far = (vl)(w >= TD_DINVERSE_LIMIT), k = vd_octave(w, TD_DINVERSE_SHIFT);
    vd top, middle = vd_two_entries(TD_TABLE(dinverse), 0, k, &top);
    vd d = w - middle, times = a, more = {0}, low;
    if (normal) {
        times = vd_product(a, (vd){0} + 0x1.6a09e667f3bcdp0, &more);
        more = vd_fma(a, (vd){0} - 0x1.bdd3413b26456p-54, more);
    }
    vd curve = vd_rows(TD_TABLE(dinverse), 2, TD_DINVERSE_DEGREE, k, d);
    vd x = vd_product(times, top, &low);
    x += vd_fma(times, curve, vd_fma(more, top, low));
    if (__builtin_expect(vd_any(far), 0))
        x = vd_select(far, vd_erfinv_far(vd_log(rest)) * (normal ? 1.4142135623730951 : 1), x);
    vd end = vd_select((vl)(rest == 0), (vd){0} + (double)INFINITY, (vd){0} + (double)NAN);
    return vd_select(ends, end, x);
}
static __attribute__((noinline, cold)) vd vd_erfinv_apart(vd r, vd a) {
    vl far = ~(vl)(a < TD_RESTS_LIMIT);
    return vd_select(far, vd_erfinv_of(a, 1 - a, false), r);
}
/* Up to there by the polynomial of an interval, times a. */
static inline vd vd_erfinv(vd y) {
    vd a = vd_abs(y);
    vl k = vd_half_octave_of_rest(a);
    vd x = vd_times_rows(a, a, TD_TABLE(derfinv), TD_DERFINV_DEGREE, k, 0.886226925452758);
    bool all = vd_all_below(a, TD_RESTS_LIMIT);
    return vd_signed_as(__builtin_expect(all, 1) ? x : vd_erfinv_apart(x, a), y);
}
/* The number below which a standard normal one lies with probability p. */
static __attribute__((noinline, unused)) vd vd_ndtri(vd p) {
    vl upper = (vl)(p > 0.5);
    vd tail = vd_select(upper, 1 - p, p) * 2, x = vd_erfinv_of(1 - tail, tail, true);
    return vd_select(upper, x, 0.0 - x);
}

/* ---- erfc without its exponential ---- */

/* exp(x^2) erfc(x); below 0 by erfc(-x) = 2 - erfc(x), with what rounding took from the square. */
static inline vd vd_erfcx(vd x) {
    vd a = vd_abs(x), y = vd_erfcx_of(a), lost;
    vl negative = (vl)(x < 0);
    if (!vd_any(negative))
        return y;
    vd near = vd_min(a, (vd){0} + 27), power = vd_exp(vd_product(near, near, &lost));
    power = vd_select((vl)(power < (double)INFINITY), power + power * lost, power);
    return vd_select(negative, 2 * power - y, y);
}

/* ---- modified Bessel functions ---- */

/* I0 and I1 of a >= 0. The exponential is taken in two steps where one would overflow first. */
static inline vd vd_bessel(vd a, int order) {
    vl large = (vl)(a > 700);
    vd power = vd_exp(vd_select(large, a * 0.5, a)), y = vd_bessel_of(a, order) * power;
    y = vd_select(large, y * power, y);
    return vd_select((vl)(a == (double)INFINITY), a, y);
}
static inline vd vd_i0(vd x) {
    return vd_bessel(vd_abs(x), 0);
}
static inline vd vd_i0e(vd x) {
    return vd_bessel_of(vd_abs(x), 0);
}
static inline vd vd_i1e(vd x) {
    return vd_copysign(vd_bessel_of(vd_abs(x), 1), x);
}
static inline vd vd_i1(vd x) {
    return vd_copysign(vd_bessel(vd_abs(x), 1), x);
}

/* ---- vectors of float ---- */

TD_VEC_IN_HALVES(digamma, digamma)
TD_VEC_IN_HALVES(trigamma, trigamma)
TD_VEC_IN_HALVES(erfcx, erfcx)
#undef TD_VEC_IN_HALVES

/* ---- hypotenuses ---- */

/* Of small numbers, whose squares SLEEF's loses: of what is 2^700 times as large. Where the result
 * lies half-way between two numbers that are as small, what the root has lost says which. */
static __attribute__((noinline, cold)) vd vd_hypot_small(vd x, vd y) {
    vd a = vd_abs(x) * 0x1p700, b = vd_abs(y) * 0x1p700, s = vd_hypot_most(a, b);
    vd p_low, q_low, t_low, p = vd_product(a, a, &p_low), q = vd_product(b, b, &q_low);
    vd t = vd_product(s, s, &t_low), sum = p + q, back = sum - p;
    vd more = (sum - t) + (((p - (sum - back)) + (q - back)) + (p_low + q_low - t_low));
    vd r = s * 0x1p-700, left = s - r * 0x1p700;
    vl up = (vl)(left == 0x1p-375) & (vl)(more > 0),
       down = (vl)(left == -0x1p-375) & (vl)(more < 0);
    return (vd)((vl)r - up + down);
}
static inline vd vd_hypot(vd x, vd y) {
    vl small = (vl)(vd_abs(x) < 0x1p-900) & (vl)(vd_abs(y) < 0x1p-900);
    vd r = vd_hypot_most(x, y);
    return __builtin_expect(vd_any(small), 0) ? vd_select(small, vd_hypot_small(x, y), r) : r;
}
/* In double nothing overflows. */
static inline vf vf_hypot(vf x, vf y) {
    vd p = vd_of_low(x), q = vd_of_low(y), p2 = vd_of_high(x), q2 = vd_of_high(y);
    vf r = vf_of_doubles(vd_sqrt(p * p + q * q), vd_sqrt(p2 * p2 + q2 * q2));
    vi infinite = (vi)(vf_abs(x) == INFINITY) | (vi)(vf_abs(y) == INFINITY);
    return vf_select(infinite, (vf){0} + INFINITY, r);
}

#endif
