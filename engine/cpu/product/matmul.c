/* matmul.c: products on the CPU, each by the way that product_choice.c chooses: a plain loop, our
 * own (product.h), OpenBLAS or oneDNN; the 16-bit floats that have none of their own in float32.
 * Long products are cut into panels of rows between which an interrupt is noticed, panels into
 * tiles that follow from the shape alone, so results do not depend on the number of threads. */
#include "engine/core/interrupt.h"
#include "engine/core/threads.h"
#include "engine/cpu/cpu.h"
#include "engine/cpu/isa/isa.h"
#include "engine/cpu/limits.h"
#include "engine/cpu/pointwise/strided_convert.h"
#include "engine/cpu/product/blas.h"
#include "engine/cpu/product/kept_panels.h"
#include "engine/cpu/product/library_parts.h"
#include "engine/cpu/product/onednn.h"
#include "engine/cpu/product/product_ways.h"
#include "engine/ops/make/copy.h"
#include "engine/ops/make/kept_forms.h"

#include <limits.h>
#include <string.h>

enum {
    STRIP = 1024 * 1024 /* multiplications of a plain loop without a look at the interrupt flag */
};
/* Multiplications of float32 done without a look at the interrupt flag, some 50 ms; of small
 * matrices, which take longer. */
#define PANEL       2e9
#define SMALL_PANEL 2.5e8

/* A batch of matrices; strides in elements. */
typedef struct matrices {
    char *data;
    int64_t batch_stride, rows, columns, row_stride, column_stride;
} matrices;

struct methods;

typedef struct product {
    const struct methods *by;
    td_dtype dtype; /* c's */
    size_t size;    /* of an element of a, b and, but for products of bytes, c */
    int64_t batch, m, n, k;
    matrices a, b, c;  /* m x k, k x n, m x n */
    const void *bias;  /* n elements for every row, or NULL */
    td_storage *right; /* b's, of which another form may be kept; NULL: b is a copy */
    td_product_way way;
} product;

/* What a dtype has of its own. */
typedef struct methods {
    void (*plain)(const product *p, int64_t batch, int64_t row, int64_t end);
    td_gemm_fn blas; /* OpenBLAS's */
    bool bytes;      /* int8, summed up in int32 */
    bool widens;     /* to float32 where no way of its own pays */
} methods;

/* ---- plain loops ---- */

#define SAME(x) (x)

#define DEFINE_PLAIN_AS(name, type, c_type, sum_type, GET, PUT)                                    \
    static void name(const product *p, int64_t batch, int64_t row, int64_t end) {                  \
        const type *a = (const type *)p->a.data + batch * p->a.batch_stride;                       \
        const type *b = (const type *)p->b.data + batch * p->b.batch_stride;                       \
        c_type *c = (c_type *)p->c.data + batch * p->c.batch_stride;                               \
        const c_type *bias = p->bias;                                                              \
        for (int64_t i = row; i < end; i++)                                                        \
            for (int64_t j = 0; j < p->n; j++) {                                                   \
                sum_type sum = bias ? (sum_type)GET(bias[j]) : 0;                                  \
                for (int64_t l = 0; l < p->k; l++)                                                 \
                    sum += (sum_type)GET(a[i * p->a.row_stride + l * p->a.column_stride]) *        \
                           (sum_type)GET(b[l * p->b.row_stride + j * p->b.column_stride]);         \
                c[i * p->c.row_stride + j * p->c.column_stride] = PUT(sum);                        \
            }                                                                                      \
    }
