/* fused_kernels.h: programs that were compiled when Tide was, a loop for each. */
#ifndef TD_CPU_ISA_FUSED_KERNELS_H
#define TD_CPU_ISA_FUSED_KERNELS_H

#include "engine/cpu/isa/pointwise_kernels.h"

#include <stddef.h>

/* Runs n elements. `places`: of the program's loads, constants and outputs; those of a single
 * number hold it at the beginning of a vector, which is filled, and don't move. Where elements in
 * memory are 16-bit floats, their places are `narrow` behind the registers' own; else that is 0.
 * Outputs may be loads. */
typedef void (*td_fused_fn)(int64_t n, const td_place *places, int narrow);

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
