/* matmul.c: products on the CPU: a tiny loop, our own (product.h), OpenBLAS or oneDNN by size and
 * dtype; the 16-bit floats by oneDNN's bfloat16 where the machine is quick at it, else in float32.
 * Long products are cut into panels of rows between which an interrupt is noticed, panels into
 * tiles that follow from the shape alone, so results do not depend on the number of threads. */
#include "engine/core/interrupt.h"
#include "engine/core/threads.h"
#include "engine/cpu/cpu.h"
#include "engine/cpu/isa/isa.h"
#include "engine/cpu/pointwise/strided_convert.h"
#include "engine/cpu/product/blas.h"
#include "engine/cpu/product/library_parts.h"
#include "engine/cpu/product/onednn.h"
#include "engine/cpu/product/product.h"
#include "engine/ops/make/copy.h"

#include <limits.h>
#include <string.h>

enum {
    TINY = 512,                  /* multiplications that a plain loop does soonest */
    FEW_OUTPUTS = 16,            /* sums that a plain loop of integers does soonest */
    SMALL = 64 * 1024,           /* and OpenBLAS, whose calls cost less than oneDNN's */
    BLOCKED = 256 * 1024,        /* and our own blocks (blocks_pay) */
    SMALL_PLAIN = 32 * 1024,     /* and both where the libraries lack loops (libraries_at_best) */
    SMALL_DOUBLES = 1000 * 1000, /* of float64, that OpenBLAS does soonest (doubles_pack) */
    TURNED_DOUBLES = 4 * 1024,   /* if the right side lies by columns; */
    TALL_DOUBLES = 48,           /* rows that pay for packing, */
    PACKED_DOUBLES = 128 * 1024, /* or elements on the right that hardly cost it */
    STRIP = 1024 * 1024 /* multiplications of a plain loop without a look at the interrupt flag */
};
/* Multiplications of float32 done without a look at the interrupt flag, some 50 ms; of small
 * matrices, which take longer. */
#define PANEL       2e9
#define SMALL_PANEL 2.5e8
#define LARGE       0x1p30 /* multiplications of float32 that pay for our own packing */

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
    matrices a, b, c; /* m x k, k x n, m x n */
    const void *bias; /* n elements for every row, or NULL */
} product;

