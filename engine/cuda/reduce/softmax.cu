/* softmax.cu: softmax and its logarithm along a dim, the gradients of both, log-sum-exps of lines,
 * and the gradient of cross entropy.
 *
 * Lines whose elements lie side by side have a group of threads each, which reads a line once, 16
 * bytes at a time, and holds it in registers. Longer ones, and such as lie side by side themselves,
 * are read for the largest element and the sum of the exponentials, which is brought down whenever
 * a larger element turns up, and once more for the result. */
#include "engine/cuda/reduce/softmax_code.h"

#include "engine/cuda/limits.h"
#include "engine/cuda/runtime/elements.cuh"
#include "engine/cuda/runtime/groups.cuh"
#include "engine/cuda/runtime/launch.cuh"
#include "engine/cuda/runtime/math.cuh"
#include "engine/cuda/runtime/vector.cuh"

enum { TD_SIDE = 32, TD_DEEP = TD_GROUP_BLOCK / TD_SIDE };

/* ---- lines and their threads ---- */

/* The elements of one thread: base + i * stride for i = first, first + step, ... below n. */
struct td_line_part {
    bool there;
    long long number, base, stride;
    int first, step;
};

template <bool COLUMNS>
__device__ static inline td_line_part td_part_of(const td_cu_lines &l, int lanes) {
    td_line_part p;
    if (COLUMNS) {
        p.number = (long long)blockIdx.x * TD_SIDE + threadIdx.x % TD_SIDE;
        p.first = (int)threadIdx.x / TD_SIDE;
        p.step = TD_DEEP;
    } else {
        p.number = (long long)blockIdx.x * (blockDim.x / lanes) + threadIdx.x / lanes;
        p.first = (int)threadIdx.x % lanes;
        p.step = lanes;
    }
    p.there = p.number < l.outer * l.inner;
    long long outer = l.inner == 1 ? p.number : td_divide(p.number, l.inner);
    p.base = outer * l.n * l.inner + (p.number - outer * l.inner);
    p.stride = l.inner;
    return p;
}

/* What the threads of a line have, put together. */
template <bool COLUMNS, typename F, typename A>
__device__ static A td_line_fold(const F &f, A mine, int lanes, A *shared) {
    if (!COLUMNS)
        return td_group_fold(f, mine, lanes, shared);
    shared[threadIdx.x] = mine;
    __syncthreads();
    A all = shared[threadIdx.x % TD_SIDE];
    for (int k = 1; k < TD_DEEP; k++)
        all = f.join(all, shared[k * TD_SIDE + threadIdx.x % TD_SIDE]);
    return all;
}

static int td_lanes_for(long long n) {
    int lanes = 1;
    while (lanes < 32 && lanes * TD_LIMIT(SOFTMAX_EACH) < n)
        lanes *= 2;
    return n > TD_LIMIT(SOFTMAX_BLOCK) ? TD_GROUP_BLOCK : lanes;
}

static unsigned int td_line_blocks(const td_cu_lines &l, int lanes) {
    long long each = l.inner > 1 ? TD_SIDE : TD_GROUP_BLOCK / lanes;
    return (unsigned int)((l.outer * l.inner + each - 1) / each);
}

/* ---- lines in registers ---- */

enum {
    TD_HELD = 32, /* elements of a thread; of short lines, and of float64 or two lines, fewer */
    TD_HELD_FEW = 8,
    TD_HELD_BLOCK = 1024 /* threads of a line at most */
};

/* Reads the line N elements at a time; element k of v is the line's number (first + k / N * step) *
 * N + k % N. What lies behind the end is `pad`. */
template <int N, int HELD, typename T>
__device__ static inline void td_hold(const T *x, const td_line_part &p, int n, td_wide<T> pad,
                                      td_wide<T> (&v)[HELD]) {
    td_pack<T, N> packs[HELD / N];
    TD_UNROLL
    for (int k = 0; k < HELD / N; k++) {
        int at = (p.first + k * p.step) * N;
        TD_UNROLL
        for (int e = 0; e < N; e++)
            packs[k].e[e] = td_narrow<T>::of(pad);
        if (p.there && at < n)
            packs[k] = td_read_pack<T, N>(x + p.base + at);
    }
    TD_UNROLL
    for (int k = 0; k < HELD; k++)
        v[k] = td_widen(packs[k / N].e[k % N]);
}

