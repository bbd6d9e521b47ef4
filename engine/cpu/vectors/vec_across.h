/* vec_across.h: reductions over the lanes of one vector: whether any is set, sums, the largest and
 * the smallest.
 *
 * In sums each half goes with the other one, then each quarter, and so on, in every instruction
 * set.
 */
#ifndef TD_CPU_VECTORS_VEC_ACROSS_H
#define TD_CPU_VECTORS_VEC_ACROSS_H

#include "engine/cpu/vectors/vec_extremes.h"
#include "engine/cpu/vectors/vec_width.h"

#include <stdbool.h>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

static inline bool vf_any(vi mask) {
#if defined(TD_ISA_avx512)
    return _mm512_movepi32_mask((__m512i)mask) != 0;
#elif defined(TD_ISA_avx2)
    return _mm256_movemask_ps((__m256)mask) != 0;
#elif defined(__SSE2__)
    return _mm_movemask_ps((__m128)mask) != 0;
#else
    int32_t any = 0;
    for (int k = 0; k < VI_N; k++)
        any |= mask[k];
    return any != 0;
#endif
}
static inline bool vd_any(vl mask) {
    return vf_any((vi)mask);
}

/* Has any lane reached the limit, is none outside of [least, below)? NaN has not, but is outside.
 */
static inline bool vf_any_from(vf x, float limit) {
#if defined(TD_ISA_avx512)
    return _mm512_cmp_ps_mask((__m512)x, _mm512_set1_ps(limit), _CMP_GE_OQ) != 0;
#else
    return vf_any((vi)(x >= limit));
#endif
}
static inline bool vf_all_within(vf x, float least, float below) {
#if defined(TD_ISA_avx512)
    __mmask16 in = _mm512_cmp_ps_mask((__m512)x, _mm512_set1_ps(least), _CMP_GE_OQ);
    return _mm512_mask_cmp_ps_mask(in, (__m512)x, _mm512_set1_ps(below), _CMP_LT_OQ) == 0xFFFF;
#else
    return !vf_any(~((vi)(x >= least) & (vi)(x < below)));
#endif
}
static inline bool vd_all_within(vd x, double least, double below) {
#if defined(TD_ISA_avx512)
    __mmask8 in = _mm512_cmp_pd_mask((__m512d)x, _mm512_set1_pd(least), _CMP_GE_OQ);
    return _mm512_mask_cmp_pd_mask(in, (__m512d)x, _mm512_set1_pd(below), _CMP_LT_OQ) == 0xFF;
#else
    return !vf_any(~((vi)(x >= least) & (vi)(x < below)));
#endif
}
/* NaN is not below. */
static inline bool vd_all_below(vd x, double limit) {
#if defined(TD_ISA_avx512)
    return _mm512_cmp_pd_mask((__m512d)x, _mm512_set1_pd(limit), _CMP_LT_OQ) == 0xFF;
#else
    return !vd_any(~(vl)(x < limit));
#endif
}

/* Lanes k and k ^ w change places, for a w that is a power of two and known to the compiler. */
#if defined(TD_ISA_avx512)
#define TD_VEC_SWAP_F(x, w)                                                                        \
    ((w) == 8   ? _mm512_shuffle_f32x4(x, x, 0x4E)                                                 \
     : (w) == 4 ? _mm512_shuffle_f32x4(x, x, 0xB1)                                                 \
     : (w) == 2 ? _mm512_permute_ps(x, 0x4E)                                                       \
                : _mm512_permute_ps(x, 0xB1))
#define TD_VEC_SWAP_D(x, w)                                                                        \
    ((w) == 4   ? _mm512_shuffle_f64x2(x, x, 0x4E)                                                 \
     : (w) == 2 ? _mm512_shuffle_f64x2(x, x, 0xB1)                                                 \
                : _mm512_permute_pd(x, 0x55))
#elif defined(TD_ISA_avx2)
#define TD_VEC_SWAP_F(x, w)                                                                        \
    ((w) == 4   ? _mm256_permute2f128_ps(x, x, 1)                                                  \
     : (w) == 2 ? _mm256_permute_ps(x, 0x4E)                                                       \
                : _mm256_permute_ps(x, 0xB1))
#define TD_VEC_SWAP_D(x, w) ((w) == 2 ? _mm256_permute2f128_pd(x, x, 1) : _mm256_permute_pd(x, 0x5))
#elif defined(__SSE2__)
#define TD_VEC_SWAP_F(x, w) ((w) == 2 ? _mm_shuffle_ps(x, x, 0x4E) : _mm_shuffle_ps(x, x, 0xB1))
#define TD_VEC_SWAP_D(x, w) ((void)(w), _mm_shuffle_pd(x, x, 1))
#endif

#if defined(TD_VEC_SWAP_F)
#define TD_VEC_SWAP(V, native, swap)                                                               \
    static inline __attribute__((always_inline)) V V##_swap(V v, int w) {                          \
        native x = (native)v;                                                                      \
        return (V)swap(x, w);                                                                      \
    }
TD_VEC_SWAP(vf, td_native_f, TD_VEC_SWAP_F)
TD_VEC_SWAP(vd, td_native_d, TD_VEC_SWAP_D)
#undef TD_VEC_SWAP_F
#undef TD_VEC_SWAP_D
#else
#define TD_VEC_SWAP(V, lanes)                                                                      \
    static inline V V##_swap(V v, int w) {                                                         \
        V r = v;                                                                                   \
        for (int k = 0; k < lanes; k++)                                                            \
            r[k] = v[k ^ w];                                                                       \
        return r;                                                                                  \
    }
TD_VEC_SWAP(vf, VF_N)
TD_VEC_SWAP(vd, VD_N)
#endif
#undef TD_VEC_SWAP

#define TD_VEC_FOLD(x, V, lanes, both)                                                             \
    if ((lanes) > 8)                                                                               \
        x = both(x, V##_swap(x, 8));                                                               \
    if ((lanes) > 4)                                                                               \
        x = both(x, V##_swap(x, 4));                                                               \
    if ((lanes) > 2)                                                                               \
        x = both(x, V##_swap(x, 2));                                                               \
    x = both(x, V##_swap(x, 1));
#define TD_VEC_PLUS(a, b) ((a) + (b))
#define TD_VEC_ACROSS(V, T, lanes)                                                                 \
    static inline T V##_hsum(V x) {                                                                \
        TD_VEC_FOLD(x, V, lanes, TD_VEC_PLUS)                                                      \
        return x[0];                                                                               \
    }                                                                                              \
    static inline T V##_hmax(V x) { /* where there is a NaN, any of the lanes */                   \
        TD_VEC_FOLD(x, V, lanes, V##_greater)                                                      \
        return x[0];                                                                               \
    }                                                                                              \
    static inline T V##_hmin(V x) {                                                                \
        TD_VEC_FOLD(x, V, lanes, V##_lesser)                                                       \
        return x[0];                                                                               \
    }
TD_VEC_ACROSS(vf, float, VF_N)
TD_VEC_ACROSS(vd, double, VD_N)
#undef TD_VEC_ACROSS
#undef TD_VEC_PLUS
#undef TD_VEC_FOLD

/* Sums in double. */
static inline double vd_total(vd x) {
    return vd_hsum(x);
}
static inline double vf_total(vf x) {
    return vd_hsum(vd_of_low(x) + vd_of_high(x));
}

#endif
