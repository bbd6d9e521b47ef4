/* vec_wide.h: special functions of floats in vectors of double, by tables of polynomials.
 *
 * No lane asks what others hold. What is computed here is right to 2^-33 or better, so that
 * rounding to float is the one error that counts; functions that say so are right to a double's
 * last places.
 */
#ifndef TD_CPU_MATH_VEC_WIDE_H
#define TD_CPU_MATH_VEC_WIDE_H

#include "engine/cpu/math/tables/vec_wide_pieces.h"
#include "engine/cpu/math/vec_math.h"
#if !TD_TABLES_BY_ROWS
#include "engine/cpu/math/tables/vec_erfinv_lines.h"
#endif

/* ---- polynomials by interval ---- */

/* An even table at v from 0 to 15. */
static inline vd vd_even(td_table t, int degree, vd v) {
    vd round = (vd){0} + 0x1.8p52, shifted = v + round;
    return vd_rows(t, 0, degree, (vl)shifted & 15, v - (shifted - round));
}
/* One at v = 15 c / (a + c). To the last places: how far v is from the middle is worked out anew
 * from a, since what rounding took from v would count several times where it changes much. */
static inline vd vd_even_by(td_table t, int degree, double c, vd a, vd *v) {
    vd round = (vd){0} + 0x1.8p52, inverse = 1 / (a + c);
    *v = inverse * (15 * c);
    vd shifted = *v + round, k = shifted - round;
    vd d = vd_fma(-k, a, (15 - k) * c) * inverse;
    return vd_rows(t, 0, degree, (vl)shifted & 15, vd_select((vl)(k == 0), *v, d));
}
/* One of octaves at v >= 0. */
static inline vd vd_octaves(td_table t, int degree, vd v, double shift) {
    vl k = vd_octave(v, shift);
    return vd_rows(t, 1, degree, k, v - vd_entry(t, 0, k));
}
#define TD_EVEN(name, v)           vd_even(TD_TABLE(name), name##_rows - 1, v)
#define TD_EVEN_BY(name, c, a, v)  vd_even_by(TD_TABLE(name), name##_rows - 1, c, a, v)
#define TD_OCTAVES(name, v, shift) vd_octaves(TD_TABLE(name), name##_rows - 2, v, shift)

#if !TD_TABLES_BY_ROWS
/* A table of lines at v from 2^-octaves to 1: polynomials of degree 5. */
static inline vd vd_lines(const double (*lines)[8], int octaves, vd v) {
    typedef uint64_t bits __attribute__((vector_size(TD_VBYTES)));
    bits part = (bits)v >> 49, first = (bits){0} + ((uint64_t)(1023 - octaves) << 3);
    vd d = v - (vd)((part << 49) | 1ull << 48);
    return vd_rows((td_table){lines[0], 8}, 0, 5, (vl)(part - first), d);
}
#endif

/* ---- exp and log ---- */

/* For x between -700 and 700, by the series about the nearest power of two. */
static inline vd vd_wide_exp(vd x) {
    static const double taylor[] = {1,         1,         1 / 2.0,    1 / 6.0,     1 / 24.0,
                                    1 / 120.0, 1 / 720.0, 1 / 5040.0, 1 / 40320.0, 1 / 362880.0};
    enum { TERMS = (int)(sizeof taylor / sizeof *taylor) };
    vd round = (vd){0} + 0x1.8p52;
    vd shifted = vd_fma(x, (vd){0} + 1.4426950408889634, round), whole = shifted - round;
    vd r = (x - whole * 0x1.62e42fefa38p-1) - whole * 0x1.ef35793c7673p-45;
    vd sum = (vd){0} + taylor[TERMS - 1];
    for (int k = TERMS - 2; k >= 0; k--)
        sum = vd_fma(sum, r, (vd){0} + taylor[k]);
    return (vd)((vl)sum + ((vl)shifted << 52));
}

/* Of normal x > 0, within 2^-40 and no nearer where it is near 0: by that of a power of two and
 * 2 atanh((m - 1) / (m + 1)) of what remains. */
