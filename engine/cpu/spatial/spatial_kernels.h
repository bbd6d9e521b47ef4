/* spatial_kernels.h: weighted sums and maxima over windows of one to three dims. */
#ifndef TD_CPU_SPATIAL_SPATIAL_KERNELS_H
#define TD_CPU_SPATIAL_SPATIAL_KERNELS_H

#include "engine/core/dtype.h"
#include "engine/ops/plan/axis_windows.h"

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

/* A plane of a depthwise convolution of float32: y (rows x columns) = bias plus, at each place, the
 * elements of x (in_rows x in_columns, zeros around it) that a square kernel meets, times its. The
 * kernel has sides of 3 or 5, the stride is 1 or 2. */
typedef struct td_depthwise_plane {
    const float *x, *weight;
    float *y, bias;
    int64_t in_rows, in_columns, rows, columns;
    int64_t side, stride, above, before; /* zeros above x, and before its columns */
    float *room;                         /* depthwise_room elements */
} td_depthwise_plane;

typedef struct td_spatial_kernels {
    int64_t (*depthwise_room)(const td_depthwise_plane *p); /* elements */
    void (*depthwise)(const td_depthwise_plane *p);
    const td_spatial_functions *of[TD_DTYPE_COUNT]; /* NULL: not for this dtype */
} td_spatial_kernels;

#endif
