/* factor.cu: kernels before and after cuSOLVER's: matrices into column-major doubles and back,
 * determinants and cofactors from factors, triangular solves, and which matrices could not be
 * decomposed. */
#include "engine/cuda/factor/factor_code.h"

#include "engine/cuda/runtime/groups.cuh"
#include "engine/cuda/runtime/launch.cuh"

/* ---- matrices in and out ---- */

struct td_factor_place {
    long long at, row, column;
};

/* Element e of matrices of rows x columns, a column at a time. */
__device__ static inline td_factor_place td_place_of(const td_cu_matrices &m, long long e) {
    td_factor_place p;
    long long inside;
    p.at = td_cu_divide(e, m.rows * m.columns, &inside);
    p.column = td_cu_divide(inside, m.rows, &p.row);
    return p;
}
__device__ static inline long long td_offset_of(const td_cu_matrices &m, const td_factor_place &p) {
    return td_cu_offset(m.batch, p.at) + p.row * m.by_row + p.column * m.by_column;
}

__global__ void td_factor_load_kernel(const __grid_constant__ td_cu_matrices from,
                                      const __grid_constant__ td_cu_columns to, const int *only) {
    long long all = to.batch * from.rows * from.columns;
    for (long long e = td_my_first(); e < all; e += td_all_threads()) {
        td_factor_place p = td_place_of(from, e);
        if (only && only[p.at] == 0)
            continue;
        double v = p.row == p.column;
        if (from.x) {
            long long at = td_offset_of(from, p);
            v = from.is_double ? ((const double *)from.x)[at] : ((const float *)from.x)[at];
        }
        to.data[p.at * to.item + p.column * to.ld + p.row] = v;
    }
}

cudaError_t td_cu_factor_load(const td_cu_matrices *from, const td_cu_columns *to, const int *only,
                              cudaStream_t stream) {
    return TD_LAUNCH(td_factor_load_kernel, td_blocks_of(to->batch * from->rows * from->columns),
                     TD_GROUP_BLOCK, stream, *from, *to, only);
}

__global__ void td_factor_store_kernel(const __grid_constant__ td_cu_columns from,
                                       const __grid_constant__ td_cu_matrices to, int which) {
    long long all = from.batch * to.rows * to.columns;
    for (long long e = td_my_first(); e < all; e += td_all_threads()) {
        td_factor_place p = td_place_of(to, e);
        bool counts =
            which == TD_CU_WHOLE || (which == TD_CU_LOWER ? p.row >= p.column : p.row <= p.column);
        double v = counts ? from.data[p.at * from.item + p.column * from.ld + p.row] : 0;
        long long at = td_offset_of(to, p);
        if (to.is_double)
            ((double *)to.x)[at] = v;
        else
            ((float *)to.x)[at] = (float)v;
    }
}

cudaError_t td_cu_factor_store(const td_cu_columns *from, const td_cu_matrices *to,
                               td_cu_triangle which, cudaStream_t stream) {
    return TD_LAUNCH(td_factor_store_kernel, td_blocks_of(from->batch * to->rows * to->columns),
                     TD_GROUP_BLOCK, stream, *from, *to, (int)which);
}

/* ---- what only the elements show ---- */

__global__ void td_factor_look_kernel(const __grid_constant__ td_cu_columns a, int *bad) {
    double *item = a.data + (long long)blockIdx.x * a.item;
    int mine = 0;
    for (long long e = threadIdx.x; e < a.item; e += TD_GROUP_BLOCK)
        mine |= !isfinite(item[e]);
    mine = __syncthreads_or(mine);
    for (long long e = threadIdx.x; mine && e < a.item; e += TD_GROUP_BLOCK)
        item[e] = 0;
    if (threadIdx.x == 0)
        bad[blockIdx.x] = mine;
}

cudaError_t td_cu_factor_look(const td_cu_columns *a, int *bad, cudaStream_t stream) {
    return TD_LAUNCH_TOGETHER(td_factor_look_kernel, (unsigned int)a->batch, TD_GROUP_BLOCK, stream,
                              *a, bad);
}

__device__ static inline int td_info_of(const td_cu_answer &a, long long at) {
    return a.bad && a.bad[at] ? TD_CU_NOT_FINITE : a.info ? a.info[at] : 0;
}

/* One block, so that the first matrix that failed is the one that is told of. */
__global__ void td_factor_answer_kernel(const __grid_constant__ td_cu_answer a) {
    __shared__ long long firsts[TD_GROUP_BLOCK];
    long long first = a.batch;
    for (long long at = threadIdx.x; at < a.batch; at += TD_GROUP_BLOCK) {
        int info = td_info_of(a, at);
        if (a.to)
            a.to[td_cu_offset(a.to_dims, at)] = info;
        else if (info && first == a.batch)
            first = at;
    }
    firsts[threadIdx.x] = first;
    __syncthreads();
    if (threadIdx.x > 0)
        return;
    for (int k = 1; k < TD_GROUP_BLOCK; k++)
        first = firsts[k] < first ? firsts[k] : first;
    if (first == a.batch)
        return;
    int info = td_info_of(a, first);
    td_cu_found(info == TD_CU_NOT_FINITE ? a.not_finite : a.failed, a.batch > 1 ? first + 1 : info,
                info);
}

cudaError_t td_cu_factor_answer(const td_cu_answer *a, cudaStream_t stream) {
    return TD_LAUNCH_TOGETHER(td_factor_answer_kernel, 1, TD_GROUP_BLOCK, stream, *a);
}

