/* fails.h: what a node does besides making its outputs. */
#ifndef TD_SCRIPT_PASSES_FAILS_H
#define TD_SCRIPT_PASSES_FAILS_H

#include "engine/script/ir.h"

/* Does a node, or one in its blocks, write an argument, draw random numbers, or do what is seen
 * outside of the graph? Such nodes stay, and stay in their order. */
bool td_node_acts(const td_ir_node *node);
/* May it fail, or not come to an end? That it does not is proved from types: all of its arguments
 * are known but for their elements, its operator takes them, and it refuses no elements. Lack of
 * memory and interruptions are not counted. Nodes that may fail keep their order, so that it is
 * always the same error that is seen. */
bool td_node_may_fail(const td_ir_node *node);
/* May this operator give other results for the same arguments? */
bool td_op_is_random(const td_op *op);

#endif
