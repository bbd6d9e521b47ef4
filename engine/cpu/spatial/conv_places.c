/* conv_places.c: convolutions of a single float32 image with channels last. The places of the
 * result fall into rectangles that meet the same taps of the kernel: the middle meets all, and what
 * lies at an edge those that don't meet padding, which is skipped. A few places of a rectangle and
 * a panel of channels are a tile, which reads x as it lies and the weight packed, and kept so where
 * it is met again. */
#include "engine/cpu/spatial/conv_places.h"

#include "engine/core/interrupt.h"
#include "engine/cpu/isa/isa.h"
#include "engine/cpu/limits.h"
#include "engine/cpu/product/kept_panels.h"
#include "engine/cpu/reduce/dim_lines.h"
#include "engine/cpu/spatial/conv_epilogue.h"
#include "engine/cpu/spatial/conv_lines.h"

enum {
    ROOM = 96 << 10, /* elements of x that a band meets, which stay in the second-level cache, */
    DEEP = 512,      /* and terms of a panel that tiles take in at a time */
    TAPS = 128,      /* of a kernel at most */
    TILE = 6         /* places of one */
};

/* Bands of rows of the image, of each a panel of channels at a time. */
typedef struct job {
    const td_convolution_plan *p;
    const float *weight;         /* packed as the right side of a product */
    int64_t depth, tap, channel; /* rows of a panel: all, and from a tap or a channel to the next */
    int64_t width, panels, rows;
} job;

static int64_t at_most(int64_t n, int64_t most) {
    return n < most ? n : most;
}

/* Places [begin, end) of a dim that meet the same taps. */
typedef struct side {
    int64_t begin, end;
    td_conv_taps taps;
} side;

/* All from `begin` on, up to `most`. */
static side side_from(const td_conv_geometry *g, int d, int64_t begin, int64_t most) {
    side s = {begin, begin + 1, td_conv_taps_of(g, d, begin)};
    for (; s.end < most; s.end++) {
        const td_conv_taps next = td_conv_taps_of(g, d, s.end);
        if (next.first != s.taps.first || next.last != s.taps.last)
            break;
    }
    return s;
}

/* The tiles of a rectangle, whose taps are in the tile already, along its longer side. */
static void run_rectangle(const job *j, td_places_tile *t, const side *down, const side *along,
                          int64_t channel, bool begins, bool ends) {
    const td_convolution_plan *p = j->p;
    const td_conv_geometry *g = &p->geometry;
    const bool turned = down->end - down->begin > along->end - along->begin;
    const side *outer = turned ? along : down, *inner = turned ? down : along;
    const int64_t step = turned ? g->out[2] : 1, line = g->in[2] * g->c;
    t->x_step = turned ? g->stride[1] * line : g->stride[2] * g->c;
    t->y_step = step * g->o;
    t->base_step = begins ? 0 : t->y_step;
    for (int64_t a = outer->begin; a < outer->end; a++) {
        int64_t tiles = (inner->end - inner->begin + TILE - 1) / TILE;
        for (int64_t b = inner->begin; b < inner->end; b += t->places, tiles--) {
            const int64_t y = turned ? b : a, x = turned ? a : b;
            const int64_t to = (y * g->out[2] + x) * g->o + channel;
            t->places = (inner->end - b + tiles - 1) / tiles;
            t->from = (y * g->stride[1] - g->padding[1]) * line +
                      (x * g->stride[2] - g->padding[2]) * g->c;
            t->y = (float *)p->out->data + to;
            t->base = !begins ? t->y : p->bias ? (const float *)p->bias->data + channel : NULL;
            t->added = ends && p->added ? (const float *)p->added->data + to : NULL;
            t->epilogue = ends ? &p->epilogue : NULL;
            td_cpu->spatial->places(t);
        }
    }
}

