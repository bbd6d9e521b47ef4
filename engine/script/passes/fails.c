/* fails.c: which nodes may fail, draw or act. What is not known to be harmless is not. */
#include "engine/script/passes/fails.h"

#include "engine/script/passes/alias.h"
#include "engine/script/passes/node_infer.h"
#include "engine/script/scalars.h"

#include <string.h>

enum { MOST_TRIPS = 1 << 24 }; /* of a loop that is known to end */

bool td_op_is_random(const td_op *op) {
    if (op->flags & TD_OP_RANDOM)
        return true;
    for (int k = 0; k < op->nparams; k++)
        if (op->params[k].type == TD_PARAM_GENERATOR)
            return true;
    return false;
}

bool td_node_acts(const td_ir_node *node) {
    if (td_alias_node_writes(node)) /* kinds that are not known too */
        return true;
    if (node->kind == TD_IR_RAISE || node->kind == TD_IR_PRINT)
        return true;
    if (node->kind == TD_IR_OPERATOR && (!node->noutputs || td_op_is_random(node->op)))
        return true;
    for (int b = 0; b < node->nblocks; b++)
        for (const td_ir_node *inner = node->blocks[b]->first; inner; inner = inner->next)
            if (td_node_acts(inner))
                return true;
    return false;
}

/* ---- failures ---- */

/* Families whose operators refuse dtypes, shapes and numbers, and elements only as flags or the
 * kinds of their arguments say. */
static bool is_plain_family(const char *family) {
    static const char *const plain[] = {"pointwise", "special",   "activation", "shape", "reduce",
                                        "copy",      "make_like", "cat_split",  "matmul"};
    for (size_t k = 0; k < sizeof plain / sizeof *plain; k++)
        if (strcmp(plain[k], family) == 0)
            return true;
    return false;
}

/* Integers may not hold a number that is not known; floats hold all. */
static bool makes_floats(const td_ir_node *node) {
    const td_ir_type *type = node->outputs[0]->type;
    return node->op->pointwise && type->kind == TD_IR_TENSOR && type->dtype != TD_DTYPE_NONE &&
           td_dtype_is_float((td_dtype)type->dtype);
}

/* Whole quotients by 0, whole numbers to negative powers. */
static bool divides_integers(const td_ir_node *node) {
    static const char *const names[] = {"div",       "floor_divide", "trunc_divide",
                                        "remainder", "fmod",         "pow"};
    const td_ir_type *type = node->outputs[0]->type;
    bool floats = type->kind == TD_IR_TENSOR && type->dtype != TD_DTYPE_NONE &&
                  td_dtype_is_float((td_dtype)type->dtype);
    for (size_t k = 0; !floats && k < sizeof names / sizeof *names; k++)
        if (strcmp(names[k], node->op->name) == 0)
            return true;
    return false;
}

/* What it may reach depends on the memory behind its argument, of which types don't tell. */
static bool reaches_storage(const td_op *op) {
    return strncmp(op->name, "as_strided", strlen("as_strided")) == 0;
}

static bool operator_may_fail(const td_ir_node *node) {
    const td_op *op = node->op;
    td_inferred made;
    if (node->inplace || !node->noutputs || !is_plain_family(op->family) || td_op_is_random(op) ||
        op->flags & (TD_OP_INPLACE_ONLY | TD_OP_REFUSES | TD_OP_BY_ELEMENTS))
        return true;
    if (op->result_type != TD_RESULT_TENSOR && op->result_type != TD_RESULT_TENSORS)
        return true; /* numbers are read from elements */
    for (int k = 0; k < op->nparams; k++)
        if (op->params[k].type == TD_PARAM_TENSOR && op->params[k].base != TD_BASE_NONE)
            return true; /* indices */
    if ((op->pointwise && divides_integers(node)) || reaches_storage(op))
        return true;
    if (node->block->graph->fits)
        return false;
    td_infer_node(NULL, node, &made);
    return !made.exact && !(made.numbers && makes_floats(node));
}

/* As many parts as are unpacked? */
static bool unpack_may_fail(const td_ir_node *node) {
    const td_ir_node *list = node->inputs[0]->node;
    td_inferred made;
    if (list && list->kind == TD_IR_LIST_CONSTRUCT)
        return list->ninputs != node->noutputs;
    if (!list || list->kind != TD_IR_OPERATOR)
        return true;
    td_infer_node(NULL, list, &made);
    return !made.exact || made.n != node->noutputs;
}

/* A whole quotient by a constant other than 0 does not fail, nor does the length of a list. */
static bool scalar_may_fail(const td_ir_node *node) {
    static const char *const quotients[] = {"floordiv", "remainder", "fmod"};
    const td_scalar *s = node->scalar;
    if (s->acts == TD_SCALAR_PURE)
        return false;
    if (s->acts == TD_SCALAR_READS && strcmp(s->name, "len") == 0)
        return false;
    for (size_t k = 0; k < sizeof quotients / sizeof *quotients; k++)
        if (strcmp(s->name, quotients[k]) == 0) {
            const td_value *divisor = td_ir_constant_of(node->inputs[1]);
            return !divisor || (divisor->kind == TD_KIND_INT && divisor->i == 0);
        }
    return true;
}

static bool block_may_fail(const td_ir_block *block) {
    for (const td_ir_node *node = block->first; node; node = node->next)
        if (td_node_may_fail(node))
            return true;
    return false;
}

bool td_node_may_fail(const td_ir_node *node) {
    if (node->kind == TD_IR_OPERATOR)
        return operator_may_fail(node);
    if (node->kind == TD_IR_SCALAR)
        return scalar_may_fail(node);
    if (node->kind == TD_IR_LIST_UNPACK)
        return unpack_may_fail(node);
    if (node->kind == TD_IR_IF)
        return block_may_fail(node->blocks[0]) || block_may_fail(node->blocks[1]);
    if (node->kind == TD_IR_WITH)
        return block_may_fail(node->blocks[0]);
    if (node->kind == TD_IR_FUSION_GROUP)
        return block_may_fail(node->subgraph->block);
    if (node->kind == TD_IR_LOOP) {
        const td_value *trips = td_ir_constant_of(node->inputs[0]);
        return !trips || trips->i > MOST_TRIPS || block_may_fail(node->blocks[0]);
    }
    return node->kind != TD_IR_CONSTANT && node->kind != TD_IR_LIST_CONSTRUCT &&
           node->kind != TD_IR_DICT_CONSTRUCT && node->kind != TD_IR_TUPLE_CONSTRUCT &&
           node->kind != TD_IR_TUPLE_UNPACK;
}
