/* vec_angle.h: sin, cos, tan, asin, acos, atan and log10 of vectors of float, at a few instructions
 * per vector.
 *
 * An element has one result wherever it lies and whatever lies beside it. What rounding takes on
 * the way is carried along where it would be seen: of all floats no result is off by as much as one
 * last place, those of asin and acos by 0.63 at most. Without fused products (baseline) they are
 * SLEEF's, as they are of angles that are far out. fit_angles.py makes the polynomials.
 */
#ifndef TD_CPU_MATH_VEC_ANGLE_H
#define TD_CPU_MATH_VEC_ANGLE_H

#include "engine/cpu/math/tables/vec_angle_pieces.h"
#include "engine/cpu/math/vec_float.h"

#if defined(TD_ISA_avx512) || defined(TD_ISA_avx2)
#define TD_ANGLES_OURS 1
#else
#define TD_ANGLES_OURS 0
#endif

#if TD_ANGLES_OURS

/* Adding it leaves whole numbers in the low bits. */
#define TD_ANGLE_ROUND 0x1.8p23f

/* x is k steps and what is returned and *low. The first difference is exact: its digits lie between
 * the last one of the step or of x and half a step. The second is a number of few digits less one
 * of smaller ones, of which what rounding takes is found exactly too. */
static inline vf vf_angle_rest(vf x, const float *step, vf k, vf *low) {
    vf first = vf_fma(k, (vf){0} - step[0], x), r = first - k * step[1];
    vf lost = vf_fma(k, (vf){0} - step[1], first - r);
    *low = vf_fma(k, (vf){0} - step[2], lost);
    return r;
}
/* The same to fewer digits than a float has, but to enough for those of 16 bits. */
static inline vf vf_angle_rest_for_halves(vf x, const float *step, vf k) {
    vf first = vf_fma(k, (vf){0} - step[0], x);
    return vf_fma(k, (vf){0} - step[1], first);
}

/* ---- sine and cosine ---- */

/* x = (k - eighths) pi / 4 + r; shifted has k in its low bits. */
static inline vf vf_eighths(vf x, int eighths, vf *k) {
    vf round = (vf){0} + (TD_ANGLE_ROUND + (float)eighths);
    vf shifted = vf_fma(x, (vf){0} + 0x1.45f306p+0f, round); /* 4 / pi */
    *k = shifted - round;
    return shifted;
}

/* sin(x + eighths pi / 4), by the sines and cosines of k pi / 4 and of r. */
static inline vf vf_sine_near(vf x, int eighths) {
    vf k, low, shifted = vf_eighths(x, eighths, &k);
    vf r = vf_angle_rest(x, eighth_turns, k, &low), square = r * r;
    vf sine = vf_entry_of_8(turn_rows[0], (vi)shifted);
    vf cosine = vf_entry_of_8(turn_rows[1], (vi)shifted);
    vf top = vf_fma(cosine, r, sine), lost = vf_fma(cosine, r, sine - top);
    vf curve = vf_polynomial(sine_terms, TD_SINE_TERMS, square);
    vf bend = vf_polynomial(cosine_terms, TD_COSINE_TERMS, square);
    vf rest = vf_fma(top, vf_entry_of_8(turn_rows[2], (vi)shifted), lost);
    rest = vf_fma(sine * square, bend, rest);
    return top + vf_fma(cosine, vf_fma(r * square, curve, low), rest);
}
static inline vf vf_sine_for_halves(vf x, int eighths) {
    vf k, shifted = vf_eighths(x, eighths, &k);
    vf r = vf_angle_rest_for_halves(x, eighth_turns, k), square = r * r;
    vf sine = vf_entry_of_8(turn_rows[0], (vi)shifted);
    vf cosine = vf_entry_of_8(turn_rows[1], (vi)shifted);
    vf curve = vf_polynomial(sine_terms, TD_SINE_TERMS, square);
    vf bend = vf_polynomial(cosine_terms, TD_COSINE_TERMS, square);
    vf rest = vf_fma(sine * square, bend, sine);
    return vf_fma(cosine, vf_fma(r * square, curve, r), rest);
}

/* ---- tangent ---- */

static inline vf vf_pick_odd(vi k, vf odd, vf even) {
#if defined(TD_ISA_avx512)
    __mmask16 which = _mm512_test_epi32_mask((__m512i)k, _mm512_set1_epi32(1));
    return (vf)_mm512_mask_blend_ps(which, (__m512)even, (__m512)odd);
#else
    return (vf)_mm256_blendv_ps((__m256)even, (__m256)odd, (__m256)(k << 31));
#endif
}

/* tan(r), or -1 / tan(r) where k is odd: *first, which is r or -1 / r, and r times what is
 * returned. Of -1 / r rounding takes *lost. */
