/* dead.c: dead code. */
#include "engine/script/passes/passes.h"

/* Does it do more than make its outputs: write an argument, draw numbers, refuse elements? */
static bool acts(const td_ir_node *node) {
    if (node->kind == TD_IR_OPERATOR)
        return node->inplace || !node->noutputs ||
               node->op->flags & (TD_OP_INPLACE_ONLY | TD_OP_RANDOM | TD_OP_REFUSES);
    for (int b = 0; b < node->nblocks; b++)
        for (const td_ir_node *inner = node->blocks[b]->first; inner; inner = inner->next)
            if (acts(inner))
                return true;
    return false;
}

static bool is_read(const td_ir_node *node) {
    for (int k = 0; k < node->noutputs; k++)
        if (node->outputs[k]->uses)
            return true;
    return false;
}

static void sweep(td_ir_block *block) {
    for (td_ir_node *node = block->last, *before; node; node = before) {
        before = node->previous;
        for (int b = 0; b < node->nblocks; b++)
            sweep(node->blocks[b]);
        if (!is_read(node) && !acts(node))
            td_ir_remove(node);
    }
}

td_status td_pass_dead(td_ir_graph *g) {
    sweep(g->block);
    return td_ir_status(g);
}
