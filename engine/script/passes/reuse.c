/* reuse.c: a pointwise result is written into the memory of an argument that nobody reads any more.
 */
#include "engine/script/passes/alias.h"
#include "engine/script/passes/fails.h"
#include "engine/script/passes/node_infer.h"
#include "engine/script/passes/passes.h"

#include <string.h>

/* Does a node stand behind another of the same block, or within one that does? */
static bool stands_behind(const td_ir_node *node, const td_ir_node *other) {
    while (node && node->block != other->block)
        node = node->block->owner;
    for (; node; node = node->previous)
        if (node == other)
            return true;
    return false;
}

/* Is a value read by no other node from this one on? */
static bool ends_with(const td_ir_value *value, const td_ir_node *node) {
    int reads = 0;
    for (const td_ir_use *use = value->uses; use; use = use->next) {
        if (!use->node)
            return false;
        if (use->node == node)
            reads++;
        else if (stands_behind(use->node, node))
            return false;
    }
    return reads == 1;
}

/* Is its memory shared by no other value that holds memory in any block? */
static bool is_alone(const td_alias_info *a, const td_ir_block *block, const td_ir_value *value) {
    for (int k = 0; k < block->ninputs; k++)
        if (td_alias_holds_memory(block->inputs[k]) && td_alias_shares(a, block->inputs[k], value))
            return false;
    for (const td_ir_node *node = block->first; node; node = node->next) {
        for (int k = 0; k < node->noutputs; k++)
            if (node->outputs[k] != value && td_alias_holds_memory(node->outputs[k]) &&
                td_alias_shares(a, node->outputs[k], value))
                return false;
        for (int b = 0; b < node->nblocks; b++)
            if (!is_alone(a, node->blocks[b], value))
                return false;
    }
    return true;
}

/* What is made anew by the call that makes it. */
static bool is_own(const td_ir_value *value) {
    const td_ir_node *node = value->node;
    if (!node || value->type->requires_grad == 1)
        return false;
    if (node->kind == TD_IR_FUSION_GROUP)
        return true;
    return node->kind == TD_IR_OPERATOR && (node->op->pointwise || node->op->kernel) &&
           !(node->op->flags & TD_OP_VIEW);
}

static bool same_layout(const td_ir_type *a, const td_ir_type *b) {
    return td_ir_type_is_whole(a) && td_ir_type_is_whole(b) && a->dtype == b->dtype &&
           a->n == b->n && td_device_same(a->device, b->device) &&
           (!a->n || !memcmp(a->sizes, b->sizes, sizeof *a->sizes * (size_t)a->n)) &&
           td_ir_type_is_contiguous(a) && td_ir_type_is_contiguous(b);
}

/* The analysis is of the graph before: what was written over by an argument's own memory is dead.
 */
static bool may_overwrite(const td_alias_info *a, const td_ir_graph *g, const td_ir_node *node) {
    const td_ir_value *x = node->ninputs ? node->inputs[0] : NULL;
    if (node->kind != TD_IR_OPERATOR || node->inplace || !node->op->pointwise ||
        !node->op->inplace_name || node->noutputs != 1 || !x || x->block != node->block ||
        node->outputs[0]->type->requires_grad == 1 || !is_own(x) ||
        !same_layout(x->type, node->outputs[0]->type) || !ends_with(x, node))
        return false;
    return !td_node_may_fail(node) && /* the error would name another operator */
           !td_alias_comes_in(a, x) && !td_alias_leaves(a, x) && is_alone(a, g->block, x);
}

static void reuse(const td_alias_info *a, const td_ir_graph *g, td_ir_block *block,
                  td_pass_note *note) {
    for (td_ir_node *node = block->first; node; node = node->next) {
        for (int b = 0; b < node->nblocks; b++)
            reuse(a, g, node->blocks[b], note);
        if (may_overwrite(a, g, node)) {
            td_pass_say(note, node, "is written over %%%s", node->inputs[0]->name);
            node->inplace = true;
        }
    }
}

td_status td_pass_reuse(td_ir_graph *g, td_pass_note *note) {
    td_alias_info *a;
    td_status status = td_alias_new(g, &a);
    if (status == TD_OK)
        reuse(a, g, g->block, note);
    td_alias_free(a);
    return status ? status : td_ir_status(g);
}
