/* product.c: products by our own loops, cut for threads. Cuts follow from the shape alone where a
 * sum crosses them, so results do not depend on the number of threads. Knows nothing of tensors
 * and of libraries. */
#include "engine/cpu/product/product.h"

#include "engine/core/interrupt.h"
#include "engine/core/memory.h"
#include "engine/core/threads.h"
#include "engine/cpu/isa/isa.h"
#include "engine/cpu/limits.h"

#include <math.h>
#include <string.h>

enum {
    BLOCK_ROWS = 96,    /* of c, for one thread: a panel of b is packed once for them */
    BLOCK_BYTES = 256,  /* of their columns */
    BLOCK_COST = 256,   /* of a block, beside its multiplications, as reading so many elements */
    BYTE_COLUMNS = 128, /* of products of bytes: the rows of a are packed once for them */
    NARROW = 8,         /* columns that leave most of a vector empty */
    PIECE = 32 * 1024,  /* terms of a sum, for one thread */
    DOTS = 4,           /* sums that grow together */
    DOT_TERMS = 8192,   /* of one call, where rows are short */
    HOT = 20 * 1024,    /* bytes of the first-level cache */
    COLUMNS = 4096,     /* sums that stay in the first-level cache */
    TERMS = 4 * 1024,   /* which they take in without a look at the interrupt flag */
    FEW_SUMS = 64,      /* on the stack */
    FEW = 4             /* rows on the left, for which a row of b is read once */
};

static int64_t parts(int64_t n, int64_t each) {
    return (n + each - 1) / each;
}

static int64_t at_most(int64_t left, int64_t each) {
    return left < each ? left : each;
}

/* The same product of the transposes, from right to left; without its bias. */
static td_product_block turn(const td_product_block *p) {
    return (td_product_block){.a = p->b,
                              .b = p->a,
                              .c = p->c,
                              .rows = p->columns,
                              .columns = p->rows,
                              .depth = p->depth,
                              .a_row = p->b_column,
                              .a_column = p->b_row,
                              .b_row = p->a_column,
                              .b_column = p->a_row,
                              .c_row = p->c_column,
                              .c_column = p->c_row};
}

/* ---- blocks ---- */

typedef struct block_job {
    const td_product_block *first;
    const td_product_batch *batch;
    td_product_block_fn fn;
    int64_t size, c_size; /* of elements of a and b, and of c */
    int64_t columns;      /* of a block */
    int64_t down, across; /* how many blocks a product has */
} block_job;

static void run_blocks(void *ctx, int64_t begin, int64_t end, int worker) {
    const block_job *j = ctx;
    (void)worker;
    for (int64_t k = begin; k < end; k++) {
        td_product_block p = *j->first;
        int64_t n = k / (j->down * j->across), row = k / j->across % j->down * BLOCK_ROWS,
                column = k % j->across * j->columns;
        p.a += (n * j->batch->a + row * p.a_row) * j->size;
        p.b += (n * j->batch->b + column * p.b_column) * j->size;
        p.c += (n * j->batch->c + row * p.c_row + column * p.c_column) * j->c_size;
        p.bias += p.bias ? column * j->size : 0;
        p.rows = at_most(p.rows - row, BLOCK_ROWS);
        p.columns = at_most(p.columns - column, j->columns);
        j->fn(&p);
    }
}

/* Do vectors lie along the columns rather than along the rows? */
static bool goes_down(const td_product_block *p) {
    return p->columns < NARROW && p->rows > p->columns && !p->bias;
}

double td_product_filled(td_dtype dtype, const td_product_block *p) {
    const td_product_kernels *k = td_cpu->product;
    int64_t down = k->tile_rows, across = k->tile_bytes / (int64_t)td_dtype_size(dtype);
    int64_t rows = goes_down(p) ? p->columns : p->rows;
    int64_t columns = goes_down(p) ? p->rows : p->columns;
    return (double)rows * (double)columns /
           ((double)parts(rows, down) * (double)down * (double)parts(columns, across) *
            (double)across);
}

