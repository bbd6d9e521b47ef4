/* fused_kernels.h: programs that were compiled when Tide was, a loop for each. */
#ifndef TD_CPU_POINTWISE_FUSED_KERNELS_H
#define TD_CPU_POINTWISE_FUSED_KERNELS_H

#include "engine/cpu/pointwise/pointwise_kernels.h"

#include <stddef.h>

/* Where the elements of a load, a constant or an output lie. */
typedef struct td_run {
    unsigned char *at; /* a row's first; or one number for all of the row, a float where elements
                          are 16-bit floats */
    uint64_t moves;    /* all bits, or none for such a number */
    int64_t next;      /* bytes to the row behind */
} td_run;

/* Runs `rows` rows of n elements; what is a number in each list is the same in each row. Outputs
 * may be loads. */
typedef void (*td_fused_fn)(int64_t rows, int64_t n, const td_run *restrict runs);

typedef struct td_fused_program {
    uint64_t digest;  /* of the program (td_program) */
    uint64_t numbers; /* bit per load that must be a single number */
    /* By the dtype of the elements in memory, the 16-bit floats computed in float32; NULL: none. */
    td_fused_fn loops[TD_DTYPE_COUNT];
} td_fused_program;

typedef struct td_fused_kernels {
    const td_fused_program *programs; /* by digest */
    size_t n;
} td_fused_kernels;

#endif
