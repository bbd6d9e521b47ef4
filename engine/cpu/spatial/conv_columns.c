/* conv_columns.c: convolution of float64 and int64 by unrolling what the kernel meets into the
 * columns of a matrix, and a product: OpenBLAS's of floats, our own of integers. */
#include "engine/cpu/spatial/conv_columns.h"

#include "engine/core/interrupt.h"
#include "engine/core/memory.h"
#include "engine/core/threads.h"
#include "engine/cpu/limits.h"
#include "engine/cpu/product/library_parts.h"
#include "engine/cpu/product/product.h"
#include "engine/cpu/spatial/conv_lines.h"

#include <string.h>

/* An element of either dtype, where it is but moved. */
typedef uint64_t word __attribute__((may_alias));

typedef struct unrolled {
    const td_conv_geometry *g;
    bool whole;                      /* integers */
    int64_t channels, rows, columns; /* of one group: rows = channels x kernel, columns = places */
    int64_t outputs;                 /* output channels of one group */
    word *matrix;                    /* rows x columns */
} unrolled;

static td_status unrolled_make(const td_conv_geometry *g, bool whole, unrolled *u) {
    u->g = g;
    u->whole = whole;
    u->channels = g->c / g->groups;
    u->outputs = g->o / g->groups;
    u->rows = u->channels * td_conv_places(g->kernel);
    u->columns = td_conv_places(g->out);
    u->matrix = td_malloc((size_t)(u->rows * u->columns + 1) * sizeof *u->matrix);
    if (!u->matrix)
        return td_fail(TD_ENOMEM, "out of memory");
    return TD_OK;
}

/* ---- rolling ---- */

/* A line of the input into one of the matrix, zeros where the kernel meets none. */
static void unroll_line(word *to, const word *line, td_conv_span s, int64_t stride, int64_t n) {
    for (int64_t k = 0; k < s.first; k++)
        to[k] = 0;
    if (stride == 1)
        memcpy(to + s.first, line + s.from, (size_t)(s.last - s.first) * sizeof *to);
    else
        for (int64_t k = s.first; k < s.last; k++)
            to[k] = line[s.from + (k - s.first) * stride];
    for (int64_t k = s.last; k < n; k++)
        to[k] = 0;
}

static void roll_line(bool whole, const word *from, word *line, td_conv_span s, int64_t stride) {
    const double *floats = (const double *)(const void *)from;
    double *sums = (double *)(void *)line;
    if (whole)
        for (int64_t k = s.first; k < s.last; k++)
            line[s.from + (k - s.first) * stride] += from[k];
    else
        for (int64_t k = s.first; k < s.last; k++)
            sums[s.from + (k - s.first) * stride] += floats[k];
}

/* One row of the matrix from its channel of the image, or (`add`) to it. */
static void roll_row(const unrolled *u, word *matrix, word *channel, int64_t kernel, bool add) {
    const td_conv_geometry *g = u->g;
    td_conv_span s[3];
    for (int d = 2; d >= 0; d--) {
        s[d] = td_conv_meet(g, d, kernel % g->kernel[d]);
        kernel /= g->kernel[d];
    }
    for (int64_t i = 0; i < g->out[0]; i++)
        for (int64_t j = 0; j < g->out[1]; j++) {
            word *row = matrix + (i * g->out[1] + j) * g->out[2];
            bool inside = i >= s[0].first && i < s[0].last && j >= s[1].first && j < s[1].last;
            int64_t a = s[0].from + (i - s[0].first) * g->stride[0];
            int64_t b = s[1].from + (j - s[1].first) * g->stride[1];
            word *line = channel + (inside ? (a * g->in[1] + b) * g->in[2] : 0);
            if (inside && add)
                roll_line(u->whole, row, line, s[2], g->stride[2]);
            else if (inside)
                unroll_line(row, line, s[2], g->stride[2], g->out[2]);
            else if (!add)
                memset(row, 0, (size_t)g->out[2] * sizeof *row);
        }
}

typedef struct rolling {
    const unrolled *u;
    word *image;
    bool add;
} rolling;

/* Items are channels, which share nothing. */
static void roll_channels(void *ctx, int64_t begin, int64_t end, int worker) {
    const rolling *j = ctx;
    const unrolled *u = j->u;
    int64_t kernel = td_conv_places(u->g->kernel), plane = td_conv_places(u->g->in);
    (void)worker;
    for (int64_t row = begin * kernel; row < end * kernel && !td_interrupt_requested(); row++)
        roll_row(u, u->matrix + row * u->columns, j->image + row / kernel * plane, row % kernel,
                 j->add);
}

/* Copy the image into the matrix, or add the matrix to the image. */
static td_status roll(const unrolled *u, word *image, bool add) {
    rolling j = {u, image, add};
    int64_t cost = td_conv_places(u->g->kernel) * u->columns;
    return td_parallel_for(u->channels, cost, roll_channels, &j);
}

static word *image_of(const unrolled *u, word *x, int64_t n, int64_t group) {
    return x + (n * u->g->c + group * u->channels) * td_conv_places(u->g->in);
}

static word *output_of(const unrolled *u, word *y, int64_t n, int64_t group) {
    return y + (n * u->g->o + group * u->outputs) * u->columns;
}

/* ---- one image of one group ---- */

typedef struct job {
    unrolled u;
    const td_convolution_plan *plan;
} job;

