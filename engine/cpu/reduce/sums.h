/* sums.h: how two elements of each dtype are added: bool's sum is "or", integers wrap around, the
 * 16-bit floats are added in float32. */
#ifndef TD_CPU_REDUCE_SUMS_H
#define TD_CPU_REDUCE_SUMS_H

#include "engine/core/dtype.h"

#define TD_SUM(a, b)      ((a) + (b))
#define TD_SUM_BOOL(a, b) ((a) | (b))
#define TD_SUM_F16(a, b)  td_float_to_half(td_half_to_float(a) + td_half_to_float(b))
#define TD_SUM_BF16(a, b) td_float_to_bfloat(td_bfloat_to_float(a) + td_bfloat_to_float(b))

/* X(DTYPE, C type, type to compute in, macros to there and back) for every dtype. */
#define TD_AS_IS(a) (a)
#define TD_TRUTH(a) ((a) != 0)
#define TD_ELEMENTS(X)                                                                             \
    X(BOOL, uint8_t, int, TD_AS_IS, TD_TRUTH)                                                      \
    X(U8, uint8_t, int, TD_AS_IS, (uint8_t))                                                       \
    X(I8, int8_t, int, TD_AS_IS, (int8_t))                                                         \
    X(I16, int16_t, int, TD_AS_IS, (int16_t))                                                      \
    X(I32, int32_t, int32_t, TD_AS_IS, TD_AS_IS)                                                   \
    X(I64, int64_t, int64_t, TD_AS_IS, TD_AS_IS)                                                   \
    X(F16, td_half, float, td_half_to_float, td_float_to_half)                                     \
    X(BF16, td_bfloat, float, td_bfloat_to_float, td_float_to_bfloat)                              \
    X(F32, float, float, TD_AS_IS, TD_AS_IS)                                                       \
    X(F64, double, double, TD_AS_IS, TD_AS_IS)

/* X(DTYPE, C type, macro that adds two) for every dtype. */
#define TD_SUMS(X)                                                                                 \
    X(BOOL, uint8_t, TD_SUM_BOOL)                                                                  \
    X(U8, uint8_t, TD_SUM)                                                                         \
    X(I8, int8_t, TD_SUM)                                                                          \
    X(I16, int16_t, TD_SUM)                                                                        \
    X(I32, int32_t, TD_SUM)                                                                        \
    X(I64, int64_t, TD_SUM)                                                                        \
    X(F16, td_half, TD_SUM_F16)                                                                    \
    X(BF16, td_bfloat, TD_SUM_BF16)                                                                \
    X(F32, float, TD_SUM)                                                                          \
    X(F64, double, TD_SUM)

#endif
