/* vec_double_angle.h: sin, cos, tan, asin, acos and atan of vectors of double, by short polynomials
 * beside tables of 16.
 *
 * No lane's result depends on what others hold. What rounding takes on the way is carried along
 * where it would be seen, so that the last sum is what counts. Angles that are far out are SLEEF's,
 * and so is all without fused products (baseline). fit_double_angles.py makes tables and
 * polynomials.
 */
#ifndef TD_CPU_MATH_VEC_DOUBLE_ANGLE_H
#define TD_CPU_MATH_VEC_DOUBLE_ANGLE_H

#include "engine/cpu/math/tables/vec_double_angle_pieces.h"
#include "engine/cpu/math/vec_double.h"

#define TD_DOUBLE_ANGLES_OURS TD_EXP_BY_TABLE_D

#if TD_DOUBLE_ANGLES_OURS

/* Adding it leaves whole numbers in the low bits. */
#define TD_DANGLE_ROUND 0x1.8p52

/* x is k steps and what is returned and *low; k has 16 bits at most. Multiples of the step's first
 * two parts are exact, and so is the first difference. The second one is as well where it is small,
 * since both have few digits there; elsewhere what rounding takes from it is found. */
static inline vd vd_angle_rest(vd x, const double *step, vd k, vd *low) {
    vd first = vd_less(k, (vd){0} + step[0], x), r = vd_less(k, (vd){0} + step[1], first);
    vd lost = vd_less(k, (vd){0} + step[1], first - r);
    *low = vd_less(k, (vd){0} + step[2], lost);
    return r;
}

/* ---- sine and cosine ---- */

/* sin(x + eighths pi / 8), by the sines and cosines of k pi / 8 and of the rest. It is the sum of
 * what is returned and *rest. */
static inline vd vd_sine_parts(vd x, int eighths, vd *rest) {
    vd round = (vd){0} + (TD_DANGLE_ROUND + eighths);
    vd shifted = vd_fma(x, (vd){0} + 2.5464790894703255, round); /* 8 / pi */
    vd low, r = vd_angle_rest(x, dsine_step, shifted - round, &low), square = r * r;
    vl k = vl_of_16((vl)shifted);
    vd cosine, sine = vd_two_entries(TD_TABLE(dsine), 0, k, &cosine);
    vd top = vd_fma(cosine, r, sine), lost = vd_fma(cosine, r, sine - top);
    vd curve = vd_polynomial(dsine_terms, TD_DSINE_TERMS, square);
    vd bend = vd_polynomial(dcosine_terms, TD_DCOSINE_TERMS, square);
    *rest = vd_fma(sine * square, bend, lost + vd_entry(TD_TABLE(dsine), 2, k));
    *rest = vd_fma(cosine, vd_fma(r * square, curve, low), *rest);
    return top;
}
static inline vd vd_sine_near(vd x) {
    vd rest, top = vd_sine_parts(x, 0, &rest);
#if defined(TD_ISA_avx512)
    __mmask8 some = _mm512_cmp_pd_mask((__m512d)x, _mm512_setzero_pd(), _CMP_NEQ_UQ);
    return (vd)_mm512_mask_add_pd((__m512d)x, some, (__m512d)top, (__m512d)rest); /* -0 stays */
#else
    return vd_pick_eq(x, (vd){0}, x, top + rest);
#endif
}
static inline vd vd_cosine_near(vd x) {
    vd rest, top = vd_sine_parts(x, 4, &rest);
    return top + rest;
}

/* ---- tangent ---- */

/* Numerator and denominator over which (S + C t) / (C - S t) is, where S and C are the sine and
 * cosine of k pi / 16 and t the tangent of the rest; both with what rounding takes. */
