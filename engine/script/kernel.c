/* kernel.c: the programs of pointwise operators, one behind the other in one program. */
#include "engine/script/kernel.h"

#include "engine/autograd/autograd.h"
#include "engine/calls/autocast.h"
#include "engine/calls/lists_run.h"
#include "engine/core/backend.h"
#include "engine/core/memory.h"
#include "engine/ops/pointwise/pointwise.h"
#include "engine/script/group_name.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { MOST_VALUES = 64 };

/* Of a fast kernel: the program with its operators' bits, and what comparing the two found. */
typedef struct measure {
    const td_program *exact;
    atomic_llong calls;
    pthread_mutex_t lock; /* of the error */
    td_kernel_error error;
} measure;

struct td_script_kernel {
    const td_ir_graph *graph;
    const char *name; /* for those who record */
    const td_program *program;
    td_dtype compute; /* of steps of TD_DTYPE_CALL */
    int ninputs, noutputs;
    struct measure *fast;    /* NULL: it has the operators' bits */
    td_kernel_ways *ways;    /* NULL: it runs as a kernel */
    bool casts[TD_CUDA + 1]; /* by type of device: autocast does something to an operator */
    bool by_dims;            /* dtypes of what is computed depend on which inputs have dims */
    uint8_t inputs[MOST_VALUES], outputs[MOST_VALUES]; /* dtypes */
};

/* ---- what a node computes ---- */

static const td_value *constant_of(const td_ir_value *value) {
    return value->node && value->node->kind == TD_IR_CONSTANT &&
                   value->node->constant.kind != TD_KIND_TENSOR
               ? &value->node->constant
               : NULL;
}

/* A tensor of which all that dtypes depend on is known. */
static bool is_known(const td_ir_type *type) {
    return type->kind == TD_IR_TENSOR && type->dtype != TD_DTYPE_NONE && type->n >= 0 &&
           type->n <= TD_MAX_DIMS;
}

/* Is it a conversion of x to another dtype, and nothing more? */
static bool is_cast(const td_ir_node *node) {
    const bool copies = node->op == TD_OP(to_copy);
    const int format = copies ? 3 : 4; /* of arguments */
    const td_value *args[TD_MAX_PARAMS] = {NULL};
    if ((node->op != TD_OP(to) && !copies) || !is_known(node->inputs[0]->type))
        return false;
    for (int k = 1; k < node->ninputs; k++)
        if (!(args[k] = constant_of(node->inputs[k])))
            return false;
    const td_ir_type *x = node->inputs[0]->type;
    bool stays = td_is_nil(*args[2]) || (x->placed && args[2]->kind == TD_KIND_DEVICE &&
                                         td_device_same(args[2]->device, x->device));
    return args[1]->kind == TD_KIND_DTYPE && args[1]->dtype != x->dtype && stays &&
           args[format]->kind == TD_KIND_STRING && !strcmp(args[format]->string, "preserve");
}

/* What a node computes, and which of its inputs an operand is that is a tensor. */
typedef struct work {
    td_pointwise_work of;
    int places[TD_MAX_PARAMS]; /* -1: a number */
    bool cast;
} work;

static void settle_cast(const td_ir_node *node, work *w) {
    const td_dtype to = constant_of(node->inputs[1])->dtype;
    *w = (work){.of = {.program = td_primitive_program(TD_PW_copy), .compute = to, .result = to},
                .cast = true};
}

/* The arguments of a node, with stand-ins (owned by whoever calls) for its tensors. */
static td_status stand_in(const td_ir_node *node, td_value *args, td_tensor **tensors) {
    int64_t ones[TD_MAX_DIMS];
    td_status status = TD_OK;
    for (int d = 0; d < TD_MAX_DIMS; d++)
        ones[d] = 1;
    for (int k = 0; k < node->ninputs && status == TD_OK; k++) {
        const td_value *constant = constant_of(node->inputs[k]);
        const td_ir_type *type = node->inputs[k]->type;
        if (!constant && !is_known(type))
            return td_fail(TD_EVALUE, "an argument that is not known");
        if (!constant)
            status = td_tensor_empty((td_dtype)type->dtype, td_device_stand_in(TD_DEVICE_CPU),
                                     type->n, ones, &tensors[k]);
        args[k] = constant ? *constant : TD_T(tensors[k]);
        if (args[k].kind == TD_KIND_INT && node->op->params[k].type == TD_PARAM_FLOAT)
            args[k] = TD_F((double)args[k].i); /* as calls take it */
    }
    return status;
}

