/* convert_kernels.c: conversions between dtypes, vectorised by the compiler. The 16-bit floats go
 * by way of float32, a block at a time, of which the last bit says what it can't hold. */
#include "engine/cpu/pointwise/convert_kernels.h"

#include "engine/cpu/isa/isa_symbol.h"
#include "engine/cpu/vectors/vec_half.h"

#include <stdbool.h>

/* As td_double_to_i32; the compiler takes vectors for it. */
static inline int32_t float_to_i32(float v) {
    return (int32_t)(v >= -0x1p31f && v < 0x1p31f ? v : -0x1p31f);
}
#define TO_I32(v) _Generic((v), float : float_to_i32, default : td_double_to_i32)(v)
#define TO_I64(v) td_double_to_i64((double)(v))

#define TO_BOOL(v) ((uint8_t)((v) != 0))

#define DEFINE(to, tt, from, ft, expression)                                                       \
    static void convert_##to##_##from(int64_t n, void *dst, const void *src) {                     \
        tt *d = dst;                                                                               \
        const ft *s = src;                                                                         \
        for (int64_t i = 0; i < n; i++) {                                                          \
            ft v = s[i];                                                                           \
            d[i] = (expression);                                                                   \
        }                                                                                          \
    }

/* ---- 16-bit floats and float32 ---- */

/* How many of n floats have become bfloat16, from the first: by two vectors at a time, as long as
 * none of theirs is NaN, whose rounding takes half as long again. */
static inline int64_t round_pairs(int64_t n, td_bfloat *d, const float *s) {
    int64_t i = 0;
#if defined(TD_ISA_avx2)
    for (; i + 2 * VF_N <= n; i += 2 * VF_N) {
        const vf a = vf_load(s + i), b = vf_load(s + i + VF_N);
        if (vf_either_is_nan(a, b))
            break;
        const __m256i low = (__m256i)(td_numbers_to_bfloats((td_words)a) >> 16);
        const __m256i high = (__m256i)(td_numbers_to_bfloats((td_words)b) >> 16);
        const __m256i both = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), 0xD8);
        _mm256_storeu_si256((__m256i *)(void *)(d + i), both);
    }
#else
    (void)n, (void)d, (void)s;
#endif
    return i;
}
#define FIRST_bfloat(n, d, s) round_pairs(n, d, s)
#define FIRST_half(n, d, s)   0

#define DEFINE_HALF(name, type, plural)                                                            \
    static void convert_f32_##name(int64_t n, void *dst, const void *src) {                        \
        float *d = dst;                                                                            \
        const td_##type *s = src;                                                                  \
        int64_t i = 0;                                                                             \
        for (; i + VF_N <= n; i += VF_N)                                                           \
            vf_store(d + i, vf_load_##plural(s + i));                                              \
        if (i < n)                                                                                 \
            vf_store_part(d + i, vf_load_##plural##_part(s + i, n - i), n - i);                    \
    }                                                                                              \
    static void convert_##name##_f32(int64_t n, void *dst, const void *src) {                      \
        td_##type *d = dst;                                                                        \
        const float *s = src;                                                                      \
        int64_t i = FIRST_##type(n, d, s);                                                         \
        for (; i + VF_N <= n; i += VF_N)                                                           \
            vf_store_##plural(d + i, vf_load(s + i));                                              \
        if (i < n)                                                                                 \
            vf_store_##plural##_part(d + i, vf_load_part(s + i, n - i), n - i);                    \
    }
DEFINE_HALF(f16, half, halves)
DEFINE_HALF(bf16, bfloat, bfloats)

