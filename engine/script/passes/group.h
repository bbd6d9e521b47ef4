/* group.h: nodes of a block become one node, whose graph has them.
 *
 * A group is gathered from a node on: one that stands further on joins where it can be moved up to
 * the others, past nodes that it doesn't read, that don't write what it reads, and whose errors it
 * can't come before. Which nodes belong together is the caller's.
 */
#ifndef TD_SCRIPT_PASSES_GROUP_H
#define TD_SCRIPT_PASSES_GROUP_H

#include "engine/script/passes/alias.h"
#include "engine/script/passes/note.h"

enum { TD_GROUP_NODES = 32, TD_GROUP_ENDS = 24 }; /* of its inputs, and of its outputs */

/* Nodes in their order; {.n = 0} begins one. Inputs are the tensors that they read and don't make.
 */
typedef struct td_group {
    td_ir_node *nodes[TD_GROUP_NODES];
    int n;
    td_ir_value *inputs[TD_GROUP_ENDS];
    int ninputs;
} td_group;

/* Is a value made, or read, by one of the nodes? */
bool td_group_makes(const td_group *g, const td_ir_value *value);
bool td_group_reads(const td_group *g, const td_ir_value *value);
/* One node more, behind the others. False, and nothing changes: there would be too many nodes or
 * inputs. */
bool td_group_add(td_group *g, td_ir_node *node);

/* Does a node belong to what is gathered so far (at first to none)? */
typedef bool (*td_group_fits)(const td_group *g, const td_ir_node *node, const void *ctx);
/* The group that begins with a node, all of it moved up behind that. It has no nodes where the
 * first does not fit. `raise`: what members read of nodes that were stepped over is moved before
 * the group where it can stand there. */
void td_group_gather(const td_alias_info *a, td_ir_node *first, td_group_fits fits, const void *ctx,
                     bool raise, td_group *g);

/* Put a prim::FusionGroup in the place of the last node, whose outputs are those that others read,
 * and take the nodes away. *made is NULL, and nothing changes, where none of them is read or too
 * many are. ENOMEM. */
td_status td_group_make(const td_group *g, td_ir_node **made) TD_MUST_CHECK;

/* Constants first in a block, so that they do not part what belongs together. */
void td_raise_constants(td_ir_block *block);

#endif
