/* kernel.c: the programs of pointwise operators, one behind the other in one program. */
#include "engine/script/kernel.h"

#include "engine/autograd/autograd.h"
#include "engine/calls/lists_run.h"
#include "engine/core/backend.h"
#include "engine/core/memory.h"
#include "engine/ops/pointwise/pointwise.h"
#include "engine/script/group_name.h"

#include <stdio.h>
#include <string.h>

enum { MOST_VALUES = 64 };

struct td_script_kernel {
    const td_ir_graph *graph;
    const char *name; /* for those who record */
    const td_program *program;
    int ninputs, noutputs;
    bool floats; /* all of its inputs and outputs are, as far as types say */
};

/* ---- what may be part of it ---- */

static bool is_float(const td_ir_type *type) {
    return type->kind == TD_IR_TENSOR && (type->dtype == TD_F32 || type->dtype == TD_F64);
}

static const td_value *constant_of(const td_ir_value *value) {
    return value->node && value->node->kind == TD_IR_CONSTANT &&
                   value->node->constant.kind != TD_KIND_TENSOR
               ? &value->node->constant
               : NULL;
}

static bool is_mask(const td_ir_type *type) {
    return type->kind == TD_IR_TENSOR && type->dtype == TD_BOOL;
}

/* Does a pointwise operator of this type make what a kernel has: floats of floats, masks of either,
 * floats that a mask chooses? */
static bool takes_type(td_pointwise_type type, const td_ir_node *node) {
    switch (type) {
    case TD_PW_ARITH:
    case TD_PW_FLOATS:
        return is_float(node->outputs[0]->type);
    case TD_PW_SELECT:
        return is_float(node->outputs[0]->type) && is_mask(node->inputs[0]->type);
    case TD_PW_COMPARE:
    case TD_PW_FLOAT_TEST:
    case TD_PW_LOGICAL:
        return is_mask(node->outputs[0]->type);
    case TD_PW_DOUBLES:
    case TD_PW_BITWISE:
        break;
    }
    return false;
}

bool td_script_kernel_takes(const td_ir_node *node) {
    uint8_t dtype = TD_DTYPE_NONE;
    bool any = false;
    if (node->kind != TD_IR_OPERATOR || node->inplace || !node->op->pointwise ||
        node->noutputs != 1 || !takes_type((td_pointwise_type)node->op->pointwise->type, node))
        return false;
    td_pointwise_type type = (td_pointwise_type)node->op->pointwise->type;
    for (int k = 0; k < node->ninputs; k++) {
        const td_ir_value *value = node->inputs[k];
        if (constant_of(value))
            continue;
        bool mask = type == TD_PW_LOGICAL || (type == TD_PW_SELECT && k == 0);
        if (mask ? !is_mask(value->type)
                 : !is_float(value->type) || (any && value->type->dtype != dtype))
            return false;
        dtype = mask ? dtype : value->type->dtype;
        any |= !mask;
    }
    return any ? is_mask(node->outputs[0]->type) || node->outputs[0]->type->dtype == dtype
               : type == TD_PW_LOGICAL;
}