static inline vf vf_tan_parts(vf r, vi k, vf *first, vf *lost) {
    vf square = vf_fma(r, r, (vf){0} - TD_TANGENT_MIDDLE), zero = {0}, inverse = -1 / r;
    vf sum = vf_polynomial(tangent_terms, TD_TANGENT_MORE, square);
    sum = vf_pick_odd(k, zero, sum);
    for (int row = TD_TANGENT_ROWS - 1; row >= 0; row--)
        sum = vf_fma(sum, square, vf_entry_of_8(tangent_rows[row], k));
    *first = vf_pick_odd(k, inverse, r);
    *lost = vf_pick_odd(k, vf_fma(r, inverse, (vf){0} + 1) * inverse, zero);
    return sum;
}
static inline vf vf_quarters(vf x) {
    return vf_fma(x, (vf){0} + 0x1.45f306p-1f, (vf){0} + TD_ANGLE_ROUND); /* 2 / pi */
}

/* The slope is 1 and the square of the value. */
static inline vf vf_tan_near(vf x) {
    vf low, first, lost, shifted = vf_quarters(x);
    vf r = vf_angle_rest(x, quarter_turns, shifted - TD_ANGLE_ROUND, &low);
    vf sum = vf_tan_parts(r, (vi)shifted, &first, &lost), value = vf_fma(r, sum, first);
    lost = vf_fma(low, vf_fma(value, value, (vf){0} + 1), lost);
    return first + vf_fma(r, sum, lost);
}
static inline vf vf_tan_for_halves_near(vf x) {
    vf first, lost, shifted = vf_quarters(x);
    vf r = vf_angle_rest_for_halves(x, quarter_turns, shifted - TD_ANGLE_ROUND);
    vf sum = vf_tan_parts(r, (vi)shifted, &first, &lost);
    return vf_fma(r, sum, first);
}

/* ---- angles near and far ---- */

/* From here on SLEEF finds the multiple, by as many digits of pi as it takes. */
#define TD_ANGLE_FAR 0x1p15f
#define TD_VEC_FAR_ANGLE(name)                                                                     \
    static __attribute__((noinline, cold)) vf vf_##name##_apart(vf r, vf x) {                      \
        vi far = (vi)(vf_abs(x) >= TD_ANGLE_FAR);                                                  \
        return vf_select(far, vf_##name##_most(vf_select(far, x, (vf){0} + TD_ANGLE_FAR)), r);     \
    }
TD_VEC_FAR_ANGLE(sin)
TD_VEC_FAR_ANGLE(cos)
TD_VEC_FAR_ANGLE(tan)
#undef TD_VEC_FAR_ANGLE
#define TD_VEC_ANGLE(name, apart, near)                                                            \
    static inline vf vf_##name(vf x) {                                                             \
        vf r = near;                                                                               \
        bool far = vf_any_from(vf_abs(x), TD_ANGLE_FAR);                                           \
        return __builtin_expect(far, 0) ? vf_##apart##_apart(r, x) : r;                            \
    }
TD_VEC_ANGLE(sin, sin, vf_pick_eq(x, (vf){0}, x, vf_sine_near(x, 0))) /* -0 stays that */
TD_VEC_ANGLE(cos, cos, vf_sine_near(x, 2))
TD_VEC_ANGLE(tan, tan, vf_pick_eq(x, (vf){0}, x, vf_tan_near(x)))
TD_VEC_ANGLE(sin_for_halves, sin, vf_pick_eq(x, (vf){0}, x, vf_sine_for_halves(x, 0)))
TD_VEC_ANGLE(cos_for_halves, cos, vf_sine_for_halves(x, 2))
TD_VEC_ANGLE(tan_for_halves, tan, vf_pick_eq(x, (vf){0}, x, vf_tan_for_halves_near(x)))
#undef TD_VEC_ANGLE

/* ---- arc sine and arc cosine ---- */

/* The root of w and what rounding takes from it; of 0 both are 0. */
static inline vf vf_root(vf w, vf *low) {
#if defined(TD_ISA_avx512)
    __mmask16 some = _mm512_cmp_ps_mask((__m512)w, _mm512_setzero_ps(), _CMP_NEQ_UQ);
    vf inverse = (vf)_mm512_maskz_rsqrt14_ps(some, (__m512)w), half = inverse * 0.5f;
    vf near = w * inverse, r = vf_fma(vf_fma(-near, near, w), half, near);
    *low = vf_fma(-r, r, w) * half;
#else
    vf r = vf_sqrt(w);
    *low = vf_fma(-r, r, w) / (r + r + 0x1p-100f);
#endif
    return r;
}

