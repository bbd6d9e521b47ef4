/* ir.c: graphs in memory: how they are made, rewritten and let go of. */
#include "engine/script/ir.h"

#include "engine/core/memory.h"
#include "engine/script/boxes.h"

#include <stdio.h>
#include <string.h>

/* ---- birth and death ---- */

static td_ir_block *new_block(td_ir_graph *g, td_ir_node *owner) {
    td_ir_block *block = td_ir_alloc(g, sizeof *block);
    if (block) {
        block->graph = g;
        block->owner = owner;
    }
    return block;
}

td_ir_graph *td_ir_graph_new(void) {
    td_ir_graph *g = td_calloc(1, sizeof *g);
    if (!g)
        return NULL;
    atomic_init(&g->refs, 1);
    g->block = new_block(g, NULL);
    if (!g->block) {
        td_ir_graph_release(g);
        return NULL;
    }
    return g;
}

td_ir_graph *td_ir_graph_retain(td_ir_graph *g) {
    if (g)
        atomic_fetch_add_explicit(&g->refs, 1, memory_order_relaxed);
    return g;
}

void td_ir_graph_release(td_ir_graph *g) {
    if (!g || !td_was_last(&g->refs))
        return;
    for (td_ir_node *node = g->made; node; node = node->made) {
        td_release(td_arg_tensor(node->constant));
        if (node->subgraph != g)
            td_ir_graph_release(node->subgraph);
    }
    td_ir_free_memory(g);
    td_map_clear(&g->names);
    td_map_clear(&g->stems);
    td_free(g);
}

td_status td_ir_status(const td_ir_graph *g) {
    return g->failed ? td_fail(TD_ENOMEM, "out of memory for a graph") : TD_OK;
}

/* ---- names ---- */

static bool is_named(const void *value, const void *name) {
    const char *own = ((const td_ir_value *)value)->name;
    return own && strcmp(own, name) == 0;
}

/* By another value than this one? What a value was called before is free again. */
static bool is_taken(const td_ir_graph *g, const char *name, const td_ir_value *by) {
    const td_ir_value *value = td_map_find(&g->names, td_hash_text(name), is_named, name);
    return value && value != by;
}

/* What stands before the number of names that are told apart by numbers, and the last one given. */
typedef struct stem {
    const char *text;
    int last;
} stem;

static bool is_stem(const void *entry, const void *text) {
    return strcmp(((const stem *)entry)->text, text) == 0;
}

/* NULL: out of memory. */
static stem *find_stem(td_ir_graph *g, const char *text) {
    const uint64_t hash = td_hash_text(text);
    stem *s = td_map_find(&g->stems, hash, is_stem, text);
    if (s)
        return s;
    s = td_ir_alloc(g, sizeof *s);
    const char *own = td_ir_text(g, text, strlen(text));
    if (!s || !own || td_map_add(&g->stems, hash, s))
        return NULL;
    *s = (stem){.text = own};
    return s;
}

/* A name that is not taken: the wanted one, or that without its number and with another; a number
 * where none is wanted. */
static const char *choose_name(td_ir_graph *g, const td_ir_value *value, const char *wanted,
                               char *buffer, size_t size) {
    if (!wanted) {
        do
            snprintf(buffer, size, "%d", g->nnames++);
        while (is_taken(g, buffer, value));
        return buffer;
    }
    if (!is_taken(g, wanted, value))
        return wanted;
    size_t length = strlen(wanted);
    while (length && wanted[length - 1] >= '0' && wanted[length - 1] <= '9')
        length--;
    length = length && wanted[length - 1] == '.' ? length - 1 : strlen(wanted);
    if (length > size - 16)
        length = size - 16;
    snprintf(buffer, size, "%.*s", (int)length, wanted);
    stem none = {.text = NULL}, *found = find_stem(g, buffer), *s = found ? found : &none;
    do
        snprintf(buffer, size, "%.*s.%d", (int)length, wanted, ++s->last);
    while (is_taken(g, buffer, value));
    return buffer;
}

