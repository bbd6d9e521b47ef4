/* matmul.c: products on the CPU: a tiny loop, OpenBLAS or oneDNN by size and dtype, and plain loops
 * for integers. Long products are cut into panels of rows between which an interrupt is noticed. */
#include "engine/ops/matmul.h"

#include "engine/core/interrupt.h"
#include "engine/core/threads.h"
#include "engine/cpu/blas.h"
#include "engine/cpu/onednn.h"
#include "engine/ops/copy.h"

#include <limits.h>
#include <string.h>

enum {
    TINY = 512,       /* multiplications that a plain loop does soonest */
    SMALL = 64 * 1024 /* and OpenBLAS, whose calls cost less than oneDNN's */
};
#define PANEL 2e9 /* multiplications done without a look at the interrupt flag: some 50 ms */

/* A batch of matrices; strides in elements. */
typedef struct matrices {
    char *data;
    int64_t batch_stride, rows, columns, row_stride, column_stride;
} matrices;

typedef struct product {
    td_dtype dtype;
    int64_t batch, m, n, k;
    matrices a, b, c; /* m x k, k x n, m x n */
    const void *bias; /* n elements for every row, or NULL */
} product;

/* ---- plain loops ---- */

#define DEFINE_PLAIN(type, sum_type)                                                               \
    static void plain_##type(const product *p, int64_t batch, int64_t row, int64_t end) {          \
        const type *a = (const type *)p->a.data + batch * p->a.batch_stride;                       \
        const type *b = (const type *)p->b.data + batch * p->b.batch_stride;                       \
        type *c = (type *)p->c.data + batch * p->c.batch_stride;                                   \
        const type *bias = p->bias;                                                                \
        for (int64_t i = row; i < end; i++)                                                        \
            for (int64_t j = 0; j < p->n; j++) {                                                   \
                sum_type sum = bias ? (sum_type)bias[j] : 0;                                       \
                for (int64_t l = 0; l < p->k; l++)                                                 \
                    sum += (sum_type)a[i * p->a.row_stride + l * p->a.column_stride] *             \
                           (sum_type)b[l * p->b.row_stride + j * p->b.column_stride];              \
                c[i * p->c.row_stride + j * p->c.column_stride] = (type)sum;                       \
            }                                                                                      \
    }
DEFINE_PLAIN(float, float)
DEFINE_PLAIN(double, double)
DEFINE_PLAIN(int64_t, uint64_t)
DEFINE_PLAIN(int32_t, uint32_t)
DEFINE_PLAIN(uint8_t, uint32_t)

static void plain_rows(const product *p, int64_t batch, int64_t row, int64_t end) {
    switch (p->dtype) {
    case TD_F32:
        plain_float(p, batch, row, end);
        return;
    case TD_F64:
        plain_double(p, batch, row, end);
        return;
    case TD_I64:
        plain_int64_t(p, batch, row, end);
        return;
    case TD_I32:
        plain_int32_t(p, batch, row, end);
        return;
    default:
        plain_uint8_t(p, batch, row, end);
        return;
    }
}

static void plain_part(void *ctx, int64_t begin, int64_t end, int worker) {
    const product *p = ctx;
    (void)worker;
    for (int64_t at = begin; at < end; at++)
        plain_rows(p, at / p->m, at % p->m, at % p->m + 1);
}

static td_status multiply_integers(product *p) {
    int64_t row_work = p->n * p->k;
    return td_parallel_for(p->batch * p->m, 1 + 32768 / (row_work + 1), plain_part, p);
}

/* ---- libraries ---- */

/* Leading dim of a matrix that a BLAS takes as it lies (or as its transpose lies); 0: neither. */
static int64_t leading(const matrices *x, bool *transposed) {
    int64_t ld = 0;
    *transposed = false;
    if (x->column_stride == 1 || x->columns == 1) {
        ld = x->rows == 1 ? x->columns : x->row_stride;
        if (ld >= x->columns && ld > 0)
            return ld;
    }
    *transposed = true;
    if (x->row_stride == 1 || x->rows == 1) {
        ld = x->columns == 1 ? x->rows : x->column_stride;
        if (ld >= x->rows && ld > 0)
            return ld;
    }
    return 0;
}

/* Strides as oneDNN should see them: those of dims of one element are made up. */
static td_dnn_matrices for_dnn(const matrices *x) {
    bool transposed;
    int64_t ld = leading(x, &transposed);
    return (td_dnn_matrices){x->data, x->batch_stride, transposed ? 1 : ld, transposed ? ld : 1};
}

static void fill_bias(const product *p) {
    size_t size = td_dtype_size(p->dtype);
    for (int64_t i = 0; i < p->m; i++)
        memcpy(p->c.data + (size_t)(i * p->c.row_stride) * size, p->bias, (size_t)p->n * size);
}

