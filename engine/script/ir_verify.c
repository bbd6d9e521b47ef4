/* ir_verify.c: does a graph hold what ir.h promises of it? */
#include "engine/script/scalars.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* What is wrong with a node, or with a block's outputs where `node` is its owner. */
TD_PRINTF(2, 3) static td_status fail(const td_ir_node *node, const char *format, ...) {
    char what[256];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    const char *kind = !node                          ? "the graph"
                       : node->kind == TD_IR_OPERATOR ? (node->op ? node->op->name : "?")
                       : node->kind == TD_IR_SCALAR   ? (node->scalar ? node->scalar->name : "?")
                                                      : td_ir_kind_name((td_ir_kind)node->kind);
    return td_fail(TD_EINTERNAL, "%s%s%s: %s", kind, node && node->noutputs ? " that makes %" : "",
                   node && node->noutputs ? node->outputs[0]->name : "", what);
}

/* ---- operators ---- */

static bool is_list_of(const td_ir_type *type, td_ir_type_kind kind) {
    return type->kind == TD_IR_LIST &&
           (type->parts[0]->kind == kind || type->parts[0]->kind == TD_IR_ANY ||
            (type->parts[0]->kind == TD_IR_OPTIONAL && type->parts[0]->parts[0]->kind == kind));
}

/* May a parameter be given a value of this type? */
static bool takes(const td_param *param, const td_ir_type *type) {
    bool number = type->kind == TD_IR_INT || type->kind == TD_IR_FLOAT ||
                  type->kind == TD_IR_BOOL || type->kind == TD_IR_NUMBER;
    if (type->kind == TD_IR_ANY)
        return true;
    if (type->kind == TD_IR_NONE)
        return param->optional;
    if (type->kind == TD_IR_OPTIONAL)
        return param->optional && takes(param, type->parts[0]);
    switch ((td_param_type)param->type) {
    case TD_PARAM_TENSOR:
        return type->kind == TD_IR_TENSOR;
    case TD_PARAM_TENSORS:
        return is_list_of(type, TD_IR_TENSOR);
    case TD_PARAM_TENSOR_OR_NUMBER:
        return type->kind == TD_IR_TENSOR || number;
    case TD_PARAM_NUMBER:
    case TD_PARAM_FLOAT:
        return number || (param->word && type->kind == TD_IR_STRING);
    case TD_PARAM_INT:
    case TD_PARAM_DIM:
    case TD_PARAM_INDEX:
        return type->kind == TD_IR_INT || type->kind == TD_IR_NUMBER;
    case TD_PARAM_BOOL:
        return type->kind == TD_IR_BOOL;
    case TD_PARAM_DIMS:
    case TD_PARAM_INTS:
        return type->kind == TD_IR_INT || is_list_of(type, TD_IR_INT) ||
               (param->word && type->kind == TD_IR_STRING);
    case TD_PARAM_NUMBERS:
        return number || is_list_of(type, TD_IR_FLOAT) || is_list_of(type, TD_IR_INT);
    case TD_PARAM_DTYPE:
        return type->kind == TD_IR_DTYPE;
    case TD_PARAM_DEVICE:
        return type->kind == TD_IR_DEVICE;
    case TD_PARAM_STRING:
        return type->kind == TD_IR_STRING;
    case TD_PARAM_GENERATOR:
        return type->kind == TD_IR_GENERATOR;
    case TD_PARAM_ANY:
    case TD_PARAM_TABLE:
    case TD_PARAM_LIST:
    case TD_PARAM_DATA:
    case TD_PARAM_FUNCTION:
    case TD_PARAM_OBJECT:
    case TD_PARAM_OBJECTS:
        return false; /* of functions that are no operators */
    }
    return false;
}

/* May a result have this type? */
static bool gives(td_result_type result, const td_ir_type *type) {
    while (type->kind == TD_IR_OPTIONAL)
        type = type->parts[0];
    if (type->kind == TD_IR_ANY)
        return true;
    switch (result) {
    case TD_RESULT_TENSOR:
        return type->kind == TD_IR_TENSOR || type->kind == TD_IR_NONE;
    case TD_RESULT_TENSORS:
        return is_list_of(type, TD_IR_TENSOR);
    case TD_RESULT_NUMBER:
        return type->kind == TD_IR_NUMBER || type->kind == TD_IR_INT || type->kind == TD_IR_FLOAT;
    case TD_RESULT_BOOL:
        return type->kind == TD_IR_BOOL;
    case TD_RESULT_NOTHING:
        break;
    }
    return false;
}