static inline vf round_half(vf v) {
    return vf_of_halves(vf_to_halves(v));
}
static inline vf round_bfloat(vf v) {
    return (vf)(vf_rounded_to_bfloats(v) & 0xFFFF0000);
}
#define DEFINE_ROUND(type)                                                                         \
    static void to_##type##_and_back(int64_t n, void *dst, const void *src) {                      \
        float *d = dst;                                                                            \
        const float *s = src;                                                                      \
        int64_t i = 0;                                                                             \
        for (; i + VF_N <= n; i += VF_N)                                                           \
            vf_store(d + i, round_##type(vf_load(s + i)));                                         \
        if (i < n)                                                                                 \
            vf_store_part(d + i, round_##type(vf_load_part(s + i, n - i)), n - i);                 \
    }
DEFINE_ROUND(half)
DEFINE_ROUND(bfloat)

/* To double vector by vector: what is eight bytes long would not stay near for a second pass. */
#define DEFINE_DOUBLE(name, type, plural)                                                          \
    static void convert_f64_##name(int64_t n, void *dst, const void *src) {                        \
        double *d = dst;                                                                           \
        const td_##type *s = src;                                                                  \
        float rest[VF_N];                                                                          \
        int64_t i = 0;                                                                             \
        for (; i + VF_N <= n; i += VF_N) {                                                         \
            vf v = vf_load_##plural(s + i);                                                        \
            vd_store(d + i, vd_of_low(v));                                                         \
            vd_store(d + i + VD_N, vd_of_high(v));                                                 \
        }                                                                                          \
        vf_store(rest, vf_load_##plural##_part(s + i, n - i));                                     \
        for (int64_t k = 0; i + k < n; k++)                                                        \
            d[i + k] = (double)rest[k];                                                            \
    }
DEFINE_DOUBLE(f16, half, halves)
DEFINE_DOUBLE(bf16, bfloat, bfloats)

/* ---- all others ---- */

#define FROM_ANY(from, ft)                                                                         \
    DEFINE(mask, uint8_t, from, ft, TO_BOOL(v))                                                    \
    DEFINE(f32, float, from, ft, (float)v)                                                         \
    DEFINE(f64, double, from, ft, (double)v)
#define FROM_INTEGER(from, ft)                                                                     \
    FROM_ANY(from, ft)                                                                             \
    DEFINE(u8, uint8_t, from, ft, (uint8_t)v)                                                      \
    DEFINE(i8, int8_t, from, ft, (int8_t)v)                                                        \
    DEFINE(i16, int16_t, from, ft, (int16_t)v)                                                     \
    DEFINE(i32, int32_t, from, ft, (int32_t)v)                                                     \
    DEFINE(i64, int64_t, from, ft, (int64_t)v)
#define FROM_FLOAT(from, ft)                                                                       \
    FROM_ANY(from, ft)                                                                             \
    DEFINE(u8, uint8_t, from, ft, (uint8_t)TO_I64(v))                                              \
    DEFINE(i8, int8_t, from, ft, (int8_t)TO_I32(v))                                                \
    DEFINE(i16, int16_t, from, ft, (int16_t)TO_I32(v))                                             \
    DEFINE(i32, int32_t, from, ft, TO_I32(v))                                                      \
    DEFINE(i64, int64_t, from, ft, TO_I64(v))

FROM_INTEGER(mask, uint8_t)
FROM_INTEGER(u8, uint8_t)
FROM_INTEGER(i8, int8_t)
FROM_INTEGER(i16, int16_t)
FROM_INTEGER(i32, int32_t)
FROM_INTEGER(i64, int64_t)
FROM_FLOAT(f32, float)
FROM_FLOAT(f64, double)

/* ---- by way of float32 ---- */

enum { BLOCK = 512 };

#define DEFINE_ODD(from, ft, expression)                                                           \
    static void odd_f32_##from(int64_t n, float *d, const ft *s) {                                 \
        for (int64_t i = 0; i < n; i++)                                                            \
            d[i] = expression(s[i]);                                                               \
    }
