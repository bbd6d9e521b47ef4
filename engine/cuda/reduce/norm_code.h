/* norm_code.h: what the kernels of normalisation, by rows and by channels, are launched with. */
#ifndef TD_CUDA_REDUCE_NORM_CODE_H
#define TD_CUDA_REDUCE_NORM_CODE_H

#include "engine/cuda/reduce/reduction_code.h"

/* batch x groups rows of per x inner elements, row-major (td_norm_shape of ops/plan/plan.h). What
 * is said of rows, weights and channels is wide: float, or double of float64. */
typedef struct td_cu_norm {
    int64_t batch, groups, per, inner;
    double eps;
    bool centered;
    int dtype;
    const void *x, *g;         /* g: of the backward direction */
    const void *weight, *bias; /* NULL: 1 and 0 */
    void *out, *mean, *rstd;   /* mean and rstd: read by the backward direction */
    void *dweight, *dbias;     /* what td_cu_run_norm_weights writes */
} td_cu_norm;

typedef struct td_cu_channels {
    int dtype;
    double eps;
    const void *x, *g, *mean, *rstd; /* g, and those behind it: of the sums with g */
    void *first, *second, *third;    /* third: of the moments */
} td_cu_channels;

typedef struct td_cu_channel_map {
    int dtype;
    int64_t numel, channels, inner; /* inner: elements of a channel side by side */
    const void *g, *x, *k[5];
    void *out;
} td_cu_channel_map;

#ifdef __cplusplus
extern "C" {
#endif
/* All of these need a row, a channel or an element to work on. */
cudaError_t td_cu_run_norm(const td_cu_norm *n, cudaStream_t stream);
cudaError_t td_cu_run_norm_backward(const td_cu_norm *n, cudaStream_t stream);
/* The gradients of weight and bias: outputs are the weights. */
cudaError_t td_cu_run_norm_weights(const td_cu_reduction *s, const td_cu_norm *n, void *partial,
                                   cudaStream_t stream);
cudaError_t td_cu_run_channel_sums(const td_cu_reduction *s, const td_cu_channels *c, void *partial,
                                   cudaStream_t stream);
cudaError_t td_cu_run_channel_map(const td_cu_channel_map *m, cudaStream_t stream);
#ifdef __cplusplus
}
#endif
#endif
