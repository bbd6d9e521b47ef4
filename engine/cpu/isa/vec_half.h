/* vec_half.h: the 16-bit floats as vectors of float: loads widen, stores round to nearest even. */
#ifndef TD_CPU_ISA_VEC_HALF_H
#define TD_CPU_ISA_VEC_HALF_H

#include "engine/core/half.h"
#include "engine/cpu/isa/vec_part.h"

#if defined(__F16C__) || defined(TD_ISA_avx512)
#include <immintrin.h>
#endif

typedef uint16_t td_halves __attribute__((vector_size(TD_VBYTES / 2)));
typedef uint32_t td_words __attribute__((vector_size(TD_VBYTES)));

static inline vf vf_of_bfloats(td_halves h) {
    return (vf)(__builtin_convertvector(h, td_words) << 16);
}
#if defined(TD_ISA_avx512)
/* Rounded in place, then every second word. */
static inline td_halves vf_to_bfloats(vf v) {
    static const uint16_t upper[32] = {1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31};
    __m512i bits = (__m512i)v;
    __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7FFF)), odd);
    __mmask16 nan = _mm512_cmp_ps_mask((__m512)v, (__m512)v, _CMP_UNORD_Q);
    rounded = _mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x400000));
    rounded = _mm512_permutexvar_epi16(_mm512_loadu_si512(upper), rounded);
    return (td_halves)_mm512_castsi512_si256(rounded);
}
#else
static inline td_halves vf_to_bfloats(vf v) {
    td_words bits = (td_words)v, nan = (td_words)(v != v), quiet = bits >> 16 | 0x40;
    td_words rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
    return __builtin_convertvector((nan & quiet) | (~nan & rounded), td_halves);
}
#endif

#if defined(TD_ISA_avx512)
static inline vf vf_of_halves(td_halves h) {
    return (vf)_mm512_cvtph_ps((__m256i)h);
}
static inline td_halves vf_to_halves(vf v) {
    return (td_halves)_mm512_cvtps_ph((__m512)v, _MM_FROUND_TO_NEAREST_INT);
}
#elif defined(TD_ISA_avx2)
static inline vf vf_of_halves(td_halves h) {
    return (vf)_mm256_cvtph_ps((__m128i)h);
}
static inline td_halves vf_to_halves(vf v) {
    return (td_halves)_mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT);
}
#else
static inline vf vf_of_halves(td_halves h) {
    td_words word = __builtin_convertvector(h, td_words);
    td_words magnitude = (word & 0x7FFF) << 13, sign = (word & 0x8000) << 16;
    td_words large = (td_words)(magnitude >= 0x0F800000); /* infinite or NaN */
    td_words moved = (td_words)((vf)magnitude * 0x1p112f);
    return (vf)(sign | (large & (magnitude | 0x7F800000)) | (~large & moved));
}
static inline td_halves vf_to_halves(vf v) {
    td_halves h;
    for (int k = 0; k < VF_N; k++)
        h[k] = td_float_to_half(v[k]).bits;
    return h;
}
#endif

/* Of two vectors' worth every second one, and those between: cheaper than one after the other. */
static inline vf vf_load_even_bfloats(const td_bfloat *p) {
    td_words pairs;
    memcpy(&pairs, p, sizeof pairs);
    return (vf)(pairs << 16);
}
static inline vf vf_load_odd_bfloats(const td_bfloat *p) {
    td_words pairs;
    memcpy(&pairs, p, sizeof pairs);
    return (vf)(pairs & 0xFFFF0000);
}

static inline float half_get(td_half h) {
#ifdef __F16C__
    return _cvtsh_ss(h.bits);
#else
    return td_half_to_float(h);
#endif
}

/* The first n elements; the rest of the vector is zero, the rest of memory untouched. */
#define TD_VEC_HALF_MEMORY(name, type)                                                             \
    static inline vf vf_load_##name(const td_##type *p) {                                          \
        td_halves h;                                                                               \
        memcpy(&h, p, sizeof h);                                                                   \
        return vf_of_##name(h);                                                                    \
    }                                                                                              \
    static inline vf vf_load_##name##_part(const td_##type *p, int64_t n) {                        \
        td_halves h = {0};                                                                         \
        memcpy(&h, p, (size_t)n * sizeof *p);                                                      \
        return vf_of_##name(h);                                                                    \
    }                                                                                              \
    static inline void vf_store_##name(td_##type *p, vf v) {                                       \
        td_halves h = vf_to_##name(v);                                                             \
        memcpy(p, &h, sizeof h);                                                                   \
    }                                                                                              \
    static inline void vf_store_##name##_part(td_##type *p, vf v, int64_t n) {                     \
        td_halves h = vf_to_##name(v);                                                             \
        memcpy(p, &h, (size_t)n * sizeof *p);                                                      \
    }
TD_VEC_HALF_MEMORY(halves, half)
TD_VEC_HALF_MEMORY(bfloats, bfloat)
#undef TD_VEC_HALF_MEMORY

#endif
