/* common.c: common subexpressions: what was computed before is not computed again.
 *
 * A block is walked with a list of the nodes that were met in it and in the blocks around it. Where
 * something is written, what reads that is taken off the list.
 */
#include "engine/core/memory.h"
#include "engine/script/boxes.h"
#include "engine/script/passes/alias.h"
#include "engine/script/passes/fails.h"
#include "engine/script/passes/node_infer.h"
#include "engine/script/passes/passes.h"

#include <string.h>

typedef struct walker {
    td_alias_info *alias;
    td_pass_note *note;
    td_ir_node **nodes; /* that may stand for others */
    int n, room;
    td_status status;
} walker;

/* Equal to the last bit: -0.0 is not 0.0, and one NaN is another only if it looks the same. */
static bool same_constant(const td_value *a, const td_value *b) {
    if (a->kind != b->kind || a->from_one != b->from_one)
        return false;
    if (a->kind == TD_VALUE_QUANTIZED_DTYPE)
        return a->dtype == b->dtype;
    switch ((td_kind)a->kind) {
    case TD_KIND_NIL:
        return true;
    case TD_KIND_TENSOR:
        return a->tensor == b->tensor;
    case TD_KIND_INT:
        return a->i == b->i;
    case TD_KIND_FLOAT:
        return !memcmp(&a->f, &b->f, sizeof a->f);
    case TD_KIND_BOOL:
        return a->b == b->b;
    case TD_KIND_INTS:
    case TD_KIND_FLOATS:
        return a->n == b->n && (!a->n || !memcmp(a->ints, b->ints, 8 * (size_t)a->n));
    case TD_KIND_DTYPE:
        return a->dtype == b->dtype;
    case TD_KIND_DEVICE:
        return td_device_same(a->device, b->device);
    case TD_KIND_STRING:
        return !strcmp(a->string, b->string);
    case TD_KIND_TENSORS:
    case TD_KIND_GENERATOR:
        break;
    }
    return false;
}

static bool may_be_shared(const td_ir_node *node) {
    if (node->kind == TD_IR_CONSTANT)
        return true;
    if (node->kind == TD_IR_LIST_CONSTRUCT || node->kind == TD_IR_TUPLE_CONSTRUCT)
        return true;
    return (node->kind == TD_IR_OPERATOR || node->kind == TD_IR_SCALAR ||
            node->kind == TD_IR_TUPLE_INDEX) &&
           !td_node_acts(node);
}

static bool are_equal(const td_ir_node *a, const td_ir_node *b) {
    if (a->kind != b->kind || a->op != b->op || a->scalar != b->scalar ||
        a->ninputs != b->ninputs || a->noutputs != b->noutputs)
        return false;
    for (int k = 0; k < a->ninputs; k++)
        if (a->inputs[k] != b->inputs[k])
            return false;
    for (int k = 0; k < a->noutputs; k++)
        if (a->outputs[k]->type->kind != b->outputs[k]->type->kind)
            return false;
    return a->kind != TD_IR_CONSTANT ||
           (same_constant(&a->constant, &b->constant) &&
            td_ir_type_equal(a->outputs[0]->type, b->outputs[0]->type));
}

static bool may_stand_for(const walker *w, const td_ir_node *first, const td_ir_node *node) {
    bool view = node->kind == TD_IR_OPERATOR && node->op->flags & (TD_OP_VIEW | TD_OP_TURNS);
    for (int k = 0; k < node->noutputs; k++)
        if (!td_alias_may_replace(w->alias, node->outputs[k], first->outputs[k], view))
            return false;
    return true;
}

static void remember(walker *w, td_ir_node *node) {
    if (w->n == w->room) {
        int room = w->room ? 2 * w->room : 64;
        td_ir_node **larger = td_realloc(w->nodes, sizeof *larger * (size_t)room);
        if (!larger) {
            w->status = td_fail(TD_ENOMEM, "out of memory for a pass");
            return;
        }
        w->nodes = larger;
        w->room = room;
    }
    w->nodes[w->n++] = node;
}

/* What a node writes is not any more what the nodes on the list have read. */
static void forget_written(walker *w, const td_ir_node *node) {
    int n = 0;
    if (!td_alias_node_writes(node))
        return;
    for (int k = 0; k < w->n; k++) {
        bool written = false;
        for (int j = 0; j < w->nodes[k]->ninputs; j++)
            written |= td_alias_writes(w->alias, node, w->nodes[k]->inputs[j]);
        if (!written)
            w->nodes[n++] = w->nodes[k];
    }
    w->n = n;
}

/* In another mode the same operators make other tensors, or have another history. */
static void forget_operators(walker *w) {
    int n = 0;
    for (int k = 0; k < w->n; k++)
        if (w->nodes[k]->kind != TD_IR_OPERATOR)
            w->nodes[n++] = w->nodes[k];
    w->n = n;
}

static bool replace(walker *w, td_ir_node *node) {
    for (int k = w->n - 1; k >= 0; k--) {
        td_ir_node *first = w->nodes[k];
        if (!are_equal(first, node) || !may_stand_for(w, first, node))
            continue;
        if (node->kind != TD_IR_CONSTANT)
            td_pass_say(w->note, node, "is %%%s, which was computed before",
                        first->outputs[0]->name);
        for (int j = 0; j < node->noutputs; j++) {
            td_alias_join(w->alias, node->outputs[j], first->outputs[j]);
            td_ir_replace(node->outputs[j], first->outputs[j]);
        }
        td_ir_remove(node);
        return true;
    }
    return false;
}

static void walk_blocks(walker *w, const td_ir_node *node);

static void walk(walker *w, td_ir_block *block) {
    for (td_ir_node *node = block->first, *next; node && w->status == TD_OK; node = next) {
        next = node->next;
        if (node->nblocks)
            walk_blocks(w, node);
        else if (may_be_shared(node) && node->noutputs) {
            if (!replace(w, node))
                remember(w, node);
        }
        if (node->block)
            forget_written(w, node);
    }
}

/* What blocks compute is not seen behind them. Whatever a loop writes is written before its second
 * trip reads. */
static void walk_blocks(walker *w, const td_ir_node *node) {
    if (node->kind == TD_IR_LOOP)
        forget_written(w, node);
    for (int b = 0; b < node->nblocks && w->status == TD_OK; b++) {
        int n = w->n;
        td_ir_node **kept = td_malloc(sizeof *kept * (size_t)(n + 1));
        if (!kept) {
            w->status = td_fail(TD_ENOMEM, "out of memory for a pass");
            return;
        }
        if (n)
            memcpy(kept, w->nodes, sizeof *kept * (size_t)n);
        if (node->kind == TD_IR_WITH)
            forget_operators(w);
        walk(w, node->blocks[b]);
        if (n)
            memcpy(w->nodes, kept, sizeof *kept * (size_t)n);
        w->n = n;
        td_free(kept);
    }
}

td_status td_pass_common(td_ir_graph *g, td_pass_note *note) {
    walker w = {.note = note};
    td_status status = td_alias_new(g, &w.alias);
    if (status == TD_OK) {
        walk(&w, g->block);
        status = w.status;
    }
    td_alias_free(w.alias);
    td_free(w.nodes);
    return status ? status : td_ir_status(g);
}
