/* dims.h: a shape with strides, as kernels walk it. */
#ifndef TD_CUDA_RUNTIME_DIMS_H
#define TD_CUDA_RUNTIME_DIMS_H

#include <stdint.h>

enum { TD_CU_WALKED = 16 }; /* dims at most */

/* In elements. Dims over which the strides run on are one. */
typedef struct td_cu_dims {
    int ndim;
    int64_t sizes[TD_CU_WALKED], strides[TD_CU_WALKED];
} td_cu_dims;

/* Dims of size 1 are left out. */
static inline void td_cu_dims_set(td_cu_dims *to, int ndim, const int64_t *sizes,
                                  const int64_t *strides) {
    int n = 0;
    for (int d = 0; d < ndim; d++) {
        if (sizes[d] == 1)
            continue;
        if (n > 0 && to->strides[n - 1] == strides[d] * sizes[d]) {
            to->sizes[n - 1] *= sizes[d];
        } else {
            to->sizes[n++] = sizes[d];
        }
        to->strides[n - 1] = strides[d];
    }
    to->ndim = n;
}

#ifdef __cplusplus
#include <cuda_runtime.h>

/* a / b, and what is left; quicker for what fits into 32 bits, which nearly everything does. */
__device__ static inline long long td_cu_divide(long long a, long long b, long long *rest) {
    long long q = ((a | b) >> 32) == 0 ? (long long)((unsigned)a / (unsigned)b) : a / b;
    *rest = a - q * b;
    return q;
}

/* Where element `at` in row-major order lies. */
__device__ static inline long long td_cu_offset(const td_cu_dims &dims, long long at) {
    long long offset = 0, rest;
    for (int d = dims.ndim - 1; d > 0; d--) {
        at = td_cu_divide(at, dims.sizes[d], &rest);
        offset += rest * dims.strides[d];
    }
    return dims.ndim > 0 ? offset + at * dims.strides[0] : 0;
}
#endif
#endif
