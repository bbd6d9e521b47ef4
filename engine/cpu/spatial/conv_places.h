/* conv_places.h: convolutions of an image with channels last, a few places at a time. */
#ifndef TD_CPU_SPATIAL_CONV_PLACES_H
#define TD_CPU_SPATIAL_CONV_PLACES_H

#include "engine/ops/plan/plan.h"

/* One float32 image with channels last, forward, in one group: is it one that td_conv_by_places
 * does, and does soonest? It adds and limits as the plan says. */
bool td_conv_is_by_places(const td_convolution_plan *p);
td_status td_conv_by_places(const td_convolution_plan *p) TD_MUST_CHECK;

#endif
