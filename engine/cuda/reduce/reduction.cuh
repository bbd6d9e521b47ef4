/* reduction.cuh: kernels that fold the elements behind each output, whatever folding means.
 *
 * F, which a kernel gets by value, says what it means:
 *   A, V, C                  partial result; what is read of an element; what an output has of its own
 *   start()                  the result of nothing
 *   context(at)              of the output, which has elements
 *   load(c, offset, k)       the element at an offset, number k of the output
 *   take(acc, c, v, k)       one more element
 *   join(a, b)               two results as one, in either order
 *   finish(shape, at, acc)   writes the output
 *   T, x, VECTOR             where V is T: elements at x that may be read 16 bytes at a time
 */
#ifndef TD_CUDA_REDUCE_REDUCTION_CUH
#define TD_CUDA_REDUCE_REDUCTION_CUH

#include "engine/cuda/runtime/groups.cuh"
#include "engine/cuda/runtime/launch.cuh"
#include "engine/cuda/reduce/reduction_code.h"

enum {
    TD_COLUMNS = 32, /* side by side, a warp's */
    TD_ROWS = TD_GROUP_BLOCK / TD_COLUMNS,
    TD_AHEAD = 4 /* elements that a thread reads before it takes them */
};

/* Where an output stands: its number, the first of its elements, its place in the result. */
struct td_output_place {
    long long number, offset, out_offset;
};

__device__ static inline td_output_place td_place_output(const td_cu_reduction &s, long long at) {
    td_output_place p = {at, 0, 0};
    for (int d = s.nkept - 1; d >= 0; d--) {
        long long above = d ? td_divide(at, s.kept_sizes[d]) : 0, i = at - above * s.kept_sizes[d];
        p.offset += i * s.kept_strides[d];
        p.out_offset += i * s.out_strides[d];
        at = above;
    }
    return p;
}

__device__ static inline long long td_reduced_offset(const td_cu_reduction &s, long long k) {
    long long offset = 0;
    for (int d = s.nreduced - 1; d > 0; d--) {
        long long above = td_divide(k, s.reduced_sizes[d]);
        offset += (k - above * s.reduced_sizes[d]) * s.reduced_strides[d];
        k = above;
    }
    return offset + k * s.reduced_strides[0];
}

/* n elements `stride` apart, of which this thread has every `lanes`th from `lane` on; the first is
 * number k. */
template <typename F>
__device__ static void td_take_run(const F &f, typename F::A &acc, const typename F::C &c,
                                   long long offset, long long stride, long long n, long long k,
                                   int lane, int lanes) {
    long long i = lane;
    for (; i + (TD_AHEAD - 1) * lanes < n; i += TD_AHEAD * lanes) {
        typename F::V v[TD_AHEAD];
        for (int e = 0; e < TD_AHEAD; e++)
            v[e] = f.load(c, offset + (i + e * lanes) * stride, k + i + e * lanes);
        for (int e = 0; e < TD_AHEAD; e++)
            f.take(acc, c, v[e], k + i + e * lanes);
    }
    for (; i < n; i += lanes)
        f.take(acc, c, f.load(c, offset + i * stride, k + i), k + i);
}

/* The same of elements side by side, the bulk of them 16 bytes at a time. */
template <typename F>
__device__ static void td_take_packs(const F &f, typename F::A &acc, const typename F::C &c,
                                     long long offset, long long n, long long k, int lane,
                                     int lanes) {
    typedef typename F::T T;
    typedef td_pack<T> pack;
    const T *x = (const T *)f.x + offset;
    long long head = (long long)((16 - (unsigned long long)x % 16) % 16 / sizeof(T));
    head = head < n ? head : n;
    td_take_run(f, acc, c, offset, 1, head, k, lane, lanes);
    long long packs = (n - head) / pack::N;
    const pack *p = (const pack *)(const void *)(x + head);
    for (long long i = lane; i < packs; i += lanes) {
        pack v = p[i];
        for (int e = 0; e < pack::N; e++)
            f.take(acc, c, v.e[e], k + head + i * pack::N + e);
    }
    head += packs * pack::N;
    td_take_run(f, acc, c, offset + head, 1, n - head, k + head, lane, lanes);
}

template <typename F, bool VECTOR> struct td_row_walk {
    __device__ static void run(const F &f, typename F::A &acc, const typename F::C &c,
                               long long offset, long long stride, long long n, long long k,
                               int lane, int lanes) {
        td_take_run(f, acc, c, offset, stride, n, k, lane, lanes);
    }
};
template <typename F> struct td_row_walk<F, true> {
    __device__ static void run(const F &f, typename F::A &acc, const typename F::C &c,
                               long long offset, long long stride, long long n, long long k,
                               int lane, int lanes) {
        if (stride == 1)
            td_take_packs(f, acc, c, offset, n, k, lane, lanes);
        else
            td_take_run(f, acc, c, offset, stride, n, k, lane, lanes);
    }
};

