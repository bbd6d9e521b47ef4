/* loss_grad.h: gradients of softmax and cross entropy, for the rows of loss.c. Each is a
 * td_backward_fn and calls operators only. */
#ifndef TD_OPS_LOSS_GRAD_H
#define TD_OPS_LOSS_GRAD_H

#include "engine/ops/op.h"

td_status td_grad_softmax(td_grad *grad);
td_status td_grad_log_softmax(td_grad *grad);
td_status td_grad_softmax_backward(td_grad *grad);
td_status td_grad_log_softmax_backward(td_grad *grad);
td_status td_grad_cross_entropy_classes(td_grad *grad);
td_status td_grad_cross_entropy_backward(td_grad *grad);

/* One number per line of scores (shape of the target) as it broadcasts to the scores: with a class
 * dim of size 1. Differentiable. */
td_status td_with_class_dim(td_tensor *lines, const td_tensor *scores, td_tensor **out);

#endif
