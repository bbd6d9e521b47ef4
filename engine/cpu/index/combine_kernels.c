/* combine_kernels.c: x[k] = x[k] + v[k], or times, maximum or minimum, over dense lines (vectorised
 * by the compiler), and sums of elements at places that may be named twice. */
#include "engine/cpu/index/combine_kernels.h"

#include "engine/cpu/isa/isa_symbol.h"
#include "engine/cpu/reduce/sums.h"

#define DEFINE(HOW, NAME, type, wider, READ, WRITE, result)                                        \
    static void HOW##_##NAME(void *to, const void *from, int64_t n) {                              \
        type *restrict x = to;                                                                     \
        const type *restrict v = from;                                                             \
        for (int64_t k = 0; k < n; k++) {                                                          \
            wider a = READ(x[k]), b = READ(v[k]);                                                  \
            x[k] = WRITE(result);                                                                  \
        }                                                                                          \
    }
#define DEFINE_ALL(NAME, type, wider, READ, WRITE)                                                 \
    DEFINE(add, NAME, type, wider, READ, WRITE, a + b)                                             \
    DEFINE(mul, NAME, type, wider, READ, WRITE, a *b)                                              \
    DEFINE(max, NAME, type, wider, READ, WRITE, ((a != a) | (a > b)) ? a : b)                      \
    DEFINE(min, NAME, type, wider, READ, WRITE, ((a != a) | (a < b)) ? a : b)
TD_ELEMENTS(DEFINE_ALL)

#define DEFINE_ADD_AT(NAME, type, SUM)                                                             \
    static void add_at_##NAME(void *to, const int64_t *restrict at, int64_t base,                  \
                              const void *from, int64_t n) {                                       \
        type *restrict x = to;                                                                     \
        const type *restrict v = from;                                                             \
        for (int64_t k = 0; k < n; k++)                                                            \
            x[at[k] - base] = SUM(x[at[k] - base], v[k]);                                          \
    }
TD_SUMS(DEFINE_ADD_AT)

#define ADD(NAME, type, wider, READ, WRITE) [TD_##NAME] = add_##NAME,
#define MUL(NAME, type, wider, READ, WRITE) [TD_##NAME] = mul_##NAME,
#define MAX(NAME, type, wider, READ, WRITE) [TD_##NAME] = max_##NAME,
#define MIN(NAME, type, wider, READ, WRITE) [TD_##NAME] = min_##NAME,
#define ADD_AT(NAME, type, SUM)             [TD_##NAME] = add_at_##NAME,

extern const td_combine_kernels TD_ISA_SYMBOL(td_combine_kernels);
const td_combine_kernels TD_ISA_SYMBOL(td_combine_kernels) = {
    .rows =
        {
            [TD_COMBINE_ADD] = {TD_ELEMENTS(ADD)},
            [TD_COMBINE_MUL] = {TD_ELEMENTS(MUL)},
            [TD_COMBINE_MAX] = {TD_ELEMENTS(MAX)},
            [TD_COMBINE_MIN] = {TD_ELEMENTS(MIN)},
        },
    .add_at = {TD_SUMS(ADD_AT)},
};
