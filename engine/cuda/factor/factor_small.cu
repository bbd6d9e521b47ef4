/* factor_small.cu: LU and Cholesky factors of small matrices, a block for each: a library's call for
 * each would take longer than the work. What LAPACK's unblocked forms do, with its pivots and its
 * info. */
#include "engine/cuda/factor/factor_code.h"

#include "engine/cuda/runtime/groups.cuh"
#include "engine/cuda/runtime/launch.cuh"

enum { TD_SMALL_BLOCK = 128 };

/* The first of the largest numbers of column k from row k on; by one warp. */
__device__ static inline int td_largest_row(const double *column, int k, int n) {
    double most = -1;
    int at = k;
    for (int row = k + (int)threadIdx.x; row < n; row += 32) {
        double v = fabs(column[row]);
        at = v > most ? row : at;
        most = v > most ? v : most;
    }
    for (int by = 16; by > 0; by /= 2) {
        double other = __shfl_xor_sync(0xFFFFFFFFu, most, by);
        int place = __shfl_xor_sync(0xFFFFFFFFu, at, by);
        bool better = other > most || (other == most && place < at);
        most = better ? other : most;
        at = better ? place : at;
    }
    return at;
}

__global__ void td_small_lu_kernel(const __grid_constant__ td_cu_columns m, int n, int *pivots,
                                   int *info) {
    __shared__ int chosen;
    double *a = m.data + (long long)blockIdx.x * m.item;
    int failed = 0;
    for (int k = 0; k < n; k++) {
        double *own = a + (long long)k * n;
        if (threadIdx.x < 32) {
            int row = td_largest_row(own, k, n);
            if (threadIdx.x == 0) {
                chosen = row;
                pivots[(long long)blockIdx.x * n + k] = row + 1;
            }
        }
        __syncthreads();
        int row = chosen, left = n - k - 1;
        for (int c = threadIdx.x; row != k && c < n; c += TD_SMALL_BLOCK) {
            double v = a[(long long)c * n + k];
            a[(long long)c * n + k] = a[(long long)c * n + row];
            a[(long long)c * n + row] = v;
        }
        __syncthreads();
        double pivot = own[k];
        if (pivot == 0) {
            failed = failed ? failed : k + 1;
            continue;
        }
        for (int r = k + 1 + threadIdx.x; r < n; r += TD_SMALL_BLOCK)
            own[r] /= pivot;
        __syncthreads();
        for (int e = threadIdx.x; e < left * left; e += TD_SMALL_BLOCK) {
            int c = e / left, r = k + 1 + e - c * left;
            double *other = a + (long long)(k + 1 + c) * n;
            other[r] -= own[r] * other[k];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0)
        info[blockIdx.x] = failed;
}

cudaError_t td_cu_small_lu(const td_cu_columns *a, int n, int *pivots, int *info,
                           cudaStream_t stream) {
    return TD_LAUNCH_TOGETHER(td_small_lu_kernel, (unsigned int)a->batch, TD_SMALL_BLOCK, stream,
                              *a, n, pivots, info);
}

/* Rows of each column change places as the pivots say. */
__global__ void td_small_rows_kernel(const __grid_constant__ td_cu_columns b, int n, long long k,
                                     const int *pivots) {
    long long e = (long long)blockIdx.x * TD_SMALL_BLOCK + threadIdx.x, column;
    if (e >= b.batch * k)
        return;
    long long at = td_cu_divide(e, k, &column);
    double *x = b.data + at * b.item + column * b.ld;
    for (int row = 0; row < n; row++) {
        int other = pivots[at * n + row] - 1;
        double v = x[row];
        x[row] = x[other];
        x[other] = v;
    }
}

cudaError_t td_cu_small_solve(const td_cu_columns *a, int n, const int *pivots,
                              const td_cu_columns *b, int64_t k, cudaStream_t stream) {
    unsigned int blocks = (unsigned int)((b->batch * k + TD_SMALL_BLOCK - 1) / TD_SMALL_BLOCK);
    td_cu_solver_triangle t = {*a, *b, n, k, false, true};
    cudaError_t error = TD_LAUNCH(td_small_rows_kernel, blocks, TD_SMALL_BLOCK, stream, *b, n,
                                  (long long)k, pivots);
    if (error == cudaSuccess)
        error = td_cu_factor_triangle(&t, stream);
    t.upper = true;
    t.unit = false;
    return error != cudaSuccess ? error : td_cu_factor_triangle(&t, stream);
}

__global__ void td_small_cholesky_kernel(const __grid_constant__ td_cu_columns m, int n,
                                         int *info) {
    double *a = m.data + (long long)blockIdx.x * m.item;
    int failed = 0;
    for (int k = 0; k < n && !failed; k++) {
        double *own = a + (long long)k * n, square = own[k], root = sqrt(square);
        int left = n - k - 1;
        failed = square > 0 ? 0 : k + 1;
        __syncthreads();
        if (failed)
            continue;
        for (int r = k + threadIdx.x; r < n; r += TD_SMALL_BLOCK)
            own[r] = r == k ? root : own[r] / root;
        __syncthreads();
        for (int e = threadIdx.x; e < left * left; e += TD_SMALL_BLOCK) {
            int c = k + 1 + e / left, r = k + 1 + e % left;
            if (r >= c)
                a[(long long)c * n + r] -= own[r] * own[c];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0)
        info[blockIdx.x] = failed;
}

cudaError_t td_cu_small_cholesky(const td_cu_columns *a, int n, int *info, cudaStream_t stream) {
    return TD_LAUNCH_TOGETHER(td_small_cholesky_kernel, (unsigned int)a->batch, TD_SMALL_BLOCK,
                              stream, *a, n, info);
}
