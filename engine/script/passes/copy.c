/* copy.c: copies of nodes and graphs. Pairs of values lie in the memory of the graph that is
 * written. */
#include "engine/script/passes/copy.h"

#include "engine/core/memory.h"

#include <string.h>

typedef struct pair {
    const td_ir_value *from;
    td_ir_value *to;
} pair;

static bool is_of(const void *entry, const void *value) {
    return ((const pair *)entry)->from == value;
}

void td_copier_set(td_copier *c, const td_ir_value *from, td_ir_value *to) {
    pair *p = td_map_find(&c->values, td_hash_address(from), is_of, from);
    if (!p) {
        p = td_ir_alloc(c->graph, sizeof *p);
        if (!p || td_map_add(&c->values, td_hash_address(from), p)) {
            c->graph->failed = true;
            return;
        }
        p->from = from;
    }
    p->to = to;
}

td_ir_value *td_copier_get(const td_copier *c, const td_ir_value *from) {
    const pair *p = td_map_find(&c->values, td_hash_address(from), is_of, from);
    if (p)
        return p->to;
    return from->block->graph == c->graph ? (td_ir_value *)from : NULL;
}

static const td_ir_type *copy_type(const td_copier *c, const td_ir_value *value) {
    return value->block->graph == c->graph ? value->type : td_ir_type_copy(c->graph, value->type);
}

static void copy_block(td_copier *c, td_ir_node *copy, const td_ir_block *from) {
    td_ir_block *block = td_ir_add_block(copy);
    td_ir_value **outputs = td_ir_alloc(c->graph, sizeof *outputs * (size_t)(from->noutputs + 1));
    if (!block || !outputs)
        return;
    for (int k = 0; k < from->ninputs; k++)
        td_copier_set(c, from->inputs[k],
                      td_ir_add_input(block, copy_type(c, from->inputs[k]), from->inputs[k]->name));
    td_copier_copy_nodes(c, block, from);
    for (int k = 0; k < from->noutputs; k++)
        outputs[k] = td_copier_get(c, from->outputs[k]);
    td_ir_set_outputs(block, from->noutputs, outputs);
}

td_ir_node *td_copier_copy(td_copier *c, td_ir_block *block, const td_ir_node *node) {
    td_ir_graph *g = c->graph;
    td_ir_value **inputs = td_ir_alloc(g, sizeof *inputs * (size_t)(node->ninputs + 1));
    const td_ir_type **types = td_ir_alloc(g, sizeof *types * (size_t)(node->noutputs + 1));
    if (!block || !inputs || !types)
        return NULL;
    for (int k = 0; k < node->ninputs; k++)
        inputs[k] = td_copier_get(c, node->inputs[k]);
    for (int k = 0; k < node->noutputs; k++)
        types[k] = copy_type(c, node->outputs[k]);
    td_ir_node *copy =
        td_ir_append(block, (td_ir_kind)node->kind, node->ninputs, inputs, node->noutputs, types);
    if (!copy)
        return NULL;
    copy->inplace = node->inplace;
    copy->op = node->op;
    copy->scalar = node->scalar;
    copy->id = node->id;
    copy->typed = node->typed;
    copy->mode = node->mode;
    copy->subgraph = /* its own graph a graph does not hold */
        node->subgraph == g ? g : td_ir_graph_retain(node->subgraph);
    copy->place = node->place;
    if (node->place.file && node->block->graph != g)
        copy->place.file = td_ir_text(g, node->place.file, strlen(node->place.file));
    if (node->kind == TD_IR_CONSTANT)
        td_ir_set_constant(copy, node->constant);
    for (int k = 0; k < node->noutputs; k++) {
        td_ir_set_name(g, copy->outputs[k], node->outputs[k]->name);
        td_copier_set(c, node->outputs[k], copy->outputs[k]);
    }
    for (int b = 0; b < node->nblocks; b++)
        copy_block(c, copy, node->blocks[b]);
    return copy;
}

void td_copier_copy_nodes(td_copier *c, td_ir_block *block, const td_ir_block *from) {
    for (const td_ir_node *node = from->first; node && !c->graph->failed; node = node->next)
        (void)td_copier_copy(c, block, node);
}

void td_copier_clear(td_copier *c) {
    td_map_clear(&c->values);
}

td_ir_graph *td_ir_graph_copy(const td_ir_graph *g) {
    td_copier c = {.graph = td_ir_graph_new()};
    if (!c.graph)
        return NULL;
    c.graph->fast = g->fast;
    const td_ir_block *from = g->block;
    c.graph->fits = g->fits;
    td_ir_value **outputs = td_ir_alloc(c.graph, sizeof *outputs * (size_t)(from->noutputs + 1));
    for (int k = 0; outputs && k < from->ninputs; k++)
        td_copier_set(&c, from->inputs[k],
                      td_ir_add_input(c.graph->block,
                                      td_ir_type_copy(c.graph, from->inputs[k]->type),
                                      from->inputs[k]->name));
    if (outputs)
        td_copier_copy_nodes(&c, c.graph->block, from);
    for (int k = 0; outputs && k < from->noutputs; k++)
        outputs[k] = td_copier_get(&c, from->outputs[k]);
    if (outputs && !c.graph->failed)
        td_ir_set_outputs(c.graph->block, from->noutputs, outputs);
    td_copier_clear(&c);
    if (c.graph->failed) {
        td_ir_graph_release(c.graph);
        return NULL;
    }
    return c.graph;
}