static inline vd vd_tan_near(vd x) {
    vd round = (vd){0} + TD_DANGLE_ROUND;
    vd shifted = vd_fma(x, (vd){0} + 5.092958178940651, round); /* 16 / pi */
    vd low, r = vd_angle_rest(x, dtangent_step, shifted - round, &low), square = r * r;
    vl k = vl_of_16((vl)shifted);
    vd cosine, sine = vd_two_entries(TD_TABLE(dtangent), 0, k, &cosine);
    vd cosine_low, sine_low = vd_two_entries(TD_TABLE(dtangent), 2, k, &cosine_low);
    vd curve = vd_polynomial(dtangent_terms, TD_DTANGENT_TERMS, square);
    vd more = vd_fma(r * square, curve, low), t = r + more;
    more = (r - t) + more;
    vd above = vd_fma(cosine, t, sine), above_low = vd_fma(cosine, t, sine - above);
    vd below = vd_less(sine, t, cosine), below_low = vd_less(sine, t, cosine - below);
    above_low = vd_fma(cosine, more, above_low + sine_low);
    below_low = vd_less(sine, more, below_low + cosine_low);
    vd inverse = vd_inverse_by_a_step(below), quotient = above * inverse;
    vd rest = vd_less(quotient, below, above);
    rest = vd_less(quotient, below_low, rest + above_low);
    return vd_fma(rest, inverse, quotient);
}

/* ---- angles near and far ---- */

/* From here on SLEEF finds the multiple, by as many digits of pi as it takes. Its way depends on
 * the largest angle of a vector: those that it takes different ways are done apart. */
#define TD_DANGLE_FAR  8192.0
#define TD_DANGLE_LAST 1e14
#define TD_VEC_ANGLE(name, near)                                                                   \
    static __attribute__((noinline, cold)) vd vd_##name##_apart(vd r, vd x) {                      \
        vd a = vd_abs(x);                                                                          \
        vl within = (vl)(a < TD_DANGLE_FAR), last = ~(vl)(a < TD_DANGLE_LAST);                     \
        vl between = ~within & ~last;                                                              \
        if (vd_any(between))                                                                       \
            r = vd_select(between,                                                                 \
                          vd_##name##_most(vd_select(between, x, (vd){0} + TD_DANGLE_FAR)), r);    \
        if (vd_any(last))                                                                          \
            r = vd_select(last, vd_##name##_most(vd_select(last, x, (vd){0} + TD_DANGLE_LAST)),    \
                          r);                                                                      \
        return r;                                                                                  \
    }                                                                                              \
    static inline vd vd_##name(vd x) {                                                             \
        vd r = near;                                                                               \
        bool far = !vd_all_below(vd_abs(x), TD_DANGLE_FAR);                                        \
        return __builtin_expect(far, 0) ? vd_##name##_apart(r, x) : r;                             \
    }
TD_VEC_ANGLE(sin, vd_sine_near(x))
TD_VEC_ANGLE(cos, vd_cosine_near(x))
TD_VEC_ANGLE(tan, vd_pick_eq(x, (vd){0}, x, vd_tan_near(x)))
#undef TD_VEC_ANGLE

/* ---- arc sine and arc cosine ---- */

/* The root of w to half its digits or more, and what that lacks; of 0 both are 0. */
static inline vd vd_root(vd w, vd *low) {
#if defined(TD_ISA_avx512)
    __mmask8 some = _mm512_cmp_pd_mask((__m512d)w, _mm512_setzero_pd(), _CMP_NEQ_UQ);
    vd inverse = (vd)_mm512_maskz_rsqrt14_pd(some, (__m512d)w), half = inverse * 0.5;
    vd near = w * inverse, off = vd_less(near, half, (vd){0} + 0.5);
    near = vd_fma(near, off, near);
    *low = vd_less(near, near, w) * vd_fma(half, off, half);
#else
    vd near = vd_sqrt(w);
    *low = vd_less(near, near, w) / (near + near + 0x1p-1000);
#endif
    return near;
}

