/* reduce.h: what the reductions and their gradients share. */
#ifndef TD_OPS_REDUCE_H
#define TD_OPS_REDUCE_H

#include "engine/ops/op.h"

/* EDTYPE unless it is a floating dtype. */
td_status td_check_float(td_dtype dtype) TD_MUST_CHECK;

/* What var and std take off the count of elements, by their arguments `correction` and `unbiased`.
 */
double td_var_correction(td_value correction, td_value unbiased);

#endif
