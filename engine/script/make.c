/* make.c: graphs made ready to run.
 *
 * What is known before is worked out once: the register of each value, which registers die behind
 * each node, in the block in which their values are made, and what kinds of values a node takes.
 */
#include "engine/core/memory.h"
#include "engine/script/code.h"
#include "engine/script/operands.h"
#include "engine/script/passes/alias.h"
#include "engine/script/row_kernel.h"

#include <string.h>

/* A value while its graph is made ready. */
typedef struct life {
    const td_ir_value *value;
    int index;              /* of its register, or of the constant ~index */
    const td_ir_node *last; /* in its own block: the last that reads it, itself or within */
    bool leaves;            /* an output of its own block */
} life;

/* The script of a graph that others call, too. */
typedef struct made {
    struct made *next;
    const td_ir_graph *graph;
    td_script *script; /* borrowed from a step */
} made;

typedef struct maker {
    td_script *s;
    td_map lives;
    td_alias_info *alias;
    int nconstants;
    int nborrowed; /* registers, which are the caller's inputs */
    made **all;    /* of this graph and those that it calls, in the memory of the first */
    td_ir_graph *first;
} maker;

/* ---- registers ---- */

static bool is_of(const void *found, const void *value) {
    return ((const life *)found)->value == value;
}

static life *life_of(const maker *m, const td_ir_value *value) {
    return td_map_find(&m->lives, td_hash_address(value), is_of, value);
}

static bool add_life(maker *m, const td_ir_value *value) {
    life *p = td_ir_alloc(m->s->memory, sizeof *p);
    if (!p)
        return false;
    bool constant = value->node && value->node->kind == TD_IR_CONSTANT;
    *p = (life){.value = value, .index = constant ? ~m->nconstants++ : m->s->nregisters++};
    return td_map_add(&m->lives, td_hash_address(value), p) == TD_OK;
}

static bool add_lives(maker *m, int n, td_ir_value *const *values) {
    for (int k = 0; k < n; k++)
        if (!add_life(m, values[k]))
            return false;
    return true;
}

static bool number_values(maker *m, const td_ir_block *block) {
    if (!add_lives(m, block->ninputs, block->inputs))
        return false;
    for (const td_ir_node *node = block->first; node; node = node->next) {
        if (!add_lives(m, node->noutputs, node->outputs))
            return false;
        for (int b = 0; b < node->nblocks; b++)
            if (!number_values(m, node->blocks[b]))
                return false;
    }
    return true;
}

static void fill_constants(maker *m, const td_ir_block *block) {
    for (const td_ir_node *node = block->first; node; node = node->next) {
        if (node->kind == TD_IR_CONSTANT)
            m->s->constants[~life_of(m, node->outputs[0])->index] = node->constant;
        for (int b = 0; b < node->nblocks; b++)
            fill_constants(m, node->blocks[b]);
    }
}

/* ---- lives ---- */

/* A node, or the end of a block, reads a value: the node around it in the value's block does. */
static void read_by(const maker *m, const td_ir_value *value, const td_ir_node *node,
                    const td_ir_block *block) {
    life *p = life_of(m, value);
    if (!node && block == value->block) {
        p->leaves = true;
        return;
    }
    for (node = node ? node : block->owner; node->block != value->block;)
        node = node->block->owner;
    p->last = node; /* blocks are walked in order */
}

static void find_last(const maker *m, const td_ir_block *block) {
    for (const td_ir_node *node = block->first; node; node = node->next) {
        for (int k = 0; k < node->ninputs; k++)
            read_by(m, node->inputs[k], node, NULL);
        for (int b = 0; b < node->nblocks; b++)
            find_last(m, node->blocks[b]);
    }
    for (int k = 0; k < block->noutputs; k++)
        read_by(m, block->outputs[k], NULL, block);
}

static int *registers_of(maker *m, int n, td_ir_value *const *values) {
    int *list = td_ir_alloc(m->s->memory, sizeof *list * (size_t)(n ? n : 1));
    for (int k = 0; list && k < n; k++)
        list[k] = life_of(m, values[k])->index;
    return list;
}

/* Those of n values that die behind a node (NULL: as the block begins), added to a list. The
 * graph's own inputs may be the caller's, and constants are the graph's. */
static void add_dead(const maker *m, int n, td_ir_value *const *values, const td_ir_node *node,
                     int *dead, int *ndead) {
    for (int k = 0; k < n; k++) {
        const life *p = life_of(m, values[k]);
        const td_ir_node *last = p->last ? p->last : values[k]->node;
        bool known = p->index < m->nborrowed;
        for (int j = 0; j < *ndead; j++)
            known |= dead[j] == p->index;
        if (!p->leaves && last == node && !known)
            dead[(*ndead)++] = p->index;
    }
}

