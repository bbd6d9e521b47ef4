/* reduce.h: the kernels that a device defines for the reductions, one per operator in reduce.c.
 *
 * Each is a td_kernel_fn: call->args in the order of the operator's schema, call->out allocated.
 * Inputs may have any strides, and so may results given by the user.
 */
#ifndef TD_OPS_REDUCE_H
#define TD_OPS_REDUCE_H

#include "engine/ops/op.h"

td_status td_cpu_sum(td_call *call);
td_status td_cpu_nansum(td_call *call);
td_status td_cpu_mean(td_call *call);
td_status td_cpu_prod(td_call *call);
td_status td_cpu_var(td_call *call);
td_status td_cpu_std(td_call *call);
td_status td_cpu_amax(td_call *call);
td_status td_cpu_amin(td_call *call);
td_status td_cpu_max_dim(td_call *call);
td_status td_cpu_min_dim(td_call *call);
td_status td_cpu_argmax(td_call *call);
td_status td_cpu_argmin(td_call *call);
td_status td_cpu_any(td_call *call);
td_status td_cpu_all(td_call *call);
td_status td_cpu_count_nonzero(td_call *call);
td_status td_cpu_norm(td_call *call);
td_status td_cpu_cumsum(td_call *call);
td_status td_cpu_sum_to_size(td_call *call);

/* Divisor of var and std: count of elements less the correction that the arguments at `correction`
 * and `unbiased` say. */
double td_var_divisor(int64_t count, td_value correction, td_value unbiased);

#endif
