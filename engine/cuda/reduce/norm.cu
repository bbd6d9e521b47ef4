/* norm.cu: normalisation of rows, its gradients, sums and affine maps by channel.
 *
 * A row's moments are sums of distances to its first element, in double: of float32 that loses
 * nothing, however far that element lies from the others; of float64 the deviations are taken in a
 * second pass, over a power of two where their squares would leave it. A mean goes in two parts
 * into the elements' arithmetic, which is the wide type's. */
#include "engine/cuda/reduce/norm_code.h"

#include "engine/cuda/limits.h"
#include "engine/cuda/reduce/reduction.cuh"
#include "engine/cuda/runtime/elements.cuh"
#include "engine/cuda/runtime/squares.cuh"

static int td_lanes_of(long long n) {
    int lanes = 1;
    while (lanes < 32 && lanes * TD_LIMIT(NORM_EACH) < n)
        lanes *= 2;
    return n > TD_LIMIT(NORM_BLOCK) ? TD_GROUP_BLOCK : lanes;
}

static bool td_is_aligned(const void *p) {
    return (unsigned long long)p % 16 == 0;
}

/* The row of a group of threads. */
struct td_row {
    bool there;
    long long number, base, weights; /* its first element; its first weight */
    int lane;
};

__device__ static inline td_row td_row_of(const td_cu_norm &s, int lanes) {
    td_row r;
    r.number = (long long)blockIdx.x * (TD_GROUP_BLOCK / lanes) + threadIdx.x / lanes;
    r.there = r.number < s.batch * s.groups;
    r.base = r.number * s.per * s.inner;
    long long batch = s.groups == 1 ? r.number : td_divide(r.number, s.groups);
    r.weights = (r.number - batch * s.groups) * s.per;
    r.lane = (int)threadIdx.x % lanes;
    return r;
}

template <typename W>
__device__ static inline W td_weight_at(const td_cu_norm &s, const void *list, const td_row &r,
                                        long long i, W otherwise) {
    return list ? ((const W *)list)[r.weights + (s.inner == 1 ? i : td_divide(i, s.inner))]
                : otherwise;
}

/* ---- forward ---- */

/* A sum, and the largest of what is not negative; NaN is left to the sum. */
struct td_summit {
    __device__ td_cu_pair join(td_cu_pair a, td_cu_pair b) const {
        return td_cu_pair{a.a + b.a, a.b > b.b ? a.b : b.b};
    }
};

/* Sum of the distances to `from`, and the largest of them. */
template <typename T>
__device__ static td_cu_pair td_row_reach(const T *x, const td_row &r, long long n, double from,
                                          int lanes, td_cu_pair *shared) {
    td_cu_pair reach = {0, 0};
    for (long long i = r.lane; r.there && i < n; i += lanes) {
        double d = (double)td_widen(x[r.base + i]) - from;
        reach = td_summit().join(reach, td_cu_pair{d, fabs(d)});
    }
    return td_group_fold(td_summit(), reach, lanes, shared);
}

/* What makes the power of two below the largest distance 1, where squares of that would leave
 * float64; else 1. */
__device__ static inline double td_row_scale(double largest) {
    int exponent = largest > 0 && largest <= 0x1.fffffffffffffp1023 ? ilogb(largest) : 0;
    exponent = exponent < -1000 ? -1000 : exponent;
    return exponent > 450 || exponent < -450 ? ldexp(1, -exponent) : 1;
}

/* 1 / sqrt(square / scale / scale + eps). */
__device__ static inline double td_row_factor(double square, double scale, double eps) {
    return 1 / (scale == 1 ? sqrt(square + eps) : hypot(sqrt(square) / scale, sqrt(eps)));
}

/* Sum of the distances to `from`, and of their squares, all of them by `scale`. */
template <typename T, int N>
__device__ static td_cu_pair td_row_sums(const T *x, const td_row &r, long long n, double from,
                                         double scale, int lanes, td_cu_pair *shared) {
    typedef td_pack<T, N> pack;
    td_cu_pair sums = {0, 0};
    for (long long i = (long long)r.lane * N; r.there && i < n; i += (long long)lanes * N) {
        pack v = *(const pack *)(const void *)(x + r.base + i);
        for (int e = 0; e < N; e++) {
            double d = ((double)td_widen(v.e[e]) - from) * scale;
            sums.a += d;
            sums.b += d * d;
        }
    }
    return td_group_fold(td_adder(), sums, lanes, shared);
}

