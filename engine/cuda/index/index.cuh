/* index.cuh: what kernels of indexing share: checked indices, and two elements as one. */
#ifndef TD_CUDA_INDEX_INDEX_CUH
#define TD_CUDA_INDEX_INDEX_CUH

#include "engine/cuda/runtime/elements.cuh"
#include "engine/cuda/index/index_code.h"
#include "engine/cuda/runtime/launch.cuh"

enum { TD_INDEX_BLOCK = 256 };

__device__ static inline long long td_thread(void) {
    return (long long)blockIdx.x * TD_INDEX_BLOCK + threadIdx.x;
}

static inline unsigned td_index_blocks(long long n) {
    return (unsigned)((n + TD_INDEX_BLOCK - 1) / TD_INDEX_BLOCK);
}

/* An index from 0, or -1 when it leads nowhere, which is reported. Messages count from 1. */
__device__ static inline long long td_checked(long long index, long long size,
                                              const td_cu_report &report) {
    long long i = index < 0 ? index + size : index;
    if (i >= 0 && i < size)
        return i;
    td_cu_found(report, index < 0 ? index : index + 1, size);
    return -1;
}

/* Where the row lies that place b picks, and its key; false: nowhere. */
__device__ static inline bool td_pick(const td_cu_picks &p, long long b, long long *offset,
                                      long long *key) {
    *offset = *key = 0;
    for (int k = 0; k < p.n; k++) {
        long long i = td_checked(p.index[k][b], p.sizes[k], p.report[k]);
        if (i < 0)
            return false;
        *offset += i * p.strides[k];
        *key = *key * p.sizes[k] + i;
    }
    return true;
}

template <typename W> __device__ static inline W td_combined(int how, W a, W b) {
    switch (how) {
    case TD_CU_ADD: return a + b;
    case TD_CU_MUL: return a * b;
    case TD_CU_MAX: return a != a || a > b ? a : b;
    case TD_CU_MIN: return a != a || a < b ? a : b;
    case TD_CU_PUT: break;
    }
    return b;
}

/* Rounded as it is stored. */
template <typename T> __device__ static inline td_wide<T> td_rounded(td_wide<T> v) {
    return td_widen(td_narrow<T>::of(v));
}
#endif