/* The pointwise operator of these arguments, which may become others; NULL: there is none. */
static td_status choose_op(const td_op **op, td_value *args) {
    td_value chosen[3];
    if (*op == TD_OP(clamp)) {
        *op = td_pointwise_clamp(args, chosen);
        memcpy(args, chosen, sizeof chosen);
    }
    return *op && (*op)->variant ? (*op)->variant(args, op) : TD_OK;
}

/* As far as types say; EVALUE: nothing that a program could do. */
static td_status settle(const td_ir_node *node, work *w) {
    td_value args[TD_MAX_PARAMS];
    td_tensor *tensors[TD_MAX_PARAMS] = {NULL};
    const td_op *op = node->op;
    *w = (work){.cast = is_cast(node)};
    if (w->cast) {
        settle_cast(node, w);
        return TD_OK;
    }
    td_status status = stand_in(node, args, tensors);
    if (status == TD_OK)
        status = choose_op(&op, args);
    if (status == TD_OK)
        status = op && op->pointwise
                     ? td_pointwise_settle(op, args, &w->of)
                     : td_fail(TD_EVALUE, "%s can't be part of a kernel", node->op->name);
    for (int k = 0; status == TD_OK && k < w->of.program->noperands; k++) {
        w->places[k] = -1;
        for (int j = 0; j < node->ninputs; j++)
            if (tensors[j] && w->of.operands[k].tensor == tensors[j])
                w->places[k] = j;
    }
    for (int k = 0; k < node->ninputs; k++)
        td_release(tensors[k]);
    return status;
}

static double number_of(const td_operand *o) {
    return o->is_int ? (double)o->i : o->f;
}

/* Is a number the same in a dtype whether it is taken as an integer or as a double, which is what
 * constants of programs are? */
static bool is_exact(const td_operand *o, td_dtype dtype) {
    unsigned char whole[8], rounded[8];
    if (!o->is_int)
        return true;
    td_store_int(dtype, whole, o->i);
    td_store_double(dtype, rounded, number_of(o));
    return !memcmp(whole, rounded, td_dtype_size(dtype));
}

/* May a value of an operand be 0 where integers are divided by it? */
static bool may_divide_by_zero(const work *w) {
    return w->of.divides && (w->places[1] >= 0 || number_of(&w->of.operands[1]) == 0);
}

int td_script_kernel_cost(const td_ir_node *node) {
    work w;
    return td_script_kernel_takes(node) && settle(node, &w) == TD_OK ? w.of.program->cost : INT_MAX;
}

bool td_script_kernel_takes(const td_ir_node *node) {
    work w;
    bool tensors = false;
    if (node->kind != TD_IR_OPERATOR || node->inplace || node->noutputs != 1 ||
        (!node->op->pointwise && node->op != TD_OP(clamp) && !is_cast(node)))
        return false;
    for (int k = 0; k < node->ninputs; k++) {
        if (!constant_of(node->inputs[k]) && !is_known(node->inputs[k]->type))
            return false;
        tensors |= !constant_of(node->inputs[k]);
    }
    if (!tensors || settle(node, &w) || w.of.result != node->outputs[0]->type->dtype ||
        may_divide_by_zero(&w))
        return false;
    const td_dtype compute = td_program_compute(w.of.program, w.of.compute);
    for (int k = 0; k < w.of.program->noperands; k++)
        if (w.places[k] < 0 && !is_exact(&w.of.operands[k], compute))
            return false;
    return true;
}

