/* scan_kernels.h: running extremes: a step of many lines side by side, and steps of a few; running
 * sums of integers. */
#ifndef TD_CPU_REDUCE_SCAN_KERNELS_H
#define TD_CPU_REDUCE_SCAN_KERNELS_H

#include "engine/core/dtype.h"

/* Of n lines the results (out, index) at place `at` from those before (last, place) and the lines'
 * elements there (x): equal elements and NaN take over, nothing takes over from NaN. */
typedef void (*td_extremes_step)(void *out, int64_t *index, const void *last, const int64_t *place,
                                 const void *x, int64_t at, int64_t n);

/* The steps of so many rows, from place `at` on, of at most TD_SCAN_FEW lines side by side: rows
 * lie one behind the other, and the results of the one before, unless `at` is 0, in front of
 * theirs. */
enum { TD_SCAN_FEW = 8 };
typedef void (*td_extremes_few)(void *out, int64_t *index, const void *x, int64_t at, int64_t rows,
                                int64_t lines);

typedef struct td_scan_kernels {
    td_extremes_step largest[TD_DTYPE_COUNT], smallest[TD_DTYPE_COUNT];
    /* out[k] = before + x[0] + ... + x[k] for each k < n: returns the last, or `before`. */
    int64_t (*sums)(int64_t *restrict out, const int64_t *restrict x, int64_t n, int64_t before);
    td_extremes_few largest_few[TD_DTYPE_COUNT], smallest_few[TD_DTYPE_COUNT];
} td_scan_kernels;

#endif
