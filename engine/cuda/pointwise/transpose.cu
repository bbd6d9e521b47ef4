/* transpose.cu: transposes two dims by tiles in shared memory, so that neighbouring threads read
 * and write neighbouring elements. */
#include "engine/cuda/runtime/elements.cuh"
#include "engine/cuda/runtime/launch.cuh"
#include "engine/cuda/pointwise/transpose_code.h"

enum { TD_TURN_BLOCK = 256, TD_TURN_ROWS = TD_TURN_BLOCK / TD_CU_TURN };

__host__ __device__ static inline long long td_turn_tiles(long long n) {
    return (n + TD_CU_TURN - 1) / TD_CU_TURN;
}

template <typename T>
__global__ void td_transpose_kernel(const __grid_constant__ td_cu_transpose t) {
    __shared__ T tile[TD_CU_TURN][TD_CU_TURN + 1]; /* a column more: no two rows in one bank */
    const T *from = static_cast<const T *>(t.in);
    T *to = static_cast<T *>(t.out);
    int x = (int)threadIdx.x % TD_CU_TURN, y = (int)threadIdx.x / TD_CU_TURN;
    long long along_a = td_turn_tiles(t.a), along_b = td_turn_tiles(t.b);
    long long tiles = along_a * along_b * t.batch;
    for (long long k = blockIdx.x; k < tiles; k += gridDim.x) {
        long long a = k % along_a * TD_CU_TURN, b = k / along_a % along_b * TD_CU_TURN;
        long long rest = k / along_a / along_b, in = 0, out = 0;
        for (int d = t.ndim - 1; d >= 0; d--) {
            in += rest % t.sizes[d] * t.in_strides[d];
            out += rest % t.sizes[d] * t.out_strides[d];
            rest /= t.sizes[d];
        }
        for (int r = y; r < TD_CU_TURN; r += TD_TURN_ROWS)
            if (a + r < t.a && b + x < t.b)
                tile[r][x] = from[in + (a + r) * t.in_a + b + x];
        __syncthreads();
        for (int r = y; r < TD_CU_TURN; r += TD_TURN_ROWS)
            if (b + r < t.b && a + x < t.a)
                to[out + (b + r) * t.out_b + a + x] = tile[x][r];
        __syncthreads();
    }
}

cudaError_t td_cu_run_transpose(const td_cu_transpose *t, cudaStream_t stream) {
    const long long most = 1 << 20;
    long long tiles = td_turn_tiles(t->a) * td_turn_tiles(t->b) * t->batch;
    unsigned blocks = (unsigned)(tiles < most ? tiles : most);
    TD_BY_SIZE(
        t->size, T,
        return TD_LAUNCH_TOGETHER((td_transpose_kernel<T>), blocks, TD_TURN_BLOCK, stream, *t))
    return cudaErrorNotSupported;
}
