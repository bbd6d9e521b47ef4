/* spatial.cu: windows over one to three dims: weighted sums, maxima, and back. A thread makes one
 * element of the result; what the gradient gives to a place is summed there, in order, so that no
 * two threads write to one place. */
#include "engine/cuda/spatial/spatial_code.h"

#include "engine/cuda/runtime/dims.h"
#include "engine/cuda/runtime/elements.cuh"
#include "engine/cuda/runtime/launch.cuh"

enum { TD_SPATIAL_BLOCK = 256 };

static unsigned td_spatial_blocks(long long n) {
    return (unsigned)((n + TD_SPATIAL_BLOCK - 1) / TD_SPATIAL_BLOCK);
}

struct td_cu_spot {
    long long outer, i[3], inner;
};

/* Of element `at` of volumes of these sizes. */
__device__ static inline td_cu_spot td_spot_of(long long at, long long a, long long b, long long c,
                                               long long inner) {
    td_cu_spot s;
    at = td_cu_divide(at, inner, &s.inner);
    at = td_cu_divide(at, c, &s.i[2]);
    at = td_cu_divide(at, b, &s.i[1]);
    s.outer = td_cu_divide(at, a, &s.i[0]);
    return s;
}

struct td_cu_window {
    long long begin, end;
};

__device__ static inline td_cu_window td_window_of(const td_cu_axis &a, long long k) {
    td_cu_window w;
    if (a.begin) {
        w.begin = a.begin[k];
        w.end = a.end[k];
        return w;
    }
    w.begin = k * a.stride - a.padding;
    w.end = w.begin + a.width;
    if (w.begin < 0)
        w.begin += (a.step - 1 - w.begin) / a.step * a.step;
    w.end = w.end < a.in ? w.end : a.in;
    return w;
}

__device__ static inline double td_weight_of(const td_cu_axis &a, long long k, long long at) {
    return a.weight ? a.weight[a.first[k] + at] : 1;
}
__device__ static inline double td_divisor_of(const td_cu_axis &a, long long k) {
    return a.divisor ? a.divisor[k] : 1;
}

/* Sums: in double precision of floats and pixels, whose sums are rounded to the nearest. */
template <typename T> struct td_window_sum_of { typedef td_sum<T> type; };
template <> struct td_window_sum_of<unsigned char> { typedef double type; };
template <typename T> struct td_store_sum {
    template <typename A> __device__ static T of(A sum) { return td_narrow<T>::of(sum); }
};
template <> struct td_store_sum<unsigned char> {
    __device__ static unsigned char of(double sum) {
        return (unsigned char)(sum <= 0 ? 0 : sum >= 255 ? 255 : floor(sum + 0.5));
    }
};

template <typename T>
__global__ void td_resample_kernel(const __grid_constant__ td_cu_resample r) {
    typedef typename td_window_sum_of<T>::type A;
    long long at = (long long)blockIdx.x * TD_SPATIAL_BLOCK + threadIdx.x;
    if (at >= r.n)
        return;
    const td_cu_axis &x0 = r.axis[0], &x1 = r.axis[1], &x2 = r.axis[2];
    td_cu_spot s = td_spot_of(at, x0.out, x1.out, x2.out, r.inner);
    td_cu_window w0 = td_window_of(x0, s.i[0]), w1 = td_window_of(x1, s.i[1]),
                 w2 = td_window_of(x2, s.i[2]);
    const T *x = (const T *)r.x + s.outer * x0.in * x1.in * x2.in * r.inner + s.inner;
    A sum = 0;
    for (long long a = w0.begin; a < w0.end; a += x0.step)
        for (long long b = w1.begin; b < w1.end; b += x1.step) {
            const T *line = x + (a * x1.in + b) * x2.in * r.inner;
            A of_line = 0;
            for (long long c = w2.begin; c < w2.end; c += x2.step)
                of_line += (A)td_widen(line[c * r.inner]) *
                           (A)td_weight_of(x2, s.i[2], c - w2.begin);
            sum += of_line * (A)(td_weight_of(x0, s.i[0], a - w0.begin) *
                                 td_weight_of(x1, s.i[1], b - w1.begin));
        }
    double divisor = r.divisor != 0 ? r.divisor
                                    : td_divisor_of(x0, s.i[0]) * td_divisor_of(x1, s.i[1]) *
                                          td_divisor_of(x2, s.i[2]);
    ((T *)r.out)[at] = td_store_sum<T>::of(sum / (A)divisor);
}

