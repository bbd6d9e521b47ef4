/* inline.c: calls of graphs give way to the nodes of these. Functions that call themselves stay,
 * and long ones. */
#include "engine/script/passes/copy.h"
#include "engine/script/passes/edit.h"
#include "engine/script/passes/passes.h"

enum { MOST_NODES = 200, MOST_CALLS = 500 }; /* of a function; calls that are replaced in all */

static bool calls(const td_ir_block *block, const td_ir_graph *g) {
    for (const td_ir_node *node = block->first; node; node = node->next) {
        if (node->subgraph == g)
            return true;
        for (int b = 0; b < node->nblocks; b++)
            if (calls(node->blocks[b], g))
                return true;
    }
    return false;
}

/* A call's own place is told where the function's nodes have none. */
static void place_nodes(td_ir_node *first, const td_ir_node *end, td_ir_place place) {
    for (td_ir_node *node = first; node && node != end; node = node->next) {
        if (!node->place.file)
            node->place = place;
        for (int b = 0; b < node->nblocks; b++)
            place_nodes(node->blocks[b]->first, NULL, place);
    }
}

static td_ir_node *inline_call(td_ir_node *call, td_pass_note *note) {
    const td_ir_block *from = call->subgraph->block;
    td_ir_block *block = call->block;
    td_ir_node *before = block->last, *first = NULL;
    td_copier c = {.graph = block->graph};
    td_pass_say(note, call, "the call gives way to %d nodes", td_edit_count(from));
    for (int k = 0; k < from->ninputs; k++)
        td_copier_set(&c, from->inputs[k], call->inputs[k]);
    td_copier_copy_nodes(&c, block, from);
    place_nodes(before->next, NULL, call->place);
    for (td_ir_node *node = before->next, *next; node; node = next) {
        next = node->next;
        first = first ? first : node;
        td_ir_move_before(node, call);
    }
    for (int k = 0; k < call->noutputs && !c.graph->failed; k++)
        td_ir_replace(call->outputs[k], td_copier_get(&c, from->outputs[k]));
    td_copier_clear(&c);
    td_ir_node *next = first ? first : call->next; /* calls within it are next */
    if (!block->graph->failed)
        td_ir_remove(call);
    return next;
}

static void inline_block(td_ir_block *block, td_pass_note *note) {
    for (td_ir_node *node = block->first, *next; node && !block->graph->failed; node = next) {
        next = node->next;
        for (int b = 0; b < node->nblocks; b++)
            inline_block(node->blocks[b], note);
        if (node->kind == TD_IR_CALL && node->subgraph != block->graph &&
            note->changes < MOST_CALLS && td_edit_count(node->subgraph->block) <= MOST_NODES &&
            !calls(node->subgraph->block, node->subgraph) &&
            !calls(node->subgraph->block, block->graph))
            next = inline_call(node, note);
    }
}

td_status td_pass_inline(td_ir_graph *g, td_pass_note *note) {
    inline_block(g->block, note);
    return td_ir_status(g);
}
