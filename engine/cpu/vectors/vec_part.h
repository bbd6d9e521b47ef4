/* vec_part.h: the first elements of a vector, from memory and into it.
 *
 * The rest of a vector that is loaded is zero, the rest of memory is neither read nor written. A
 * copy of so few bytes as a call to memcpy takes longer than what is done with them.
 */
#ifndef TD_CPU_VECTORS_VEC_PART_H
#define TD_CPU_VECTORS_VEC_PART_H

#include "engine/cpu/vectors/vec.h"

#include <stdint.h>

/* A function of its own that is given a vector would leave the upper halves of registers in use
 * when it is the last that is called, and what isn't compiled for AVX waits for them. */
#define TD_IN_PLACE static inline __attribute__((always_inline))

#if defined(__SSE2__)
#include <immintrin.h>

/* The first `bytes` of a vector of 16, in moves of 8, 4, 2 and 1. (AVX2 can store under a mask, for
 * which AMD's processors take 12 cycles or more.) */
TD_IN_PLACE void td_store_head(void *p, __m128i x, int64_t bytes) {
    char *to = p;
    if (bytes & 16) {
        _mm_storeu_si128((__m128i *)p, x);
        return;
    }
    if (bytes & 8) {
        _mm_storel_epi64((__m128i *)p, x);
        to += 8;
        x = _mm_unpackhi_epi64(x, x);
    }
    uint64_t rest = (uint64_t)_mm_cvtsi128_si64(x);
    if (bytes & 4) {
        memcpy(to, &rest, 4);
        to += 4;
        rest >>= 32;
    }
    if (bytes & 2) {
        memcpy(to, &rest, 2);
        to += 2;
        rest >>= 16;
    }
    if (bytes & 1)
        memcpy(to, &rest, 1);
}
TD_IN_PLACE __m128i td_load_head(const void *p, int64_t bytes) {
    const char *from = p;
    uint64_t rest = 0, eight;
    uint32_t four;
    uint16_t two;
    if (bytes & 16)
        return _mm_loadu_si128((const __m128i *)p);
    if (bytes & 1)
        rest = (unsigned char)from[bytes & 14];
    if (bytes & 2) {
        memcpy(&two, from + (bytes & 12), 2);
        rest = rest << 16 | two;
    }
    if (bytes & 4) {
        memcpy(&four, from + (bytes & 8), 4);
        rest = rest << 32 | four;
    }
    if (!(bytes & 8))
        return _mm_cvtsi64_si128((int64_t)rest);
    memcpy(&eight, from, 8);
    return _mm_set_epi64x((int64_t)rest, (int64_t)eight);
}
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

#if defined(TD_ISA_avx512)
/* `lanes`: the suffix of the instructions for elements of so many bits. */
#define TD_VEC_PART(V, type, lanes, bits)                                                          \
    TD_IN_PLACE V V##_load_part(const type *p, int64_t n) {                                        \
        return (V)_mm512_maskz_loadu_##lanes((bits)_bzhi_u64(~0ull, (unsigned)n), p);              \
    }                                                                                              \
    TD_IN_PLACE void V##_store_part(type *p, V x, int64_t n) {                                     \
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
#else
#if defined(TD_ISA_avx2)
typedef __m256i td_part;
TD_IN_PLACE void td_store_part(void *p, td_part x, int64_t bytes) {
    __m128i half = _mm256_castsi256_si128(x);
    if (bytes & 32) {
        _mm256_storeu_si256((td_part *)p, x);
        return;
    }
    if (bytes & 16) {
        _mm_storeu_si128((__m128i *)p, half);
        half = _mm256_extracti128_si256(x, 1);
    }
    td_store_head((char *)p + (bytes & 16), half, bytes & 15);
}
TD_IN_PLACE td_part td_load_part(const void *p, int64_t bytes) {
    if (bytes & 32)
        return _mm256_loadu_si256((const td_part *)p);
    __m128i head = td_load_head((const char *)p + (bytes & 16), bytes & 15);
    if (!(bytes & 16))
        return _mm256_zextsi128_si256(head);
    return _mm256_set_m128i(head, _mm_loadu_si128((const __m128i *)p));
}
#elif defined(__SSE2__)
typedef __m128i td_part;
#define td_store_part td_store_head
#define td_load_part  td_load_head
#else
typedef vb td_part;
TD_IN_PLACE void td_store_part(void *p, td_part x, int64_t bytes) {
    memcpy(p, &x, (size_t)bytes);
}
TD_IN_PLACE td_part td_load_part(const void *p, int64_t bytes) {
    td_part x = {0};
    memcpy(&x, p, (size_t)bytes);
    return x;
}
#endif
/* `how`: loads of these elements. */
#define TD_VEC_PART(V, type, how)                                                                  \
    TD_IN_PLACE V V##_load_part(const type *p, int64_t n) {                                        \
        return (V)how;                                                                             \
    }                                                                                              \
    TD_IN_PLACE void V##_store_part(type *p, V x, int64_t n) {                                     \
        td_store_part(p, (td_part)x, n *(int64_t)sizeof(type));                                    \
    }
#define BY_MOVES td_load_part(p, n *(int64_t)sizeof *p)
#if defined(TD_ISA_avx2)
TD_VEC_PART(vf, float, _mm256_maskload_ps(p, (__m256i)vi_first(n)))
TD_VEC_PART(vd, double, _mm256_maskload_pd(p, (__m256i)vl_first(n)))
TD_VEC_PART(vi, int32_t, _mm256_maskload_epi32(p, (__m256i)vi_first(n)))
TD_VEC_PART(vl, int64_t, _mm256_maskload_epi64((const long long *)p, (__m256i)vl_first(n)))
#else
TD_VEC_PART(vf, float, BY_MOVES)
TD_VEC_PART(vd, double, BY_MOVES)
TD_VEC_PART(vi, int32_t, BY_MOVES)
TD_VEC_PART(vl, int64_t, BY_MOVES)
#endif
TD_VEC_PART(vb, uint8_t, BY_MOVES)
TD_VEC_PART(vc, int8_t, BY_MOVES)
TD_VEC_PART(vs, int16_t, BY_MOVES)
#undef BY_MOVES
#undef TD_VEC_PART
#endif

#endif
