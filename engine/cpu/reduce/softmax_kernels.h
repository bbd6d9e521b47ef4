/* softmax_kernels.h: inner loops of softmax, its logarithm, their gradients and cross entropy. */
#ifndef TD_CPU_REDUCE_SOFTMAX_KERNELS_H
#define TD_CPU_REDUCE_SOFTMAX_KERNELS_H

#include "engine/core/dtype.h"

/* Columns that one call of a columns function may have. */
enum { TD_SOFTMAX_WIDTH = 64 };

/* Lines of scores: outer x inner of them; those of an outer one lie side by side. Steps are
 * elements from one outer one to the next, and from one class to the next. */
typedef struct td_class_lines {
    int64_t outer, inner, outer_step, class_step;
} td_class_lines;

/* The functions of one element type. What stands for a line (lse, weights, scales) is of the wide
 * type (td_dtype_wide). Rows are contiguous and follow one another; columns lie side by side and
 * `stride` elements separate the n elements of one. `log` asks for the logarithm. Results may be
 * written over inputs. n > 0. All leave early when an interrupt is requested. */
typedef struct td_softmax_functions {
    void (*rows)(void *out, const void *x, int64_t rows, int64_t n, bool log);
    void (*columns)(void *out, const void *x, int64_t n, int64_t stride, int64_t columns, bool log);

    /* From the gradient g of the result y: y (g - sum(g y)), or g - exp(y) sum(g) for the log. */
    void (*backward_rows)(void *out, const void *g, const void *y, int64_t rows, int64_t n,
                          bool log);
    void (*backward_columns)(void *out, const void *g, const void *y, int64_t n, int64_t stride,
                             int64_t columns, bool log);

    /* lse[r] = log(sum(exp(x))) of each row or column. */
    void (*lse_rows)(void *lse, const void *x, int64_t rows, int64_t n);
    void (*lse_columns)(void *lse, const void *x, int64_t n, int64_t stride, int64_t columns);

    /* out = exp(x - lse) * scale with one lse and scale per row or column; 0 where scale is 0. */
    void (*scaled_rows)(void *out, const void *x, const void *lse, const void *scale, int64_t rows,
                        int64_t n);
    void (*scaled_columns)(void *out, const void *x, const void *lse, const void *scale, int64_t n,
                           int64_t stride, int64_t columns);

    /* Of lines, with a class, a weight and an lse (NULL: 0) for each: returns the sum of weight *
     * (lse - x at the class), and of the weights in *total; the terms go to `losses` unless it is
     * NULL. */
    double (*pick)(void *losses, double *total, const void *x, const void *lse, const void *weights,
                   const int64_t *classes, const td_class_lines *lines);
    /* scale = weight * g / divisor per line, with one g for all or for each; 0 where weight is. */
    void (*scales)(void *scale, const void *weights, const void *g, int64_t lines, bool each,
                   double divisor);
    /* out at the class of each line -= scale. */
    void (*subtract)(void *out, const void *scale, const int64_t *classes, int64_t outer, int64_t n,
                     int64_t inner);
} td_softmax_functions;

typedef struct td_softmax_kernels {
    const td_softmax_functions *of[TD_DTYPE_COUNT]; /* NULL: not for this dtype */
} td_softmax_kernels;

#endif
