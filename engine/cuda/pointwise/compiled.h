/* compiled.h: pointwise programs with kernels that were compiled at run time. */
#ifndef TD_CUDA_POINTWISE_COMPILED_H
#define TD_CUDA_POINTWISE_COMPILED_H

#include "engine/cuda/pointwise/source.h"

/* The kernel, for cudaLaunchKernel, of a program in a form on a device, or NULL where there is none
 * (yet): then it is to be interpreted. `elements`: how many it is to run over, which says when
 * compiling is worth it. */
const void *td_cuda_kernel(int device, const td_cu_code *code, const td_cuda_form *form,
                           int64_t elements);

/* Ends the thread that compiles; the next program that is worth it has another. */
void td_cuda_stop_compiling(void);

/* Run a program by its own kernel; cudaErrorNotSupported where there is none, and then nothing has
 * been done. */
cudaError_t td_cuda_compiled_flat(int device, const td_cu_code *code, const td_cu_flat *flat,
                                  cudaStream_t stream);
cudaError_t td_cuda_compiled_walk(int device, const td_cu_code *code, const td_cu_walk *walk,
                                  cudaStream_t stream);

#endif