void td_ir_set_name(td_ir_graph *g, td_ir_value *value, const char *name) {
    char buffer[128];
    if (!value || (name && value->name && !strcmp(name, value->name)))
        return;
    const char *chosen = choose_name(g, value, name, buffer, sizeof buffer);
    const char *text = td_ir_text(g, chosen, strlen(chosen));
    if (!text || td_map_add(&g->names, td_hash_text(text), value))
        g->failed = true;
    else
        value->name = text;
}

/* ---- uses ---- */

static void add_use(td_ir_value *value, td_ir_node *node, td_ir_block *block, int index) {
    if (!value)
        return;
    td_ir_use *use = td_ir_alloc(value->block->graph, sizeof *use);
    if (!use)
        return;
    *use = (td_ir_use){.next = value->uses, .node = node, .block = block, .index = index};
    value->uses = use;
}

static void drop_use(td_ir_value *value, const td_ir_node *node, const td_ir_block *block,
                     int index) {
    if (!value)
        return;
    for (td_ir_use **at = &value->uses; *at; at = &(*at)->next)
        if ((*at)->node == node && (*at)->block == block && (*at)->index == index) {
            *at = (*at)->next;
            return;
        }
}

/* ---- making ---- */

const char *td_ir_kind_name(td_ir_kind kind) {
    static const char *const names[TD_IR_KINDS] = {[TD_IR_OPERATOR] = "aten::",
                                                   [TD_IR_CONSTANT] = "prim::Constant",
                                                   [TD_IR_IF] = "prim::If",
                                                   [TD_IR_LOOP] = "prim::Loop",
                                                   [TD_IR_LIST_CONSTRUCT] = "prim::ListConstruct",
                                                   [TD_IR_LIST_UNPACK] = "prim::ListUnpack",
                                                   [TD_IR_TUPLE_CONSTRUCT] = "prim::TupleConstruct",
                                                   [TD_IR_TUPLE_UNPACK] = "prim::TupleUnpack",
                                                   [TD_IR_FUSION_GROUP] = "prim::FusionGroup",
                                                   [TD_IR_SCALAR] = "aten::",
                                                   [TD_IR_TUPLE_INDEX] = "prim::TupleIndex",
                                                   [TD_IR_CAST] = "prim::unchecked_cast",
                                                   [TD_IR_RAISE] = "prim::RaiseException",
                                                   [TD_IR_PRINT] = "prim::Print",
                                                   [TD_IR_CALL] = "prim::CallFunction",
                                                   [TD_IR_FORK] = "prim::fork",
                                                   [TD_IR_HOST_CALL] = "prim::HostCall",
                                                   [TD_IR_DICT_CONSTRUCT] = "prim::DictConstruct",
                                                   [TD_IR_WITH] = "prim::With"};
    return names[kind];
}

bool td_ir_kind_has_graph(td_ir_kind kind) {
    return kind == TD_IR_FUSION_GROUP || kind == TD_IR_CALL || kind == TD_IR_FORK;
}

static td_ir_value *new_value(td_ir_block *block, td_ir_node *node, const td_ir_type *type,
                              const char *name) {
    td_ir_value *value = td_ir_alloc(block->graph, sizeof *value);
    if (!value)
        return NULL;
    value->type = type ? type : td_ir_simple_type(TD_IR_ANY);
    value->block = block;
    value->node = node;
    td_ir_set_name(block->graph, value, name);
    return value;
}

/* One more entry of an array in the graph's memory, which doubles at powers of two. */
static void *grown(td_ir_graph *g, void *list, int n, size_t size) {
    if (n & (n - 1) || (n == 0 && list))
        return list;
    void *larger = td_ir_alloc(g, (n ? 2 * (size_t)n : 1) * size);
    return larger && n ? memcpy(larger, list, (size_t)n * size) : larger;
}

