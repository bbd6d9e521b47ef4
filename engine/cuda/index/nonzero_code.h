/* nonzero_code.h: what the kernels of nonzero.cu are launched with. */
#ifndef TD_CUDA_INDEX_NONZERO_CODE_H
#define TD_CUDA_INDEX_NONZERO_CODE_H

#include "engine/cuda/runtime/dims.h"

#include <cuda_runtime_api.h>

enum { TD_CU_NONZERO_TILE = 4096 }; /* elements of a block */

typedef struct td_cu_nonzero {
    const void *x;
    int itemsize, is_float; /* a float's sign says nothing */
    uint32_t n, tiles;
    td_cu_dims dims;  /* of x's elements in row-major order */
    uint32_t *counts; /* tiles + 1: of each tile; then of all before it, and of all */
} td_cu_nonzero;

#ifdef __cplusplus
extern "C" {
#endif
/* Fills in counts. */
cudaError_t td_cu_nonzero_count(const td_cu_nonzero *z, cudaStream_t stream);
cudaError_t td_cu_nonzero_total(const td_cu_nonzero *z, int64_t *out, cudaStream_t stream);
/* The places of the first `rows`, along each of ndim dims of these sizes, a column for each dim. */
cudaError_t td_cu_nonzero_places(const td_cu_nonzero *z, int ndim, const int64_t *sizes,
                                 int64_t rows, int64_t *out, cudaStream_t stream);
#ifdef __cplusplus
}
#endif
#endif
