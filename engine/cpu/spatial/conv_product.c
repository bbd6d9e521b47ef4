/* conv_product.c: convolutions of float32 with kernels of one place. oneDNN moves images into a
 * layout of its own and back, and the weight too at each call. Here tiles of a product read images
 * as they lie; the few places of a single image are its rows, and the weight is kept packed. */
#include "engine/cpu/spatial/conv_product.h"

#include "engine/cpu/isa/isa.h"
#include "engine/cpu/limits.h"
#include "engine/cpu/pointwise/transpose.h"
#include "engine/cpu/product/kept_panels.h"
#include "engine/cpu/product/library_parts.h"
#include "engine/cpu/product/product.h"
#include "engine/cpu/reduce/dim_lines.h"
#include "engine/cpu/spatial/conv_epilogue.h"
#include "engine/cpu/spatial/conv_lines.h"

static bool is_product(const td_convolution_plan *p) {
    const td_conv_geometry *g = &p->geometry;
    bool as_it_is = g->groups == 1 && td_conv_places(g->kernel) == 1;
    for (int k = 0; k < TD_SPATIAL; k++)
        as_it_is &= g->stride[k] == 1 && g->in[k] == g->out[k];
    return as_it_is && p->direction == TD_CONV_FORWARD && p->a->dtype == TD_F32 &&
           td_cpu->product->libraries_at_best;
}

/* The weight times the channels of each image. */
static td_status by_channels(const td_convolution_plan *p, int64_t first, int64_t n) {
    const int64_t size = sizeof(float), places = td_conv_places(p->geometry.out);
    const int64_t c = p->geometry.c, o = p->geometry.o;
    td_product_block block = {.a = p->b->data,
                              .row_bias = p->bias ? p->bias->data : NULL,
                              .rows = o,
                              .columns = places,
                              .depth = c,
                              .a_row = c,
                              .a_column = 1,
                              .b_row = places,
                              .b_column = 1,
                              .c_row = places,
                              .c_column = 1,
                              .epilogue = td_conv_has_epilogue(p) ? &p->epilogue : NULL};
    td_status status = TD_OK;
    for (int64_t k = first; k < first + n && status == TD_OK; k++) {
        block.b = (char *)p->a->data + k * c * places * size;
        block.c = (char *)p->out->data + k * o * places * size;
        block.added = p->added ? (char *)p->added->data + k * o * places * size : NULL;
        status = td_product_by_few(TD_F32, &block, NULL);
    }
    return status;
}

/* The places of each image times the transposed weight; the result is turned. */
static td_status by_places(const td_convolution_plan *p, int64_t first, int64_t n) {
    const int64_t size = sizeof(float), places = td_conv_places(p->geometry.out);
    const int64_t c = p->geometry.c, o = p->geometry.o;
    td_product_block block = {.b = p->b->data,
                              .bias = p->bias ? p->bias->data : NULL,
                              .rows = places,
                              .columns = o,
                              .depth = c,
                              .a_row = 1,
                              .a_column = places,
                              .b_row = 1,
                              .b_column = c,
                              .c_row = o,
                              .c_column = 1};
    td_tensor *room = NULL, *panels = NULL;
    td_status status = td_room(places * o, (size_t)size, &room);
    if (status == TD_OK)
        panels = td_kept_panels(TD_F32, p->b->storage, &block);
    for (int64_t k = first; k < first + n && status == TD_OK; k++) {
        char *y = (char *)p->out->data + k * o * places * size;
        block.a = (char *)p->a->data + k * c * places * size;
        block.c = room->data;
        status = td_product_by_few(TD_F32, &block, panels ? panels->data : NULL);
        td_cpu_turn(y, places, room->data, o, o, places, (size_t)size);
        td_conv_finish(p, y, k * o * places, o * places);
    }
    td_release(panels);
    td_release(room);
    return status;
}

/* Rows of a product of images with channels last, which are its left side as they lie. */
typedef struct rows_job {
    td_product_block whole;
    const char *packed; /* the right side, or NULL */
    int64_t each;       /* rows of a part */
} rows_job;

static td_status multiply_rows(const void *ctx, int64_t part) {
    const rows_job *j = ctx;
    const int64_t size = sizeof(float), first = part * j->each;
    td_product_block block = j->whole;
    block.rows = block.rows - first < j->each ? block.rows - first : j->each;
    block.a += first * block.a_row * size;
    block.c += first * block.c_row * size;
    block.added = block.added ? block.added + first * block.c_row * size : NULL;
    return td_product_by_few(TD_F32, &block, j->packed);
}

/* All places of the images times the transposed weight. */
static td_status by_rows(const td_convolution_plan *p, int64_t first, int64_t n) {
    const int64_t size = sizeof(float), places = td_conv_places(p->geometry.out);
    const int64_t c = p->geometry.c, o = p->geometry.o, to = first * places * o * size;
    rows_job j = {.whole = {.a = (char *)p->a->data + first * places * c * size,
                            .b = p->b->data,
                            .bias = p->bias ? p->bias->data : NULL,
                            .added = p->added ? (char *)p->added->data + to : NULL,
                            .epilogue = td_conv_has_epilogue(p) ? &p->epilogue : NULL,
                            .c = (char *)p->out->data + to,
                            .rows = n * places,
                            .columns = o,
                            .depth = c,
                            .a_row = c,
                            .a_column = 1,
                            .b_row = 1,
                            .b_column = c,
                            .c_row = o,
                            .c_column = 1}};
    td_tensor *panels = td_kept_panels(TD_F32, p->b->storage, &j.whole);
    const int64_t most = td_parts_of((double)j.whole.rows * (double)o * (double)c);
    const int64_t parts = most < j.whole.rows ? most : j.whole.rows;
    j.packed = panels ? panels->data : NULL;
    j.each = (j.whole.rows + parts - 1) / parts;
    td_status status =
        td_run_parts((j.whole.rows + j.each - 1) / j.each, TD_GRAIN, multiply_rows, &j);
    td_release(panels);
    return status;
}

/* On a Zen 4 core, oneDNN's and ours: 96 channels of 56 x 56 to 24 261 and 133 us, 112 of 14 x 14
 * to 672 288 and 279; of 7 x 7 images 1152 to 192 225 and, by channels, 267. */
td_conv_product td_conv_product_of(const td_convolution_plan *p) {
    const td_conv_geometry *g = &p->geometry;
    int64_t places = td_conv_places(g->out);
    if (!is_product(p))
        return NULL;
    if (g->channels_last)
        return g->o >= TD_LIMIT(PRODUCT_FEW_COLUMNS) && g->n * places >= TD_LIMIT(PRODUCT_FEW_LEAST)
                   ? by_rows
                   : NULL;
    if (places >= TD_LIMIT(CONV_PRODUCT))
        return by_channels;
    return g->n == 1 && places >= TD_LIMIT(PRODUCT_FEW_LEAST) &&
                   g->o >= TD_LIMIT(PRODUCT_FEW_COLUMNS) &&
                   g->o * g->c >= TD_LIMIT(PRODUCT_FEW_RIGHT)
               ? by_places
               : NULL;
}
