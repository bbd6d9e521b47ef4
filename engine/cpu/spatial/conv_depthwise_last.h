/* conv_depthwise_last.h: depthwise convolutions of images with channels last. */
#ifndef TD_CPU_SPATIAL_CONV_DEPTHWISE_LAST_H
#define TD_CPU_SPATIAL_CONV_DEPTHWISE_LAST_H

#include "engine/ops/plan/plan.h"

/* float32 of a channel to each, forward, channels last: is it one that td_conv_depthwise_last does,
 * and does soonest? It adds and limits as the plan says. */
bool td_conv_is_depthwise_last(const td_convolution_plan *p);
td_status td_conv_depthwise_last(const td_convolution_plan *p) TD_MUST_CHECK;

#endif
