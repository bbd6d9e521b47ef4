/* product.cuh: products by tiles that lie in shared memory, whatever their factors are: P tells what
 * stands in row i and column l of its factors, and takes what comes out:
 *
 *   P::size                                    td_cu_product_size
 *   p.a_by_rows(), p.b_by_columns()            are neighbours there neighbours in memory?
 *   p.a<T>(batch, row, l), p.b<T>(batch, l, column)
 *   p.store<T>(batch, row, column, sum)
 *
 * Every sum is taken by one thread in the order of l, parts of it are added in their order: the same
 * bits in every run. */
#ifndef TD_CUDA_PRODUCT_PRODUCT_CUH
#define TD_CUDA_PRODUCT_PRODUCT_CUH

#include "engine/cuda/runtime/dims.h"
#include "engine/cuda/runtime/elements.cuh"
#include "engine/cuda/runtime/launch.cuh"
#include "engine/cuda/product/product_code.h"

/* In which sums are kept: floats of up to 32 bits in float32, integers so that they wrap around. */
template <typename T> struct td_product_sum_of { typedef int type; };
template <> struct td_product_sum_of<long long> { typedef long long type; };
template <> struct td_product_sum_of<__half> { typedef float type; };
template <> struct td_product_sum_of<__nv_bfloat16> { typedef float type; };
template <> struct td_product_sum_of<float> { typedef float type; };
template <> struct td_product_sum_of<double> { typedef double type; };
template <typename T> using td_product_sum = typename td_product_sum_of<T>::type;

enum { TD_PRODUCT_BLOCK = 256, TD_PRODUCT_EACH = 4 };

struct td_cu_tile {
    long long batch, row, column, part, begin, end; /* of l */
};

__device__ static inline td_cu_tile td_tile_of(const td_cu_product_size &s, long long at) {
    td_cu_tile t;
    long long rows = (s.m + TD_CU_PRODUCT_SIDE - 1) / TD_CU_PRODUCT_SIDE;
    long long columns = (s.n + TD_CU_PRODUCT_SIDE - 1) / TD_CU_PRODUCT_SIDE;
    at = td_cu_divide(at, columns, &t.column);
    at = td_cu_divide(at, rows, &t.row);
    t.batch = td_cu_divide(at, s.parts, &t.part);
    t.row *= TD_CU_PRODUCT_SIDE;
    t.column *= TD_CU_PRODUCT_SIDE;
    long long each = (s.k + s.parts - 1) / s.parts;
    each = (each + TD_CU_PRODUCT_DEPTH - 1) / TD_CU_PRODUCT_DEPTH * TD_CU_PRODUCT_DEPTH;
    t.begin = t.part * each;
    t.end = t.begin + each < s.k ? t.begin + each : s.k;
    return t;
}

template <typename W> struct td_cu_factors {
    W a[TD_CU_PRODUCT_DEPTH][TD_CU_PRODUCT_SIDE + 1];
    W b[TD_CU_PRODUCT_DEPTH][TD_CU_PRODUCT_SIDE + 1];
};

/* Element e of a tile of side x depth, neighbours along the side or along the depth. */
__device__ static inline void td_spread_out(bool by_side, int e, int *side, int *depth) {
    *side = by_side ? e % TD_CU_PRODUCT_SIDE : e / TD_CU_PRODUCT_DEPTH;
    *depth = by_side ? e / TD_CU_PRODUCT_SIDE : e % TD_CU_PRODUCT_DEPTH;
}

