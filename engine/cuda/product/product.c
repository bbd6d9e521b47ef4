/* product.c: matrix products by kernels of our own (product.cu), for every dtype and any strides.
 */
#include "engine/cuda/product/product.h"

#include "engine/cuda/limits.h"
#include "engine/cuda/product/blas.h"

enum { PARTIAL = 64 << 20 }; /* partial sums at most */

static int64_t tiles_of(const td_cu_product_size *s) {
    enum { SIDE = TD_CU_PRODUCT_SIDE };
    return (s->m + SIDE - 1) / SIDE * ((s->n + SIDE - 1) / SIDE) * s->batch;
}

bool td_cuda_product_fits(const td_cu_product_size *s) {
    return tiles_of(s) <= INT32_MAX;
}

/* Sums are cut alike whatever the device, so that results are the same. */
td_status td_cuda_product_parts(td_cu_product_size *s, td_dtype dtype, td_stream stream,
                                td_cuda_scratch *room) {
    int64_t results = s->batch * s->m * s->n, parts = TD_LIMIT(PRODUCT_FULL) / tiles_of(s);
    parts = parts < s->k / TD_LIMIT(PRODUCT_PART) ? parts : s->k / TD_LIMIT(PRODUCT_PART);
    parts = parts < PARTIAL / results ? parts : PARTIAL / results;
    s->parts = parts > 1 ? parts : 1;
    if (s->parts == 1)
        return TD_OK;
    size_t bytes = (size_t)(s->parts * results * td_cu_sum_size((int)td_dtype_size(dtype)));
    td_status status = td_cuda_scratch_take(room, stream, bytes);
    s->partial = room->data;
    return status;
}

static td_cu_matrix matrix_of(const td_matrices *m) {
    return (td_cu_matrix){m->batch_stride, m->row_stride, m->column_stride};
}

static td_status run_on_cpu(const void *plan) {
    return td_backends[TD_CPU]->product(plan);
}

td_status td_cuda_product(const td_product_plan *p) {
    const td_tensor *bias = p->bias;
    td_cu_product c = {.size = {.batch = p->batch, .m = p->m, .n = p->n, .k = p->k},
                       .out = p->out->data,
                       .a = p->a->data,
                       .b = p->b->data,
                       .bias = bias ? bias->data : NULL,
                       .dtype = p->out->dtype,
                       .bytes = p->a->dtype != p->out->dtype,
                       .bias_step = bias && bias->ndim ? bias->strides[bias->ndim - 1] : 0,
                       .as_out = matrix_of(&p->as_out),
                       .as_a = matrix_of(&p->as_a),
                       .as_b = matrix_of(&p->as_b)};
    td_cuda_scratch room = {.data = NULL};
    cudaStream_t s;
    td_status status;
    bool done_already;
    if (!td_cuda_product_fits(&c.size))
        return td_cuda_fall_back("product", p, sizeof *p, run_on_cpu, 4, 1);
    TD_TRY(td_cuda_begin(p->stream, 4, p->tensors, &s));
    if (p->batch * p->m * p->n == 0)
        goto done;
    TD_TRY(td_cuda_blas_product(p, s, &done_already));
    if (done_already)
        goto done;
    TD_TRY(td_cuda_product_parts(&c.size, (td_dtype)c.dtype, p->stream, &room));
    status = td_cuda_status(td_cu_product_run(&c, s), "multiplying matrices");
done:
    td_cuda_scratch_drop(&room);
    return status;
}
