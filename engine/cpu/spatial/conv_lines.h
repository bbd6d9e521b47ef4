/* conv_lines.h: which input each element of a convolution's kernel meets along a dim. */
#ifndef TD_CPU_SPATIAL_CONV_LINES_H
#define TD_CPU_SPATIAL_CONV_LINES_H

#include "engine/ops/plan/plan.h"

static inline int64_t td_conv_places(const int64_t *sizes) {
    return sizes[0] * sizes[1] * sizes[2];
}

/* What one element of a kernel meets along a dim: places [first, last) of the result, the first of
 * them at place `from` of the input. */
typedef struct td_conv_span {
    int64_t first, last, from;
} td_conv_span;

static inline td_conv_span td_conv_meet(const td_conv_geometry *g, int d, int64_t k) {
    int64_t offset = k * g->dilation[d] - g->padding[d], stride = g->stride[d];
    int64_t first = offset < 0 ? (-offset + stride - 1) / stride : 0;
    int64_t last = g->in[d] - offset <= 0 ? 0 : (g->in[d] - offset - 1) / stride + 1;
    last = last < g->out[d] ? last : g->out[d];
    return (td_conv_span){first, last > first ? last : first, first * stride + offset};
}

#endif
