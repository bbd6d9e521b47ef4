/* alias.c: values that may share memory are one class of a union-find; so are, in a second one,
 * those that may be the very same tensor (a view shares memory and is another tensor). Neither
 * looks at the order of nodes: what ever joins two values joins them everywhere. */
#include "engine/script/passes/alias.h"

#include "engine/core/memory.h"
#include "engine/script/scalars.h"

#include <string.h>

typedef struct entry {
    const td_ir_value *value;
    int index;
} entry;

/* Of a class, at its root. */
typedef struct class_facts {
    int parent;
    bool written, leaves, comes_in;
} class_facts;

enum { MEMORY, IDENTITY, RELATIONS };

struct td_alias_info {
    td_ir_graph *memory; /* of the entries */
    td_map values;
    int n, room;
    class_facts *classes[RELATIONS];
};

/* ---- classes ---- */

static bool is_of(const void *found, const void *value) {
    return ((const entry *)found)->value == value;
}

/* -1: the value is not known. */
static int index_of(const td_alias_info *a, const td_ir_value *value) {
    const entry *e = td_map_find(&a->values, td_hash_address(value), is_of, value);
    return e ? e->index : -1;
}

static int root_of(class_facts *classes, int k) {
    while (classes[k].parent != k)
        k = classes[k].parent = classes[classes[k].parent].parent;
    return k;
}

static const class_facts *facts_of(const td_alias_info *a, int relation, const td_ir_value *value) {
    static const class_facts unknown = {
        .parent = -1, .written = true, .leaves = true, .comes_in = true};
    int k = index_of(a, value);
    return k < 0 ? &unknown : &a->classes[relation][root_of(a->classes[relation], k)];
}

static void join(td_alias_info *a, int relation, const td_ir_value *x, const td_ir_value *y) {
    class_facts *classes = a->classes[relation];
    int i = index_of(a, x), j = index_of(a, y);
    if (i < 0 || j < 0)
        return;
    i = root_of(classes, i);
    j = root_of(classes, j);
    if (i == j)
        return;
    classes[j].parent = i;
    classes[i].written |= classes[j].written;
    classes[i].leaves |= classes[j].leaves;
    classes[i].comes_in |= classes[j].comes_in;
}

static void join_both(td_alias_info *a, const td_ir_value *x, const td_ir_value *y) {
    join(a, MEMORY, x, y);
    join(a, IDENTITY, x, y);
}

static bool add_value(td_alias_info *a, const td_ir_value *value) {
    if (!td_alias_holds_memory(value))
        return true;
    if (a->n == a->room) {
        int room = a->room ? 2 * a->room : 64;
        for (int r = 0; r < RELATIONS; r++) {
            class_facts *larger = td_realloc(a->classes[r], sizeof *larger * (size_t)room);
            if (!larger)
                return false;
            a->classes[r] = larger;
        }
        a->room = room;
    }
    entry *e = td_ir_alloc(a->memory, sizeof *e);
    if (!e || td_map_add(&a->values, td_hash_address(value), e))
        return false;
    *e = (entry){value, a->n};
    for (int r = 0; r < RELATIONS; r++)
        a->classes[r][a->n] = (class_facts){.parent = a->n};
    a->n++;
    return true;
}

static bool add_values(td_alias_info *a, const td_ir_block *block) {
    bool all = true;
    for (int k = 0; k < block->ninputs && all; k++)
        all = add_value(a, block->inputs[k]);
    for (const td_ir_node *node = block->first; node && all; node = node->next) {
        for (int k = 0; k < node->noutputs && all; k++)
            all = add_value(a, node->outputs[k]);
        for (int b = 0; b < node->nblocks && all; b++)
            all = add_values(a, node->blocks[b]);
    }
    return all;
}

static void mark(td_alias_info *a, const td_ir_value *value, bool written, bool leaves,
                 bool comes_in) {
    int k = index_of(a, value);
    for (int r = 0; k >= 0 && r < RELATIONS; r++) {
        class_facts *facts = &a->classes[r][root_of(a->classes[r], k)];
        facts->written |= written;
        facts->leaves |= leaves;
        facts->comes_in |= comes_in;
    }
}

/* ---- nodes ---- */

/* Operators that write arguments besides: the statistics of a normalization. */
static bool writes_argument(const td_ir_node *node, int k) {
    if (node->kind == TD_IR_SCALAR)
        return k == 0 && node->scalar->acts == TD_SCALAR_WRITES;
    if (node->kind != TD_IR_OPERATOR)
        return false;
    if (k == 0 && (node->inplace || node->op->flags & TD_OP_INPLACE_ONLY))
        return true;
    return strncmp(node->op->params[k].name, "running_", 8) == 0;
}

