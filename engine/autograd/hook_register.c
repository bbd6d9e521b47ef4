/* hook_register.c: where a hook is registered: on a leaf, or on the node that made a tensor. */
#include "engine/autograd/node.h"

static td_hooks **place_on_node(td_node *node) {
    td_notes *notes = td_node_notes(node);
    return notes ? &notes->hooks : NULL;
}

td_status td_hook_gradient(td_tensor *x, const td_hook_class *hook_class, void *payload,
                           td_hook **out) {
    td_hooks **place = NULL;
    uint32_t result = 0;
    td_status status = td_view_is_stale(x) ? td_view_refresh(x) : TD_OK;
    if (status == TD_OK && !x->requires_grad)
        status = td_fail(TD_EAUTOGRAD, "a tensor that does not require grad has no gradient to "
                                       "see");
    td_autograd *a = status ? NULL : td_autograd_get(x);
    if (a && a->grad_fn) {
        result = a->result;
        place = place_on_node(a->grad_fn);
    } else if (a) {
        place = &a->hooks;
    }
    return td_hooks_add(place, TD_HOOK_GRADIENT, result, hook_class, payload, out);
}

td_status td_hook_accumulated(td_tensor *x, const td_hook_class *hook_class, void *payload,
                              td_hook **out) {
    td_status status = TD_OK;
    if (!td_is_leaf(x))
        status = td_fail(TD_EAUTOGRAD, "only leaves accumulate gradients, and this tensor is the "
                                       "result of an operator (register_hook sees its gradient)");
    else if (!x->requires_grad)
        status = td_fail(TD_EAUTOGRAD, "a tensor that does not require grad accumulates none");
    td_autograd *a = status ? NULL : td_autograd_get(x);
    return td_hooks_add(a ? &a->hooks : NULL, TD_HOOK_ACCUMULATED, 0, hook_class, payload, out);
}

td_status td_hook_node(td_node *node, bool before, const td_hook_class *hook_class, void *payload,
                       td_hook **out) {
    return td_hooks_add(place_on_node(node), before ? TD_HOOK_BEFORE : TD_HOOK_AFTER, 0, hook_class,
                        payload, out);
}