static td_status check_operator(const td_ir_node *node) {
    char text[256];
    const td_op *op = node->op;
    if (!op)
        return fail(node, "it has no operator");
    if (node->inplace && !op->inplace_name)
        return fail(node, "it has no form in place");
    if (node->ninputs != op->nparams)
        return fail(node, "%d arguments, where it has %d parameters", node->ninputs, op->nparams);
    int results = op->result_type == TD_RESULT_NOTHING ? 0 : op->nresults ? op->nresults : 1;
    if (node->noutputs != results)
        return fail(node, "%d results, where it makes %d", node->noutputs, results);
    for (int k = 0; k < node->noutputs; k++)
        if (!gives((td_result_type)op->result_type, node->outputs[k]->type))
            return fail(node, "%%%s is %s, which it does not make", node->outputs[k]->name,
                        td_ir_type_text(node->outputs[k]->type, text, sizeof text));
    for (int k = 0; k < node->ninputs; k++)
        if (!takes(&op->params[k], node->inputs[k]->type))
            return fail(node, "%s is given %%%s, which is %s", op->params[k].name,
                        node->inputs[k]->name,
                        td_ir_type_text(node->inputs[k]->type, text, sizeof text));
    return TD_OK;
}

/* ---- the other kinds ---- */

/* Do n values fit n types, those of other values? */
static td_status check_fit(const td_ir_node *node, const char *what, int n,
                           td_ir_value *const *from, td_ir_value *const *to) {
    char given[256], wanted[256];
    for (int k = 0; k < n; k++)
        if (!td_ir_type_fits(from[k]->type, to[k]->type))
            return fail(node, "%s %%%s is %s, and %s is expected", what, from[k]->name,
                        td_ir_type_text(from[k]->type, given, sizeof given),
                        td_ir_type_text(to[k]->type, wanted, sizeof wanted));
    return TD_OK;
}

static td_status check_if(const td_ir_node *node) {
    td_status status = TD_OK;
    if (node->ninputs != 1 || node->nblocks != 2)
        return fail(node, "it has a condition and two blocks");
    if (node->inputs[0]->type->kind != TD_IR_BOOL && node->inputs[0]->type->kind != TD_IR_ANY)
        return fail(node, "its condition is a bool");
    for (int b = 0; b < 2 && status == TD_OK; b++) {
        const td_ir_block *block = node->blocks[b];
        if (block->ninputs || block->noutputs != node->noutputs)
            return fail(node, "block%d has no inputs and gives what the node makes", b);
        status = check_fit(node, "output", node->noutputs, block->outputs, node->outputs);
    }
    return status;
}

static td_status check_loop(const td_ir_node *node) {
    const td_ir_block *body = node->nblocks == 1 ? node->blocks[0] : NULL;
    int carried = node->noutputs;
    if (!body || node->ninputs != carried + 2 || body->ninputs != carried + 1 ||
        body->noutputs != carried + 1)
        return fail(node, "it has a block of (trip, carried...) -> (condition, carried...)");
    if (node->inputs[0]->type->kind != TD_IR_INT || node->inputs[1]->type->kind != TD_IR_BOOL ||
        body->inputs[0]->type->kind != TD_IR_INT || body->outputs[0]->type->kind != TD_IR_BOOL)
        return fail(node, "trips are ints, conditions bools");
    td_status status = check_fit(node, "carried", carried, node->inputs + 2, body->inputs + 1);
    if (status == TD_OK)
        status = check_fit(node, "carried", carried, body->outputs + 1, body->inputs + 1);
    return status ? status : check_fit(node, "carried", carried, body->inputs + 1, node->outputs);
}

static td_status check_with(const td_ir_node *node) {
    const td_ir_block *body = node->nblocks == 1 ? node->blocks[0] : NULL;
    const td_ir_mode *mode = &node->mode;
    if (!body || node->ninputs || body->ninputs || body->noutputs != node->noutputs)
        return fail(node, "it has one block, without inputs, that gives what the node makes");
    if (mode->kind >= TD_IR_MODE_KINDS || mode->device >= TD_DEVICE_TYPES ||
        (mode->kind == TD_IR_AUTOCAST && mode->dtype != TD_F16 && mode->dtype != TD_BF16))
        return fail(node, "there is no such mode");
    return check_fit(node, "output", node->noutputs, body->outputs, node->outputs);
}

