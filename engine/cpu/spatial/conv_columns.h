/* conv_columns.h: convolution as a product of matrices. */
#ifndef TD_CPU_SPATIAL_CONV_COLUMNS_H
#define TD_CPU_SPATIAL_CONV_COLUMNS_H

#include "engine/ops/plan/plan.h"

/* Of row-major float64 tensors, in any direction, or int64 tensors, which wrap around: not by
 * weight. */
td_status td_conv_columns(const td_convolution_plan *p) TD_MUST_CHECK;

#endif
