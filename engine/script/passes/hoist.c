/* hoist.c: what is the same in every trip of a loop is computed once, before it.
 *
 * What may fail is moved only where the loop surely runs and nothing before it in the body acts or
 * may fail, so that the first thing to go wrong is the same as it was.
 */
#include "engine/script/passes/alias.h"
#include "engine/script/passes/fails.h"
#include "engine/script/passes/node_infer.h"
#include "engine/script/passes/passes.h"

static bool surely_runs(const td_ir_node *loop) {
    const td_value *trips = td_ir_constant_of(loop->inputs[0]);
    const td_value *condition = td_ir_constant_of(loop->inputs[1]);
    return trips && trips->kind == TD_KIND_INT && trips->i > 0 && condition &&
           condition->kind == TD_KIND_BOOL && condition->b;
}

/* Is all that a node reads made before the loop, and written by none of its trips? */
static bool is_invariant(const td_alias_info *a, const td_ir_node *loop, const td_ir_node *node) {
    for (int k = 0; k < node->ninputs; k++)
        if (node->inputs[k]->block == node->block || td_alias_writes(a, loop, node->inputs[k]))
            return false;
    return true;
}

/* Each trip's own results become one for all. */
static bool may_be_one(const td_alias_info *a, const td_ir_node *node) {
    for (int k = 0; k < node->noutputs; k++)
        if (td_alias_is_written(a, node->outputs[k]) || td_alias_leaves(a, node->outputs[k]))
            return false;
    return true;
}

static void hoist_from(const td_alias_info *a, td_ir_node *loop, td_pass_note *note) {
    td_ir_block *body = loop->blocks[0];
    bool first = surely_runs(loop); /* nothing before it has acted or could have failed */
    for (td_ir_node *node = body->first, *next; node; node = next) {
        next = node->next;
        bool fails = td_node_may_fail(node), acts = td_node_acts(node);
        bool known = node->kind == TD_IR_OPERATOR || node->kind == TD_IR_CONSTANT ||
                     node->kind == TD_IR_LIST_CONSTRUCT || node->kind == TD_IR_SCALAR ||
                     node->kind == TD_IR_TUPLE_INDEX || node->kind == TD_IR_FUSION_GROUP;
        if (known && !acts && (!fails || first) && is_invariant(a, loop, node) &&
            (node->kind == TD_IR_CONSTANT || may_be_one(a, node))) {
            if (node->kind != TD_IR_CONSTANT)
                td_pass_say(note, node, "is the same in every trip");
            td_ir_move_before(node, loop);
            continue; /* it fails before the loop as it did within */
        }
        first &= !fails && !acts;
    }
}

static void hoist(const td_alias_info *a, td_ir_block *block, td_pass_note *note) {
    for (td_ir_node *node = block->first; node; node = node->next) {
        for (int b = 0; b < node->nblocks; b++)
            hoist(a, node->blocks[b], note);
        if (node->kind == TD_IR_LOOP)
            hoist_from(a, node, note);
    }
}

td_status td_pass_hoist(td_ir_graph *g, td_pass_note *note) {
    td_alias_info *a;
    td_status status = td_alias_new(g, &a);
    if (status == TD_OK)
        hoist(a, g->block, note);
    td_alias_free(a);
    return status ? status : td_ir_status(g);
}
