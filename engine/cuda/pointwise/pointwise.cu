/* pointwise.cu: kernels that run pointwise programs step by step, whatever the program.
 *
 * A thread takes a few elements through all steps; its registers are numbers of any dtype. Elements
 * of a tile lie next to one another, so that neighbours read neighbours. */
#include "engine/cuda/pointwise/pointwise_code.h"

#include "engine/cuda/runtime/elements.cuh"
#include "engine/cuda/runtime/launch.cuh"
#include "engine/cuda/runtime/math.cuh"
#include "engine/ops/language/integers.h"
#include "engine/ops/language/program.h"

/* ---- steps ---- */

__device__ static inline td_slot td_answer(float r) {
    td_slot s;
    s.i = 0;
    s.f = r;
    return s;
}
__device__ static inline td_slot td_answer(double r) {
    td_slot s;
    s.d = r;
    return s;
}
__device__ static inline td_slot td_answer(long long r) {
    td_slot s;
    s.i = r;
    return s;
}

#include "engine/cuda/runtime/vocabulary.cuh"

/* One step on floats: a comparison answers with an integer. */
template <typename T> __device__ static td_slot td_float_step(int primitive, T a, T b, T c) {
    switch (primitive) {
#define ROW(name, formula)                                                                         \
    case TD_PW_##name: return td_answer((T)(formula));
#define COPY(name, arity, formula)             ROW(name, formula)
#define ARITH(name, arity, formula)            ROW(name, formula)
#define FLOAT(name, arity, formula)            ROW(name, formula)
#define MATH(name, arity, formula)             ROW(name, formula)
#define EITHER(name, arity, formula, integers) ROW(name, formula)
#define DIVIDE(name, arity, formula, lane)     ROW(name, formula)
#define COMPARE(name, arity, formula)                                                              \
    case TD_PW_##name: return td_answer((formula) ? 1LL : 0LL);
#define PRIMITIVE(name, arity)                                                                     \
    case TD_PW_##name: break;
#include "engine/ops/language/primitives.def"
#undef PRIMITIVE
#undef ROW
    }
    return td_answer(a);
}

__device__ static long long td_int_step(int primitive, long long a, long long b, long long c) {
    typedef long long T;
    (void)c;
    switch (primitive) {
#define ROW(name, formula)                                                                         \
    case TD_PW_##name: return (long long)(formula);
#define COPY(name, arity, formula)            ROW(name, formula)
#define ARITH(name, arity, formula)           ROW(name, formula)
#define COMPARE(name, arity, formula)         ROW(name, formula)
#define LOGIC(name, arity, formula)           ROW(name, formula)
#define INTEGER(name, arity, formula)         ROW(name, formula)
#define LANES(name, arity, lane)              ROW(name, lane)
#define EITHER(name, arity, floats, formula)  ROW(name, formula)
#define DIVIDE(name, arity, floats, lane)     ROW(name, lane)
#define PRIMITIVE(name, arity)                                                                     \
    case TD_PW_##name: break;
#include "engine/ops/language/primitives.def"
#undef PRIMITIVE
#undef ROW
    }
    return a;
}

/* One copy for all kernels: their text, and the time to compile it, is mostly this. */
__device__ static __attribute__((noinline)) td_slot td_step_of(const td_cu_step &s, td_slot a, td_slot b, td_slot c) {
    if (s.primitive == TD_PW_where)
        return a.i ? b : c;
    if (s.primitive == TD_PW_copy)
        return td_convert_slot(s.to, s.from, a);
    switch (td_slot_kind_of(s.from)) {
    case TD_SLOT_FLOAT: return td_float_step<float>(s.primitive, a.f, b.f, c.f);
    case TD_SLOT_DOUBLE: return td_float_step<double>(s.primitive, a.d, b.d, c.d);
    case TD_SLOT_INT: break;
    }
    return td_slot_of(s.to, td_int_step(s.primitive, a.i, b.i, c.i));
}

__device__ static inline void td_run_steps(const td_cu_code &code, td_slot *r) {
    for (int s = 0; s < code.nsteps; s++) {
        const td_cu_step &step = code.steps[s];
        r[step.dst] = td_step_of(step, r[step.src[0]], r[step.src[1]], r[step.src[2]]);
    }
}

__device__ static inline td_slot td_load_side(const td_cu_code &code, int load, int kind,
                                              unsigned long long word, long long bytes) {
    td_slot s;
    if (kind == TD_CU_NUMBER) {
        s.i = (long long)word;
        return s;
    }
    s = td_load_slot(code.load_from[load], (const char *)word + (kind == TD_CU_DENSE ? bytes : 0));
    return td_convert_slot(code.load_as[load], code.load_from[load], s);
}

