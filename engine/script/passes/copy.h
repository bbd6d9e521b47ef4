/* copy.h: copies of nodes, within a graph and from one to another. */
#ifndef TD_SCRIPT_PASSES_COPY_H
#define TD_SCRIPT_PASSES_COPY_H

#include "engine/script/ir.h"

/* Which value stands for which. {.graph = target} begins one, td_copier_clear ends it. */
typedef struct td_copier {
    td_ir_graph *graph; /* that the copies are of */
    td_map values;
} td_copier;

/* From now on `to` stands for `from` in copies; the last word counts. */
void td_copier_set(td_copier *c, const td_ir_value *from, td_ir_value *to);
/* What stands for a value; the value itself where it is of the same graph and nothing does; NULL:
 * of another graph, and nothing does. */
td_ir_value *td_copier_get(const td_copier *c, const td_ir_value *from);
/* A copy of a node at the end of a block, with its blocks; what it makes stands for what the node
 * made. */
td_ir_node *td_copier_copy(td_copier *c, td_ir_block *block, const td_ir_node *node);
/* Copies of all nodes of a block at the end of another; inputs must have been set. */
void td_copier_copy_nodes(td_copier *c, td_ir_block *block, const td_ir_block *from);
void td_copier_clear(td_copier *c);

/* A graph of its own, with the same names; constants and other graphs are held by both. A graph
 * that calls itself is what its copy calls. NULL: out of memory. */
td_ir_graph *td_ir_graph_copy(const td_ir_graph *g);

#endif
