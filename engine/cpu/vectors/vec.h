/* vec.h: vectors of the instruction set being built, as GCC vector types.
 *
 * + - * / & | ^ ~ and comparisons (giving masks of 0 / -1 integers) are the compiler's; this header
 * adds loads, stores, selection and SLEEF's functions (at most 1 ulp; those called _most are
 * so for most operands only or not the way of all sets: vec_math.h, vec_double.h and vec_float.h
 * have them for all). Parts of vectors are vec_part.h's, sums across their lanes vec_across.h's. vf
 * is float, vd double, vi the integer vector of a mask of vf, vl that of vd; vb, vc and vs are
 * vectors of uint8, int8 and int16.
 */
#ifndef TD_CPU_VECTORS_VEC_H
#define TD_CPU_VECTORS_VEC_H

#include <math.h>
#include <sleef.h>
#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#if defined(TD_ISA_avx512)
#define TD_VBYTES 64
#elif defined(TD_ISA_avx2)
#define TD_VBYTES 32
#else
#define TD_VBYTES 16
#endif

typedef float vf __attribute__((vector_size(TD_VBYTES)));
typedef double vd __attribute__((vector_size(TD_VBYTES)));
typedef int32_t vi __attribute__((vector_size(TD_VBYTES)));
typedef int64_t vl __attribute__((vector_size(TD_VBYTES)));
typedef uint8_t vb __attribute__((vector_size(TD_VBYTES)));
typedef int8_t vc __attribute__((vector_size(TD_VBYTES)));
typedef int16_t vs __attribute__((vector_size(TD_VBYTES)));
typedef float vf_half __attribute__((vector_size(TD_VBYTES / 2)));

enum { VF_N = TD_VBYTES / 4, VD_N = TD_VBYTES / 8, VI_N = VF_N, VL_N = VD_N, VB_N = TD_VBYTES };
enum { VC_N = VB_N, VS_N = TD_VBYTES / 2 };

#define TD_VEC_MEMORY(v, type)                                                                     \
    static inline v v##_load(const type *p) {                                                      \
        v r;                                                                                       \
        memcpy(&r, p, sizeof r);                                                                   \
        return r;                                                                                  \
    }                                                                                              \
    static inline void v##_store(type *p, v x) {                                                   \
        memcpy(p, &x, sizeof x);                                                                   \
    }                                                                                              \
    static inline v v##_set(type x) { /* -0 too, which 0 + x would lose */                         \
        return x - (v){0};                                                                         \
    }
TD_VEC_MEMORY(vf, float)
TD_VEC_MEMORY(vd, double)
TD_VEC_MEMORY(vi, int32_t)
TD_VEC_MEMORY(vl, int64_t)
TD_VEC_MEMORY(vb, uint8_t)
TD_VEC_MEMORY(vc, int8_t)
TD_VEC_MEMORY(vs, int16_t)
#undef TD_VEC_MEMORY

/* mask ? a : b, lane by lane */
static inline vf vf_select(vi mask, vf a, vf b) {
    return (vf)((mask & (vi)a) | (~mask & (vi)b));
}
static inline vd vd_select(vl mask, vd a, vd b) {
    return (vd)((mask & (vl)a) | (~mask & (vl)b));
}
static inline vi vi_select(vi mask, vi a, vi b) {
    return (mask & a) | (~mask & b);
}
static inline vl vl_select(vl mask, vl a, vl b) {
    return (mask & a) | (~mask & b);
}
static inline vb vb_select(vb mask, vb a, vb b) {
    return (mask & a) | (~mask & b);
}
static inline vc vc_select(vc mask, vc a, vc b) {
    return (mask & a) | (~mask & b);
}
static inline vs vs_select(vs mask, vs a, vs b) {
    return (mask & a) | (~mask & b);
}

