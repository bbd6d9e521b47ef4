/* conv_lines.h: which elements of a convolution's input and kernel meet along a dim. */
#ifndef TD_CPU_SPATIAL_CONV_LINES_H
#define TD_CPU_SPATIAL_CONV_LINES_H

#include "engine/core/threads.h"
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

/* Taps [first, last) of the kernel's along a dim that a place of the result meets. */
typedef struct td_conv_taps {
    int64_t first, last;
} td_conv_taps;

static inline td_conv_taps td_conv_taps_of(const td_conv_geometry *g, int d, int64_t place) {
    const int64_t from = place * g->stride[d] - g->padding[d], dilation = g->dilation[d];
    int64_t first = from < 0 ? (-from + dilation - 1) / dilation : 0;
    int64_t last = g->in[d] <= from ? 0 : (g->in[d] - 1 - from) / dilation + 1;
    last = last < g->kernel[d] ? last : g->kernel[d];
    return (td_conv_taps){first < last ? first : last, last};
}

/* Rows of the input that so many rows of the result meet. */
static inline int64_t td_conv_rows_met(const td_conv_geometry *g, int64_t rows) {
    return (rows - 1) * g->stride[1] + (g->kernel[1] - 1) * g->dilation[1] + 1;
}

/* Rows of the result in a band: so many that the rows of the input that they meet are `held` at
 * most, and so few that with `lines` of bands side by side all threads have one. */
static inline int64_t td_conv_band(const td_conv_geometry *g, int64_t held, int64_t lines) {
    const int64_t parts = td_get_num_threads() / lines + 1;
    const int64_t fit = (held - td_conv_rows_met(g, 1)) / g->stride[1] + 1;
    const int64_t most = (g->out[1] + parts - 1) / parts;
    return fit <= 1 ? 1 : fit < most ? fit : most;
}

#endif