#define DEFINE_PLAIN(type, sum_type, GET, PUT)                                                     \
    DEFINE_PLAIN_AS(plain_##type, type, type, sum_type, GET, PUT)
DEFINE_PLAIN(td_half, float, td_half_to_float, td_float_to_half)
DEFINE_PLAIN(td_bfloat, float, td_bfloat_to_float, td_float_to_bfloat)
DEFINE_PLAIN(float, float, SAME, SAME)
DEFINE_PLAIN(double, double, SAME, SAME)
DEFINE_PLAIN(int64_t, uint64_t, SAME, (int64_t))
DEFINE_PLAIN(int32_t, uint32_t, SAME, (int32_t))
DEFINE_PLAIN(int16_t, uint32_t, SAME, (int16_t))
DEFINE_PLAIN(int8_t, uint32_t, SAME, (int8_t))
DEFINE_PLAIN(uint8_t, uint32_t, SAME, (uint8_t))
DEFINE_PLAIN_AS(plain_bytes, int8_t, int32_t, uint32_t, SAME, (int32_t))

static const methods methods_by_dtype[TD_DTYPE_COUNT] = {
    [TD_U8] = {.plain = plain_uint8_t},
    [TD_I8] = {.plain = plain_int8_t},
    [TD_I16] = {.plain = plain_int16_t},
    [TD_I32] = {.plain = plain_int32_t},
    [TD_I64] = {.plain = plain_int64_t},
    [TD_F16] = {.plain = plain_td_half, .widens = true},
    [TD_BF16] = {.plain = plain_td_bfloat, .widens = true},
    [TD_F32] = {.plain = plain_float, .blas = td_blas_sgemm},
    [TD_F64] = {.plain = plain_double, .blas = td_blas_dgemm},
};
static const methods methods_of_bytes = {.plain = plain_bytes, .bytes = true};

static void plain_part(void *ctx, int64_t begin, int64_t end, int worker) {
    product p = *(const product *)ctx;
    int64_t n = p.n, columns = 1 + STRIP / p.k;
    (void)worker;
    for (int64_t at = begin; at < end; at++)
        for (int64_t column = 0; column < n && !td_interrupt_requested(); column += columns) {
            const product *whole = ctx;
            size_t shift = (size_t)column * p.size;
            p.n = n - column < columns ? n - column : columns;
            p.b.data = whole->b.data + shift * (size_t)p.b.column_stride;
            p.c.data = whole->c.data + shift * (size_t)p.c.column_stride * (p.by->bytes ? 4 : 1);
            p.bias = whole->bias ? (const char *)whole->bias + shift : NULL;
            p.by->plain(&p, at / p.m, at % p.m, at % p.m + 1);
        }
}

/* ---- our own loops ---- */

static td_product_block block_of(const product *p) {
    return (td_product_block){.a = p->a.data,
                              .b = p->b.data,
                              .c = p->c.data,
                              .bias = p->bias,
                              .rows = p->m,
                              .columns = p->n,
                              .depth = p->k,
                              .a_row = p->a.row_stride,
                              .a_column = p->a.column_stride,
                              .b_row = p->b.row_stride,
                              .b_column = p->b.column_stride,
                              .c_row = p->c.row_stride,
                              .c_column = p->c.column_stride};
}

static td_product_batch batch_of(const product *p) {
    return (td_product_batch){p->batch, p->a.batch_stride, p->b.batch_stride, p->c.batch_stride};
}

static td_status multiply_blocks(const product *p) {
    const td_product_block block = block_of(p);
    const td_product_batch batch = batch_of(p);
    return p->by->bytes ? td_product_of_bytes(&block, &batch)
                        : td_product_by_blocks(p->dtype, &block, &batch);
}

static td_status multiply_panels(const product *p) {
    const td_product_block block = block_of(p);
    const td_product_batch batch = batch_of(p);
    return td_product_by_panels(p->dtype, &block, &batch);
}

static td_status multiply_few(const product *p, bool keeps) {
    const td_product_block block = block_of(p);
    td_tensor *panels = keeps && p->right ? td_kept_panels(p->dtype, p->right, &block) : NULL;
    td_status status = td_product_by_few(p->dtype, &block, panels ? panels->data : NULL);
    td_release(panels);
    return status;
}

/* Dot products of integers: a vector with what lies along it. */
typedef struct whole_dots {
    const product *p;
    const char *x, *rows;
    int64_t stride, apart; /* elements between rows, and between results */
} whole_dots;

static void run_whole_dots(void *ctx, int64_t begin, int64_t end, int worker) {
    const whole_dots *j = ctx;
    int64_t size = (int64_t)j->p->size, some;
    (void)worker;
    for (; begin < end && !td_interrupt_requested(); begin += some) {
        some = end - begin < 1 + STRIP / j->p->k ? end - begin : 1 + STRIP / j->p->k;
        td_cpu->product->whole[j->p->dtype](j->p->c.data + begin * j->apart * size, j->apart, j->x,
                                            j->rows + begin * j->stride * size, j->stride, some,
                                            j->p->k);
    }
}

static bool is_whole_dots(const product *p, whole_dots *j) {
    bool across = p->n != 1;
    if (p->by->bytes || p->batch != 1 || p->bias || (p->n != 1 && p->m != 1) ||
        p->a.column_stride != 1 || p->b.row_stride != 1)
        return false;
    *j = (whole_dots){.p = p,
                      .x = across ? p->a.data : p->b.data,
                      .rows = across ? p->b.data : p->a.data,
                      .stride = across ? p->b.column_stride : p->a.row_stride,
                      .apart = across ? p->c.column_stride : p->c.row_stride};
    return true;
}

static td_product_way integers_way(const product *p) {
    double outputs = (double)p->m * (double)p->n;
    return outputs >= TD_LIMIT(PRODUCT_PLAIN_SUMS) &&
                   outputs * (double)p->k > TD_LIMIT(PRODUCT_PLAIN_WHOLE)
               ? TD_WAY_BLOCKS
               : TD_WAY_PLAIN;
}

static td_status multiply_integers(const product *p) {
    td_product_way way = p->way ? p->way : integers_way(p);
    whole_dots j;
    if ((!p->way || way == TD_WAY_VECTORS) && is_whole_dots(p, &j))
        return td_parallel_for(p->m * p->n, p->k, run_whole_dots, &j);
    if (way == TD_WAY_BLOCKS)
        return multiply_blocks(p);
    return td_parallel_for(p->batch * p->m, 2 * p->n * p->k, plain_part, (void *)p);
}

/* ---- libraries ---- */

static int64_t leading(const matrices *x, bool *transposed) {
    return td_product_leading(x->rows, x->columns, x->row_stride, x->column_stride, transposed);
}

/* Strides as oneDNN should see them: those of dims of one element are made up. */
static td_dnn_matrices for_dnn(const matrices *x) {
    bool transposed;
    int64_t ld = leading(x, &transposed);
    return (td_dnn_matrices){x->data, x->batch_stride, transposed ? 1 : ld, transposed ? ld : 1};
}

static void fill_bias(const product *p) {
    size_t size = p->size;
    for (int64_t batch = 0; batch < p->batch; batch++)
        for (int64_t i = 0; i < p->m; i++)
            memcpy(p->c.data + (size_t)(batch * p->c.batch_stride + i * p->c.row_stride) * size,
                   p->bias, (size_t)p->n * size);
}

/* Part of the product; the bias lies in c already, or comes with what oneDNN does. */
static product product_of(const product *p, const td_tile *t) {
    product one = *p;
    size_t size = p->size;
    one.batch = t->batches;
    one.m = one.a.rows = one.c.rows = t->rows;
    one.n = one.b.columns = one.c.columns = t->columns;
    one.a.data += (size_t)(t->batch * p->a.batch_stride + t->row * p->a.row_stride) * size;
    one.b.data += (size_t)(t->batch * p->b.batch_stride + t->column * p->b.column_stride) * size;
    one.c.data += (size_t)(t->batch * p->c.batch_stride + t->row * p->c.row_stride +
                           t->column * p->c.column_stride) *
                  size;
    if (p->bias)
        one.bias = (const char *)p->bias + (size_t)t->column * size;
    return one;
}

static td_status gemm_tile(const void *ctx, const td_tile *t) {
    const product *whole = ctx, p = product_of(whole, t);
    td_gemm g = {.batch = p.batch,
                 .m = p.m,
                 .n = p.n,
                 .k = p.k,
                 .a = p.a.data,
                 .a_step = p.a.batch_stride,
                 .b = p.b.data,
                 .b_step = p.b.batch_stride,
                 .beta = p.bias ? 1 : 0,
                 .c = p.c.data,
                 .c_step = p.c.batch_stride};
    bool tc;
    g.lda = leading(&whole->a, &g.ta);
    g.ldb = leading(&whole->b, &g.tb);
    g.ldc = leading(&whole->c, &tc);
    return whole->way == TD_WAY_ONEDNN_SGEMM ? td_dnn_sgemm(&g) : whole->by->blas(&g);
}

static td_status dnn_tile(const void *ctx, const td_tile *t) {
    product p = product_of(ctx, t);
    return td_dnn_matmul(p.dtype, p.batch, p.m, p.n, p.k, for_dnn(&p.a), for_dnn(&p.b), p.bias,
                         for_dnn(&p.c), p.way == TD_WAY_ONEDNN_PACKED, p.right);
}

static bool fits_int(const matrices *x) {
    return x->rows <= INT_MAX && x->columns <= INT_MAX && x->row_stride <= INT_MAX &&
           x->column_stride <= INT_MAX;
}

/* The rows [row, end) of all products, whose number of multiplications is small enough. */
static td_status multiply_panel(const product *whole, int64_t row, int64_t end) {
    product p = *whole;
    size_t size = p.size;
    p.m = p.a.rows = p.c.rows = end - row;
    p.a.data += (size_t)(row * p.a.row_stride) * size;
    p.c.data += (size_t)(row * p.c.row_stride) * size;
    if (p.way == TD_WAY_PLAIN) {
        for (int64_t batch = 0; batch < p.batch; batch++)
            p.by->plain(&p, batch, 0, p.m);
        return TD_OK;
    }
    if (p.way == TD_WAY_ONEDNN || p.way == TD_WAY_ONEDNN_PACKED)
        return td_run_tiles(p.batch, p.m, p.n, p.k, dnn_tile, &p);
    td_status status = p.way == TD_WAY_ONEDNN_SGEMM ? td_dnn_sgemm_ready() : td_blas_ready();
    if (status)
        return status;
    if (!fits_int(&p.a) || !fits_int(&p.b) || !fits_int(&p.c))
        return td_fail(TD_ESHAPE, "matrices of more than 2^31 - 1 rows or columns");
    if (p.bias)
        fill_bias(&p);
    return td_run_tiles(p.batch, p.m, p.n, p.k, gemm_tile, &p);
}

static td_product_way chosen(const product *p) {
    const td_product_block block = block_of(p);
    return p->way ? p->way : td_product_choose(p->dtype, &block, p->batch);
}

/* Cut so that an interrupt is noticed between one part and the next. */
static td_status multiply_parts(const product *p) {
    double work = (double)p->m * (double)p->n * (double)p->k;
    td_status status = TD_OK;
    bool narrow = p->dtype == TD_BF16 && p->way != TD_WAY_PLAIN;
    double panel = narrow ? PANEL * td_dnn_bfloat_gain() : PANEL;
    double most = work <= SMALL_PANEL ? SMALL_PANEL : panel;
    if (work * (double)p->batch <= most)
        return multiply_panel(p, 0, p->m);
    product one = *p;
    one.batch = work <= most ? (int64_t)(most / work) : 1;
    int64_t rows = work <= panel ? p->m : (int64_t)(panel / work * (double)p->m) / 64 * 64 + 64;
    size_t size = p->size;
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

static td_status multiply_floats(const product *p) {
    product one = *p;
    one.way = chosen(p);
    const td_product_block block = block_of(p);
    if (one.way == TD_WAY_VECTORS)
        return td_product_by_vectors(p->dtype, &block);
    if (one.way == TD_WAY_PANELS)
        return multiply_panels(p);
    if (one.way == TD_WAY_FEW || one.way == TD_WAY_FEW_KEPT)
        return multiply_few(p, one.way == TD_WAY_FEW_KEPT);
    return one.way == TD_WAY_BLOCKS ? multiply_blocks(p) : multiply_parts(&one);
}

/* ---- from tensors ---- */

/* A tensor as three dims: batch, rows, columns. */
static td_status as_batch(const td_tensor *x, const td_matrices *as, int64_t batch, int64_t rows,
                          int64_t columns, td_tensor **out) {
    const int64_t sizes[3] = {batch, rows, columns};
    const int64_t strides[3] = {as->batch_stride, as->row_stride, as->column_stride};
    return td_tensor_view((td_tensor *)x, 3, sizes, strides, 0, out);
}

static matrices matrices_of(const td_tensor *x, const td_matrices *as, int64_t rows,
                            int64_t columns) {
    return (matrices){x->data, as->batch_stride, rows, columns, as->row_stride, as->column_stride};
}

static matrices packed_matrices(const td_tensor *x, int64_t rows, int64_t columns) {
    return (matrices){x->data, rows * columns, rows, columns, columns, 1};
}

/* Make one stride of the matrices 1, by a row-major copy (*copy, owned by the caller) if need be.
 */
static td_status make_usable(matrices *x, const td_tensor *tensor, const td_matrices *as,
                             int64_t batch, td_tensor **copy) {
    bool transposed;
    td_tensor *seen = NULL;
    if (leading(x, &transposed) && (batch == 1 || x->batch_stride > 0))
        return TD_OK;
    td_status status = as_batch(tensor, as, batch, x->rows, x->columns, &seen);
    if (status == TD_OK)
        status = td_contiguous(seen, copy);
    if (status == TD_OK)
        *x = packed_matrices(*copy, x->rows, x->columns);
    td_release(seen);
    return status;
}

static td_status multiply_tensors(product *p, const td_product_plan *plan) {
    td_tensor *a = NULL, *b = NULL, *result = NULL, *out = NULL;
    const int64_t sizes[3] = {p->batch, p->m, p->n};
    td_status status = TD_OK;
    bool transposed;
    TD_TRY(make_usable(&p->a, plan->a, &plan->as_a, p->batch, &a));
    TD_TRY(make_usable(&p->b, plan->b, &plan->as_b, p->batch, &b));
    p->right = b ? NULL : plan->b->storage;
    if (leading(&p->c, &transposed) && !transposed) {
        status = multiply_floats(p);
        goto done;
    }
    TD_TRY(td_tensor_empty((td_dtype)plan->out->dtype, TD_DEVICE_CPU, 3, sizes, &result));
    TD_TRY(as_batch(plan->out, &plan->as_out, p->batch, p->m, p->n, &out));
    p->c = packed_matrices(result, p->m, p->n);
    TD_TRY(multiply_floats(p));
    TD_TRY(td_copy_into(out, result));
done:
    td_release(a);
    td_release(b);
    td_release(result);
    td_release(out);
    return status;
}

/* A sum of no products: the bias, or zero. */
static td_status fill_result(const td_product_plan *plan) {
    td_tensor *out = NULL;
    td_status status = as_batch(plan->out, &plan->as_out, plan->batch, plan->m, plan->n, &out);
    if (status == TD_OK)
        status = plan->bias ? td_copy_into(out, plan->bias) : td_fill_int(out, 0);
    td_release(out);
    return status;
}

/* An operand that is to be widened. */
typedef struct operand {
    const td_tensor *x;
    td_matrices as;
    int64_t batch, rows, columns;
} operand;

static bool is_turned(const td_matrices *as) {
    return as->row_stride == 1 && as->column_stride != 1;
}

/* As float32 matrices, column by column where it lies so: turning it takes longer than all else. */
static td_status make_wide(const void *ctx, td_tensor **out) {
    const operand *o = ctx;
    td_tensor *seen = NULL;
    td_matrices across = {o->as.batch_stride, o->as.column_stride, o->as.row_stride};
    td_status status = is_turned(&o->as)
                           ? as_batch(o->x, &across, o->batch, o->columns, o->rows, &seen)
                           : as_batch(o->x, &o->as, o->batch, o->rows, o->columns, &seen);
    if (status == TD_OK)
        status = td_contiguous_as(seen, TD_F32, out);
    td_release(seen);
    return status;
}

/* The same, new; a right side that few rows meet may be kept so (`keeps`). *as becomes what it is
 * of *out. */
static td_status widen(const td_tensor *x, td_matrices *as, int64_t batch, int64_t rows,
                       int64_t columns, bool keeps, td_tensor **out) {
    const operand o = {x, *as, batch, rows, columns};
    const td_form_key key = {
        TD_FORM_WIDE, x->data, {x->dtype, rows, columns, as->row_stride, as->column_stride}};
    bool turned = is_turned(as);
    *as = (td_matrices){rows * columns, turned ? 1 : columns, turned ? rows : 1};
    *out = keeps ? td_kept_form(x->storage, &key, make_wide, &o) : NULL;
    return *out ? TD_OK : make_wide(&o, out);
}

/* In float32, rounded once at the end. */
static td_status multiply_wide(const td_product_plan *plan) {
    const int64_t sizes[3] = {plan->batch, plan->m, plan->n};
    td_product_plan p = *plan;
    td_tensor *a = NULL, *b = NULL, *bias = NULL, *result = NULL, *out = NULL;
    td_status status = TD_OK;
    bool keeps = p.batch == 1 && p.m <= TD_LIMIT(PRODUCT_FEW_MOST);
    TD_TRY(widen(plan->a, &p.as_a, p.batch, p.m, p.k, false, &a));
    TD_TRY(widen(plan->b, &p.as_b, p.batch, p.k, p.n, keeps, &b));
    if (plan->bias)
        TD_TRY(td_contiguous_as((td_tensor *)plan->bias, TD_F32, &bias));
    TD_TRY(td_tensor_empty(TD_F32, TD_DEVICE_CPU, 3, sizes, &result));
    p.a = a;
    p.b = b;
    p.bias = bias;
    p.out = result;
    p.as_out = (td_matrices){p.m * p.n, p.n, 1};
    TD_TRY(td_cpu_product(&p));
    TD_TRY(as_batch(plan->out, &plan->as_out, p.batch, p.m, p.n, &out));
    status = td_copy_into(out, result);
done:
    td_release(a);
    td_release(b);
    td_release(bias);
    td_release(result);
    td_release(out);
    return status;
}

td_status td_cpu_product_by(const td_product_plan *plan, td_product_way way) {
    td_dtype dtype = (td_dtype)plan->out->dtype;
    td_tensor *bias = NULL;
    bool bytes = plan->a->dtype != plan->out->dtype;
    product p = {.by = bytes ? &methods_of_bytes : &methods_by_dtype[dtype],
                 .dtype = dtype,
                 .size = td_tensor_itemsize(plan->a),
                 .batch = plan->batch,
                 .m = plan->m,
                 .n = plan->n,
                 .k = plan->k,
                 .a = matrices_of(plan->a, &plan->as_a, plan->m, plan->k),
                 .b = matrices_of(plan->b, &plan->as_b, plan->k, plan->n),
                 .c = matrices_of(plan->out, &plan->as_out, plan->m, plan->n),
                 .way = way};
    if (!p.by->plain)
        return td_cpu_lacks(dtype);
    if (p.batch == 0 || p.m == 0 || p.n == 0)
        return TD_OK;
    if (p.k == 0)
        return fill_result(plan);
    if (p.by->widens && chosen(&p) == TD_WAY_WIDE)
        return multiply_wide(plan);
    td_status status = plan->bias ? td_contiguous(plan->bias, &bias) : TD_OK;
    p.bias = bias ? bias->data : NULL;
    if (status == TD_OK)
        status = td_dtype_is_float(dtype) ? multiply_tensors(&p, plan) : multiply_integers(&p);
    td_release(bias);
    return status;
}

td_status td_cpu_product(const td_product_plan *plan) {
    return td_cpu_product_by(plan, TD_WAY_CHOSEN);
}
