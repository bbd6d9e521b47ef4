/* dense.h: programs of one step over dense tensors. */
#ifndef TD_CUDA_POINTWISE_DENSE_H
#define TD_CUDA_POINTWISE_DENSE_H

#include "engine/cuda/pointwise/pointwise_code.h"

/* Launch the kernel that was compiled ahead of time for this program over one list;
 * cudaErrorNotSupported where there is none, and then nothing has been done. */
cudaError_t td_cuda_run_dense(const td_cu_code *code, const td_cu_flat *flat, cudaStream_t stream);

#endif
