/* norm_channels.h: groups of channels that lie side by side, normalised as they lie. */
#ifndef TD_CPU_REDUCE_NORM_CHANNELS_H
#define TD_CPU_REDUCE_NORM_CHANNELS_H

#include "engine/ops/plan/plan.h"

/* Are the plan's rows groups of channels of x, and do x and the result lie channels last? */
bool td_cpu_norm_is_of_channels(const td_norm_plan *plan);
/* Runs such a plan; x has elements. *odd becomes true where the squares of a row's n elements left
 * the dtype: the result is then to be made anew. */
td_status td_cpu_norm_channels(const td_norm_plan *plan, bool *odd) TD_MUST_CHECK;
/* What is above the largest square of the dtype is inf in a sum of n of them, or NaN; what is small
 * counts where eps is smaller still. */
bool td_cpu_norm_is_odd(td_dtype wide, double squares, double n, double eps);

#endif