/* `j` tells the function and the sizes, of elements and of a block. */
static td_status run_job(block_job j, const td_product_block *first,
                         const td_product_batch *batch) {
    td_product_block turned = turn(first);
    td_product_batch across = {batch->n, batch->b, batch->a, batch->c};
    if (goes_down(first)) {
        first = &turned;
        batch = &across;
    }
    j.first = first;
    j.batch = batch;
    j.down = parts(first->rows, BLOCK_ROWS);
    j.across = parts(first->columns, j.columns);
    int64_t outputs = at_most(first->rows, BLOCK_ROWS) * at_most(first->columns, j.columns);
    int64_t cost = BLOCK_COST + outputs * (1 + at_most(first->depth, TD_GRAIN) / 8);
    return td_parallel_for(batch->n * j.down * j.across, cost, run_blocks, &j);
}

td_status td_product_by_blocks(td_dtype dtype, const td_product_block *first,
                               const td_product_batch *batch) {
    int64_t size = (int64_t)td_dtype_size(dtype);
    return run_job((block_job){.fn = td_cpu->product->block[dtype],
                               .size = size,
                               .c_size = size,
                               .columns = BLOCK_BYTES / (size == 1 ? 2 : size)},
                   first, batch);
}

td_status td_product_of_bytes(const td_product_block *first, const td_product_batch *batch) {
    const td_product_kernels *k = td_cpu->product;
    return run_job((block_job){.fn = td_cpu_has_vnni() && k->quads ? k->quads : k->pairs,
                               .size = 1,
                               .c_size = sizeof(int32_t),
                               .columns = BYTE_COLUMNS},
                   first, batch);
}

/* ---- dot products of vectors with rows ---- */

/* sums[i][r] = x[i] . w[r], in pieces along the depth. */
typedef struct dots_job {
    td_product_dots_fn fn;
    const char *x, *w;
    int64_t size, x_row, w_row; /* an element's; rows' strides */
    int64_t nx, nw, depth, pieces;
    int64_t rows; /* of w, for one item */
    double *sums; /* [pieces][nx][nw] */
} dots_job;

/* Rows of w that all of x meet in turn: so few that they stay in the first-level cache, where that
 * is possible, while memory brings the next. */
static int64_t rows_at_once(const dots_job *j) {
    const int64_t row = at_most(j->depth, PIECE) * j->size;
    if (j->nx == 1)
        return j->rows;
    return (j->nx + DOTS) * row > HOT && (j->nx + 1) * row <= HOT ? 1 : DOTS;
}

static void run_dots(void *ctx, int64_t begin, int64_t end, int worker) {
    const dots_job *j = ctx;
    int64_t groups = parts(j->nw, j->rows), some = rows_at_once(j);
    (void)worker;
    for (int64_t k = begin; k < end; k++) {
        int64_t piece = k / groups, from = piece * PIECE, row = k % groups * j->rows;
        int64_t last = row + at_most(j->nw - row, j->rows);
        for (; row < last; row += some)
            j->fn(&(td_product_dots){.x = j->x + from * j->size,
                                     .rows = j->w + (row * j->w_row + from) * j->size,
                                     .sums = j->sums + piece * j->nx * j->nw + row,
                                     .x_stride = j->x_row,
                                     .stride = j->w_row,
                                     .sums_stride = j->nw,
                                     .vectors = j->nx,
                                     .count = at_most(last - row, some),
                                     .n = at_most(j->depth - from, PIECE)});
    }
}

/* Adds the bias (elements `step` apart) to sums. */
static void add_bias(td_dtype dtype, double *sums, int64_t n, const char *bias, int64_t step) {
    double some[FEW_SUMS];
    for (int64_t r = 0; r < n; r += FEW_SUMS) {
        int64_t m = step ? at_most(n - r, FEW_SUMS) : 1;
        td_cpu->convert->convert[TD_F64][dtype](m, some,
                                                bias + r * step * (int64_t)td_dtype_size(dtype));
        for (int64_t k = 0; k < at_most(n - r, FEW_SUMS); k++)
            sums[r + k] += some[step ? k : 0];
    }
}

