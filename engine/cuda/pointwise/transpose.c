/* transpose.c: finds copies that read along one dim and write along another. */
#include "engine/cuda/pointwise/transpose.h"

#include "engine/core/dtype.h"
#include "engine/cuda/limits.h"
#include "engine/cuda/pointwise/transpose_code.h"
#include "engine/ops/language/program.h"

static bool moves_bits(const td_cu_code *code, const td_cu_walk *w) {
    const td_cu_step *step = &code->steps[0];
    int dtype = code->load_from[0];
    return code->nsteps == 1 && code->nloads == 1 && code->nouts == 1 && !code->sums &&
           step->primitive == TD_PW_copy && (w->kinds & 3) == TD_CU_DENSE &&
           code->load_as[0] == dtype && step->from == dtype && step->to == dtype &&
           code->out_from[0] == dtype && code->out_to[0] == dtype;
}

/* The dim along which a side's elements are neighbours; -1: none that is long enough for
 * tiles. */
static int dim_along(const td_cu_walk *w, int side, int64_t size) {
    for (int d = 0; d < w->ndim; d++)
        if (w->strides[side * w->ndim + d] == size && w->sizes[d] >= TD_LIMIT(TRANSPOSE_SIDE))
            return d;
    return -1;
}

cudaError_t td_cuda_run_transposed(const td_cu_code *code, const td_cu_walk *w,
                                   cudaStream_t stream) {
    if (!moves_bits(code, w) || w->ndim < 2 || w->ndim > TD_CU_TURN_DIMS + 2)
        return cudaErrorNotSupported;
    int64_t size = (int64_t)td_dtype_size((td_dtype)code->out_to[0]);
    int b = dim_along(w, 0, size), a = dim_along(w, 1, size);
    if (a < 0 || b < 0 || a == b)
        return cudaErrorNotSupported;
    const int64_t *in = w->strides, *out = w->strides + w->ndim;
    td_cu_transpose t = {.in = (const void *)(uintptr_t)w->words[0],
                         .out = (void *)(uintptr_t)w->words[1],
                         .a = w->sizes[a],
                         .b = w->sizes[b],
                         .in_a = in[a] / size,
                         .out_b = out[b] / size,
                         .size = (int)size,
                         .batch = 1};
    for (int d = 0; d < w->ndim; d++) {
        if (in[d] % size || out[d] % size)
            return cudaErrorNotSupported;
        if (d == a || d == b)
            continue;
        t.sizes[t.ndim] = w->sizes[d];
        t.in_strides[t.ndim] = in[d] / size;
        t.out_strides[t.ndim++] = out[d] / size;
        t.batch *= w->sizes[d];
    }
    return td_cu_run_transpose(&t, stream);
}
