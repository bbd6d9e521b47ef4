/* fold.c: constant folding: operators of constants alone are called once, now.
 *
 * A captured tensor is no constant in this sense, as who holds it may write it between two runs: of
 * tensors only those count that nobody but the graph holds and that never leave it. Calls that fail
 * stay where they are and fail when they are reached.
 */
#include "engine/core/memory.h"
#include "engine/core/modes.h"
#include "engine/script/passes/alias.h"
#include "engine/script/passes/edit.h"
#include "engine/script/passes/fails.h"
#include "engine/script/passes/node_infer.h"
#include "engine/script/passes/passes.h"

enum { MOST_ELEMENTS = 256 }; /* of a tensor that becomes a constant */

typedef struct folder {
    td_ir_graph *graph;
    td_alias_info *alias;
    td_pass_note *note;
} folder;

/* May nobody see or change it but the nodes that read it? */
static bool is_private(const folder *f, const td_ir_value *value) {
    return !td_alias_is_written(f->alias, value) && !td_alias_leaves(f->alias, value);
}

static bool is_own_tensor(const folder *f, const td_ir_value *value) {
    const td_value *constant = td_ir_constant_of(value);
    const td_tensor *x = constant ? td_arg_tensor(*constant) : NULL;
    return x && x->layout == TD_STRIDED && !x->requires_grad && atomic_load(&x->refs) == 1 &&
           atomic_load(&x->storage->refs) == 1 && is_private(f, value);
}

/* Its arguments, where all of them are constants; what is made does not depend on what else may be
 * set (the default dtype). */
static bool find_arguments(const folder *f, const td_ir_node *node, td_value *args) {
    bool fixed = node->op->result_type != TD_RESULT_TENSOR;
    for (int k = 0; k < node->ninputs; k++) {
        const td_value *constant = td_ir_constant_of(node->inputs[k]);
        if (!constant || (constant->kind == TD_KIND_TENSOR && !is_own_tensor(f, node->inputs[k])))
            return false;
        fixed |= constant->kind == TD_KIND_TENSOR || constant->kind == TD_KIND_DTYPE;
        args[k] = *constant;
        if (constant->kind == TD_KIND_INT && node->op->params[k].type == TD_PARAM_FLOAT)
            args[k] = TD_F((double)constant->i);
    }
    return fixed;
}

/* May a call of it be made once instead of each time? */
static bool is_foldable(const folder *f, const td_ir_node *node) {
    const td_op *op = node->kind == TD_IR_OPERATOR ? node->op : NULL;
    if (!op || node->noutputs != 1 || td_node_acts(node) || op->flags & TD_OP_CREATES ||
        op->result_type == TD_RESULT_TENSORS || op->flags & TD_OP_VIEW)
        return false;
    const td_ir_type *type = node->outputs[0]->type;
    bool large = type->kind == TD_IR_TENSOR && td_ir_type_is_whole(type) &&
                 td_ir_type_elements(type) > MOST_ELEMENTS;
    return !large && !td_modes_current.casting && is_private(f, node->outputs[0]);
}

static void fold_node(const folder *f, td_ir_node *node) {
    td_value args[TD_MAX_PARAMS];
    if (!is_foldable(f, node) || !find_arguments(f, node, args))
        return;
    td_call call = {.op = node->op, .args = args};
    td_modes modes = td_get_modes();
    modes.dispatcher = NULL;
    modes = td_set_modes(modes);
    td_status status = td_op_run(&call);
    td_set_modes(modes);
    if (status)
        return;
    td_value result = call.out[0] ? TD_T(call.out[0]) : call.result;
    bool small =
        !call.out[0] || (call.out[0]->numel <= MOST_ELEMENTS && call.out[0]->layout == TD_STRIDED &&
                         !call.out[0]->base && !call.out[0]->requires_grad);
    if (small && result.kind != TD_KIND_NIL) {
        td_ir_value *value = td_edit_constant_before(node, result);
        if (value) {
            value->node->place = node->place;
            td_pass_say(f->note, node, "%s of constants", node->op->name);
            td_alias_join(f->alias, node->outputs[0], value);
            td_ir_replace(node->outputs[0], value);
            td_ir_remove(node);
        }
    }
    td_call_drop(&call);
}

static void fold_block(const folder *f, td_ir_block *block) {
    for (td_ir_node *node = block->first, *next; node; node = next) {
        next = node->next;
        for (int b = 0; b < node->nblocks; b++)
            fold_block(f, node->blocks[b]);
        fold_node(f, node);
    }
}

td_status td_pass_fold(td_ir_graph *g, td_pass_note *note) {
    folder f = {.graph = g, .note = note};
    td_status status = td_alias_new(g, &f.alias);
    if (status == TD_OK)
        fold_block(&f, g->block);
    td_alias_free(f.alias);
    return status ? status : td_ir_status(g);
}
