/* rounding.cuh: floats to integers by the rule of quantized tensors (ops/quantized/README.md), the
 * same bits as the CPU's. Files that include this are compiled without fused steps. */
#ifndef TD_CUDA_QUANTIZED_ROUNDING_CUH
#define TD_CUDA_QUANTIZED_ROUNDING_CUH

#include <cuda_runtime.h>

/* v between bounds that are whole numbers, rounded half to even; NaN gives the lower bound. */
__device__ static inline int td_round_between(float v, float low, float high) {
    v = v >= low ? v : low;
    v = v <= high ? v : high;
    return (int)rintf(v);
}

#endif
