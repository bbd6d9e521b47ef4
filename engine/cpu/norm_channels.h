/* norm_channels.h: groups of channels that lie side by side, normalised as they lie. */
#ifndef TD_CPU_NORM_CHANNELS_H
#define TD_CPU_NORM_CHANNELS_H

#include "engine/ops/plan.h"

/* Are the plan's rows groups of channels of x, and do x and the result lie channels last? */
bool td_cpu_norm_is_of_channels(const td_norm_plan *plan);
/* Runs such a plan; x has elements. */
td_status td_cpu_norm_channels(const td_norm_plan *plan) TD_MUST_CHECK;

#endif