static void blas_one(const product *p, int64_t batch) {
    bool ta, tb, tc;
    int64_t lda = leading(&p->a, &ta), ldb = leading(&p->b, &tb), ldc = leading(&p->c, &tc);
    size_t size = td_dtype_size(p->dtype);
    const void *a = p->a.data + (size_t)(batch * p->a.batch_stride) * size;
    const void *b = p->b.data + (size_t)(batch * p->b.batch_stride) * size;
    void *c = p->c.data + (size_t)(batch * p->c.batch_stride) * size;
    double beta = p->bias ? 1 : 0;
    if (p->bias)
        fill_bias(p);
    if (p->dtype == TD_F32)
        td_blas_sgemm(ta, tb, p->m, p->n, p->k, a, lda, b, ldb, (float)beta, c, ldc);
    else
        td_blas_dgemm(ta, tb, p->m, p->n, p->k, a, lda, b, ldb, beta, c, ldc);
}

static bool fits_int(const matrices *x) {
    return x->rows <= INT_MAX && x->columns <= INT_MAX && x->row_stride <= INT_MAX &&
           x->column_stride <= INT_MAX;
}

/* The rows [row, end) of all products, whose number of multiplications is small enough. */
static td_status multiply_panel(const product *whole, int64_t row, int64_t end) {
    product p = *whole;
    size_t size = td_dtype_size(p.dtype);
    p.m = p.a.rows = p.c.rows = end - row;
    p.a.data += (size_t)(row * p.a.row_stride) * size;
    p.c.data += (size_t)(row * p.c.row_stride) * size;
    double work = (double)p.m * (double)p.n * (double)p.k;
    bool blas = p.dtype == TD_F64 || work <= SMALL;
    if (work * (double)p.batch <= TINY) {
        for (int64_t batch = 0; batch < p.batch; batch++)
            plain_rows(&p, batch, 0, p.m);
        return TD_OK;
    }
    if (!blas)
        return td_dnn_matmul(p.batch, p.m, p.n, p.k, for_dnn(&p.a), for_dnn(&p.b), p.bias,
                             for_dnn(&p.c));
    if (!fits_int(&p.a) || !fits_int(&p.b) || !fits_int(&p.c))
        return td_fail(TD_ESHAPE, "matrices of more than 2^31 - 1 rows or columns");
    for (int64_t batch = 0; batch < p.batch; batch++)
        blas_one(&p, batch);
    return TD_OK;
}

static td_status multiply_floats(const product *p) {
    double work = (double)p->m * (double)p->n * (double)p->k;
    td_status status = TD_OK;
    if (work * (double)p->batch <= PANEL)
        return multiply_panel(p, 0, p->m);
    product one = *p;
    one.batch = work <= PANEL ? (int64_t)(PANEL / work) : 1;
    int64_t rows = work <= PANEL ? p->m : (int64_t)(PANEL / work * (double)p->m) / 64 * 64 + 64;
    size_t size = td_dtype_size(p->dtype);
    for (int64_t batch = 0; batch < p->batch && status == TD_OK; batch += one.batch) {
        if (one.batch > p->batch - batch)
            one.batch = p->batch - batch;
        one.a.data = p->a.data + (size_t)(batch * p->a.batch_stride) * size;
        one.b.data = p->b.data + (size_t)(batch * p->b.batch_stride) * size;
        one.c.data = p->c.data + (size_t)(batch * p->c.batch_stride) * size;
        for (int64_t row = 0; row < p->m && status == TD_OK; row += rows) {
            status = td_interrupt_check();
            if (status == TD_OK)
                status = multiply_panel(&one, row, row + rows < p->m ? row + rows : p->m);
        }
    }
    return status;
}

/* ---- from tensors ---- */

static td_status fill_result(const product *p, td_tensor *out) {
    if (!p->bias)
        return td_fill_int(out, 0);
    for (int64_t i = 0; i < p->batch * p->m; i++)
        memcpy((char *)out->data + (size_t)(i * p->n) * td_dtype_size(p->dtype), p->bias,
               (size_t)p->n * td_dtype_size(p->dtype));
    return TD_OK;
}

/* Matrices of which one stride is 1: x itself or a row-major copy (*copy, owned by the caller). */
static td_status usable(matrices *x, td_tensor *tensor, int64_t batch, td_tensor **copy) {
    bool transposed;
    if (leading(x, &transposed) && (batch == 1 || x->batch_stride > 0))
        return TD_OK;
    td_status status = td_contiguous_as(tensor, (td_dtype)tensor->dtype, copy);
    if (status == TD_OK && *copy == tensor) /* row-major, yet of no use: cannot be */
        return td_fail(TD_EINTERNAL, "strides of a matrix");
    if (status == TD_OK)
        *x = (matrices){(*copy)->data, batch == 1 ? 0 : x->rows * x->columns,
                        x->rows,       x->columns,
                        x->columns,    1};
    return status;
}