static td_status check_parts(const td_ir_node *node, bool makes) {
    td_ir_value *const *whole = makes ? node->outputs : node->inputs;
    td_ir_value *const *parts = makes ? node->inputs : node->outputs;
    int n = makes ? node->ninputs : node->noutputs;
    bool list = node->kind == TD_IR_LIST_CONSTRUCT || node->kind == TD_IR_LIST_UNPACK;
    if ((makes ? node->noutputs : node->ninputs) != 1)
        return fail(node, "it has one list or tuple");
    const td_ir_type *type = whole[0]->type;
    if (type->kind != (list ? TD_IR_LIST : TD_IR_TUPLE) || (!list && type->n != n))
        return fail(node, list ? "it is of a list" : "it is of a tuple of as many parts");
    for (int k = 0; k < n; k++) {
        const td_ir_type *part = type->parts[list ? 0 : k];
        if (makes ? !td_ir_type_may_enter(parts[k]->type, part)
                  : !td_ir_type_fits(part, parts[k]->type))
            return fail(node, "%%%s does not fit its part", parts[k]->name);
    }
    return TD_OK;
}

static td_status check_dict(const td_ir_node *node) {
    const td_ir_type *type = node->noutputs == 1 ? node->outputs[0]->type : NULL;
    if (!type || type->kind != TD_IR_DICT || node->ninputs % 2)
        return fail(node, "it is a dict of keys and values");
    for (int k = 0; k < node->ninputs; k += 2)
        if (node->inputs[k]->type->kind != TD_IR_STRING ||
            !td_ir_type_may_enter(node->inputs[k + 1]->type, type->parts[1]))
            return fail(node, "%%%s does not fit it", node->inputs[k + 1]->name);
    return TD_OK;
}

static td_status check_group(const td_ir_node *node) {
    const td_ir_block *block = node->subgraph ? node->subgraph->block : NULL;
    if (!block || block->ninputs != node->ninputs || block->noutputs != node->noutputs)
        return fail(node, "its graph has the node's inputs and outputs");
    td_status status = check_fit(node, "input", node->ninputs, node->inputs, block->inputs);
    return status ? status
                  : check_fit(node, "output", node->noutputs, block->outputs, node->outputs);
}

static td_status check_scalar(const td_ir_node *node) {
    if (!node->scalar || !td_scalar_takes(node->scalar, node->ninputs, node->inputs))
        return fail(node, "its arguments are not those of its row");
    if (node->noutputs != 1)
        return fail(node, "it makes one value");
    char text[256];
    const td_ir_value *made = node->outputs[0];
    return td_scalar_gives(node->scalar, node->ninputs, node->inputs, made->type)
               ? TD_OK
               : fail(node, "%%%s is %s, which it does not make", made->name,
                      td_ir_type_text(made->type, text, sizeof text));
}

static td_status check_tuple_index(const td_ir_node *node) {
    const td_ir_node *index = node->ninputs == 2 ? node->inputs[1]->node : NULL;
    const td_ir_type *tuple = node->ninputs == 2 ? node->inputs[0]->type : NULL;
    if (!index || node->noutputs != 1 || tuple->kind != TD_IR_TUPLE ||
        index->kind != TD_IR_CONSTANT || index->constant.kind != TD_KIND_INT)
        return fail(node, "it is of a tuple and a constant int");
    if (index->constant.i < 0 || index->constant.i >= tuple->n)
        return fail(node, "there is no part %lld", (long long)index->constant.i);
    return td_ir_type_fits(tuple->parts[index->constant.i], node->outputs[0]->type)
               ? TD_OK
               : fail(node, "%%%s does not fit its part", node->outputs[0]->name);
}

/* What a graph gives, as a future of it holds it. */
static td_status check_fork(const td_ir_node *node) {
    const td_ir_block *block = node->subgraph ? node->subgraph->block : NULL;
    const td_ir_type *type = node->noutputs == 1 ? node->outputs[0]->type : NULL;
    if (!block || !type || type->kind != TD_IR_FUTURE || block->ninputs != node->ninputs)
        return fail(node, "its graph has the node's inputs, and it makes a future");
    const td_ir_type *whole = type->parts[0];
    bool single = block->noutputs == 1;
    if (!single && (whole->kind != TD_IR_TUPLE || whole->n != block->noutputs))
        return fail(node, "its future is of a tuple of %d parts", block->noutputs);
    for (int k = 0; k < block->noutputs; k++)
        if (!td_ir_type_may_enter(block->outputs[k]->type, single ? whole : whole->parts[k]))
            return fail(node, "output %%%s does not fit its future", block->outputs[k]->name);
    return check_fit(node, "input", node->ninputs, node->inputs, block->inputs);
}

static td_status check_constant(const td_ir_node *node) {
    if (node->ninputs || node->noutputs != 1)
        return fail(node, "it makes one value of none");
    return node->constant.kind == TD_KIND_TENSORS || node->constant.kind == TD_KIND_GENERATOR
               ? fail(node, "no constant is of this kind")
               : TD_OK;
}

