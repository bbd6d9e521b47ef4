/* nonzero.cu: counts what is not 0 tile by tile, and finds places: those of a tile follow those of
 * the tiles before it. */
#include "engine/cuda/index/nonzero_code.h"

#include "engine/cuda/runtime/elements.cuh"
#include "engine/cuda/runtime/launch.cuh"
#include "engine/cuda/order/order.cuh"
#include "engine/cuda/order/order_code.h"

template <typename T>
__device__ static inline bool td_is_nonzero(const td_cu_nonzero &z, unsigned at) {
    T bits = ((const T *)z.x)[td_cu_offset(z.dims, at)];
    return z.is_float ? (T)(bits << 1) != 0 : bits != 0;
}

template <typename T>
__global__ void td_nonzero_count_kernel(const __grid_constant__ td_cu_nonzero z) {
    __shared__ unsigned shared[TD_ORDER_WARPS];
    unsigned begin = blockIdx.x * TD_CU_NONZERO_TILE, mine = 0, all;
    for (unsigned k = threadIdx.x; k < TD_CU_NONZERO_TILE && k < z.n - begin; k += TD_ORDER_BLOCK)
        mine += td_is_nonzero<T>(z, begin + k);
    td_sum_before(mine, shared, &all);
    if (threadIdx.x == 0)
        z.counts[blockIdx.x] = all;
}

cudaError_t td_cu_nonzero_count(const td_cu_nonzero *z, cudaStream_t stream) {
    cudaError_t error = cudaErrorInvalidValue;
    TD_BY_SIZE(z->itemsize, T,
               error = TD_LAUNCH_TOGETHER(td_nonzero_count_kernel<T>, z->tiles, TD_ORDER_BLOCK,
                                          stream, *z))
    return error != cudaSuccess ? error
                                : td_cu_sum_counts(z->counts, 1, z->tiles, z->counts + z->tiles,
                                                   stream);
}

__global__ void td_nonzero_total_kernel(const uint32_t *total, int64_t *out) {
    *out = *total;
}

cudaError_t td_cu_nonzero_total(const td_cu_nonzero *z, int64_t *out, cudaStream_t stream) {
    return TD_LAUNCH(td_nonzero_total_kernel, 1, 1, stream, z->counts + z->tiles, out);
}

struct td_cu_shape {
    int ndim;
    long long sizes[TD_CU_WALKED];
};

template <typename T>
__global__ void td_nonzero_places_kernel(const __grid_constant__ td_cu_nonzero z,
                                         const __grid_constant__ td_cu_shape shape, long long rows,
                                         int64_t *out) {
    __shared__ unsigned shared[TD_ORDER_WARPS];
    unsigned begin = blockIdx.x * TD_CU_NONZERO_TILE, all;
    long long row = z.counts[blockIdx.x];
    for (unsigned k = threadIdx.x; k - threadIdx.x < TD_CU_NONZERO_TILE; k += TD_ORDER_BLOCK) {
        bool found = k < z.n - begin && td_is_nonzero<T>(z, begin + k);
        long long mine = row + td_sum_before(found, shared, &all);
        row += all;
        if (!found || mine >= rows)
            continue;
        long long at = begin + k;
        for (int d = shape.ndim - 1; d >= 0; d--) {
            long long above = at / shape.sizes[d];
            out[d * rows + mine] = at - above * shape.sizes[d];
            at = above;
        }
    }
}

cudaError_t td_cu_nonzero_places(const td_cu_nonzero *z, int ndim, const int64_t *sizes,
                                 int64_t rows, int64_t *out, cudaStream_t stream) {
    td_cu_shape shape;
    shape.ndim = ndim;
    for (int d = 0; d < ndim; d++)
        shape.sizes[d] = sizes[d];
    TD_BY_SIZE(z->itemsize, T,
               return TD_LAUNCH_TOGETHER(td_nonzero_places_kernel<T>, z->tiles, TD_ORDER_BLOCK,
                                         stream, *z, shape, rows, out))
    return cudaErrorInvalidValue;
}
