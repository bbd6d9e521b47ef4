/* make.cu: progressions, a matrix's part between two diagonals, and draws.
 *
 * A seed gives the same bits on every device: arithmetic here is that of the CPU, operation by
 * operation (this file is compiled so that none are merged), and words of the generator's counters
 * become numbers as engine/cpu/random/random.c makes them. */
#include "engine/cuda/random/make_code.h"

#include "engine/core/draw_math.h"
#include "engine/cuda/runtime/elements.cuh"
#include "engine/cuda/runtime/groups.cuh"
#include "engine/cuda/runtime/launch.cuh"

static const long long td_most_blocks = 1 << 20;

static unsigned int td_blocks_for(long long n) {
    long long blocks = (n + TD_GROUP_BLOCK - 1) / TD_GROUP_BLOCK;
    return (unsigned int)(blocks < td_most_blocks ? blocks : td_most_blocks);
}

template <typename V>
__device__ static inline void td_put(int dtype, void *out, long long at, V v) {
    td_store_slot(dtype, (char *)out + at * td_element_size(dtype), td_slot_of(dtype, v));
}

/* ---- progressions ---- */

__global__ void td_progression_kernel(const __grid_constant__ td_cu_progression p) {
    long long k = (long long)blockIdx.x * TD_GROUP_BLOCK + threadIdx.x;
    for (; k < p.n; k += (long long)gridDim.x * TD_GROUP_BLOCK) {
        if (p.integer)
            td_put(p.dtype, p.out, k, (long long)(p.ifirst + k * p.istep));
        else if (p.anchored && k >= p.n / 2)
            td_put(p.dtype, p.out, k, p.last - (double)(p.n - 1 - k) * p.step);
        else
            td_put(p.dtype, p.out, k, p.first + (double)k * p.step);
    }
}

cudaError_t td_cu_run_progression(const td_cu_progression *p, cudaStream_t stream) {
    return TD_LAUNCH(td_progression_kernel, td_blocks_for(p->n), TD_GROUP_BLOCK, stream, *p);
}

/* ---- bands ---- */

template <typename T> __global__ void td_band_kernel(const __grid_constant__ td_cu_band s) {
    long long k = (long long)blockIdx.x * TD_GROUP_BLOCK + threadIdx.x;
    for (; k < s.numel; k += (long long)gridDim.x * TD_GROUP_BLOCK) {
        long long at = k, out = 0, x = 0, apart = 0;
        for (int d = s.ndim - 1; d >= 0; d--) {
            long long above = d ? td_divide(at, s.sizes[d]) : 0, i = at - above * s.sizes[d];
            out += i * s.out_strides[d];
            x += i * s.x_strides[d];
            apart += d == s.ndim - 1 ? i : d == s.ndim - 2 ? -i : 0;
            at = above;
        }
        bool kept = apart >= s.first && apart <= s.last;
        ((T *)s.out)[out] = kept ? ((const T *)s.x)[x] : (T)0;
    }
}

cudaError_t td_cu_run_band(const td_cu_band *b, cudaStream_t stream) {
    TD_BY_SIZE(b->size, T,
               return TD_LAUNCH((td_band_kernel<T>), td_blocks_for(b->numel), TD_GROUP_BLOCK,
                                stream, *b))
    return cudaErrorInvalidValue;
}

/* ---- words ---- */

__device__ static inline float td_uniform_of(const uint32_t *w, float) {
    return (float)(w[0] >> 8) * 0x1p-24f;
}
__device__ static inline double td_uniform_of(const uint32_t *w, double) {
    return (double)((((uint64_t)w[0] << 32) | w[1]) >> 11) * 0x1p-53;
}

/* ---- normal numbers: cpu/random/random_normal.h, one lane of it ---- */

template <typename T> struct td_normal_terms;
template <> struct td_normal_terms<float> {
    enum { LOG = 5, ANGLE = 5 };
    __device__ static float split(float x, float *e) {
        const int root_half = 0x3F3504F3, one = 0x3F800000;
        int bits;
        memcpy(&bits, &x, sizeof bits);
        bits += one - root_half;
        *e = (float)((bits >> 23) - 127);
        bits = (bits & 0x7FFFFF) + root_half;
        memcpy(&x, &bits, sizeof bits);
        return x;
    }
};
template <> struct td_normal_terms<double> {
    enum { LOG = 11, ANGLE = 9 };
    __device__ static double split(double x, double *e) {
        const long long root_half = 0x3FE6A09E667F3BCDll, one = 0x3FF0000000000000ll;
        long long bits;
        memcpy(&bits, &x, sizeof bits);
        bits += one - root_half;
        *e = (double)((bits >> 52) - 1023);
        bits = (bits & 0xFFFFFFFFFFFFFll) + root_half;
        memcpy(&x, &bits, sizeof bits);
        return x;
    }
};

/* The logarithm of 0 < x <= 1. */
template <typename T> __device__ static inline T td_log_below_one(T x) {
    typedef td_normal_terms<T> terms;
    T e, m = terms::split(x, &e), s = (m - 1) / (m + 1), square = s * s;
    T sum = 1 / (T)(2 * terms::LOG + 1);
    for (int k = terms::LOG - 1; k >= 0; k--)
        sum = sum * square + 1 / (T)(2 * k + 1);
    return e * (T)0.69314718055994531 + 2 * s * sum;
}

