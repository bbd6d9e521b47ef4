/* types.c: what is known of the inputs says what is known of all values. Types that stood at nodes
 * before are not believed: they may tell of other inputs. */
#include "engine/script/passes/edit.h"
#include "engine/script/passes/node_infer.h"
#include "engine/script/passes/passes.h"
#include "engine/script/scalars.h"

#include <stdio.h>
#include <string.h>

static bool is_tensor(const td_ir_value *value) {
    return value->type->kind == TD_IR_TENSOR;
}

static void set_type(td_ir_value *value, const td_ir_type *type, td_pass_note *note) {
    if (!type || td_ir_type_equal(value->type, type))
        return;
    if (note) {
        char text[256];
        td_pass_say(note, value->node, "%%%s is %s", value->name,
                    td_ir_type_text(type, text, sizeof text));
    }
    value->type = type;
}

/* What holds of a value whichever of two it is. */
static const td_ir_type *join_types(td_ir_graph *g, const td_ir_type *a, const td_ir_type *b) {
    if (td_ir_type_equal(a, b) || b->kind != TD_IR_TENSOR)
        return a;
    if (a->kind != TD_IR_TENSOR)
        return a;
    td_ir_type type = *a;
    int64_t sizes[TD_MAX_DIMS], strides[TD_MAX_DIMS];
    bool placed = a->placed && b->placed && td_device_same(a->device, b->device);
    bool strided = a->n == b->n && a->strides && b->strides;
    type.dtype = a->dtype == b->dtype ? a->dtype : TD_DTYPE_NONE;
    type.requires_grad = a->requires_grad == b->requires_grad ? a->requires_grad : TD_IR_UNKNOWN;
    type.placed = placed;
    type.n = a->n == b->n && a->n <= TD_MAX_DIMS ? a->n : TD_IR_UNKNOWN;
    type.sizes = type.strides = NULL;
    for (int d = 0; d < type.n; d++) {
        bool known = a->sizes && b->sizes && a->sizes[d] == b->sizes[d];
        sizes[d] = known ? a->sizes[d] : TD_IR_UNKNOWN;
        strides[d] = strided && a->strides[d] == b->strides[d] ? a->strides[d] : TD_IR_UNKNOWN;
        strided &= strides[d] != TD_IR_UNKNOWN;
    }
    if (type.n >= 0) {
        type.sizes = sizes;
        type.strides = strided ? strides : NULL;
    }
    return td_ir_type_copy(g, &type);
}

/* `note` is NULL while a loop's types are not settled yet. */
static void infer_block(td_ir_block *block, td_pass_note *note);

static void infer_operator(td_ir_node *node, td_pass_note *note) {
    td_inferred made;
    const td_op *op = node->op;
    if (op->result_type != TD_RESULT_TENSOR)
        return;
    td_infer_node(node->block->graph, node, &made);
    for (int k = 0; k < node->noutputs; k++)
        if (is_tensor(node->outputs[k]))
            set_type(node->outputs[k],
                     made.types[k] ? made.types[k] : td_ir_simple_type(TD_IR_TENSOR), note);
}

/* What is known of the first tensors that an operator makes as a list. */
static void infer_list(td_ir_graph *g, const td_ir_node *list, td_inferred *made) {
    *made = (td_inferred){.n = -1};
    if (list && list->kind == TD_IR_OPERATOR && list->op->result_type == TD_RESULT_TENSORS)
        td_infer_node(g, list, made);
}

static void infer_unpack(td_ir_node *node, td_pass_note *note) {
    const td_ir_node *list = node->inputs[0]->node;
    td_inferred made;
    if (node->typed)
        return;
    bool packed = list &&
                  (list->kind == TD_IR_LIST_CONSTRUCT || list->kind == TD_IR_TUPLE_CONSTRUCT) &&
                  list->ninputs == node->noutputs;
    infer_list(node->block->graph, list, &made);
    for (int k = 0; k < node->noutputs; k++) {
        const td_ir_type *type = packed                             ? list->inputs[k]->type
                                 : k < made.n && k < TD_MAX_RESULTS ? made.types[k]
                                                                    : NULL;
        if (is_tensor(node->outputs[k]) && (!type || type->kind == TD_IR_TENSOR))
            set_type(node->outputs[k], type ? type : td_ir_simple_type(TD_IR_TENSOR), note);
    }
}

