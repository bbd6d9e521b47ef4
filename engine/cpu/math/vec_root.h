/* vec_root.h: square roots of vectors, correctly rounded, and so the same in all sets.
 *
 * By the processor's instruction, of which SLEEF's function takes ten times as long; with AVX-512,
 * whose instruction takes 12 and 24 cycles on Intel's processors (Ice Lake and later), by steps
 * from its approximation of the reciprocal: g is the root and h half its reciprocal, and what the
 * square of g lacks of x, which a fused step has without an error, is worth as much times h. So the
 * result is off by some 2^-102 before it is rounded (2^-45 of a float): nearer to what lies between
 * two doubles are a few roots alone, which can be told, and all of them come out right
 * (tests/unit/cpu/test_cpu_roots.c, and every float). Vectors with lanes for which a step would
 * underflow, or which have no such root, go to the instruction.
 *
 * Included by vec.h, for which it is a part.
 */
#ifndef TD_CPU_MATH_VEC_ROOT_H
#define TD_CPU_MATH_VEC_ROOT_H

#include "engine/cpu/vectors/vec.h"

#if defined(TD_ISA_avx512)
static __attribute__((noinline, cold, unused)) __m512 vf_sqrt_ends(__m512 x) {
    return _mm512_sqrt_ps(x);
}
static inline vf vf_sqrt(vf v) {
    const int least = 0x21800000, most = 0x7F800000; /* 2^-60, infinity */
    __m512 x = (__m512)v, half = _mm512_set1_ps(0.5f);
    __m512i above = _mm512_sub_epi32((__m512i)v, _mm512_set1_epi32(least));
    if (__builtin_expect(_mm512_cmplt_epu32_mask(above, _mm512_set1_epi32(most - least)) != 0xFFFF,
                         0))
        return (vf)vf_sqrt_ends(x);
    __m512 y = _mm512_rsqrt14_ps(x), g = _mm512_mul_ps(x, y), h = _mm512_mul_ps(y, half);
    __m512 off = _mm512_fnmadd_ps(g, h, half);
    g = _mm512_fmadd_ps(g, off, g);
    h = _mm512_fmadd_ps(h, off, h);
    return (vf)_mm512_fmadd_ps(_mm512_fnmadd_ps(g, g, x), h, g);
}

static __attribute__((noinline, cold, unused)) __m512d vd_sqrt_ends(__m512d x) {
    return _mm512_sqrt_pd(x);
}
static inline vd vd_sqrt(vd v) {
    const int64_t least = 0x19B0000000000000, most = 0x7FF0000000000000; /* 2^-612, infinity */
    __m512d x = (__m512d)v, half = _mm512_set1_pd(0.5);
    __m512i above = _mm512_sub_epi64((__m512i)v, _mm512_set1_epi64(least));
    if (__builtin_expect(_mm512_cmplt_epu64_mask(above, _mm512_set1_epi64(most - least)) != 0xFF,
                         0))
        return (vd)vd_sqrt_ends(x);
    __m512d y = _mm512_rsqrt14_pd(x), g = _mm512_mul_pd(x, y), h = _mm512_mul_pd(y, half);
    for (int k = 0; k < 2; k++) {
        __m512d off = _mm512_fnmadd_pd(g, h, half);
        g = _mm512_fmadd_pd(g, off, g);
        h = _mm512_fmadd_pd(h, off, h);
    }
    return (vd)_mm512_fmadd_pd(_mm512_fnmadd_pd(g, g, x), h, g);
}
#else
static inline vf vf_sqrt(vf x) {
    return (vf)TD_SQRT_F((td_native_f)x);
}
static inline vd vd_sqrt(vd x) {
    return (vd)TD_SQRT_D((td_native_d)x);
}
#endif

#endif
