/* loss.h: the kernels that a device defines for softmax and the losses, one per operator in loss.c.
 *
 * Each is a td_kernel_fn: call->args in the order of the operator's schema, call->out allocated.
 * Inputs may have any strides, and so may results given by the user.
 */
#ifndef TD_OPS_LOSS_H
#define TD_OPS_LOSS_H

#include "engine/ops/op.h"

td_status td_cpu_softmax(td_call *call);
td_status td_cpu_log_softmax(td_call *call);
td_status td_cpu_softmax_backward(td_call *call);
td_status td_cpu_log_softmax_backward(td_call *call);
td_status td_cpu_class_weights(td_call *call);
td_status td_cpu_cross_entropy_classes(td_call *call);
td_status td_cpu_cross_entropy_backward(td_call *call);

/* The dim of the classes in a tensor of scores: (C), (N, C) or (N, C, d1, ...). */
static inline int td_class_dim(const td_tensor *x) {
    return x->ndim > 1 ? 1 : 0;
}

#endif
