/* alias.h: which values of a graph may share memory, and who writes it.
 *
 * An analysis of a graph as it stands: it holds while values are replaced under
 * td_alias_may_replace, and until anything else is rewritten. What it does not know it assumes: the
 * inputs and captured tensors of a graph may all share memory with one another, and what is made
 * after the analysis with everything.
 */
#ifndef TD_SCRIPT_PASSES_ALIAS_H
#define TD_SCRIPT_PASSES_ALIAS_H

#include "engine/script/ir.h"

typedef struct td_alias_info td_alias_info;

/* New, of a graph, which is borrowed; ENOMEM. */
td_status td_alias_new(const td_ir_graph *g, td_alias_info **out) TD_MUST_CHECK;
void td_alias_free(td_alias_info *a); /* NULL is fine */

/* Does a value hold tensors, or may it be changed otherwise (lists)? Others share nothing. */
bool td_alias_holds_memory(const td_ir_value *value);
/* May two values share memory? A list shares that of its entries. */
bool td_alias_shares(const td_alias_info *a, const td_ir_value *x, const td_ir_value *y);
/* A number that values have in common which share memory, below td_alias_classes; -1: not known. */
int td_alias_class(const td_alias_info *a, const td_ir_value *x);
int td_alias_classes(const td_alias_info *a);
/* Does some node of the graph write the memory of a value? */
bool td_alias_is_written(const td_alias_info *a, const td_ir_value *x);
/* Does a node, or one in its blocks, write anything; and the memory of this value? */
bool td_alias_node_writes(const td_ir_node *node);
bool td_alias_writes(const td_alias_info *a, const td_ir_node *node, const td_ir_value *x);
/* May an output of the graph share memory with a value, or an input or captured tensor? */
bool td_alias_leaves(const td_alias_info *a, const td_ir_value *x);
bool td_alias_comes_in(const td_alias_info *a, const td_ir_value *x);

/* May whoever reads `from` read `to` instead, which at that place has the same elements, dtype,
 * shape and strides? Not where a write to one would be seen through the other then and was not
 * before, during the run or, through what leaves the graph, after it. `view`: the caller knows that
 * both lie in one memory as it is (that values may share memory is no proof of it). */
bool td_alias_may_replace(const td_alias_info *a, const td_ir_value *from, const td_ir_value *to,
                          bool view);
/* Tell the analysis that `from` was replaced; `to` may be new, and is known from then on. */
void td_alias_join(td_alias_info *a, const td_ir_value *from, const td_ir_value *to);

#endif
