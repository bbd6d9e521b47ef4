/* find.cu: where the extremes are: the first of equals, NaN before all. */
#include "engine/cuda/runtime/elements.cuh"
#include "engine/cuda/reduce/reduction.cuh"

template <typename W> struct td_candidate {
    W v;
    long long k; /* -1: none yet */
};

template <typename W>
__device__ static inline td_candidate<W> td_shuffle_xor(td_candidate<W> mine, int by) {
    td_candidate<W> r = {td_shuffle_xor(mine.v, by), td_shuffle_xor(mine.k, by)};
    return r;
}

template <typename E> struct td_find_fold : td_cu_find {
    typedef E T;
    typedef E V;
    typedef td_candidate<td_wide<E>> A;
    typedef int C;
    enum { VECTOR = 1 };

    __device__ bool better(td_wide<E> a, td_wide<E> b) const {
        return (a != a && b == b) || (least ? a < b : a > b);
    }
    __device__ A start() const { return A{0, -1}; }
    __device__ C context(const td_output_place &) const { return 0; }
    __device__ V load(C, long long offset, long long) const { return ((const E *)x)[offset]; }
    __device__ void take(A &acc, C, V v, long long k) const {
        acc = join(acc, A{td_widen(v), k});
    }
    __device__ A join(A a, A b) const {
        if (a.k < 0 || b.k < 0)
            return a.k < 0 ? b : a;
        if (better(b.v, a.v) || (!better(a.v, b.v) && b.k < a.k))
            return b;
        return a;
    }
    __device__ void finish(const td_cu_reduction &s, const td_output_place &at, A acc) const {
        index[at.out_offset] = acc.k;
        if (values)
            ((E *)values)[at.out_offset] =
                ((const E *)x)[at.offset + td_reduced_offset(s, acc.k)];
    }
};

template <typename T>
static cudaError_t td_launch_find(const td_cu_reduction *s, const td_cu_find *given, void *partial,
                                  cudaStream_t stream) {
    td_find_fold<T> f;
    static_cast<td_cu_find &>(f) = *given;
    return td_run_reduction(s, f, partial, stream);
}

cudaError_t td_cu_run_find(const td_cu_reduction *s, const td_cu_find *f, void *partial,
                           cudaStream_t stream) {
    TD_BY_DTYPE(f->dtype, T, return td_launch_find<T>(s, f, partial, stream))
    return cudaErrorInvalidValue;
}
