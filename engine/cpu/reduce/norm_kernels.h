/* norm_kernels.h: inner loops of the normalisations: moments, sums against gradients, and the
 * affine maps that apply them. */
#ifndef TD_CPU_REDUCE_NORM_KERNELS_H
#define TD_CPU_REDUCE_NORM_KERNELS_H

#include "engine/core/dtype.h"

/* Columns that one call of a columns function may have. */
enum { TD_NORM_WIDTH = 64 };

/* Of short rows that lie as columns of a tile, TD_NORM_WIDTH elements from one element of a row to
 * the next. */
enum { TD_NORM_SHORT = 32 }; /* elements of a row at most */
typedef struct td_norm_tile {
    int64_t n; /* elements of a row */
    double eps;
    bool centered;
    const void *weight, *bias; /* n of C each, or NULL */
} td_norm_tile;

/* The functions of one element type T. What stands for a row or a column (weights, biases, means,
 * factors) is of the wide type C (td_dtype_wide). Rows are contiguous. Sums are taken in C over a
 * part that stays in the cache and go on in double; the moments of parts are taken from their own
 * mean and put together by Chan's formula. Long rows leave early when an interrupt is requested.
 * Results may be written over inputs. */
typedef struct td_norm_functions {
    /* Mean and sum of squared deviations of a row; NaN and 0 for n = 0. */
    void (*moments)(const void *x, int64_t n, double moments[2]);
    /* Sum of squares. */
    double (*squares)(const void *x, int64_t n);
    /* Sums of g w and of g w (x - mean); w may be NULL (1). */
    void (*sums)(const void *g, const void *x, const void *w, int64_t n, double mean,
                 double sums[2]);
    /* The same two sums, w NULL, for each of `width` columns, added to sums[2 * c ..]. */
    void (*column_sums)(const void *g, const void *x, int64_t rows, int64_t stride, int64_t width,
                        const void *mean, double *sums);
    /* Moments of each of `width` columns: moments[2 * c ..]. rows > 0. */
    void (*column_moments)(const void *x, int64_t rows, int64_t stride, int64_t width,
                           double *moments);
    /* out = (x - mean) * factor * w + b; w and b may be NULL. */
    void (*scale)(void *out, const void *x, const void *w, const void *b, int64_t n, double mean,
                  double factor);
    /* All TD_NORM_WIDTH rows of a tile normalised where they are: x = (x - mean) * rstd * w + b,
     * and as many means (0 unless `centered`) and rstd, of C. */
    void (*tile)(void *x, const td_norm_tile *tile, void *mean, void *rstd);
    /* out = g w k0 + (x - k1) k2 + k3; w may be NULL (1), and g or x, which then adds nothing. */
    void (*back)(void *out, const void *g, const void *x, const void *w, int64_t n,
                 const double k[4]);
    /* dw += g (x - mean) factor, db += g, both of C; NULL: not wanted. */
    void (*gather)(void *dw, void *db, const void *g, const void *x, int64_t n, double mean,
                   double factor);
    /* out = g k0 + (x - k1) k2 + k3 with factors of C for each of n elements; g, x or factors may
     * be NULL (0). */
    void (*map)(void *out, const void *g, const void *x, int64_t n, const void *const k[4]);
} td_norm_functions;

typedef struct td_norm_kernels {
    const td_norm_functions *of[TD_DTYPE_COUNT]; /* NULL: not for this dtype */
} td_norm_kernels;

#endif
