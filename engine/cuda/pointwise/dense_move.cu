/* dense_move.cu: dense elements from one dtype to another, copies, and one number everywhere. */
#include "engine/cuda/pointwise/dense.cuh"
#include "engine/ops/language/program.h"

struct td_row_copy {
    template <typename T> __device__ static inline T of(T a, T, T) {
        return a;
    }
};

template <typename M> static cudaError_t convert(const td_cu_dense *d, cudaStream_t stream) {
    TD_BY_DTYPE(d->to, R, return td_run_dense<td_row_copy, 1, false, M, M, R>(d, stream))
    return cudaErrorNotSupported;
}

static int size_of(int dtype) {
    TD_BY_DTYPE(dtype, T, return (int)sizeof(T))
    return 0;
}

/* The bits as they are. */
static cudaError_t copy(const td_cu_dense *d, cudaStream_t stream) {
    TD_BY_SIZE(size_of(d->to), M,
               return td_run_dense<td_row_copy, 1, false, M, M, M>(d, stream))
    return cudaErrorNotSupported;
}

cudaError_t td_cu_dense_move(const td_cu_dense *d, cudaStream_t stream) {
    if (d->primitive != TD_PW_copy)
        return cudaErrorNotSupported;
    if (d->memory == d->to && d->kinds[0] == TD_CU_DENSE)
        return copy(d, stream);
    TD_BY_DTYPE(d->memory, M, return convert<M>(d, stream))
    return cudaErrorNotSupported;
}
