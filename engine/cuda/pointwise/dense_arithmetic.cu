/* dense_arithmetic.cu: arithmetic on dense floats: the rows of primitives.def that cost little. */
#include "engine/cuda/pointwise/dense.cuh"
#include "engine/cuda/runtime/math.cuh"
#include "engine/ops/language/program.h"

#include "engine/cuda/runtime/vocabulary.cuh"

#define ARITH(name, arity, formula)            ROW(name, arity, formula)
#define FLOAT(name, arity, formula)            ROW(name, arity, formula)
#define EITHER(name, arity, formula, integers) ROW(name, arity, formula)
#define PRIMITIVE(name, arity)
#define ROW(name, arity, formula) TD_DENSE_ROW(name, formula)
#include "engine/ops/language/primitives.def"
#undef ROW

template <typename Row, int ARITY>
static cudaError_t run(const td_cu_dense *d, cudaStream_t stream) {
    TD_BY_FLOAT(d->memory, M, return td_run_dense<Row, ARITY, false, M, M, M>(d, stream))
    return cudaErrorNotSupported;
}

cudaError_t td_cu_dense_arithmetic(const td_cu_dense *d, cudaStream_t stream) {
    switch (d->memory == d->to ? d->primitive : (int)TD_PRIMITIVES) {
#define ARITH(name, arity, formula)            ROW(name, arity)
#define FLOAT(name, arity, formula)            ROW(name, arity)
#define EITHER(name, arity, formula, integers) ROW(name, arity)
#define ROW(name, arity)                                                                           \
    case TD_PW_##name: return run<td_row_##name, arity>(d, stream);
#include "engine/ops/language/primitives.def"
#undef ROW
#undef PRIMITIVE
    }
    return cudaErrorNotSupported;
}