bool td_script_kernel_calls(const td_ir_node *node) {
    if (!node->op->pointwise) /* a conversion */
        return false;
    const int primitive = node->op->pointwise->primitive;
    const td_program *p =
        primitive < 0 ? node->op->programs->forward : td_primitive_program((td_primitive)primitive);
    for (int s = 0; s < p->nsteps; s++)
        if (td_primitive_cost((td_primitive)p->steps[s].primitive) > 1 &&
            p->steps[s].primitive != TD_PW_sqrt)
            return true;
    return false;
}

/* ---- the program ---- */

typedef struct maker {
    td_builder *builder;
    const td_ir_graph *graph;
    td_dtype compute; /* what TD_DTYPE_CALL stands for */
    bool fast;
    const td_ir_value *values[MOST_VALUES];
    int made[MOST_VALUES]; /* what each is in the builder */
    int nvalues;
} maker;

static td_status add_value(maker *m, const td_ir_value *value, int made) {
    if (m->nvalues == MOST_VALUES)
        return td_fail(TD_EVALUE, "a group of more than %d values", MOST_VALUES);
    m->values[m->nvalues] = value;
    m->made[m->nvalues++] = made;
    return TD_OK;
}

static int find_value(const maker *m, const td_ir_value *value) {
    for (int k = 0; k < m->nvalues; k++)
        if (m->values[k] == value)
            return m->made[k];
    return -1;
}

/* A dtype as programs have it. */
static uint8_t named(const maker *m, td_dtype dtype) {
    return dtype == m->compute ? (uint8_t)TD_DTYPE_CALL : (uint8_t)dtype;
}

/* An operator's program, of which TD_DTYPE_CALL is `call`: its steps; `operands` are values of the
 * builder. The value of its only output, -1: there is none. */
static int add_program(const maker *m, const td_program *p, td_dtype call, const int *operands) {
    enum { MOST = 256 };
    int registers[MOST], n = 0;
    td_builder *b = m->builder;
    if (p->nloads + p->nconstants + p->noutputs + p->nbuffers > MOST || p->noutputs != 1)
        return -1;
    for (int k = 0; k < p->nloads; k++)
        registers[n++] = td_builder_convert(b, operands[p->loads[k].operand],
                                            named(m, td_dtype_in_call(p->loads[k].dtype, call)));
    for (int k = 0; k < p->nconstants; k++)
        registers[n++] =
            td_builder_convert(b, td_builder_number(b, p->constants[k].value),
                               named(m, td_dtype_in_call(p->constants[k].dtype, call)));
    for (int k = 0; k < p->nsteps; k++) {
        const td_step *s = &p->steps[k];
        const int x = registers[s->src[0]];
        registers[s->dst] = s->primitive == TD_PW_copy
                                ? td_builder_convert(b, x, named(m, td_dtype_in_call(s->to, call)))
                                : td_builder_step_as(b, (td_primitive)s->primitive,
                                                     named(m, td_dtype_in_call(s->from, call)), x,
                                                     s->arity > 1 ? registers[s->src[1]] : 0,
                                                     s->arity > 2 ? registers[s->src[2]] : 0);
    }
    return registers[n];
}

/* The result of an operator is rounded, as it is by itself; of a fast one float32 may go on. */
static int add_result(const maker *m, int made, const work *w) {
    const td_pointwise_work *of = &w->of;
    bool goes_on = m->fast && !w->cast && td_dtype_compute(of->result) != of->result &&
                   of->program->outputs[0].dtype == TD_DTYPE_CALL &&
                   td_program_compute(of->program, of->compute) == TD_F32;
    return goes_on ? made : td_builder_convert(m->builder, made, named(m, of->result));
}

static td_status add_node(maker *m, const td_ir_node *node) {
    work w;
    int operands[TD_MAX_PARAMS];
    if (node->kind != TD_IR_OPERATOR)
        return td_fail(TD_EVALUE, "%s can't be part of a kernel",
                       td_ir_kind_name((td_ir_kind)node->kind));
    td_status status = settle(node, &w);
    if (status)
        return status;
    const td_program *p = w.of.program;
    for (int k = 0; k < p->noperands; k++)
        operands[k] = w.places[k] >= 0
                          ? find_value(m, node->inputs[w.places[k]])
                          : td_builder_number(m->builder, number_of(&w.of.operands[k]));
    int made = add_program(m, p, td_program_compute(p, w.of.compute), operands);
    return made < 0 ? td_fail(TD_EVALUE, "%s can't be part of a kernel", node->op->name)
                    : add_value(m, node->outputs[0], add_result(m, made, &w));
}

