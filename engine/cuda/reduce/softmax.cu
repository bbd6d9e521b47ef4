/* softmax.cu: softmax and its logarithm along a dim, the gradients of both, log-sum-exps of lines,
 * and the gradient of cross entropy.
 *
 * A line is read once for its largest element and the sum of the exponentials, which is brought
 * down whenever a larger element turns up, and once more for the result. Lines whose elements lie
 * side by side have a group of threads each; others lie side by side themselves. */
#include "engine/cuda/reduce/softmax_code.h"

#include "engine/cuda/runtime/elements.cuh"
#include "engine/cuda/runtime/groups.cuh"
#include "engine/cuda/runtime/launch.cuh"
#include "engine/cuda/runtime/math.cuh"

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
        p.number = (long long)blockIdx.x * (TD_GROUP_BLOCK / lanes) + threadIdx.x / lanes;
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
    while (lanes < 32 && lanes * 4 < n)
        lanes *= 2;
    return n > 1024 ? TD_GROUP_BLOCK : lanes;
}

static unsigned int td_line_blocks(const td_cu_lines &l, int lanes) {
    long long each = l.inner > 1 ? TD_SIDE : TD_GROUP_BLOCK / lanes;
    return (unsigned int)((l.outer * l.inner + each - 1) / each);
}

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
    __device__ td_exp_sum<W> start() const { return td_exp_sum<W>{-1 / (W)0.0f, 0}; }
    __device__ void take(td_exp_sum<W> &acc, W x) const {
        if (x > acc.most) {
            acc.sum = acc.sum * (double)td_cu_exp(acc.most - x) + 1;
            acc.most = x;
        } else if (x == acc.most) { /* infinities too; minus infinity adds nothing */
            acc.sum += x == -1 / (W)0.0f ? 0 : 1;
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

/* ---- softmax ---- */

template <typename T, bool COLUMNS>
__global__ void td_softmax_kernel(const __grid_constant__ td_cu_softmax s, int lanes) {
    typedef td_wide<T> W;
    const T *x = (const T *)s.x;
    T *out = (T *)s.out;
    td_line_part p = td_part_of<COLUMNS>(s.lines, lanes);
    td_exp_sum<W> sum = td_sum_line<T, COLUMNS>(x, p, s.lines.n, lanes);
    if (!p.there)
        return;
    if (sum.most - sum.most != 0) /* an infinity among them, or nothing but minus infinity */
        sum.sum = sum.most - sum.most;
    W scale = (W)(1 / sum.sum), shift = (W)log(sum.sum);
    for (long long i = p.first; i < s.lines.n; i += p.step) {
        long long at = p.base + i * p.stride;
        W d = td_widen(x[at]) - sum.most;
        out[at] = td_narrow<T>::of(s.log ? d - shift : td_cu_exp(d) * scale);
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

template <typename T>
static cudaError_t td_launch_softmax(const td_cu_softmax *s, cudaStream_t stream) {
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