bool td_script_kernel_calls(const td_ir_node *node) {
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
    const td_ir_value *values[MOST_VALUES];
    int made[MOST_VALUES]; /* what each is in the builder */
    int nvalues;
    td_tensor *stand_in; /* for tensors, where an operator looks at arguments */
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

/* Another program's steps; `operands` are values of the builder. The value of its only output. */
static int add_program(td_builder *b, const td_program *p, const int *operands) {
    enum { MOST = 256 };
    int registers[MOST], n = 0;
    if (p->nloads + p->nconstants + p->noutputs + p->nbuffers > MOST || p->noutputs != 1)
        return -1;
    for (int k = 0; k < p->nloads; k++)
        registers[n++] =
            p->loads[k].dtype == TD_DTYPE_CALL
                ? operands[p->loads[k].operand]
                : td_builder_convert(b, operands[p->loads[k].operand], p->loads[k].dtype);
    for (int k = 0; k < p->nconstants; k++)
        registers[n++] = td_builder_number(b, p->constants[k].value);
    int out = n;
    for (int k = 0; k < p->nsteps; k++) {
        const td_step *s = &p->steps[k];
        bool converts = s->primitive == TD_PW_copy && s->from != s->to;
        const int x = registers[s->src[0]];
        registers[s->dst] = converts ? td_builder_convert(b, x, s->to)
                                     : td_builder_step(b, (td_primitive)s->primitive, x,
                                                       s->arity > 1 ? registers[s->src[1]] : 0,
                                                       s->arity > 2 ? registers[s->src[2]] : 0);
    }
    return p->nsteps ? registers[out] : registers[0];
}

static td_status add_node(maker *m, const td_ir_node *node) {
    td_value args[TD_MAX_PARAMS];
    int operands[TD_MAX_PARAMS];
    const td_op *op = node->op;
    if (node->kind != TD_IR_OPERATOR)
        return td_fail(TD_EVALUE, "%s can't be part of a kernel",
                       td_ir_kind_name((td_ir_kind)node->kind));
    for (int k = 0; k < node->ninputs; k++) {
        const td_value *constant = constant_of(node->inputs[k]);
        args[k] = constant ? *constant : TD_T(m->stand_in);
        bool number =
            constant && (constant->kind == TD_KIND_INT || constant->kind == TD_KIND_FLOAT ||
                         constant->kind == TD_KIND_BOOL);
        operands[k] = number     ? td_builder_number(m->builder, td_arg_double(*constant))
                      : constant ? -1
                                 : find_value(m, node->inputs[k]);
    }
    td_status status = op->variant ? op->variant(args, &op) : TD_OK;
    if (status)
        return status;
    const td_program *p = op->pointwise ? td_pointwise_program(op, args) : NULL;
    for (int k = 0; p && k < p->noperands; k++)
        if (operands[k] < 0)
            p = NULL;
    int made = p ? add_program(m->builder, p, operands) : -1;
    return made < 0 ? td_fail(TD_EVALUE, "%s can't be part of a kernel", node->op->name)
                    : add_value(m, node->outputs[0], made);
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
        status = add_value(m, block->inputs[k], td_builder_operand(m->builder, k));
    for (const td_ir_node *node = block->first; node && status == TD_OK; node = node->next)
        if (node->kind != TD_IR_CONSTANT)
            status = add_node(m, node);
    for (int k = 0; k < block->noutputs && status == TD_OK; k++)
        td_builder_output(m->builder, find_value(m, block->outputs[k]), TD_OUTPUT_ELEMENTS);
    if (status) {
        td_builder_release(m->builder);
        return status;
    }
    label_program(m);
    return td_builder_finish(m->builder, out);
}

static bool are_floats(int n, td_ir_value *const *values) {
    for (int k = 0; k < n; k++)
        if (!is_float(values[k]->type))
            return false;
    return true;
}

td_status td_script_kernel_new(const td_ir_graph *g, td_script_kernel **out) {
    maker m = {.graph = g};
    *out = NULL;
    td_script_kernel *k = td_calloc(1, sizeof *k);
    td_status status =
        td_tensor_empty(TD_F32, td_device_stand_in(TD_DEVICE_CPU), 0, NULL, &m.stand_in);
    if (status == TD_OK && k)
        m.builder = td_builder_new(g->block->ninputs);
    if (status == TD_OK)
        status = m.builder ? make_program(&m, &k->program)
                           : td_fail(TD_ENOMEM, "out of memory for a kernel");
    td_release(m.stand_in);
    if (status) {
        td_free(k);
        return status;
    }
    k->graph = g;
    k->name = td_script_group_name(g);
    k->ninputs = g->block->ninputs;
    k->noutputs = g->block->noutputs;
    k->floats =
        are_floats(k->ninputs, g->block->inputs) && are_floats(k->noutputs, g->block->outputs);
    *out = k;
    return TD_OK;
}

const td_program *td_script_kernel_program(const td_script_kernel *k) {
    return k->program;
}

void td_script_kernel_free(td_script_kernel *k) {
    if (k)
        td_program_release(k->program);
    td_free(k);
}

/* ---- runs ---- */

typedef struct shape {
    int ndim;
    int64_t sizes[TD_MAX_DIMS];
} shape;

static bool is_shape(const shape *a, int ndim, const int64_t *sizes) {
    return a->ndim == ndim && !memcmp(a->sizes, sizes, sizeof *sizes * (size_t)ndim);
}

/* The first tensor of floats with dims, or any; NULL where these inputs are not for a kernel. */
static const td_tensor *find_model(const td_script_kernel *kernel, const td_value *inputs) {
    const td_tensor *model = NULL;
    bool recording = td_is_recording();
    for (int k = 0; k < kernel->ninputs; k++) {
        const td_tensor *x = td_arg_tensor(inputs[k]);
        bool mask = is_mask(kernel->graph->block->inputs[k]->type);
        if (!x || x->layout != TD_STRIDED || (recording && td_is_followed(x)) ||
            (mask ? x->dtype != TD_BOOL : x->dtype != TD_F32 && x->dtype != TD_F64))
            return NULL;
        if (mask)
            continue;
        if (model && (x->dtype != model->dtype ||
                      !td_device_same(td_tensor_device(x), td_tensor_device(model))))
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

td_status td_script_kernel_run(const td_script_kernel *k, const td_value *inputs, td_value *outputs,
                               bool *taken) {
    td_operand operands[MOST_VALUES];
    td_tensor *results[MOST_VALUES] = {NULL};
    shape whole;
    bool plain = !td_modes_current.casting && !td_modes_current.dispatcher;
    const td_tensor *model = plain ? find_model(k, inputs) : NULL;
    *taken = model && find_shape(k, inputs, model, &whole);
    if (!*taken)
        return TD_OK;
    td_status status = TD_OK;
    td_device device = td_tensor_device(model);
    for (int j = 0; j < k->noutputs && status == TD_OK; j++) {
        bool mask = is_mask(k->graph->block->outputs[j]->type);
        status = td_tensor_empty(mask ? TD_BOOL : (td_dtype)model->dtype, device, whole.ndim,
                                 whole.sizes, &results[j]);
    }
    for (int j = 0; j < k->ninputs; j++)
        operands[j] = (td_operand){.tensor = inputs[j].tensor};
    td_pointwise_plan plan = {.program = k->program,
                              .operands = operands,
                              .compute = (td_dtype)model->dtype,
                              .nlists = 1,
                              .outs = results};
    td_lists_run run = {.name = k->name,
                        .device = device,
                        .n = k->noutputs,
                        .results = results,
                        .run = run_plan,
                        .plan = &plan};
    if (status == TD_OK)
        status = td_lists_run_observed(&run);
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

/* Row-major, of one dtype and shape, on one device, not recorded: results are so, too. */
static bool are_alike(const td_script_kernel *k, const td_value *inputs) {
    const td_tensor *model = inputs[0].tensor;
    bool recording = td_is_recording();
    for (int j = 0; j < k->ninputs; j++) {
        const td_tensor *x = inputs[j].tensor;
        if (inputs[j].kind != TD_KIND_TENSOR || x->layout != TD_STRIDED || !x->contiguous ||
            (recording && td_is_followed(x)))
            return false;
        if (x != model && (x->dtype != model->dtype || !td_tensor_same_shape(x, model) ||
                           !td_device_same(td_tensor_device(x), td_tensor_device(model))))
            return false;
    }
    return model->dtype == TD_F32 || model->dtype == TD_F64;
}

td_status td_script_kernel_run_alike(const td_script_kernel *k, const td_value *inputs,
                                     td_value *outputs, bool *taken) {
    td_operand operands[FEW];
    td_tensor *results[FEW];
    *taken = k->floats && k->ninputs && k->ninputs <= FEW && k->noutputs <= FEW &&
             !td_modes_current.casting && !td_modes_current.dispatcher && are_alike(k, inputs);
    if (!*taken)
        return TD_OK;
    const td_tensor *model = inputs[0].tensor;
    td_status status = TD_OK;
    int made = 0;
    while (made < k->noutputs && status == TD_OK) {
        status = td_tensor_empty_like(model, (td_dtype)model->dtype, &results[made]);
        made += status == TD_OK;
    }
    for (int j = 0; j < k->ninputs; j++)
        operands[j].tensor = inputs[j].tensor;
    td_pointwise_plan plan = {.program = k->program,
                              .operands = operands,
                              .compute = (td_dtype)model->dtype,
                              .nlists = 1,
                              .outs = results};
    td_lists_run run = {.name = k->name,
                        .device = td_tensor_device(model),
                        .n = k->noutputs,
                        .results = results,
                        .run = run_plan,
                        .plan = &plan};
    if (TD_LIKELY(status == TD_OK))
        status = td_lists_run_observed(&run);
    for (int j = 0; j < made; j++) {
        if (TD_UNLIKELY(status))
            td_release(results[j]);
        else
            outputs[j] = TD_T(results[j]);
    }
    return status;
}