/* The pieces' sums in order, and the bias (elements `step` apart, 0 or 1, for the rows of w). */
static void deliver_dots(const dots_job *j, td_dtype dtype, const char *bias, int64_t step,
                         const td_product_block *p) {
    for (int64_t i = 0; i < j->nx; i++) {
        double *sums = j->sums + i * j->nw;
        char *c = p->c + i * p->c_row * j->size;
        for (int64_t k = 1; k < j->pieces; k++)
            for (int64_t r = 0; r < j->nw; r++)
                sums[r] += sums[k * j->nx * j->nw + r];
        if (bias)
            add_bias(dtype, sums, j->nw, bias, step);
        if (p->c_column == 1)
            td_cpu->convert->convert[dtype][TD_F64](j->nw, c, sums);
        else
            for (int64_t r = 0; r < j->nw; r++)
                td_store_double(dtype, c + r * p->c_column * j->size, sums[r]);
    }
}

/* ---- sums of rows ---- */

/* c[k] = bias + sum of x[l] * w[l][k], by columns. */
typedef struct combine_job {
    td_product_combine_fn fn;
    const char *x, *w, *bias;
    char *c;
    int64_t size, w_row, depth, columns, width;
} combine_job;

static void run_combine(void *ctx, int64_t begin, int64_t end, int worker) {
    const combine_job *j = ctx;
    (void)worker;
    for (int64_t k = begin; k < end; k++) {
        int64_t column = k * j->width, n = at_most(j->columns - column, j->width);
        char *c = j->c + column * j->size;
        if (j->bias)
            memcpy(c, j->bias + column * j->size, (size_t)(n * j->size));
        else
            memset(c, 0, (size_t)(n * j->size));
        for (int64_t l = 0; l < j->depth && !td_interrupt_requested(); l += TERMS)
            j->fn(c, j->x + l * j->size, j->w + (l * j->w_row + column) * j->size, j->w_row, n,
                  at_most(j->depth - l, TERMS));
    }
}

/* ---- vectors ---- */

/* Which way it goes: with `turned`, c's transpose is computed from b's and a's. */
typedef enum vector_way { NO_WAY, BY_DOTS, BY_ROWS } vector_way;

/* From how many multiplications on so many rows, of 1 to FEW, go by dot products. Many short ones
 * are the libraries' as long as they have loops of their own for small matrices. Measured on a Zen
 * 4 core, times of theirs and ours: float32 (OpenBLAS to 2^16 multiplications, then oneDNN) 1 x 256
 * x 256 2.7 and 4.6 us, 1 x 512 x 512 36 and 16, 3 x 512 x 512 40 and 37, 4 x 512 x 512 45 and 48;
 * float64 (OpenBLAS) 1 x 512 x 512 25 and 29, 2 x 512 x 512 26 and 48, 3 x 512 x 512 196 and 66, 4
 * x 1024 x 1024 746 and 393. Without, OpenBLAS packs the matrix anew for each vector. On a Zen 3
 * core: float32 1 x 16 x 16 0.42 and 0.43, 1 x 64 x 256 5.5 and 1.7, 3 x 64 x 256 7.6 and 4.1, 4 x
 * 16 x 64 1.0 and 1.3, 4 x 64 x 256 5.5 and 5.2; float64 1 x 64 x 256 5.9 and 2.5, 4 x 256 x 256 38
 * and 29.
 */
static double dots_limit(td_dtype dtype, int64_t rows) {
    if (dtype != TD_F32 && dtype != TD_F64)
        return TD_LIMIT(PRODUCT_DOTS_HALVES);
    if (!td_cpu->product->libraries_at_best)
        return rows == 1    ? TD_LIMIT(PRODUCT_DOTS_1)
               : rows < FEW ? TD_LIMIT(PRODUCT_DOTS_2)
                            : TD_LIMIT(PRODUCT_DOTS_4);
    if (dtype == TD_F64)
        return TD_LIMIT(PRODUCT_DOTS_F64);
    return rows < FEW ? TD_LIMIT(PRODUCT_DOTS_F32) : INFINITY;
}

static bool dots_pay(td_dtype dtype, const td_product_block *p) {
    double outputs = (double)p->rows * (double)p->columns;
    return outputs == 1 || (p->rows > 0 && outputs * (double)p->depth > dots_limit(dtype, p->rows));
}

