/* dnn.h: cuDNN where it is installed. */
#ifndef TD_CUDA_SPATIAL_DNN_H
#define TD_CUDA_SPATIAL_DNN_H

#include "engine/cuda/cuda.h"

/* Does the library do this convolution? Then it is queued, and *done set; else nothing has happened
 * that counts. */
td_status td_cuda_dnn_convolution(const td_convolution_plan *p, cudaStream_t s,
                                  bool *done) TD_MUST_CHECK;

#endif
