/* conv_depthwise.c: depthwise convolutions of float32, whose planes lie as they are: oneDNN moves
 * them into a layout of its own and back, which takes longer than the sums. Planes go to threads.
 */
#include "engine/cpu/spatial/conv_depthwise.h"

#include "engine/core/interrupt.h"
#include "engine/cpu/isa/isa.h"
#include "engine/cpu/limits.h"
#include "engine/cpu/reduce/dim_lines.h"
#include "engine/cpu/spatial/conv_lines.h"

enum { ROOM = 128 * 1024 }; /* elements of a padded plane, which stay in the second-level cache */

typedef struct job {
    const td_convolution_plan *p;
    td_depthwise_plane plane; /* what all have in common */
    int64_t bytes;            /* of a worker's room */
    char *room;
} job;

static td_depthwise_plane plane_of(const td_conv_geometry *g) {
    return (td_depthwise_plane){.in_rows = g->in[1],
                                .in_columns = g->in[2],
                                .rows = g->out[1],
                                .columns = g->out[2],
                                .side = g->kernel[2],
                                .stride = g->stride[2],
                                .above = g->padding[1],
                                .before = g->padding[2]};
}

bool td_conv_is_depthwise(const td_convolution_plan *p) {
    const td_conv_geometry *g = &p->geometry;
    const td_depthwise_plane plane = plane_of(g);
    bool square = g->kernel[0] == 1 && g->kernel[1] == g->kernel[2] && g->in[0] == 1 &&
                  g->out[0] == 1 && g->stride[1] == g->stride[2] &&
                  (g->kernel[2] == 3 || g->kernel[2] == 5) && g->stride[2] <= 2 &&
                  g->dilation[1] == 1 && g->dilation[2] == 1;
    return square && g->groups == g->c && g->c == g->o && !g->channels_last &&
           p->direction == TD_CONV_FORWARD && p->a->dtype == TD_F32 && p->out->numel > 0 &&
           td_cpu->product->libraries_at_best && g->out[2] >= TD_LIMIT(CONV_DEPTHWISE) &&
           td_cpu->spatial->depthwise_room(&plane) <= ROOM;
}

static void run_planes(void *ctx, int64_t begin, int64_t end, int worker) {
    const job *j = ctx;
    const td_convolution_plan *p = j->p;
    const td_conv_geometry *g = &p->geometry;
    const float *bias = p->bias ? p->bias->data : NULL;
    td_depthwise_plane one = j->plane;
    one.room = (float *)(void *)(j->room + worker * j->bytes);
    for (int64_t k = begin; k < end && !td_interrupt_requested(); k++) {
        one.x = (const float *)p->a->data + k * td_conv_places(g->in);
        one.y = (float *)p->out->data + k * td_conv_places(g->out);
        one.weight = (const float *)p->b->data + k % g->c * one.side * one.side;
        one.bias = bias ? bias[k % g->c] : 0;
        td_cpu->spatial->depthwise(&one);
    }
}

td_status td_conv_depthwise(const td_convolution_plan *p) {
    const td_conv_geometry *g = &p->geometry;
    job j = {.p = p, .plane = plane_of(g)};
    int64_t cost = td_conv_places(g->out) * td_conv_places(g->kernel) / 8;
    j.bytes = td_cpu->spatial->depthwise_room(&j.plane) * (int64_t)sizeof(float);
    return td_for_lines(g->n * g->c, cost, j.bytes, &j.room, run_planes, &j);
}
