/* blas.c: matrix products of floats, and of int8 summed up in int32, by cuBLASLt, which is loaded
 * when it is first needed. What it chose for a shape is kept. Products that it can't do, or all
 * where it is not installed, are left to our own kernels. */
#include "engine/cuda/product/blas.h"

#include "engine/core/memory.h"
#include "engine/core/observer.h"
#include "engine/core/switches.h"
#include "engine/cuda/limits.h"
#include "engine/cuda/loaded_libraries/cublaslt.h"
#include "engine/cuda/runtime/loaded_libraries.h"
#include "engine/cuda/runtime/shape_choices.h"
#include "engine/ops/make/copy.h"

#include <pthread.h>

#ifndef TD_CUDA_CUBLASLT
#define TD_CUDA_CUBLASLT "" /* the module's file, beside ours: built without it */
#endif

enum {
    WORKSPACE = 32 << 20, /* what the library asks for on recent devices */
    ALIGNED = 256,
    MANY_BYTES = 1 << 17 /* terms whose sum may not fit an int32: our own kernels wrap around */
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

static bool is_of_bytes(const td_product_plan *p) {
    return p->a->dtype == TD_I8 && p->out->dtype == TD_I32;
}

static bool are_its_dtypes(const td_product_plan *p) {
    const uint32_t floats = 1u << TD_F16 | 1u << TD_BF16 | 1u << TD_F32 | 1u << TD_F64;
    return is_of_bytes(p) ? p->k < MANY_BYTES : (bool)(floats >> p->out->dtype & 1);
}

/* What is not the factors': the library counts columns first, so out's transpose is b's times a's,
 * and the bias stands along its columns. */
static bool begin_shape(const td_product_plan *p, td_lt_shape *s) {
    const td_tensor *bias = p->bias;
    int64_t size = (int64_t)td_tensor_itemsize(p->out);
    int32_t turned;
    *s = (td_lt_shape){.m = p->n,
                       .n = p->m,
                       .k = p->k,
                       .batch = p->batch,
                       .out_batch = p->as_out.batch_stride,
                       .dtype = p->a->dtype,
                       .has_bias = bias != NULL,
                       .out_aligned = alignment_of(p->out->data, p->as_out.batch_stride * size),
                       .device = p->stream.device.index,
                       .is_tf32 =
                           p->out->dtype == TD_F32 && td_switch_is_on(TD_SWITCH_TF32_PRODUCTS)};
    return are_its_dtypes(p) && p->k > 0 && p->batch <= INT32_MAX &&
           (!bias || p->n == 1 || bias->strides[bias->ndim - 1] == 1) &&
           lies(s->m, s->n, p->as_out.column_stride, p->as_out.row_stride, &turned, &s->ldc) &&
           !turned;
}

static bool as_they_lie(const td_product_plan *p, td_lt_shape *s) {
    int64_t size = (int64_t)td_tensor_itemsize(p->a);
    s->a_batch = p->as_b.batch_stride;
    s->b_batch = p->as_a.batch_stride;
    s->a_aligned = alignment_of(p->b->data, s->a_batch * size);
    s->b_aligned = alignment_of(p->a->data, s->b_batch * size);
    return lies(s->m, s->k, p->as_b.column_stride, p->as_b.row_stride, &s->a_turned, &s->lda) &&
           lies(s->k, s->n, p->as_a.column_stride, p->as_a.row_stride, &s->b_turned, &s->ldb);
}

/* Of bytes there are kernels on every device for one layout alone: on both sides the terms of a sum
 * are neighbours, in fours. Of large products the copies are a small part. */
static bool as_copied(const td_product_plan *p, td_lt_shape *s) {
    s->a_batch = s->b_batch = 0;
    s->a_turned = 1;
    s->b_turned = 0;
    s->lda = s->ldb = p->k;
    s->a_aligned = s->b_aligned = ALIGNED;
    return is_of_bytes(p) && p->batch == 1 && p->k % 4 == 0 && p->n % 4 == 0 &&
           (double)p->m * (double)p->n * (double)p->k >= TD_LIMIT(PRODUCT_COPIED);
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
    td_loading loading; /* once for a shape, and no work of this call's */
    td_loading_begin(&loading, "cuBLASLt's algorithm");
    *place = td_calloc(1, blas->way_bytes);
    if (*place && blas->choose(handle, s, WORKSPACE, *place) != 0) {
        td_free(*place);
        *place = NULL;
    }
    td_loading_end(&loading);
    return *place;
}

/* ---- factors ---- */

/* Lines of k bytes, one after another (*out, new): x itself where it lies so, or a copy. */
static td_status line_up(td_tensor *x, int64_t lines, int64_t k, int64_t line, int64_t step,
                         td_tensor **out) {
    const int64_t sizes[2] = {lines, k}, strides[2] = {line, step};
    td_tensor *seen = NULL;
    td_status status = TD_OK;
    if (step == 1 && (line == k || lines == 1) && alignment_of(x->data, 0) == ALIGNED) {
        *out = td_retain(x);
        return TD_OK;
    }
    TD_TRY(td_tensor_view(x, 2, sizes, strides, 0, &seen));
    TD_TRY(td_tensor_empty(TD_I8, td_tensor_device(x), 2, sizes, out));
    TD_TRY(td_copy_into(*out, seen));
done:
    td_release(seen);
    return status;
}

/* The way for a product (NULL: none), and its factors as that takes them, new. */
static td_status find_way(const td_product_plan *p, const td_late_cublaslt *blas, void *handle,
                          td_lt_shape *s, td_lt_way **way, td_tensor **a, td_tensor **b) {
    td_status status = TD_OK;
    *way = as_they_lie(p, s) ? way_for(blas, handle, s) : NULL;
    if (*way) {
        *a = td_retain(p->a);
        *b = td_retain(p->b);
    } else if (as_copied(p, s) && (*way = way_for(blas, handle, s)) != NULL) {
        const td_matrices *left = &p->as_a, *right = &p->as_b;
        status = line_up(p->a, p->m, p->k, left->row_stride, left->column_stride, a);
        if (status == TD_OK)
            status = line_up(p->b, p->n, p->k, right->column_stride, right->row_stride, b);
    }
    return status;
}

/* ---- products ---- */

td_status td_cuda_blas_product(const td_product_plan *p, cudaStream_t s, bool *done) {
    td_cuda_scratch room = {.data = NULL};
    td_tensor *a = NULL, *b = NULL;
    td_lt_way *way = NULL;
    td_lt_shape shape;
    td_status status = TD_OK;
    *done = false;
    if (!begin_shape(p, &shape))
        return TD_OK;
    pthread_mutex_lock(&lock);
    const td_late_cublaslt *blas = td_cuda_late_table(&library);
    void *handle = blas ? td_cuda_late_handle(&library, shape.device, blas->start) : NULL;
    if (handle)
        TD_TRY(find_way(p, blas, handle, &shape, &way, &a, &b));
    if (!way)
        goto done;
    TD_TRY(td_cuda_scratch_take(&room, p->stream, WORKSPACE));
    *done = blas->run(handle, way,
                      &(td_lt_call){.a = b->data,
                                    .b = a->data,
                                    .bias = p->bias ? p->bias->data : NULL,
                                    .out = p->out->data,
                                    .workspace = room.data,
                                    .workspace_bytes = WORKSPACE,
                                    .stream = s}) == 0;
done:
    pthread_mutex_unlock(&lock);
    td_cuda_scratch_drop(&room);
    td_release(a);
    td_release(b);
    return status;
}
