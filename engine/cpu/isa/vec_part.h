/* vec_part.h: the first elements of a vector, from memory and into it.
 *
 * The rest of a vector that is loaded is zero, the rest of memory is neither read nor written. A
 * copy of so few bytes as a call to memcpy takes longer than what is done with them.
 */
#ifndef TD_CPU_ISA_VEC_PART_H
#define TD_CPU_ISA_VEC_PART_H

#include "engine/cpu/isa/vec.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

/* All bits of the first n lanes. */
#define TD_VEC_FIRST(V, F, n_type)                                                                 \
    static inline V V##_first(int64_t n) {                                                         \
        V lane = {0};                                                                              \
        for (int k = 0; k < (int)(TD_VBYTES / sizeof(lane[0])); k++)                               \
            lane[k] = k;                                                                           \
        return (V)(lane < (n_type)n);                                                              \
    }                                                                                              \
    static inline F F##_head_or(F x, int64_t n, F rest) {                                          \
        return F##_select(V##_first(n), x, rest);                                                  \
    }
TD_VEC_FIRST(vi, vf, int32_t)
TD_VEC_FIRST(vl, vd, int64_t)
#undef TD_VEC_FIRST

#define TD_VEC_PART_COPIED(V, type)                                                                \
    static inline V V##_load_part(const type *p, int64_t n) {                                      \
        V r = {0};                                                                                 \
        memcpy(&r, p, (size_t)n * sizeof(type));                                                   \
        return r;                                                                                  \
    }                                                                                              \
    static inline void V##_store_part(type *p, V x, int64_t n) {                                   \
        memcpy(p, &x, (size_t)n * sizeof(type));                                                   \
    }

#if defined(TD_ISA_avx512)
/* `lanes`: the suffix of the instructions for elements of so many bits. */
#define TD_VEC_PART(V, type, lanes, bits)                                                          \
    static inline V V##_load_part(const type *p, int64_t n) {                                      \
        return (V)_mm512_maskz_loadu_##lanes((bits)_bzhi_u64(~0ull, (unsigned)n), p);              \
    }                                                                                              \
    static inline void V##_store_part(type *p, V x, int64_t n) {                                   \
        _mm512_mask_storeu_##lanes(p, (bits)_bzhi_u64(~0ull, (unsigned)n), (__m512i)x);            \
    }
TD_VEC_PART(vf, float, epi32, __mmask16)
TD_VEC_PART(vd, double, epi64, __mmask8)
TD_VEC_PART(vi, int32_t, epi32, __mmask16)
TD_VEC_PART(vl, int64_t, epi64, __mmask8)
TD_VEC_PART(vb, uint8_t, epi8, __mmask64)
TD_VEC_PART(vc, int8_t, epi8, __mmask64)
TD_VEC_PART(vs, int16_t, epi16, __mmask32)
#undef TD_VEC_PART
#elif defined(TD_ISA_avx2)
#define TD_VEC_PART(V, type, lanes, M, MV, memory)                                                 \
    static inline V V##_load_part(const type *p, int64_t n) {                                      \
        return (V)_mm256_maskload_##lanes((const memory *)p, (__m256i)M##_first(n));               \
    }                                                                                              \
    static inline void V##_store_part(type *p, V x, int64_t n) {                                   \
        _mm256_maskstore_##lanes((memory *)p, (__m256i)M##_first(n), (MV)x);                       \
    }
TD_VEC_PART(vf, float, ps, vi, __m256, float)
TD_VEC_PART(vd, double, pd, vl, __m256d, double)
TD_VEC_PART(vi, int32_t, epi32, vi, __m256i, int)
TD_VEC_PART(vl, int64_t, epi64, vl, __m256i, long long)
#undef TD_VEC_PART
TD_VEC_PART_COPIED(vb, uint8_t)
TD_VEC_PART_COPIED(vc, int8_t)
TD_VEC_PART_COPIED(vs, int16_t)
#else
TD_VEC_PART_COPIED(vf, float)
TD_VEC_PART_COPIED(vd, double)
TD_VEC_PART_COPIED(vi, int32_t)
TD_VEC_PART_COPIED(vl, int64_t)
TD_VEC_PART_COPIED(vb, uint8_t)
TD_VEC_PART_COPIED(vc, int8_t)
TD_VEC_PART_COPIED(vs, int16_t)
#endif
#undef TD_VEC_PART_COPIED

#endif