__device__ static inline void td_set_constants(const td_cu_code &code, td_slot *r) {
    for (int k = 0; k < code.nconstants; k++)
        r[code.nloads + k].i = code.constants[k];
}

/* ---- dense lists ---- */

template <int LISTS, int WORDS> struct td_cu_lists {
    int nlists, stride;
    uint32_t tiles[LISTS + 1];
    uint64_t words[WORDS];
};

template <int LISTS, int WORDS, int REGISTERS>
__global__ void td_flat_kernel(const __grid_constant__ td_cu_code code,
                               const __grid_constant__ td_cu_lists<LISTS, WORDS> lists) {
    int low = 0, high = lists.nlists - 1;
    while (low < high) { /* the list of this tile */
        int middle = (low + high + 1) / 2;
        if (lists.tiles[middle] <= blockIdx.x)
            low = middle;
        else
            high = middle - 1;
    }
    const uint64_t *words = &lists.words[low * lists.stride];
    long long numel = (long long)words[0];
    unsigned long long kinds = words[1];
    long long at = (long long)(blockIdx.x - lists.tiles[low]) * TD_CU_TILE + threadIdx.x;
    td_slot r[REGISTERS];
    td_set_constants(code, r);
    for (int e = 0; e < TD_CU_EACH && at < numel; e++, at += TD_CU_BLOCK) {
        for (int k = 0; k < code.nloads; k++)
            r[k] = td_load_side(code, k, kinds >> (2 * k) & 3, words[2 + k],
                                at * td_element_size(code.load_from[k]));
        td_run_steps(code, r);
        for (int k = 0; k < code.nouts; k++) {
            td_slot s = r[code.nloads + code.nconstants + k];
            s = td_convert_slot(code.out_to[k], code.out_from[k], s);
            td_store_slot(code.out_to[k],
                          (char *)words[2 + code.nloads + k] +
                              at * td_element_size(code.out_to[k]),
                          s);
        }
    }
}

template <int LISTS, int WORDS>
static cudaError_t td_launch_flat(const td_cu_code *code, const td_cu_flat *given,
                                  cudaStream_t stream) {
    td_cu_lists<LISTS, WORDS> lists;
    unsigned int tiles = given->tiles[given->nlists];
    lists.nlists = given->nlists;
    lists.stride = given->stride;
    for (int k = 0; k <= given->nlists; k++)
        lists.tiles[k] = given->tiles[k];
    for (int k = 0; k < given->nlists * given->stride; k++)
        lists.words[k] = given->words[k];
    if (code->nregisters <= 8)
        return TD_LAUNCH((td_flat_kernel<LISTS, WORDS, 8>), tiles, TD_CU_BLOCK, stream, *code,
                         lists);
    return TD_LAUNCH((td_flat_kernel<LISTS, WORDS, TD_CU_REGISTERS>), tiles, TD_CU_BLOCK, stream,
                     *code, lists);
}

cudaError_t td_cu_run_flat(const td_cu_code *code, const td_cu_flat *lists, cudaStream_t stream) {
    if (lists->nlists == 1)
        return td_launch_flat<1, 2 + TD_CU_SIDES>(code, lists, stream);
    return td_launch_flat<TD_CU_LISTS, TD_CU_WORDS>(code, lists, stream);
}

/* ---- a list that lies anyhow ---- */

template <int STRIDES> struct td_cu_strided {
    int ndim;
    long long numel;
    unsigned long long kinds;
    long long sizes[TD_CU_DIMS];
    uint64_t words[TD_CU_SIDES];
    long long strides[STRIDES];
};

template <int STRIDES>
__device__ static inline void td_place(const td_cu_strided<STRIDES> &walk, long long at,
                                       long long *index) {
    for (int d = walk.ndim - 1; d > 0; d--) {
        long long size = walk.sizes[d], above;
        /* 32-bit division is several times quicker */
        if (((at | size) >> 32) == 0)
            above = (unsigned int)at / (unsigned int)size;
        else
            above = at / size;
        index[d] = at - above * size;
        at = above;
    }
    index[0] = at;
}

template <int STRIDES>
__device__ static inline long long td_bytes_to(const td_cu_strided<STRIDES> &walk, int side,
                                               const long long *index) {
    long long bytes = 0;
    for (int d = 0; d < walk.ndim; d++)
        bytes += index[d] * walk.strides[side * walk.ndim + d];
    return bytes;
}

/* The elements' registers of one place, after all steps. */
template <int STRIDES>
__device__ static inline void td_run_place(const td_cu_code &code,
                                           const td_cu_strided<STRIDES> &walk,
                                           const long long *index, td_slot *r) {
    for (int k = 0; k < code.nloads; k++)
        r[k] = td_load_side(code, k, walk.kinds >> (2 * k) & 3, walk.words[k],
                            td_bytes_to(walk, k, index));
    td_run_steps(code, r);
}

