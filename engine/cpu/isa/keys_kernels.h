/* keys_kernels.h: elements as unsigned numbers in their order, and back (cpu/keys.h). */
#ifndef TD_CPU_ISA_KEYS_KERNELS_H
#define TD_CPU_ISA_KEYS_KERNELS_H

#include "engine/core/dtype.h"

/* By dtype. `flip` has all bits of a key set where the order is the other way round, else none. */
typedef struct td_keys_kernels {
    void (*read[TD_DTYPE_COUNT])(const void *x, int64_t n, uint64_t flip, uint64_t *keys);
    void (*write[TD_DTYPE_COUNT])(const uint64_t *keys, const int64_t *index, int64_t n,
                                  uint64_t flip, const void *from, void *x);
} td_keys_kernels;

#endif
