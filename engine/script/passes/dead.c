/* dead.c: dead code. What nobody reads goes, unless it acts or may fail: errors stay. */
#include "engine/script/passes/edit.h"
#include "engine/script/passes/fails.h"
#include "engine/script/passes/passes.h"

static bool is_read(const td_ir_node *node) {
    for (int k = 0; k < node->noutputs; k++)
        if (node->outputs[k]->uses)
            return true;
    return false;
}

/* Is a carried value read by nothing but the next trip's hand-over of itself? */
static bool is_idle(const td_ir_node *loop, int k) {
    const td_ir_block *body = loop->blocks[0];
    for (const td_ir_use *use = body->inputs[k + 1]->uses; use; use = use->next)
        if (use->node || use->block != body || use->index != k + 1)
            return false;
    return !loop->outputs[k]->uses;
}

static void sweep_ends(td_ir_node *node, td_pass_note *note) {
    for (int k = node->noutputs - 1; k >= 0; k--) {
        bool branches = node->kind == TD_IR_IF || node->kind == TD_IR_WITH;
        if (branches && !node->outputs[k]->uses) {
            td_pass_say(note, node, "output %%%s of the block is read by nobody",
                        node->outputs[k]->name);
            td_edit_drop_block_output(node, k);
        } else if (node->kind == TD_IR_LOOP && is_idle(node, k)) {
            td_pass_say(note, node, "%%%s, which the loop carries, is read by nobody",
                        node->outputs[k]->name);
            td_edit_drop_carried(node, k);
        }
    }
}

/* From the last to the first, so that one walk finds what is read by dead nodes alone. */
static void sweep(td_ir_block *block, td_pass_note *note) {
    for (td_ir_node *node = block->last, *before; node; node = before) {
        before = node->previous;
        sweep_ends(node, note);
        for (int b = 0; b < node->nblocks; b++)
            sweep(node->blocks[b], note);
        if (is_read(node) || td_node_acts(node) || td_node_may_fail(node))
            continue;
        if (node->kind != TD_IR_CONSTANT)
            td_pass_say(note, node, "is read by nobody");
        td_ir_remove(node);
    }
}

td_status td_pass_dead(td_ir_graph *g, td_pass_note *note) {
    int before;
    do {
        before = note->changes;
        sweep(g->block, note);
    } while (note->changes != before && !g->failed);
    return td_ir_status(g);
}
