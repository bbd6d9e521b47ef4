/* nonzero.c: how many elements are not 0, and where. Who asks reads the number and waits for it;
 * nothing here does. */
#include "engine/cuda/index/nonzero_code.h"

#include "engine/cuda/cuda.h"

static td_status run_on_cpu(const void *plan) {
    return td_backends[TD_CPU]->nonzero(plan);
}

static td_status run(const td_nonzero_plan *p, const td_cu_nonzero *z, cudaStream_t s) {
    const td_tensor *x = p->x;
    td_status status = td_cuda_status(td_cu_nonzero_count(z, s), "counting");
    if (status != TD_OK)
        return status;
    return td_cuda_status(
        p->places ? td_cu_nonzero_places(z, x->ndim, x->sizes, p->out->sizes[0], p->out->data, s)
                  : td_cu_nonzero_total(z, p->out->data, s),
        "finding what is not 0");
}

td_status td_cuda_nonzero(const td_nonzero_plan *p) {
    const td_tensor *x = p->x;
    if (x->numel > UINT32_MAX - TD_CU_NONZERO_TILE)
        return td_cuda_fall_back("nonzero", p, sizeof *p, run_on_cpu, 2, 1);
    td_cu_nonzero z = {.x = x->data,
                       .itemsize = (int)td_tensor_itemsize(x),
                       .is_float = td_dtype_is_float((td_dtype)x->dtype),
                       .n = (uint32_t)x->numel};
    td_cuda_scratch counts = {.data = NULL};
    cudaStream_t s;
    td_status status;
    TD_TRY(td_cuda_begin(p->stream, 2, p->tensors, &s));
    if (p->places && p->out->numel == 0)
        goto done;
    if (x->numel == 0) {
        status = td_cuda_status(cudaMemsetAsync(p->out->data, 0, sizeof(int64_t), s), "counting");
        goto done;
    }
    z.tiles = (z.n + TD_CU_NONZERO_TILE - 1) / TD_CU_NONZERO_TILE;
    td_cu_dims_set(&z.dims, x->ndim, x->sizes, x->strides);
    TD_TRY(td_cuda_scratch_take(&counts, p->stream, sizeof(uint32_t) * ((size_t)z.tiles + 1)));
    z.counts = counts.data;
    status = run(p, &z, s);
done:
    td_cuda_scratch_drop(&counts);
    return status;
}
