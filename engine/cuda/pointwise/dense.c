/* dense.c: finds the programs of one step over dense tensors of one dtype, which have kernels of
 * their own (dense_*.cu). */
#include "engine/cuda/pointwise/dense.h"

#include "engine/cuda/pointwise/dense_code.h"
#include "engine/ops/language/program.h"

#include <string.h>

/* The operand that register r is, found in list 0: false where it is none, or of another dtype in
 * memory than the others. */
static bool take_operand(const td_cu_code *code, const td_cu_flat *flat, int r, int k, int *memory,
                         td_cu_dense *d) {
    int c = r - code->nloads;
    if (c >= code->nconstants)
        return false;
    if (c >= 0) {
        d->kinds[k] = TD_CU_NUMBER;
        d->words[k] = (uint64_t)code->constants[c];
        return true;
    }
    d->kinds[k] = (uint8_t)(flat->words[1] >> (2 * r) & 3);
    d->words[k] = flat->words[2 + r];
    if (d->kinds[k] == TD_CU_NUMBER)
        return true;
    if (*memory >= 0 && *memory != code->load_from[r])
        return false;
    *memory = code->load_from[r];
    return true;
}

/* Is what is read computed in no other dtype than the kernels', which convert once? */
static bool converts_once(const td_cu_code *code, const td_cu_step *step, int memory) {
    bool moves = step->primitive == TD_PW_copy || step->primitive == TD_PW_where;
    for (int k = 0; k < code->nloads; k++) {
        bool is_mask = step->primitive == TD_PW_where && k == step->src[0];
        if (!is_mask && code->load_as[k] != step->from)
            return false;
    }
    if (step->primitive == TD_PW_copy)
        return step->from == step->to &&
               (step->from == memory || step->from == code->out_to[0] ||
                (memory == code->out_to[0] && step->from == td_dtype_compute((td_dtype)memory)));
    return step->from == td_dtype_compute((td_dtype)memory) || (moves && step->from == memory);
}

static bool describe(const td_cu_code *code, const td_cu_flat *flat, td_cu_dense *d) {
    const td_cu_step *step = &code->steps[0];
    int memory = -1, mask = TD_BOOL, arity = td_primitive_arity((td_primitive)step->primitive);
    bool where = step->primitive == TD_PW_where;
    if (code->nsteps != 1 || code->nouts != 1 || code->sums || flat->nlists != 1 ||
        step->dst != code->nloads + code->nconstants)
        return false;
    memset(d, 0, sizeof *d);
    for (int k = 0; k < arity; k++)
        if (!take_operand(code, flat, step->src[k], k, where && k == 0 ? &mask : &memory, d))
            return false;
    if (memory < 0) /* numbers alone */
        memory = step->primitive == TD_PW_copy ? step->from : code->out_to[0];
    d->n = (int64_t)flat->words[0];
    d->out = (void *)(uintptr_t)flat->words[2 + code->nloads];
    d->primitive = step->primitive;
    d->memory = (uint8_t)memory;
    d->to = code->out_to[0];
    return converts_once(code, step, memory) &&
           (where || step->primitive == TD_PW_copy || code->out_from[0] == code->out_to[0] ||
            code->out_from[0] == td_dtype_compute((td_dtype)code->out_to[0]));
}

cudaError_t td_cuda_run_dense(const td_cu_code *code, const td_cu_flat *flat, cudaStream_t stream) {
    td_cu_dense d;
    if (!describe(code, flat, &d))
        return cudaErrorNotSupported;
    if (d.primitive == TD_PW_copy)
        return td_cu_dense_move(&d, stream);
    cudaError_t error = td_cu_dense_compare(&d, stream);
    if (error != cudaErrorNotSupported)
        return error;
    if (!td_dtype_is_float((td_dtype)d.memory))
        return td_cu_dense_integers(&d, stream);
    error = td_cu_dense_arithmetic(&d, stream);
    return error == cudaErrorNotSupported ? td_cu_dense_math(&d, stream) : error;
}
