/* combine_kernels.h: what is written and what lies there become one, in dense lines and at places.
 */
#ifndef TD_CPU_INDEX_COMBINE_KERNELS_H
#define TD_CPU_INDEX_COMBINE_KERNELS_H

#include "engine/core/dtype.h"
#include "engine/ops/plan/plan.h"

typedef struct td_combine_kernels {
    /* x[k] becomes what td_combine says of it and v[k], for k < n; they are apart. There is none
     * for TD_COMBINE_PUT. The same bits in all sets. */
    void (*rows[TD_COMBINES][TD_DTYPE_COUNT])(void *x, const void *v, int64_t n);
    /* x[at[k] - base] += v[k] for k < n, in order: places may be named twice. */
    void (*add_at[TD_DTYPE_COUNT])(void *x, const int64_t *at, int64_t base, const void *v,
                                   int64_t n);
} td_combine_kernels;

#endif