/* Elements are read as they are in memory; a single one as what reads it. */
static td_status add_input(maker *m, int k) {
    const td_ir_value *input = m->graph->block->inputs[k];
    int operand = td_builder_operand(m->builder, k);
    if (!is_known(input->type))
        return td_fail(TD_EVALUE, "an input of a kernel that is not known");
    return add_value(m, input,
                     input->type->n ? td_builder_convert(m->builder, operand,
                                                         named(m, (td_dtype)input->type->dtype))
                                    : operand);
}

/* By the place of the first operator that has one. */
static void label_program(const maker *m) {
    char text[600];
    const td_ir_node *node = m->graph->block->first;
    while (node && (node->kind == TD_IR_CONSTANT || !node->place.file))
        node = node->next;
    if (!node)
        return;
    snprintf(text, sizeof text, "%.500s:%d", node->place.file, node->place.line);
    td_builder_label(m->builder, text);
}

static td_status make_program(maker *m, const td_program **out) {
    const td_ir_block *block = m->graph->block;
    td_status status = TD_OK;
    for (int k = 0; k < block->ninputs && status == TD_OK; k++)
        status = add_input(m, k);
    for (const td_ir_node *node = block->first; node && status == TD_OK; node = node->next)
        if (node->kind != TD_IR_CONSTANT)
            status = add_node(m, node);
    for (int k = 0; k < block->noutputs && status == TD_OK; k++) {
        const td_dtype dtype = (td_dtype)block->outputs[k]->type->dtype;
        int made =
            td_builder_convert(m->builder, find_value(m, block->outputs[k]), named(m, dtype));
        td_builder_output(m->builder, made, TD_OUTPUT_ELEMENTS);
    }
    if (status) {
        td_builder_release(m->builder);
        return status;
    }
    label_program(m);
    if (m->fast)
        td_builder_set_fast(m->builder);
    return td_builder_finish(m->builder, out);
}

static td_status make_one(const td_script_kernel *k, bool fast, const td_program **out) {
    maker m = {.graph = k->graph, .compute = k->compute, .fast = fast};
    m.builder = td_builder_new(k->ninputs);
    return m.builder ? make_program(&m, out) : td_fail(TD_ENOMEM, "out of memory for a kernel");
}

static td_status make_programs(td_script_kernel *k) {
    td_status status = make_one(k, k->graph->fast, &k->program);
    if (status || !k->graph->fast)
        return status;
    k->fast = td_calloc(1, sizeof *k->fast);
    if (!k->fast)
        return td_fail(TD_ENOMEM, "out of memory for a kernel");
    pthread_mutex_init(&k->fast->lock, NULL);
    return make_one(k, false, &k->fast->exact);
}

/* Groups of one float share programs with the operators that were compiled with Tide. */
static td_dtype choose_compute(const td_ir_block *block) {
    work w;
    for (const td_ir_node *node = block->first; node; node = node->next)
        if (node->kind != TD_IR_CONSTANT && settle(node, &w) == TD_OK &&
            td_dtype_compute(w.of.compute) == w.of.compute && w.of.compute != TD_BOOL)
            return w.of.compute;
    return TD_F32;
}

static void note_casts(td_script_kernel *k) {
    for (const td_ir_node *node = k->graph->block->first; node; node = node->next)
        for (int slot = 0; node->kind == TD_IR_OPERATOR && slot <= TD_CUDA; slot++)
            k->casts[slot] |= node->op->autocast[slot] != TD_AUTOCAST_NONE;
}

