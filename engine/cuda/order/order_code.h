/* order_code.h: a stable radix sort of 32-bit keys with their places. Writes to one place are made
 * in its order, so that every run gives the same bits. */
#ifndef TD_CUDA_ORDER_ORDER_CODE_H
#define TD_CUDA_ORDER_ORDER_CODE_H

#include <cuda_runtime_api.h>
#include <stdint.h>

enum {
    TD_CU_ORDER_TILE = 4096, /* keys of a block */
    TD_CU_DIGITS = 256
};

/* keys and ranks each have two rooms of n; counts has TD_CU_DIGITS * (tiles + 1). */
typedef struct td_cu_ordering {
    uint32_t n;
    int bits; /* of a key that count */
    uint32_t *keys[2], *ranks[2], *counts;
} td_cu_ordering;

#ifdef __cplusplus
extern "C" {
#endif
/* Orders keys[0]; *at tells in which room the keys, and their first places, end. */
cudaError_t td_cu_order(const td_cu_ordering *o, int *at, cudaStream_t stream);
/* Each of `rows` rows of n counts becomes the sums of those before; totals[row] the sum of all. */
cudaError_t td_cu_sum_counts(uint32_t *counts, uint32_t rows, uint32_t n, uint32_t *totals,
                             cudaStream_t stream);
#ifdef __cplusplus
}
#endif
#endif
