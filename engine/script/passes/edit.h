/* edit.h: taking ends off nodes and blocks, and blocks out of nodes. */
#ifndef TD_SCRIPT_PASSES_EDIT_H
#define TD_SCRIPT_PASSES_EDIT_H

#include "engine/script/ir.h"

/* A prim::If or prim::With without its k-th output, which nobody reads, and its blocks without
 * theirs. */
void td_edit_drop_block_output(td_ir_node *node, int k);
/* A loop without the k-th value that it carries: its output is not read, and its input in the body
 * by the body's own k-th output at most. */
void td_edit_drop_carried(td_ir_node *loop, int k);
/* The nodes of a block, before the node that the block is of; the block is empty then. */
void td_edit_splice(td_ir_block *block);
/* A constant before a node. */
td_ir_value *td_edit_constant_before(td_ir_node *node, td_value constant);
/* How many nodes there are in a block, those in blocks within it counted; constants are not. */
int td_edit_count(const td_ir_block *block);

/* Is nothing done with a list but that it is counted and its entries are read? */
bool td_list_is_only_read(const td_ir_value *list);

#endif
