/* conv_depthwise.c: depthwise convolutions of float32, as many channels at a time as a vector has
 * lanes: these are turned so that they lie side by side at each place, and so is the result, back.
 * No lane is idle then however short rows are, and a stride parts no vector. */
#include "engine/cpu/spatial/conv_depthwise.h"

#include "engine/core/interrupt.h"
#include "engine/cpu/isa/isa.h"
#include "engine/cpu/limits.h"
#include "engine/cpu/pointwise/transpose.h"
#include "engine/cpu/reduce/dim_lines.h"
#include "engine/cpu/spatial/conv_epilogue.h"
#include "engine/cpu/spatial/conv_lines.h"

#include <string.h>

enum {
    ROOM = 2048, /* places of a band of x, which stay in the second-level cache */
    BEYOND = 3   /* elements behind a line */
};

/* Bands of rows of the result, one of a group of channels of an image at a time. */
typedef struct job {
    const td_convolution_plan *p;
    td_depthwise_band band; /* what all have in common */
    int64_t lanes, groups, bands, bytes;
    char *room;
} job;

static int64_t at_most(int64_t n, int64_t most) {
    return n < most ? n : most;
}

/* What a worker has room for, in vectors: x between zeros, y, weight and bias. */
typedef struct room {
    float *x, *y, *weight, *bias;
} room;

static int64_t divide_room(const job *j, char *memory, room *out) {
    const td_conv_geometry *g = &j->p->geometry;
    const int64_t met = td_conv_rows_met(g, j->band.rows), n = j->lanes;
    float *at = (float *)(void *)memory, *begin = at;
    *out = (room){.x = at};
    out->y = (at += (met * j->band.pitch + g->in[2] + BEYOND) * n);
    out->weight = (at += j->band.rows * g->out[2] * n);
    out->bias = (at += td_conv_places(g->kernel) * n);
    return (at + n - begin) * (int64_t)sizeof(float);
}

/* Line `row` of x with zeros beside it, or zeros where there is none. A few elements behind a line
 * are turned with it, as far as there are any, since that is quicker than stopping at its end. */
static void put_line(const job *j, int64_t plane, int64_t channels, int64_t row, float *to) {
    const td_conv_geometry *g = &j->p->geometry;
    const int64_t n = j->lanes, columns = g->in[2], pitch = j->band.pitch;
    const int64_t places = td_conv_places(g->in), from = plane * places + row * columns;
    const int64_t left = j->p->a->numel - from - (channels - 1) * places;
    const int64_t before = at_most(g->padding[2], pitch), end = at_most(before + columns, pitch);
    if (row < 0 || row >= g->in[1]) {
        memset(to, 0, (size_t)(pitch * n) * sizeof *to);
        return;
    }
    memset(to, 0, (size_t)(before * n) * sizeof *to);
    td_cpu_turn(to + before * n, n, (const float *)j->p->a->data + from, places,
                at_most((columns + BEYOND) / (BEYOND + 1) * (BEYOND + 1), left), channels,
                sizeof *to);
    memset(to + end * n, 0, (size_t)((pitch - end) * n) * sizeof *to);
}

/* The result to its place. What is added lies as that does; else the epilogue comes first, since
 * all that was made lies in one piece. */
static void put_result(const job *j, float *y, int64_t plane, int64_t channels, int64_t row,
                       int64_t rows) {
    const td_convolution_plan *p = j->p;
    const int64_t columns = p->geometry.out[2], places = td_conv_places(p->geometry.out);
    float *to = (float *)p->out->data + plane * places + row * columns;
    if (!p->added)
        td_conv_finish(p, y, 0, rows * columns * j->lanes);
    td_cpu_turn(to, places, y, j->lanes, channels, rows * columns, sizeof *y);
    for (int64_t k = 0; p->added && k < channels; k++)
        td_conv_finish(p, to + k * places, to - (float *)p->out->data + k * places, rows * columns);
}

static void run_band(const job *j, char *memory, int64_t image, int64_t channel, int64_t row) {
    const td_convolution_plan *p = j->p;
    const td_conv_geometry *g = &p->geometry;
    const int64_t taps = td_conv_places(g->kernel);
    const int64_t channels = at_most(g->c - channel, j->lanes), n = j->lanes;
    const int64_t plane = image * g->c + channel;
    td_depthwise_band band = j->band;
    room r;
    divide_room(j, memory, &r);
    band.rows = at_most(band.rows, g->out[1] - row);
    for (int64_t k = 0; k < td_conv_rows_met(g, band.rows); k++)
        put_line(j, plane, channels, row * g->stride[1] - g->padding[1] + k,
                 r.x + k * band.pitch * n);
    td_cpu_turn(r.weight, n, (const float *)p->b->data + channel * taps, taps, taps, channels,
                sizeof(float));
    memset(r.bias, 0, (size_t)n * sizeof(float));
    if (p->bias)
        memcpy(r.bias, (const float *)p->bias->data + channel, (size_t)channels * sizeof(float));
    band.x = r.x;
    band.weight = r.weight;
    band.bias = r.bias;
    band.y = r.y;
    td_cpu->spatial->depthwise(&band);
    put_result(j, r.y, plane, channels, row, band.rows);
}

static void run_bands(void *ctx, int64_t begin, int64_t end, int worker) {
    const job *j = ctx;
    for (int64_t k = begin; k < end && !td_interrupt_requested(); k++)
        run_band(j, j->room + worker * j->bytes, k / j->bands / j->groups,
                 k / j->bands % j->groups * j->lanes, k % j->bands * j->band.rows);
}

/* Places between two lines of x. */
static int64_t pitch_of(const td_conv_geometry *g) {
    return (g->out[2] - 1) * g->stride[2] + (g->kernel[2] - 1) * g->dilation[2] + 1;
}

bool td_conv_is_depthwise(const td_convolution_plan *p) {
    const td_conv_geometry *g = &p->geometry;
    bool flat = g->kernel[0] == 1 && g->in[0] == 1 && g->out[0] == 1 && g->stride[2] <= 2;
    return flat && g->groups == g->c && g->c == g->o && !g->channels_last &&
           p->direction == TD_CONV_FORWARD && p->a->dtype == TD_F32 && p->out->numel > 0 &&
           td_cpu->product->libraries_at_best &&
           (g->n == 1 || g->out[2] >= TD_LIMIT(CONV_DEPTHWISE)) &&
           td_conv_rows_met(g, 1) * pitch_of(g) <= ROOM;
}

td_status td_conv_depthwise(const td_convolution_plan *p) {
    const td_conv_geometry *g = &p->geometry;
    room r;
    job j = {.p = p, .lanes = td_cpu->spatial->depthwise_lanes};
    j.band = (td_depthwise_band){.columns = g->out[2],
                                 .pitch = pitch_of(g),
                                 .kernel = {g->kernel[1], g->kernel[2]},
                                 .stride = {g->stride[1], g->stride[2]},
                                 .dilation = {g->dilation[1], g->dilation[2]}};
    j.groups = (g->c + j.lanes - 1) / j.lanes;
    j.band.rows = td_conv_band(g, ROOM / j.band.pitch, g->n * j.groups);
    j.bands = (g->out[1] + j.band.rows - 1) / j.band.rows;
    j.bytes = divide_room(&j, NULL, &r);
    int64_t cost = j.band.rows * g->out[2] * (td_conv_places(g->kernel) + 8);
    return td_for_lines(g->n * j.groups * j.bands, cost, j.bytes, &j.room, run_bands, &j);
}
