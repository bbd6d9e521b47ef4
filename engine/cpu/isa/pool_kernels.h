/* pool_kernels.h: pooling of one plane. */
#ifndef TD_CPU_ISA_POOL_KERNELS_H
#define TD_CPU_ISA_POOL_KERNELS_H

#include "engine/core/dtype.h"
#include "engine/cpu/pool_windows.h"

/* The functions of one element type. Planes are row-major, of the windows' sizes: `x` h x w,
 * `y` oh x ow. Places are positions y * w + x in the input plane. */
typedef struct td_pool_functions {
    /* Largest element of each window and its place (first of equals; NaN counts as largest). */
    void (*max)(void *y, int32_t *places, const void *x, const td_pool_windows *windows);
    /* gx[places[k]] += g[k], for n elements. */
    void (*scatter)(void *gx, const int32_t *places, const void *g, int64_t n);
    /* Sum of each window times its scale; gx += g times the scale over each window. */
    void (*mean)(void *y, const void *x, const td_pool_windows *windows);
    void (*mean_backward)(void *gx, const void *g, const td_pool_windows *windows);
} td_pool_functions;

typedef struct td_pool_kernels {
    const td_pool_functions *of[TD_DTYPE_COUNT]; /* NULL: not for this dtype */
} td_pool_kernels;

#endif
