/* operands.c: what operators take and give, beside what graphs hold. */
#include "engine/script/operands.h"

#include "engine/core/memory.h"
#include "engine/script/kinds.h"

/* ---- arguments ---- */

#define BIT(kind) ((uint64_t)1 << (kind))
static const uint64_t numbers = BIT(TD_KIND_INT) | BIT(TD_KIND_FLOAT) | BIT(TD_KIND_BOOL);

uint64_t td_argument_kinds(const td_param *p) {
    uint64_t kinds = (p->optional ? BIT(TD_KIND_NIL) : 0) | (p->word ? BIT(TD_KIND_STRING) : 0);
    switch ((td_param_type)p->type) {
    case TD_PARAM_TENSOR:
        return kinds | BIT(TD_KIND_TENSOR);
    case TD_PARAM_TENSORS:
        return kinds | BIT(TD_KIND_TENSORS);
    case TD_PARAM_NUMBER:
        return kinds | numbers;
    case TD_PARAM_TENSOR_OR_NUMBER:
        return kinds | numbers | BIT(TD_KIND_TENSOR);
    case TD_PARAM_INT:
    case TD_PARAM_DIM:
    case TD_PARAM_INDEX:
        return kinds | BIT(TD_KIND_INT);
    case TD_PARAM_FLOAT:
        return kinds | BIT(TD_KIND_FLOAT);
    case TD_PARAM_BOOL:
        return kinds | BIT(TD_KIND_BOOL);
    case TD_PARAM_DIMS:
    case TD_PARAM_INTS:
        return kinds | BIT(TD_KIND_INTS) | (p->alone ? BIT(TD_KIND_INT) : 0);
    case TD_PARAM_NUMBERS:
        return kinds | BIT(TD_KIND_FLOATS);
    case TD_PARAM_DTYPE:
        return kinds | BIT(TD_KIND_DTYPE);
    case TD_PARAM_DEVICE:
        return kinds | BIT(TD_KIND_DEVICE);
    case TD_PARAM_STRING:
        return kinds | BIT(TD_KIND_STRING);
    case TD_PARAM_GENERATOR:
        return kinds | BIT(TD_KIND_GENERATOR);
    case TD_PARAM_ANY:
    case TD_PARAM_TABLE:
    case TD_PARAM_LIST:
    case TD_PARAM_DATA:
    case TD_PARAM_FUNCTION:
    case TD_PARAM_OBJECT:
    case TD_PARAM_OBJECTS:
        break;
    }
    return kinds;
}

/* A value as the parameter takes it; false: it can't be. */
static bool fit_argument(const td_param *p, int k, uint64_t kinds, td_argument_room *r,
                         td_value *v) {
    if (v->kind == TD_BOX_LIST)
        *v = td_list_argument(td_value_list(*v));
    if (v->kind == TD_BOX_STRING)
        *v = TD_STRING(td_value_text(*v, NULL));
    if (v->kind == TD_KIND_INT && p->type == TD_PARAM_FLOAT)
        *v = TD_F((double)v->i);
    if (v->kind == TD_KIND_INT && (p->type == TD_PARAM_INTS || p->type == TD_PARAM_DIMS) &&
        !p->alone) {
        r->ints[k] = v->i;
        *v = TD_INTS(1, &r->ints[k]);
    }
    if (p->type == TD_PARAM_NUMBERS && v->kind != TD_KIND_FLOATS) {
        int n = v->kind == TD_KIND_INTS ? v->n : 1;
        if (v->kind == TD_KIND_NIL || n > 16)
            return kinds >> v->kind & 1;
        for (int j = 0; j < n; j++)
            r->floats[j] = v->kind == TD_KIND_INTS ? (double)v->ints[j] : td_arg_double(*v);
        *v = TD_FLOATS(n, r->floats);
    }
    return kinds >> v->kind & 1;
}

td_status td_fit_arguments(const td_op *op, int n, td_argument_room *room, td_value *args) {
    for (int k = 0; k < n; k++) {
        const uint64_t kinds = td_argument_kinds(&op->params[k]);
        td_value given = args[k];
        if (!(kinds >> given.kind & 1) && !fit_argument(&op->params[k], k, kinds, room, &args[k]))
            return td_fail(TD_ETYPE, "%s: %s can't be %s", op->name, op->params[k].name,
                           td_kind_noun(given.kind));
    }
    return TD_OK;
}

/* ---- results ---- */

td_status td_take_result(td_call *call, td_value *result) {
    *result = TD_NIL;
    if (call->op->result_type == TD_RESULT_NOTHING)
        return TD_OK;
    if (call->op->result_type != TD_RESULT_TENSORS) {
        *result = call->result;
        return TD_OK;
    }
    td_status status = td_box_list_new(TD_ENTRIES_TENSORS, result);
    td_box_list *list = status ? NULL : td_value_list(*result);
    if (list) {
        list->tensors = call->list;
        list->n = list->room = call->nlist;
    }
    for (int k = 0; !list && k < call->nlist; k++)
        td_release(call->list[k]);
    if (!list)
        td_free(call->list);
    return status;
}
