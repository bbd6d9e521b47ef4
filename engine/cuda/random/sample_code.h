/* sample_code.h: what the kernels of Poisson numbers and weighted choices are launched with. */
#ifndef TD_CUDA_RANDOM_SAMPLE_CODE_H
#define TD_CUDA_RANDOM_SAMPLE_CODE_H

#include "engine/cuda/runtime/report.h"

#include <cuda_runtime_api.h>
#include <stdint.h>

typedef struct td_cu_poisson {
    double *out;
    const double *means;
    int64_t n;
    uint64_t seed, offset;
    int blocks; /* counters that an element may take */
} td_cu_poisson;

/* rows x n weights, rows x draws places. */
typedef struct td_cu_choice {
    int64_t *out;
    const double *weights;
    double *sums; /* of each row's weights up to each place; NaN at last of what holds no weights */
    int64_t rows, n, draws;
    uint64_t seed, offset, per_row; /* counters */
    td_cu_report no_weight, no_sum;
} td_cu_choice;

#ifdef __cplusplus
extern "C" {
#endif
cudaError_t td_cu_run_poisson(const td_cu_poisson *p, cudaStream_t stream);
/* Fills in the sums, and reports rows that can't be drawn from. */
cudaError_t td_cu_choice_sums(const td_cu_choice *c, cudaStream_t stream);
cudaError_t td_cu_choose(const td_cu_choice *c, cudaStream_t stream);
/* For choices without a place twice: waiting times instead of the sums. */
cudaError_t td_cu_choice_times(const td_cu_choice *c, cudaStream_t stream);
#ifdef __cplusplus
}
#endif
#endif
