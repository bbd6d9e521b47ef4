/* dense_integers.cu: arithmetic on dense integers and bool, in int64; division, powers and shifts
 * are there for the wider ones alone. */
#include "engine/cuda/pointwise/dense.cuh"
#include "engine/ops/language/integers.h"
#include "engine/ops/language/program.h"

#include "engine/cuda/runtime/vocabulary.cuh"

#define ARITH(name, arity, formula)          ROW(name, arity, formula)
#define EITHER(name, arity, floats, formula) ROW(name, arity, formula)
#define INTEGER(name, arity, formula)        ROW(name, arity, formula)
#define LOGIC(name, arity, formula)          ROW(name, arity, formula)
#define LANES(name, arity, formula)          ROW(name, arity, formula)
#define DIVIDE(name, arity, floats, formula) ROW(name, arity, formula)
#define PRIMITIVE(name, arity)
#define ROW(name, arity, formula) TD_DENSE_ROW(name, formula)
#include "engine/ops/language/primitives.def"
#undef ROW

template <typename Row, int ARITY>
static cudaError_t run_any(const td_cu_dense *d, cudaStream_t stream) {
    switch (d->memory) {
        TD_CASES_INT_(M, return td_run_dense<Row, ARITY, false, M, M, M>(d, stream))
        TD_CASE_(TD_BOOL, td_bool, M, return td_run_dense<Row, ARITY, false, M, M, M>(d, stream))
    }
    return cudaErrorNotSupported;
}

template <typename Row, int ARITY>
static cudaError_t run_wide(const td_cu_dense *d, cudaStream_t stream) {
    switch (d->memory) {
        TD_CASE_(TD_I32, int, M, return td_run_dense<Row, ARITY, true, M, M, M>(d, stream))
        TD_CASE_(TD_I64, long long, M, return td_run_dense<Row, ARITY, true, M, M, M>(d, stream))
    }
    return cudaErrorNotSupported;
}

template <typename Row, int ARITY>
static cudaError_t run_bool(const td_cu_dense *d, cudaStream_t stream) {
    return d->memory == TD_BOOL
               ? td_run_dense<Row, ARITY, false, td_bool, td_bool, td_bool>(d, stream)
               : cudaErrorNotSupported;
}

cudaError_t td_cu_dense_integers(const td_cu_dense *d, cudaStream_t stream) {
    switch (d->memory == d->to ? d->primitive : (int)TD_PRIMITIVES) {
#define ROW(name, arity, run)                                                                      \
    case TD_PW_##name: return run<td_row_##name, arity>(d, stream);
#define ARITH(name, arity, formula)          ROW(name, arity, run_any)
#define EITHER(name, arity, floats, formula) ROW(name, arity, run_any)
#define INTEGER(name, arity, formula)        ROW(name, arity, run_any)
#define LOGIC(name, arity, formula)          ROW(name, arity, run_bool)
#define LANES(name, arity, formula)          ROW(name, arity, run_wide)
#define DIVIDE(name, arity, floats, formula) ROW(name, arity, run_wide)
#include "engine/ops/language/primitives.def"
#undef ROW
#undef PRIMITIVE
    }
    return cudaErrorNotSupported;
}
