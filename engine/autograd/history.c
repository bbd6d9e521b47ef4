/* history.c: the link between a tensor and the graph: its autograd part, the node that made it,
 * taking that history away or over, and the edge by which later calls reach it. What users set on a
 * tensor is in tensor_state.c. */
#include "engine/autograd/node.h"
#include "engine/core/memory.h"

td_autograd *td_autograd_get(td_tensor *x) {
    if (x->autograd)
        return x->autograd;
    td_autograd *a = td_object_alloc(sizeof *a);
    if (!a) {
        td_fail(TD_ENOMEM, "out of memory for a tensor's autograd part");
        return NULL;
    }
    *a = (td_autograd){0};
    x->autograd = a;
    return a;
}

void td_autograd_free(td_autograd *a) {
    if (a->retains_grad && a->grad_fn && a->grad_fn->retained)
        a->grad_fn->retained[a->result] = NULL;
    td_tensor *grad = a->grad;
    a->grad = NULL;
    td_autograd_suspect(a);
    td_release(grad);
    td_node_release(a->grad_fn);
    if (TD_UNLIKELY(a->hooks != NULL))
        td_hooks_free(a->hooks);
    td_object_free(a, sizeof *a);
}

td_status td_node_make_retained(td_node *node) {
    if (!node->retained)
        node->retained = td_calloc(node->nresults, sizeof(td_autograd *));
    return node->retained ? TD_OK : td_fail(TD_ENOMEM, "out of memory");
}

td_status td_autograd_expect(const td_tensor *x, td_node *node) {
    return x->autograd && x->autograd->retains_grad ? td_node_make_retained(node) : TD_OK;
}

td_status td_autograd_expect_turn(const td_tensor *x, const td_tensor *view) {
    td_node *node = view->autograd ? view->autograd->grad_fn : NULL;
    return node ? td_autograd_expect(x, node) : TD_OK;
}

void td_autograd_attach(td_tensor *x, td_node *node, uint32_t result) {
    td_autograd *a = x->autograd;
    if (a->retains_grad && a->grad_fn && a->grad_fn->retained)
        a->grad_fn->retained[a->result] = NULL;
    if (a->retains_grad && node->retained)
        node->retained[result] = a;
    else
        a->retains_grad = false;
    node_retain(node);
    td_node_release(a->grad_fn);
    a->grad_fn = node;
    a->result = result;
    x->requires_grad = true;
    x->view_version = td_tensor_version(x);
}

void td_autograd_forget(td_tensor *x) {
    td_autograd *a = x->autograd;
    if (!a || !a->grad_fn)
        return;
    td_node *node = a->grad_fn;
    if (a->retains_grad && node->retained)
        node->retained[a->result] = NULL;
    a->grad_fn = NULL;
    a->retains_grad = false;
    x->requires_grad = false;
    td_node_release(node);
}

void td_autograd_turn(td_tensor *x, const td_tensor *view) {
    if (view->autograd && view->autograd->grad_fn)
        td_autograd_attach(x, view->autograd->grad_fn, view->autograd->result);
}

td_edge td_edge_of(td_tensor *x) {
    if (!x || !td_is_followed(x))
        return (td_edge){0};
    if (x->autograd && x->autograd->grad_fn)
        return (td_edge){.node = node_retain(x->autograd->grad_fn), .result = x->autograd->result};
    return (td_edge){.leaf = td_retain(x)};
}