static td_status check_kind(const td_ir_node *node) {
    switch ((td_ir_kind)node->kind) {
    case TD_IR_OPERATOR:
        return check_operator(node);
    case TD_IR_CONSTANT:
        return check_constant(node);
    case TD_IR_IF:
        return check_if(node);
    case TD_IR_LOOP:
        return check_loop(node);
    case TD_IR_WITH:
        return check_with(node);
    case TD_IR_LIST_CONSTRUCT:
    case TD_IR_TUPLE_CONSTRUCT:
        return check_parts(node, true);
    case TD_IR_LIST_UNPACK:
    case TD_IR_TUPLE_UNPACK:
        return check_parts(node, false);
    case TD_IR_FUSION_GROUP:
    case TD_IR_CALL:
        return check_group(node);
    case TD_IR_SCALAR:
        return check_scalar(node);
    case TD_IR_TUPLE_INDEX:
        return check_tuple_index(node);
    case TD_IR_CAST:
        return node->ninputs == 1 && node->noutputs == 1 ? TD_OK
                                                         : fail(node, "it makes one value of one");
    case TD_IR_RAISE:
        return node->ninputs && !node->noutputs && node->inputs[0]->type->kind == TD_IR_STRING
                   ? TD_OK
                   : fail(node, "its first input is a string, and it makes nothing");
    case TD_IR_PRINT:
        return node->noutputs ? fail(node, "it makes nothing") : TD_OK;
    case TD_IR_FORK:
        return check_fork(node);
    case TD_IR_HOST_CALL:
        return TD_OK;
    case TD_IR_DICT_CONSTRUCT:
        return check_dict(node);
    case TD_IR_KINDS:
        break;
    }
    return fail(node, "there is no such kind");
}

/* ---- blocks ---- */

static bool is_used(const td_ir_value *value, const td_ir_node *node, const td_ir_block *block,
                    int index) {
    for (const td_ir_use *use = value->uses; use; use = use->next)
        if (use->node == node && use->block == block && use->index == index)
            return true;
    return false;
}

/* Are all uses of a value there? */
static td_status check_uses(const td_ir_value *value) {
    for (const td_ir_use *use = value->uses; use; use = use->next) {
        bool inside = use->node ? use->index < use->node->ninputs && use->node->block
                                : use->index < use->block->noutputs;
        if (!inside ||
            (use->node ? use->node->inputs[use->index] : use->block->outputs[use->index]) != value)
            return fail(value->node, "%%%s has a use that is none", value->name);
    }
    return TD_OK;
}

static td_status check_block(const td_ir_block *block);

static td_status check_node(const td_ir_node *node, const td_ir_block *block) {
    td_status status = TD_OK;
    if (node->block != block || (node->next ? node->next->previous : block->last) != node)
        return fail(node, "it is not where its neighbours are");
    for (int k = 0; k < node->ninputs; k++) {
        if (!node->inputs[k] || !td_ir_sees(node, node->inputs[k]))
            return fail(node, "%%%s is not made before it",
                        node->inputs[k] ? node->inputs[k]->name : "?");
        if (!is_used(node->inputs[k], node, NULL, k))
            return fail(node, "the use of %%%s is missing", node->inputs[k]->name);
    }
    for (int k = 0; k < node->noutputs && status == TD_OK; k++)
        status = node->outputs[k]->node == node && node->outputs[k]->block == block
                     ? check_uses(node->outputs[k])
                     : fail(node, "an output is another node's");
    if (status == TD_OK)
        status = check_kind(node);
    for (int k = 0; k < node->nblocks && status == TD_OK; k++)
        status = node->blocks[k]->owner == node ? check_block(node->blocks[k])
                                                : fail(node, "a block is another node's");
    return status;
}

/* Does the end of a block see a value? */
static bool end_sees(const td_ir_block *block, const td_ir_value *value) {
    return value->block == block ? !value->node || value->node->block == block
                                 : block->owner && td_ir_sees(block->owner, value);
}

static td_status check_block(const td_ir_block *block) {
    td_status status = TD_OK;
    for (const td_ir_node *node = block->first; node && status == TD_OK; node = node->next)
        status = check_node(node, block);
    for (int k = 0; k < block->ninputs && status == TD_OK; k++)
        status = check_uses(block->inputs[k]);
    for (int k = 0; k < block->noutputs && status == TD_OK; k++) {
        if (!block->outputs[k] || !end_sees(block, block->outputs[k]))
            return fail(block->owner, "output %d is not made in it", k);
        if (!is_used(block->outputs[k], NULL, block, k))
            return fail(block->owner, "the use of %%%s is missing", block->outputs[k]->name);
    }
    return status;
}

td_status td_ir_verify(const td_ir_graph *g) {
    td_status status = td_ir_status(g);
    return status ? status : check_block(g->block);
}
