/* transpose.h: copies that turn two dims round. */
#ifndef TD_CUDA_POINTWISE_TRANSPOSE_H
#define TD_CUDA_POINTWISE_TRANSPOSE_H

#include "engine/cuda/pointwise/pointwise_code.h"

/* cudaErrorNotSupported: the program is no copy of bits, or reads and writes run along one dim. */
cudaError_t td_cuda_run_transposed(const td_cu_code *code, const td_cu_walk *walk,
                                   cudaStream_t stream);

#endif
