/* run.c: nodes run one after the other on registers, one for each value.
 *
 * What is known before is worked out once: the register of each value, and which registers die
 * behind each node, in the block in which their values are made.
 */
#include "engine/script/run.h"

#include "engine/core/interrupt.h"
#include "engine/core/memory.h"
#include "engine/script/kernel.h"

#include <stdio.h>
#include <string.h>

typedef struct code code;

typedef struct step {
    const td_ir_node *node;
    int *inputs, *outputs; /* registers */
    int *dead;             /* registers that nobody reads behind it */
    int ndead;
    code *blocks;     /* node->nblocks of them */
    td_script *group; /* of TD_IR_FUSION_GROUP: its graph */
} step;

/* A block's nodes. */
struct code {
    const td_ir_block *block;
    int nsteps;
    step *steps;
    int *inputs, *outputs;
    int *unread; /* inputs that nobody reads */
    int nunread;
};

struct td_script {
    atomic_int refs;
    td_ir_graph *graph;
    td_ir_graph *memory; /* of the code */
    code code;
    int nregisters;
    td_script_kernel *kernel; /* of a group; NULL: its operators run one by one */
};

enum { MOST_GROUP = 64 }; /* inputs or outputs of a group */

/* ---- making ready ---- */

/* A value while its graph is made ready. */
typedef struct life {
    const td_ir_value *value;
    int index;
    const td_ir_node *last; /* in its own block: the last that reads it, itself or within */
    bool leaves;            /* an output of its own block */
} life;

typedef struct maker {
    td_script *s;
    td_map lives;
} maker;

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
    *p = (life){.value = value, .index = m->s->nregisters++};
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