/* Cosine and sine of v turns, 0 <= v < 1. */
template <typename T> __device__ static inline T td_turn_of(T v, T *sine) {
    T nearest = (T)rint((double)(v * 4)), a = (v * 4 - nearest) * (T)1.5707963267948966;
    T square = a * a, s = 1, c = 1;
    for (int k = 2 * td_normal_terms<T>::ANGLE; k >= 2; k -= 2) {
        s = 1 - s * square / (T)(k * (k + 1));
        c = 1 - c * square / (T)(k * (k - 1));
    }
    s *= a;
    int quarter = (int)nearest;
    *sine = quarter & 1 ? c : s;
    T cosine = quarter & 1 ? s : c;
    if ((quarter >> 1) & 1)
        *sine = -*sine;
    return ((quarter + 1) >> 1) & 1 ? -cosine : cosine;
}

/* Two numbers from the words of two. */
template <typename T>
__device__ static void td_normal_pair(const uint32_t *w, int words, T mean, T std, T *out) {
    T u = 1 - td_uniform_of(w, (T)0), v = td_uniform_of(w + words, (T)0), sine;
    T radius = (T)sqrt(td_log_below_one(u) * -2) * std;
    T cosine = td_turn_of(v, &sine);
    out[0] = radius * cosine + mean;
    out[1] = radius * sine + mean;
}

/* ---- draws ---- */

/* The numbers of one counter's words: four, or two of two words each. */
template <typename T>
__device__ static void td_normal_draws(const td_cu_draw &d, const uint32_t *w, int n, T *out) {
    for (int k = 0; k < n; k += 2)
        td_normal_pair<T>(w + k * d.words, d.words, (T)d.a, (T)d.b, out + k);
    for (int k = 0; d.distribution == TD_CU_LOG_NORMAL && k < n; k++)
        out[k] = (T)td_draw_exp((double)out[k]);
}

template <typename T> __device__ static inline T td_uniform_draw(const td_cu_draw &d,
                                                                 const uint32_t *w) {
    uint32_t kept[2] = {w[0] & d.mask, d.words == 2 ? w[1] : 0};
    T v = (T)d.a + (T)(d.b - d.a) * td_uniform_of(kept, (T)0);
    v = v < (T)d.most ? v : (T)d.most;
    return v > (T)d.least ? v : (T)d.least;
}

__device__ static inline long long td_integer_draw(const td_cu_draw &d, const uint32_t *w) {
    if (d.words == 1)
        return d.low + (long long)((d.count * w[0]) >> 32);
    uint64_t r = ((uint64_t)w[0] << 32) | w[1];
    return (long long)((uint64_t)d.low + (uint64_t)__umul64hi(r, d.count));
}

/* Waiting times, what the tangent of an angle is, trials. */
__device__ static inline double td_shaped_draw(const td_cu_draw &d, const uint32_t *w) {
    double sine, u = td_draw_open(w);
    if (d.distribution == TD_CU_EXPONENTIAL)
        return -td_draw_log(u) / d.a;
    if (d.distribution == TD_CU_GEOMETRIC)
        return ceil(td_draw_log(u) / td_draw_log_rest(d.a));
    double cosine = td_draw_turn(u / 2, &sine);
    return d.a - d.b * (cosine / sine);
}

__device__ static void td_draw_one(const td_cu_draw &d, const uint32_t *w, long long at) {
    bool wide = d.dtype == TD_F64;
    double yes = wide || d.dtype == TD_I64 ? d.b : (double)(float)d.b;
    switch (d.distribution) {
    case TD_CU_UNIFORM:
        if (wide)
            td_put(d.dtype, d.out, at, td_uniform_draw<double>(d, w));
        else
            td_put(d.dtype, d.out, at, td_uniform_draw<float>(d, w));
        return;
    case TD_CU_BERNOULLI:
        td_put(d.dtype, d.out, at, w[0] < (uint64_t)(d.a * 0x1p32) ? yes : 0.0);
        return;
    case TD_CU_RANDINT: {
        long long v = td_integer_draw(d, w);
        if (d.dtype >= TD_F16) {
            v = v < (long long)d.most ? v : (long long)d.most;
            v = v > (long long)d.least ? v : (long long)d.least;
        }
        td_put(d.dtype, d.out, at, v);
        return;
    }
    }
    td_put(d.dtype, d.out, at, td_shaped_draw(d, w));
}

template <typename T>
__device__ static void td_draw_normals(const td_cu_draw &d, const uint32_t *w, long long at,
                                       int n) {
    T numbers[4];
    td_normal_draws<T>(d, w, 4 / d.words, numbers);
    for (int k = 0; k < n; k++)
        td_put(d.dtype, d.out, at + k, numbers[k]);
}

__global__ void td_draw_kernel(const __grid_constant__ td_cu_draw d) {
    int each = 4 / d.words;
    long long counter = (long long)blockIdx.x * TD_GROUP_BLOCK + threadIdx.x;
    for (; counter * each < d.n; counter += (long long)gridDim.x * TD_GROUP_BLOCK) {
        long long at = counter * each;
        int n = d.n - at < each ? (int)(d.n - at) : each;
        uint32_t w[4];
        td_philox_words(d.seed, d.offset + (uint64_t)counter, w);
        if (d.distribution == TD_CU_NORMAL || d.distribution == TD_CU_LOG_NORMAL) {
            if (d.dtype == TD_F64)
                td_draw_normals<double>(d, w, at, n);
            else
                td_draw_normals<float>(d, w, at, n);
            continue;
        }
        for (int k = 0; k < n; k++)
            td_draw_one(d, w + k * d.words, at + k);
    }
}

cudaError_t td_cu_run_draw(const td_cu_draw *d, cudaStream_t stream) {
    long long each = 4 / d->words;
    return TD_LAUNCH(td_draw_kernel, td_blocks_for((d->n + each - 1) / each), TD_GROUP_BLOCK,
                     stream, *d);
}