/* SLEEF's name for a function of this set: Sleef_expf8_u10avx2 and so on. */
#if defined(TD_ISA_avx512)
#define TD_SLEEF_F(name, ulp) Sleef_##name##f16_##ulp##avx512f
#define TD_SLEEF_D(name, ulp) Sleef_##name##d8_##ulp##avx512f
#define TD_SLEEF_F0(name)     Sleef_##name##f16_avx512f
#define TD_SLEEF_D0(name)     Sleef_##name##d8_avx512f
#define TD_MIN_F              _mm512_min_ps
#define TD_MAX_F              _mm512_max_ps
#define TD_MIN_D              _mm512_min_pd
#define TD_MAX_D              _mm512_max_pd
typedef __m512 td_native_f;
typedef __m512d td_native_d;
#elif defined(TD_ISA_avx2)
#define TD_SLEEF_F(name, ulp) Sleef_##name##f8_##ulp##avx2
#define TD_SLEEF_D(name, ulp) Sleef_##name##d4_##ulp##avx2
#define TD_SLEEF_F0(name)     Sleef_##name##f8_avx2
#define TD_SLEEF_D0(name)     Sleef_##name##d4_avx2
#define TD_SQRT_F             _mm256_sqrt_ps
#define TD_MIN_F              _mm256_min_ps
#define TD_MAX_F              _mm256_max_ps
#define TD_SQRT_D             _mm256_sqrt_pd
#define TD_MIN_D              _mm256_min_pd
#define TD_MAX_D              _mm256_max_pd
typedef __m256 td_native_f;
typedef __m256d td_native_d;
#elif defined(__SSE2__)
#define TD_SLEEF_F(name, ulp) Sleef_##name##f4_##ulp##sse2
#define TD_SLEEF_D(name, ulp) Sleef_##name##d2_##ulp##sse2
#define TD_SLEEF_F0(name)     Sleef_##name##f4_sse2
#define TD_SLEEF_D0(name)     Sleef_##name##d2_sse2
#define TD_SQRT_F             _mm_sqrt_ps
#define TD_MIN_F              _mm_min_ps
#define TD_MAX_F              _mm_max_ps
#define TD_SQRT_D             _mm_sqrt_pd
#define TD_MIN_D              _mm_min_pd
#define TD_MAX_D              _mm_max_pd
typedef __m128 td_native_f;
typedef __m128d td_native_d;
#elif defined(__aarch64__)
#define TD_SLEEF_F(name, ulp) Sleef_##name##f4_##ulp##advsimd
#define TD_SLEEF_D(name, ulp) Sleef_##name##d2_##ulp##advsimd
#define TD_SLEEF_F0(name)     Sleef_##name##f4_advsimd
#define TD_SLEEF_D0(name)     Sleef_##name##d2_advsimd
#define TD_SQRT_F             vsqrtq_f32
#define TD_MIN_F              vminq_f32
#define TD_MAX_F              vmaxq_f32
#define TD_SQRT_D             vsqrtq_f64
#define TD_MIN_D              vminq_f64
#define TD_MAX_D              vmaxq_f64
typedef float32x4_t td_native_f;
typedef float64x2_t td_native_d;
#else
#error "SLEEF's vectors for this architecture are not known here"
#endif

#define TD_VEC_MATH1(name, sleef, ulp)                                                             \
    static inline vf vf_##name(vf x) {                                                             \
        return (vf)TD_SLEEF_F(sleef, ulp)((td_native_f)x);                                         \
    }                                                                                              \
    static inline vd vd_##name(vd x) {                                                             \
        return (vd)TD_SLEEF_D(sleef, ulp)((td_native_d)x);                                         \
    }
TD_VEC_MATH1(exp2_most, exp2, u10)
TD_VEC_MATH1(expm1_most, expm1, u10)
TD_VEC_MATH1(log_most, log, u10)
TD_VEC_MATH1(log2_most, log2, u10)
TD_VEC_MATH1(log10_most, log10, u10)
TD_VEC_MATH1(sin_most, sin, u10)
TD_VEC_MATH1(cos_most, cos, u10)
TD_VEC_MATH1(tan_most, tan, u10)
TD_VEC_MATH1(sinh_most, sinh, u10)
TD_VEC_MATH1(cosh_most, cosh, u10)
TD_VEC_MATH1(asinh_most, asinh, u10)
TD_VEC_MATH1(acosh_most, acosh, u10)
TD_VEC_MATH1(atanh_most, atanh, u10)
TD_VEC_MATH1(lgamma_most, lgamma, u10)
#undef TD_VEC_MATH1

/* vec_float.h and vec_angle.h have them for float, vec_double.h and vec_double_angle.h for double
 * where they can. */
#define TD_VEC_MATH1(name, sleef, ulp)                                                             \
    static inline vd vd_##name(vd x) {                                                             \
        return (vd)TD_SLEEF_D(sleef, ulp)((td_native_d)x);                                         \
    }
TD_VEC_MATH1(exp_most, exp, u10)
TD_VEC_MATH1(log1p_most, log1p, u10)
TD_VEC_MATH1(tanh_most, tanh, u10)
TD_VEC_MATH1(asin_most, asin, u10)
TD_VEC_MATH1(acos_most, acos, u10)
TD_VEC_MATH1(atan_most, atan, u10)
#undef TD_VEC_MATH1

#define TD_VEC_MATH2(name, sleef, ulp)                                                             \
    static inline vf vf_##name(vf x, vf y) {                                                       \
        return (vf)TD_SLEEF_F(sleef, ulp)((td_native_f)x, (td_native_f)y);                         \
    }                                                                                              \
    static inline vd vd_##name(vd x, vd y) {                                                       \
        return (vd)TD_SLEEF_D(sleef, ulp)((td_native_d)x, (td_native_d)y);                         \
    }
TD_VEC_MATH2(pow_most, pow, u10)
TD_VEC_MATH2(atan2_most, atan2, u10)
TD_VEC_MATH2(hypot_most, hypot, u05)
#undef TD_VEC_MATH2

static inline vf vf_fmod_most(vf x, vf y) {
    return (vf)TD_SLEEF_F0(fmod)((td_native_f)x, (td_native_f)y);
}
static inline vd vd_fmod_most(vd x, vd y) {
    return (vd)TD_SLEEF_D0(fmod)((td_native_d)x, (td_native_d)y);
}

#include "engine/cpu/math/vec_root.h"
#include "engine/cpu/vectors/vec_native.h"

static inline vf vf_abs(vf x) {
    return (vf)((vi)x & INT32_MAX);
}
static inline vd vd_abs(vd x) {
    return (vd)((vl)x & INT64_MAX);
}

#endif
