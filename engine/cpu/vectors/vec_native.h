/* vec_native.h: what processors have an instruction for and C has no operator: whole numbers, the
 * larger and the smaller of two, a choice by a comparison.
 *
 * Included by vec.h, for which it is a part. All sets give the same bits: max and min give b where
 * that is NaN and a where only that is; of equal ones, of zeros of both signs too, a.
 */
#ifndef TD_CPU_VECTORS_VEC_NATIVE_H
#define TD_CPU_VECTORS_VEC_NATIVE_H

#include "engine/cpu/vectors/vec.h"

/* ---- whole numbers ---- */

#if defined(TD_ISA_avx512)
#define TD_ROUND_F(x, how, sleef) (vf) _mm512_roundscale_ps((__m512)(x), (how) | _MM_FROUND_NO_EXC)
#define TD_ROUND_D(x, how, sleef) (vd) _mm512_roundscale_pd((__m512d)(x), (how) | _MM_FROUND_NO_EXC)
#elif defined(TD_ISA_avx2)
#define TD_ROUND_F(x, how, sleef) (vf) _mm256_round_ps((__m256)(x), (how) | _MM_FROUND_NO_EXC)
#define TD_ROUND_D(x, how, sleef) (vd) _mm256_round_pd((__m256d)(x), (how) | _MM_FROUND_NO_EXC)
#else
#define TD_ROUND_F(x, how, sleef) (vf) TD_SLEEF_F0(sleef)((td_native_f)(x))
#define TD_ROUND_D(x, how, sleef) (vd) TD_SLEEF_D0(sleef)((td_native_d)(x))
#endif
#define TD_VEC_ROUND(name, how)                                                                    \
    static inline vf vf_##name(vf x) {                                                             \
        return TD_ROUND_F(x, how, name);                                                           \
    }                                                                                              \
    static inline vd vd_##name(vd x) {                                                             \
        return TD_ROUND_D(x, how, name);                                                           \
    }
TD_VEC_ROUND(floor, _MM_FROUND_TO_NEG_INF)
TD_VEC_ROUND(ceil, _MM_FROUND_TO_POS_INF)
TD_VEC_ROUND(trunc, _MM_FROUND_TO_ZERO)
TD_VEC_ROUND(rint, _MM_FROUND_TO_NEAREST_INT) /* half to even */
#undef TD_VEC_ROUND
#undef TD_ROUND_F
#undef TD_ROUND_D

/* ---- the larger and the smaller ---- */

/* The instructions give their second operand where one is NaN and where both are zero. */
#if defined(TD_ISA_avx512)
#define TD_ORDER(op, suffix, v, native, a, b)                                                      \
    (v) _mm512_mask_##op##_##suffix(                                                               \
        (native)(b), _mm512_cmp_##suffix##_mask((native)(b), (native)(b), _CMP_ORD_Q),             \
        (native)(b), (native)(a))
#elif defined(TD_ISA_avx2)
#define TD_ORDER(op, suffix, v, native, a, b)                                                      \
    (v) _mm256_blendv_##suffix(_mm256_##op##_##suffix((native)(b), (native)(a)), (native)(b),      \
                               _mm256_cmp_##suffix((native)(b), (native)(b), _CMP_UNORD_Q))
#else
#define TD_OF_max >=
#define TD_OF_min <=
#define TD_ORDER(op, suffix, v, native, a, b)                                                      \
    v##_select((b) != (b), (b), v##_select(((a)TD_OF_##op(b)) | ((a) != (a)), (a), (b)))
#endif
static inline vf vf_max(vf a, vf b) {
    return TD_ORDER(max, ps, vf, td_native_f, a, b);
}
static inline vf vf_min(vf a, vf b) {
    return TD_ORDER(min, ps, vf, td_native_f, a, b);
}
static inline vd vd_max(vd a, vd b) {
    return TD_ORDER(max, pd, vd, td_native_d, a, b);
}
static inline vd vd_min(vd a, vd b) {
    return TD_ORDER(min, pd, vd, td_native_d, a, b);
}
#undef TD_ORDER

/* ---- choices ---- */

/* pick_gt(a, b, x, y): a > b ? x : y, and so on. */
#if defined(TD_ISA_avx512)
#define TD_PICK(v, suffix, native, mask, how, test)                                                \
    (v) _mm512_mask_blend_##suffix(_mm512_cmp_##suffix##_mask((native)a, (native)b, how),          \
                                   (native)y, (native)x)
#elif defined(TD_ISA_avx2)
#define TD_PICK(v, suffix, native, mask, how, test)                                                \
    (v) _mm256_blendv_##suffix((native)y, (native)x, _mm256_cmp_##suffix((native)a, (native)b, how))
#else
#define TD_PICK(v, suffix, native, mask, how, test) v##_select((mask)(test), x, y)
#endif
#define TD_VEC_PICK(name, how, test)                                                               \
    static inline vf vf_pick_##name(vf a, vf b, vf x, vf y) {                                      \
        return TD_PICK(vf, ps, td_native_f, vi, how, test);                                        \
    }                                                                                              \
    static inline vd vd_pick_##name(vd a, vd b, vd x, vd y) {                                      \
        return TD_PICK(vd, pd, td_native_d, vl, how, test);                                        \
    }                                                                                              \
    static inline vl vl_pick_##name(vl a, vl b, vl x, vl y) {                                      \
        return vl_select((vl)(test), x, y);                                                        \
    }
TD_VEC_PICK(eq, _CMP_EQ_OQ, a == b)
TD_VEC_PICK(ne, _CMP_NEQ_UQ, a != b)
TD_VEC_PICK(lt, _CMP_LT_OQ, a < b)
TD_VEC_PICK(le, _CMP_LE_OQ, a <= b)
TD_VEC_PICK(gt, _CMP_GT_OQ, a > b)
TD_VEC_PICK(ge, _CMP_GE_OQ, a >= b)
#undef TD_VEC_PICK
#undef TD_PICK

#endif
