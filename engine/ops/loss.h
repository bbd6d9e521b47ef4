/* loss.h: what the losses and their gradients share. */
#ifndef TD_OPS_LOSS_H
#define TD_OPS_LOSS_H

#include "engine/ops/op.h"

/* The dim of the classes in a tensor of scores: (C), (N, C) or (N, C, d1, ...). */
static inline int td_class_dim(const td_tensor *x) {
    return x->ndim > 1 ? 1 : 0;
}

#endif
