/* vec_gamma.h: the regularised incomplete gamma functions, in vectors of double.
 *
 * Series and fractions go on until every lane has had enough; one that has takes no more, so that
 * it does not depend on its neighbours. `tolerance` is what a last term may be of the sum.
 */
#ifndef TD_CPU_MATH_VEC_GAMMA_H
#define TD_CPU_MATH_VEC_GAMMA_H

#include "engine/cpu/math/vec_special.h"

enum { TD_GAMMA_TERMS = 100000 };

/* The logarithm of x^a / gamma(a + 1), with all digits where a is small. */
static inline vd vd_gamma_power(vd a, vd x) {
    static const double taylor[] = {-0.5772156649015329, 0.8224670334241132, -0.40068563438653143,
                                    0.27058080842778454, -0.20738555102867398};
    vd near = {0};
    for (int k = 4; k >= 0; k--)
        near = (near + taylor[k]) * a;
    return a * vd_log(x) - vd_select((vl)(a < 0.001), near, vd_lgamma(1 + a));
}

/* x^a exp(-x) / gamma(a + 1); of large a by Stirling's series, where powers would cancel. `power`
 * is that of the others. */
static inline vd vd_gamma_weight(vd a, vd x, vd power) {
    vl large = (vl)(a >= 20);
    if (!vd_any(large))
        return vd_exp(power - x);
    vd far = vd_select(large, a, (vd){0} + 20);
    vd off = (x - far) / far, square = 1 / (far * far);
    vd part = vd_select((vl)(vd_abs(off) < 0.5), vd_log1p(off), vd_log(x / far));
    vd rest = (1 / 12.0 - square * (1 / 360.0 - square * (1 / 1260.0 - square / 1680.0))) / far;
    vd y = vd_exp(vd_select(large, far * (part - off) - rest, power - x));
    return vd_select(large, y * 0.3989422804014327 / vd_sqrt(far), y);
}

/* The lower one over its weight, by its power series (Abramowitz and Stegun, 6.5.29). */
static inline vd vd_gamma_series(vd a, vd x, vl lanes, double tolerance) {
    vd term = (vd){0} + 1, sum = term;
    for (int k = 1; k < TD_GAMMA_TERMS && vd_any(lanes); k++) {
        term *= x / (a + k);
        sum += vd_select(lanes, term, (vd){0});
        lanes &= (vl)(term > sum * tolerance);
    }
    return sum;
}

/* The upper one over its weight and a, by its continued fraction (6.5.31), whose numerators and
 * denominators are multiplied out, all of it divided by the first. Every fourth time the
 * denominator becomes 1 again, and it is seen what has changed. */
static inline vd vd_gamma_fraction(vd a, vd x, vl lanes, double tolerance) {
    vd one = (vd){0} + 1, inverse = 1 / (x + 1 - a), square = inverse * inverse, sum = inverse;
    vd top_before = {0}, top = inverse, low_before = one, low = one;
    for (int k = 1; k < TD_GAMMA_TERMS && vd_any(lanes); k++) {
        vd n = (double)k * (a - k) * square, b = one + 2.0 * k * inverse;
        vd next_top = vd_fma(b, top, n * top_before), next_low = vd_fma(b, low, n * low_before);
        top_before = top, top = next_top;
        low_before = low, low = next_low;
        if (k % 4)
            continue;
        vd scale = 1 / low;
        top *= scale, top_before *= scale, low_before *= scale;
        low = one;
        vl more = (vl)(vd_abs(top - sum) > top * tolerance);
        sum = vd_select(lanes, top, sum);
        lanes &= more;
    }
    return sum;
}

/* The upper one of a < 1/2 and x <= 1.1 is small as well: 1 - x^a / gamma(a + 1) and the rest of
 * the series. */
static inline vd vd_gamma_of_small(vd a, vd x, vd power, int terms) {
    vd sum = {0}, term = (vd){0} + 1;
    for (int k = 1; k < terms; k++) {
        term *= x * (-1.0 / k);
        sum += term / (a + k);
    }
    return -vd_expm1(power) - vd_exp(power) * a * sum;
}

/* Of large a the upper one where x >= a, else the lower, by Temme's expansion (SIAM J. Math. Anal.
 * 10, 1979): half erfc(sqrt(y)) and a correction in powers of eta and 1 / a, where y = a eta^2 / 2
 * and eta^2 / 2 = m - log(1 + m) with m = x / a - 1. Series and fraction would take some sqrt(a)
 * terms. */
enum { TD_GAMMA_LARGE = 1000000 };

static inline vd vd_powers(const double *c, int n, vd x) {
    vd sum = (vd){0} + c[n - 1];
    for (int k = n - 2; k >= 0; k--)
        sum = sum * x + c[k];
    return sum;
}