/* c = a b, with `adds` (of floats) on top of what is there; a may be given as its transpose. */
static td_status multiply(const unrolled *u, bool turned, int64_t m, int64_t n, int64_t k,
                          const word *a, const word *b, bool adds, word *c) {
    const td_product_batch one = {.n = 1};
    const td_product_block block = {.a = (const char *)a,
                                    .b = (const char *)b,
                                    .c = (char *)c,
                                    .rows = m,
                                    .columns = n,
                                    .depth = k,
                                    .a_row = turned ? 1 : k,
                                    .a_column = turned ? m : 1,
                                    .b_row = n,
                                    .b_column = 1,
                                    .c_row = n,
                                    .c_column = 1};
    if (u->whole)
        return td_product_by_blocks(TD_I64, &block, &one);
    return td_dgemm_tiles(&(td_gemm){.ta = turned,
                                     .batch = 1,
                                     .m = m,
                                     .n = n,
                                     .k = k,
                                     .a = block.a,
                                     .lda = turned ? m : k,
                                     .b = block.b,
                                     .ldb = n,
                                     .beta = adds,
                                     .c = block.c,
                                     .ldc = n});
}

/* Every output channel's bias, or 0, which the product is added to; integers take it afterwards. */
static void lay_bias(const job *j, word *y, int64_t group) {
    const unrolled *u = &j->u;
    const word *bias = j->plan->bias ? j->plan->bias->data : NULL;
    for (int64_t o = 0; o < u->outputs; o++) {
        word value = bias ? bias[group * u->outputs + o] : 0;
        for (int64_t k = 0; k < u->columns; k++)
            y[o * u->columns + k] = u->whole && u->rows ? y[o * u->columns + k] + value : value;
    }
}

static td_status forward(const job *j, int64_t n, int64_t group) {
    const unrolled *u = &j->u;
    const td_convolution_plan *p = j->plan;
    word *y = output_of(u, p->out->data, n, group);
    const word *weight = p->b->data;
    td_status status = roll(u, image_of(u, p->a->data, n, group), false);
    if (!u->whole)
        lay_bias(j, y, group);
    if (status == TD_OK && u->rows)
        status = multiply(u, false, u->outputs, u->columns, u->rows,
                          weight + group * u->outputs * u->rows, u->matrix, true, y);
    if (u->whole && (p->bias || !u->rows))
        lay_bias(j, y, group);
    return status;
}

static td_status by_input(const job *j, int64_t n, int64_t group) {
    const unrolled *u = &j->u;
    const td_convolution_plan *p = j->plan;
    const word *weight = p->b->data;
    if (!u->outputs)
        return TD_OK;
    td_status status =
        multiply(u, true, u->rows, u->columns, u->outputs, weight + group * u->outputs * u->rows,
                 output_of(u, p->a->data, n, group), false, u->matrix);
    return status ? status : roll(u, image_of(u, p->out->data, n, group), true);
}

static td_status by_weight(const job *j, int64_t n, int64_t group) {
    const unrolled *u = &j->u;
    const td_convolution_plan *p = j->plan;
    td_status status = roll(u, image_of(u, p->a->data, n, group), false);
    if (status)
        return status;
    return td_dgemm_tiles(
        &(td_gemm){.tb = true,
                   .batch = 1,
                   .m = u->outputs,
                   .n = u->rows,
                   .k = u->columns,
                   .a = (const char *)output_of(u, p->b->data, n, group),
                   .lda = u->columns,
                   .b = (const char *)u->matrix,
                   .ldb = u->columns,
                   .beta = 1,
                   .c = (char *)((double *)p->out->data + group * u->outputs * u->rows),
                   .ldc = u->rows});
}

/* ---- all of them ---- */

typedef struct batch {
    const td_convolution_plan *plan;
    int64_t items, parts; /* images times groups; runs of them that share one matrix */
} batch;

static td_status run_items(const void *ctx, int64_t part) {
    static td_status (*const ways[])(const job *j, int64_t n, int64_t group) = {
        [TD_CONV_FORWARD] = forward, [TD_CONV_INPUT] = by_input, [TD_CONV_WEIGHT] = by_weight};
    const batch *b = ctx;
    const td_conv_geometry *g = &b->plan->geometry;
    job j = {.plan = b->plan};
    td_status status = unrolled_make(g, b->plan->out->dtype == TD_I64, &j.u);
    int64_t end = (part + 1) * b->items / b->parts;
    for (int64_t k = part * b->items / b->parts; k < end && status == TD_OK; k++) {
        status = ways[b->plan->direction](&j, k / g->groups, k % g->groups);
        if (status == TD_OK)
            status = td_interrupt_check();
    }
    td_free(j.u.matrix);
    return status;
}

/* Images share nothing but what their gradients by the weight are added to. One by one, each
 * product is shared out, which costs a batch of small ones more than it gives; of large ones each
 * thread would have a large matrix. */
td_status td_conv_columns(const td_convolution_plan *p) {
    const td_conv_geometry *g = &p->geometry;
    double work = (double)g->o * (double)(g->c / g->groups) * (double)td_conv_places(g->kernel) *
                  (double)td_conv_places(g->out);
    batch b = {.plan = p, .items = g->n * g->groups, .parts = 1};
    if (p->direction != TD_CONV_FORWARD)
        memset(p->out->data, 0, (size_t)p->out->numel * sizeof(double));
    int64_t parts = td_parts_of(work * (double)g->n);
    double rows = (double)(g->c / g->groups) * (double)td_conv_places(g->kernel);
    bool large = rows * (double)td_conv_places(g->out) > TD_LIMIT(CONV_UNROLLED);
    if (p->direction == TD_CONV_WEIGHT || parts > b.items || parts == 1 || large)
        return run_items(&b, 0);
    b.parts = parts;
    return td_run_parts(parts, TD_GRAIN, run_items, &b);
}