DEFINE_ODD(i32, int32_t, td_odd_float)
DEFINE_ODD(i64, int64_t, td_odd_float_of_int)
DEFINE_ODD(f64, double, td_odd_float)
#define DEFINE_BY_ODD(to, tt, from, ft)                                                            \
    static void convert_##to##_##from(int64_t n, void *dst, const void *src) {                     \
        float block[BLOCK];                                                                        \
        for (int64_t i = 0; i < n; i += BLOCK) {                                                   \
            int64_t m = n - i < BLOCK ? n - i : BLOCK;                                             \
            odd_f32_##from(m, block, (const ft *)src + i);                                         \
            convert_##to##_f32(m, (tt *)dst + i, block);                                           \
        }                                                                                          \
    }
#define DEFINE_BY_WAY(to, tt, from, ft)                                                            \
    static void convert_##to##_##from(int64_t n, void *dst, const void *src) {                     \
        float block[BLOCK];                                                                        \
        for (int64_t i = 0; i < n; i += BLOCK) {                                                   \
            int64_t m = n - i < BLOCK ? n - i : BLOCK;                                             \
            convert_f32_##from(m, block, (const ft *)src + i);                                     \
            convert_##to##_f32(m, (tt *)dst + i, block);                                           \
        }                                                                                          \
    }
#define TO_ANY(from, ft)                                                                           \
    DEFINE_BY_WAY(mask, uint8_t, from, ft)                                                         \
    DEFINE_BY_WAY(u8, uint8_t, from, ft)                                                           \
    DEFINE_BY_WAY(i8, int8_t, from, ft)                                                            \
    DEFINE_BY_WAY(i16, int16_t, from, ft)                                                          \
    DEFINE_BY_WAY(i32, int32_t, from, ft)                                                          \
    DEFINE_BY_WAY(i64, int64_t, from, ft)
#define OF_ANY(to, tt)                                                                             \
    DEFINE_BY_WAY(to, tt, mask, uint8_t)                                                           \
    DEFINE_BY_WAY(to, tt, u8, uint8_t)                                                             \
    DEFINE_BY_WAY(to, tt, i8, int8_t)                                                              \
    DEFINE_BY_WAY(to, tt, i16, int16_t)                                                            \
    DEFINE_BY_ODD(to, tt, i32, int32_t)                                                            \
    DEFINE_BY_ODD(to, tt, i64, int64_t)                                                            \
    DEFINE_BY_ODD(to, tt, f64, double)
TO_ANY(f16, td_half)
TO_ANY(bf16, td_bfloat)
OF_ANY(f16, td_half)
OF_ANY(bf16, td_bfloat)
DEFINE_BY_WAY(f16, td_half, bf16, td_bfloat)
DEFINE_BY_WAY(bf16, td_bfloat, f16, td_half)
DEFINE(f16, td_half, f16, td_half, v)
DEFINE(bf16, td_bfloat, bf16, td_bfloat, v)

#define ROW(to)                                                                                    \
    {                                                                                              \
        [TD_BOOL] = convert_##to##_mask, [TD_U8] = convert_##to##_u8, [TD_I8] = convert_##to##_i8, \
        [TD_I16] = convert_##to##_i16, [TD_I32] = convert_##to##_i32,                              \
        [TD_I64] = convert_##to##_i64, [TD_F16] = convert_##to##_f16,                              \
        [TD_BF16] = convert_##to##_bf16, [TD_F32] = convert_##to##_f32,                            \
        [TD_F64] = convert_##to##_f64,                                                             \
    }

extern const td_convert_kernels TD_ISA_SYMBOL(td_convert_kernels);
const td_convert_kernels TD_ISA_SYMBOL(td_convert_kernels) = {
    .convert = {[TD_BOOL] = ROW(mask),
                [TD_U8] = ROW(u8),
                [TD_I8] = ROW(i8),
                [TD_I16] = ROW(i16),
                [TD_I32] = ROW(i32),
                [TD_I64] = ROW(i64),
                [TD_F16] = ROW(f16),
                [TD_BF16] = ROW(bf16),
                [TD_F32] = ROW(f32),
                [TD_F64] = ROW(f64)},
    .round = {[TD_F16] = to_half_and_back, [TD_BF16] = to_bfloat_and_back},
};