/* All values that a node, and what is in its blocks, reads; counted, or put into a list. */
static int reads_of(const td_ir_node *node, td_ir_value **list) {
    int n = 0;
    for (int k = 0; k < node->ninputs; k++, n++)
        if (list)
            list[n] = node->inputs[k];
    for (int b = 0; b < node->nblocks; b++) {
        const td_ir_block *block = node->blocks[b];
        for (const td_ir_node *inner = block->first; inner; inner = inner->next)
            n += reads_of(inner, list ? list + n : NULL);
        for (int k = 0; k < block->noutputs; k++, n++)
            if (list)
                list[n] = block->outputs[k];
    }
    return n;
}

/* ---- kinds ---- */

static uint64_t *kinds_of(maker *m, const td_ir_node *node) {
    uint64_t *kinds = td_ir_alloc(m->s->memory, sizeof *kinds * (size_t)(node->ninputs + 1));
    for (int k = 0; kinds && k < node->ninputs; k++)
        kinds[k] = node->kind == TD_IR_OPERATOR ? td_argument_kinds(&node->op->params[k])
                   : node->kind == TD_IR_SCALAR ? td_scalar_kinds(node->scalar, k)
                                                : ~(uint64_t)0;
    return kinds;
}

/* ---- code ---- */

static bool make_code(maker *m, const td_ir_block *block, td_code_block *c);

/* Does all that a node makes go when the graph has run, at the latest? */
static bool is_brief(const maker *m, const td_ir_node *node) {
    bool brief = true;
    for (int k = 0; k < node->noutputs; k++)
        brief &= !td_alias_leaves(m->alias, node->outputs[k]);
    return brief;
}

static bool make_step(maker *m, const td_ir_node *node, td_code_step *s) {
    td_ir_graph *memory = m->s->memory;
    int nreads = reads_of(node, NULL);
    td_ir_value **reads = td_ir_alloc(memory, sizeof *reads * (size_t)(nreads ? nreads : 1));
    *s = (td_code_step){
        .run = td_step_of_kind((td_ir_kind)node->kind),
        .node = node,
        .ninputs = node->ninputs,
        .noutputs = node->noutputs,
        .brief = is_brief(m, node),
        .inputs = registers_of(m, node->ninputs, node->inputs),
        .outputs = registers_of(m, node->noutputs, node->outputs),
        .dead = td_ir_alloc(memory, sizeof(int) * (size_t)(nreads + node->noutputs + 1)),
        .kinds = kinds_of(m, node),
        .blocks = td_ir_alloc(memory, sizeof(td_code_block) * (size_t)(node->nblocks + 1))};
    if (!reads || !s->inputs || !s->outputs || !s->dead || !s->kinds || !s->blocks)
        return false;
    reads_of(node, reads);
    add_dead(m, nreads, reads, node, s->dead, &s->ndead);
    add_dead(m, node->noutputs, node->outputs, node, s->dead, &s->ndead);
    for (int b = 0; b < node->nblocks; b++)
        if (!make_code(m, node->blocks[b], &s->blocks[b]))
            return false;
    return true;
}

/* What a block made itself, or was given to keep, it hands over; the last of several outputs of one
 * value does, for those before it still read it. */
static void find_moves(const maker *m, const td_ir_block *block, td_code_block *c) {
    for (int k = 0; k < block->noutputs; k++) {
        const td_ir_value *value = block->outputs[k];
        c->moves[k] = value->block == block && c->outputs[k] >= m->nborrowed;
        for (int j = k + 1; j < block->noutputs; j++)
            c->moves[k] &= block->outputs[j] != value;
    }
}

static bool make_code(maker *m, const td_ir_block *block, td_code_block *c) {
    td_ir_graph *memory = m->s->memory;
    int n = 0;
    for (const td_ir_node *node = block->first; node; node = node->next)
        n += node->kind != TD_IR_CONSTANT;
    *c = (td_code_block){.nsteps = n,
                         .ninputs = block->ninputs,
                         .noutputs = block->noutputs,
                         .steps = td_ir_alloc(memory, sizeof *c->steps * (size_t)(n ? n : 1)),
                         .inputs = registers_of(m, block->ninputs, block->inputs),
                         .outputs = registers_of(m, block->noutputs, block->outputs),
                         .moves = td_ir_alloc(memory, (size_t)block->noutputs + 1),
                         .unread = td_ir_alloc(memory, sizeof(int) * (size_t)(block->ninputs + 1))};
    if (!c->steps || !c->inputs || !c->outputs || !c->moves || !c->unread)
        return false;
    find_moves(m, block, c);
    add_dead(m, block->ninputs, block->inputs, NULL, c->unread, &c->nunread);
    n = 0;
    for (const td_ir_node *node = block->first; node; node = node->next)
        if (node->kind != TD_IR_CONSTANT && !make_step(m, node, &c->steps[n++]))
            return false;
    return true;
}

/* ---- graphs within ---- */

static td_status make_script(td_ir_graph *g, bool takes, td_ir_graph *first, made **all,
                             td_script **out);

/* The script of a node's graph: that of the whole itself where it calls itself, or one that another
 * node has, too. */