/* An entry of a list that an operator makes: at a constant from 0, or from 1. */
static void infer_entry(td_ir_node *node, td_pass_note *note) {
    static const char *const names[] = {"__getitem__", "get_entry"};
    const td_ir_type *type = td_ir_simple_type(TD_IR_TENSOR);
    if (!is_tensor(node->outputs[0]))
        return;
    for (int from = 0; from < 2; from++) {
        const td_value *at = node->ninputs == 2 ? td_ir_constant_of(node->inputs[1]) : NULL;
        td_inferred made;
        if (!at || at->kind != TD_KIND_INT || strcmp(node->scalar->name, names[from]) != 0 ||
            !td_list_is_only_read(node->inputs[0]))
            continue;
        infer_list(node->block->graph, node->inputs[0]->node, &made);
        int64_t k = at->i - from;
        if (k >= 0 && k < made.n && k < TD_MAX_RESULTS && made.types[k])
            type = made.types[k];
    }
    set_type(node->outputs[0], type, note);
}

static void infer_if(td_ir_node *node, td_pass_note *note) {
    td_ir_block *const *blocks = node->blocks;
    for (int b = 0; b < 2; b++)
        infer_block(blocks[b], note);
    for (int k = 0; k < node->noutputs; k++)
        if (is_tensor(node->outputs[k]) && is_tensor(blocks[0]->outputs[k]) &&
            is_tensor(blocks[1]->outputs[k]))
            set_type(node->outputs[k],
                     join_types(node->block->graph, blocks[0]->outputs[k]->type,
                                blocks[1]->outputs[k]->type),
                     note);
}

/* What is carried is at first what comes in, and then what that and the body's outputs have in
 * common, until nothing changes any more. Each round something is forgotten, of which there is a
 * bounded amount; past a few rounds all is. */
static void infer_loop(td_ir_node *node, td_pass_note *note) {
    td_ir_block *body = node->blocks[0];
    td_ir_graph *g = node->block->graph;
    bool changed = true;
    for (int k = 0; k < node->noutputs; k++)
        if (is_tensor(body->inputs[k + 1]) && is_tensor(node->inputs[k + 2]))
            set_type(body->inputs[k + 1], node->inputs[k + 2]->type, NULL);
    for (int round = 0; changed && !g->failed; round++) {
        changed = false;
        infer_block(body, NULL);
        for (int k = 0; k < node->noutputs; k++) {
            td_ir_value *in = body->inputs[k + 1];
            if (!is_tensor(in) || !is_tensor(body->outputs[k + 1]))
                continue;
            const td_ir_type *type = round < 4 ? join_types(g, in->type, body->outputs[k + 1]->type)
                                               : td_ir_simple_type(TD_IR_TENSOR);
            if (type && !td_ir_type_equal(type, in->type) &&
                !td_ir_type_equal(in->type, body->outputs[k + 1]->type)) {
                in->type = type;
                changed = true;
            }
        }
    }
    infer_block(body, note);
    for (int k = 0; k < node->noutputs; k++)
        if (is_tensor(node->outputs[k]))
            set_type(node->outputs[k], body->inputs[k + 1]->type, note);
}

static void infer_with(td_ir_node *node, td_pass_note *note) {
    td_ir_block *body = node->blocks[0];
    td_modes before = td_ir_enter(node);
    infer_block(body, note);
    td_set_modes(before);
    for (int k = 0; k < node->noutputs; k++)
        if (is_tensor(node->outputs[k]) && is_tensor(body->outputs[k]))
            set_type(node->outputs[k], body->outputs[k]->type, note);
}

static void infer_node(td_ir_node *node, td_pass_note *note) {
    if (node->kind == TD_IR_OPERATOR)
        infer_operator(node, note);
    else if (node->kind == TD_IR_IF)
        infer_if(node, note);
    else if (node->kind == TD_IR_LOOP)
        infer_loop(node, note);
    else if (node->kind == TD_IR_WITH)
        infer_with(node, note);
    else if (node->kind == TD_IR_LIST_UNPACK || node->kind == TD_IR_TUPLE_UNPACK)
        infer_unpack(node, note);
    else if (node->kind == TD_IR_SCALAR && node->noutputs == 1)
        infer_entry(node, note);
    else if (node->kind != TD_IR_CONSTANT && node->kind != TD_IR_FUSION_GROUP)
        for (int k = 0; k < node->noutputs; k++)
            if (is_tensor(node->outputs[k]))
                set_type(node->outputs[k], td_ir_simple_type(TD_IR_TENSOR), note);
}

static void infer_block(td_ir_block *block, td_pass_note *note) {
    for (td_ir_node *node = block->first; node; node = node->next)
        infer_node(node, note);
}

td_status td_pass_types(td_ir_graph *g, td_pass_note *note) {
    infer_block(g->block, note);
    return td_ir_status(g);
}
