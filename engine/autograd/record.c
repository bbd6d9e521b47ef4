/* record.c: turns an operator call into a node of the graph: prepared before the kernel writes,
 * visible after. */
#include "engine/autograd/node.h"
#include "engine/core/memory.h"

/* Bring the history of stale views up to date: before the node that will point at it is made, since
 * a node must be younger than those behind it. */
static td_status refresh(int n, td_tensor *const *tensors) {
    td_status status = TD_OK;
    for (int k = 0; k < n && status == TD_OK; k++)
        if (tensors[k] && td_view_is_stale(tensors[k]))
            status = td_view_refresh(tensors[k]);
    return status;
}

static td_status refresh_args(const td_call *call) {
    td_status status = TD_OK;
    for (int k = 0; k < call->op->nlooks && status == TD_OK; k++) {
        const td_value *v = &call->args[k];
        if (v->kind == TD_KIND_TENSOR)
            status = refresh(1, &v->tensor);
        else if (v->kind == TD_KIND_TENSORS)
            status = refresh(v->n, v->tensors);
    }
    return status;
}

static void link_inputs(td_node *node, const td_call *call) {
    int n = call->op->nlooks;
    td_slot *list = node->slots + n;
    for (int k = 0; k < n; k++) {
        const td_value *v = &call->args[k];
        if (v->kind == TD_KIND_TENSOR)
            node->slots[k].edge = td_edge_of(v->tensor);
        else if (v->kind == TD_KIND_TENSORS)
            for (int j = 0; j < v->n; j++, list++)
                if (v->tensors[j])
                    list->edge = td_edge_of(v->tensors[j]);
    }
}

/* The tensor that result k will be. */
static td_tensor *result_of(const td_call *call, int k) {
    if (call->list)
        return call->list[k];
    td_tensor *given = td_call_given(call, k);
    return given ? given : call->out[k];
}

static int count_results(const td_call *call) {
    return call->list ? call->nlist : call->op->nresults;
}

/* Backward will see results without their history, lest they hold the node that holds them. */
static td_status save_results(td_node *node, const td_call *call, uint8_t outs) {
    for (int k = 0; outs >> k; k++) {
        td_tensor *x = outs >> k & 1 ? result_of(call, k) : NULL;
        td_status status = x ? td_tensor_alias(x, &node->saved_out[k]) : TD_OK;
        if (x && TD_UNLIKELY(x->storage->inference))
            status = td_fail_inference();
        if (status)
            return status;
    }
    return TD_OK;
}

/* The slot by which the operator reads the view it writes: its first parameter, or for a list of
 * them the list's element. */
static uint32_t self_slot(const td_call *call, uint32_t result) {
    bool list = call->args[0].kind == TD_KIND_TENSORS;
    return list ? call->op->nlooks + result : 0;
}

/* Room for the history of each result. */
static td_status make_room(td_call *call, td_record *record) {
    for (int k = 0; k < count_results(call); k++) {
        td_tensor *x = result_of(call, k);
        if (x && !td_autograd_get(x))
            return TD_ENOMEM;
        td_status status = x ? td_autograd_expect(x, record->node) : TD_OK;
        if (status)
            return status;
    }
    bool views = false;
    for (int k = 0; k < call->ngiven; k++)
        views |= call->given[k]->base != NULL;
    if (!views)
        return TD_OK;
    record->writes = td_calloc((size_t)call->ngiven, sizeof *record->writes);
    if (!record->writes)
        return td_fail(TD_ENOMEM, "out of memory");
    record->nwrites = call->ngiven;
    td_status status = TD_OK;
    for (int k = 0; k < call->ngiven && status == TD_OK; k++) {
        if (call->given[k]->base)
            status = td_view_prepare(call->given[k], record->node, (uint32_t)k,
                                     self_slot(call, (uint32_t)k), &record->writes[k]);
    }
    return status;
}

td_status td_autograd_prepare(td_call *call, td_record *record) {
    td_status status = refresh_args(call);
    td_saving saving = td_saving_of(call->op, call->args);
    if (status)
        return status;
    record->node = td_node_new(call, saving.args, count_results(call), &status);
    if (!record->node)
        return status;
    link_inputs(record->node, call);
    record->node->saved_outs = saving.outs;
    status = save_results(record->node, call, saving.outs);
    return status ? status : make_room(call, record);
}

void td_autograd_publish(td_call *call, td_record *record) {
    td_node *node = record->node;
    for (int k = 0; k < count_results(call); k++) {
        td_tensor *x = result_of(call, k);
        if (!x || !td_dtype_is_float((td_dtype)x->dtype))
            continue;
        if (record->writes && record->writes[k].outer)
            td_view_publish(x, &record->writes[k]);
        else
            td_autograd_attach(x, node, (uint32_t)k);
    }
    for (int k = 0; node->saved_outs >> k; k++)
        if (node->saved_out[k])
            node->out_version[k] = td_tensor_version(node->saved_out[k]);
}

uint64_t td_autograd_sequence(const td_record *record) {
    return record->node->sequence;
}

td_status td_autograd_hand_over(td_record *record) {
    return td_node_pack(record->node);
}

void td_autograd_drop(td_record *record) {
    for (int k = 0; k < record->nwrites; k++)
        td_view_abandon(&record->writes[k]);
    td_free(record->writes);
    td_node_release(record->node);
    *record = (td_record){0};
}