template <int STRIDES, int REGISTERS>
__global__ void td_walk_kernel(const __grid_constant__ td_cu_code code,
                               const __grid_constant__ td_cu_strided<STRIDES> walk) {
    long long at = (long long)blockIdx.x * TD_CU_TILE + threadIdx.x;
    td_slot r[REGISTERS];
    td_set_constants(code, r);
    for (int e = 0; e < TD_CU_EACH && at < walk.numel; e++, at += TD_CU_BLOCK) {
        long long index[TD_CU_DIMS];
        td_place(walk, at, index);
        td_run_place(code, walk, index, r);
        for (int k = 0; k < code.nouts; k++) {
            td_slot s = r[code.nloads + code.nconstants + k];
            s = td_convert_slot(code.out_to[k], code.out_from[k], s);
            td_store_slot(code.out_to[k],
                          (char *)walk.words[code.nloads + k] +
                              td_bytes_to(walk, code.nloads + k, index),
                          s);
        }
    }
}

/* Partial sums of a block's numbers, the same for every run: a tree. */
__device__ static inline td_slot td_block_sum(td_slot mine, bool is_int, td_slot *shared) {
    shared[threadIdx.x] = mine;
    __syncthreads();
    for (unsigned int other = TD_CU_BLOCK / 2; other > 0; other /= 2) {
        if (threadIdx.x < other) {
            if (is_int)
                shared[threadIdx.x].i += shared[threadIdx.x + other].i;
            else
                shared[threadIdx.x].d += shared[threadIdx.x + other].d;
        }
        __syncthreads();
    }
    td_slot sum = shared[0];
    __syncthreads();
    return sum;
}

__device__ static inline void td_add_to_sum(td_slot *sum, int dtype, td_slot s) {
    switch (td_slot_kind_of(dtype)) {
    case TD_SLOT_FLOAT: sum->d += (double)s.f; break;
    case TD_SLOT_DOUBLE: sum->d += s.d; break;
    case TD_SLOT_INT: sum->i += s.i; break;
    }
}

template <int STRIDES, int REGISTERS>
__global__ void td_sum_kernel(const __grid_constant__ td_cu_code code,
                              const __grid_constant__ td_cu_strided<STRIDES> walk,
                              double *partial) {
    __shared__ td_slot shared[TD_CU_BLOCK];
    long long at = (long long)blockIdx.x * TD_CU_TILE + threadIdx.x;
    td_slot r[REGISTERS], sums[TD_CU_OUTS];
    td_set_constants(code, r);
    for (int k = 0; k < code.nouts; k++)
        sums[k].i = 0;
    for (int e = 0; e < TD_CU_EACH && at < walk.numel; e++, at += TD_CU_BLOCK) {
        long long index[TD_CU_DIMS];
        td_place(walk, at, index);
        td_run_place(code, walk, index, r);
        for (int k = 0; k < code.nouts; k++) {
            td_slot s = r[code.nloads + code.nconstants + k];
            if (code.out_kind[k] != TD_OUTPUT_ELEMENTS) {
                td_add_to_sum(&sums[k], code.out_from[k], s);
                continue;
            }
            s = td_convert_slot(code.out_to[k], code.out_from[k], s);
            td_store_slot(code.out_to[k],
                          (char *)walk.words[code.nloads + k] +
                              td_bytes_to(walk, code.nloads + k, index),
                          s);
        }
    }
    for (int k = 0, n = 0; k < code.nouts; k++) {
        if (code.out_kind[k] == TD_OUTPUT_ELEMENTS)
            continue;
        td_slot sum = td_block_sum(sums[k], td_slot_kind_of(code.out_from[k]) == TD_SLOT_INT,
                                   shared);
        if (threadIdx.x == 0)
            partial[(long long)blockIdx.x * code.sums + n] = sum.d;
        n++;
    }
}

__global__ void td_finish_kernel(const double *partial, long long n, int step, bool is_int,
                                 double divisor, int dtype, void *out) {
    __shared__ td_slot shared[TD_CU_BLOCK];
    td_slot mine;
    mine.i = 0;
    for (long long k = threadIdx.x; k < n; k += TD_CU_BLOCK) {
        td_slot part;
        part.d = partial[k * step];
        if (is_int)
            mine.i += part.i;
        else
            mine.d += part.d;
    }
    td_slot sum = td_block_sum(mine, is_int, shared);
    if (threadIdx.x != 0)
        return;
    if (is_int && divisor == 1)
        sum = td_slot_of(dtype, sum.i);
    else
        sum = td_slot_of(dtype, (is_int ? (double)sum.i : sum.d) / divisor);
    td_store_slot(dtype, out, sum);
}