template <typename T, typename W, typename P>
__device__ static inline void td_load_factors(const P &p, const td_cu_tile &t, long long l,
                                              td_cu_factors<W> &f) {
    enum { ELEMENTS = TD_CU_PRODUCT_SIDE * TD_CU_PRODUCT_DEPTH };
    for (int e = (int)threadIdx.x; e < ELEMENTS; e += TD_PRODUCT_BLOCK) {
        int side, depth;
        td_spread_out(p.a_by_rows(), e, &side, &depth);
        f.a[depth][side] = t.row + side < p.size.m && l + depth < t.end
                               ? (W)p.template a<T>(t.batch, t.row + side, l + depth)
                               : (W)0;
        td_spread_out(p.b_by_columns(), e, &side, &depth);
        f.b[depth][side] = t.column + side < p.size.n && l + depth < t.end
                               ? (W)p.template b<T>(t.batch, l + depth, t.column + side)
                               : (W)0;
    }
}

template <typename T, typename P> __global__ void td_product_kernel(const __grid_constant__ P p) {
    typedef td_product_sum<T> W;
    __shared__ td_cu_factors<W> f;
    td_cu_tile t = td_tile_of(p.size, blockIdx.x);
    int x = (int)threadIdx.x % 16, y = (int)threadIdx.x / 16;
    W sum[TD_PRODUCT_EACH][TD_PRODUCT_EACH] = {};
    for (long long l = t.begin; l < t.end; l += TD_CU_PRODUCT_DEPTH) {
        td_load_factors<T>(p, t, l, f);
        __syncthreads();
        for (int d = 0; d < TD_CU_PRODUCT_DEPTH; d++)
            for (int i = 0; i < TD_PRODUCT_EACH; i++)
                for (int j = 0; j < TD_PRODUCT_EACH; j++)
                    sum[i][j] += f.a[d][y + 16 * i] * f.b[d][x + 16 * j];
        __syncthreads();
    }
    for (int i = 0; i < TD_PRODUCT_EACH; i++)
        for (int j = 0; j < TD_PRODUCT_EACH; j++) {
            long long row = t.row + y + 16 * i, column = t.column + x + 16 * j;
            if (row >= p.size.m || column >= p.size.n)
                continue;
            if (p.size.parts == 1)
                p.template store<T>(t.batch, row, column, sum[i][j]);
            else
                ((W *)p.size.partial)[((t.part * p.size.batch + t.batch) * p.size.m + row) *
                                          p.size.n + column] = sum[i][j];
        }
}

template <typename T, typename P>
__global__ void td_add_parts_kernel(const __grid_constant__ P p) {
    typedef td_product_sum<T> W;
    long long at = (long long)blockIdx.x * TD_PRODUCT_BLOCK + threadIdx.x, row, column;
    long long n = p.size.batch * p.size.m * p.size.n;
    if (at >= n)
        return;
    W sum = 0;
    for (long long part = 0; part < p.size.parts; part++)
        sum += ((const W *)p.size.partial)[part * n + at];
    long long rest = td_cu_divide(at, p.size.n, &column);
    long long batch = td_cu_divide(rest, p.size.m, &row);
    p.template store<T>(batch, row, column, sum);
}

template <typename T, typename P>
static cudaError_t td_run_product(const P &p, cudaStream_t stream) {
    const td_cu_product_size &s = p.size;
    long long tiles = (s.m + TD_CU_PRODUCT_SIDE - 1) / TD_CU_PRODUCT_SIDE *
                      ((s.n + TD_CU_PRODUCT_SIDE - 1) / TD_CU_PRODUCT_SIDE) * s.batch * s.parts;
    long long n = s.batch * s.m * s.n;
    if (tiles > 0x7fffffff)
        return cudaErrorInvalidConfiguration;
    cudaError_t error = TD_LAUNCH_TOGETHER((td_product_kernel<T, P>), (unsigned)tiles,
                                           TD_PRODUCT_BLOCK, stream, p);
    if (error == cudaSuccess && s.parts > 1)
        error = TD_LAUNCH((td_add_parts_kernel<T, P>),
                          (unsigned)((n + TD_PRODUCT_BLOCK - 1) / TD_PRODUCT_BLOCK),
                          TD_PRODUCT_BLOCK, stream, p);
    return error;
}
#endif