static inline vd vd_wide_log(vd x) {
    typedef uint64_t bits __attribute__((vector_size(TD_VBYTES)));
    const uint64_t root = 0x3FE6A09E667F3BCDu, bias = 1023ull << 52; /* sqrt(1/2); 1 */
    bits exponent = ((bits)x + (bias - root)) >> 52;
    vd n = (vd)(exponent | 0x4330000000000000u) - (0x1p52 + 1023); /* behind 2^52 */
    vd m = (vd)((bits)x - (exponent << 52) + bias), s = (m - 1) / (m + 1), z = s * s;
    vd sum = (vd){0} + 2 / 13.0;
    for (int k = 11; k > 0; k -= 2)
        sum = vd_fma(sum, z, (vd){0} + 2.0 / k);
    return vd_fma(sum, s, n * 0.6931471805599453);
}

/* ---- the error function's relatives ---- */

/* exp(a^2) erfc(a) of a >= 0, right to the last places. */
static inline vd vd_erfcx_of(vd a) {
    vd v;
    return TD_EVEN_BY(erfcx, TD_ERFCX_C, a, &v);
}
/* Of a float; beyond 12 it is 0 or 2. */
static inline vd vd_wide_erfc(vd x) {
    vd a = vd_abs(x);
    a = vd_select((vl)(a > 12), (vd){0} + 12, a);
    vd v = 15 * TD_ERFCX_C / (a + TD_ERFCX_C);
    vd y = v * vd_wide_exp(-(a * a)) * TD_EVEN(erfc, v);
    return vd_select((vl)(x < 0), 2 - y, y);
}

/* Of a float between -1 and 1. */
static inline vd vd_wide_erfinv(vd x) {
    vd u = vd_fma(-x, x, (vd){0} + 1);
#if TD_TABLES_BY_ROWS
    return x * TD_EVEN(erfinv, vd_wide_log(u) * (-15 / TD_ERFINV_LIMIT));
#else
    vd least = (vd){0} + 1.0 / (1 << TD_ERFINV_OCTAVES);
    u = vd_select((vl)(u > least), u, least); /* of what is not between as well */
    return x * vd_lines(erfinv_lines, TD_ERFINV_OCTAVES, u);
#endif
}

/* Of a float: -sqrt(2) erfinv(1 - 2 p). Whole numbers, which are asked for by the thousand where
 * integers are, have none within. */
static inline vd vd_wide_ndtri(vd p) {
    vl upper = (vl)(p > 0.5), within = (vl)(p > 0) & (vl)(p < 1);
    vd tail = vd_select(upper, 1 - p, p);
    vd r = vd_select((vl)(tail == 0), (vd){0} + (double)INFINITY, (vd){0} + (double)NAN);
    if (vd_any(within)) {
        vd w = vd_max(-vd_wide_log(4 * tail * (1 - tail)), (vd){0});
        vd found = TD_OCTAVES(ndtri, w, TD_NDTRI_SHIFT);
        r = vd_select(within, (1 - 2 * tail) * 1.4142135623730951 * found, r);
    }
    return vd_select(upper, r, 0.0 - r);
}

/* ---- modified Bessel functions ---- */

/* What rounding took from v = 15 c / (a + c), as a part of it; 0 where it can't be told. */
static inline vd vd_lost_part(vd v, vd a) {
    const double c = TD_BESSEL_C;
    vd size = vd_select((vl)(a > 0x1p500), (vd){0} + 0x1p-500, (vd){0} + 1);
    vd sum = a + c, back = sum - a, less = (a - (sum - back)) + (c - back);
    vd rest, product = vd_product(v, sum * size, &rest);
    vd lost = ((15 * c * size - product) - rest - v * (less * size)) / (15 * c * size);
    return vd_select((vl)(vd_abs(lost) < 0x1p-40), lost, (vd){0});
}
/* exp(-a) I(a) of a >= 0, of order 0 and 1, right to the last places. */
static inline vd vd_bessel_of(vd a, int order) {
    vd v, y = order ? TD_EVEN_BY(i1, TD_BESSEL_C, a, &v) : TD_EVEN_BY(i0, TD_BESSEL_C, a, &v);
    y *= vd_sqrt(v);
    y += y * ((order ? 1.5 : 0.5) * vd_lost_part(v, a));
    if (!order)
        return y;
    y *= v * a;
    return vd_select((vl)(a == (double)INFINITY), (vd){0}, y);
}

