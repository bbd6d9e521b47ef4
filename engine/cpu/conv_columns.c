/* conv_columns.c: convolution of float64 by unrolling what the kernel meets into the columns of a
 * matrix, and OpenBLAS. */
#include "engine/cpu/conv_columns.h"

#include "engine/core/interrupt.h"
#include "engine/core/memory.h"
#include "engine/cpu/conv_lines.h"
#include "engine/cpu/tiles.h"

#include <string.h>

typedef struct unrolled {
    const td_conv_geometry *g;
    int64_t channels, rows, columns; /* of one group: rows = channels x kernel, columns = places */
    int64_t outputs;                 /* output channels of one group */
    double *matrix;                  /* rows x columns */
} unrolled;

static td_status unrolled_make(const td_conv_geometry *g, unrolled *u) {
    u->g = g;
    u->channels = g->c / g->groups;
    u->outputs = g->o / g->groups;
    u->rows = u->channels * td_conv_places(g->kernel);
    u->columns = td_conv_places(g->out);
    u->matrix = td_malloc((size_t)(u->rows * u->columns + 1) * sizeof *u->matrix);
    return u->matrix ? td_blas_ready() : td_fail(TD_ENOMEM, "out of memory");
}

/* ---- rolling ---- */

/* A line of the input into one of the matrix, zeros where the kernel meets none. */
static void unroll_line(double *to, const double *line, td_conv_span s, int64_t stride, int64_t n) {
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

static void roll_line(const double *from, double *line, td_conv_span s, int64_t stride) {
    for (int64_t k = s.first; k < s.last; k++)
        line[s.from + (k - s.first) * stride] += from[k];
}

/* One row of the matrix from its channel of the image, or (`add`) to it. */
static void roll_row(const unrolled *u, double *matrix, double *channel, int64_t kernel, bool add) {
    const td_conv_geometry *g = u->g;
    td_conv_span s[3];
    for (int d = 2; d >= 0; d--) {
        s[d] = td_conv_meet(g, d, kernel % g->kernel[d]);
        kernel /= g->kernel[d];
    }
    for (int64_t i = 0; i < g->out[0]; i++)
        for (int64_t j = 0; j < g->out[1]; j++) {
            double *row = matrix + (i * g->out[1] + j) * g->out[2];
            bool inside = i >= s[0].first && i < s[0].last && j >= s[1].first && j < s[1].last;
            int64_t a = s[0].from + (i - s[0].first) * g->stride[0];
            int64_t b = s[1].from + (j - s[1].first) * g->stride[1];
            double *line = channel + (inside ? (a * g->in[1] + b) * g->in[2] : 0);
            if (inside && add)
                roll_line(row, line, s[2], g->stride[2]);
            else if (inside)
                unroll_line(row, line, s[2], g->stride[2], g->out[2]);
            else if (!add)
                memset(row, 0, (size_t)g->out[2] * sizeof *row);
        }
}

/* Copy the image into the matrix, or add the matrix to the image. */
static void roll(const unrolled *u, double *image, bool add) {
    int64_t kernel = td_conv_places(u->g->kernel), plane = td_conv_places(u->g->in);
    for (int64_t row = 0; row < u->rows && !td_interrupt_requested(); row++)
        roll_row(u, u->matrix + row * u->columns, image + row / kernel * plane, row % kernel, add);
}

static double *image_of(const unrolled *u, double *x, int64_t n, int64_t group) {
    return x + (n * u->g->c + group * u->channels) * td_conv_places(u->g->in);
}

static double *output_of(const unrolled *u, double *y, int64_t n, int64_t group) {
    return y + (n * u->g->o + group * u->outputs) * u->columns;
}

/* ---- one image of one group ---- */

typedef struct job {
    unrolled u;
    const td_convolution_plan *plan;
} job;

static td_status forward(const job *j, int64_t n, int64_t group) {
    const unrolled *u = &j->u;
    const td_convolution_plan *p = j->plan;
    double *y = output_of(u, p->out->data, n, group);
    const double *bias = p->bias ? p->bias->data : NULL, *weight = p->b->data;
    for (int64_t o = 0; o < u->outputs; o++)
        for (int64_t k = 0; k < u->columns; k++)
            y[o * u->columns + k] = bias ? bias[group * u->outputs + o] : 0;
    roll(u, image_of(u, p->a->data, n, group), false);
    return u->rows ? td_dgemm_tiles(false, false, u->outputs, u->columns, u->rows,
                                    weight + group * u->outputs * u->rows, u->matrix, 1, y)
                   : TD_OK;
}

static td_status by_input(const job *j, int64_t n, int64_t group) {
    const unrolled *u = &j->u;
    const td_convolution_plan *p = j->plan;
    const double *weight = p->b->data;
    td_status status = td_dgemm_tiles(true, false, u->rows, u->columns, u->outputs,
                                      weight + group * u->outputs * u->rows,
                                      output_of(u, p->a->data, n, group), 0, u->matrix);
    if (status == TD_OK)
        roll(u, image_of(u, p->out->data, n, group), true);
    return status;
}

static td_status by_weight(const job *j, int64_t n, int64_t group) {
    const unrolled *u = &j->u;
    const td_convolution_plan *p = j->plan;
    roll(u, image_of(u, p->a->data, n, group), false);
    return td_dgemm_tiles(false, true, u->outputs, u->rows, u->columns,
                          output_of(u, p->b->data, n, group), u->matrix, 1,
                          (double *)p->out->data + group * u->outputs * u->rows);
}

td_status td_conv_f64(const td_convolution_plan *p) {
    static td_status (*const ways[])(const job *j, int64_t n, int64_t group) = {
        [TD_CONV_FORWARD] = forward, [TD_CONV_INPUT] = by_input, [TD_CONV_WEIGHT] = by_weight};
    const td_conv_geometry *g = &p->geometry;
    job j = {.plan = p};
    td_status status = unrolled_make(g, &j.u);
    if (p->direction != TD_CONV_FORWARD)
        memset(p->out->data, 0, (size_t)p->out->numel * sizeof(double));
    for (int64_t n = 0; n < g->n && status == TD_OK; n++) {
        for (int64_t group = 0; group < g->groups && status == TD_OK; group++)
            status = ways[p->direction](&j, n, group);
        if (status == TD_OK)
            status = td_interrupt_check();
    }
    td_free(j.u.matrix);
    return status;
}
