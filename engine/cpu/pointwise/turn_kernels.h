/* turn_kernels.h: matrices turned round. */
#ifndef TD_CPU_POINTWISE_TURN_KERNELS_H
#define TD_CPU_POINTWISE_TURN_KERNELS_H

#include <stddef.h>
#include <stdint.h>

typedef struct td_turn_kernels {
    /* out[r * out_step + c] = x[r + c * x_step] of elements of size bytes (1, 2, 4, 8); all that
     * is read and written should stay in a cache. */
    void (*turn)(void *restrict out, int64_t out_step, const void *restrict x, int64_t x_step,
                 int64_t rows, int64_t columns, size_t size);
} td_turn_kernels;

#endif
