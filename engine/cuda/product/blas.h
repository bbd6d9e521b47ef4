/* blas.h: cuBLASLt where it is installed. */
#ifndef TD_CUDA_PRODUCT_BLAS_H
#define TD_CUDA_PRODUCT_BLAS_H

#include "engine/cuda/cuda.h"

/* Does the library do this product? Then it is queued, and *done set; else nothing has happened. */
td_status td_cuda_blas_product(const td_product_plan *p, cudaStream_t s, bool *done) TD_MUST_CHECK;

#endif
