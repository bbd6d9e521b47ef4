/* fold.c: constant folding: operators of constants alone are called once, now.
 *
 * A captured tensor is no constant in this sense, as who holds it may write it between two runs: of
 * tensors only those count that nobody but the graph holds and that never leave it. Calls that fail
 * stay where they are and fail when they are reached. Entries of a list that the graph took apart
 * are its parts.
 */
#include "engine/core/memory.h"
#include "engine/core/modes.h"
#include "engine/script/passes/alias.h"
#include "engine/script/passes/edit.h"
#include "engine/script/passes/fails.h"
#include "engine/script/passes/node_infer.h"
#include "engine/script/passes/passes.h"
#include "engine/script/scalars.h"

#include <string.h>

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

/* ---- operators on numbers ---- */

static void put_constant(const folder *f, td_ir_node *node, td_value v) {
    td_ir_value *value = td_edit_constant_before(node, v);
    if (!value)
        return;
    value->node->place = node->place;
    td_pass_say(f->note, node, "%s of constants", node->scalar->name);
    td_ir_replace(node->outputs[0], value);
    td_ir_remove(node);
}

/* What a tensor's type tells: its dims and dtype. Not of one that is written: that may have been
 * turned. */
static bool tell_by_type(const folder *f, const td_ir_node *node, td_value *out) {
    const char *name = node->scalar->name;
    const td_ir_value *x = node->ninputs ? node->inputs[0] : NULL;
    const td_value *dim = node->ninputs > 1 ? td_ir_constant_of(node->inputs[1]) : NULL;
    if (!x || !td_ir_type_is_whole(x->type) || td_alias_is_written(f->alias, x))
        return false;
    const td_ir_type *type = x->type;
    int64_t d = dim && dim->kind == TD_KIND_INT ? dim->i + (dim->i < 0 ? type->n : 0) : -1;
    if (strcmp(name, "dim") == 0)
        *out = TD_I(type->n);
    else if (strcmp(name, "numel") == 0)
        *out = TD_I(td_ir_type_elements(type));
    else if (strcmp(name, "len") == 0 && type->n > 0)
        *out = TD_I(type->sizes[0]);
    else if (strcmp(name, "size") == 0 && d >= 0 && d < type->n)
        *out = TD_I(type->sizes[d]);
    else if (strcmp(name, "dtype") == 0)
        *out = TD_DTYPE((td_dtype)type->dtype);
    else if (strcmp(name, "is_floating_point") == 0)
        *out = TD_B(td_dtype_is_float((td_dtype)type->dtype));
    else
        return false;
    return true;
}

/* A value that is never None is none of them. */
static bool tell_none(const td_ir_node *node, td_value *out) {
    bool is = strcmp(node->scalar->name, "__is__") == 0;
    if (!is && strcmp(node->scalar->name, "__isnot__") != 0)
        return false;
    for (int k = 0; k < 2; k++) {
        const td_value *none = td_ir_constant_of(node->inputs[k]);
        uint8_t kind = node->inputs[1 - k]->type->kind;
        bool never = kind != TD_IR_NONE && kind != TD_IR_OPTIONAL && kind != TD_IR_ANY;
        if (none && td_is_nil(*none) && never) {
            *out = TD_B(!is);
            return true;
        }
    }
    return false;
}

/* Numbers, bools and strings alone, which nobody writes. */
static bool find_plain(const td_ir_node *node, td_value *args) {
    for (int k = 0; k < node->ninputs; k++) {
        const td_value *v = td_ir_constant_of(node->inputs[k]);
        if (!v || (v->kind != TD_KIND_INT && v->kind != TD_KIND_FLOAT && v->kind != TD_KIND_BOOL &&
                   v->kind != TD_KIND_STRING && v->kind != TD_KIND_NIL))
            return false;
        args[k] = *v;
    }
    return true;
}

/* ---- entries of lists ---- */

/* Where the graph begins with taking apart a list that comes in; NULL: it does not. */
static const td_ir_node *find_parts(const td_ir_value *list) {
    const td_ir_node *node = list->node ? NULL : list->block->first;
    while (node && (node->kind == TD_IR_CONSTANT || node->kind == TD_IR_LIST_UNPACK) &&
           !(node->kind == TD_IR_LIST_UNPACK && node->inputs[0] == list))
        node = node->next;
    return node && node->kind == TD_IR_LIST_UNPACK && td_list_is_only_read(list) ? node : NULL;
}

/* An entry at a constant, from 0 or from 1, of a list that was taken apart is a part. */
static bool read_part(const folder *f, td_ir_node *node) {
    const char *name = node->scalar->name;
    const bool from_one = strcmp(name, "get_entry") == 0;
    const td_value *at = node->ninputs == 2 ? td_ir_constant_of(node->inputs[1]) : NULL;
    if (!at || at->kind != TD_KIND_INT || (!from_one && strcmp(name, "__getitem__") != 0))
        return false;
    const td_ir_node *parts = find_parts(node->inputs[0]);
    const int64_t k = at->i - from_one;
    if (!parts || k < 0 || k >= parts->noutputs)
        return false;
    td_pass_say(f->note, node, "an entry of %%%s is known", node->inputs[0]->name);
    td_alias_join(f->alias, node->outputs[0], parts->outputs[k]);
    td_ir_replace(node->outputs[0], parts->outputs[k]);
    td_ir_remove(node);
    return true;
}

static void fold_scalar(const folder *f, td_ir_node *node) {
    enum { MOST = 16 };
    td_value args[MOST], result = TD_NIL;
    if (node->noutputs != 1 || node->ninputs > MOST || td_node_acts(node) || read_part(f, node))
        return;
    if (tell_by_type(f, node, &result) || tell_none(node, &result)) {
        put_constant(f, node, result);
        return;
    }
    if (!find_plain(node, args) || node->scalar->run(node->ninputs, args, &result))
        return; /* what fails, fails where it stands */
    int64_t length = 0;
    const char *text = td_value_text(result, &length);
    if (text && strlen(text) == (size_t)length)
        put_constant(f, node, TD_STRING(text));
    else if (result.kind == TD_KIND_INT || result.kind == TD_KIND_FLOAT ||
             result.kind == TD_KIND_BOOL || result.kind == TD_KIND_NIL)
        put_constant(f, node, result);
    td_value_drop(&result);
}

static void fold_block(const folder *f, td_ir_block *block) {
    for (td_ir_node *node = block->first, *next; node; node = next) {
        next = node->next;
        td_modes before = td_ir_enter(node);
        for (int b = 0; b < node->nblocks; b++)
            fold_block(f, node->blocks[b]);
        td_set_modes(before);
        if (node->kind == TD_IR_SCALAR)
            fold_scalar(f, node);
        else
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