static td_status look_at_ends(td_script_kernel *k) {
    const td_ir_block *block = k->graph->block;
    const int zero = k->ninputs ? block->inputs[0]->type->n == 0 : 0;
    if (k->ninputs > MOST_VALUES || k->noutputs > MOST_VALUES)
        return td_fail(TD_EVALUE, "a group of more than %d inputs or outputs", MOST_VALUES);
    for (int j = 0; j < k->ninputs; j++) {
        k->inputs[j] = block->inputs[j]->type->dtype;
        k->by_dims |= (block->inputs[j]->type->n == 0) != zero;
    }
    for (int j = 0; j < k->noutputs; j++)
        k->outputs[j] = block->outputs[j]->type->dtype;
    return TD_OK;
}

static bool is_narrow(td_dtype dtype) {
    return td_dtype_compute(dtype) != dtype;
}

/* 16-bit floats, with the operators' bits. */
static td_status choose_ways(td_script_kernel *k) {
    bool narrow = false;
    for (int j = 0; j < k->ninputs; j++)
        narrow |= is_narrow((td_dtype)k->inputs[j]);
    for (int j = 0; j < k->noutputs; j++)
        narrow |= is_narrow((td_dtype)k->outputs[j]);
    if (!narrow || k->fast)
        return TD_OK;
    k->ways = td_kernel_ways_new();
    return k->ways ? TD_OK : td_fail(TD_ENOMEM, "out of memory for a kernel");
}

td_kernel_ways *td_script_kernel_ways(const td_script_kernel *k) {
    return k->ways;
}

td_status td_script_kernel_new(const td_ir_graph *g, td_script_kernel **out) {
    *out = NULL;
    td_script_kernel *k = td_calloc(1, sizeof *k);
    if (!k)
        return td_fail(TD_ENOMEM, "out of memory for a kernel");
    *k = (td_script_kernel){.graph = g,
                            .name = td_script_group_name(g),
                            .compute = choose_compute(g->block),
                            .ninputs = g->block->ninputs,
                            .noutputs = g->block->noutputs};
    td_status status = look_at_ends(k);
    note_casts(k);
    if (status == TD_OK)
        status = make_programs(k);
    if (status == TD_OK)
        status = choose_ways(k);
    if (status) {
        td_script_kernel_free(k);
        return status;
    }
    *out = k;
    return TD_OK;
}

const td_program *td_script_kernel_program(const td_script_kernel *k) {
    return k->program;
}

td_dtype td_script_kernel_compute(const td_script_kernel *k) {
    return k->compute;
}

void td_script_kernel_free(td_script_kernel *k) {
    if (!k)
        return;
    td_program_release(k->program);
    td_kernel_ways_free(k->ways);
    if (k->fast) {
        td_program_release(k->fast->exact);
        pthread_mutex_destroy(&k->fast->lock);
        td_free(k->fast);
    }
    td_free(k);
}

/* ---- runs ---- */

/* Must its operators see the modes of this call themselves? */
static bool is_apart(const td_script_kernel *k, const td_tensor *model) {
    if (TD_LIKELY(!td_modes_current.casting && !td_modes_current.dispatcher))
        return false;
    int slot = td_autocast_slot(td_tensor_device(model));
    return td_modes_current.dispatcher || k->casts[slot < TD_CUDA ? slot : TD_CUDA];
}

typedef struct shape {
    int ndim;
    int64_t sizes[TD_MAX_DIMS];
} shape;

static bool is_shape(const shape *a, int ndim, const int64_t *sizes) {
    return a->ndim == ndim && !memcmp(a->sizes, sizes, sizeof *sizes * (size_t)ndim);
}

/* The first tensor with dims, or any; NULL where these inputs are not for a kernel. */
static const td_tensor *find_model(const td_script_kernel *kernel, const td_value *inputs) {
    const td_tensor *model = NULL;
    bool recording = td_is_recording();
    for (int k = 0; k < kernel->ninputs; k++) {
        const td_tensor *x = td_arg_tensor(inputs[k]);
        const td_ir_type *type = kernel->graph->block->inputs[k]->type;
        if (!x || x->layout != TD_STRIDED || (recording && td_is_followed(x)) ||
            x->dtype != kernel->inputs[k] || (x->ndim == 0) != (type->n == 0) ||
            (model && !td_device_same(td_tensor_device(x), td_tensor_device(model))))
            return NULL;
        model = !model || (!model->ndim && x->ndim) ? x : model;
    }
    return model;
}

