/* foreach.h: one pointwise operator over lists of tensors, as if called for each of them. */
#ifndef TD_CALLS_FOREACH_H
#define TD_CALLS_FOREACH_H

#include "engine/ops/op.h"

typedef struct td_foreach {
    const td_op *op; /* one that td_foreach_takes */
    bool inplace;    /* write each call's first argument */
    int n;           /* calls */
    const td_value
        *args;       /* of each, one after the other: op->nparams, defaults filled in; borrowed */
    td_tensor **out; /* results, new; NULL in place */
    int failed;      /* at the end: the call that was refused, or -1 */
} td_foreach;

bool td_foreach_takes(const td_op *op, bool inplace);

/* Call it. Results, bits and gradients are those of the loop of calls; what is alike (plain tensors
 * of one dtype and device that are not recorded) runs in one parallel loop. Nothing is written when
 * a call is refused, and all results are NULL then. EVALUE also where two tensors that are written
 * have an element in common. */
td_status td_foreach_call(td_foreach *f) TD_MUST_CHECK;

/* The norm of order `ord`, a number, of each of n tensors into out[], new: what td_operator_norm
 * says of each, to the bit. On failure all are NULL and *failed is the tensor that was refused, or
 * -1. EDTYPE for a tensor that is no floats. */
td_status td_foreach_norm(int n, td_tensor *const *list, td_value ord, td_tensor **out,
                          int *failed) TD_MUST_CHECK;

#endif
