/* softmax_code.h: what the kernels of softmax and of cross entropy are launched with. */
#ifndef TD_CUDA_REDUCE_SOFTMAX_CODE_H
#define TD_CUDA_REDUCE_SOFTMAX_CODE_H

#include "engine/cuda/reduce/reduction_code.h"
#include "engine/cuda/runtime/report.h"

/* Row-major elements seen as outer x n x inner; a line is one of the outer * inner runs along n. */
typedef struct td_cu_lines {
    int64_t outer, n, inner;
} td_cu_lines;

typedef struct td_cu_softmax {
    td_cu_lines lines;
    int dtype;
    const void *x, *g; /* g: NULL in the forward direction, where x is the input; else x is y */
    void *out;
    bool log;
} td_cu_softmax;

/* What stands for a line (lse, weights, total) is wide: float, or double of float64. */
typedef struct td_cu_cross_entropy {
    td_cu_lines lines;
    int dtype;
    const void *x;
    void *lse; /* NULL: 0 */
    const int64_t *classes;
    const void *weights;
    void *loss, *total;
    bool each, mean; /* a loss for each line; over the weights' sum */
} td_cu_cross_entropy;

typedef struct td_cu_cross_entropy_backward {
    td_cu_lines lines;
    int dtype;
    /* x and lse: NULL where nothing of softmax is wanted; total: where nothing is divided. */
    const void *x, *g, *lse, *weights, *total;
    const int64_t *classes;
    void *out;
    bool each; /* a g for each line */
} td_cu_cross_entropy_backward;

typedef struct td_cu_class_weights {
    int64_t n, nclasses, ignored;
    const int64_t *target;
    const void *weight; /* NULL: all 1 */
    void *weights;
    int64_t *classes;
    int dtype; /* of weight and weights */
} td_cu_class_weights;

#ifdef __cplusplus
extern "C" {
#endif
/* All of these need at least one line; softmax and the gradient at least one element. */
cudaError_t td_cu_run_softmax(const td_cu_softmax *s, cudaStream_t stream);
cudaError_t td_cu_run_lse(const td_cu_cross_entropy *s, cudaStream_t stream);
/* The losses and the weights' sum; a sum of nothing too. */
cudaError_t td_cu_run_pick(const td_cu_reduction *s, const td_cu_cross_entropy *c, void *partial,
                           cudaStream_t stream);
/* A finding is a target, counted from 1 where it is not negative, and its place, counted from 1. */
cudaError_t td_cu_run_class_weights(const td_cu_class_weights *c, td_cu_report report,
                                    cudaStream_t stream);
cudaError_t td_cu_run_cross_entropy_backward(const td_cu_cross_entropy_backward *s,
                                             cudaStream_t stream);
#ifdef __cplusplus
}
#endif
#endif
