/* vec_half.h: the 16-bit floats as vectors of float: loads widen, stores round to nearest even. */
#ifndef TD_CPU_VECTORS_VEC_HALF_H
#define TD_CPU_VECTORS_VEC_HALF_H

#include "engine/core/half.h"
#include "engine/cpu/vectors/vec_part.h"
#include "engine/cpu/vectors/vec_width.h"

#include <stdbool.h>

#if defined(__F16C__) || defined(TD_ISA_avx512)
#include <immintrin.h>
#endif

static inline vf vf_of_bfloats(td_halves h) {
    return (vf)(td_words_of(h) << 16);
}
/* Words whose upper halves are what numbers round to; NaN is none. */
static inline td_words td_numbers_to_bfloats(td_words bits) {
    return bits + 0x7FFF + (bits >> 16 & 1);
}
/* Words whose upper halves are what v rounds to. */
#if defined(TD_ISA_avx512)
static inline td_words vf_rounded_to_bfloats(vf v) {
    __m512i bits = (__m512i)v, rounded = _mm512_add_epi32(bits, _mm512_set1_epi32(0x7FFF));
    __mmask16 odd = _mm512_test_epi32_mask(bits, _mm512_set1_epi32(0x10000));
    __mmask16 nan = _mm512_cmp_ps_mask((__m512)v, (__m512)v, _CMP_UNORD_Q);
    rounded = _mm512_mask_add_epi32(rounded, odd, rounded, _mm512_set1_epi32(1));
    return (td_words)_mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x400000));
}
static inline td_halves vf_to_bfloats(vf v) {
    static const uint16_t upper[32] = {1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31};
    __m512i rounded = (__m512i)vf_rounded_to_bfloats(v);
    rounded = _mm512_permutexvar_epi16(_mm512_loadu_si512(upper), rounded);
    return (td_halves)_mm512_castsi512_si256(rounded);
}
#else
static inline td_words vf_rounded_to_bfloats(vf v) {
    td_words bits = (td_words)v;
    return (td_words)vi_select((vi)(v != v), (vi)(bits | 0x400000),
                               (vi)td_numbers_to_bfloats(bits));
}
static inline td_halves vf_to_bfloats(vf v) {
    return td_halves_of(vf_rounded_to_bfloats(v) >> 16);
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
    td_words word = td_words_of(h);
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

static inline float half_get(td_half h) {
#ifdef __F16C__
    return _cvtsh_ss(h.bits);
#else
    return td_half_to_float(h);
#endif
}

/* The first n words; the rest of the vector is zero, the rest of memory untouched. */
#if defined(TD_ISA_avx512)
static inline td_halves td_halves_load_part(const void *p, int64_t n) {
    return (td_halves)_mm256_maskz_loadu_epi16((__mmask16)_bzhi_u32(~0u, (unsigned)n), p);
}
TD_IN_PLACE void td_halves_store_part(void *p, td_halves h, int64_t n) {
    _mm256_mask_storeu_epi16(p, (__mmask16)_bzhi_u32(~0u, (unsigned)n), (__m256i)h);
}
#elif defined(TD_ISA_avx2)
static inline td_halves td_halves_load_part(const void *p, int64_t n) {
    return (td_halves)td_load_head(p, n * 2);
}
TD_IN_PLACE void td_halves_store_part(void *p, td_halves h, int64_t n) {
    td_store_head(p, (__m128i)h, n * 2);
}
#else
static inline td_halves td_halves_load_part(const void *p, int64_t n) {
    td_halves h = {0};
    memcpy(&h, p, (size_t)n * 2);
    return h;
}
TD_IN_PLACE void td_halves_store_part(void *p, td_halves h, int64_t n) {
    memcpy(p, &h, (size_t)n * 2);
}
#endif

/* The same of a part of a vector. */
#define TD_VEC_HALF_MEMORY(name, type)                                                             \
    static inline vf vf_load_##name(const td_##type *p) {                                          \
        td_halves h;                                                                               \
        memcpy(&h, p, sizeof h);                                                                   \
        return vf_of_##name(h);                                                                    \
    }                                                                                              \
    static inline vf vf_load_##name##_part(const td_##type *p, int64_t n) {                        \
        return vf_of_##name(td_halves_load_part(p, n));                                            \
    }                                                                                              \
    static inline void vf_store_##name(td_##type *p, vf v) {                                       \
        td_halves h = vf_to_##name(v);                                                             \
        memcpy(p, &h, sizeof h);                                                                   \
    }                                                                                              \
    TD_IN_PLACE void vf_store_##name##_part(td_##type *p, vf v, int64_t n) {                       \
        td_halves_store_part(p, vf_to_##name(v), n);                                               \
    }
TD_VEC_HALF_MEMORY(halves, half)
TD_VEC_HALF_MEMORY(bfloats, bfloat)
#undef TD_VEC_HALF_MEMORY

/* Two vectors' worth of elements as one vector and the other. bfloat16 in pairs: every second one
 * and those between, which is cheaper than the first ones and the rest. */
static inline vf vf_load_one_bfloats(const td_bfloat *p) {
    td_words pairs;
    memcpy(&pairs, p, sizeof pairs);
    return (vf)(pairs << 16);
}
static inline vf vf_load_other_bfloats(const td_bfloat *p) {
    td_words pairs;
    memcpy(&pairs, p, sizeof pairs);
    return (vf)(pairs & 0xFFFF0000);
}
#if defined(TD_ISA_avx2) /* a look at two vectors for NaN, which is rare, is cheaper than at each  \
                          */
static inline bool vf_either_is_nan(vf one, vf other) {
    return _mm256_movemask_ps(_mm256_cmp_ps((__m256)one, (__m256)other, _CMP_UNORD_Q));
}
#else
static inline bool vf_either_is_nan(vf one, vf other) {
    (void)one, (void)other;
    return true; /* that is asked of each when it is rounded */
}
#endif
static inline void vf_store_both_bfloats(td_bfloat *p, vf one, vf other) {
    const bool nan = vf_either_is_nan(one, other);
    td_words low = nan ? vf_rounded_to_bfloats(one) : td_numbers_to_bfloats((td_words)one);
    td_words high = nan ? vf_rounded_to_bfloats(other) : td_numbers_to_bfloats((td_words)other);
    low >>= 16;
    low |= high & 0xFFFF0000;
    memcpy(p, &low, sizeof low);
}
static inline vf vf_load_one_halves(const td_half *p) {
    return vf_load_halves(p);
}
static inline vf vf_load_other_halves(const td_half *p) {
    return vf_load_halves(p + VF_N);
}
static inline void vf_store_both_halves(td_half *p, vf one, vf other) {
    vf_store_halves(p, one);
    vf_store_halves(p + VF_N, other);
}

/* 1 / sqrt(x) of a 16-bit float, right to twice the digits that these have. */
static inline vf vf_rsqrt_for_halves(vf x) {
#if defined(TD_ISA_avx512)
    enum { ZEROS_AND_INFINITIES = 0x1E };
    __m512 first = _mm512_rsqrt14_ps((__m512)x), one = _mm512_set1_ps(1);
    __mmask16 known = _mm512_fpclass_ps_mask((__m512)x, ZEROS_AND_INFINITIES);
    __m512 off = _mm512_fnmadd_ps(_mm512_mul_ps((__m512)x, first), first, one);
    __m512 r = _mm512_fmadd_ps(_mm512_mul_ps(first, _mm512_set1_ps(0.5f)), off, first);
    return (vf)_mm512_mask_mov_ps(r, known, first);
#else
    return 1 / vf_sqrt(x);
#endif
}

#endif