template <int N, int HELD, typename T>
__device__ static inline void td_write_held(T *out, const td_line_part &p, int n,
                                            const td_wide<T> (&v)[HELD]) {
    TD_UNROLL
    for (int k = 0; k < HELD / N; k++) {
        int at = (p.first + k * p.step) * N;
        td_pack<T, N> pack;
        TD_UNROLL
        for (int e = 0; e < N; e++)
            pack.e[e] = td_narrow<T>::of(v[k * N + e]);
        if (p.there && at < n)
            td_write_pack<T, N>(out + p.base + at, pack);
    }
}

struct td_larger {
    template <typename W> __device__ W join(W a, W b) const { return fmax(a, b); } /* no NaN */
};

/* Threads of a line of `packs`, of which each holds `most`; 0: it is too long. */
static int td_lanes_to_hold(long long packs, int most) {
    int lanes = 1;
    while (lanes < 32 && lanes < packs)
        lanes *= 2;
    if (packs > (long long)TD_HELD_BLOCK * most)
        return 0;
    if (packs <= (long long)lanes * most)
        return lanes;
    return (int)((packs + most * 32 - 1) / (most * 32)) * 32;
}

/* LAUNCH(N, HELD) where a line fits, with as many threads in `block` as a block has. */
#define TD_LAUNCH_HELD(T, MOST, l, aligned, LAUNCH)                                                \
    do {                                                                                           \
        enum { PACK = 16 / sizeof(T), LONG = (MOST) * 4 / sizeof(td_wide<T>) };                    \
        bool packed = (aligned) && (l).n % PACK == 0, few = (l).n <= 32 * TD_HELD_FEW;             \
        int lanes = td_lanes_to_hold((l).n / (packed ? PACK : 1),                                  \
                                     few ? TD_HELD_FEW / (packed ? PACK : 1)                       \
                                     : packed ? LONG / PACK                                        \
                                              : LONG / 2);                                         \
        int block = lanes > 32 ? lanes : TD_GROUP_BLOCK;                                           \
        long long each = lanes ? block / lanes : 1;                                                \
        unsigned int blocks = (unsigned int)(((l).outer + each - 1) / each);                       \
        if ((l).inner == 1 && lanes)                                                               \
            return packed ? few ? LAUNCH(PACK, TD_HELD_FEW) : LAUNCH(PACK, LONG)                   \
                   : few  ? LAUNCH(1, TD_HELD_FEW)                                                 \
                          : LAUNCH(1, LONG / 2);                                                   \
    } while (0)

/* ---- sums of exponentials ---- */

/* exp(most) * sum, so that nothing overflows. */
template <typename W> struct td_exp_sum {
    W most;
    double sum;
};

template <typename W>
__device__ static inline td_exp_sum<W> td_shuffle_xor(td_exp_sum<W> mine, int by) {
    td_exp_sum<W> r = {td_shuffle_xor(mine.most, by), td_shuffle_xor(mine.sum, by)};
    return r;
}

template <typename W> struct td_exp_adder {
    __device__ td_exp_sum<W> start() const { return td_exp_sum<W>{-(W)INFINITY, 0}; }
    __device__ void take(td_exp_sum<W> &acc, W x) const {
        if (x > acc.most) {
            acc.sum = acc.sum * (double)td_cu_exp(acc.most - x) + 1;
            acc.most = x;
        } else if (x == acc.most) { /* infinities too; minus infinity adds nothing */
            acc.sum += x == -(W)INFINITY ? 0 : 1;
        } else {
            acc.sum += (double)td_cu_exp(x - acc.most);
        }
    }
    __device__ double brought(td_exp_sum<W> a, W most) const {
        return a.most == most ? a.sum : a.sum * (double)td_cu_exp(a.most - most);
    }
    __device__ td_exp_sum<W> join(td_exp_sum<W> a, td_exp_sum<W> b) const {
        W most = a.most > b.most ? a.most : b.most;
        return td_exp_sum<W>{most, brought(a, most) + brought(b, most)};
    }
};

template <typename T, bool COLUMNS>
__device__ static td_exp_sum<td_wide<T>> td_sum_line(const T *x, const td_line_part &p,
                                                     long long n, int lanes) {
    typedef td_wide<T> W;
    __shared__ td_exp_sum<W> shared[TD_GROUP_BLOCK];
    td_exp_adder<W> adder;
    td_exp_sum<W> acc = adder.start();
    for (long long i = p.first; p.there && i < n; i += p.step)
        adder.take(acc, td_widen(x[p.base + i * p.stride]));
    return td_line_fold<COLUMNS>(adder, acc, lanes, shared);
}