cudaError_t td_cu_finish_sum(const double *partial, int64_t n, int step, int is_int,
                             double divisor, int dtype, void *out, cudaStream_t stream) {
    return TD_LAUNCH_TOGETHER(td_finish_kernel, 1, TD_CU_BLOCK, stream, partial, (long long)n,
                              step, is_int != 0, divisor, dtype, out);
}

template <int STRIDES, int REGISTERS>
__global__ void td_check_kernel(const __grid_constant__ td_cu_code code,
                                const __grid_constant__ td_cu_strided<STRIDES> walk,
                                td_cu_report report) {
    long long at = (long long)blockIdx.x * TD_CU_TILE + threadIdx.x;
    td_slot r[REGISTERS];
    td_set_constants(code, r);
    for (int e = 0; e < TD_CU_EACH && at < walk.numel; e++, at += TD_CU_BLOCK) {
        long long index[TD_CU_DIMS];
        td_place(walk, at, index);
        td_run_place(code, walk, index, r);
        td_slot s = td_convert_slot(TD_BOOL, code.out_from[0], r[code.nloads + code.nconstants]);
        if (s.i)
            td_cu_found(report, at, 0);
    }
}

/* The kernels' parameters of a walk: few strides, or as many as there can be. */
enum { TD_FEW_STRIDES = 64 };

template <int STRIDES>
static td_cu_strided<STRIDES> td_copy_walk(const td_cu_code *code, const td_cu_walk *given) {
    td_cu_strided<STRIDES> w;
    int sides = code->nloads + code->nouts;
    w.ndim = given->ndim;
    w.numel = given->numel;
    w.kinds = given->kinds;
    for (int d = 0; d < given->ndim; d++)
        w.sizes[d] = given->sizes[d];
    for (int k = 0; k < sides; k++)
        w.words[k] = given->words[k];
    for (int k = 0; k < sides * given->ndim; k++)
        w.strides[k] = given->strides[k];
    return w;
}

static unsigned int td_tiles(long long numel) {
    return (unsigned int)((numel + TD_CU_TILE - 1) / TD_CU_TILE);
}

template <int STRIDES, int REGISTERS>
static cudaError_t td_launch_walk(const td_cu_code *code, const td_cu_walk *given,
                                  double *partial, const td_cu_report *report,
                                  cudaStream_t stream) {
    td_cu_strided<STRIDES> walk = td_copy_walk<STRIDES>(code, given);
    unsigned int tiles = td_tiles(given->numel);
    if (report)
        return TD_LAUNCH((td_check_kernel<STRIDES, REGISTERS>), tiles, TD_CU_BLOCK, stream, *code,
                         walk, *report);
    if (partial)
        return TD_LAUNCH_TOGETHER((td_sum_kernel<STRIDES, REGISTERS>), tiles, TD_CU_BLOCK, stream,
                                  *code, walk, partial);
    return TD_LAUNCH((td_walk_kernel<STRIDES, REGISTERS>), tiles, TD_CU_BLOCK, stream, *code, walk);
}

static cudaError_t td_choose_walk(const td_cu_code *code, const td_cu_walk *walk, double *partial,
                                  const td_cu_report *report, cudaStream_t stream) {
    bool few = walk->ndim * (code->nloads + code->nouts) <= TD_FEW_STRIDES;
    if (few && code->nregisters <= 12 && !partial && !report)
        return td_launch_walk<TD_FEW_STRIDES, 12>(code, walk, partial, report, stream);
    if (few)
        return td_launch_walk<TD_FEW_STRIDES, TD_CU_REGISTERS>(code, walk, partial, report, stream);
#if CUDART_VERSION >= 12010
    return td_launch_walk<TD_CU_SIDES * TD_CU_DIMS, TD_CU_REGISTERS>(code, walk, partial, report,
                                                                     stream);
#else
    return cudaErrorNotSupported;
#endif
}

cudaError_t td_cu_run_walk(const td_cu_code *code, const td_cu_walk *walk, double *partial,
                           cudaStream_t stream) {
    return td_choose_walk(code, walk, partial, NULL, stream);
}

cudaError_t td_cu_run_check(const td_cu_code *code, const td_cu_walk *walk, td_cu_report report,
                            cudaStream_t stream) {
    return td_choose_walk(code, walk, NULL, &report, stream);
}

/* ---- what there is ---- */

int td_cu_has_primitive(int primitive) {
    switch (primitive) {
#define SPECIAL(name, arity, formula)                                                              \
    case TD_PW_##name: return 0;
#define PRIMITIVE(name, arity)                                                                     \
    case TD_PW_##name: return 1;
#include "engine/ops/language/primitives.def"
#undef PRIMITIVE
    }
    return 0;
}
