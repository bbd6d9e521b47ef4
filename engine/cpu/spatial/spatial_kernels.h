/* spatial_kernels.h: weighted sums and maxima over windows of one to three dims. */
#ifndef TD_CPU_SPATIAL_SPATIAL_KERNELS_H
#define TD_CPU_SPATIAL_SPATIAL_KERNELS_H

#include "engine/core/dtype.h"
#include "engine/ops/plan/axis_windows.h"
#include "engine/ops/plan/plan.h"

/* The functions of one element type, for one part of `outer`: a large volume x of the axes' `in`,
 * a small one y of their `out`, both with `inner` elements at every place, row-major. A row is a
 * place of y's first two dims. `line` has room for (in of the last axis + 1) x inner doubles. */
typedef struct td_spatial_functions {
    /* Rows [begin, end) of y: sums over their taps, divided by `divisor`, or by the axes' divisors
     * where that is 0. */
    void (*sum)(void *y, const void *x, const td_taps *axis, int64_t inner, double divisor,
                void *line, int64_t begin, int64_t end);
    /* x += what every place of y gives back. NULL for integers, as scatter. */
    void (*spread)(void *x, const void *y, const td_taps *axis, int64_t inner, double divisor,
                   void *line);
    /* Rows [begin, end) of y: the largest of their taps, and where it is unless places is NULL. */
    void (*max)(void *y, int64_t *places, const void *x, const td_taps *axis, int64_t inner,
                int64_t begin, int64_t end);
    /* x += y at places, n of them. */
    void (*scatter)(void *x, const int64_t *places, const void *y, int64_t inner, int64_t n);
} td_spatial_functions;

/* Rows of a depthwise convolution of `depthwise_lanes` channels of float32, which lie side by side
 * at each place of x, `weight` (by taps), bias (lanes elements) and y (rows x columns). x has all
 * places that the kernel meets, zeros among them; its lines lie `pitch` places apart. Strides are 1
 * or 2 along columns. */
typedef struct td_depthwise_band {
    const float *x, *weight, *bias;
    float *y;
    int64_t rows, columns, pitch;
    int64_t kernel[2], stride[2], dilation[2];
} td_depthwise_band;

/* A row of a depthwise convolution of float32 with channels last: of each of `out` places
 * `channels` (at most as many as a tile of a product is wide) that lie side by side. `x` is the
 * first place of the first row that it meets, of `rows`, and `weight` those rows' taps, each read
 * in whole vectors. Of what is beside a row of x nothing is read. Strides in elements.
 * Three, five or seven taps, one or two places apart. */
typedef struct td_depthwise_row {
    const float *x, *weight, *bias, *added; /* bias, added: NULL: nothing */
    float *y;                               /* as `added` lies */
    const td_epilogue *epilogue;
    int64_t channels, rows, taps;         /* taps: in a row of the kernel */
    int64_t x_row, x_place, y_place, tap; /* from one to the next; rows as the kernel meets them */
    int64_t in, out, stride, padding;     /* along the row, in places */
} td_depthwise_row;

/* Of a convolution of float32, at most six `places` and as many `columns` of channels of the result
 * as a tile of a product is wide. A place's sums begin with `base` (NULL: zero), and for each tap
 * and each of so many channels of x grow by an element of x times a row of the weight, read in
 * whole vectors: x's at `from`, plus x_step for each place, plus tap_x; the channels lie side by
 * side. Then come `added` (NULL: nothing), which lies as y, and the epilogue (NULL: none). Strides
 * in elements. */
typedef struct td_places_tile {
    const float *x, *weight, *base, *added;
    float *y;
    const td_epilogue *epilogue;
    const int64_t *tap_x, *tap_weight; /* taps of them: places from x and weight on */
    int64_t places, columns, taps, channels;
    int64_t from, x_step, y_step, base_step; /* from a place to the next */
    int64_t channel;                         /* of the weight: from one to the next */
} td_places_tile;

typedef struct td_spatial_kernels {
    int depthwise_lanes;
    void (*depthwise)(const td_depthwise_band *p);
    void (*depthwise_last)(const td_depthwise_row *p);
    void (*places)(const td_places_tile *t);
    /* y (n elements), plus `added` where that isn't NULL, to the end of an epilogue. */
    void (*epilogue)(float *y, const float *added, int64_t n, const td_epilogue *e);
    const td_spatial_functions *of[TD_DTYPE_COUNT]; /* NULL: not for this dtype */
} td_spatial_kernels;

#endif