/* The ways to a product of one dtype; `plain` for all, those behind `bytes` for floats. */
typedef struct methods {
    void (*plain)(const product *p, int64_t batch, int64_t row, int64_t end);
    bool bytes; /* int8, summed up in int32 */
    td_gemm_fn gemm;
    bool dnn;
    bool widens; /* by way of float32 where oneDNN has no way of its own */
    bool (*packs)(const product *p, double work); /* is so much done soonest by our panels? */
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

static bool floats_pack(const product *p, double work);
static bool doubles_pack(const product *p, double work);
static bool halves_pack(const product *p, double work);

static const methods methods_by_dtype[TD_DTYPE_COUNT] = {
    [TD_U8] = {.plain = plain_uint8_t},
    [TD_I8] = {.plain = plain_int8_t},
    [TD_I16] = {.plain = plain_int16_t},
    [TD_I32] = {.plain = plain_int32_t},
    [TD_I64] = {.plain = plain_int64_t},
    [TD_F16] = {.plain = plain_td_half, .widens = true, .packs = halves_pack},
    [TD_BF16] = {.plain = plain_td_bfloat, .widens = true, .dnn = true, .packs = halves_pack},
    [TD_F32] = {.plain = plain_float, .gemm = td_blas_sgemm, .dnn = true, .packs = floats_pack},
    [TD_F64] = {.plain = plain_double, .gemm = td_blas_dgemm, .packs = doubles_pack},
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

/* Of small float32 matrices that fill most of a tile's columns: between what OpenBLAS has loops of
 * its own for and what oneDNN's call is worth. Measured on a Zen 4 core, theirs and ours: 32^3 1.0
 * and 1.9 us, 48^3 4.5 and 3.4, 64^3 7.2 and 5.6, 80^3 (of 128 columns) 11.5 and 16.6, 96^3 18 and
 * 22. */
static bool blocks_pay_beside_small_loops(const product *p, double work) {
    int64_t full = (p->n + 63) / 64 * 64;
    return p->dtype == TD_F32 && work > SMALL && work <= BLOCKED && p->m >= 16 &&
           4 * p->n >= 3 * full;
}

/* Where OpenBLAS has none: as long as tiles are half full, or depth is next to nothing; a right
 * side that lies by columns is turned, which takes some rows to pay. Measured on a Zen 3 core, in a
 * batch of 100, theirs and ours: float32 3^3 79 and 52 ns, 10^3 204 and 128, 16^3 341 and 170, its
 * right side by columns 375 and 249, 32^3 1160 and 1040, 64 x 64 x 4 2208 and 1442, 16 x 8 x 64 544
 * and 688; float64 8^3 131 and 81, 16^3 446 and 349, 32^3 2509 and 2078. */
static bool blocks_pay_alone(const product *p, double work) {
    const td_product_block block = block_of(p);
    bool by_rows = p->b.column_stride == 1 || p->n == 1;
    bool shallow = p->k <= 8;
    return (p->dtype == TD_F32 || p->dtype == TD_F64) && work < SMALL_PLAIN &&
           (by_rows || shallow || (p->m >= 10 && work < SMALL_PLAIN / 2)) &&
           (shallow || td_product_filled(p->dtype, &block) >= 0.5);
}

static bool blocks_pay(const product *p) {
    double work = (double)p->m * (double)p->n * (double)p->k;
    return td_cpu->product->libraries_at_best ? blocks_pay_beside_small_loops(p, work)
                                              : blocks_pay_alone(p, work);
}

static td_status multiply_panels(const product *p) {
    const td_product_block block = block_of(p);
    const td_product_batch batch = batch_of(p);
    return td_product_by_panels(p->dtype, &block, &batch);
}

/* Are the panels worth packing? Measured on a core of an Emerald Rapids, theirs and ours: float32
 * (oneDNN) 1024^3 13.4 and 13.2 ms, 2048^3 113 and 109. */
static bool floats_pack(const product *p, double work) {
    (void)p;
    return td_cpu->product->libraries_at_best && work >= LARGE;
}

/* float64 (OpenBLAS), its right side by rows: 64^3 6.7 and 8.4 us, 100^3 23 and 29, 128^3 70 and
 * 54, 256^3 495 and 436, 16 x 1024 x 1024 975 and 1124; by columns, where OpenBLAS has no small
 * loops: 24^3 1.3 and 1.0, 64^3 10.5 and 9.2, 100^3 38 and 30. */
static bool doubles_pack(const product *p, double work) {
    bool by_rows = p->b.column_stride == 1 || p->n == 1;
    double right = (double)p->k * (double)p->n;
    return td_cpu->product->libraries_at_best &&
           work > (by_rows ? SMALL_DOUBLES : TURNED_DOUBLES) &&
           (p->m >= TALL_DOUBLES || right <= PACKED_DOUBLES);
}

/* 16-bit floats, which the libraries multiply as float32 unless oneDNN has a way of its own, from
 * some size on: float16 16^3 1.4 and 0.8 us, 48^3 4.2 and 2.8, 1000 x 1000 x 100 1.65 and 1.39 ms,
 * 1024^3 14.9 and 12.5. */
static bool halves_pack(const product *p, double work) {
    if (p->by->dnn && work > SMALL && td_dnn_bfloat_gain() > 0)
        return false;
    return td_cpu->product->libraries_at_best || work <= SMALL_PLAIN;
}

static bool panels_pay(const product *p) {
    const td_product_block block = block_of(p);
    return p->by->packs && td_product_has_panels(p->dtype, &block) &&
           p->by->packs(p, (double)p->m * (double)p->n * (double)p->k);
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

static td_status multiply_integers(const product *p) {
    whole_dots j;
    if (is_whole_dots(p, &j))
        return td_parallel_for(p->m * p->n, p->k, run_whole_dots, &j);
    double outputs = (double)p->m * (double)p->n;
    if (outputs >= FEW_OUTPUTS && outputs * (double)p->k > TINY)
        return multiply_blocks(p);
    return td_parallel_for(p->batch * p->m, 2 * p->n * p->k, plain_part, (void *)p);
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

/* Elements between lines; the depth of sums, and rows and columns, from which on such lines are met
 * often enough. */
enum { CLASH = 512, CLASH_DEEP = 64, CLASH_DEEPER = 192, CLASH_WIDE = 128 };

/* Without the vectors that its primitives are written for, oneDNN's plain function is the quickest
 * from SMALL_PLAIN multiplications on, but where its loops meet lines that lie a multiple of 2 KB
 * apart (of a left side that is transposed and deep, 1 KB): those share a few places of the
 * first-level cache. OpenBLAS copies such operands. Measured on a Zen 3 core, OpenBLAS and oneDNN:
 * 16^3 0.32 and 0.70 us, 32^3 1.43 and 1.35, 64^3 8.0 and 5.9, 256 x 1000 x 1000 5.8 and 5.5 ms,
 * 256 x 1024 x 1024 5.9 and 11.4, its left side transposed 5.9 and 11.6, its right one 5.9 and 6.5,
 * 2000 x 1536 x 16 2.4 and 1.3. */
static td_gemm_fn plain_gemm(const product *p, double work) {
    bool ta, tb;
    int64_t lda = leading(&p->a, &ta), ldb = leading(&p->b, &tb);
    bool wide = p->m >= CLASH_WIDE && p->n >= CLASH_WIDE;
    bool a_clashes = ta && lda % (p->k >= CLASH_DEEPER ? CLASH / 2 : CLASH) == 0;
    bool b_clashes = (!tb || wide) && ldb % CLASH == 0;
    bool clash = p->k >= CLASH_DEEP && (a_clashes || b_clashes);
    return work < SMALL_PLAIN || clash ? td_blas_sgemm : td_dnn_sgemm;
}

/* Which library's function; NULL: oneDNN's primitives. */
static td_gemm_fn gemm_of(const product *p, double work) {
    if (p->dtype == TD_F32 && !td_cpu->product->libraries_at_best)
        return plain_gemm(p, work);
    return p->by->dnn && work > SMALL ? NULL : p->by->gemm;
}

static td_status gemm_tile(const void *ctx, const td_tile *t) {
    const product *whole = ctx, p = product_of(whole, t);
    double work = (double)whole->m * (double)whole->n * (double)whole->k;
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
    return gemm_of(whole, work)(&g);
}

static td_status dnn_tile(const void *ctx, const td_tile *t) {
    product p = product_of(ctx, t);
    return td_dnn_matmul(p.dtype, p.batch, p.m, p.n, p.k, for_dnn(&p.a), for_dnn(&p.b), p.bias,
                         for_dnn(&p.c));
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
    double work = (double)p.m * (double)p.n * (double)p.k;
    if (work * (double)p.batch <= TINY) {
        for (int64_t batch = 0; batch < p.batch; batch++)
            p.by->plain(&p, batch, 0, p.m);
        return TD_OK;
    }
    td_gemm_fn gemm = gemm_of(&p, work);
    if (!gemm)
        return td_run_tiles(p.batch, p.m, p.n, p.k, dnn_tile, &p);
    td_status status = gemm == td_dnn_sgemm ? td_dnn_sgemm_ready() : td_blas_ready();
    if (status)
        return status;
    if (!fits_int(&p.a) || !fits_int(&p.b) || !fits_int(&p.c))
        return td_fail(TD_ESHAPE, "matrices of more than 2^31 - 1 rows or columns");
    if (p.bias)
        fill_bias(&p);
    return td_run_tiles(p.batch, p.m, p.n, p.k, gemm_tile, &p);
}

static td_status multiply_floats(const product *p) {
    double work = (double)p->m * (double)p->n * (double)p->k;
    td_status status = TD_OK;
    bool narrow = p->by->dnn && p->by->widens;
    double panel = narrow ? PANEL * td_dnn_bfloat_gain() : PANEL;
    double most = work <= SMALL_PANEL ? SMALL_PANEL : panel;
    const td_product_block block = block_of(p);
    if (p->batch == 1 && work > TINY && td_product_has_vector(p->dtype, &block))
        return td_product_by_vectors(p->dtype, &block);
    if (panels_pay(p))
        return multiply_panels(p);
    if (blocks_pay(p))
        return multiply_blocks(p);
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

/* The operand as float32 matrices (*out, new), column by column where it lies so: turning it takes
 * longer than all else. */
static td_status widen(const td_tensor *x, td_matrices *as, int64_t batch, int64_t rows,
                       int64_t columns, td_tensor **out) {
    td_tensor *seen = NULL;
    bool turned = as->row_stride == 1 && as->column_stride != 1;
    td_matrices across = {as->batch_stride, as->column_stride, as->row_stride};
    td_status status = turned ? as_batch(x, &across, batch, columns, rows, &seen)
                              : as_batch(x, as, batch, rows, columns, &seen);
    if (status == TD_OK)
        status = td_contiguous_as(seen, TD_F32, out);
    *as = (td_matrices){rows * columns, turned ? 1 : columns, turned ? rows : 1};
    td_release(seen);
    return status;
}

/* In float32, rounded once at the end. */
static td_status multiply_wide(const td_product_plan *plan) {
    const int64_t sizes[3] = {plan->batch, plan->m, plan->n};
    td_product_plan p = *plan;
    td_tensor *a = NULL, *b = NULL, *bias = NULL, *result = NULL, *out = NULL;
    td_status status = TD_OK;
    TD_TRY(widen(plan->a, &p.as_a, p.batch, p.m, p.k, &a));
    TD_TRY(widen(plan->b, &p.as_b, p.batch, p.k, p.n, &b));
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

/* Has the dtype a way of its own to this product? */
static bool goes_directly(const product *p) {
    double work = (double)p->m * (double)p->n * (double)p->k;
    const td_product_block block = block_of(p);
    return !p->by->widens || panels_pay(p) || work * (double)p->batch <= TINY ||
           (p->batch == 1 && td_product_has_vector(p->dtype, &block)) ||
           (p->by->dnn && work > SMALL && td_dnn_bfloat_gain() > 0);
}

td_status td_cpu_product(const td_product_plan *plan) {
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
                 .c = matrices_of(plan->out, &plan->as_out, plan->m, plan->n)};
    if (!p.by->plain)
        return td_cpu_lacks(dtype);
    if (p.batch == 0 || p.m == 0 || p.n == 0)
        return TD_OK;
    if (p.k == 0)
        return fill_result(plan);
    if (!goes_directly(&p))
        return multiply_wide(plan);
    td_status status = plan->bias ? td_contiguous(plan->bias, &bias) : TD_OK;
    p.bias = bias ? bias->data : NULL;
    if (status == TD_OK)
        status = td_dtype_is_float(dtype) ? multiply_tensors(&p, plan) : multiply_integers(&p);
    td_release(bias);
    return status;
}