template <typename T, int N>
__global__ void td_norm_kernel(const __grid_constant__ td_cu_norm s, int lanes) {
    typedef td_wide<T> W;
    typedef td_pack<T, N> pack;
    __shared__ td_cu_pair shared[TD_GROUP_WARPS];
    const T *x = (const T *)s.x;
    td_row r = td_row_of(s, lanes);
    long long n = s.per * s.inner;
    bool centered = s.centered && n > 0;
    double count = (double)n, mean = r.there && centered ? (double)td_widen(x[r.base]) : 0;
    double scale = 1;
    td_cu_pair sums;
    if (sizeof(T) == sizeof(double)) {
        td_cu_pair reach = td_row_reach(x, r, n, mean, lanes, shared);
        mean += centered ? reach.a / count : 0;
        scale = td_row_scale(reach.b);
        sums = td_row_sums<T, N>(x, r, n, mean, scale, lanes, shared);
    } else {
        sums = td_row_sums<T, N>(x, r, n, mean, scale, lanes, shared);
        mean += centered ? sums.a / count : 0;
    }
    sums.b -= centered ? sums.a / count * sums.a : 0;
    double square = sums.b / count;
    square = square > 0 || square != square ? square : 0;
    double rstd = td_row_factor(square, scale, s.eps);
    if (!r.there)
        return;
    if (r.lane == 0) {
        ((W *)s.mean)[r.number] = (W)mean;
        ((W *)s.rstd)[r.number] = (W)rstd;
    }
    W high = (W)mean, low = (W)(mean - (double)high), factor = (W)rstd;
    for (long long i = (long long)r.lane * N; i < n; i += (long long)lanes * N) {
        pack v = *(const pack *)(const void *)(x + r.base + i);
        for (int e = 0; e < N; e++) {
            W y = ((td_widen(v.e[e]) - high) - low) * factor;
            y = y * td_weight_at<W>(s, s.weight, r, i + e, 1) +
                td_weight_at<W>(s, s.bias, r, i + e, (W)-0.0); /* which changes no zero */
            v.e[e] = td_narrow<T>::of(y);
        }
        *(pack *)(void *)((T *)s.out + r.base + i) = v;
    }
}

/* ---- backward ---- */

template <typename T, int N>
__global__ void td_norm_back_kernel(const __grid_constant__ td_cu_norm s, int lanes) {
    typedef td_wide<T> W;
    typedef td_pack<T, N> pack;
    __shared__ td_cu_pair shared[TD_GROUP_WARPS];
    const T *x = (const T *)s.x, *g = (const T *)s.g;
    td_row r = td_row_of(s, lanes);
    long long n = s.per * s.inner;
    W mean = r.there ? ((const W *)s.mean)[r.number] : (W)0;
    W rstd = r.there ? ((const W *)s.rstd)[r.number] : (W)0;
    td_cu_pair sums = {0, 0};
    for (long long i = (long long)r.lane * N; r.there && i < n; i += (long long)lanes * N) {
        pack vx = *(const pack *)(const void *)(x + r.base + i);
        pack vg = *(const pack *)(const void *)(g + r.base + i);
        for (int e = 0; e < N; e++) {
            double own =
                (double)td_widen(vg.e[e]) * (double)td_weight_at<W>(s, s.weight, r, i + e, 1);
            sums.a += own;
            sums.b += own * ((double)td_widen(vx.e[e]) - (double)mean);
        }
    }
    sums = td_group_fold(td_adder(), sums, lanes, shared);
    if (!r.there)
        return;
    double factor = (double)rstd, count = (double)n;
    W along =
        (W)(-factor * (factor * sums.b / count)); /* of normalised x: powers leave the dtype */
    W shift = s.centered ? (W)(-factor * sums.a / count) : (W)0;
    for (long long i = (long long)r.lane * N; i < n; i += (long long)lanes * N) {
        pack vx = *(const pack *)(const void *)(x + r.base + i);
        pack vg = *(const pack *)(const void *)(g + r.base + i);
        for (int e = 0; e < N; e++) {
            W own = td_widen(vg.e[e]) * td_weight_at<W>(s, s.weight, r, i + e, 1);
            W y = (td_widen(vx.e[e]) - mean) * rstd;
            vx.e[e] = td_narrow<T>::of(shift + y * along + own * rstd);
        }
        *(pack *)(void *)((T *)s.out + r.base + i) = vx;
    }
}

