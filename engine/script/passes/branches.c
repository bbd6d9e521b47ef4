/* branches.c: branches on constants, and loops that don't run, give way to what they come to. */
#include "engine/script/passes/edit.h"
#include "engine/script/passes/node_infer.h"
#include "engine/script/passes/passes.h"

/* A block's nodes stand in the place of the node that it is of. */
static void take_block(td_ir_node *node, td_ir_block *taken) {
    for (int k = 0; k < node->noutputs; k++)
        td_ir_replace(node->outputs[k], taken->outputs[k]);
    td_edit_splice(taken);
    td_ir_remove(node);
}

static void take_branch(td_ir_node *node, bool truth, td_pass_note *note) {
    td_pass_say(note, node, "the condition is always %s", truth ? "true" : "false");
    take_block(node, node->blocks[truth ? 0 : 1]);
}

/* Does a block run in the modes that hold around it? Not where casts are kept for it. */
static bool changes_nothing(const td_ir_node *node, const td_modes *before,
                            const td_modes *within) {
    if (!node->blocks[0]->first)
        return true;
    return before->grad_disabled == within->grad_disabled &&
           before->inference == within->inference && !within->casting && !before->casting;
}

/* Does a loop run no trip, whatever is given? */
static bool never_runs(const td_ir_node *node) {
    const td_value *trips = td_ir_constant_of(node->inputs[0]);
    const td_value *condition = td_ir_constant_of(node->inputs[1]);
    return (trips && trips->kind == TD_KIND_INT && trips->i <= 0) ||
           (condition && condition->kind == TD_KIND_BOOL && !condition->b);
}

static void simplify(td_ir_block *block, td_pass_note *note) {
    for (td_ir_node *node = block->first, *next; node; node = next) {
        td_modes before = td_ir_enter(node), within = td_get_modes();
        for (int b = 0; b < node->nblocks; b++)
            simplify(node->blocks[b], note);
        td_set_modes(before);
        next = node->next;
        const td_value *condition =
            node->kind == TD_IR_IF ? td_ir_constant_of(node->inputs[0]) : NULL;
        if (condition && condition->kind == TD_KIND_BOOL)
            take_branch(node, condition->b, note);
        else if (node->kind == TD_IR_LOOP && never_runs(node)) {
            td_pass_say(note, node, "the loop never runs");
            for (int k = 0; k < node->noutputs; k++)
                td_ir_replace(node->outputs[k], node->inputs[k + 2]);
            td_ir_remove(node);
        } else if (node->kind == TD_IR_WITH && changes_nothing(node, &before, &within)) {
            td_pass_say(note, node, "the mode holds anyway");
            take_block(node, node->blocks[0]);
        }
    }
}

td_status td_pass_branches(td_ir_graph *g, td_pass_note *note) {
    simplify(g->block, note);
    return td_ir_status(g);
}
