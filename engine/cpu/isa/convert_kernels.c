/* convert_kernels.c: conversions between dtypes, vectorised by the compiler. */
#include "engine/cpu/isa/convert_kernels.h"

#include "engine/cpu/isa/isa_symbol.h"

/* A cast to int64 is undefined beyond its range: saturate, NaN is 0. The other integers take its
 * low bits, as td_store_double does. */
static inline int64_t to_int(double v) {
    return v != v ? 0 : v >= 0x1p63 ? INT64_MAX : v < -0x1p63 ? INT64_MIN : (int64_t)v;
}

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

#define FROM_ANY(from, ft)                                                                         \
    DEFINE(mask, uint8_t, from, ft, TO_BOOL(v))                                                    \
    DEFINE(f32, float, from, ft, (float)v)                                                         \
    DEFINE(f64, double, from, ft, (double)v)
#define FROM_INTEGER(from, ft)                                                                     \
    FROM_ANY(from, ft)                                                                             \
    DEFINE(u8, uint8_t, from, ft, (uint8_t)v)                                                      \
    DEFINE(i32, int32_t, from, ft, (int32_t)v)                                                     \
    DEFINE(i64, int64_t, from, ft, (int64_t)v)
#define FROM_FLOAT(from, ft)                                                                       \
    FROM_ANY(from, ft)                                                                             \
    DEFINE(u8, uint8_t, from, ft, (uint8_t)to_int((double)v))                                      \
    DEFINE(i32, int32_t, from, ft, (int32_t)to_int((double)v))                                     \
    DEFINE(i64, int64_t, from, ft, to_int((double)v))

FROM_INTEGER(mask, uint8_t)
FROM_INTEGER(u8, uint8_t)
FROM_INTEGER(i32, int32_t)
FROM_INTEGER(i64, int64_t)
FROM_FLOAT(f32, float)
FROM_FLOAT(f64, double)

#define ROW(to)                                                                                    \
    {                                                                                              \
        [TD_BOOL] = convert_##to##_mask, [TD_U8] = convert_##to##_u8,                              \
        [TD_I32] = convert_##to##_i32, [TD_I64] = convert_##to##_i64,                              \
        [TD_F32] = convert_##to##_f32, [TD_F64] = convert_##to##_f64,                              \
    }

extern const td_convert_kernels TD_ISA_SYMBOL(td_convert_kernels);
const td_convert_kernels TD_ISA_SYMBOL(td_convert_kernels) = {
    .convert = {[TD_BOOL] = ROW(mask),
                [TD_U8] = ROW(u8),
                [TD_I32] = ROW(i32),
                [TD_I64] = ROW(i64),
                [TD_F32] = ROW(f32),
                [TD_F64] = ROW(f64)},
};
