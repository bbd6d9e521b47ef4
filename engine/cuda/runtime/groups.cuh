/* groups.cuh: threads that work on one thing and put their results together: a power of two of
 * neighbours up to a warp, or a whole block, of any number of warps. The order follows from the
 * threads' numbers alone. */
#ifndef TD_CUDA_RUNTIME_GROUPS_CUH
#define TD_CUDA_RUNTIME_GROUPS_CUH

#include "engine/cuda/runtime/vector.cuh"

#include <cuda_runtime.h>
#include <stdint.h>

enum {
    TD_GROUP_BLOCK = 256, /* threads of the blocks that are cut into groups */
    TD_GROUP_WARPS = TD_GROUP_BLOCK / 32
};

/* Two or three numbers that are summed side by side. */
struct td_cu_pair {
    double a, b;
};
struct td_cu_three {
    double a, b, c;
};

template <typename A> __device__ static inline A td_shuffle_xor(A mine, int by) {
    return __shfl_xor_sync(0xFFFFFFFFu, mine, by);
}
__device__ static inline td_cu_pair td_shuffle_xor(td_cu_pair mine, int by) {
    td_cu_pair r = {td_shuffle_xor(mine.a, by), td_shuffle_xor(mine.b, by)};
    return r;
}
__device__ static inline td_cu_three td_shuffle_xor(td_cu_three mine, int by) {
    td_cu_three r = {td_shuffle_xor(mine.a, by), td_shuffle_xor(mine.b, by),
                     td_shuffle_xor(mine.c, by)};
    return r;
}

/* What all lanes of a group have, put together by f.join, which takes its arguments in either
 * order; every lane gets it. All threads of the block come here; `shared` has room for its warps. */
template <typename A, typename F>
__device__ static A td_group_fold(const F &f, A mine, int lanes, A *shared) {
    for (int by = (lanes < 32 ? lanes : 32) / 2; by > 0; by /= 2)
        mine = f.join(mine, td_shuffle_xor(mine, by));
    if (lanes <= 32)
        return mine;
    __syncthreads(); /* what an earlier call left there has been read */
    if (threadIdx.x % 32 == 0)
        shared[threadIdx.x / 32] = mine;
    __syncthreads();
    A all = shared[0];
    for (int k = 1; k < lanes / 32; k++)
        all = f.join(all, shared[k]);
    return all;
}

/* Sums of numbers, for td_group_fold. */
struct td_adder {
    __device__ double join(double a, double b) const { return a + b; }
    __device__ long long join(long long a, long long b) const { return a + b; }
    __device__ td_cu_pair join(td_cu_pair a, td_cu_pair b) const {
        td_cu_pair r = {a.a + b.a, a.b + b.b};
        return r;
    }
    __device__ td_cu_three join(td_cu_three a, td_cu_three b) const {
        td_cu_three r = {a.a + b.a, a.b + b.b, a.c + b.c};
        return r;
    }
};

/* 32-bit division is several times quicker. */
__device__ static inline long long td_divide(long long a, long long b) {
    return ((a | b) >> 32) == 0 ? (long long)((unsigned int)a / (unsigned int)b) : a / b;
}

/* ---- an element for each thread, and the next after so many as there are threads ---- */

static inline unsigned int td_blocks_of(int64_t n) {
    const int64_t most = 1 << 20;
    int64_t blocks = (n + TD_GROUP_BLOCK - 1) / TD_GROUP_BLOCK;
    return (unsigned int)(blocks < most ? blocks : most);
}
__device__ static inline long long td_my_first() {
    return (long long)blockIdx.x * TD_GROUP_BLOCK + threadIdx.x;
}
__device__ static inline long long td_all_threads() {
    return (long long)gridDim.x * TD_GROUP_BLOCK;
}

#endif
