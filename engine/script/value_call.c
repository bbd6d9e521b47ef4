/* value_call.c: what the nodes of graphs do, on values. */
#include "engine/script/value_call.h"

#include "engine/script/kinds.h"
#include "engine/script/operands.h"

#include <string.h>

/* ---- operators ---- */

static void clear_values(int n, td_value *values) {
    for (int k = 0; k < n; k++)
        values[k] = TD_NIL;
}

static td_status take_results(td_call *call, td_value *results) {
    if (call->op->result_type == TD_RESULT_NOTHING)
        return TD_OK;
    if (call->op->result_type != TD_RESULT_TENSOR)
        return td_take_result(call, results);
    for (int k = 0; k < call->op->nresults; k++)
        results[k] = td_tensor_or_nil(call->out[k]);
    return TD_OK;
}

td_status td_value_call(const td_op *op, bool inplace, int n, const td_value *args,
                        td_value *results) {
    td_value fitting[TD_MAX_PARAMS];
    td_argument_room room;
    inplace |= (op->flags & TD_OP_INPLACE_ONLY) != 0;
    if (op->result_type == TD_RESULT_TENSOR)
        clear_values(op->nresults, results);
    else if (op->result_type != TD_RESULT_NOTHING)
        *results = TD_NIL;
    if (n != op->nparams)
        return td_fail(TD_EVALUE, "%s: %d arguments were given, and this version takes %d",
                       op->name, n, op->nparams);
    for (int k = 0; k < n; k++)
        fitting[k] = args[k];
    td_status status = td_fit_arguments(op, n, &room, fitting);
    if (status)
        return status;
    td_tensor *self = inplace ? td_arg_tensor(fitting[0]) : NULL;
    td_call call = {
        .op = op, .args = fitting, .inplace = inplace, .given = &self, .ngiven = inplace};
    if (inplace && !self)
        return td_fail(TD_ETYPE, "%s: a tensor is written in place", op->name);
    status = td_op_call(&call);
    return status ? status : take_results(&call, results);
}

td_status td_scalar_call(const td_scalar *row, int n, const td_value *args, td_value *result) {
    *result = TD_NIL;
    for (int k = 0; k < n; k++)
        if (!(td_scalar_kinds(row, k) >> args[k].kind & 1))
            return td_fail(TD_ETYPE, "%s: argument %d can't be %s", row->name, k + 1,
                           td_kind_noun(args[k].kind));
    return row->run(n, args, result);
}

const td_scalar *td_scalar_get_row(const char *name, const char *parameters) {
    for (int k = 0; k < td_scalar_count(); k++) {
        const td_scalar *row = td_scalar_get(k);
        if (!strcmp(row->name, name) && !strcmp(row->parameters, parameters))
            return row;
    }
    return NULL;
}

/* ---- lists and tuples ---- */

td_status td_value_list_of(td_box_entries entries, int n, const td_value *values, td_value *list) {
    td_value made = TD_NIL;
    td_status status = td_box_list_new(entries, &made);
    for (int k = 0; k < n && status == TD_OK; k++)
        status = td_list_append(td_value_list(made), values[k]);
    if (status)
        td_value_drop(&made);
    *list = made;
    return status;
}

td_status td_value_tuple_of(int n, const td_value *values, td_value *tuple) {
    td_value made = TD_NIL;
    td_status status = td_box_tuple_new(n, &made);
    for (int k = 0; k < n && status == TD_OK; k++)
        status = td_value_keep(values[k], &td_value_tuple(made)->parts[k]);
    if (status)
        td_value_drop(&made);
    *tuple = made;
    return status;
}

/* Of a list that is no box of values. */
static td_value element(td_value list, int k) {
    if (list.kind == TD_KIND_TENSORS)
        return td_value_retain(td_tensor_or_nil(list.tensors[k]));
    return list.kind == TD_KIND_INTS ? TD_I(list.ints[k]) : TD_F(list.floats[k]);
}

td_status td_value_entries(td_value list, int n, td_value *entries) {
    clear_values(n, entries);
    if (td_value_list(list) && td_value_list(list)->entries != TD_ENTRIES_VALUES)
        list = td_list_argument(td_value_list(list));
    const td_box_list *values = td_value_list(list);
    if (!values && list.kind != TD_KIND_INTS && list.kind != TD_KIND_FLOATS &&
        list.kind != TD_KIND_TENSORS)
        return td_fail(TD_ETYPE, "a list is expected, and %s was given", td_kind_noun(list.kind));
    const int held = values ? values->n : list.n;
    if (held != n)
        return td_fail(TD_EVALUE, "a list of %d entries is expected, it has %d", n, held);
    for (int k = 0; k < n; k++)
        entries[k] = values ? td_value_retain(values->values[k]) : element(list, k);
    return TD_OK;
}

td_status td_value_parts(td_value tuple, int first, int n, td_value *parts) {
    const td_box_tuple *box = td_value_tuple(tuple);
    clear_values(n, parts);
    if (!box || box->n < first + n)
        return td_fail(TD_ETYPE, "a tuple of %d parts is expected, and %s was given", first + n,
                       td_kind_noun(tuple.kind));
    for (int k = 0; k < n; k++)
        parts[k] = td_value_retain(box->parts[first + k]);
    return TD_OK;
}

/* ---- types ---- */

td_status td_value_check(const char *what, const char *name, const td_ir_type *type, td_value *v) {
    return td_value_fit(v, type) ? TD_OK : td_fail_kind(what, name, type, *v);
}

td_status td_value_truth(td_value v, bool *truth) {
    if (TD_UNLIKELY(v.kind != TD_KIND_BOOL))
        return td_fail(TD_ETYPE, "a condition is a bool, and %s was given", td_kind_noun(v.kind));
    *truth = v.b;
    return TD_OK;
}
