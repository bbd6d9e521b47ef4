/* scan_kernels.h: a step of running extremes, for many lines side by side. */
#ifndef TD_CPU_ISA_SCAN_KERNELS_H
#define TD_CPU_ISA_SCAN_KERNELS_H

#include "engine/core/dtype.h"

/* Of n lines the results (out, index) at place `at` from those before (last, place) and the lines'
 * elements there (x): equal elements and NaN take over, nothing takes over from NaN. */
typedef void (*td_extremes_step)(void *out, int64_t *index, const void *last, const int64_t *place,
                                 const void *x, int64_t at, int64_t n);

typedef struct td_scan_kernels {
    td_extremes_step largest[TD_DTYPE_COUNT], smallest[TD_DTYPE_COUNT];
} td_scan_kernels;

#endif
