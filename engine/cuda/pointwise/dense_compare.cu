/* dense_compare.cu: comparisons of dense elements, and the choice between two by a mask. */
#include "engine/cuda/pointwise/dense.cuh"
#include "engine/ops/language/program.h"

#include "engine/cuda/runtime/vocabulary.cuh"

#define COMPARE(name, arity, formula)                                                              \
    struct td_row_##name {                                                                         \
        template <typename T> __device__ static inline long long of(T a, T b, T c) {               \
            (void)c;                                                                               \
            return (formula) ? 1 : 0;                                                              \
        }                                                                                          \
    };
#define PRIMITIVE(name, arity)
#include "engine/ops/language/primitives.def"
#undef PRIMITIVE

struct td_row_where {
    template <typename T> __device__ static inline T of(long long a, T b, T c) {
        return a ? b : c;
    }
};

template <typename Row> static cudaError_t compare(const td_cu_dense *d, cudaStream_t stream) {
    if (d->to == TD_BOOL)
        TD_BY_DTYPE(d->memory, M, return td_run_dense<Row, 2, false, M, M, td_bool>(d, stream))
    return cudaErrorNotSupported;
}

static cudaError_t choose(const td_cu_dense *d, cudaStream_t stream) {
    if (d->to == d->memory)
        TD_BY_DTYPE(d->memory, M,
                    return td_run_dense<td_row_where, 3, false, td_bool, M, M>(d, stream))
    return cudaErrorNotSupported;
}

cudaError_t td_cu_dense_compare(const td_cu_dense *d, cudaStream_t stream) {
    switch (d->primitive) {
#define COMPARE(name, arity, formula)                                                              \
    case TD_PW_##name: return compare<td_row_##name>(d, stream);
#define PRIMITIVE(name, arity)
#include "engine/ops/language/primitives.def"
#undef PRIMITIVE
    case TD_PW_where: return choose(d, stream);
    }
    return cudaErrorNotSupported;
}