template <typename T, int N>
static cudaError_t td_launch_norm(const td_cu_norm *s, cudaStream_t stream) {
    int lanes = td_lanes_of(s->per * s->inner);
    long long each = TD_GROUP_BLOCK / lanes, rows = s->batch * s->groups;
    unsigned int blocks = (unsigned int)((rows + each - 1) / each);
    return s->g ? TD_LAUNCH_TOGETHER((td_norm_back_kernel<T, N>), blocks, TD_GROUP_BLOCK, stream,
                                     *s, lanes)
                : TD_LAUNCH_TOGETHER((td_norm_kernel<T, N>), blocks, TD_GROUP_BLOCK, stream, *s,
                                     lanes);
}

template <typename T> static cudaError_t td_choose_norm(const td_cu_norm *s, cudaStream_t stream) {
    enum { N = 16 / sizeof(T) };
    if (s->per * s->inner % N == 0 && td_is_aligned(s->x) && td_is_aligned(s->out) &&
        td_is_aligned(s->g))
        return td_launch_norm<T, N>(s, stream);
    return td_launch_norm<T, 1>(s, stream);
}

cudaError_t td_cu_run_norm(const td_cu_norm *s, cudaStream_t stream) {
    TD_BY_FLOAT(s->dtype, T, return td_choose_norm<T>(s, stream))
    return cudaErrorInvalidValue;
}

cudaError_t td_cu_run_norm_backward(const td_cu_norm *s, cudaStream_t stream) {
    return td_cu_run_norm(s, stream);
}

/* ---- gradients of the weights ---- */

/* Two tensors' elements at one place. */
template <typename W> struct td_both { W g, x; };

template <typename E> struct td_weights_fold : td_cu_norm {
    typedef E T;
    typedef td_wide<E> W;
    typedef td_both<W> V;
    typedef td_cu_pair A; /* of the weight, of the bias */
    typedef long long C;  /* the group */
    enum { VECTOR = 0 };

    __device__ A start() const { return A{0, 0}; }
    __device__ C context(const td_output_place &at) const { return td_divide(at.number, per); }
    __device__ V load(C group, long long offset, long long k) const {
        long long row = (inner == 1 ? k : td_divide(k, inner)) * groups + group;
        W d = td_widen(((const E *)x)[offset]) - ((const W *)mean)[row];
        return V{td_widen(((const E *)g)[offset]), d * ((const W *)rstd)[row]};
    }
    __device__ void take(A &acc, C, V v, long long) const {
        acc.a += (double)v.g * (double)v.x;
        acc.b += (double)v.g;
    }
    __device__ A join(A a, A b) const { return A{a.a + b.a, a.b + b.b}; }
    __device__ void finish(const td_cu_reduction &, const td_output_place &at, A acc) const {
        ((W *)dweight)[at.number] = (W)acc.a;
        ((W *)dbias)[at.number] = (W)acc.b;
    }
};

template <typename F, typename G>
static cudaError_t td_launch_sums(const td_cu_reduction *s, const G *given, void *partial,
                                  cudaStream_t stream) {
    F f;
    static_cast<G &>(f) = *given;
    return td_run_reduction(s, f, partial, stream);
}

cudaError_t td_cu_run_norm_weights(const td_cu_reduction *s, const td_cu_norm *n, void *partial,
                                   cudaStream_t stream) {
    TD_BY_FLOAT(n->dtype, T, return td_launch_sums<td_weights_fold<T>>(s, n, partial, stream))
    return cudaErrorInvalidValue;
}

/* ---- sums by channel ---- */

/* The same of narrower elements, whose squares double holds. */
struct td_cu_narrow_spread {
    double squares, sum;
};
__device__ static inline td_cu_narrow_spread td_shuffle_xor(td_cu_narrow_spread mine, int by) {
    return td_cu_narrow_spread{td_shuffle_xor(mine.squares, by), td_shuffle_xor(mine.sum, by)};
}
__device__ static inline void td_take_distance(td_cu_narrow_spread &acc, double d) {
    acc.squares += d * d;
    acc.sum += d;
}
__device__ static inline td_cu_narrow_spread td_join_spreads(td_cu_narrow_spread a,
                                                             td_cu_narrow_spread b) {
    return td_cu_narrow_spread{a.squares + b.squares, a.sum + b.sum};
}
__device__ static inline double td_around_mean(td_cu_narrow_spread acc, long long count,
                                               double *scale) {
    return td_around_mean(td_cu_squares{{0, acc.squares, 0}, acc.sum}, count, scale);
}

template <typename E> struct td_spread_of { typedef td_cu_narrow_spread A; };
template <> struct td_spread_of<double> { typedef td_cu_squares A; };

/* Mean, mean squared deviation and 1 over its root, from the distances to the channel's first
 * element. */