static td_status join_script(const maker *m, td_code_step *s) {
    td_ir_graph *g = s->node->subgraph;
    if (g == m->s->graph) {
        s->script = m->s;
        return TD_OK;
    }
    for (const made *p = *m->all; p; p = p->next)
        if (p->graph == g) {
            s->script = td_script_retain(p->script);
            return TD_OK;
        }
    made *p = td_ir_alloc(m->first, sizeof *p);
    if (!p)
        return td_fail(TD_ENOMEM, "out of memory for a script");
    td_status status = make_script(g, false, m->first, m->all, &s->script);
    if (status == TD_OK) {
        *p = (made){.next = *m->all, .graph = g, .script = s->script};
        *m->all = p;
    }
    return status;
}

static td_status make_kernel(td_code_step *s) {
    if (s->ninputs > TD_CODE_MOST || s->noutputs > TD_CODE_MOST)
        return td_fail(TD_EVALUE, "a group of more than %d inputs or outputs", TD_CODE_MOST);
    if (s->script->kernel || s->script->rows)
        return TD_OK;
    const td_ir_graph *g = s->node->subgraph;
    td_status status = td_is_row_group(g) ? td_row_kernel_new(g, &s->script->rows)
                                          : td_script_kernel_new(g, &s->script->kernel);
    return status == TD_ENOMEM ? status : TD_OK;
}

static td_status make_scripts(const maker *m, const td_code_block *c) {
    td_status status = TD_OK;
    for (int k = 0; k < c->nsteps && status == TD_OK; k++) {
        td_code_step *s = &c->steps[k];
        for (int b = 0; b < s->node->nblocks && status == TD_OK; b++)
            status = make_scripts(m, &s->blocks[b]);
        if (status == TD_OK && td_ir_kind_has_graph((td_ir_kind)s->node->kind))
            status = join_script(m, s);
        if (status == TD_OK && s->node->kind == TD_IR_FUSION_GROUP)
            status = make_kernel(s);
    }
    return status;
}

/* ---- scripts ---- */

static bool make_all(maker *m) {
    td_script *s = m->s;
    const td_ir_block *block = s->graph->block;
    s->memory = td_ir_graph_new();
    if (!s->memory || !number_values(m, block) || td_alias_new(s->graph, &m->alias))
        return false;
    s->constants = td_ir_alloc(s->memory, sizeof *s->constants * (size_t)(m->nconstants + 1));
    if (!s->constants)
        return false;
    fill_constants(m, block);
    find_last(m, block);
    return make_code(m, block, &s->code);
}

/* The step that is the whole script, or NULL. */
static const td_code_step *find_whole(const td_code_block *c) {
    const td_code_step *s = c->steps;
    if (c->nsteps != 1 || s->node->kind != TD_IR_FUSION_GROUP || !s->script->kernel ||
        td_script_kernel_ways(s->script->kernel) || s->ninputs != c->ninputs ||
        s->noutputs != c->noutputs)
        return NULL;
    for (int k = 0; k < s->ninputs; k++)
        if (s->inputs[k] != c->inputs[k])
            return NULL;
    for (int k = 0; k < s->noutputs; k++)
        if (s->outputs[k] != c->outputs[k] || !c->moves[k])
            return NULL;
    return s;
}

static td_status make_script(td_ir_graph *g, bool takes, td_ir_graph *first, made **all,
                             td_script **out) {
    *out = NULL;
    td_status status = td_ir_verify(g);
    if (status)
        return status;
    td_script *s = td_calloc(1, sizeof *s);
    if (!s)
        return td_fail(TD_ENOMEM, "out of memory for a script");
    atomic_init(&s->refs, 1);
    s->graph = td_ir_graph_retain(g);
    s->takes = takes;
    maker m = {.s = s, .nborrowed = takes ? 0 : g->block->ninputs, .all = all, .first = first};
    bool whole = make_all(&m);
    td_map_clear(&m.lives);
    td_alias_free(m.alias);
    if (!whole) {
        s->code.nsteps = 0; /* of which some are not there */
        status = td_fail(TD_ENOMEM, "out of memory for a script");
    }
    if (status == TD_OK)
        status = make_scripts(&m, &s->code);
    if (status) {
        td_script_release(s);
        return status;
    }
    s->whole = find_whole(&s->code);
    *out = s;
    return TD_OK;
}

static td_status make_first(td_ir_graph *g, bool takes, td_script **out) {
    made *all = NULL;
    td_ir_graph *memory = td_ir_graph_new();
    *out = NULL;
    if (!memory)
        return td_fail(TD_ENOMEM, "out of memory for a script");
    td_status status = make_script(g, takes, memory, &all, out);
    td_ir_graph_release(memory);
    return status;
}

td_status td_script_new(td_ir_graph *g, td_script **out) {
    return make_first(g, false, out);
}

td_status td_script_new_taking(td_ir_graph *g, td_script **out) {
    return make_first(g, true, out);
}