/* The same of floats. */
static inline vd vd_wide_bessel_of(vd a, int order) {
    vd v = 15 * TD_BESSEL_C / (a + TD_BESSEL_C), root = vd_sqrt(v);
    if (!order)
        return TD_EVEN(i0_short, v) * root;
    vd y = TD_EVEN(i1_short, v) * root * (v * a);
    return vd_select((vl)(a == (double)INFINITY), (vd){0}, y);
}
static inline vd vd_wide_i0e(vd x) {
    return vd_wide_bessel_of(vd_abs(x), 0);
}
static inline vd vd_wide_i1e(vd x) {
    return vd_signed_as(vd_wide_bessel_of(vd_abs(x), 1), x);
}
/* Beyond 700 they are far beyond what a float holds. */
static inline vd vd_wide_bessel(vd x, int order) {
    vd a = vd_at_most(vd_abs(x), 700);
    return vd_wide_bessel_of(a, order) * vd_wide_exp(a);
}
static inline vd vd_wide_i0(vd x) {
    return vd_wide_bessel(x, 0);
}
static inline vd vd_wide_i1(vd x) {
    return vd_signed_as(vd_wide_bessel(x, 1), x);
}

/* ---- vectors of float ---- */

/* vf_`name` by way of vd_`of`. */
#define TD_VEC_IN_HALVES(name, of)                                                                 \
    static inline vf vf_##name(vf x) {                                                             \
        vd low = vd_##of(vd_of_low(x)), high = vd_##of(vd_of_high(x));                             \
        return vf_of_doubles(low, high);                                                           \
    }
TD_VEC_IN_HALVES(erfc_far, wide_erfc)
TD_VEC_NEAR_AND_FAR(erfc, TD_ERFC_NEAR_LIMIT)
#undef TD_VEC_NEAR_AND_FAR
#undef TD_VEC_NEAR_OR_APART
#undef TD_VEC_BOTH_WAYS
TD_VEC_IN_HALVES(erfinv_within, wide_erfinv)
static inline vf vf_erfinv_all(vf x) {
    vf a = vf_abs(x);
    vf end = vf_select((vi)(a == 1), x * INFINITY, (vf){0} + NAN);
    return vf_select((vi)(a < 1), vf_erfinv_within(x), end);
}
#if TD_TABLES_BY_ROWS
static __attribute__((noinline, cold)) vf vf_erfinv_apart(vf r, vf x) {
    return vf_select((vi)(vf_abs(x) < (float)TD_RESTS_LIMIT), r, vf_erfinv_all(x));
}
/* Next to 1 alone by way of a logarithm. */
static inline vd vd_wide_erfinv_near(vd x) {
    vd a = vd_abs(x);
    vl k = vd_half_octave_of_rest(a);
    vd d = a - vd_entry(TD_TABLE(erfinv_near), 0, k);
    return x * vd_rows(TD_TABLE(erfinv_near), 1, erfinv_near_rows - 2, k, d);
}
TD_VEC_IN_HALVES(erfinv_near, wide_erfinv_near)
static inline vf vf_erfinv(vf x) {
    vf r = vf_erfinv_near(x), a = vf_abs(x);
    bool far = !vf_all_within(a, 0, (float)TD_RESTS_LIMIT);
    return __builtin_expect(far, 0) ? vf_erfinv_apart(r, x) : r;
}
#else
static inline vf vf_erfinv(vf x) {
    return vf_erfinv_all(x);
}
#endif
TD_VEC_IN_HALVES(ndtri, wide_ndtri)
TD_VEC_IN_HALVES(i0, wide_i0)
TD_VEC_IN_HALVES(i1, wide_i1)
TD_VEC_IN_HALVES(i0e, wide_i0e)
TD_VEC_IN_HALVES(i1e, wide_i1e)

#endif
