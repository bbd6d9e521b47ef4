/* pool.h: windows over planes, and the kernels of pooling and interpolation that a device defines.
 */
#ifndef TD_OPS_POOL_H
#define TD_OPS_POOL_H

#include "engine/ops/op.h"

/* For every output row (and column) the input rows [begin, end) step by step that its window
 * covers, within the plane, and the scale of a mean. One block of memory; td_pool_windows_free. */
typedef struct td_pool_windows {
    int64_t planes, h, w, oh, ow;
    int64_t row_step, column_step;      /* dilation */
    int32_t *row_begin, *row_end;       /* oh each */
    int32_t *column_begin, *column_end; /* ow each */
    double *scale;                      /* oh x ow, for means; NULL otherwise */
    bool pairs;                         /* windows of 2 x 2, side by side from the corner on */
} td_pool_windows;

void td_pool_windows_free(td_pool_windows *plan);

/* All tensors row-major and of one floating dtype, planes last; gx is zero at first. */
td_status td_cpu_max_pool(const td_pool_windows *plan, const td_tensor *x, td_tensor *y,
                          td_tensor *places) TD_MUST_CHECK;
td_status td_cpu_pool_scatter(const td_pool_windows *plan, const td_tensor *g,
                              const td_tensor *places, td_tensor *gx) TD_MUST_CHECK;
td_status td_cpu_pool_gather(const td_pool_windows *plan, const td_tensor *x,
                             const td_tensor *places, td_tensor *y) TD_MUST_CHECK;
td_status td_cpu_mean_pool(const td_pool_windows *plan, const td_tensor *x,
                           td_tensor *y) TD_MUST_CHECK;
td_status td_cpu_mean_pool_backward(const td_pool_windows *plan, const td_tensor *g,
                                    td_tensor *gx) TD_MUST_CHECK;
td_status td_cpu_nearest(const td_pool_windows *plan, const td_tensor *x,
                         td_tensor *y) TD_MUST_CHECK;
td_status td_cpu_nearest_backward(const td_pool_windows *plan, const td_tensor *g,
                                  td_tensor *gx) TD_MUST_CHECK;

#endif
