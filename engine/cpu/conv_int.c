/* conv_int.c: convolution of integers, plane by plane: no library has it, and they have no
 * gradients. */
#include "engine/cpu/conv_int.h"

#include "engine/core/threads.h"

typedef struct job {
    const td_conv_geometry *g;
    const uint64_t *x, *weight, *bias; /* unsigned, so that sums wrap around */
    uint64_t *y;
} job;

/* The places [first, last) of a result's line that meet the input through one element of a kernel.
 */
static void meet(int64_t offset, int64_t stride, int64_t in, int64_t out, int64_t *first,
                 int64_t *last) {
    *first = offset < 0 ? (-offset + stride - 1) / stride : 0;
    *last = in - offset <= 0 ? 0 : (in - offset - 1) / stride + 1;
    *last = *last > out ? out : *last;
}

/* Add one input plane, by one element of its kernel, to a result's plane. */
static void add_shifted(const td_conv_geometry *g, const uint64_t *plane, uint64_t factor,
                        int64_t ky, int64_t kx, uint64_t *y) {
    int64_t down = ky * g->dilation[0] - g->padding[0], right = kx * g->dilation[1] - g->padding[1];
    int64_t top, bottom, left, end;
    meet(down, g->stride[0], g->h, g->oh, &top, &bottom);
    meet(right, g->stride[1], g->w, g->ow, &left, &end);
    for (int64_t i = top; i < bottom; i++) {
        const uint64_t *line = plane + (i * g->stride[0] + down) * g->w + right;
        for (int64_t k = left; k < end; k++)
            y[i * g->ow + k] += factor * line[k * g->stride[1]];
    }
}

/* Planes [begin, end) of the result, counted over images and channels. */
static void fill_planes(void *ctx, int64_t begin, int64_t end, int worker) {
    const job *j = ctx;
    const td_conv_geometry *g = j->g;
    int64_t channels = g->c / g->groups, size = g->oh * g->ow;
    (void)worker;
    for (int64_t plane = begin; plane < end; plane++) {
        int64_t o = plane % g->o, first = o / (g->o / g->groups) * channels;
        const uint64_t *image = j->x + plane / g->o * g->c * g->h * g->w;
        uint64_t *y = j->y + plane * size;
        for (int64_t k = 0; k < size; k++)
            y[k] = j->bias ? j->bias[o] : 0;
        for (int64_t k = 0; k < channels * g->kh * g->kw; k++)
            add_shifted(g, image + (first + k / (g->kh * g->kw)) * g->h * g->w,
                        j->weight[o * channels * g->kh * g->kw + k], k / g->kw % g->kh, k % g->kw,
                        y);
    }
}

td_status td_conv_int(const td_convolution_plan *p) {
    const td_conv_geometry *g = &p->geometry;
    job j = {g, p->a->data, p->b->data, p->bias ? p->bias->data : NULL, p->out->data};
    if (p->direction != TD_CONV_FORWARD)
        return td_fail(TD_EINTERNAL, "integers have no gradients");
    return td_parallel_for(g->n * g->o, g->oh * g->ow * (g->c / g->groups) * g->kh * g->kw,
                           fill_planes, &j);
}
