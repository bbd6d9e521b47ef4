/* conv_int.h: convolution of integers. */
#ifndef TD_CPU_CONV_INT_H
#define TD_CPU_CONV_INT_H

#include "engine/ops/plan.h"

/* Forward, of row-major int64 tensors; sums wrap around. */
td_status td_conv_int(const td_convolution_plan *p) TD_MUST_CHECK;

#endif