/* The exponential of what is not positive, as exactly as the elements T want it. */
template <typename T> __device__ static inline td_wide<T> td_exp_for(td_wide<T> x) {
    return sizeof(T) == 2 ? td_cu_exp2(x * (td_wide<T>)1.44269504088896340736) : td_cu_exp(x);
}

/* The same of a line that is held; what it holds becomes the exponentials of its distances from the
 * largest, or these themselves. Where that is infinite they are distances from 0. */
template <typename T, int HELD>
__device__ static td_exp_sum<td_wide<T>> td_sum_held(td_wide<T> (&v)[HELD], bool log, int lanes) {
    typedef td_wide<T> W;
    enum { TOGETHER = sizeof(T) == 2 ? 8 : 1 }; /* of 16 bits, that are summed as floats */
    __shared__ W shared[TD_HELD_BLOCK / 32];
    __shared__ double sums[TD_HELD_BLOCK / 32];
    td_larger larger;
    td_exp_sum<W> all = {-(W)INFINITY, 0};
    TD_UNROLL
    for (int k = 0; k < HELD; k++)
        all.most = larger.join(all.most, v[k]);
    all.most = td_group_fold(larger, all.most, lanes, shared);
    W from = all.most - all.most == 0 ? all.most : 0;
    TD_UNROLL
    for (int k = 0; k < HELD; k += TOGETHER) {
        W sum = 0;
        TD_UNROLL
        for (int e = k; e < k + TOGETHER; e++) {
            W d = v[e] - from, power = td_exp_for<T>(d);
            sum += power;
            v[e] = log ? d : power;
        }
        all.sum += (double)sum;
    }
    all.sum = td_group_fold(td_adder(), all.sum, lanes, sums);
    return all;
}

/* ---- softmax ---- */

/* What exponentials are multiplied by, and what distances lose. */
template <typename W> struct td_softmax_ends {
    W scale, shift;
};
template <typename W> __device__ static inline td_softmax_ends<W> td_ends_of(td_exp_sum<W> sum, bool log_wanted) {
    if (sum.most - sum.most != 0) /* an infinity among them, or nothing but minus infinity */
        sum.sum = sum.most - sum.most;
    return log_wanted ? td_softmax_ends<W>{1, (W)log(sum.sum)}
                      : td_softmax_ends<W>{(W)(1 / sum.sum), 0};
}

template <typename T, int N, int HELD>
__global__ void __launch_bounds__(TD_HELD_BLOCK)
    td_held_softmax_kernel(const __grid_constant__ td_cu_softmax s, int lanes) {
    typedef td_wide<T> W;
    W v[HELD];
    td_line_part p = td_part_of<false>(s.lines, lanes);
    td_hold<N>((const T *)s.x, p, (int)s.lines.n, -(W)INFINITY, v);
    td_softmax_ends<W> ends = td_ends_of(td_sum_held<T>(v, s.log, lanes), s.log);
    TD_UNROLL
    for (int k = 0; k < HELD; k++)
        v[k] = v[k] * ends.scale - ends.shift;
    td_write_held<N>((T *)s.out, p, (int)s.lines.n, v);
}

template <typename T, bool COLUMNS>
__global__ void td_softmax_kernel(const __grid_constant__ td_cu_softmax s, int lanes) {
    typedef td_wide<T> W;
    const T *x = (const T *)s.x;
    T *out = (T *)s.out;
    td_line_part p = td_part_of<COLUMNS>(s.lines, lanes);
    td_exp_sum<W> sum = td_sum_line<T, COLUMNS>(x, p, s.lines.n, lanes);
    if (!p.there)
        return;
    td_softmax_ends<W> ends = td_ends_of(sum, s.log);
    for (long long i = p.first; i < s.lines.n; i += p.step) {
        long long at = p.base + i * p.stride;
        W d = td_widen(x[at]) - sum.most;
        out[at] = td_narrow<T>::of(s.log ? d - ends.shift : td_cu_exp(d) * ends.scale);
    }
}

