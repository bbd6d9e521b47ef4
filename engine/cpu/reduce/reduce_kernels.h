/* reduce_kernels.h: inner loops of reductions. */
#ifndef TD_CPU_REDUCE_REDUCE_KERNELS_H
#define TD_CPU_REDUCE_REDUCE_KERNELS_H

#include "engine/ops/plan/plan.h"

/* What an output is while it grows: f for floating inputs, i for integers and bool. Float32 is
 * summed in float32 over some thousand elements at a time and carried on in f. */
typedef union td_accumulator {
    double f;
    int64_t i;
} td_accumulator;

/* Folds that no operator asks for, beside the reducers. */
enum {
    TD_FOLD_SHIFTED = TD_REDUCERS, /* sum of x - center */
    TD_FOLDS
};

/* Columns that one call of a columns function may have. */
enum { TD_REDUCE_WIDTH = 512 };

/* acc[r] takes in x[r * row_stride + k * stride] for k < n; r < rows. Strides in elements, n > 0.
 * center[r] is read by TD_REDUCE_CENTERED and the folds alone and has the element type's precision.
 */
typedef void (*td_reduce_rows_fn)(td_accumulator *acc, const void *x, int64_t rows,
                                  int64_t row_stride, int64_t n, int64_t stride,
                                  const double *center);

/* acc[c] takes in x[r * row_stride + c] for r < rows; c < columns <= TD_REDUCE_WIDTH. What a
 * column gives does not depend on the columns beside it, but on whether there are more than a few
 * between which nothing lies. */
typedef void (*td_reduce_columns_fn)(td_accumulator *acc, const void *x, int64_t rows,
                                     int64_t row_stride, int64_t columns, const double *center);

/* Index of the first largest (smallest) of x[k * stride], k < n, n > 0; the first NaN where there
 * is one. */
typedef int64_t (*td_reduce_find_fn)(const void *x, int64_t n, int64_t stride);

/* The same for each column: index[c] over the rows. 0 < rows <= INT32_MAX. */
typedef void (*td_reduce_find_columns_fn)(int64_t *index, const void *x, int64_t rows,
                                          int64_t row_stride, int64_t columns);

/* x[i] = |x[i]|^power, contiguous */
typedef void (*td_abs_pow_fn)(void *x, int64_t n, double power);

/* By dtype; NULL: not for this one. */
typedef struct td_reduce_kernels {
    td_reduce_rows_fn rows[TD_FOLDS][TD_DTYPE_COUNT]; /* POWER_SUM: abs_pow, then SUM */
    td_reduce_columns_fn columns[TD_FOLDS][TD_DTYPE_COUNT];
    td_reduce_find_fn find_max[TD_DTYPE_COUNT], find_min[TD_DTYPE_COUNT];
    td_reduce_find_columns_fn find_max_columns[TD_DTYPE_COUNT], find_min_columns[TD_DTYPE_COUNT];
    td_abs_pow_fn abs_pow[TD_DTYPE_COUNT];
} td_reduce_kernels;

#endif
