/* conv_depthwise.h: depthwise convolutions, plane by plane. */
#ifndef TD_CPU_SPATIAL_CONV_DEPTHWISE_H
#define TD_CPU_SPATIAL_CONV_DEPTHWISE_H

#include "engine/ops/plan/plan.h"

/* Row-major float32 of a channel to each, forward, with a kernel of 3 x 3 or 5 x 5: is it one that
 * td_conv_depthwise does, and does soonest? */
bool td_conv_is_depthwise(const td_convolution_plan *p);
td_status td_conv_depthwise(const td_convolution_plan *p) TD_MUST_CHECK;

#endif
