/* dense_math.cu: functions of dense floats: the rows of primitives.def that cost more. */
#include "engine/cuda/pointwise/dense.cuh"
#include "engine/cuda/runtime/math.cuh"
#include "engine/ops/language/program.h"

#include "engine/cuda/runtime/vocabulary.cuh"

#define MATH(name, arity, formula)             ROW(name, arity, formula)
#define DIVIDE(name, arity, formula, integers) ROW(name, arity, formula)
#define PRIMITIVE(name, arity)
#define ROW(name, arity, formula) TD_DENSE_ROW(name, formula)
#include "engine/ops/language/primitives.def"
#undef ROW

template <typename Row, int ARITY>
static cudaError_t run(const td_cu_dense *d, cudaStream_t stream) {
    TD_BY_FLOAT(d->memory, M, return td_run_dense<Row, ARITY, true, M, M, M>(d, stream))
    return cudaErrorNotSupported;
}

cudaError_t td_cu_dense_math(const td_cu_dense *d, cudaStream_t stream) {
    switch (d->memory == d->to ? d->primitive : (int)TD_PRIMITIVES) {
#define MATH(name, arity, formula)             ROW(name, arity)
#define DIVIDE(name, arity, formula, integers) ROW(name, arity)
#define ROW(name, arity)                                                                           \
    case TD_PW_##name: return run<td_row_##name, arity>(d, stream);
#include "engine/ops/language/primitives.def"
#undef ROW
#undef PRIMITIVE
    }
    return cudaErrorNotSupported;
}
