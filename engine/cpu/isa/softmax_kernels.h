/* softmax_kernels.h: inner loops of softmax, its logarithm, their gradients and cross entropy. */
#ifndef TD_CPU_ISA_SOFTMAX_KERNELS_H
#define TD_CPU_ISA_SOFTMAX_KERNELS_H

#include "engine/core/dtype.h"

/* Columns that one call of a columns function may have. */
enum { TD_SOFTMAX_WIDTH = 64 };

/* The functions of one element type, T (float or double). Rows are contiguous and follow one
 * another; columns lie side by side and `stride` elements separate the n elements of one. `log`
 * asks for the logarithm. Results may be written over inputs. n > 0. */
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
} td_softmax_functions;

typedef struct td_softmax_kernels {
    const td_softmax_functions *f32, *f64;
} td_softmax_kernels;

#endif
