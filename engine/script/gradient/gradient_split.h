/* gradient_split.h: a joint graph (gradient_record.h) becomes two: forward, which gives what
 * backward reads besides its outputs, and backward. */
#ifndef TD_SCRIPT_GRADIENT_SPLIT_H
#define TD_SCRIPT_GRADIENT_SPLIT_H

#include "engine/script/gradient/gradient_record.h"

/* What is kept between forward and backward. */
typedef struct td_kept {
    enum { TD_KEPT_INPUT, TD_KEPT_CAPTURED, TD_KEPT_CONSTANT, TD_KEPT_MADE } from;
    int number;        /* of the input, the captured tensor or the value (td_joint_number) */
    td_tensor *tensor; /* of TD_KEPT_CONSTANT: which; borrowed from the graph */
} td_kept;

/* What backward reads of the forward part is kept, but for what is cheap to compute again from what
 * is kept anyway: views, and pointwise values without functions such as exp, which become part of
 * backward's kernels. Only what eager mode would save is kept or read, so that the same writes in
 * place are errors; where the forward part writes memory, nothing is computed again.
 * *kept is new, from td_malloc. */
td_status td_split_choose(const td_joint *joint, int *nkept, td_kept **kept) TD_MUST_CHECK;

/* The forward part: its outputs, then those kept that were made (TD_KEPT_MADE), in their order. Its
 * inputs are the script's, then the joint graph's numbers. */
td_status td_split_forward(const td_joint *joint, int nkept, const td_kept *kept,
                           td_ir_graph **out) TD_MUST_CHECK;

/* The backward part: inputs are the gradients that come in, all that is kept, and the numbers;
 * outputs are the gradients that there are of the inputs, then of the captured tensors. EINTERNAL:
 * it reads what can't be had from what is kept. */
td_status td_split_backward(const td_joint *joint, int nkept, const td_kept *kept,
                            td_ir_graph **out) TD_MUST_CHECK;

#endif
