/* vec_width.h: conversions between vectors of equally many lanes, wider or narrower, by the set's
 * own instructions. The compiler's take a vector to pieces and put it together again. */
#ifndef TD_CPU_VECTORS_VEC_WIDTH_H
#define TD_CPU_VECTORS_VEC_WIDTH_H

#include "engine/cpu/vectors/vec.h"

#if defined(TD_ISA_avx512) || defined(TD_ISA_avx2)
#include <immintrin.h>
#endif

typedef uint16_t td_halves __attribute__((vector_size(TD_VBYTES / 2)));
typedef uint32_t td_words __attribute__((vector_size(TD_VBYTES)));

static inline vd vd_of_floats(vf_half x) {
#if defined(TD_ISA_avx512)
    return (vd)_mm512_cvtps_pd((__m256)x);
#elif defined(TD_ISA_avx2)
    return (vd)_mm256_cvtps_pd((__m128)x);
#else
    return __builtin_convertvector(x, vd);
#endif
}
static inline vf_half vd_to_floats(vd x) {
#if defined(TD_ISA_avx512)
    return (vf_half)_mm512_cvtpd_ps((__m512d)x);
#elif defined(TD_ISA_avx2)
    return (vf_half)_mm256_cvtpd_ps((__m256d)x);
#else
    return __builtin_convertvector(x, vf_half);
#endif
}
/* The lower and the upper lanes of a vector as doubles, and both as one of floats. */
static inline vd vd_of_low(vf x) {
#if defined(TD_ISA_avx512)
    return vd_of_floats((vf_half)_mm512_castps512_ps256((__m512)x));
#elif defined(TD_ISA_avx2)
    return vd_of_floats((vf_half)_mm256_castps256_ps128((__m256)x));
#else
    vf_half half[2];
    memcpy(half, &x, sizeof x);
    return vd_of_floats(half[0]);
#endif
}
static inline vd vd_of_high(vf x) {
#if defined(TD_ISA_avx512)
    return vd_of_floats((vf_half)_mm512_extractf32x8_ps((__m512)x, 1));
#elif defined(TD_ISA_avx2)
    return vd_of_floats((vf_half)_mm256_extractf128_ps((__m256)x, 1));
#else
    vf_half half[2];
    memcpy(half, &x, sizeof x);
    return vd_of_floats(half[1]);
#endif
}
static inline vf vf_of_doubles(vd low, vd high) {
    vf_half a = vd_to_floats(low), b = vd_to_floats(high);
#if defined(TD_ISA_avx512)
    return (vf)_mm512_insertf32x8(_mm512_castps256_ps512((__m256)a), (__m256)b, 1);
#elif defined(TD_ISA_avx2)
    return (vf)_mm256_insertf128_ps(_mm256_castps128_ps256((__m128)a), (__m128)b, 1);
#else
    vf_half half[2] = {a, b};
    vf x;
    memcpy(&x, half, sizeof x);
    return x;
#endif
}
static inline td_words td_words_of(td_halves x) {
#if defined(TD_ISA_avx512)
    return (td_words)_mm512_cvtepu16_epi32((__m256i)x);
#elif defined(TD_ISA_avx2)
    return (td_words)_mm256_cvtepu16_epi32((__m128i)x);
#else
    return __builtin_convertvector(x, td_words);
#endif
}
/* Of words below 2^16. */
static inline td_halves td_halves_of(td_words x) {
#if defined(TD_ISA_avx512)
    return (td_halves)_mm512_cvtepi32_epi16((__m512i)x);
#elif defined(TD_ISA_avx2)
    __m256i packed = _mm256_packus_epi32((__m256i)x, (__m256i)x);
    return (td_halves)_mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0x88));
#else
    return __builtin_convertvector(x, td_halves);
#endif
}

#endif
