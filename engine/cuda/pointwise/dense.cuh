/* dense.cuh: the kernel that takes dense elements through one formula, as fast as memory goes.
 *
 * A thread reads vectors of up to 16 bytes, all that it needs before it computes. Where an address
 * is not aligned to a vector, and in the last tile, elements are taken one by one. Within a tile
 * offsets are of 32 bits. A row is a struct whose of(a, b, c) is the formula. */
#ifndef TD_CUDA_POINTWISE_DENSE_CUH
#define TD_CUDA_POINTWISE_DENSE_CUH

#include "engine/cuda/pointwise/dense_code.h"
#include "engine/cuda/runtime/elements.cuh"
#include "engine/cuda/runtime/launch.cuh"
#include "engine/cuda/pointwise/pointwise_code.h"
#include "engine/cuda/runtime/vector.cuh"

/* An operand: elements, or where there are none one number for all. */
template <typename M> struct td_dense_side {
    const M *elements;
    td_wide<M> number;

    __device__ td_wide<M> at(long long k) const {
        return elements ? td_widen(elements[k]) : number;
    }
    template <int V, int U> __device__ void read(long long k, td_wide<M> *to) const {
        TD_UNROLL
        for (int u = 0; u < U; u++) {
            td_pack<M, V> pack;
            if (elements)
                pack = td_read_pack<M, V>(elements + k + u * TD_CU_BLOCK * V);
            TD_UNROLL
            for (int v = 0; v < V; v++)
                to[u * V + v] = elements ? td_widen(pack.e[v]) : number;
        }
    }
    template <int V> __device__ bool is_aligned() const {
        return td_is_aligned<M, V>(elements);
    }
};

__device__ static inline void td_take_number(td_slot s, float *to) {
    *to = s.f;
}
__device__ static inline void td_take_number(td_slot s, double *to) {
    *to = s.d;
}
__device__ static inline void td_take_number(td_slot s, long long *to) {
    *to = s.i;
}

template <typename M> __device__ static inline td_dense_side<M> td_side_of(const td_cu_dense &d, int k) {
    td_dense_side<M> side;
    td_slot s;
    s.i = (long long)d.words[k];
    side.elements = d.kinds[k] == TD_CU_DENSE ? (const M *)d.words[k] : NULL;
    if (d.kinds[k] == TD_CU_SINGLE)
        side.number = td_widen(*(const M *)d.words[k]);
    else
        td_take_number(s, &side.number);
    return side;
}

/* A: of the first operand in memory; M: of the others; R: of the result. V elements are a vector,
 * of which a thread takes U. */
template <typename Row, typename A, typename M, typename R, int ARITY, int V, int U>
__global__ void __launch_bounds__(TD_CU_BLOCK)
    td_dense_kernel(const __grid_constant__ td_cu_dense d) {
    const int tile = TD_CU_BLOCK * V * U;
    long long first = (long long)blockIdx.x * tile;
    td_dense_side<A> a = td_side_of<A>(d, 0);
    td_dense_side<M> b = td_side_of<M>(d, ARITY > 1 ? 1 : 0), c = td_side_of<M>(d, ARITY > 2 ? 2 : 0);
    R *out = (R *)d.out;
    bool aligned = a.template is_aligned<V>() && b.template is_aligned<V>() &&
                   c.template is_aligned<V>() &&
                   td_is_aligned<R, V>(out);
    if (aligned && first + tile <= d.n) {
        td_wide<A> x[U * V];
        td_wide<M> y[U * V], z[U * V];
        long long at = first + threadIdx.x * V;
        a.template read<V, U>(at, x);
        if (ARITY > 1)
            b.template read<V, U>(at, y);
        if (ARITY > 2)
            c.template read<V, U>(at, z);
        TD_UNROLL
        for (int u = 0; u < U; u++) {
            td_pack<R, V> pack;
            TD_UNROLL
            for (int v = 0; v < V; v++) {
                int k = u * V + v;
                pack.e[v] = td_narrow<R>::of(
                    Row::of(x[k], ARITY > 1 ? y[k] : (td_wide<M>)0, ARITY > 2 ? z[k] : (td_wide<M>)0));
            }
            td_write_pack<R, V>(out + at + u * TD_CU_BLOCK * V, pack);
        }
        return;
    }
    long long end = first + tile < d.n ? first + tile : d.n;
    TD_NO_UNROLL
    for (long long at = first + threadIdx.x; at < end; at += TD_CU_BLOCK)
        out[at] = td_narrow<R>::of(Row::of(a.at(at), ARITY > 1 ? b.at(at) : (td_wide<M>)0,
                                           ARITY > 2 ? c.at(at) : (td_wide<M>)0));
}

/* Formulas that are long in machine code are repeated less often. */
template <typename Row, int ARITY, bool LONG, typename A, typename M, typename R>
static cudaError_t td_run_dense(const td_cu_dense *d, cudaStream_t stream) {
    const int widest = sizeof(R) > sizeof(M) ? sizeof(R) : sizeof(M);
    const int V = LONG ? (widest == 8 ? 2 : 4) : widest == 1 ? 8 : 16 / widest;
    const int U = LONG || widest == 2 ? 1 : 2;
    unsigned int tiles = (unsigned int)((d->n + TD_CU_BLOCK * V * U - 1) / (TD_CU_BLOCK * V * U));
    return TD_LAUNCH((td_dense_kernel<Row, A, M, R, ARITY, V, U>), tiles, TD_CU_BLOCK, stream, *d);
}

/* As a struct, a row of primitives.def; T is what it computes in. */
#define TD_DENSE_ROW(name, formula)                                                                \
    struct td_row_##name {                                                                         \
        template <typename T> __device__ static inline T of(T a, T b, T c) {                       \
            (void)b, (void)c;                                                                      \
            return (T)(formula);                                                                   \
        }                                                                                          \
    };

#endif
