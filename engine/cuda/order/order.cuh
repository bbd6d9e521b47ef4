/* order.cuh: prefix sums over the threads of a block. */
#ifndef TD_CUDA_ORDER_ORDER_CUH
#define TD_CUDA_ORDER_ORDER_CUH

#include <cuda_runtime.h>

#define TD_ALL_LANES 0xffffffffu

enum {
    TD_ORDER_BLOCK = 256,
    TD_ORDER_WARPS = TD_ORDER_BLOCK / 32
};

/* The sum of the numbers of the threads before this one, and of all of the block. `shared` has a
 * number for each warp. */
__device__ static inline unsigned td_sum_before(unsigned mine, unsigned *shared, unsigned *all) {
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, sum = mine;
    for (unsigned by = 1; by < 32; by *= 2) {
        unsigned other = __shfl_up_sync(TD_ALL_LANES, sum, by);
        sum += lane >= by ? other : 0;
    }
    if (lane == 31)
        shared[warp] = sum;
    __syncthreads();
    unsigned before = 0, total = 0;
    for (unsigned w = 0; w < TD_ORDER_WARPS; w++) {
        before += w < warp ? shared[w] : 0;
        total += shared[w];
    }
    __syncthreads();
    *all = total;
    return before + sum - mine;
}
#endif
