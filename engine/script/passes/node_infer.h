/* node_infer.h: what an operator of a graph makes, from the types of what it is given. */
#ifndef TD_SCRIPT_PASSES_NODE_INFER_H
#define TD_SCRIPT_PASSES_NODE_INFER_H

#include "engine/script/ir.h"

/* What is known of a node's results. */
typedef struct td_inferred {
    bool exact;   /* all of its arguments are known but for elements, and with these it is not
                     refused */
    bool numbers; /* the same, but for the values of numbers, which make no other shape or dtype */
    int n; /* tensors that it makes (entries of its list, where it makes one); -1: not known */
    const td_ir_type *types[TD_MAX_RESULTS]; /* of the first of them; NULL: nothing is known */
} td_inferred;

/* Is all known of a tensor of this type but its elements: dtype, device, sizes and strides? */
bool td_ir_type_is_whole(const td_ir_type *type);
/* Such a tensor lies row-major without gaps. */
bool td_ir_type_is_contiguous(const td_ir_type *type);
/* Elements of one, all sizes being known; and its bytes. */
int64_t td_ir_type_elements(const td_ir_type *type);
int64_t td_ir_type_bytes(const td_ir_type *type);

/* The value that is a constant's; NULL: it is none. */
const td_value *td_ir_constant_of(const td_ir_value *value);
/* Is it a constant that is an integer or a float? */
bool td_ir_number_of(const td_ir_value *value, double *number);

/* Infer an operator node, by the rules of operators (calls/infer.h) under this thread's modes.
 * Types are made in `g`; NULL: only `exact` and `n` are wanted. Where sizes are not known several
 * are tried, and what is the same for all is known of the results. */
void td_infer_node(td_ir_graph *g, const td_ir_node *node, td_inferred *out);

#endif
