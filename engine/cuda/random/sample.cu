/* sample.cu: Poisson numbers and weighted choices.
 *
 * A seed gives the same bits on every device: arithmetic is draw_math.h's, operation by
 * operation (this file is compiled so that none are merged), and weights are added up one by
 * one. */
#include "engine/cuda/random/sample_code.h"

#include "engine/core/draw_math.h"
#include "engine/cuda/runtime/groups.cuh"
#include "engine/cuda/runtime/launch.cuh"

enum { TD_CHOICE_TILE = 1024 };

/* ---- Poisson numbers ---- */

__global__ void td_poisson_kernel(const __grid_constant__ td_cu_poisson p) {
    for (long long k = td_my_first(); k < p.n; k += td_all_threads())
        p.out[k] = td_draw_poisson(p.means[k], p.seed, p.offset + (uint64_t)k * (uint64_t)p.blocks,
                                   p.blocks);
}

cudaError_t td_cu_run_poisson(const td_cu_poisson *p, cudaStream_t stream) {
    return TD_LAUNCH(td_poisson_kernel, td_blocks_of(p->n), TD_GROUP_BLOCK, stream, *p);
}

/* ---- choices with weights ---- */

__device__ static inline double td_number_at(const td_cu_choice &c, long long row, long long k) {
    uint32_t words[4];
    td_philox_words(c.seed, c.offset + (uint64_t)row * c.per_row + (uint64_t)k / 2, words);
    return td_draw_open(words + 2 * (k % 2));
}

/* A row by a block: all of it read and write, one thread adds. */
__global__ void td_choice_sums_kernel(const __grid_constant__ td_cu_choice c) {
    __shared__ double tile[TD_CHOICE_TILE];
    const double *weights = c.weights + (long long)blockIdx.x * c.n;
    double *sums = c.sums + (long long)blockIdx.x * c.n, sum = 0;
    int bad = 0;
    for (long long begin = 0; begin < c.n; begin += TD_CHOICE_TILE) {
        int n = c.n - begin < TD_CHOICE_TILE ? (int)(c.n - begin) : (int)TD_CHOICE_TILE;
        for (int k = threadIdx.x; k < n; k += TD_GROUP_BLOCK) {
            double weight = weights[begin + k];
            bad |= !(weight >= 0 && weight < (double)INFINITY);
            tile[k] = weight;
        }
        __syncthreads();
        for (int k = 0; threadIdx.x == 0 && k < n; k++)
            tile[k] = sum += tile[k];
        __syncthreads();
        for (int k = threadIdx.x; k < n; k += TD_GROUP_BLOCK)
            sums[begin + k] = tile[k];
        __syncthreads();
    }
    if (__syncthreads_or(bad) && threadIdx.x == 0) {
        td_cu_found(c.no_weight, 0, 0);
        sums[c.n - 1] = (double)NAN;
    }
}

/* After all rows have been looked at, so that what is no weight is told of first. */
__global__ void td_choice_check_kernel(const __grid_constant__ td_cu_choice c) {
    long long row = (long long)blockIdx.x * TD_GROUP_BLOCK + threadIdx.x;
    if (row < c.rows && c.sums[(row + 1) * c.n - 1] <= 0)
        td_cu_found(c.no_sum, 0, 0);
}

cudaError_t td_cu_choice_sums(const td_cu_choice *c, cudaStream_t stream) {
    cudaError_t error = TD_LAUNCH_TOGETHER(td_choice_sums_kernel, (unsigned int)c->rows,
                                           TD_GROUP_BLOCK, stream, *c);
    unsigned int blocks = (unsigned int)((c->rows + TD_GROUP_BLOCK - 1) / TD_GROUP_BLOCK);
    return error != cudaSuccess
               ? error
               : TD_LAUNCH(td_choice_check_kernel, blocks, TD_GROUP_BLOCK, stream, *c);
}

/* The first place of a row whose sum lies above the number. */
__global__ void td_choose_kernel(const __grid_constant__ td_cu_choice c) {
    long long k = (long long)blockIdx.x * TD_GROUP_BLOCK + threadIdx.x;
    for (; k < c.rows * c.draws; k += (long long)gridDim.x * TD_GROUP_BLOCK) {
        long long row = td_divide(k, c.draws), low = 0, high = c.n - 1;
        const double *sums = c.sums + row * c.n;
        double all = sums[high], wanted = td_number_at(c, row, k - row * c.draws) * all;
        while (low < high) { /* weights of 0 at the end */
            long long middle = low + (high - low) / 2;
            if (sums[middle] >= all)
                high = middle;
            else
                low = middle + 1;
        }
        low = 0;
        while (low < high) {
            long long middle = low + (high - low) / 2;
            if (sums[middle] > wanted)
                high = middle;
            else
                low = middle + 1;
        }
        c.out[k] = low;
    }
}

cudaError_t td_cu_choose(const td_cu_choice *c, cudaStream_t stream) {
    return TD_LAUNCH(td_choose_kernel, td_blocks_of(c->rows * c->draws), TD_GROUP_BLOCK, stream,
                     *c);
}

/* Place k waits an exponential time of rate weight[k]. */
__global__ void td_choice_times_kernel(const __grid_constant__ td_cu_choice c) {
    long long k = (long long)blockIdx.x * TD_GROUP_BLOCK + threadIdx.x;
    for (; k < c.rows * c.n; k += (long long)gridDim.x * TD_GROUP_BLOCK) {
        long long row = td_divide(k, c.n);
        double weight = c.weights[k];
        c.sums[k] = weight > 0 ? -td_draw_log(td_number_at(c, row, k - row * c.n)) / weight
                               : (double)INFINITY;
    }
}

cudaError_t td_cu_choice_times(const td_cu_choice *c, cudaStream_t stream) {
    return TD_LAUNCH(td_choice_times_kernel, td_blocks_of(c->rows * c->n), TD_GROUP_BLOCK, stream,
                     *c);
}
