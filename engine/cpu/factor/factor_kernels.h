/* factor_kernels.h: inner loops of decompositions of matrices. */
#ifndef TD_CPU_FACTOR_FACTOR_KERNELS_H
#define TD_CPU_FACTOR_FACTOR_KERNELS_H

#include "engine/core/dtype.h"

#include <stdint.h>

enum { TD_FACTOR_COLUMNS = 16 }; /* that are decomposed at a time, at most */
enum { TD_FACTOR_FEW = 8 };      /* rows of matrices that are done side by side, at most */
enum { TD_FACTOR_LANES = 16 };   /* of them, at most */

/* The LU decomposition with exchanged rows of `count` columns of m elements, which lie `apart`
 * elements from each other: whole vectors, of which those beyond m hold any numbers. places[k] is
 * the row, from 0, that changed places with row k in step k. Returns the first step, from 1, that
 * found nothing but zeros, or 0. */
typedef int (*td_factor_lu_fn)(void *a, int64_t m, int64_t count, int64_t apart, int *places);

/* The upper triangle of a (n x n, n <= TD_FACTOR_COLUMNS, rows `row` elements apart; nothing else
 * of it is read or written) becomes u of transposed u times u. Returns the first step, from 1,
 * whose pivot isn't positive, or 0. */
typedef int (*td_factor_cholesky_fn)(void *a, int64_t n, int64_t row);

/* to[r * to_row + c] = -from[r * from_row + c] */
typedef void (*td_factor_negate_fn)(void *to, int64_t to_row, const void *from, int64_t from_row,
                                    int64_t rows, int64_t columns);

/* Systems side by side, as many as `lanes` says, n <= TD_FACTOR_FEW: element (r, c) of matrix i is
 * at [(r * columns + c) * lanes + i]. b (n x k) becomes a^-1 b, a's diagonal the pivots, with the
 * other sign where rows changed places. first[i]: the first step, from 1, that found nothing but
 * zeros, or 0. What a system gives does not depend on those beside it. */
typedef void (*td_factor_solve_few_fn)(void *a, void *b, int64_t n, int64_t k, int *first);

/* The same of the upper triangles of matrices, as above; of the others something is left. */
typedef void (*td_factor_cholesky_few_fn)(void *a, int64_t n, int *first);

/* By dtype, float32 and float64. */
typedef struct td_factor_kernels {
    td_factor_lu_fn lu[TD_DTYPE_COUNT];
    td_factor_cholesky_fn cholesky[TD_DTYPE_COUNT];
    td_factor_negate_fn negate[TD_DTYPE_COUNT];
    td_factor_solve_few_fn solve_few[TD_DTYPE_COUNT];
    td_factor_cholesky_few_fn cholesky_few[TD_DTYPE_COUNT];
    int lanes[TD_DTYPE_COUNT];
} td_factor_kernels;

#endif
