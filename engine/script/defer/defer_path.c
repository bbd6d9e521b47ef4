/* defer_path.c: steps of paths: made, compared with calls, turned into graphs. */
#include "engine/script/defer/defer_path.h"

#include "engine/autograd/autograd.h"
#include "engine/ops/language/expression.h"

#include <string.h>

uint8_t td_path_traits(const td_tensor *x) {
    return (uint8_t)(td_is_followed(x) | x->requires_grad << 1 | x->storage->inference << 2);
}

/* ---- comparison ---- */

static bool is_kind(const td_path_operand *o, const td_tensor *x) {
    const td_tensor *s = o->stand_in;
    size_t bytes = sizeof *x->sizes * x->ndim;
    return s->dtype == x->dtype && s->ndim == x->ndim && x->layout == TD_STRIDED &&
           o->traits == td_path_traits(x) && !td_is_stand_in(x) &&
           td_device_same(td_device_real(td_tensor_device(s)), td_tensor_device(x)) &&
           !memcmp(s->sizes, x->sizes, bytes) && !memcmp(s->strides, x->strides, bytes);
}

/* *bound: inputs that are known, with those that this call brought. */
static bool matches_tensor(const td_path_operand *o, td_tensor *x, td_tensor **inputs, int *bound) {
    if (!x || x == o->stand_in || o->input < 0)
        return x == o->stand_in;
    if (o->input < *bound)
        return inputs[o->input] == x;
    for (int k = 0; k < *bound; k++)
        if (inputs[k] == x)
            return false;
    if (!is_kind(o, x))
        return false;
    inputs[(*bound)++] = x;
    return true;
}

/* Numbers are the same by their bits: 0 is not -0. */
static bool same_plain(const td_value *a, const td_value *b) {
    if (a->kind != b->kind)
        return false;
    if (a->kind == TD_KIND_FLOAT)
        return !memcmp(&a->f, &b->f, sizeof a->f);
    if (a->kind == TD_KIND_FLOATS || a->kind == TD_KIND_INTS)
        return a->n == b->n && (!a->n || !memcmp(a->ints, b->ints, 8 * (size_t)a->n));
    return td_value_equal(*a, *b);
}

bool td_path_matches(const td_path_step *s, const td_call *call, td_tensor **inputs) {
    const td_path_operand *o = s->operands;
    int bound = s->before ? s->before->ninputs : 0;
    if (s->op != call->op || s->inplace != call->inplace)
        return false;
    for (int k = 0; k < s->op->nparams; k++) {
        const td_value *a = &s->args[k], *b = &call->args[k];
        if (a->kind != b->kind || a->from_one != b->from_one)
            return false;
        if (a->kind == TD_KIND_TENSOR) {
            if (!matches_tensor(o++, b->tensor, inputs, &bound))
                return false;
        } else if (a->kind == TD_KIND_TENSORS) {
            if (a->n != b->n)
                return false;
            for (int j = 0; j < a->n; j++)
                if (!matches_tensor(o++, b->tensors[j], inputs, &bound))
                    return false;
        } else if (!same_plain(a, b)) {
            return false;
        }
    }
    return true;
}

/* ---- steps ---- */

td_status td_path_stand_in(const td_tensor *x, td_tensor **out) {
    td_storage *storage;
    *out = NULL;
    td_status status =
        td_storage_empty(td_device_stand_in(td_tensor_device(x)), x->storage->bytes, &storage);
    if (status)
        return status;
    storage->inference = x->storage->inference;
    status = td_tensor_over(x, storage, out);
    td_storage_release(storage);
    if (status == TD_OK)
        (*out)->requires_grad = td_is_followed(x);
    return status;
}

/* A copy of a value that holds no tensors, or of the array of those it holds. */
static td_value copy_value(td_ir_graph *memory, const td_value *v) {
    td_value copy = *v;
    if (v->kind == TD_KIND_STRING)
        copy.string = td_ir_text(memory, v->string, strlen(v->string));
    if (v->kind == TD_KIND_INTS || v->kind == TD_KIND_FLOATS || v->kind == TD_KIND_TENSORS) {
        void *list = td_ir_alloc(memory, 8 * (size_t)(v->n ? v->n : 1));
        if (list && v->n)
            memcpy(list, v->ints, 8 * (size_t)v->n);
        copy.ints = list;
    }
    return copy;
}

/* The arguments' tensors become the operands' stand-ins. */
static void put_operands(td_path_step *s) {
    const td_path_operand *o = s->operands;
    for (int k = 0; k < s->op->nparams; k++) {
        if (s->args[k].kind == TD_KIND_TENSOR)
            s->args[k].tensor = o++->stand_in;
        else if (s->args[k].kind == TD_KIND_TENSORS)
            for (int j = 0; j < s->args[k].n; j++)
                ((td_tensor **)(uintptr_t)s->args[k].tensors)[j] = o++->stand_in;
    }
}

td_path_step *td_path_add(td_ir_graph *memory, td_path_step *before, const td_call *call,
                          int noperands, const td_path_operand *operands) {
    const td_op *op = call->op;
    td_path_step *s = td_ir_alloc(memory, sizeof *s);
    td_value *args = td_ir_alloc(memory, sizeof *args * (size_t)(op->nparams + 1));
    td_path_operand *own = td_ir_alloc(memory, sizeof *own * (size_t)(noperands + 1));
    if (!s || !args || !own)
        return NULL;
    for (int k = 0; k < op->nparams; k++)
        args[k] = copy_value(memory, &call->args[k]);
    if (noperands)
        memcpy(own, operands, sizeof *own * (size_t)noperands);
    if (memory->failed)
        return NULL;
    *s = (td_path_step){.before = before,
                        .op = op,
                        .inplace = call->inplace,
                        .ncalls = before->ncalls + 1,
                        .args = args,
                        .operands = own,
                        .noperands = noperands,
                        .ninputs = before->ninputs,
                        .random = before->random || op->flags & TD_OP_RANDOM,
                        .first_value = before->first_value + before->nouts};
    put_operands(s);
    for (int k = 0; k < noperands; k++)
        if (own[k].input >= s->ninputs)
            s->ninputs = own[k].input + 1;
    s->next = before->first;
    before->first = s;
    return s;
}

void td_path_drop(td_path_step *s, void (*drop)(td_path_end *end)) {
    for (td_path_step *next; s; s = next) {
        next = s->next;
        td_path_drop(s->first, drop); /* as deep as a path is long, which is bounded */
        int seen = s->before ? s->before->ninputs : 0;
        for (int k = 0; k < s->noperands; k++)
            if (s->operands[k].input == seen) { /* its own, at its first place */
                td_release(s->operands[k].stand_in);
                seen++;
            }
        for (int k = 0; k < s->nouts; k++)
            td_release(s->outs[k]);
        for (td_path_end *e = s->ends; e; e = e->next)
            drop(e);
    }
}

void td_path_list(td_path_step *s, td_path_step **steps) {
    for (; s->before; s = s->before)
        steps[s->ncalls - 1] = s;
}
