/* blas.c: matrix products of floats by cuBLASLt, which is loaded when it is first needed. What it
 * chose for a shape is kept. Products that it can't do, or all where it is not installed, are left
 * to our own kernels. */
#include "engine/cuda/blas.h"

#include "engine/core/memory.h"
#include "engine/core/switches.h"
#include "engine/cuda/late.h"
#include "engine/cuda/late/cublaslt.h"
#include "engine/cuda/ways.h"

#include <pthread.h>

#ifndef TD_CUDA_CUBLASLT
#define TD_CUDA_CUBLASLT "" /* the module's file, beside ours: built without it */
#endif

enum {
    WORKSPACE = 32 << 20, /* what the library asks for on recent devices */
    ALIGNED = 256
};

_Static_assert(sizeof(td_lt_shape) <= TD_CUDA_SHAPE_BYTES, "a shape fits");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static td_cuda_late library = {.file = TD_CUDA_CUBLASLT, .symbol = TD_LATE_CUBLASLT};
static td_cuda_ways ways = {.shape_bytes = sizeof(td_lt_shape)};

/* ---- shapes ---- */

/* Does a matrix lie a column at a time, or its transpose? And how far are its columns apart? */
static bool lies(int64_t rows, int64_t columns, int64_t row, int64_t column, int32_t *turned,
                 int64_t *ld) {
    *turned = 0;
    *ld = columns == 1 ? rows : column;
    if ((row == 1 || rows == 1) && *ld >= rows)
        return true;
    *turned = 1;
    *ld = rows == 1 ? columns : row;
    return (column == 1 || columns == 1) && *ld >= columns;
}

static int32_t alignment_of(const void *p, int64_t batch_bytes) {
    uintptr_t bits = (uintptr_t)p | (uintptr_t)batch_bytes | ALIGNED;
    return (int32_t)(bits & -bits);
}

static bool is_its_dtype(const td_tensor *x) {
    const uint32_t floats = 1u << TD_F16 | 1u << TD_BF16 | 1u << TD_F32 | 1u << TD_F64;
    return floats >> x->dtype & 1;
}

/* The library counts columns first: out's transpose is b's times a's, and the bias stands along its
 * columns. */
static bool shape_of(const td_product_plan *p, td_lt_shape *s) {
    const td_tensor *bias = p->bias;
    int64_t size = (int64_t)td_tensor_itemsize(p->out);
    int32_t turned;
    *s = (td_lt_shape){.m = p->n,
                       .n = p->m,
                       .k = p->k,
                       .batch = p->batch,
                       .a_batch = p->as_b.batch_stride,
                       .b_batch = p->as_a.batch_stride,
                       .out_batch = p->as_out.batch_stride,
                       .dtype = p->out->dtype,
                       .has_bias = bias != NULL,
                       .device = p->stream.device.index,
                       .is_tf32 =
                           p->out->dtype == TD_F32 && td_switch_is_on(TD_SWITCH_TF32_PRODUCTS)};
    if (!is_its_dtype(p->out) || p->k == 0 || p->batch > INT32_MAX ||
        (bias && p->n > 1 && bias->strides[bias->ndim - 1] != 1))
        return false;
    s->a_aligned = alignment_of(p->b->data, p->as_b.batch_stride * size);
    s->b_aligned = alignment_of(p->a->data, p->as_a.batch_stride * size);
    s->out_aligned = alignment_of(p->out->data, p->as_out.batch_stride * size);
    return lies(s->m, s->k, p->as_b.column_stride, p->as_b.row_stride, &s->a_turned, &s->lda) &&
           lies(s->k, s->n, p->as_a.column_stride, p->as_a.row_stride, &s->b_turned, &s->ldb) &&
           lies(s->m, s->n, p->as_out.column_stride, p->as_out.row_stride, &turned, &s->ldc) &&
           !turned;
}

/* With the lock held. */
static td_lt_way *way_for(const td_late_cublaslt *blas, void *handle, const td_lt_shape *s) {
    bool known;
    void **place = td_cuda_ways_place(&ways, s, &known);
    if (known)
        return *place;
    if (*place)
        blas->drop(*place);
    td_free(*place);
    *place = td_calloc(1, blas->way_bytes);
    if (*place && blas->choose(handle, s, WORKSPACE, *place) != 0) {
        td_free(*place);
        *place = NULL;
    }
    return *place;
}

/* ---- products ---- */

td_status td_cuda_blas_product(const td_product_plan *p, cudaStream_t s, bool *done) {
    td_cuda_scratch room = {.data = NULL};
    td_lt_shape shape;
    td_status status = TD_OK;
    *done = false;
    if (!shape_of(p, &shape))
        return TD_OK;
    pthread_mutex_lock(&lock);
    const td_late_cublaslt *blas = td_cuda_late_table(&library);
    void *handle = blas ? td_cuda_late_handle(&library, shape.device, blas->start) : NULL;
    td_lt_way *way = handle ? way_for(blas, handle, &shape) : NULL;
    if (!way)
        goto done;
    TD_TRY(td_cuda_scratch_take(&room, p->stream, WORKSPACE));
    *done = blas->run(handle, way,
                      &(td_lt_call){.a = p->b->data,
                                    .b = p->a->data,
                                    .bias = p->bias ? p->bias->data : NULL,
                                    .out = p->out->data,
                                    .workspace = room.data,
                                    .workspace_bytes = WORKSPACE,
                                    .stream = s}) == 0;
done:
    pthread_mutex_unlock(&lock);
    td_cuda_scratch_drop(&room);
    return status;
}
