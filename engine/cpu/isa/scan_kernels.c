/* scan_kernels.c: the steps of running extremes, of each element type; the elements themselves are
 * kept, so that nothing is converted but what is compared. */
#include "engine/cpu/isa/scan_kernels.h"

#include "engine/cpu/isa/isa_symbol.h"
#include "engine/cpu/isa/vec_half.h"

#define SAME(x) (x)

#define DEFINE_STEP(name, type, better, GET)                                                       \
    static void name(void *restrict to, int64_t *restrict index, const void *restrict before,      \
                     const int64_t *restrict place, const void *restrict from, int64_t at,         \
                     int64_t n) {                                                                  \
        const type *restrict x = from, *restrict last = before;                                    \
        type *restrict out = to;                                                                   \
        for (int64_t k = 0; k < n; k++) {                                                          \
            bool taken = GET(x[k]) better GET(last[k]) || GET(x[k]) != GET(x[k]);                  \
            out[k] = taken ? x[k] : last[k];                                                       \
            index[k] = taken ? at : place[k];                                                      \
        }                                                                                          \
    }
#define DEFINE_STEPS(type, GET)                                                                    \
    DEFINE_STEP(type##_largest, type, >=, GET)                                                     \
    DEFINE_STEP(type##_smallest, type, <=, GET)
DEFINE_STEPS(uint8_t, SAME)
DEFINE_STEPS(int8_t, SAME)
DEFINE_STEPS(int16_t, SAME)
DEFINE_STEPS(int32_t, SAME)
DEFINE_STEPS(int64_t, SAME)
DEFINE_STEPS(td_half, half_get)
DEFINE_STEPS(td_bfloat, td_bfloat_to_float)
DEFINE_STEPS(float, SAME)
DEFINE_STEPS(double, SAME)

#define BY_DTYPE(name)                                                                             \
    {                                                                                              \
        [TD_BOOL] = uint8_t_##name, [TD_U8] = uint8_t_##name, [TD_I8] = int8_t_##name,             \
        [TD_I16] = int16_t_##name, [TD_I32] = int32_t_##name, [TD_I64] = int64_t_##name,           \
        [TD_F16] = td_half_##name, [TD_BF16] = td_bfloat_##name, [TD_F32] = float_##name,          \
        [TD_F64] = double_##name                                                                   \
    }

extern const td_scan_kernels TD_ISA_SYMBOL(td_scan_kernels);
const td_scan_kernels TD_ISA_SYMBOL(td_scan_kernels) = {
    .largest = BY_DTYPE(largest),
    .smallest = BY_DTYPE(smallest),
};
