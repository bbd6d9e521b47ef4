/* record.c: turns a finished operator call into a node of the graph. */
#include "engine/autograd/node.h"

static bool tensor_wants(const td_tensor *x) {
    return x && (x->requires_grad || (x->base && td_view_is_stale(x)));
}

bool td_autograd_wanted(const td_op *op, const td_value *args) {
    if (!td_grad_enabled())
        return false;
    for (int k = 0; k < op->nparams; k++) {
        if (args[k].kind == TD_KIND_TENSOR && tensor_wants(args[k].tensor))
            return true;
        if (args[k].kind == TD_KIND_TENSORS)
            for (int j = 0; j < args[k].n; j++)
                if (tensor_wants(args[k].tensors[j]))
                    return true;
    }
    return false;
}

td_status td_autograd_check_inplace(const td_op *op, td_tensor *target) {
    (void)op;
    if (!td_grad_enabled())
        return TD_OK;
    if (target->requires_grad && td_is_leaf(target))
        return td_fail(TD_EAUTOGRAD, "a leaf that requires grad is written in place: do it under "
                                     "tide.no_grad, or on a clone()");
    const td_tensor *base = target->base;
    if (base && base->requires_grad && td_is_leaf(base))
        return td_fail(TD_EAUTOGRAD, "a view of a leaf that requires grad is written in place: do "
                                     "it under tide.no_grad, or on a clone()");
    return TD_OK;
}

td_edge td_edge_of(td_tensor *x) {
    if (!tensor_wants(x))
        return (td_edge){0};
    if (x->autograd && x->autograd->grad_fn)
        return (td_edge){.node = td_node_retain(x->autograd->grad_fn),
                         .result = x->autograd->result};
    return (td_edge){.leaf = td_retain(x)};
}

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
    for (int k = 0; k < call->op->nparams && status == TD_OK; k++) {
        const td_value *v = &call->args[k];
        if (v->kind == TD_KIND_TENSOR)
            status = refresh(1, &v->tensor);
        else if (v->kind == TD_KIND_TENSORS)
            status = refresh(v->n, v->tensors);
    }
    return status;
}

static void link_inputs(td_node *node, const td_call *call) {
    td_slot *list = node->slots + node->nparams;
    for (int k = 0; k < node->nparams; k++) {
        const td_value *v = &call->args[k];
        if (v->kind == TD_KIND_TENSOR)
            node->slots[k].edge = td_edge_of(v->tensor);
        else if (v->kind == TD_KIND_TENSORS)
            for (int j = 0; j < v->n; j++, list++)
                if (v->tensors[j])
                    list->edge = td_edge_of(v->tensors[j]);
    }
}

/* What was saved of the tensor that this very call wrote is of the version before. */
static void backdate_written(td_node *node, const td_tensor *written) {
    for (uint32_t k = 0; k < node->nslots; k++)
        if (node->slots[k].saved && node->slots[k].saved->storage == written->storage)
            node->slots[k].version--;
}

static td_status save_results(td_node *node, const td_call *call) {
    uint8_t outs = td_saving_of(call->op, call->args).outs;
    for (int k = 0; k < call->op->nresults; k++) {
        if (!(outs >> k & 1) || !call->out[k])
            continue;
        td_status status = td_tensor_alias(call->out[k], &node->saved_out[k]);
        if (status)
            return status;
        node->out_version[k] = td_tensor_version(call->out[k]);
    }
    return TD_OK;
}

static td_status attach_results(td_node *node, td_call *call) {
    for (int k = 0; k < call->op->nresults; k++) {
        td_tensor *x = call->out[k];
        if (!x || !td_dtype_is_float((td_dtype)x->dtype))
            continue;
        td_status status = td_autograd_attach(x, node, (uint32_t)k);
        if (status)
            return status;
    }
    for (int k = 0; k < call->nlist; k++) {
        td_status status = td_autograd_attach(call->list[k], node, (uint32_t)k);
        if (status)
            return status;
    }
    return TD_OK;
}

td_status td_autograd_record(td_call *call) {
    int nresults = call->list ? call->nlist : call->op->nresults;
    td_status status = refresh_args(call);
    td_node *node = status ? NULL : td_node_new(call->op, call->args, nresults, &status);
    if (!node)
        return status;
    link_inputs(node, call);
    if (call->given)
        backdate_written(node, call->given);
    TD_TRY(save_results(node, call));
    if (call->given && call->given->base)
        status = td_view_written(call->given, node);
    else
        status = attach_results(node, call);
done:
    td_node_release(node);
    return status;
}

td_status td_autograd_record_custom(const td_node_class *node_class, void *payload, int ninputs,
                                    td_tensor *const *inputs, int noutputs,
                                    td_tensor *const *outputs) {
    td_status status = refresh(ninputs, inputs);
    td_node *node =
        status ? NULL : td_node_new_custom(node_class, payload, ninputs, noutputs, &status);
    if (!node) {
        if (node_class->destroy)
            node_class->destroy(payload);
        return status;
    }
    for (int k = 0; k < ninputs; k++)
        if (inputs[k])
            node->slots[k].edge = td_edge_of(inputs[k]);
    for (int k = 0; k < noutputs; k++)
        if (outputs[k] && td_dtype_is_float((td_dtype)outputs[k]->dtype))
            TD_TRY(td_autograd_attach(outputs[k], node, (uint32_t)k));
done:
    td_node_release(node);
    return status;
}