static __attribute__((noinline)) vd vd_gamma_of_large(vd a, vd x) {
    static const double zeroth[] = {-0.33333333333333333,     0.083333333333333333,
                                    -0.014814814814814815,    0.0011574074074074074,
                                    0.0003527336860670194,    -0.00017875514403292181,
                                    0.39192631785224378e-4,   -0.21854485106799922e-5,
                                    -0.185406221071515996e-5, 0.829671134095308601e-6};
    static const double first[] = {-0.0018518518518518519, -0.0034722222222222222,
                                   0.0026455026455026455, -0.00099022633744855967,
                                   0.00020576131687242798};
    static const double second[] = {0.0041335978835978836, -0.0026813271604938272};
    const double most = 0.05; /* where nothing is left of the smaller function */
    vd m = (x - a) / a, sum = (vd){0} + 1.0 / 14;
    m = vd_select((vl)(m > most), (vd){0} + most, vd_select((vl)(m < -most), (vd){0} - most, m));
    for (int k = 13; k >= 2; k--)
        sum = 1.0 / k - m * sum;
    vd half = m * m * sum, y = a * half, inverse = 1 / a;
    vd eta = vd_copysign(vd_sqrt(2 * half), m);
    vd more = vd_powers(zeroth, 10, eta) +
              inverse * (vd_powers(first, 5, eta) + inverse * vd_powers(second, 2, eta));
    more *= vd_exp(-y) * 0.3989422804014327 * vd_sqrt(inverse);
    return 0.5 * vd_erfc(vd_sqrt(y)) + vd_select((vl)(m < 0), -more, more);
}

static __attribute__((noinline)) vd vd_incomplete_gamma(vd a, vd x, bool upper, double tolerance) {
    vl valid = (vl)(a >= 0) & (vl)(x >= 0) & (vl)(a + x > 0);
    vl most = (vl)(a == 0) | (vl)(x == (double)INFINITY);
    vl least = (vl)(x == 0) | (vl)(a == (double)INFINITY), ends = ~valid | most | least;
    vd one = (vd){0} + 1, order = vd_select(ends, one, a), at = vd_select(ends, one, x);
    vl small = (upper ? (vl)(at <= 1.1) & (vl)(order < 0.5) : (vl){0});
    vl huge = (vl)(order >= TD_GAMMA_LARGE), below = (vl)(at < order + 1) & ~small;
    vl series = below & ~huge, fraction = ~below & ~small & ~huge;
    vl large = (vl)(order >= 20);
    vd power = vd_gamma_power(vd_select(large, one, order), at);
    vd y = vd_gamma_weight(order, at, power), r = {0};
    if (vd_any(series)) {
        vd lower = y * vd_gamma_series(order, at, series, tolerance);
        r = vd_select(series, upper ? 1 - lower : lower, r);
    }
    if (vd_any(fraction)) {
        vd above = y * order * vd_gamma_fraction(order, at, fraction, tolerance);
        r = vd_select(fraction, upper ? above : 1 - above, r);
    }
    if (vd_any(huge)) {
        vd less = vd_gamma_of_large(vd_select(huge, order, one), vd_select(huge, at, one));
        vl same = upper ? (vl)(at >= order) : (vl)(at < order);
        r = vd_select(huge, vd_select(same, less, 1 - less), r);
    }
    if (vd_any(small))
        r = vd_select(small, vd_gamma_of_small(order, at, power, tolerance > 0x1p-45 ? 18 : 60), r);
    r = vd_select(most, (vd){0} + (double)!upper, vd_select(least, (vd){0} + (double)upper, r));
    return vd_select(valid & ~(most & least), r, (vd){0} + (double)NAN);
}

static inline vf vf_incomplete_gamma(vf a, vf x, bool upper) {
    vd y[2];
    for (int k = 0; k < 2; k++)
        y[k] = vd_incomplete_gamma(k ? vd_of_high(a) : vd_of_low(a),
                                   k ? vd_of_high(x) : vd_of_low(x), upper, 0x1p-37);
    return vf_of_doubles(y[0], y[1]);
}
static inline vf vf_igamma(vf a, vf x) {
    return vf_incomplete_gamma(a, x, false);
}
static inline vf vf_igammac(vf a, vf x) {
    return vf_incomplete_gamma(a, x, true);
}
static inline vd vd_igamma(vd a, vd x) {
    return vd_incomplete_gamma(a, x, false, 0x1p-54);
}
static inline vd vd_igammac(vd a, vd x) {
    return vd_incomplete_gamma(a, x, true, 0x1p-54);
}

#endif
