/* loss.cu: cross entropy from log-sum-exps, and the weights of classes. */
#include "engine/cuda/runtime/elements.cuh"
#include "engine/cuda/reduce/reduction.cuh"
#include "engine/cuda/reduce/softmax_code.h"

/* ---- losses ---- */

template <typename W> struct td_term {
    W loss, weight;
};

/* One output from all lines; a line's own loss is written on the way where it is wanted. */
template <typename E> struct td_pick_fold : td_cu_cross_entropy {
    typedef E T;
    typedef td_wide<E> W;
    typedef td_term<W> V;
    typedef td_cu_pair A; /* losses, weights */
    typedef int C;
    enum { VECTOR = 0 };

    __device__ A start() const { return A{0, 0}; }
    __device__ C context(const td_output_place &) const { return 0; }
    __device__ V load(C, long long line, long long) const {
        W weight = ((const W *)weights)[line];
        if (weight == 0)
            return V{0, 0};
        long long outer = lines.inner == 1 ? line : td_divide(line, lines.inner);
        long long at = (outer * lines.n + classes[line]) * lines.inner + line - outer * lines.inner;
        W score = td_widen(((const E *)x)[at]);
        return V{weight * (lse ? ((const W *)lse)[line] - score : -score), weight};
    }
    __device__ void take(A &acc, C, V v, long long line) const {
        if (each)
            ((E *)loss)[line] = td_narrow<E>::of(v.loss);
        acc.a += (double)v.loss;
        acc.b += (double)v.weight;
    }
    __device__ A join(A a, A b) const { return A{a.a + b.a, a.b + b.b}; }
    __device__ void finish(const td_cu_reduction &, const td_output_place &, A acc) const {
        if (!each)
            *(E *)loss = td_narrow<E>::of(mean ? acc.a / acc.b : acc.a);
        *(W *)total = (W)acc.b;
    }
};

template <typename T>
static cudaError_t td_launch_pick(const td_cu_reduction *s, const td_cu_cross_entropy *given,
                                  void *partial, cudaStream_t stream) {
    td_pick_fold<T> f;
    static_cast<td_cu_cross_entropy &>(f) = *given;
    return td_run_reduction(s, f, partial, stream);
}

cudaError_t td_cu_run_pick(const td_cu_reduction *s, const td_cu_cross_entropy *c, void *partial,
                           cudaStream_t stream) {
    TD_BY_FLOAT(c->dtype, T, return td_launch_pick<T>(s, c, partial, stream))
    return cudaErrorInvalidValue;
}

/* ---- classes ---- */

template <typename T>
__global__ void td_class_weights_kernel(const __grid_constant__ td_cu_class_weights s,
                                        td_cu_report report) {
    long long at = (long long)blockIdx.x * TD_GROUP_BLOCK + threadIdx.x;
    if (at >= s.n)
        return;
    long long target = s.target[at];
    bool ignored = target == s.ignored, wrong = !ignored && (target < 0 || target >= s.nclasses);
    if (wrong)
        td_cu_found(report, target < 0 ? target : target + 1, at + 1);
    long long c = ignored || wrong ? 0 : target;
    s.classes[at] = c;
    ((T *)s.weights)[at] = ignored || wrong ? td_narrow<T>::of(0.0f)
                           : s.weight       ? ((const T *)s.weight)[c]
                                            : td_narrow<T>::of(1.0f);
}

cudaError_t td_cu_run_class_weights(const td_cu_class_weights *c, td_cu_report report,
                                    cudaStream_t stream) {
    unsigned int blocks = (unsigned int)((c->n + TD_GROUP_BLOCK - 1) / TD_GROUP_BLOCK);
    TD_BY_FLOAT(c->dtype, T,
                return TD_LAUNCH((td_class_weights_kernel<T>), blocks, TD_GROUP_BLOCK, stream, *c,
                                 report))
    return cudaErrorInvalidValue;
}