/* asin(z) = z + *rest, where z is a, or sqrt((1 - a) / 2) of an a above 1/2. */
static inline vf vf_arc(vf a, vf *rest) {
    vf half = (vf){0} + 0.5f, low, w = vf_fma(a, -half, half), root = vf_root(w, &low);
    vf z = vf_pick_gt(a, half, root, a), square = vf_pick_gt(a, half, w, a * a);
    vf sum = vf_polynomial(arc_terms, TD_ARC_TERMS, square);
    *rest = vf_fma(z * square, sum, vf_pick_gt(a, half, low, (vf){0}));
    return z;
}

/* Above 1/2 pi / 2 less twice that. */
static inline vf vf_asin(vf x) {
    vf a = vf_abs(x), half = (vf){0} + 0.5f, two = (vf){0} + 2, rest, z = vf_arc(a, &rest);
    vf right = (vf){0} + quarter_turns[0], top = vf_fma(-two, z, right);
    vf lost = vf_fma(-two, z, right - top) + quarter_turns[1];
    rest = vf_pick_gt(a, half, vf_fma(-two, rest, lost), rest);
    return vf_signed_as(vf_pick_gt(a, half, top, z) + rest, x);
}

/* pi / 2 less asin(x), or twice that, or pi less twice that. */
static inline vf vf_acos(vf x) {
    vf a = vf_abs(x), half = (vf){0} + 0.5f, rest, z = vf_arc(a, &rest);
    vf from = vf_pick_lt(x, -half, (vf){0} + half_turns[0], (vf){0} + quarter_turns[0]);
    from = vf_pick_gt(x, half, (vf){0}, from);
    vf times = vf_pick_gt(a, half, (vf){0} + 2, (vf){0} - 1);
    times = (vf)((vi)times ^ ((vi)x & INT32_MIN));
    vf top = vf_fma(times, z, from), lost = vf_fma(times, z, from - top);
    lost = vf_fma(from, (vf){0} + half_turns[1] / half_turns[0], lost);
    return top + vf_fma(times, rest, lost);
}

/* ---- arc tangent ---- */

/* By the polynomial of an interval; above 1 it is that of the inverse, less which pi / 2 is. Next
 * to 0 the first two terms are a, which has not been rounded. */
static inline vf vf_atan(vf x) {
    vf a = vf_abs(x), one = (vf){0} + 1, z = vf_pick_gt(a, one, 1 / a, a);
    vi k = (vi)vf_fma(z, (vf){0} + 7, (vf){0} + TD_ANGLE_ROUND);
    vf d = z - vf_entry_of_8(arc_rows[0], k), sum = vf_entry_of_8(arc_rows[TD_ARC_DEGREE + 1], k);
    vf near = (vf){0} + 1 / 14.0f;
    for (int row = TD_ARC_DEGREE; row > 2; row--)
        sum = vf_fma(sum, d, vf_entry_of_8(arc_rows[row], k));
    sum = vf_fma(sum, d, vf_pick_lt(a, near, (vf){0}, vf_entry_of_8(arc_rows[2], k)));
    vf far = vf_entry_of_8(arc_rows[TD_ARC_DEGREE + 2], k);
    vf first = vf_pick_lt(a, near, a, vf_entry_of_8(arc_rows[1], k));
    first = vf_pick_gt(a, one, far, first);
    sum = vf_pick_gt(a, one, -sum, sum);
    return vf_signed_as(vf_fma(sum, d, first), x);
}

/* ---- log10 ---- */

/* n log10(2) + log10(1 + f), where x is (1 + f) 2^n and 1 + f from 0.7 to 1.4: so far the sum of
 * the first two terms is not too small for what rounding takes from it to be found exactly. */
static inline vi vf_log10_power(vf x) {
    return ((vi)x - 0x3F333333) >> 23; /* 0.7 */
}
static inline vf vf_log10_sum(vi n, vf f) {
    vf times = __builtin_convertvector(n, vf), tops = times * log10_of_2[0]; /* exact */
    vf slope = (vf){0} + log10_of_e[0], sum = vf_fma(f, slope, tops);
    vf lost = vf_fma(f, slope, tops - sum);
    lost = vf_fma(times, (vf){0} + log10_of_2[1], lost);
    lost = vf_fma(f, (vf){0} + log10_of_e[1], lost);
    return sum + vf_fma(f * f, vf_polynomial(log10_terms, TD_LOG10_TERMS, f), lost);
}
static __attribute__((noinline, cold)) vf vf_log10_apart(vf r, vf x) {
    return vf_select(vf_outside(x, TD_LOG_LEAST, INFINITY), vf_log10_most(x), r);
}
static inline vf vf_log10(vf x) {
    vi n = vf_log10_power(x);
    vf r = vf_log10_sum(n, vf_log_scaled(x, n) - 1);
    bool all = vf_all_within(x, TD_LOG_LEAST, INFINITY);
    return __builtin_expect(all, 1) ? r : vf_log10_apart(r, x);
}

#endif

#endif