/* Of a product whose left side is the vector, or the few rows; `any`: though it doesn't pay. */
static vector_way way_of(td_dtype dtype, const td_product_block *p, bool any) {
    bool side_by_side = p->depth == 1 || p->b_row == 1;
    if (p->rows <= FEW && side_by_side && (p->a_column == 1 || p->depth == 1))
        return any || dots_pay(dtype, p) ? BY_DOTS : NO_WAY;
    if (p->rows == 1 && p->b_column == 1 && p->c_column == 1 && p->a_column == 1 &&
        td_cpu->product->combine[dtype])
        return BY_ROWS;
    return NO_WAY;
}

static vector_way find_way(td_dtype dtype, const td_product_block *whole, bool any, bool *turned) {
    td_product_block across = turn(whole);
    vector_way way = NO_WAY;
    *turned = false;
    if (!td_cpu->product->dots[dtype] || (whole->rows > FEW && whole->columns > 1))
        return NO_WAY;
    if (whole->rows <= FEW)
        way = way_of(dtype, whole, any);
    if (way != NO_WAY || whole->columns > 1)
        return way;
    *turned = true;
    way = way_of(dtype, &across, any);
    return way == BY_ROWS && whole->bias ? NO_WAY : way;
}

bool td_product_fits_vector(td_dtype dtype, const td_product_block *whole) {
    bool turned;
    return find_way(dtype, whole, true, &turned) != NO_WAY;
}

bool td_product_has_vector(td_dtype dtype, const td_product_block *whole) {
    bool turned;
    return find_way(dtype, whole, false, &turned) != NO_WAY;
}

static td_status multiply_by_dots(td_dtype dtype, const td_product_block *p, const char *bias,
                                  bool turned) {
    double few[FEW_SUMS], *many = NULL;
    dots_job j = {.fn = td_cpu->product->dots[dtype],
                  .x = p->a,
                  .w = p->b,
                  .size = (int64_t)td_dtype_size(dtype),
                  .x_row = p->a_row,
                  .w_row = p->b_column,
                  .nx = p->rows,
                  .nw = p->columns,
                  .depth = p->depth,
                  .pieces = parts(p->depth, PIECE),
                  .rows = DOTS * (1 + DOT_TERMS / (DOTS * (p->depth + 1))),
                  .sums = few};
    int64_t sums = j.pieces * j.nx * j.nw;
    if (sums > FEW_SUMS)
        j.sums = many = td_malloc((size_t)sums * sizeof *many);
    if (!j.sums)
        return td_fail(TD_ENOMEM, "out of memory for a product");
    int64_t cost = at_most(j.nw, j.rows) * at_most(j.depth, PIECE) * (1 + j.nx) / 2;
    td_status status = td_parallel_for(j.pieces * parts(j.nw, j.rows), cost, run_dots, &j);
    if (status == TD_OK)
        deliver_dots(&j, dtype, bias, turned ? 0 : 1, p);
    td_free(many);
    return status;
}

/* Columns for each thread: enough of them side by side in memory, few enough for all threads. The
 * width does not show in what a column gives. */
static td_status multiply_by_rows(td_dtype dtype, const td_product_block *p, const char *bias) {
    int64_t threads = td_threads_at_most(), share = parts(p->columns, threads);
    int64_t width = share < COLUMNS ? parts(share < 64 ? 64 : share, 16) * 16 : COLUMNS;
    combine_job j = {.fn = td_cpu->product->combine[dtype],
                     .x = p->a,
                     .w = p->b,
                     .bias = bias,
                     .c = p->c,
                     .size = (int64_t)td_dtype_size(dtype),
                     .w_row = p->b_row,
                     .depth = p->depth,
                     .columns = p->columns,
                     .width = width};
    int64_t cost = at_most(width, p->columns) * at_most(p->depth, TD_GRAIN) / 2;
    return td_parallel_for(parts(p->columns, width), cost, run_combine, &j);
}

td_status td_product_by_vectors(td_dtype dtype, const td_product_block *whole) {
    bool turned;
    vector_way way = find_way(dtype, whole, false, &turned);
    if (way == NO_WAY)
        way = find_way(dtype, whole, true, &turned);
    td_product_block p = turned ? turn(whole) : *whole;
    return way == BY_DOTS ? multiply_by_dots(dtype, &p, whole->bias, turned)
                          : multiply_by_rows(dtype, &p, whole->bias);
}
