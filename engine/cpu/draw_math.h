/* draw_math.h: the functions that draws of rare shapes are made of. A seed gives the same bits on
 * every machine, so there is nothing here but + - * / and floor, which IEEE 754 rounds in one way,
 * and no library. The series are those of atanh, exp, sine and cosine near 0. */
#ifndef TD_CPU_DRAW_MATH_H
#define TD_CPU_DRAW_MATH_H

#include "engine/core/random.h"

#include <math.h>
#include <string.h>

/* (0, 1) with 52 bits: neither end is drawn. */
static inline double td_draw_open(const uint32_t *w) {
    return ((double)((((uint64_t)w[0] << 32) | w[1]) >> 12) + 0.5) * 0x1p-52;
}

/* 2 atanh(s) = log((1 + s) / (1 - s)) for |s| < 0.18. */
static inline double td_draw_two_atanh(double s) {
    double square = s * s, sum = 1.0 / 25;
    for (int k = 11; k >= 0; k--)
        sum = sum * square + 1.0 / (2 * k + 1);
    return 2 * s * sum;
}

/* The logarithm of a normal number: x = 2^e m with sqrt(1/2) <= m < sqrt(2). */
static inline double td_draw_log(double x) {
    const uint64_t half = 0x3FE6A09E667F3BCDull, one = 0x3FF0000000000000ull;
    uint64_t bits;
    double m;
    memcpy(&bits, &x, sizeof bits);
    bits += one - half;
    double e = (double)((int64_t)(bits >> 52) - 1023);
    bits = (bits & 0xFFFFFFFFFFFFFull) + half;
    memcpy(&m, &bits, sizeof m);
    return e * 0.69314718055994531 + td_draw_two_atanh((m - 1) / (m + 1));
}

/* log(1 - p) for 0 < p < 1. */
static inline double td_draw_log_rest(double p) {
    return p < 0.25 ? -td_draw_two_atanh(p / (2 - p)) : td_draw_log(1 - p);
}

static inline double td_draw_exp(double x) {
    if (!(x < 709.8))
        return x != x ? x : (double)INFINITY;
    if (x < -745.2)
        return 0;
    double k = floor(x * 1.4426950408889634 + 0.5);
    double r = (x - k * 0x1.62e42fee00000p-1) - k * 0x1.a39ef35793c76p-33, sum = 1;
    for (int n = 16; n >= 1; n--)
        sum = sum * r / n + 1;
    return ldexp(sum, (int)k);
}

/* Cosine and sine of v turns, 0 <= v < 1: to the nearest quarter exactly, the rest by series. */
static inline double td_draw_turn(double v, double *sine) {
    double nearest = floor(4 * v + 0.5), a = (4 * v - nearest) * 1.5707963267948966;
    double square = a * a, s = 1, c = 1;
    for (int k = 18; k >= 2; k -= 2) {
        s = 1 - s * square / (k * (k + 1));
        c = 1 - c * square / (k * (k - 1));
    }
    s *= a;
    switch ((int)nearest & 3) {
    case 0:
        *sine = s;
        return c;
    case 1:
        *sine = c;
        return -s;
    case 2:
        *sine = -s;
        return -c;
    default:
        *sine = -c;
        return s;
    }
}

/* The logarithm of the factorial of a whole number: by the product, or Stirling's series. */
static inline double td_draw_log_factorial(double k) {
    if (k < 16) {
        double product = 1;
        for (double f = 2; f <= k; f++)
            product *= f;
        return td_draw_log(product);
    }
    double square = k * k;
    return (k + 0.5) * td_draw_log(k) - k + 0.91893853320467274 +
           (1 - (1 - 2 / (7 * square)) / (30 * square)) / (12 * k);
}

#endif