/* All channels of x into a rectangle, so many at a time that the weight's stay in the cache. */
static void run_taps(const job *j, const side *down, const side *along, int64_t panel, int64_t c,
                     int64_t channels) {
    const td_convolution_plan *p = j->p;
    const td_conv_geometry *g = &p->geometry;
    const td_conv_taps rows = down->taps, columns = along->taps;
    const int64_t met = columns.last - columns.first;
    /* those of the taps in a row follow one another in x and in the weight */
    const bool joined = g->weight_last && g->dilation[2] == 1 && channels == g->c;
    const int64_t runs = joined ? at_most(met, 1) : met;
    int64_t tap_x[TAPS], tap_weight[TAPS], taps = 0;
    for (int64_t q = rows.first; q < rows.last; q++)
        for (int64_t r = columns.first; r < columns.first + runs; r++, taps++) {
            tap_x[taps] = (q * g->dilation[1] * g->in[2] + r * g->dilation[2]) * g->c + c;
            tap_weight[taps] = ((q * g->kernel[2] + r) * j->tap + c * j->channel) * j->width;
        }
    td_places_tile t = {.x = p->a->data,
                        .weight = j->weight + panel * j->depth * j->width,
                        .tap_x = tap_x,
                        .tap_weight = tap_weight,
                        .taps = taps,
                        .channels = joined ? met * channels : channels,
                        .columns = at_most(g->o - panel * j->width, j->width),
                        .channel = j->channel * j->width};
    run_rectangle(j, &t, down, along, panel * j->width, c == 0, c + channels == g->c);
}

/* Rows of the result from `row` on. */
static void run_band(const job *j, int64_t row, int64_t panel) {
    const td_conv_geometry *g = &j->p->geometry;
    const int64_t taps = td_conv_places(g->kernel), end = at_most(row + j->rows, g->out[1]);
    const int64_t deep = DEEP / taps > 1 ? DEEP / taps : 1;
    for (int64_t c = 0; c < g->c; c += deep)
        for (side down = {.end = row}; down.end < end;) {
            down = side_from(g, 1, down.end, end);
            for (side along = {0}; along.end < g->out[2];) {
                along = side_from(g, 2, along.end, g->out[2]);
                run_taps(j, &down, &along, panel, c, at_most(g->c - c, deep));
            }
        }
}

static void run_bands(void *ctx, int64_t begin, int64_t end, int worker) {
    const job *j = ctx;
    (void)worker;
    for (int64_t k = begin; k < end && !td_interrupt_requested(); k++)
        run_band(j, k / j->panels * j->rows, k % j->panels);
}

/* On a Zen 4 core, oneDNN's, which packs the weight at each call, and ours: 3 x 3, 512 channels of
 * 7 x 7 to as many 3209 and 2052 us, 256 of 14 x 14 2161 and 1934, 128 of 28 x 28 2060 and 2070; of
 * one place with steps of 2, 1024 of 14 x 14 to 2048 7570 and 2138. */
bool td_conv_is_by_places(const td_convolution_plan *p) {
    const td_conv_geometry *g = &p->geometry;
    return g->n == 1 && g->groups == 1 && g->channels_last && g->in[0] == 1 && g->kernel[0] == 1 &&
           td_conv_places(g->out) <= TD_LIMIT(CONV_PLACES) && td_conv_places(g->kernel) <= TAPS &&
           p->direction == TD_CONV_FORWARD && p->a->dtype == TD_F32 && p->out->numel > 0 &&
           td_cpu->product->libraries_at_best;
}

td_status td_conv_by_places(const td_convolution_plan *p) {
    const td_conv_geometry *g = &p->geometry;
    const int64_t taps = td_conv_places(g->kernel), depth = taps * g->c;
    const td_product_block weight = {
        .b = p->b->data, .columns = g->o, .depth = depth, .b_row = 1, .b_column = depth};
    job j = {.p = p,
             .depth = depth,
             .tap = g->weight_last ? g->c : 1,
             .channel = g->weight_last ? 1 : taps,
             .width = td_cpu->product->tile_bytes / (int64_t)sizeof(float)};
    td_tensor *panels = td_kept_panels(TD_F32, p->b->storage, &weight);
    td_status status = panels ? TD_OK : td_pack_panels(TD_F32, &weight, &panels);
    if (status)
        return status;
    j.weight = panels->data;
    j.panels = (g->o + j.width - 1) / j.width;
    j.rows = td_conv_band(g, ROOM / (g->in[2] * g->c), j.panels);
    const int64_t bands = (g->out[1] + j.rows - 1) / j.rows;
    status =
        td_parallel_for(bands * j.panels, j.rows * g->out[2] * depth * j.width / 16, run_bands, &j);
    td_release(panels);
    return status;
}