template <typename E> struct td_moments_fold : td_cu_channels {
    typedef E T;
    typedef td_wide<E> W;
    typedef E V;
    typedef typename td_spread_of<E>::A A;
    typedef double C;
    enum { VECTOR = 1 };

    __device__ A start() const { return A{}; }
    __device__ C context(const td_output_place &at) const {
        return (double)td_widen(((const E *)x)[at.offset]);
    }
    __device__ V load(C, long long offset, long long) const { return ((const E *)x)[offset]; }
    __device__ void take(A &acc, C from, V v, long long) const {
        td_take_distance(acc, (double)td_widen(v) - from);
    }
    __device__ A join(A a, A b) const { return td_join_spreads(a, b); }
    __device__ void finish(const td_cu_reduction &s, const td_output_place &at, A acc) const {
        double count = (double)s.count, from = s.count > 0 ? context(at) : 0, scale;
        double square = td_around_mean(acc, s.count, &scale) / count;
        ((W *)first)[at.number] = (W)(from + (s.count > 0 ? acc.sum / count : 0));
        ((W *)second)[at.number] = (W)(square / scale / scale);
        ((W *)third)[at.number] = (W)td_row_factor(square, scale, eps);
    }
};

/* Sums of g and of g (x - mean) rstd. */
template <typename E> struct td_products_fold : td_cu_channels {
    typedef E T;
    typedef td_wide<E> W;
    typedef td_both<W> V;
    typedef td_cu_pair A;
    typedef td_cu_pair C; /* mean and rstd */
    enum { VECTOR = 0 };

    __device__ A start() const { return A{0, 0}; }
    __device__ C context(const td_output_place &at) const {
        return C{(double)((const W *)mean)[at.number], (double)((const W *)rstd)[at.number]};
    }
    __device__ V load(C, long long offset, long long) const {
        return V{td_widen(((const E *)g)[offset]), td_widen(((const E *)x)[offset])};
    }
    __device__ void take(A &acc, C of, V v, long long) const {
        acc.a += (double)v.g;
        acc.b += (double)v.g * (((double)v.x - of.a) * of.b);
    }
    __device__ A join(A a, A b) const { return A{a.a + b.a, a.b + b.b}; }
    __device__ void finish(const td_cu_reduction &, const td_output_place &at, A acc) const {
        ((W *)first)[at.number] = (W)acc.a;
        ((W *)second)[at.number] = (W)acc.b;
    }
};

cudaError_t td_cu_run_channel_sums(const td_cu_reduction *s, const td_cu_channels *c, void *partial,
                                   cudaStream_t stream) {
    if (c->g) {
        TD_BY_FLOAT(c->dtype, T, return td_launch_sums<td_products_fold<T>>(s, c, partial, stream))
    } else {
        TD_BY_FLOAT(c->dtype, T, return td_launch_sums<td_moments_fold<T>>(s, c, partial, stream))
    }
    return cudaErrorInvalidValue;
}

/* ---- maps by channel ---- */

/* What is multiplied and added in one channel. */
template <typename W> struct td_channel { W g, mean, rstd, bias, weight; };

template <typename W>
__device__ static inline W td_number_at(const void *list, long long c, W absent) {
    return list ? ((const W *)list)[c] : absent;
}

template <typename W>
__device__ static inline td_channel<W> td_channel_of(const td_cu_channel_map &s, long long c) {
    return td_channel<W>{td_number_at<W>(s.k[0], c, 0), td_number_at<W>(s.k[1], c, 0),
                         td_number_at<W>(s.k[2], c, 0), td_number_at<W>(s.k[3], c, 0),
                         td_number_at<W>(s.k[4], c, 1)};
}

template <typename T, int N>
__device__ static inline td_pack<T, N> td_mapped(const td_cu_channel_map &s, td_pack<T, N> g,
                                                 td_pack<T, N> x, const td_channel<td_wide<T>> *k,
                                                 int by_element) {
    td_pack<T, N> out;
    for (int e = 0; e < N; e++) {
        const td_channel<td_wide<T>> &c = k[by_element ? e : 0];
        td_wide<T> y = c.bias;
        if (s.x)
            y += (td_widen(x.e[e]) - c.mean) * c.rstd * c.weight;
        if (s.g)
            y += td_widen(g.e[e]) * c.g;
        out.e[e] = td_narrow<T>::of(y);
    }
    return out;
}

/* Channels side by side: a thread goes from row to row within its channels, whose numbers it keeps.
 * Threads together step over whole rows. */
