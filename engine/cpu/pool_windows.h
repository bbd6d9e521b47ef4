/* pool_windows.h: the windows of a pooling plan, row by row and column by column. */
#ifndef TD_CPU_POOL_WINDOWS_H
#define TD_CPU_POOL_WINDOWS_H

#include "engine/core/status.h"

/* For every output row (and column) the input rows [begin, end) step by step that its window
 * covers, within the plane, and the scale of a mean. One block of memory. */
typedef struct td_pool_windows {
    int64_t h, w, oh, ow;
    int64_t row_step, column_step;      /* dilation */
    int32_t *row_begin, *row_end;       /* oh each */
    int32_t *column_begin, *column_end; /* ow each */
    double *scale;                      /* oh x ow, for means; NULL otherwise */
    bool pairs;                         /* windows of 2 x 2, side by side from the corner on */
} td_pool_windows;

#endif