/* Of kinds that are not known all is assumed. */
static bool is_known_kind(const td_ir_node *node) {
    static const bool known[TD_IR_KINDS] = {
        [TD_IR_OPERATOR] = true,      [TD_IR_CONSTANT] = true,        [TD_IR_IF] = true,
        [TD_IR_LOOP] = true,          [TD_IR_LIST_CONSTRUCT] = true,  [TD_IR_LIST_UNPACK] = true,
        [TD_IR_FUSION_GROUP] = true,  [TD_IR_TUPLE_CONSTRUCT] = true, [TD_IR_TUPLE_UNPACK] = true,
        [TD_IR_SCALAR] = true,        [TD_IR_TUPLE_INDEX] = true,     [TD_IR_CAST] = true,
        [TD_IR_RAISE] = true,         [TD_IR_PRINT] = true,           [TD_IR_WITH] = true,
        [TD_IR_DICT_CONSTRUCT] = true};
    return known[node->kind];
}

static void join_operator(td_alias_info *a, const td_ir_node *node) {
    const td_op *op = node->op;
    bool writes = node->inplace || op->flags & TD_OP_INPLACE_ONLY;
    bool view = op->flags & (TD_OP_VIEW | TD_OP_TURNS) && !writes;
    bool fresh = !view && (op->pointwise || op->kernel);
    for (int k = 0; k < node->ninputs; k++)
        if (writes_argument(node, k))
            mark(a, node->inputs[k], true, false, false);
    for (int j = 0; j < node->noutputs; j++)
        for (int k = 0; k < node->ninputs; k++) {
            if (writes && k == 0) /* it is that tensor */
                join_both(a, node->outputs[j], node->inputs[0]);
            else if (view && k == 0)
                join(a, MEMORY, node->outputs[j], node->inputs[0]);
            else if (!fresh && !writes && !view)
                join_both(a, node->outputs[j], node->inputs[k]);
        }
    for (int j = 1; j < node->noutputs && !fresh; j++)
        join_both(a, node->outputs[0], node->outputs[j]);
}

/* Lists that give their entries or themselves, or are made of others' entries. */
static void join_scalar(td_alias_info *a, const td_ir_node *node) {
    bool own = !strchr("leqa", node->scalar->result); /* numbers, texts, a list of sizes */
    for (int k = 0; k < node->ninputs; k++) {
        if (writes_argument(node, k))
            mark(a, node->inputs[k], true, false, false);
        for (int j = 0; j < node->noutputs && !own; j++)
            join_both(a, node->outputs[j], node->inputs[k]);
        for (int j = 0; j < k && writes_argument(node, 0); j++) /* an entry is put into a list */
            join_both(a, node->inputs[j], node->inputs[k]);
    }
}

static void join_all(td_alias_info *a, const td_ir_node *node) {
    const td_ir_value *first = node->ninputs ? node->inputs[0] : NULL;
    for (int k = 0; k < node->ninputs + node->noutputs; k++) {
        const td_ir_value *value =
            k < node->ninputs ? node->inputs[k] : node->outputs[k - node->ninputs];
        mark(a, value, true, true, true);
        if (first)
            join_both(a, first, value);
        first = index_of(a, value) >= 0 ? value : first;
    }
}

static void join_block(td_alias_info *a, const td_ir_block *block);

static void join_node(td_alias_info *a, const td_ir_node *node) {
    for (int b = 0; b < node->nblocks; b++)
        join_block(a, node->blocks[b]);
    if (!is_known_kind(node)) {
        join_all(a, node);
        return;
    }
    if (node->kind == TD_IR_OPERATOR)
        join_operator(a, node);
    else if (node->kind == TD_IR_SCALAR)
        join_scalar(a, node);
    else if (node->kind == TD_IR_CONSTANT)
        mark(a, node->outputs[0], false, false, true);
    else if (node->kind == TD_IR_IF || node->kind == TD_IR_WITH) {
        for (int k = 0; k < node->noutputs; k++)
            for (int b = 0; b < node->nblocks; b++)
                join_both(a, node->outputs[k], node->blocks[b]->outputs[k]);
    } else if (node->kind == TD_IR_LOOP) {
        const td_ir_block *body = node->blocks[0];
        for (int k = 0; k < node->noutputs; k++) {
            join_both(a, node->outputs[k], node->inputs[k + 2]);
            join_both(a, node->outputs[k], body->inputs[k + 1]);
            join_both(a, node->outputs[k], body->outputs[k + 1]);
        }
    } else if (node->kind != TD_IR_FUSION_GROUP) /* what groups make is their own */
        for (int j = 0; j < node->noutputs; j++)
            for (int k = 0; k < node->ninputs; k++)
                join_both(a, node->outputs[j], node->inputs[k]);
}

static void join_block(td_alias_info *a, const td_ir_block *block) {
    for (const td_ir_node *node = block->first; node; node = node->next)
        join_node(a, node);
}

/* ---- births and questions ---- */

static void join_ends(td_alias_info *a, const td_ir_block *block) {
    const td_ir_value *first = NULL;
    for (int k = 0; k < block->ninputs; k++) {
        mark(a, block->inputs[k], false, false, true);
        if (first)
            join(a, MEMORY, first, block->inputs[k]);
        first = index_of(a, block->inputs[k]) >= 0 ? block->inputs[k] : first;
    }
    for (int k = 0; k < block->noutputs; k++)
        mark(a, block->outputs[k], false, true, false);
}