template <typename T, int N>
__global__ void td_channel_rows_kernel(const __grid_constant__ td_cu_channel_map s) {
    typedef td_pack<T, N> pack;
    long long at = ((long long)blockIdx.x * TD_GROUP_BLOCK + threadIdx.x) * N;
    long long step = (long long)gridDim.x * TD_GROUP_BLOCK * N;
    const T *g = (const T *)(s.g ? s.g : s.x), *x = (const T *)(s.x ? s.x : s.g);
    T *out = (T *)s.out;
    td_channel<td_wide<T>> k[N];
    if (at >= s.numel)
        return;
    long long first = at - td_divide(at, s.channels) * s.channels;
    for (int e = 0; e < N; e++)
        k[e] = td_channel_of<td_wide<T>>(s, first + e);
    for (; at + step < s.numel; at += 2 * step) {
        pack g0 = *(const pack *)(const void *)(g + at), x0 = *(const pack *)(const void *)(x + at);
        pack g1 = *(const pack *)(const void *)(g + at + step),
             x1 = *(const pack *)(const void *)(x + at + step);
        *(pack *)(void *)(out + at) = td_mapped<T, N>(s, g0, x0, k, 1);
        *(pack *)(void *)(out + at + step) = td_mapped<T, N>(s, g1, x1, k, 1);
    }
    if (at < s.numel)
        *(pack *)(void *)(out + at) = td_mapped<T, N>(s, *(const pack *)(const void *)(g + at),
                                                      *(const pack *)(const void *)(x + at), k, 1);
}

/* Channels of `inner` elements each, which packs don't part. */
template <typename T, int N>
__global__ void td_channel_map_kernel(const __grid_constant__ td_cu_channel_map s) {
    typedef td_pack<T, N> pack;
    long long at = ((long long)blockIdx.x * TD_GROUP_BLOCK + threadIdx.x) * N;
    long long step = (long long)gridDim.x * TD_GROUP_BLOCK * N;
    for (; at < s.numel; at += step) {
        pack g = *(const pack *)(const void *)((const T *)(s.g ? s.g : s.x) + at);
        pack x = *(const pack *)(const void *)((const T *)(s.x ? s.x : s.g) + at);
        long long row = td_divide(at, s.inner);
        td_channel<td_wide<T>> k =
            td_channel_of<td_wide<T>>(s, row - td_divide(row, s.channels) * s.channels);
        *(pack *)(void *)((T *)s.out + at) = td_mapped<T, N>(s, g, x, &k, 0);
    }
}

/* The least number of blocks whose packs are whole rows. */
static long long td_unit_of(long long packs) {
    long long unit = packs, block = TD_GROUP_BLOCK;
    for (; unit % 2 == 0 && block > 1; block /= 2)
        unit /= 2;
    return unit;
}

template <typename T, int N>
static cudaError_t td_launch_map(const td_cu_channel_map *s, cudaStream_t stream) {
    long long blocks = (s->numel / N + TD_GROUP_BLOCK - 1) / TD_GROUP_BLOCK, most = 1 << 20;
    long long unit = s->inner == 1 ? td_unit_of(s->channels / N) : 0;
    if (unit > 0 && unit <= TD_LIMIT(NORM_MAP_UNIT)) {
        if (blocks > TD_LIMIT(NORM_MAP_FULL))
            blocks = TD_LIMIT(NORM_MAP_FULL);
        return TD_LAUNCH((td_channel_rows_kernel<T, N>),
                         (unsigned int)((blocks + unit - 1) / unit * unit), TD_GROUP_BLOCK, stream,
                         *s);
    }
    return TD_LAUNCH((td_channel_map_kernel<T, N>), (unsigned int)(blocks < most ? blocks : most),
                     TD_GROUP_BLOCK, stream, *s);
}

template <typename T>
static cudaError_t td_choose_map(const td_cu_channel_map *s, cudaStream_t stream) {
    enum { N = 16 / sizeof(T) };
    bool whole = s->inner == 1 ? s->channels % N == 0 &&
                                     td_unit_of(s->channels / N) <= TD_LIMIT(NORM_MAP_UNIT)
                               : s->inner % N == 0;
    if (whole && td_is_aligned(s->g) && td_is_aligned(s->x) && td_is_aligned(s->out))
        return td_launch_map<T, N>(s, stream);
    return td_launch_map<T, 1>(s, stream);
}

cudaError_t td_cu_run_channel_map(const td_cu_channel_map *s, cudaStream_t stream) {
    TD_BY_FLOAT(s->dtype, T, return td_choose_map<T>(s, stream))
    return cudaErrorInvalidValue;
}