/* Does each node make this shape from these inputs? */
static bool nodes_make(const td_script_kernel *k, const td_value *inputs, const shape *whole) {
    shape made[MOST_VALUES];
    const td_ir_value *values[MOST_VALUES];
    const td_ir_block *block = k->graph->block;
    int n = 0;
    for (; n < k->ninputs; n++) {
        const td_tensor *x = inputs[n].tensor;
        values[n] = block->inputs[n];
        made[n].ndim = x->ndim;
        memcpy(made[n].sizes, x->sizes, sizeof *x->sizes * (size_t)x->ndim);
    }
    for (const td_ir_node *node = block->first; node; node = node->next) {
        if (node->kind == TD_IR_CONSTANT)
            continue;
        shape s = {.ndim = 0};
        for (int a = 0; a < node->ninputs; a++)
            for (int v = 0; v < n; v++)
                if (values[v] == node->inputs[a] &&
                    td_broadcast(s.ndim, s.sizes, made[v].ndim, made[v].sizes, &s.ndim, s.sizes))
                    return false; /* the operator says it better */
        if (!is_shape(whole, s.ndim, s.sizes))
            return false;
        values[n] = node->outputs[0];
        made[n++] = s;
    }
    return true;
}

/* The shape of all results, and whether they are row-major; false where the operators would make
 * something else. */
static bool find_shape(const td_script_kernel *k, const td_value *inputs, const td_tensor *model,
                       shape *whole) {
    bool alike = true;
    whole->ndim = model->ndim;
    memcpy(whole->sizes, model->sizes, sizeof *model->sizes * (size_t)model->ndim);
    for (int j = 0; j < k->ninputs; j++) {
        const td_tensor *x = inputs[j].tensor;
        alike &= is_shape(whole, x->ndim, x->sizes);
        if (!alike &&
            td_broadcast(whole->ndim, whole->sizes, x->ndim, x->sizes, &whole->ndim, whole->sizes))
            return false;
    }
    for (int j = 0; j < k->ninputs; j++) /* a node of some of them alone makes what these say */
        if (td_layout_model(1, &inputs[j], whole->ndim, whole->sizes))
            return false;
    return alike || nodes_make(k, inputs, whole);
}

static td_status run_plan(td_device device, void *plan) {
    return TD_RUN(device, pointwise, (td_pointwise_plan *)plan);
}

/* The same as its operators do it, and what the results differ in. No failure is the call's. */
static td_status look_closer(measure *fast, td_pointwise_plan plan, td_device device, int n) {
    td_tensor *right[MOST_VALUES] = {NULL}, *const *made = plan.outs;
    td_kernel_error error = {.calls = 1};
    td_status status = TD_OK;
    for (int j = 0; j < n && status == TD_OK; j++)
        status = td_tensor_empty_like(made[j], (td_dtype)made[j]->dtype, &right[j]);
    plan.program = fast->exact;
    plan.outs = right;
    if (status == TD_OK)
        status = run_plan(device, &plan);
    for (int j = 0; j < n && status == TD_OK; j++)
        status = td_kernel_error_add(&error, made[j], right[j]);
    for (int j = 0; j < n; j++)
        td_release(right[j]);
    if (status)
        return status;
    pthread_mutex_lock(&fast->lock);
    td_kernel_error_join(&fast->error, &error);
    pthread_mutex_unlock(&fast->lock);
    return TD_OK;
}

void td_script_kernel_measured(td_script_kernel *k, td_kernel_error *error) {
    if (!k || !k->fast)
        return;
    pthread_mutex_lock(&k->fast->lock);
    td_kernel_error_join(error, &k->fast->error);
    pthread_mutex_unlock(&k->fast->lock);
}