/* ---- determinants ---- */

__device__ static inline double td_pivot(const double *lu, int n, const int *pivots, int k) {
    double pivot = lu[(long long)k * (n + 1)];
    return pivots[k] != k + 1 ? -pivot : pivot;
}

__global__ void td_factor_det_kernel(const __grid_constant__ td_cu_columns lu, int n,
                                     const int *pivots, double *out) {
    long long at = td_my_first();
    if (at >= lu.batch)
        return;
    double det = 1, sign = 1, logarithm = 0;
    for (int k = 0; k < n; k++) {
        double pivot = td_pivot(lu.data + at * lu.item, n, pivots + at * n, k);
        det *= pivot;
        sign *= pivot > 0 ? 1 : pivot < 0 ? -1 : pivot;
        logarithm += log(fabs(pivot));
    }
    out[at] = det;
    out[lu.batch + at] = sign;
    out[2 * lu.batch + at] = logarithm;
}

cudaError_t td_cu_factor_det(const td_cu_columns *lu, int n, const int *pivots, double *out,
                             cudaStream_t stream) {
    return TD_LAUNCH(td_factor_det_kernel, td_blocks_of(lu->batch), TD_GROUP_BLOCK, stream, *lu, n,
                     pivots, out);
}

/* Of each value the product of the others of its matrix. */
__global__ void td_factor_others_kernel(long long all, int n, const double *values,
                                        double *others) {
    for (long long e = td_my_first(); e < all; e += td_all_threads()) {
        long long k, at = td_cu_divide(e, n, &k);
        double product = 1;
        for (int l = 0; l < n; l++)
            product *= l == k ? 1 : values[at * n + l];
        others[e] = product;
    }
}

__global__ void td_factor_cofactor_kernel(const __grid_constant__ td_cu_columns a, int n,
                                          const double *u, const double *others, const double *v) {
    long long item = (long long)n * n;
    for (long long e = td_my_first(); e < a.batch * item; e += td_all_threads()) {
        long long inside, row, at = td_cu_divide(e, item, &inside);
        long long column = td_cu_divide(inside, n, &row);
        double sum = 0;
        for (int k = 0; k < n; k++)
            sum += u[at * item + (long long)k * n + row] * others[at * n + k] *
                   v[at * item + (long long)k * n + column];
        a.data[at * a.item + inside] = sum;
    }
}

cudaError_t td_cu_factor_cofactor(const td_cu_columns *a, int n, const double *u,
                                  const double *values, double *others, const double *v,
                                  cudaStream_t stream) {
    long long all = a->batch * n;
    cudaError_t error = TD_LAUNCH(td_factor_others_kernel, td_blocks_of(all), TD_GROUP_BLOCK,
                                  stream, all, n, values, others);
    return error != cudaSuccess
               ? error
               : TD_LAUNCH(td_factor_cofactor_kernel, td_blocks_of(all * n), TD_GROUP_BLOCK, stream,
                           *a, n, u, (const double *)others, v);
}

__global__ void td_factor_orient_kernel(const __grid_constant__ td_cu_columns a, int n,
                                        const double *lu, const int *pivots) {
    __shared__ int turned[TD_GROUP_BLOCK];
    long long at = blockIdx.x, item = (long long)n * n;
    int mine = 0;
    for (int k = threadIdx.x; k < n; k += TD_GROUP_BLOCK)
        mine ^= td_pivot(lu + at * item, n, pivots + at * n, k) < 0;
    turned[threadIdx.x] = mine;
    __syncthreads();
    for (int k = 0; k < TD_GROUP_BLOCK; k++)
        mine = k == 0 ? turned[0] : mine ^ turned[k];
    for (long long e = threadIdx.x; mine && e < item; e += TD_GROUP_BLOCK)
        a.data[at * a.item + e] = -a.data[at * a.item + e];
}

cudaError_t td_cu_factor_orient(const td_cu_columns *a, int n, const double *lu, const int *pivots,
                                cudaStream_t stream) {
    return TD_LAUNCH_TOGETHER(td_factor_orient_kernel, (unsigned int)a->batch, TD_GROUP_BLOCK,
                              stream, *a, n, lu, pivots);
}

/* ---- triangles ---- */

/* A block takes one column: as soon as a number of the solution is known, it is taken out of those
 * that are not. */
__global__ void td_factor_triangle_kernel(const __grid_constant__ td_cu_solver_triangle t) {
    long long column, at = td_cu_divide(blockIdx.x, t.k, &column);
    const double *a = t.a.data + at * t.a.item;
    double *x = t.x.data + at * t.x.item + column * t.x.ld;
    for (long long step = 0; step < t.n; step++) {
        long long k = t.upper ? t.n - 1 - step : step;
        const double *own = a + k * t.a.ld;
        double known = t.unit ? x[k] : x[k] / own[k];
        __syncthreads();
        if (threadIdx.x == 0)
            x[k] = known;
        long long begin = t.upper ? 0 : k + 1, end = t.upper ? k : t.n;
        for (long long row = begin + threadIdx.x; row < end; row += TD_GROUP_BLOCK)
            x[row] -= own[row] * known;
        __syncthreads();
    }
}

cudaError_t td_cu_factor_triangle(const td_cu_solver_triangle *t, cudaStream_t stream) {
    return TD_LAUNCH_TOGETHER(td_factor_triangle_kernel, (unsigned int)(t->a.batch * t->k),
                              TD_GROUP_BLOCK, stream, *t);
}