cudaError_t td_cu_resample_run(const td_cu_resample *r, cudaStream_t stream) {
    TD_BY_NUMBER(r->dtype, T,
                 return TD_LAUNCH(td_resample_kernel<T>, td_spatial_blocks(r->n), TD_SPATIAL_BLOCK,
                                  stream, *r))
    return cudaErrorInvalidValue;
}

template <typename T>
__global__ void td_resample_move_kernel(const __grid_constant__ td_cu_resample r) {
    long long at = (long long)blockIdx.x * TD_SPATIAL_BLOCK + threadIdx.x;
    if (at >= r.n)
        return;
    td_cu_spot s = td_spot_of(at, r.axis[0].out, r.axis[1].out, r.axis[2].out, r.inner);
    long long from = s.outer;
    for (int d = 0; d < TD_CU_SPATIAL; d++)
        from = from * r.axis[d].in + td_window_of(r.axis[d], s.i[d]).begin;
    ((T *)r.out)[at] = ((const T *)r.x)[from * r.inner + s.inner];
}

cudaError_t td_cu_resample_move(const td_cu_resample *r, cudaStream_t stream) {
    TD_BY_SIZE(r->itemsize, T,
               return TD_LAUNCH(td_resample_move_kernel<T>, td_spatial_blocks(r->n),
                                TD_SPATIAL_BLOCK, stream, *r))
    return cudaErrorInvalidValue;
}

/* ---- back ---- */

template <typename T>
__global__ void td_spread_kernel(const __grid_constant__ td_cu_spread r) {
    long long at = (long long)blockIdx.x * TD_SPATIAL_BLOCK + threadIdx.x;
    if (at >= r.n)
        return;
    const td_cu_seen &x0 = r.axis[0], &x1 = r.axis[1], &x2 = r.axis[2];
    td_cu_spot s = td_spot_of(at, x0.in, x1.in, x2.in, r.inner);
    const T *g = (const T *)r.x + s.outer * x0.out * x1.out * x2.out * r.inner + s.inner;
    double sum = 0;
    for (int a = x0.start[s.i[0]]; a < x0.start[s.i[0] + 1]; a++)
        for (int b = x1.start[s.i[1]]; b < x1.start[s.i[1] + 1]; b++) {
            const T *line = g + ((long long)x0.by[a] * x1.out + x1.by[b]) * x2.out * r.inner;
            double of_line = 0;
            for (int c = x2.start[s.i[2]]; c < x2.start[s.i[2] + 1]; c++)
                of_line += x2.weight[c] * (double)td_widen(line[x2.by[c] * r.inner]);
            sum += x0.weight[a] * x1.weight[b] * of_line;
        }
    T *to = (T *)r.out + at;
    *to = td_narrow<T>::of((double)td_widen(*to) + sum / r.divisor);
}

cudaError_t td_cu_spread_run(const td_cu_spread *r, cudaStream_t stream) {
    TD_BY_FLOAT(r->dtype, T,
                return TD_LAUNCH(td_spread_kernel<T>, td_spatial_blocks(r->n), TD_SPATIAL_BLOCK,
                                 stream, *r))
    return cudaErrorInvalidValue;
}

/* ---- maxima ---- */

template <typename T>
__global__ void td_max_pool_kernel(const __grid_constant__ td_cu_max_pool p) {
    long long at = (long long)blockIdx.x * TD_SPATIAL_BLOCK + threadIdx.x;
    if (at >= p.n)
        return;
    const td_cu_axis &x0 = p.axis[0], &x1 = p.axis[1], &x2 = p.axis[2];
    td_cu_spot s = td_spot_of(at, x0.out, x1.out, x2.out, p.inner);
    td_cu_window w0 = td_window_of(x0, s.i[0]), w1 = td_window_of(x1, s.i[1]),
                 w2 = td_window_of(x2, s.i[2]);
    const T *x = (const T *)p.x + s.outer * p.large * p.inner + s.inner;
    long long place = (w0.begin * x1.in + w1.begin) * x2.in + w2.begin;
    T best = x[place * p.inner];
    for (long long a = w0.begin; a < w0.end; a += x0.step)
        for (long long b = w1.begin; b < w1.end; b += x1.step)
            for (long long c = w2.begin; c < w2.end; c += x2.step) {
                long long here = (a * x1.in + b) * x2.in + c;
                T v = x[here * p.inner];
                td_wide<T> w = td_widen(v);
                if (w > td_widen(best) || w != w) {
                    best = v;
                    place = here;
                }
            }
    ((T *)p.out)[at] = best;
    if (p.places)
        p.places[at] = place;
}

