/* draw_vectors.h: Philox and the functions of core/draw_math.h on vectors: lane by lane the same
 * operations in the same order, so that a seed gives the same bits whatever the vector's length. */
#ifndef TD_CPU_RANDOM_DRAW_VECTORS_H
#define TD_CPU_RANDOM_DRAW_VECTORS_H

#include "engine/cpu/vectors/vec_part.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

typedef uint64_t vul __attribute__((vector_size(TD_VBYTES)));

static inline vul vul_load(const uint64_t *p) {
    vul r;
    memcpy(&r, p, sizeof r);
    return r;
}
static inline void vul_store(uint64_t *p, vul x) {
    memcpy(p, &x, sizeof x);
}

/* ---- words ---- */

/* Products of the lower halves of a's lanes, whatever is in the upper ones. */
static inline vul vul_product(vul a, uint32_t b) {
#if defined(TD_ISA_avx512)
    return (vul)_mm512_mul_epu32((__m512i)a, _mm512_set1_epi64(b));
#elif defined(TD_ISA_avx2)
    return (vul)_mm256_mul_epu32((__m256i)a, _mm256_set1_epi64x(b));
#elif defined(__SSE2__)
    return (vul)_mm_mul_epu32((__m128i)a, _mm_set1_epi64x(b));
#else
    return (a & 0xFFFFFFFF) * b;
#endif
}

/* Vectors of counters that are worked on together, so that none waits for a product. */
#if defined(TD_ISA_avx512)
enum { PHILOX_VECTORS = 4 };
#else
enum { PHILOX_VECTORS = 2 }; /* there are half as many registers */
#endif
enum { PHILOX_LANES = PHILOX_VECTORS * VL_N };

/* x[0], whose lanes are counters, becomes the four words of each in the lower halves of lanes. */
static inline void vul_philox(uint64_t seed, vul x[4][PHILOX_VECTORS]) {
    uint32_t key0 = (uint32_t)seed, key1 = (uint32_t)(seed >> 32);
    for (int v = 0; v < PHILOX_VECTORS; v++) {
        x[1][v] = x[0][v] >> 32;
        x[2][v] = x[3][v] = (vul){0};
    }
    for (int round = 0; round < 10; round++) {
        for (int v = 0; v < PHILOX_VECTORS; v++) {
            vul a = vul_product(x[0][v], 0xD2511F53u), b = vul_product(x[2][v], 0xCD9E8D57u);
            x[0][v] = (b >> 32) ^ x[1][v] ^ key0;
            x[1][v] = b;
            x[2][v] = (a >> 32) ^ x[3][v] ^ key1;
            x[3][v] = a;
        }
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
}

/* ---- numbers ---- */

/* td_draw_open of two words: the first is the upper half. */
static inline vd vd_draw_open(vul words) {
    vd shift = (vd){0} + 0x1p52;
    return (((vd)((words >> 12) | (vul)shift) - shift) + 0.5) * 0x1p-52;
}

/* td_draw_log */
static inline vd vd_draw_log(vd x) {
    const vl one = (vl)((vd){0} + 1), half = (vl){0} + 0x3FE6A09E667F3BCDll;
    const vl fraction = (vl){0} + 0xFFFFFFFFFFFFFll;
    vd shift = (vd){0} + 0x1p52;
    vl bits = (vl)x + (one - half);
    vd e = ((vd)((bits >> 52) | (vl)shift) - shift) - 1023;
    vd m = (vd)((bits & fraction) + half);
    vd s = (m - 1) / (m + 1), square = s * s, sum = (vd){0} + 1.0 / 25;
    for (int k = 11; k >= 0; k--)
        sum = sum * square + 1.0 / (2 * k + 1);
    return e * 0.69314718055994531 + 2 * s * sum;
}

/* 2^k for whole k of normal numbers. */
static inline vd vd_power_of_two(vl k) {
    return (vd)((k + 1023) << 52);
}

/* td_draw_exp: the power of two in two factors, of which the first rounds nothing. */
static inline vd vd_draw_exp(vd x) {
    const vd shift = (vd){0} + 0x1.8p52;
    vd inside = vd_select((x < 709.8) & (x >= -745.2), x, (vd){0});
    vd y = inside * 1.4426950408889634 + 0.5, k = (y + shift) - shift;
    k -= vd_select(k > y, (vd){0} + 1, (vd){0}); /* floor */
    vd r = (inside - k * 0x1.62e42fee00000p-1) - k * 0x1.a39ef35793c76p-33, sum = (vd){0} + 1;
#pragma GCC unroll 16
    for (int n = 16; n >= 1; n--)
        sum = sum * r / (double)n + 1;
    vl whole = (vl)(k + shift) - (vl)shift, most = (vl){0} + 1000;
    vl first = vl_select(whole > most, most, vl_select(whole < -most, -most, whole));
    vd result = sum * vd_power_of_two(first) * vd_power_of_two(whole - first);
    result = vd_select(x < -745.2, (vd){0}, result);
    return vd_select(x < 709.8, result, vd_select(x != x, x, (vd){0} + (double)INFINITY));
}

#endif
