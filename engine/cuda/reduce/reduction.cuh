/* reduction.cuh: kernels that fold the elements behind each output, whatever folding means.
 *
 * F, which a kernel gets by value, says what it means:
 *   A, V, C                  partial result; what is read of an element; what an output has of its own
 *   start()                  the result of nothing
 *   context(at)              of the output, which has elements
 *   load(c, offset, k)       the element at an offset, number k of the output
 *   take(acc, c, v, k)       one more element; not always in the order of their numbers
 *   join(a, b)               two results as one, in either order
 *   finish(shape, at, acc)   writes the output
 *   T, x, VECTOR             1 where V is T: elements at x that may be read 16 bytes at a time; 2
 *                            where take_pack(acc, c, v) also takes several at once, as take does
 *
 * Memory is kept busy by what threads read before they take any of it: 64 bytes each where elements
 * lie side by side, with four blocks on a processor at least.
 */
#ifndef TD_CUDA_REDUCE_REDUCTION_CUH
#define TD_CUDA_REDUCE_REDUCTION_CUH

#include "engine/cuda/limits.h"
#include "engine/cuda/runtime/groups.cuh"
#include "engine/cuda/runtime/launch.cuh"
#include "engine/cuda/reduce/reduction_code.h"

enum {
    TD_COLUMNS = 32, /* threads with neighbouring outputs, at most: a warp's */
    TD_AHEAD = 4,    /* loads of a thread before it takes what they bring */
    TD_CHAINS = 4,   /* partial results of a thread, so that it need not wait for the last sum */
    TD_TOGETHER = 4  /* blocks on a processor */
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

/* Elements side by side that are read at once: of a row, and of columns. */
template <typename F, bool = (F::VECTOR != 0)> struct td_widths {
    enum { ROW = 1, COLUMNS = 1 };
};
template <typename F> struct td_widths<F, true> {
    enum { ROW = 16 / sizeof(typename F::T), COLUMNS = ROW < 4 ? (int)ROW : 4 };
};

/* N elements, number k of their outputs where each has one (OUTPUTS is N), else one's from k on. */
template <int N, int OUTPUTS, int CHAINS, typename F>
__device__ static inline void td_take_side(const F &f, typename F::A (&acc)[CHAINS],
                                           const typename F::C (&c)[OUTPUTS],
                                           const typename F::V (&v)[N], long long k) {
    if constexpr (F::VECTOR == 2) {
        f.take_pack(acc, c, v);
    } else {
        TD_UNROLL
        for (int e = 0; e < N; e++)
            f.take(acc[e % CHAINS], c[e % OUTPUTS], v[e], OUTPUTS == N ? k : k + e);
    }
}

/* What is read at once, as it lies in memory where it is elements side by side. */
template <typename F, int N> struct td_side {
    typedef typename F::T T;
    td_words<N * sizeof(T)> words;

    __device__ void load(const F &f, const typename F::C &, long long offset, long long) {
        words = *(const td_words<N * sizeof(T)> *)((const T *)f.x + offset);
    }
    __device__ void get(typename F::V (&v)[N]) const { memcpy(v, &words, sizeof words); }
};
template <typename F> struct td_side<F, 1> {
    typename F::V one;

    __device__ void load(const F &f, const typename F::C &c, long long offset, long long k) {
        one = f.load(c, offset, k);
    }
    __device__ void get(typename F::V (&v)[1]) const { v[0] = one; }
};

/* n times N elements `stride` apart, of which this thread has every `lanes`th from `lane` on; the
 * first is number k, and the next `each` more. */
template <int N, int AHEAD, int OUTPUTS, int CHAINS, typename F>
__device__ static void td_take_run(const F &f, typename F::A (&acc)[CHAINS],
                                   const typename F::C (&c)[OUTPUTS], long long offset,
                                   long long stride, long long n, long long k, int each, int lane,
                                   int lanes) {
    offset += lane * stride;
    k += lane * each;
    TD_NO_UNROLL
    for (n -= lane; n > 0; n -= AHEAD * lanes) {
        int left = n < AHEAD * lanes ? (int)n : AHEAD * lanes;
        td_side<F, N> sides[AHEAD] = {};
        TD_UNROLL
        for (int a = 0; a < AHEAD; a++)
            if (a * lanes < left)
                sides[a].load(f, c[0], offset + a * lanes * stride, k + a * lanes * each);
        TD_UNROLL
        for (int a = 0; a < AHEAD; a++)
            if (a * lanes < left) {
                typename F::V v[N];
                sides[a].get(v);
                td_take_side<N>(f, acc, c, v, k + a * lanes * each);
            }
        offset += AHEAD * lanes * stride;
        k += AHEAD * lanes * each;
    }
}

/* Elements of one output, where these lie side by side 16 bytes at a time. */
template <int CHAINS, typename F>
__device__ static void td_take_line(const F &f, typename F::A (&acc)[CHAINS],
                                    const typename F::C (&c)[1], long long offset, long long stride,
                                    long long n, long long k, int lane, int lanes) {
    if constexpr (F::VECTOR != 0) {
        enum { N = td_widths<F>::ROW };
        if (stride == 1 && n >= 32 * N) { /* shorter ones in order, so that of equals the first wins */
            const typename F::T *x = (const typename F::T *)f.x + offset;
            long long head = (long long)((16 - (unsigned long long)x % 16) % 16 / sizeof *x);
            head = head < n ? head : n;
            long long packs = (n - head) / N, tail = head + packs * N;
            td_take_run<N, TD_AHEAD>(f, acc, c, offset + head, N, packs, k + head, N, lane, lanes);
            /* What is before and behind them, as one run with a gap. */
            TD_NO_UNROLL
            for (long long i = lane; i < n - packs * N; i += lanes) {
                long long at = i < head ? i : i - head + tail;
                typename F::V v[1] = {f.load(c[0], offset + at, k + at)};
                td_take_side<1>(f, acc, c, v, k + at);
            }
            return;
        }
    }
    td_take_run<1, TD_AHEAD>(f, acc, c, offset, stride, n, k, 1, lane, lanes);
}

/* Elements [begin, end) of N neighbouring outputs, or of one: runs along the innermost dim where
 * these are long. */
template <bool ROW, int N, int CHAINS, typename F>
__device__ static void td_take_part(const td_cu_reduction &s, const F &f,
                                    typename F::A (&acc)[CHAINS], const typename F::C (&c)[N],
                                    long long offset, long long begin, long long end, int lane,
                                    int lanes) {
    enum { AHEAD = N == 1 ? (int)TD_AHEAD : N * sizeof(typename F::T) < 16 ? 8 : 4 };
    int last = s.nreduced - 1;
    long long size = s.reduced_sizes[last], stride = s.reduced_strides[last];
    if (last > 0 && size < 2 * lanes) {
        for (long long k = begin + lane; k < end; k += lanes) {
            td_side<F, N> side;
            typename F::V v[N];
            side.load(f, c[0], offset + td_reduced_offset(s, k), k);
            side.get(v);
            td_take_side<N>(f, acc, c, v, k);
        }
        return;
    }
    for (long long k = begin; k < end;) {
        long long left = last > 0 ? size - k % size : end - k;
        long long n = left < end - k ? left : end - k, at = offset + td_reduced_offset(s, k);
        if constexpr (ROW)
            td_take_line(f, acc, c, at, stride, n, k, lane, lanes);
        else
            td_take_run<N, AHEAD>(f, acc, c, at, stride, n, k, 1, lane, lanes);
        k += n;
    }
}

template <typename F>
__device__ static inline void td_deliver(const td_cu_reduction &s, const F &f,
                                         long long number, const typename F::A &acc,
                                         typename F::A *partial) {
    if (partial)
        partial[blockIdx.y * s.outputs + number] = acc;
    else
        f.finish(s, td_place_output(s, number), acc);
}

template <typename F>
__global__ void __launch_bounds__(TD_GROUP_BLOCK, TD_TOGETHER)
    td_fold_rows(const __grid_constant__ td_cu_reduction s, const __grid_constant__ F f,
                 typename F::A *partial) {
    enum { WIDTH = td_widths<F>::ROW };
    enum { CHAINS = (int)WIDTH < (int)TD_CHAINS ? (int)WIDTH : (int)TD_CHAINS };
    __shared__ typename F::A shared[TD_GROUP_WARPS];
    int lanes = s.lanes, lane = threadIdx.x % lanes;
    long long number = (long long)blockIdx.x * (TD_GROUP_BLOCK / lanes) + threadIdx.x / lanes;
    long long begin = blockIdx.y * s.piece_len, end = begin + s.piece_len;
    bool there = number < s.outputs;
    typename F::A acc[CHAINS];
    TD_UNROLL
    for (int k = 0; k < CHAINS; k++)
        acc[k] = f.start();
    if (there && s.count > 0) {
        td_output_place at = td_place_output(s, number);
        typename F::C c[1] = {f.context(at)};
        td_take_part<true>(s, f, acc, c, at.offset, begin, end < s.count ? end : s.count, lane,
                           lanes);
    }
    TD_UNROLL
    for (int k = 1; k < CHAINS; k++)
        acc[0] = f.join(acc[0], acc[k]);
    acc[0] = td_group_fold(f, acc[0], lanes, shared);
    if (there && lane == 0)
        td_deliver(s, f, number, acc[0], partial);
}

/* A thread has N neighbouring outputs, `across` threads of a block have their neighbours, and as
 * many as there are above one another share these outputs' elements. */
template <typename F, int N>
__global__ void __launch_bounds__(TD_GROUP_BLOCK, TD_TOGETHER)
    td_fold_columns(const __grid_constant__ td_cu_reduction s, const __grid_constant__ F f,
                    typename F::A *partial, int across) {
    __shared__ typename F::A shared[N][TD_GROUP_BLOCK];
    int row = threadIdx.x / across, rows = TD_GROUP_BLOCK / across;
    long long first = (long long)blockIdx.x * across * N, number = first + threadIdx.x % across * N;
    long long begin = blockIdx.y * s.piece_len, end = begin + s.piece_len;
    typename F::A acc[N];
    TD_UNROLL
    for (int e = 0; e < N; e++)
        acc[e] = f.start();
    if (number < s.outputs && s.count > 0) {
        typename F::C c[N];
        TD_UNROLL
        for (int e = 0; e < N; e++)
            c[e] = f.context(td_place_output(s, number + e));
        td_take_part<false>(s, f, acc, c, td_place_output(s, number).offset, begin,
                            end < s.count ? end : s.count, row, rows);
    }
    TD_UNROLL
    for (int e = 0; e < N; e++)
        shared[e][threadIdx.x] = acc[e];
    __syncthreads();
    number = first + threadIdx.x;
    if ((int)threadIdx.x >= across * N || number >= s.outputs)
        return;
    typename F::A all = shared[threadIdx.x % N][threadIdx.x / N];
    for (int k = 1; k < rows; k++)
        all = f.join(all, shared[threadIdx.x % N][k * across + threadIdx.x / N]);
    td_deliver(s, f, number, all, partial);
}

/* Pieces of an output put together by a group of threads. */
template <typename F>
__global__ void td_join_pieces(const __grid_constant__ td_cu_reduction s,
                               const __grid_constant__ F f, const typename F::A *partial,
                               int lanes) {
    __shared__ typename F::A shared[TD_GROUP_WARPS];
    int lane = threadIdx.x % lanes;
    long long number = (long long)blockIdx.x * (TD_GROUP_BLOCK / lanes) + threadIdx.x / lanes;
    bool there = number < s.outputs;
    typename F::A acc = f.start();
    for (long long k = lane; there && k < s.pieces; k += lanes)
        acc = f.join(acc, partial[k * s.outputs + number]);
    acc = td_group_fold(f, acc, lanes, shared);
    if (there && lane == 0)
        f.finish(s, td_place_output(s, number), acc);
}

/* May all places that are a multiple of n outputs or elements be read n elements at a time? */
static inline bool td_divides(const td_cu_reduction &s, const void *x, int n, size_t size) {
    bool fits = (unsigned long long)x % (n * size) == 0 && s.kept_sizes[s.nkept - 1] % n == 0;
    for (int d = 0; d < s.nkept - 1; d++)
        fits = fits && s.kept_strides[d] % n == 0;
    for (int d = 0; d < s.nreduced; d++)
        fits = fits && s.reduced_strides[d] % n == 0;
    return fits;
}

template <int N, typename F>
static cudaError_t td_run_columns(const td_cu_reduction *s, const F &f, typename F::A *parts,
                                  cudaStream_t stream) {
    int across = 1;
    while (across < TD_COLUMNS && across * N < s->outputs)
        across *= 2;
    dim3 grid((unsigned int)((s->outputs + across * N - 1) / (across * N)),
              (unsigned int)s->pieces);
    return TD_LAUNCH_TOGETHER((td_fold_columns<F, N>), grid, TD_GROUP_BLOCK, stream, *s, f, parts,
                              across);
}

template <typename F>
static cudaError_t td_run_parts(const td_cu_reduction *s, const F &f, typename F::A *parts,
                                cudaStream_t stream) {
    if (!s->by_columns) {
        long long each = TD_GROUP_BLOCK / s->lanes;
        dim3 grid((unsigned int)((s->outputs + each - 1) / each), (unsigned int)s->pieces);
        return TD_LAUNCH_TOGETHER((td_fold_rows<F>), grid, TD_GROUP_BLOCK, stream, *s, f, parts);
    }
    if constexpr (F::VECTOR != 0) {
        enum { N = td_widths<F>::COLUMNS };
        if (td_divides(*s, f.x, N, sizeof(typename F::T)))
            return td_run_columns<N>(s, f, parts, stream);
    }
    return td_run_columns<1>(s, f, parts, stream);
}

template <typename F>
static cudaError_t td_run_reduction(const td_cu_reduction *s, const F &f, void *partial,
                                    cudaStream_t stream) {
    static_assert(sizeof(typename F::A) <= TD_CU_PARTIAL, "a partial result is too large");
    typename F::A *parts = s->pieces > 1 ? (typename F::A *)partial : NULL;
    cudaError_t error = td_run_parts(s, f, parts, stream);
    if (error != cudaSuccess || !parts)
        return error;
    /* Few outputs have many threads each; many have neighbouring threads read neighbours. */
    int lanes = 1, most = s->pieces > TD_GROUP_BLOCK ? TD_GROUP_BLOCK : 32;
    while (lanes < most && lanes < s->pieces && lanes * s->outputs < TD_LIMIT(REDUCE_JOINED))
        lanes = lanes == 32 ? TD_GROUP_BLOCK : lanes * 2;
    long long each = TD_GROUP_BLOCK / lanes;
    return TD_LAUNCH_TOGETHER((td_join_pieces<F>), (unsigned int)((s->outputs + each - 1) / each),
                              TD_GROUP_BLOCK, stream, *s, f, parts, lanes);
}

#endif
