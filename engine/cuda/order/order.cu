/* order.cu: orders numbers by keys of 32 bits, a digit of 8 bits at a time, the lowest first. A
 * tile's digits are counted, the counts added up, and the numbers moved to where they belong; each
 * warp takes a stretch of its tile in order, so that equal keys stay as they stand. */
#include "engine/cuda/order/order_code.h"

#include "engine/cuda/limits.h"
#include "engine/cuda/runtime/launch.cuh"
#include "engine/cuda/order/order.cuh"

enum { TD_ORDER_STRETCH = TD_CU_ORDER_TILE / TD_ORDER_WARPS }; /* keys of a warp */

/* ---- sums of what stands before ---- */

__global__ void td_sum_counts_kernel(uint32_t *counts, unsigned n, uint32_t *totals) {
    __shared__ unsigned shared[TD_ORDER_WARPS];
    uint32_t *row = counts + (size_t)blockIdx.x * n;
    unsigned before = 0, all;
    for (unsigned begin = 0; begin < n; begin += TD_ORDER_BLOCK) {
        unsigned k = begin + threadIdx.x;
        unsigned sum = td_sum_before(k < n ? row[k] : 0, shared, &all);
        if (k < n)
            row[k] = before + sum;
        before += all;
    }
    if (threadIdx.x == 0)
        totals[blockIdx.x] = before;
}

/* Of short rows, each by one thread. */
__global__ void td_sum_short_counts_kernel(uint32_t *counts, unsigned rows, unsigned n,
                                           uint32_t *totals) {
    unsigned row = blockIdx.x * TD_ORDER_BLOCK + threadIdx.x, before = 0;
    if (row >= rows)
        return;
    for (unsigned k = 0; k < n; k++) {
        unsigned count = counts[(size_t)row * n + k];
        counts[(size_t)row * n + k] = before;
        before += count;
    }
    totals[row] = before;
}

cudaError_t td_cu_sum_counts(uint32_t *counts, uint32_t rows, uint32_t n, uint32_t *totals,
                             cudaStream_t stream) {
    if (n <= TD_LIMIT(ORDER_COUNTS))
        return TD_LAUNCH(td_sum_short_counts_kernel, (rows + TD_ORDER_BLOCK - 1) / TD_ORDER_BLOCK,
                         TD_ORDER_BLOCK, stream, counts, rows, n, totals);
    return TD_LAUNCH_TOGETHER(td_sum_counts_kernel, rows, TD_ORDER_BLOCK, stream, counts, n,
                              totals);
}

/* ---- digits ---- */

__global__ void td_count_digits_kernel(const uint32_t *keys, unsigned n, int shift,
                                       uint32_t *counts) {
    __shared__ unsigned digits[TD_CU_DIGITS];
    digits[threadIdx.x] = 0;
    __syncthreads();
    unsigned begin = blockIdx.x * TD_CU_ORDER_TILE;
    for (unsigned k = threadIdx.x; k < TD_CU_ORDER_TILE && begin + k < n; k += TD_ORDER_BLOCK)
        atomicAdd(&digits[keys[begin + k] >> shift & (TD_CU_DIGITS - 1)], 1u);
    __syncthreads();
    counts[threadIdx.x * gridDim.x + blockIdx.x] = digits[threadIdx.x];
}

struct td_cu_digit_pass {
    unsigned n;
    int shift;
    const uint32_t *keys, *ranks; /* ranks NULL: 0, 1, 2, ... */
    uint32_t *to_keys, *to_ranks;
    const uint32_t *counts, *totals;
};

/* next[warp][digit]: where the next number with that digit goes. */
__device__ static inline void td_set_next(const td_cu_digit_pass &p,
                                          unsigned (*next)[TD_CU_DIGITS], unsigned *shared) {
    unsigned digit = threadIdx.x, all;
    unsigned at = td_sum_before(p.totals[digit], shared, &all) +
                  p.counts[digit * gridDim.x + blockIdx.x];
    for (int w = 0; w < TD_ORDER_WARPS; w++) {
        unsigned count = next[w][digit];
        next[w][digit] = at;
        at += count;
    }
    __syncthreads();
}

__global__ void td_move_digits_kernel(const td_cu_digit_pass p) {
    __shared__ unsigned next[TD_ORDER_WARPS][TD_CU_DIGITS];
    __shared__ unsigned shared[TD_ORDER_WARPS];
    unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    unsigned begin = blockIdx.x * TD_CU_ORDER_TILE + warp * TD_ORDER_STRETCH;
    for (int w = 0; w < TD_ORDER_WARPS; w++)
        next[w][threadIdx.x] = 0;
    __syncthreads();
    for (unsigned k = lane; k < TD_ORDER_STRETCH && begin + k < p.n; k += 32)
        atomicAdd(&next[warp][p.keys[begin + k] >> p.shift & (TD_CU_DIGITS - 1)], 1u);
    __syncthreads();
    td_set_next(p, next, shared);
    for (unsigned k = lane; k < TD_ORDER_STRETCH; k += 32) {
        bool there = begin + k < p.n;
        unsigned key = there ? p.keys[begin + k] : 0;
        unsigned digit = key >> p.shift & (TD_CU_DIGITS - 1);
        unsigned alike = __match_any_sync(TD_ALL_LANES, there ? digit : (unsigned)TD_CU_DIGITS);
        unsigned before = __popc(alike & ((1u << lane) - 1));
        unsigned at = next[warp][digit] + before;
        __syncwarp();
        if (there && before == 0)
            next[warp][digit] += __popc(alike);
        __syncwarp();
        if (there) {
            p.to_keys[at] = key;
            p.to_ranks[at] = p.ranks ? p.ranks[begin + k] : begin + k;
        }
    }
}

__global__ void td_number_kernel(uint32_t *to, unsigned n) {
    unsigned k = blockIdx.x * TD_ORDER_BLOCK + threadIdx.x;
    if (k < n)
        to[k] = k;
}

cudaError_t td_cu_order(const td_cu_ordering *o, int *at, cudaStream_t stream) {
    unsigned tiles = (o->n + TD_CU_ORDER_TILE - 1) / TD_CU_ORDER_TILE;
    uint32_t *totals = o->counts + (size_t)TD_CU_DIGITS * tiles;
    cudaError_t error = cudaSuccess;
    *at = 0;
    if (o->bits <= 0) /* all keys are one */
        return TD_LAUNCH(td_number_kernel, (o->n + TD_ORDER_BLOCK - 1) / TD_ORDER_BLOCK,
                         TD_ORDER_BLOCK, stream, o->ranks[0], o->n);
    for (int shift = 0; shift < o->bits && error == cudaSuccess; shift += 8, *at ^= 1) {
        td_cu_digit_pass p = {o->n,
                              shift,
                              o->keys[*at],
                              shift ? o->ranks[*at] : NULL,
                              o->keys[*at ^ 1],
                              o->ranks[*at ^ 1],
                              o->counts,
                              totals};
        error = TD_LAUNCH_TOGETHER(td_count_digits_kernel, tiles, TD_ORDER_BLOCK, stream, p.keys,
                                   p.n, shift, o->counts);
        if (error == cudaSuccess)
            error = td_cu_sum_counts(o->counts, TD_CU_DIGITS, tiles, totals, stream);
        if (error == cudaSuccess)
            error = TD_LAUNCH_TOGETHER(td_move_digits_kernel, tiles, TD_ORDER_BLOCK, stream, p);
    }
    return error;
}
