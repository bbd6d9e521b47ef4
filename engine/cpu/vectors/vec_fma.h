/* vec_fma.h: a * b + c of vectors, rounded once where the set can, and exact products. */
#ifndef TD_CPU_VECTORS_VEC_FMA_H
#define TD_CPU_VECTORS_VEC_FMA_H

#include "engine/cpu/vectors/vec_part.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

/* TD_FUSED: the set has such products. */
#if defined(TD_ISA_avx512) || defined(TD_ISA_avx2)
#define TD_FUSED 1
#else
#define TD_FUSED 0
#endif

/* a * b + c and c - a * b, rounded once where the set can; and the exact product a * b: its value
 * and, in *low, what rounding took from it. */
#if TD_FUSED
#define TD_VEC_FMA(V, type, fmadd, fmsub, fnmadd)                                                  \
    static inline V V##_fma(V a, V b, V c) {                                                       \
        return (V)fmadd((type)a, (type)b, (type)c);                                                \
    }                                                                                              \
    static inline V V##_less(V a, V b, V c) {                                                      \
        return (V)fnmadd((type)a, (type)b, (type)c);                                               \
    }                                                                                              \
    static inline V V##_product(V a, V b, V *low) {                                                \
        V high = a * b;                                                                            \
        *low = (V)fmsub((type)a, (type)b, (type)high);                                             \
        return high;                                                                               \
    }
#if defined(TD_ISA_avx512)
TD_VEC_FMA(vf, __m512, _mm512_fmadd_ps, _mm512_fmsub_ps, _mm512_fnmadd_ps)
TD_VEC_FMA(vd, __m512d, _mm512_fmadd_pd, _mm512_fmsub_pd, _mm512_fnmadd_pd)
#else
TD_VEC_FMA(vf, __m256, _mm256_fmadd_ps, _mm256_fmsub_ps, _mm256_fnmadd_ps)
TD_VEC_FMA(vd, __m256d, _mm256_fmadd_pd, _mm256_fmsub_pd, _mm256_fnmadd_pd)
#endif
#undef TD_VEC_FMA
#else
static inline vf vf_fma(vf a, vf b, vf c) {
    return a * b + c;
}
static inline vd vd_fma(vd a, vd b, vd c) {
    return a * b + c;
}
static inline vf vf_less(vf a, vf b, vf c) {
    return c - a * b;
}
static inline vd vd_less(vd a, vd b, vd c) {
    return c - a * b;
}
/* Dekker's way (1971): factors of half the digits, by Veltkamp's splitting. */
#define TD_VEC_PRODUCT(V, T, splitter)                                                             \
    static inline V V##_product(V a, V b, V *low) {                                                \
        V high = a * b, s = a * (T)(splitter), t = b * (T)(splitter);                              \
        V a1 = s - (s - a), a2 = a - a1, b1 = t - (t - b), b2 = b - b1;                            \
        *low = ((a1 * b1 - high) + a1 * b2 + a2 * b1) + a2 * b2;                                   \
        return high;                                                                               \
    }
TD_VEC_PRODUCT(vf, float, 0x1001)
TD_VEC_PRODUCT(vd, double, 0x8000001)
#undef TD_VEC_PRODUCT
#endif

#endif