td_ir_value *td_ir_add_input(td_ir_block *block, const td_ir_type *type, const char *name) {
    if (!block)
        return NULL;
    td_ir_value *value = new_value(block, NULL, type, name);
    void *inputs = grown(block->graph, block->inputs, block->ninputs, sizeof value);
    if (!value || !inputs)
        return NULL;
    block->inputs = inputs;
    block->inputs[block->ninputs++] = value;
    return value;
}

td_ir_block *td_ir_add_block(td_ir_node *node) {
    if (!node)
        return NULL;
    td_ir_graph *g = node->block->graph;
    td_ir_block *block = new_block(g, node);
    void *blocks = grown(g, node->blocks, node->nblocks, sizeof block);
    if (!block || !blocks)
        return NULL;
    node->blocks = blocks;
    node->blocks[node->nblocks++] = block;
    return block;
}

/* Before `at`, or at the end where that is NULL. */
static void link_node(td_ir_node *node, td_ir_block *block, td_ir_node *at) {
    node->block = block;
    node->next = at;
    node->previous = at ? at->previous : block->last;
    *(node->previous ? &node->previous->next : &block->first) = node;
    *(at ? &at->previous : &block->last) = node;
}

static void unlink_node(td_ir_node *node) {
    *(node->previous ? &node->previous->next : &node->block->first) = node->next;
    *(node->next ? &node->next->previous : &node->block->last) = node->previous;
    node->previous = node->next = NULL;
}

td_ir_node *td_ir_append(td_ir_block *block, td_ir_kind kind, int ninputs,
                         td_ir_value *const *inputs, int noutputs, const td_ir_type *const *types) {
    if (!block)
        return NULL;
    td_ir_graph *g = block->graph;
    td_ir_node *node = td_ir_alloc(g, sizeof *node);
    td_ir_value **values = td_ir_alloc(g, sizeof *values * (size_t)(ninputs + noutputs));
    if (!node || !values)
        return NULL;
    node->kind = (uint8_t)kind;
    node->made = g->made;
    g->made = node;
    node->inputs = values;
    node->outputs = values + ninputs;
    node->ninputs = ninputs;
    for (int k = 0; k < ninputs; k++) {
        g->failed |= !inputs[k];
        node->inputs[k] = inputs[k];
        add_use(inputs[k], node, NULL, k);
    }
    for (int k = 0; k < noutputs; k++) {
        node->outputs[k] = new_value(block, node, types ? types[k] : NULL, NULL);
        if (!node->outputs[k])
            return NULL;
        node->noutputs++;
    }
    link_node(node, block, NULL);
    return node;
}

void td_ir_set_constant(td_ir_node *node, td_value v) {
    if (!node)
        return;
    td_ir_graph *g = node->block->graph;
    if (v.kind == TD_KIND_STRING)
        v.string = td_ir_text(g, v.string, strlen(v.string));
    if (v.kind == TD_KIND_INTS || v.kind == TD_KIND_FLOATS) {
        void *list = td_ir_alloc(g, 8 * (size_t)(v.n ? v.n : 1));
        if (list && v.n)
            memcpy(list, v.ints, 8 * (size_t)v.n);
        v.ints = list;
    }
    if (v.kind == TD_KIND_TENSOR)
        td_retain(v.tensor);
    node->constant = v;
}

