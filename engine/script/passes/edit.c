/* edit.c: nodes and blocks lose ends. Where an entry of a list goes, the uses behind it move up. */
#include "engine/script/passes/edit.h"
#include "engine/script/scalars.h"

#include <string.h>

/* Uses are found by their index, which goes down by one from k on. */
static void move_uses(td_ir_node *node, int k) {
    for (int j = k; j < node->ninputs; j++)
        for (td_ir_use *use = node->inputs[j]->uses; use; use = use->next)
            if (use->node == node && use->index == j + 1) {
                use->index = j;
                break;
            }
}

static void drop_input(td_ir_node *node, int k) {
    td_ir_value *value = node->inputs[k];
    for (td_ir_use **at = &value->uses; *at; at = &(*at)->next)
        if ((*at)->node == node && (*at)->index == k) {
            *at = (*at)->next;
            break;
        }
    for (int j = k; j + 1 < node->ninputs; j++)
        node->inputs[j] = node->inputs[j + 1];
    node->ninputs--;
    move_uses(node, k);
}

static void drop_output(td_ir_node *node, int k) {
    for (int j = k; j + 1 < node->noutputs; j++)
        node->outputs[j] = node->outputs[j + 1];
    node->noutputs--;
}

static void drop_block_output(td_ir_block *block, int k) {
    int n = 0;
    td_ir_value **rest = td_ir_alloc(block->graph, sizeof *rest * (size_t)(block->noutputs + 1));
    if (!rest)
        return;
    for (int j = 0; j < block->noutputs; j++)
        if (j != k)
            rest[n++] = block->outputs[j];
    td_ir_set_outputs(block, n, rest);
}

void td_edit_drop_block_output(td_ir_node *node, int k) {
    drop_output(node, k);
    for (int b = 0; b < node->nblocks; b++)
        drop_block_output(node->blocks[b], k);
}

void td_edit_drop_carried(td_ir_node *loop, int k) {
    td_ir_block *body = loop->blocks[0];
    drop_block_output(body, k + 1);
    for (int j = k + 1; j + 1 < body->ninputs; j++)
        body->inputs[j] = body->inputs[j + 1];
    body->ninputs--;
    drop_input(loop, k + 2);
    drop_output(loop, k);
}

void td_edit_splice(td_ir_block *block) {
    for (td_ir_node *node = block->first, *next; node; node = next) {
        next = node->next;
        td_ir_move_before(node, block->owner);
    }
}

td_ir_value *td_edit_constant_before(td_ir_node *node, td_value constant) {
    td_ir_value *value = td_ir_add_constant(node->block, constant);
    if (value)
        td_ir_move_before(value->node, node);
    return value;
}

int td_edit_count(const td_ir_block *block) {
    int n = 0;
    for (const td_ir_node *node = block->first; node; node = node->next) {
        n += node->kind != TD_IR_CONSTANT;
        for (int b = 0; b < node->nblocks; b++)
            n += td_edit_count(node->blocks[b]);
    }
    return n;
}

bool td_list_is_only_read(const td_ir_value *list) {
    for (const td_ir_use *use = list->uses; use; use = use->next) {
        bool scalar = use->node && use->node->kind == TD_IR_SCALAR;
        if (!(use->node && use->node->kind == TD_IR_LIST_UNPACK) &&
            !(scalar && use->node->scalar->acts != TD_SCALAR_WRITES &&
              strchr("ei", use->node->scalar->result)))
            return false;
    }
    return true;
}