cudaError_t td_cu_max_pool_run(const td_cu_max_pool *p, cudaStream_t stream) {
    TD_BY_NUMBER(p->dtype, T,
                 return TD_LAUNCH(td_max_pool_kernel<T>, td_spatial_blocks(p->n), TD_SPATIAL_BLOCK,
                                  stream, *p))
    return cudaErrorInvalidValue;
}

/* Where an element of the small volumes belongs in the large ones; -1: nowhere. */
__device__ static inline long long td_large_place(const td_cu_max_pool &p, long long at) {
    long long inner, rest, place = p.places[at];
    long long outer = td_cu_divide(td_cu_divide(at, p.inner, &inner), p.small, &rest);
    return place < 0 || place >= p.large ? -1 : (outer * p.large + place) * p.inner + inner;
}

template <typename T>
__global__ void td_max_gather_kernel(const __grid_constant__ td_cu_max_pool p) {
    long long at = (long long)blockIdx.x * TD_SPATIAL_BLOCK + threadIdx.x;
    if (at >= p.n)
        return;
    long long from = td_large_place(p, at);
    if (from >= 0)
        ((T *)p.out)[at] = ((const T *)p.x)[from];
}

cudaError_t td_cu_max_gather_run(const td_cu_max_pool *p, cudaStream_t stream) {
    TD_BY_SIZE(p->itemsize, T,
               return TD_LAUNCH(td_max_gather_kernel<T>, td_spatial_blocks(p->n), TD_SPATIAL_BLOCK,
                                stream, *p))
    return cudaErrorInvalidValue;
}

/* The sliding windows that see place i: [begin, end). */
__device__ static inline td_cu_window td_windows_at(const td_cu_axis &a, long long i) {
    long long at = i + a.padding, before = at - a.width; /* windows that end there or before */
    long long unused;
    td_cu_window w;
    w.begin = before < 0 ? 0 : td_cu_divide(before, a.stride, &unused) + 1;
    w.end = td_cu_divide(at, a.stride, &unused) + 1;
    w.end = w.end < a.out ? w.end : a.out;
    return w;
}

template <typename T>
__global__ void td_max_windows_kernel(const __grid_constant__ td_cu_max_pool p) {
    long long at = (long long)blockIdx.x * TD_SPATIAL_BLOCK + threadIdx.x;
    if (at >= p.n)
        return;
    const td_cu_axis &x0 = p.axis[0], &x1 = p.axis[1], &x2 = p.axis[2];
    td_cu_spot s = td_spot_of(at, x0.in, x1.in, x2.in, p.inner);
    td_cu_window w0 = td_windows_at(x0, s.i[0]), w1 = td_windows_at(x1, s.i[1]),
                 w2 = td_windows_at(x2, s.i[2]);
    long long place = (s.i[0] * x1.in + s.i[1]) * x2.in + s.i[2];
    long long first = s.outer * p.small * p.inner + s.inner;
    td_wide<T> sum = 0;
    for (long long a = w0.begin; a < w0.end; a++)
        for (long long b = w1.begin; b < w1.end; b++)
            for (long long c = w2.begin; c < w2.end; c++) {
                long long from = first + ((a * x1.out + b) * x2.out + c) * p.inner;
                if (p.places[from] == place)
                    sum += td_widen(((const T *)p.x)[from]);
            }
    ((T *)p.out)[at] = td_narrow<T>::of(sum);
}

cudaError_t td_cu_max_windows_run(const td_cu_max_pool *p, cudaStream_t stream) {
    TD_BY_FLOAT(p->dtype, T,
                return TD_LAUNCH(td_max_windows_kernel<T>, td_spatial_blocks(p->n), TD_SPATIAL_BLOCK,
                                 stream, *p))
    return cudaErrorInvalidValue;
}

__global__ void td_max_keys_kernel(const __grid_constant__ td_cu_max_pool p, unsigned limit,
                                   uint32_t *keys) {
    long long at = (long long)blockIdx.x * TD_SPATIAL_BLOCK + threadIdx.x;
    if (at >= p.n)
        return;
    long long to = td_large_place(p, at);
    keys[at] = to < 0 ? limit : (uint32_t)to;
}

cudaError_t td_cu_max_keys(const td_cu_max_pool *p, uint32_t limit, uint32_t *keys,
                           cudaStream_t stream) {
    return TD_LAUNCH(td_max_keys_kernel, td_spatial_blocks(p->n), TD_SPATIAL_BLOCK, stream, *p,
                     limit, keys);
}
