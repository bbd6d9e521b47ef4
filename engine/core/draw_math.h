/* draw_math.h: the generator's random words, what draws make of them, and the logarithm,
 * exponential, sine and cosine that they need. A seed gives the same bits on every machine and
 * device, so there is nothing here but + - * /, floor and square roots, which IEEE 754 rounds in
 * one way: no library. The series are those of atanh, exp, sine and cosine near 0. */
#ifndef TD_CORE_DRAW_MATH_H
#define TD_CORE_DRAW_MATH_H

#include "engine/core/random.h"

#include <math.h>
#include <string.h>

#ifdef __CUDACC__
#define TD_DRAW_MATH __host__ __device__ static inline
#else
#define TD_DRAW_MATH static inline
#endif

/* Four words of a counter (td_philox). */
TD_DRAW_MATH void td_philox_words(uint64_t seed, uint64_t counter, uint32_t *x) {
    uint32_t key0 = (uint32_t)seed, key1 = (uint32_t)(seed >> 32);
    x[0] = (uint32_t)counter;
    x[1] = (uint32_t)(counter >> 32);
    x[2] = x[3] = 0;
    for (int round = 0; round < 10; round++) {
        uint64_t a = 0xD2511F53ull * x[0], b = 0xCD9E8D57ull * x[2];
        uint32_t x1 = x[1], x3 = x[3];
        x[0] = (uint32_t)(b >> 32) ^ x1 ^ key0;
        x[1] = (uint32_t)b;
        x[2] = (uint32_t)(a >> 32) ^ x3 ^ key1;
        x[3] = (uint32_t)a;
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
}

/* (0, 1) with 52 bits: neither end is drawn. */
TD_DRAW_MATH double td_draw_open(const uint32_t *w) {
    return ((double)((((uint64_t)w[0] << 32) | w[1]) >> 12) + 0.5) * 0x1p-52;
}

/* 2 atanh(s) = log((1 + s) / (1 - s)) for |s| < 0.18. */
TD_DRAW_MATH double td_draw_two_atanh(double s) {
    double square = s * s, sum = 1.0 / 25;
    for (int k = 11; k >= 0; k--)
        sum = sum * square + 1.0 / (2 * k + 1);
    return 2 * s * sum;
}

/* The logarithm of a normal number: x = 2^e m with sqrt(1/2) <= m < sqrt(2). */
TD_DRAW_MATH double td_draw_log(double x) {
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
TD_DRAW_MATH double td_draw_log_rest(double p) {
    return p < 0.25 ? -td_draw_two_atanh(p / (2 - p)) : td_draw_log(1 - p);
}

TD_DRAW_MATH double td_draw_exp(double x) {
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
TD_DRAW_MATH double td_draw_turn(double v, double *sine) {
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
TD_DRAW_MATH double td_draw_log_factorial(double k) {
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

/* Two numbers of (0, 1) from the next counter. */
TD_DRAW_MATH void td_draw_two(uint64_t seed, uint64_t *counter, double *two) {
    uint32_t words[4];
    td_philox_words(seed, (*counter)++, words);
    two[0] = td_draw_open(words);
    two[1] = td_draw_open(words + 2);
}

/* So many waiting times of mean 1 fit into `mean`. */
TD_DRAW_MATH double td_draw_waits(double mean, uint64_t seed, uint64_t counter, int blocks) {
    double time = 0, two[2];
    for (int k = 0; k < 2 * blocks; k++) {
        if (k % 2 == 0)
            td_draw_two(seed, &counter, two);
        time -= td_draw_log(two[k % 2]);
        if (time >= mean)
            return k;
    }
    return 2 * blocks;
}

/* A try of transformed rejection with squeeze (Hörmann 1993, PTRS), for means from 10 on, by two
 * numbers of (0, 1). Was *number found? It is written either way. */
TD_DRAW_MATH bool td_draw_try(double mean, const double *two, double *number) {
    double b = 0.931 + 2.53 * sqrt(mean), a = -0.059 + 0.02483 * b;
    double u = two[0] - 0.5, v = two[1], edge = 0.5 - fabs(u);
    double k = floor((2 * a / edge + b) * u + mean + 0.43);
    *number = k;
    if (edge >= 0.07 && v <= 0.9277 - 3.6224 / (b - 2))
        return true;
    if (k < 0 || (edge < 0.013 && v > edge))
        return false;
    double inverse = 1.1239 + 1.1328 / (b - 3.4);
    return td_draw_log(v * inverse / (a / (edge * edge) + b)) <=
           k * td_draw_log(mean) - mean - td_draw_log_factorial(k);
}

/* One try in five fails, so that all failing is beyond chance. */
TD_DRAW_MATH double td_draw_rejecting(double mean, uint64_t seed, uint64_t counter, int blocks) {
    double two[2], number;
    for (int attempt = 0; attempt < blocks; attempt++) {
        td_draw_two(seed, &counter, two);
        if (td_draw_try(mean, two, &number))
            return number;
    }
    return floor(mean);
}

/* A Poisson number from `blocks` counters; a mean that is no number, or infinite, itself. */
TD_DRAW_MATH double td_draw_poisson(double mean, uint64_t seed, uint64_t counter, int blocks) {
    if (!(mean < (double)INFINITY))
        return mean;
    return mean >= 10 ? td_draw_rejecting(mean, seed, counter, blocks)
                      : td_draw_waits(mean, seed, counter, blocks);
}

#endif
