/* order.h: how much memory a graph holds while it runs. */
#ifndef TD_SCRIPT_PASSES_ORDER_H
#define TD_SCRIPT_PASSES_ORDER_H

#include "engine/script/ir.h"

/* The most bytes that tensors which the graph makes hold at one time, each from the node that makes
 * it to the last that reads it or what shares its memory; inputs and captured tensors are not
 * counted, nor what an operator needs within. -1: a size is not known. And how many pieces of
 * memory its nodes make, each counted once however often it runs. ENOMEM. */
td_status td_ir_count_memory(const td_ir_graph *g, int64_t *bytes, int *pieces) TD_MUST_CHECK;

#endif
