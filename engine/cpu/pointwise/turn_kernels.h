/* turn_kernels.h: matrices turned round, and rows woven into one another. */
#ifndef TD_CPU_POINTWISE_TURN_KERNELS_H
#define TD_CPU_POINTWISE_TURN_KERNELS_H

#include <stddef.h>
#include <stdint.h>

typedef struct td_turn_kernels {
    /* out[r * out_step + c] = x[r + c * x_step] of elements of size bytes (1, 2, 4, 8); all that
     * is read and written should stay in a cache. */
    void (*turn)(void *restrict out, int64_t out_step, const void *restrict x, int64_t x_step,
                 int64_t rows, int64_t columns, size_t size);
    /* The elements of two rows of n take turns. */
    void (*weave)(uint16_t *restrict out, const uint16_t *upper, const uint16_t *lower, int64_t n);
} td_turn_kernels;

#endif
