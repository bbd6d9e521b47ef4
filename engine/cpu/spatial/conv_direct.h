/* conv_direct.h: convolution line by line. */
#ifndef TD_CPU_SPATIAL_CONV_DIRECT_H
#define TD_CPU_SPATIAL_CONV_DIRECT_H

#include "engine/ops/plan/plan.h"

/* Of row-major float32, float64 or int64 tensors, which wrap around. */
td_status td_conv_direct(const td_convolution_plan *p) TD_MUST_CHECK;

/* Have the groups so few channels that lines are sooner added up than brought into the layouts that
 * products want? */
bool td_conv_is_thin(const td_conv_geometry *g);

#endif