static td_status multiply(product *p, td_tensor *a, td_tensor *b, td_tensor *out) {
    td_tensor *a_copy = NULL, *b_copy = NULL, *result = NULL;
    td_status status = TD_OK;
    bool transposed;
    if (p->batch * p->m * p->n == 0)
        return TD_OK;
    matrices given = p->c;
    if (!td_dtype_is_float(p->dtype))
        return multiply_integers(p);
    bool aliased = out->storage == a->storage || out->storage == b->storage;
    if (p->k == 0 || aliased || !leading(&p->c, &transposed) || transposed) {
        TD_TRY(td_tensor_empty_like(out, p->dtype, &result));
        p->c = (matrices){
            result->data, given.rows * given.columns, given.rows, given.columns, given.columns, 1};
    }
    if (p->k == 0) {
        TD_TRY(fill_result(p, result));
    } else {
        TD_TRY(usable(&p->a, a, p->batch, &a_copy));
        TD_TRY(usable(&p->b, b, p->batch, &b_copy));
        TD_TRY(multiply_floats(p));
    }
    if (result)
        TD_TRY(td_copy_into(out, result));
done:
    td_release(a_copy);
    td_release(b_copy);
    td_release(result);
    return status;
}

static matrices matrix_of(const td_tensor *x) {
    int r = x->ndim - 2, c = x->ndim - 1;
    return (matrices){x->data,       x->ndim == 3 ? x->strides[0] : 0,
                      x->sizes[r],   x->sizes[c],
                      x->strides[r], x->strides[c]};
}

/* A vector as one column. */
static matrices column_of(const td_tensor *x) {
    int64_t n = x->ndim ? x->sizes[0] : 1;
    return (matrices){x->data, 0, n, 1, x->ndim ? x->strides[0] : 1, 1};
}

static td_status multiply_matrices(td_call *call) {
    td_tensor *a = call->args[0].tensor, *b = call->args[1].tensor, *out = call->out[0];
    product p = {.dtype = (td_dtype)out->dtype,
                 .batch = a->ndim == 3 ? a->sizes[0] : 1,
                 .m = a->sizes[a->ndim - 2],
                 .n = b->sizes[b->ndim - 1],
                 .k = a->sizes[a->ndim - 1],
                 .a = matrix_of(a),
                 .b = matrix_of(b),
                 .c = matrix_of(out)};
    return multiply(&p, a, b, out);
}

td_status td_cpu_mm(td_call *call) {
    return multiply_matrices(call);
}
td_status td_cpu_bmm(td_call *call) {
    return multiply_matrices(call);
}

td_status td_cpu_mv(td_call *call) {
    td_tensor *a = call->args[0].tensor, *b = call->args[1].tensor, *out = call->out[0];
    product p = {.dtype = (td_dtype)out->dtype,
                 .batch = 1,
                 .m = a->sizes[0],
                 .n = 1,
                 .k = a->sizes[1],
                 .a = matrix_of(a),
                 .b = column_of(b),
                 .c = column_of(out)};
    return multiply(&p, a, b, out);
}

td_status td_cpu_dot(td_call *call) {
    td_tensor *a = call->args[0].tensor, *b = call->args[1].tensor, *out = call->out[0];
    matrices column = column_of(a);
    product p = {.dtype = (td_dtype)out->dtype,
                 .batch = 1,
                 .m = 1,
                 .n = 1,
                 .k = a->sizes[0],
                 .a = {column.data, 0, 1, column.rows, column.column_stride, column.row_stride},
                 .b = column_of(b),
                 .c = column_of(out)};
    return multiply(&p, a, b, out);
}

td_status td_cpu_linear(td_call *call) {
    td_tensor *x = call->args[0].tensor, *weight = call->args[1].tensor, *out = call->out[0];
    td_tensor *bias = td_arg_tensor(call->args[2]), *rows = NULL, *packed = NULL;
    td_tensor *w_rows = NULL;
    td_status status = TD_OK;
    int64_t k = weight->sizes[1], n = weight->sizes[0], m = n ? out->numel / n : 0;
    bool transposed;
    matrices w = matrix_of(weight);
    if (leading(&w, &transposed)) {
        w_rows = td_retain(weight);
    } else {
        TD_TRY(td_contiguous_as(weight, (td_dtype)weight->dtype, &w_rows));
        w = matrix_of(w_rows);
    }
    if (x->ndim == 2)
        rows = td_retain(x);
    else
        TD_TRY(td_contiguous(x, &rows));
    if (bias)
        TD_TRY(td_contiguous(bias, &packed));
    product p = {.dtype = (td_dtype)out->dtype,
                 .batch = 1,
                 .m = m,
                 .n = n,
                 .k = k,
                 .a = {rows->data, 0, m, k, k, 1},
                 .b = {w.data, 0, k, n, w.column_stride, w.row_stride},
                 .c = {out->data, 0, m, n, n, 1},
                 .bias = packed ? packed->data : NULL};
    if (x->ndim == 2)
        p.a = matrix_of(x);
    TD_TRY(multiply(&p, rows, w_rows, out));
done:
    td_release(rows);
    td_release(w_rows);
    td_release(packed);
    return status;
}