td_status td_alias_new(const td_ir_graph *g, td_alias_info **out) {
    td_alias_info *a = td_calloc(1, sizeof *a);
    *out = NULL;
    if (a)
        a->memory = td_ir_graph_new();
    if (!a || !a->memory || !add_values(a, g->block)) {
        td_alias_free(a);
        return td_fail(TD_ENOMEM, "out of memory for an analysis");
    }
    join_ends(a, g->block);
    join_block(a, g->block);
    *out = a;
    return TD_OK;
}

void td_alias_free(td_alias_info *a) {
    if (!a)
        return;
    td_map_clear(&a->values);
    td_ir_graph_release(a->memory);
    for (int r = 0; r < RELATIONS; r++)
        td_free(a->classes[r]);
    td_free(a);
}

bool td_alias_holds_memory(const td_ir_value *value) {
    static const bool plain[TD_IR_TYPE_KINDS] = {
        [TD_IR_INT] = true,    [TD_IR_FLOAT] = true,  [TD_IR_BOOL] = true,
        [TD_IR_NUMBER] = true, [TD_IR_STRING] = true, [TD_IR_NONE] = true,
        [TD_IR_DTYPE] = true,  [TD_IR_DEVICE] = true, [TD_IR_GENERATOR] = true};
    return !plain[value->type->kind];
}

static bool share(const td_alias_info *a, int relation, const td_ir_value *x,
                  const td_ir_value *y) {
    int i = index_of(a, x), j = index_of(a, y);
    if (i < 0 || j < 0)
        return td_alias_holds_memory(x) && td_alias_holds_memory(y);
    class_facts *classes = a->classes[relation];
    const class_facts *p = &classes[root_of(classes, i)], *q = &classes[root_of(classes, j)];
    return p == q || (p->comes_in && q->comes_in && relation == MEMORY);
}

bool td_alias_shares(const td_alias_info *a, const td_ir_value *x, const td_ir_value *y) {
    return x == y ? td_alias_holds_memory(x) : share(a, MEMORY, x, y);
}

int td_alias_class(const td_alias_info *a, const td_ir_value *x) {
    int k = index_of(a, x);
    return k < 0 ? -1 : root_of(a->classes[MEMORY], k);
}

int td_alias_classes(const td_alias_info *a) {
    return a->n;
}

bool td_alias_is_written(const td_alias_info *a, const td_ir_value *x) {
    return td_alias_holds_memory(x) && facts_of(a, MEMORY, x)->written;
}

bool td_alias_leaves(const td_alias_info *a, const td_ir_value *x) {
    return td_alias_holds_memory(x) && facts_of(a, MEMORY, x)->leaves;
}

bool td_alias_comes_in(const td_alias_info *a, const td_ir_value *x) {
    return td_alias_holds_memory(x) && facts_of(a, MEMORY, x)->comes_in;
}

bool td_alias_node_writes(const td_ir_node *node) {
    if (!is_known_kind(node))
        return true;
    for (int k = 0; k < node->ninputs; k++)
        if (writes_argument(node, k) && td_alias_holds_memory(node->inputs[k]))
            return true;
    for (int b = 0; b < node->nblocks; b++)
        for (const td_ir_node *inner = node->blocks[b]->first; inner; inner = inner->next)
            if (td_alias_node_writes(inner))
                return true;
    return false;
}

bool td_alias_writes(const td_alias_info *a, const td_ir_node *node, const td_ir_value *x) {
    if (!td_alias_holds_memory(x))
        return false;
    if (!is_known_kind(node))
        return true;
    for (int k = 0; k < node->ninputs; k++)
        if (writes_argument(node, k) && td_alias_shares(a, node->inputs[k], x))
            return true;
    for (int b = 0; b < node->nblocks; b++)
        for (const td_ir_node *inner = node->blocks[b]->first; inner; inner = inner->next)
            if (td_alias_writes(a, inner, x))
                return true;
    return false;
}

bool td_alias_may_replace(const td_alias_info *a, const td_ir_value *from, const td_ir_value *to,
                          bool view) {
    if (!td_alias_holds_memory(from) && !td_alias_holds_memory(to))
        return true;
    const class_facts *old = facts_of(a, MEMORY, from), *now = facts_of(a, MEMORY, to);
    if (old->written || now->written)
        return false;
    if (view) { /* two tensors on one memory become one tensor */
        const class_facts *p = facts_of(a, IDENTITY, from), *q = facts_of(a, IDENTITY, to);
        return !(p->leaves && (q->leaves || q->comes_in));
    }
    return !(old->leaves && (now->leaves || now->comes_in));
}

void td_alias_join(td_alias_info *a, const td_ir_value *from, const td_ir_value *to) {
    if (index_of(a, to) < 0 && !add_value(a, to)) /* it stays unknown then */
        return;
    join_both(a, to, from);
}