template <typename T, bool COLUMNS>
__global__ void td_softmax_back_kernel(const __grid_constant__ td_cu_softmax s, int lanes) {
    typedef td_wide<T> W;
    __shared__ double shared[TD_GROUP_BLOCK];
    const T *y = (const T *)s.x, *g = (const T *)s.g;
    T *out = (T *)s.out;
    td_line_part p = td_part_of<COLUMNS>(s.lines, lanes);
    double acc = 0;
    for (long long i = p.first; p.there && i < s.lines.n; i += p.step) {
        long long at = p.base + i * p.stride;
        double own = (double)td_widen(g[at]);
        acc += s.log ? own : own * (double)td_widen(y[at]);
    }
    W sum = (W)td_line_fold<COLUMNS>(td_adder(), acc, lanes, shared);
    if (!p.there)
        return;
    for (long long i = p.first; i < s.lines.n; i += p.step) {
        long long at = p.base + i * p.stride;
        W own = td_widen(g[at]), result = td_widen(y[at]);
        out[at] = td_narrow<T>::of(s.log ? own - td_cu_exp(result) * sum : result * (own - sum));
    }
}

template <typename T, int N, int HELD>
__global__ void __launch_bounds__(TD_HELD_BLOCK)
    td_held_softmax_back_kernel(const __grid_constant__ td_cu_softmax s, int lanes) {
    typedef td_wide<T> W;
    __shared__ double shared[TD_HELD_BLOCK / 32];
    W y[HELD], g[HELD];
    td_line_part p = td_part_of<false>(s.lines, lanes);
    td_hold<N>((const T *)s.x, p, (int)s.lines.n, 0, y);
    td_hold<N>((const T *)s.g, p, (int)s.lines.n, 0, g);
    double acc = 0;
    TD_UNROLL
    for (int k = 0; k < HELD; k++)
        acc += s.log ? (double)g[k] : (double)g[k] * (double)y[k];
    W sum = (W)td_group_fold(td_adder(), acc, lanes, shared);
    TD_UNROLL
    for (int k = 0; k < HELD; k++)
        g[k] = s.log ? g[k] - td_cu_exp(y[k]) * sum : y[k] * (g[k] - sum);
    td_write_held<N>((T *)s.out, p, (int)s.lines.n, g);
}

static bool td_is_whole(const void *p) {
    return (unsigned long long)p % 16 == 0;
}

template <typename T>
static cudaError_t td_launch_softmax(const td_cu_softmax *s, cudaStream_t stream) {
    bool aligned = td_is_whole(s->x) && td_is_whole(s->g) && td_is_whole(s->out);
#define FORWARD(N, HELD)                                                                           \
    TD_LAUNCH_TOGETHER((td_held_softmax_kernel<T, N, HELD>), blocks, block, stream, *s, lanes)
#define BACKWARD(N, HELD)                                                                          \
    TD_LAUNCH_TOGETHER((td_held_softmax_back_kernel<T, N, HELD>), blocks, block, stream, *s, lanes)
    if (s->g)
        TD_LAUNCH_HELD(T, TD_HELD / 2, s->lines, aligned, BACKWARD);
    else
        TD_LAUNCH_HELD(T, TD_HELD, s->lines, aligned, FORWARD);
    int lanes = td_lanes_for(s->lines.n);
    unsigned int blocks = td_line_blocks(s->lines, lanes);
    if (s->lines.inner > 1)
        return s->g ? TD_LAUNCH_TOGETHER((td_softmax_back_kernel<T, true>), blocks, TD_GROUP_BLOCK,
                                         stream, *s, lanes)
                    : TD_LAUNCH_TOGETHER((td_softmax_kernel<T, true>), blocks, TD_GROUP_BLOCK,
                                         stream, *s, lanes);
    return s->g ? TD_LAUNCH_TOGETHER((td_softmax_back_kernel<T, false>), blocks, TD_GROUP_BLOCK,
                                     stream, *s, lanes)
                : TD_LAUNCH_TOGETHER((td_softmax_kernel<T, false>), blocks, TD_GROUP_BLOCK, stream,
                                     *s, lanes);
}

cudaError_t td_cu_run_softmax(const td_cu_softmax *s, cudaStream_t stream) {
    TD_BY_FLOAT(s->dtype, T, return td_launch_softmax<T>(s, stream))
    return cudaErrorInvalidValue;
}

/* ---- cross entropy ---- */