/* Those of n values that die behind a node (NULL: as the block begins), added to a list. */
static void add_dead(const maker *m, int n, td_ir_value *const *values, const td_ir_node *node,
                     int *dead, int *ndead) {
    for (int k = 0; k < n; k++) {
        const life *p = life_of(m, values[k]);
        const td_ir_node *last = p->last ? p->last : values[k]->node;
        bool known = false;
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

static bool make_code(maker *m, const td_ir_block *block, code *c);

static bool make_step(maker *m, const td_ir_node *node, step *s) {
    td_ir_graph *memory = m->s->memory;
    int nreads = reads_of(node, NULL);
    td_ir_value **reads = td_ir_alloc(memory, sizeof *reads * (size_t)(nreads ? nreads : 1));
    *s = (step){.node = node,
                .inputs = registers_of(m, node->ninputs, node->inputs),
                .outputs = registers_of(m, node->noutputs, node->outputs),
                .dead = td_ir_alloc(memory, sizeof(int) * (size_t)(nreads + node->noutputs + 1)),
                .blocks = td_ir_alloc(memory, sizeof(code) * (size_t)(node->nblocks + 1))};
    if (!reads || !s->inputs || !s->outputs || !s->dead || !s->blocks)
        return false;
    reads_of(node, reads);
    add_dead(m, nreads, reads, node, s->dead, &s->ndead);
    add_dead(m, node->noutputs, node->outputs, node, s->dead, &s->ndead);
    for (int b = 0; b < node->nblocks; b++)
        if (!make_code(m, node->blocks[b], &s->blocks[b]))
            return false;
    return true;
}

static bool make_code(maker *m, const td_ir_block *block, code *c) {
    int n = 0;
    for (const td_ir_node *node = block->first; node; node = node->next)
        n++;
    *c = (code){.block = block,
                .nsteps = n,
                .steps = td_ir_alloc(m->s->memory, sizeof *c->steps * (size_t)(n ? n : 1)),
                .inputs = registers_of(m, block->ninputs, block->inputs),
                .outputs = registers_of(m, block->noutputs, block->outputs),
                .unread = td_ir_alloc(m->s->memory, sizeof(int) * (size_t)(block->ninputs + 1))};
    if (!c->steps || !c->inputs || !c->outputs || !c->unread)
        return false;
    add_dead(m, block->ninputs, block->inputs, NULL, c->unread, &c->nunread);
    n = 0;
    for (const td_ir_node *node = block->first; node; node = node->next)
        if (!make_step(m, node, &c->steps[n++]))
            return false;
    return true;
}

static td_status check_kinds(const td_ir_block *block) {
    td_status status = TD_OK;
    for (const td_ir_node *node = block->first; node && status == TD_OK; node = node->next) {
        if (node->kind == TD_IR_TUPLE_CONSTRUCT || node->kind == TD_IR_TUPLE_UNPACK)
            status = td_fail(TD_EVALUE, "%s is not run: take tuples apart first",
                             td_ir_kind_name((td_ir_kind)node->kind));
        for (int b = 0; b < node->nblocks && status == TD_OK; b++)
            status = check_kinds(node->blocks[b]);
    }
    return status;
}

/* The scripts of the groups in a block. */
static void release_groups(const code *c) {
    for (int k = 0; k < c->nsteps; k++) {
        td_script_release(c->steps[k].group);
        for (int b = 0; b < c->steps[k].node->nblocks; b++)
            release_groups(&c->steps[k].blocks[b]);
    }
}

static td_status make_groups(const code *c) {
    td_status status = TD_OK;
    for (int k = 0; k < c->nsteps && status == TD_OK; k++) {
        step *s = &c->steps[k];
        for (int b = 0; b < s->node->nblocks && status == TD_OK; b++)
            status = make_groups(&s->blocks[b]);
        if (s->node->kind != TD_IR_FUSION_GROUP)
            continue;
        if (s->node->ninputs > MOST_GROUP || s->node->noutputs > MOST_GROUP)
            return td_fail(TD_EVALUE, "a group of more than %d inputs or outputs", MOST_GROUP);
        status = td_script_new(s->node->subgraph, &s->group);
        if (status == TD_OK &&
            td_script_kernel_new(s->node->subgraph, &s->group->kernel) == TD_ENOMEM)
            status = TD_ENOMEM;
    }
    return status;
}

td_status td_script_new(td_ir_graph *g, td_script **out) {
    *out = NULL;
    td_status status = td_ir_verify(g);
    if (status == TD_OK)
        status = check_kinds(g->block);
    if (status)
        return status;
    td_script *s = td_calloc(1, sizeof *s);
    maker m = {.s = s};
    bool made = s && (s->memory = td_ir_graph_new()) != NULL && number_values(&m, g->block);
    if (made) {
        find_last(&m, g->block);
        made = make_code(&m, g->block, &s->code);
    }
    td_map_clear(&m.lives);
    if (!made) {
        if (s)
            td_ir_graph_release(s->memory);
        td_free(s);
        return td_fail(TD_ENOMEM, "out of memory for a script");
    }
    atomic_init(&s->refs, 1);
    s->graph = td_ir_graph_retain(g);
    status = make_groups(&s->code);
    if (status) {
        td_script_release(s);
        return status;
    }
    *out = s;
    return TD_OK;
}

td_script *td_script_retain(td_script *s) {
    if (s)
        atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    return s;
}

void td_script_release(td_script *s) {
    if (!s || !td_was_last(&s->refs))
        return;
    release_groups(&s->code);
    td_script_kernel_free(s->kernel);
    td_ir_graph_release(s->memory);
    td_ir_graph_release(s->graph);
    td_free(s);
}

const td_ir_graph *td_script_graph(const td_script *s) {
    return s->graph;
}

/* ---- values ---- */

/* Tensors are held by the register that has them, lists of tensors are its own, with references to
 * their entries. All else is the graph's or the caller's, or a number. */
void td_script_drop(td_value *v) {
    if (v->kind == TD_KIND_TENSOR)
        td_release(v->tensor);
    for (int k = 0; v->kind == TD_KIND_TENSORS && k < v->n; k++)
        td_release(v->tensors[k]);
    if (v->kind == TD_KIND_TENSORS)
        td_free((void *)v->tensors);
    *v = TD_NIL;
}

static td_status new_list(int n, td_tensor *const *tensors, td_value *out) {
    td_tensor **list = td_malloc(sizeof *list * (size_t)(n ? n : 1));
    if (!list)
        return td_fail(TD_ENOMEM, "out of memory for a list");
    for (int k = 0; k < n; k++)
        list[k] = td_retain(tensors[k]);
    *out = TD_TENSORS(n, list);
    return TD_OK;
}

/* Another holder of a value. */
static td_status copy_value(td_value v, td_value *out) {
    *out = v;
    if (v.kind == TD_KIND_TENSORS)
        return new_list(v.n, v.tensors, out);
    if (v.kind == TD_KIND_TENSOR)
        td_retain(v.tensor);
    return TD_OK;
}

/* ---- nodes ---- */

static td_status run_code(const code *c, td_value *registers);

static td_status run_operator(const step *s, td_value *registers) {
    const td_ir_node *node = s->node;
    const td_op *op = node->op;
    td_value args[TD_MAX_PARAMS];
    bool inplace = node->inplace || op->flags & TD_OP_INPLACE_ONLY;
    for (int k = 0; k < node->ninputs; k++) {
        args[k] = registers[s->inputs[k]];
        if (args[k].kind == TD_KIND_INT && op->params[k].type == TD_PARAM_FLOAT)
            args[k] = TD_F((double)args[k].i);
    }
    td_tensor *self = inplace ? td_arg_tensor(args[0]) : NULL;
    td_call call = {.op = op, .args = args, .inplace = inplace, .given = &self, .ngiven = inplace};
    if (inplace && !self)
        return td_fail(TD_ETYPE, "%s: a tensor is written in place", op->name);
    td_status status = td_op_call(&call);
    if (status)
        return status;
    if (op->result_type == TD_RESULT_TENSORS)
        registers[s->outputs[0]] = TD_TENSORS(call.nlist, call.list);
    else if (op->result_type == TD_RESULT_TENSOR)
        for (int k = 0; k < op->nresults; k++)
            registers[s->outputs[k]] = td_tensor_or_nil(call.out[k]);
    else if (op->result_type != TD_RESULT_NOTHING)
        registers[s->outputs[0]] = call.result;
    return TD_OK;
}

static td_status move_values(int n, const int *from, const int *to, td_value *registers) {
    td_status status = TD_OK;
    for (int k = 0; k < n && status == TD_OK; k++)
        status = copy_value(registers[from[k]], &registers[to[k]]);
    return status;
}

/* The outputs of a block that has run, from the `first` on, into other registers; its own are empty
 * then, but a value of the blocks around it stays where it is. */
static td_status leave_block(const code *c, int first, const int *to, td_value *registers) {
    int n = c->block->noutputs;
    td_status status = move_values(n - first, c->outputs + first, to, registers);
    for (int k = 0; k < n; k++)
        if (c->block->outputs[k]->block == c->block)
            td_script_drop(&registers[c->outputs[k]]);
    return status;
}

static td_status run_if(const step *s, td_value *registers) {
    const code *c = &s->blocks[registers[s->inputs[0]].b ? 0 : 1];
    td_status status = run_code(c, registers);
    return status ? status : leave_block(c, 0, s->outputs, registers);
}

/* What is carried lies in the node's outputs between the trips. */
static td_status run_loop(const step *s, td_value *registers) {
    const code *c = &s->blocks[0];
    int n = s->node->noutputs;
    int64_t most = registers[s->inputs[0]].i;
    bool go = registers[s->inputs[1]].b;
    td_status status = move_values(n, s->inputs + 2, s->outputs, registers);
    for (int64_t trip = 0; status == TD_OK && go && trip < most; trip++) {
        registers[c->inputs[0]] = TD_I(trip);
        for (int k = 0; k < n; k++) {
            registers[c->inputs[k + 1]] = registers[s->outputs[k]];
            registers[s->outputs[k]] = TD_NIL;
        }
        status = run_code(c, registers);
        go = status == TD_OK && registers[c->outputs[0]].b;
        if (status == TD_OK)
            status = leave_block(c, 1, s->outputs, registers);
        if (status == TD_OK && TD_UNLIKELY(td_interrupt_requested()))
            status = td_interrupted();
    }
    return status;
}

static td_status run_list(const step *s, td_value *registers) {
    int n = s->node->ninputs;
    td_tensor **list = td_malloc(sizeof *list * (size_t)(n ? n : 1));
    if (!list)
        return td_fail(TD_ENOMEM, "out of memory for a list");
    for (int k = 0; k < n; k++)
        list[k] = td_retain(td_arg_tensor(registers[s->inputs[k]]));
    registers[s->outputs[0]] = TD_TENSORS(n, list);
    return TD_OK;
}

static td_status run_unpack(const step *s, td_value *registers) {
    td_value list = registers[s->inputs[0]];
    if (list.n != s->node->noutputs)
        return td_fail(TD_EVALUE, "a list of %d entries is expected, it has %d", s->node->noutputs,
                       list.n);
    for (int k = 0; k < list.n; k++)
        registers[s->outputs[k]] = td_tensor_or_nil(td_retain(list.tensors[k]));
    return TD_OK;
}

/* As one kernel; operator by operator where that does not take these inputs. */
static td_status run_group(const step *s, td_value *registers) {
    td_value inputs[MOST_GROUP], outputs[MOST_GROUP];
    bool taken = false;
    for (int k = 0; k < s->node->ninputs; k++)
        inputs[k] = registers[s->inputs[k]];
    td_status status =
        s->group->kernel ? td_script_kernel_run(s->group->kernel, inputs, outputs, &taken) : TD_OK;
    if (status == TD_OK && !taken)
        status = td_script_run(s->group, inputs, outputs);
    for (int k = 0; k < s->node->noutputs && status == TD_OK; k++)
        registers[s->outputs[k]] = outputs[k];
    return status;
}

static td_status run_step(const step *s, td_value *registers) {
    switch ((td_ir_kind)s->node->kind) {
    case TD_IR_OPERATOR:
        return run_operator(s, registers);
    case TD_IR_CONSTANT:
        return copy_value(s->node->constant, &registers[s->outputs[0]]);
    case TD_IR_IF:
        return run_if(s, registers);
    case TD_IR_LOOP:
        return run_loop(s, registers);
    case TD_IR_LIST_CONSTRUCT:
        return run_list(s, registers);
    case TD_IR_LIST_UNPACK:
        return run_unpack(s, registers);
    case TD_IR_FUSION_GROUP:
        return run_group(s, registers);
    case TD_IR_TUPLE_CONSTRUCT:
    case TD_IR_TUPLE_UNPACK:
    case TD_IR_SCALAR:
    case TD_IR_TUPLE_INDEX:
    case TD_IR_CAST:
    case TD_IR_RAISE:
    case TD_IR_PRINT:
    case TD_IR_CALL:
    case TD_IR_FORK:
    case TD_IR_HOST_CALL:
    case TD_IR_KINDS:
        break;
    }
    return td_fail(TD_EINTERNAL, "a node that can't be run");
}

static td_status fail_at(td_ir_place place, td_status status) {
    char prefix[160];
    if (place.file) {
        snprintf(prefix, sizeof prefix, "%.120s:%d", place.file, place.line);
        td_error_prefix(prefix);
    }
    return status;
}

static td_status run_code(const code *c, td_value *registers) {
    for (int k = 0; k < c->nunread; k++)
        td_script_drop(&registers[c->unread[k]]);
    for (int k = 0; k < c->nsteps; k++) {
        const step *s = &c->steps[k];
        td_status status = run_step(s, registers);
        if (TD_UNLIKELY(status))
            return fail_at(s->node->place, status);
        for (int d = 0; d < s->ndead; d++)
            td_script_drop(&registers[s->dead[d]]);
    }
    return TD_OK;
}

/* ---- calls ---- */

enum { ON_STACK = 64 };

static td_status check_inputs(const td_ir_block *block, const td_value *inputs) {
    for (int k = 0; k < block->ninputs; k++) {
        bool tensor = block->inputs[k]->type->kind == TD_IR_TENSOR;
        if (tensor && inputs[k].kind != TD_KIND_TENSOR)
            return td_fail(TD_ETYPE, "input %d (%s) is a tensor", k + 1, block->inputs[k]->name);
    }
    return TD_OK;
}

td_status td_script_run(const td_script *s, const td_value *inputs, td_value *outputs) {
    const td_ir_block *block = s->graph->block;
    td_value few[ON_STACK], *registers = few;
    for (int k = 0; k < block->noutputs; k++)
        outputs[k] = TD_NIL;
    td_status status = check_inputs(block, inputs);
    if (status == TD_OK && s->nregisters > ON_STACK)
        registers = td_malloc(sizeof *registers * (size_t)s->nregisters);
    if (status || !registers)
        return status ? status : td_fail(TD_ENOMEM, "out of memory for a script");
    for (int k = 0; k < s->nregisters; k++)
        registers[k] = TD_NIL;
    for (int k = 0; k < block->ninputs && status == TD_OK; k++)
        status = copy_value(inputs[k], &registers[s->code.inputs[k]]);
    if (status == TD_OK)
        status = run_code(&s->code, registers);
    for (int k = 0; k < block->noutputs && status == TD_OK; k++)
        status = copy_value(registers[s->code.outputs[k]], &outputs[k]);
    for (int k = 0; k < s->nregisters; k++)
        td_script_drop(&registers[k]);
    for (int k = 0; status && k < block->noutputs; k++)
        td_script_drop(&outputs[k]);
    if (registers != few)
        td_free(registers);
    return status;
}