static const td_ir_type *type_of_constant(td_ir_graph *g, td_value v) {
    static const uint8_t kinds[] = {
        [TD_KIND_NIL] = TD_IR_NONE,      [TD_KIND_TENSOR] = TD_IR_TENSOR,
        [TD_KIND_INT] = TD_IR_INT,       [TD_KIND_FLOAT] = TD_IR_FLOAT,
        [TD_KIND_BOOL] = TD_IR_BOOL,     [TD_KIND_INTS] = TD_IR_INT,
        [TD_KIND_TENSORS] = TD_IR_ANY,   [TD_KIND_DTYPE] = TD_IR_DTYPE,
        [TD_KIND_DEVICE] = TD_IR_DEVICE, [TD_KIND_STRING] = TD_IR_STRING,
        [TD_KIND_GENERATOR] = TD_IR_ANY, [TD_KIND_FLOATS] = TD_IR_FLOAT};
    if (v.kind == TD_VALUE_QUANTIZED_DTYPE)
        return td_ir_simple_type(TD_IR_DTYPE);
    const td_ir_type *type = td_ir_simple_type((td_ir_type_kind)kinds[v.kind]);
    if (v.kind == TD_KIND_TENSOR)
        return td_ir_type_of_tensor(g, v.tensor);
    return v.kind == TD_KIND_INTS || v.kind == TD_KIND_FLOATS
               ? td_ir_type_of_parts(g, TD_IR_LIST, 1, &type)
               : type;
}

td_ir_value *td_ir_add_constant(td_ir_block *block, td_value constant) {
    if (!block)
        return NULL;
    const td_ir_type *type = type_of_constant(block->graph, constant);
    td_ir_node *node = td_ir_append(block, TD_IR_CONSTANT, 0, NULL, 1, &type);
    td_ir_set_constant(node, constant);
    return node ? node->outputs[0] : NULL;
}

/* ---- rewriting ---- */

void td_ir_set_outputs(td_ir_block *block, int n, td_ir_value *const *outputs) {
    if (!block)
        return;
    td_ir_value **list = td_ir_alloc(block->graph, sizeof *list * (size_t)(n ? n : 1));
    if (!list)
        return;
    for (int k = 0; k < block->noutputs; k++)
        drop_use(block->outputs[k], NULL, block, k);
    for (int k = 0; k < n; k++) {
        block->graph->failed |= !outputs[k];
        list[k] = outputs[k];
        add_use(outputs[k], NULL, block, k);
    }
    block->outputs = list;
    block->noutputs = n;
}

void td_ir_set_input(td_ir_node *node, int index, td_ir_value *value) {
    if (!node || node->inputs[index] == value)
        return;
    drop_use(node->inputs[index], node, NULL, index);
    node->inputs[index] = value;
    add_use(value, node, NULL, index);
}

void td_ir_replace(td_ir_value *from, td_ir_value *to) {
    if (!from || !to || from == to)
        return;
    td_ir_use *last = NULL;
    for (td_ir_use *use = from->uses; use; use = use->next) {
        *(use->node ? &use->node->inputs[use->index] : &use->block->outputs[use->index]) = to;
        last = use;
    }
    if (!last)
        return;
    last->next = to->uses;
    to->uses = from->uses;
    from->uses = NULL;
}

static void forget_inputs(td_ir_node *node) {
    for (int k = 0; k < node->ninputs; k++)
        drop_use(node->inputs[k], node, NULL, k);
    for (int b = 0; b < node->nblocks; b++) {
        td_ir_block *block = node->blocks[b];
        for (int k = 0; k < block->noutputs; k++)
            drop_use(block->outputs[k], NULL, block, k);
        for (td_ir_node *inner = block->first; inner; inner = inner->next)
            forget_inputs(inner);
    }
}

void td_ir_remove(td_ir_node *node) {
    forget_inputs(node);
    unlink_node(node);
    node->block = NULL;
}

void td_ir_move_before(td_ir_node *node, td_ir_node *at) {
    if (node == at)
        return;
    unlink_node(node);
    link_node(node, at->block, at);
    for (int k = 0; k < node->noutputs; k++)
        node->outputs[k]->block = at->block;
}

bool td_ir_sees(const td_ir_node *node, const td_ir_value *value) {
    /* The node of the value's block in which `node` stands: itself, or around it. */
    while (node && node->block != value->block)
        node = node->block->owner;
    if (!node || !value->node)
        return node != NULL;
    for (const td_ir_node *before = node->previous; before; before = before->previous)
        if (before == value->node)
            return true;
    return false;
}
