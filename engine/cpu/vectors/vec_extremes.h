/* vec_extremes.h: lane-wise maxima and minima at one instruction each. These pass over NaN, so
 * vectors that hold one are marked apart. */
#ifndef TD_CPU_VECTORS_VEC_EXTREMES_H
#define TD_CPU_VECTORS_VEC_EXTREMES_H

#include "engine/cpu/vectors/vec.h"

#include <stdbool.h>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

/*   V_greater(v, best)   lanes of v that are greater, else those of best
 *   V_lesser(v, best)    the same of lesser ones
 *   V_unordered(a, b)    V_marks, to be joined by |, of the lanes where either is NaN
 *   V_marked(marks)      is there one?
 */
#if defined(TD_ISA_avx512)
#define TD_VEC_EXTREMES(V, native, ps, MARKS)                                                      \
    typedef uint32_t V##_marks;                                                                    \
    static inline V V##_greater(V v, V best) {                                                     \
        return (V)_mm512_max_##ps((native)v, (native)best);                                        \
    }                                                                                              \
    static inline V V##_lesser(V v, V best) {                                                      \
        return (V)_mm512_min_##ps((native)v, (native)best);                                        \
    }                                                                                              \
    static inline V##_marks V##_unordered(V a, V b) {                                              \
        return _mm512_cmp_##ps##_mask((native)a, (native)b, _CMP_UNORD_Q);                         \
    }                                                                                              \
    static inline bool V##_marked(V##_marks marks) {                                               \
        return marks != 0;                                                                         \
    }
TD_VEC_EXTREMES(vf, __m512, ps, vi)
TD_VEC_EXTREMES(vd, __m512d, pd, vl)
#elif defined(__SSE2__)
#if defined(TD_ISA_avx2)
#define TD_VEC_NAME(name, ps)      _mm256_##name##_##ps
#define TD_VEC_UNORDERED(a, b, ps) _mm256_cmp_##ps(a, b, _CMP_UNORD_Q)
#else
#define TD_VEC_NAME(name, ps)      _mm_##name##_##ps
#define TD_VEC_UNORDERED(a, b, ps) _mm_cmpunord_##ps(a, b)
#endif
#define TD_VEC_EXTREMES(V, native, ps, MARKS)                                                      \
    typedef MARKS V##_marks;                                                                       \
    static inline V V##_greater(V v, V best) {                                                     \
        return (V)TD_VEC_NAME(max, ps)((native)v, (native)best);                                   \
    }                                                                                              \
    static inline V V##_lesser(V v, V best) {                                                      \
        return (V)TD_VEC_NAME(min, ps)((native)v, (native)best);                                   \
    }                                                                                              \
    static inline V##_marks V##_unordered(V a, V b) {                                              \
        return (V##_marks)TD_VEC_UNORDERED((native)a, (native)b, ps);                              \
    }                                                                                              \
    static inline bool V##_marked(V##_marks marks) {                                               \
        return TD_VEC_NAME(movemask, ps)((native)marks) != 0;                                      \
    }
TD_VEC_EXTREMES(vf, td_native_f, ps, vi)
TD_VEC_EXTREMES(vd, td_native_d, pd, vl)
#undef TD_VEC_NAME
#undef TD_VEC_UNORDERED
#else
#define TD_VEC_EXTREMES(V, native, ps, MARKS)                                                      \
    typedef MARKS V##_marks;                                                                       \
    static inline V V##_greater(V v, V best) {                                                     \
        return V##_select(v > best, v, best);                                                      \
    }                                                                                              \
    static inline V V##_lesser(V v, V best) {                                                      \
        return V##_select(v < best, v, best);                                                      \
    }                                                                                              \
    static inline V##_marks V##_unordered(V a, V b) {                                              \
        return (a != a) | (b != b);                                                                \
    }                                                                                              \
    static inline bool V##_marked(V##_marks marks) {                                               \
        const V##_marks none = {0};                                                                \
        return memcmp(&marks, &none, sizeof marks) != 0;                                           \
    }
TD_VEC_EXTREMES(vf, td_native_f, ps, vi)
TD_VEC_EXTREMES(vd, td_native_d, pd, vl)
#endif
#undef TD_VEC_EXTREMES

#endif
