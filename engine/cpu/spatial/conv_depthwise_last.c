/* conv_depthwise_last.c: depthwise convolutions of float32 images with channels last. Channels of a
 * place lie side by side, so images are read and written as they lie; the weight is turned, and
 * kept so where it is met again. */
#include "engine/cpu/spatial/conv_depthwise_last.h"

#include "engine/core/interrupt.h"
#include "engine/cpu/isa/isa.h"
#include "engine/cpu/product/kept_panels.h"
#include "engine/cpu/reduce/dim_lines.h"
#include "engine/cpu/spatial/conv_epilogue.h"
#include "engine/cpu/spatial/conv_lines.h"

enum {
    ROOM = 96 << 10, /* elements of x that a band meets, which stay in the second-level cache */
    CLASH = 512      /* channels whose places share a few places of the first-level cache */
};

/* Bands of rows of an image, of each a panel of channels at a time. */
typedef struct job {
    const td_convolution_plan *p;
    td_product_block weight; /* as the right side of a product: taps by channels */
    const float *packed;     /* NULL: it isn't kept */
    int64_t width, panels, rows, bands, bytes;
    char *room;
} job;

static int64_t at_most(int64_t n, int64_t most) {
    return n < most ? n : most;
}

static void run_row(const job *j, td_depthwise_row *r, int64_t image, int64_t row, int64_t channel,
                    const float *weight) {
    const td_convolution_plan *p = j->p;
    const td_conv_geometry *g = &p->geometry;
    const td_conv_taps taps = td_conv_taps_of(g, 1, row);
    const int64_t from = row * g->stride[1] - g->padding[1] + taps.first * g->dilation[1];
    const int64_t met = image * g->in[1] + (taps.first < taps.last ? from : 0);
    const int64_t to = (image * g->out[1] + row) * g->out[2] * g->c + channel;
    r->x = (const float *)p->a->data + met * g->in[2] * g->c + channel;
    r->y = (float *)p->out->data + to;
    r->added = p->added ? (const float *)p->added->data + to : NULL;
    r->weight = weight + taps.first * g->kernel[2] * j->width;
    r->rows = taps.last - taps.first;
    td_cpu->spatial->depthwise_last(r);
}

static void run_band(const job *j, char *room, int64_t image, int64_t row, int64_t panel) {
    const td_convolution_plan *p = j->p;
    const td_conv_geometry *g = &p->geometry;
    const int64_t channel = panel * j->width, channels = at_most(g->c - channel, j->width);
    const float *weight = j->packed + panel * j->weight.depth * j->width;
    td_depthwise_row r = {.bias = p->bias ? (const float *)p->bias->data + channel : NULL,
                          .epilogue = &p->epilogue,
                          .channels = channels,
                          .taps = g->kernel[2],
                          .x_row = g->dilation[1] * g->in[2] * g->c,
                          .x_place = g->c,
                          .y_place = g->c,
                          .tap = j->width,
                          .in = g->in[2],
                          .out = g->out[2],
                          .stride = g->stride[2],
                          .padding = g->padding[2]};
    if (!j->packed) {
        td_product_pack(TD_F32, &j->weight, 0, j->weight.depth, channel, channels, room);
        weight = (const float *)(const void *)room;
    }
    for (int64_t k = row; k < at_most(row + j->rows, g->out[1]); k++)
        run_row(j, &r, image, k, channel, weight);
}

static void run_bands(void *ctx, int64_t begin, int64_t end, int worker) {
    const job *j = ctx;
    for (int64_t k = begin; k < end && !td_interrupt_requested(); k++)
        run_band(j, j->room + worker * j->bytes, k / j->panels / j->bands,
                 k / j->panels % j->bands * j->rows, k % j->panels);
}

/* On a Zen 4 core, oneDNN's and ours: 5 x 5, 240 channels of 28 x 28 127 and 86 us, 1152 of 7 x 7
 * 51 and 22; 3 x 3, 144 of 56 x 56 123 and 115, 32 images of 8 channels of 28 x 28 151 and 96;
 * where places clash, 512 of 14 x 14 33 and 40, 5 x 5 71 and 74, 1024 of 7 x 7 48 and 41. */
bool td_conv_is_depthwise_last(const td_convolution_plan *p) {
    const td_conv_geometry *g = &p->geometry;
    const int64_t taps = g->kernel[2];
    bool flat = g->kernel[0] == 1 && g->in[0] == 1 && g->out[0] == 1;
    bool is_made = (taps == 5 || taps == 7 || (taps == 3 && g->c % CLASH)) && g->stride[2] <= 2 &&
                   g->dilation[2] == 1;
    return flat && is_made && g->groups == g->c && g->c == g->o && g->channels_last && g->c > 1 &&
           p->direction == TD_CONV_FORWARD && p->a->dtype == TD_F32 && p->out->numel > 0 &&
           td_cpu->product->libraries_at_best;
}

td_status td_conv_depthwise_last(const td_convolution_plan *p) {
    const td_conv_geometry *g = &p->geometry;
    const int64_t taps = td_conv_places(g->kernel);
    job j = {
        .p = p,
        .weight = {.b = p->b->data, .columns = g->c, .depth = taps, .b_row = 1, .b_column = taps},
        .width = td_cpu->product->tile_bytes / (int64_t)sizeof(float)};
    td_tensor *panels = td_kept_panels(TD_F32, p->b->storage, &j.weight);
    j.packed = panels ? panels->data : NULL;
    j.panels = (g->c + j.width - 1) / j.width;
    j.rows = td_conv_band(g, ROOM / (g->in[2] * g->c), g->n * j.panels);
    j.bands = (g->out[1] + j.rows - 1) / j.rows;
    j.bytes = panels ? 0 : taps * j.width * (int64_t)sizeof(float);
    td_status status = td_for_lines(g->n * j.bands * j.panels, j.rows * g->out[2] * taps * 4,
                                    j.bytes, &j.room, run_bands, &j);
    td_release(panels);
    return status;
}