/* Calls 1, 2, 4, 8 and so on: machine code is there after some, and inputs vary. */
static bool is_looked_at(measure *fast) {
    long long call = atomic_fetch_add_explicit(&fast->calls, 1, memory_order_relaxed) + 1;
    return (call & (call - 1)) == 0;
}

static td_status run_on(const td_script_kernel *k, const td_operand *operands, td_device device,
                        td_tensor **results) {
    td_pointwise_plan plan = {.program = k->program,
                              .operands = operands,
                              .compute = k->compute,
                              .nlists = 1,
                              .outs = results};
    td_lists_run run = {.name = k->name,
                        .device = device,
                        .n = k->noutputs,
                        .results = results,
                        .run = run_plan,
                        .plan = &plan};
    td_status status = td_lists_run_observed(&run);
    if (TD_UNLIKELY(k->fast) && status == TD_OK && is_looked_at(k->fast))
        (void)look_closer(k->fast, plan, device, k->noutputs);
    return status;
}

td_status td_script_kernel_run(const td_script_kernel *k, const td_value *inputs, td_value *outputs,
                               bool *taken) {
    td_operand operands[MOST_VALUES];
    td_tensor *results[MOST_VALUES] = {NULL};
    shape whole;
    const td_tensor *model = find_model(k, inputs);
    *taken = model && !is_apart(k, model) && find_shape(k, inputs, model, &whole);
    if (!*taken)
        return TD_OK;
    td_status status = TD_OK;
    td_device device = td_tensor_device(model);
    for (int j = 0; j < k->noutputs && status == TD_OK; j++)
        status =
            td_tensor_empty((td_dtype)k->outputs[j], device, whole.ndim, whole.sizes, &results[j]);
    for (int j = 0; j < k->ninputs; j++)
        operands[j] = (td_operand){.tensor = inputs[j].tensor};
    if (status == TD_OK)
        status = run_on(k, operands, device, results);
    for (int j = 0; j < k->noutputs; j++) {
        if (status)
            td_release(results[j]);
        else
            outputs[j] = TD_T(results[j]);
    }
    return status;
}

/* ---- inputs that are alike ---- */

enum { FEW = 8 };

/* Row-major, of one shape, on one device, not recorded: results are so, too. */
static bool are_alike(const td_script_kernel *k, const td_value *inputs) {
    const td_tensor *model = inputs[0].tensor;
    bool recording = td_is_recording();
    for (int j = 0; j < k->ninputs; j++) {
        const td_tensor *x = inputs[j].tensor;
        if (inputs[j].kind != TD_KIND_TENSOR || x->layout != TD_STRIDED || !x->contiguous ||
            x->dtype != k->inputs[j] || (recording && td_is_followed(x)))
            return false;
        if (x != model && (!td_tensor_same_shape(x, model) ||
                           !td_device_same(td_tensor_device(x), td_tensor_device(model))))
            return false;
    }
    return true;
}

td_status td_script_kernel_run_alike(const td_script_kernel *k, const td_value *inputs,
                                     td_value *outputs, bool *taken) {
    td_operand operands[FEW];
    td_tensor *results[FEW];
    *taken = !k->by_dims && k->ninputs && k->ninputs <= FEW && k->noutputs <= FEW &&
             are_alike(k, inputs) && !is_apart(k, inputs[0].tensor);
    if (!*taken)
        return TD_OK;
    const td_tensor *model = inputs[0].tensor;
    td_status status = TD_OK;
    int made = 0;
    while (made < k->noutputs && status == TD_OK) {
        status = td_tensor_empty_like(model, (td_dtype)k->outputs[made], &results[made]);
        made += status == TD_OK;
    }
    for (int j = 0; j < k->ninputs; j++)
        operands[j].tensor = inputs[j].tensor;
    if (TD_LIKELY(status == TD_OK))
        status = run_on(k, operands, td_tensor_device(model), results);
    for (int j = 0; j < made; j++) {
        if (TD_UNLIKELY(status))
            td_release(results[j]);
        else
            outputs[j] = TD_T(results[j]);
    }
    return status;
}
