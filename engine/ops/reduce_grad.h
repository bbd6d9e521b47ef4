/* reduce_grad.h: gradients of the reductions, for the rows of reduce.c. Each is a td_backward_fn
 * and calls operators only. */
#ifndef TD_OPS_REDUCE_GRAD_H
#define TD_OPS_REDUCE_GRAD_H

#include "engine/ops/op.h"

td_status td_grad_sum(td_grad *grad);
td_status td_grad_nansum(td_grad *grad);
td_status td_grad_mean(td_grad *grad);
td_status td_grad_prod(td_grad *grad);
td_status td_grad_var(td_grad *grad);
td_status td_grad_std(td_grad *grad);
td_status td_grad_extreme(td_grad *grad);     /* amax, amin: shared evenly among equals */
td_status td_grad_extreme_dim(td_grad *grad); /* max, min along a dim: to the element taken */
td_status td_grad_norm(td_grad *grad);
td_status td_grad_logsumexp(td_grad *grad);
td_status td_grad_cumsum(td_grad *grad);
td_status td_grad_sum_to_size(td_grad *grad);

/* Give *g (stolen, then NULL), expanded to the first input's shape and in its dtype, to that input.
 */
td_status td_grad_hand_over(td_grad *grad, td_tensor **g);

#endif
