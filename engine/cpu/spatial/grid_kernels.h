/* grid_kernels.h: images and volumes read at the places of a grid, and the gradients of that. */
#ifndef TD_CPU_SPATIAL_GRID_KERNELS_H
#define TD_CPU_SPATIAL_GRID_KERNELS_H

#include "engine/ops/plan/plan.h"

/* The functions of one element type, for one image of a plan. */
typedef struct td_grid_functions {
    /* Places [begin, end) of the grid, of all channels. */
    void (*read)(const td_grid_plan *p, int64_t image, int64_t begin, int64_t end);
    /* Channels [begin, end), all places one after the other. */
    void (*give)(const td_grid_plan *p, int64_t image, int64_t begin, int64_t end);
    /* Places [begin, end) of the grid. */
    void (*slope)(const td_grid_plan *p, int64_t image, int64_t begin, int64_t end);
} td_grid_functions;

typedef struct td_grid_kernels {
    const td_grid_functions *near[TD_DTYPE_COUNT]; /* NULL: not for this dtype */
    const td_grid_functions *far[TD_DTYPE_COUNT];  /* of more than 2^30 places in a channel */
} td_grid_kernels;

#endif