template <typename T, int N, int HELD>
__global__ void __launch_bounds__(TD_HELD_BLOCK)
    td_held_lse_kernel(const __grid_constant__ td_cu_cross_entropy s, int lanes) {
    typedef td_wide<T> W;
    W v[HELD];
    td_line_part p = td_part_of<false>(s.lines, lanes);
    td_hold<N>((const T *)s.x, p, (int)s.lines.n, -(W)INFINITY, v);
    td_exp_sum<W> sum = td_sum_held<T>(v, false, lanes);
    if (p.there && p.first == 0)
        ((W *)s.lse)[p.number] = (sum.most - sum.most == 0 ? sum.most : 0) + (W)log(sum.sum);
}

template <typename T, bool COLUMNS>
__global__ void td_lse_kernel(const __grid_constant__ td_cu_cross_entropy s, int lanes) {
    typedef td_wide<T> W;
    td_line_part p = td_part_of<COLUMNS>(s.lines, lanes);
    td_exp_sum<W> sum = td_sum_line<T, COLUMNS>((const T *)s.x, p, s.lines.n, lanes);
    if (p.there && p.first == 0)
        ((W *)s.lse)[p.number] = sum.most + (W)log(sum.sum);
}

template <typename T>
static cudaError_t td_launch_lse(const td_cu_cross_entropy *s, cudaStream_t stream) {
#define LSE(N, HELD)                                                                               \
    TD_LAUNCH_TOGETHER((td_held_lse_kernel<T, N, HELD>), blocks, block, stream, *s, lanes)
    TD_LAUNCH_HELD(T, TD_HELD, s->lines, td_is_whole(s->x), LSE);
    int lanes = td_lanes_for(s->lines.n);
    unsigned int blocks = td_line_blocks(s->lines, lanes);
    return s->lines.inner > 1 ? TD_LAUNCH_TOGETHER((td_lse_kernel<T, true>), blocks, TD_GROUP_BLOCK,
                                                   stream, *s, lanes)
                              : TD_LAUNCH_TOGETHER((td_lse_kernel<T, false>), blocks,
                                                   TD_GROUP_BLOCK, stream, *s, lanes);
}

cudaError_t td_cu_run_lse(const td_cu_cross_entropy *s, cudaStream_t stream) {
    TD_BY_FLOAT(s->dtype, T, return td_launch_lse<T>(s, stream))
    return cudaErrorInvalidValue;
}

/* (softmax - onehot) * weight * g / total, element by element. */
template <typename T>
__global__ void
td_cross_entropy_back_kernel(const __grid_constant__ td_cu_cross_entropy_backward s) {
    typedef td_wide<T> W;
    long long numel = s.lines.outer * s.lines.n * s.lines.inner;
    long long at = (long long)blockIdx.x * TD_GROUP_BLOCK + threadIdx.x;
    double divisor = s.total ? (double)*(const W *)s.total : 1;
    for (; at < numel; at += (long long)gridDim.x * TD_GROUP_BLOCK) {
        long long above = s.lines.inner == 1 ? at : td_divide(at, s.lines.inner);
        long long outer = td_divide(above, s.lines.n), c = above - outer * s.lines.n;
        long long line = outer * s.lines.inner + (at - above * s.lines.inner);
        W weight = ((const W *)s.weights)[line], result = 0;
        if (weight != 0) {
            double g = (double)td_widen(((const T *)s.g)[s.each ? line : 0]);
            W scale = (W)((double)weight * g / divisor);
            if (scale != 0 && s.x)
                result = td_cu_exp(td_widen(((const T *)s.x)[at]) - ((const W *)s.lse)[line]) *
                         scale;
            if (scale != 0 && c == s.classes[line])
                result -= scale;
        }
        ((T *)s.out)[at] = td_narrow<T>::of(result);
    }
}

template <typename T>
static cudaError_t td_launch_back(const td_cu_cross_entropy_backward *s, cudaStream_t stream) {
    long long numel = s->lines.outer * s->lines.n * s->lines.inner, most = 1 << 20;
    long long blocks = (numel + TD_GROUP_BLOCK - 1) / TD_GROUP_BLOCK;
    blocks = blocks < most ? blocks : most;
    return TD_LAUNCH((td_cross_entropy_back_kernel<T>), (unsigned int)blocks, TD_GROUP_BLOCK,
                     stream, *s);
}

cudaError_t td_cu_run_cross_entropy_backward(const td_cu_cross_entropy_backward *s,
                                             cudaStream_t stream) {
    TD_BY_FLOAT(s->dtype, T, return td_launch_back<T>(s, stream))
    return cudaErrorInvalidValue;
}
