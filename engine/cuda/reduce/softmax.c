/* softmax.c: softmax and its logarithm along a dim, and their gradients. */
#include "engine/cuda/cuda.h"
#include "engine/cuda/reduce/dim_lines.h"
#include "engine/ops/make/copy.h"

td_cu_lines td_cuda_lines_of(const td_tensor *x, int dim) {
    td_cu_lines l = {.outer = 1, .n = 1, .inner = 1};
    for (int d = 0; d < x->ndim; d++)
        *(d < dim ? &l.outer : d == dim ? &l.n : &l.inner) *= x->sizes[d];
    return l;
}

td_status td_cuda_room_for(td_tensor *out, td_tensor **result) {
    if (out && !out->contiguous)
        return td_tensor_empty_like(out, (td_dtype)out->dtype, result);
    *result = out ? td_retain(out) : NULL;
    return TD_OK;
}

td_status td_cuda_hand_over(td_tensor *out, const td_tensor *result) {
    return result == out ? TD_OK : td_copy_into(out, result);
}

td_status td_cuda_softmax(const td_softmax_plan *p) {
    td_tensor *out = p->out, *x = NULL, *g = NULL, *result = NULL;
    td_dtype dtype = (td_dtype)out->dtype;
    cudaStream_t stream;
    td_status status;
    TD_TRY(td_cuda_begin(p->stream, 3, p->tensors, &stream));
    if (out->numel == 0)
        goto done;
    TD_TRY(td_contiguous_as(p->x, dtype, &x));
    if (p->g)
        TD_TRY(td_contiguous_as(p->g, dtype, &g));
    TD_TRY(td_cuda_room_for(out, &result));
    td_cu_softmax s = {.lines = td_cuda_lines_of(out, p->dim),
                       .dtype = dtype,
                       .x = x->data,
                       .g = g ? g->data : NULL,
                       .out = result->data,
                       .log = p->log};
    TD_TRY(td_cuda_status(td_cu_run_softmax(&s, stream), "softmax"));
    TD_TRY(td_cuda_hand_over(out, result));
done:
    td_release(x);
    td_release(g);
    td_release(result);
    return status;
}