/* Elements [begin, end) of an output: runs along the innermost dim where these are long. */
template <typename F>
__device__ static void td_take_row(const td_cu_reduction &s, const F &f, typename F::A &acc,
                                   const typename F::C &c, long long offset, long long begin,
                                   long long end, int lane, int lanes) {
    int last = s.nreduced - 1;
    long long size = s.reduced_sizes[last], stride = s.reduced_strides[last];
    if (last > 0 && size < 2 * lanes) {
        for (long long k = begin + lane; k < end; k += lanes)
            f.take(acc, c, f.load(c, offset + td_reduced_offset(s, k), k), k);
        return;
    }
    for (long long k = begin; k < end;) {
        long long left = last > 0 ? size - k % size : end - k;
        long long n = left < end - k ? left : end - k;
        td_row_walk<F, F::VECTOR>::run(f, acc, c, offset + td_reduced_offset(s, k), stride, n, k,
                                       lane, lanes);
        k += n;
    }
}

template <typename F>
__device__ static inline void td_deliver(const td_cu_reduction &s, const F &f,
                                         const td_output_place &at, const typename F::A &acc,
                                         typename F::A *partial) {
    if (partial)
        partial[blockIdx.y * s.outputs + at.number] = acc;
    else
        f.finish(s, at, acc);
}

template <typename F>
__global__ void td_fold_rows(const __grid_constant__ td_cu_reduction s,
                             const __grid_constant__ F f, typename F::A *partial) {
    __shared__ typename F::A shared[TD_GROUP_WARPS];
    int lanes = s.lanes, lane = threadIdx.x % lanes;
    long long number = (long long)blockIdx.x * (TD_GROUP_BLOCK / lanes) + threadIdx.x / lanes;
    long long begin = blockIdx.y * s.piece_len, end = begin + s.piece_len;
    bool there = number < s.outputs;
    td_output_place at = td_place_output(s, there ? number : 0);
    typename F::A acc = f.start();
    if (there && s.count > 0) {
        typename F::C c = f.context(at);
        td_take_row(s, f, acc, c, at.offset, begin, end < s.count ? end : s.count, lane, lanes);
    }
    acc = td_group_fold(f, acc, lanes, shared);
    if (there && lane == 0)
        td_deliver(s, f, at, acc, partial);
}

template <typename F>
__global__ void td_fold_columns(const __grid_constant__ td_cu_reduction s,
                                const __grid_constant__ F f, typename F::A *partial) {
    __shared__ typename F::A shared[TD_GROUP_BLOCK];
    int row = threadIdx.x / TD_COLUMNS;
    long long number = (long long)blockIdx.x * TD_COLUMNS + threadIdx.x % TD_COLUMNS;
    long long begin = blockIdx.y * s.piece_len, end = begin + s.piece_len;
    bool there = number < s.outputs;
    td_output_place at = td_place_output(s, there ? number : 0);
    typename F::A acc = f.start();
    if (there && s.count > 0) {
        typename F::C c = f.context(at);
        td_take_row(s, f, acc, c, at.offset, begin, end < s.count ? end : s.count, row, TD_ROWS);
    }
    shared[threadIdx.x] = acc;
    __syncthreads();
    if (row != 0 || !there)
        return;
    for (int k = 1; k < TD_ROWS; k++)
        acc = f.join(acc, shared[k * TD_COLUMNS + threadIdx.x]);
    td_deliver(s, f, at, acc, partial);
}

/* Pieces of an output put together by a warp. */
template <typename F>
__global__ void td_join_pieces(const __grid_constant__ td_cu_reduction s,
                               const __grid_constant__ F f, const typename F::A *partial) {
    __shared__ typename F::A shared[TD_GROUP_WARPS];
    int lane = threadIdx.x % 32;
    long long number = (long long)blockIdx.x * TD_GROUP_WARPS + threadIdx.x / 32;
    bool there = number < s.outputs;
    typename F::A acc = f.start();
    for (long long k = lane; there && k < s.pieces; k += 32)
        acc = f.join(acc, partial[k * s.outputs + number]);
    acc = td_group_fold(f, acc, 32, shared);
    if (there && lane == 0)
        f.finish(s, td_place_output(s, number), acc);
}

template <typename F>
static cudaError_t td_run_reduction(const td_cu_reduction *s, const F &f, void *partial,
                                    cudaStream_t stream) {
    static_assert(sizeof(typename F::A) <= TD_CU_PARTIAL, "a partial result is too large");
    typename F::A *parts = s->pieces > 1 ? (typename F::A *)partial : NULL;
    long long each = s->by_columns ? TD_COLUMNS : TD_GROUP_BLOCK / s->lanes;
    dim3 grid((unsigned int)((s->outputs + each - 1) / each), (unsigned int)s->pieces);
    cudaError_t error =
        s->by_columns
            ? TD_LAUNCH_TOGETHER((td_fold_columns<F>), grid, TD_GROUP_BLOCK, stream, *s, f, parts)
            : TD_LAUNCH_TOGETHER((td_fold_rows<F>), grid, TD_GROUP_BLOCK, stream, *s, f, parts);
    if (error != cudaSuccess || !parts)
        return error;
    unsigned int blocks = (unsigned int)((s->outputs + TD_GROUP_WARPS - 1) / TD_GROUP_WARPS);
    return TD_LAUNCH_TOGETHER((td_join_pieces<F>), blocks, TD_GROUP_BLOCK, stream, *s, f, parts);
}

#endif