/* In two halves side by side, of which each waits for half as many steps. */
static inline vd vd_polynomial_of_halves(const double *terms, int count, vd x) {
    vd square = x * x, even = (vd){0} + terms[count - 2], odd = (vd){0} + terms[count - 1];
    for (int k = count - 4; k >= 0; k -= 2) {
        even = vd_fma(even, square, (vd){0} + terms[k]);
        odd = vd_fma(odd, square, (vd){0} + terms[k + 1]);
    }
    return vd_fma(odd, x, even);
}

/* asin(z) = z + *rest, where z is a, or sqrt((1 - a) / 2) of an a above 1/2. */
static inline vd vd_arc(vd a, vd *rest) {
    vd half = (vd){0} + 0.5, low, w = vd_less(a, half, half), root = vd_root(w, &low);
    vd z = vd_pick_gt(a, half, root, a), square = vd_pick_gt(a, half, w, a * a);
    vd more = square * vd_polynomial_of_halves(darc_terms, TD_DARC_TERMS, square);
    *rest = vd_fma(z, more, vd_pick_gt(a, half, vd_fma(low, more, low), (vd){0}));
    return z;
}

/* Above 1/2 pi / 2 less twice that. */
static inline vd vd_asin(vd x) {
    vd a = vd_abs(x), half = (vd){0} + 0.5, rest, z = vd_arc(a, &rest), zero = {0};
    vd from = vd_pick_gt(a, half, (vd){0} + dquarter_turn[0], zero);
    vd times = vd_pick_gt(a, half, (vd){0} - 2, (vd){0} + 1);
    vd top = vd_fma(times, z, from), lost = vd_fma(times, z, from - top);
    lost = vd_fma(from, (vd){0} + dquarter_turn[1] / dquarter_turn[0], lost);
    return vd_signed_as(top + vd_fma(times, rest, lost), x);
}

/* pi / 2 less asin(x), or twice that, or pi less twice that. */
static inline vd vd_acos(vd x) {
    vd a = vd_abs(x), half = (vd){0} + 0.5, rest, z = vd_arc(a, &rest), zero = {0};
    vd from = vd_pick_lt(x, zero, (vd){0} + 2 * dquarter_turn[0], zero);
    from = vd_pick_gt(a, half, from, (vd){0} + dquarter_turn[0]);
    vd times = vd_pick_gt(a, half, (vd){0} + 2, (vd){0} - 1);
    times = (vd)((vl)times ^ ((vl)x & INT64_MIN));
    vd top = vd_fma(times, z, from), lost = vd_fma(times, z, from - top);
    lost = vd_fma(from, (vd){0} + dquarter_turn[1] / dquarter_turn[0], lost);
    return top + vd_fma(times, rest, lost);
}

/* ---- arc tangent ---- */

/* That of a centre c, and of (a - c) / (1 + a c), of which what rounding takes counts little but
 * where c is 0 and the quotient is a. From 2^100 on a is as good as infinite. */
static inline vd vd_atan(vd x) {
    vd a = vd_at_most(vd_abs(x), 0x1p100), round = (vd){0} + TD_DANGLE_ROUND;
    vd shifted = vd_fma(vd_inverse_about(a + 1), (vd){0} + TD_ATAN_PARTS, round);
    vl k = vl_of_16((vl)shifted);
    vd angle, centre = vd_two_entries(TD_TABLE(datan), 0, k, &angle);
    vd above = a - centre, below = vd_fma(a, centre, (vd){0} + 1);
    vd inverse = vd_inverse_near(below), z = above * inverse, square = z * z;
    vd curve = vd_polynomial(datan_terms, TD_DATAN_TERMS, square), sum = angle + z;
    vd rest = vd_fma(vd_less(z, below, above), inverse, vd_entry(TD_TABLE(datan), 2, k));
    rest = vd_fma(z * square, curve, rest);
    return vd_signed_as(sum + ((z - (sum - angle)) + rest), x);
}

#endif

#endif
