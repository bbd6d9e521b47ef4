/* tensor_state.c: what users set on one tensor and ask of it: requires_grad, retain_grad, detach,
 * its gradient and its grad_fn. How a tensor is linked to the graph is in history.c. */
#include "engine/autograd/node.h"
#include "engine/core/memory.h"
#include "engine/core/modes.h"
#include "engine/ops/quantized/quantized_tensor.h"

td_status td_set_requires_grad(td_tensor *x, bool requires_grad) {
    if (requires_grad && !td_dtype_is_float((td_dtype)x->dtype))
        return td_fail(TD_EAUTOGRAD, "only floating tensors can require grad, this one is %s",
                       td_tensor_dtype_name(x));
    if (requires_grad && x->storage->inference && !td_modes_current.inference)
        return td_fail(TD_EAUTOGRAD, "a tensor made in inference_mode can't require grad outside "
                                     "of it: use a clone() of it");
    td_status status = td_settle_pending(); /* which read it as it was */
    if (status)
        return status;
    if (!td_is_leaf(x))
        return requires_grad
                   ? TD_OK
                   : td_fail(TD_EAUTOGRAD, "requires_grad can be set to false on leaves only; "
                                           "x:detach() gives a tensor without history");
    x->requires_grad = requires_grad;
    return TD_OK;
}

td_status td_retain_grad(td_tensor *x) {
    if (!x->requires_grad)
        return td_fail(TD_EAUTOGRAD, "a tensor that does not require grad retains none");
    if (td_is_leaf(x))
        return TD_OK;
    if (td_view_is_stale(x)) {
        td_status status = td_view_refresh(x);
        if (status)
            return status;
    }
    td_autograd *a = x->autograd;
    td_status status = td_node_make_retained(a->grad_fn);
    if (status)
        return status;
    a->grad_fn->retained[a->result] = a;
    a->retains_grad = true;
    return TD_OK;
}

td_status td_detach(td_tensor *x) {
    if (x->base)
        return td_fail(TD_EAUTOGRAD, "a view can't be detached in place from what it looks into: "
                                     "x:detach() gives another tensor");
    td_status status = td_settle_pending(); /* which read it as it was */
    if (status)
        return status;
    td_autograd_forget(x);
    x->requires_grad = false;
    return TD_OK;
}

td_node *td_get_grad_fn(td_tensor *x) {
    if (td_view_is_stale(x) && td_view_refresh(x))
        return NULL;
    return x->autograd ? node_retain(x->autograd->grad_fn) : NULL;
}

td_tensor *td_get_grad(const td_tensor *x) {
    return x->autograd ? x->autograd->grad : NULL;
}

td_status td_set_grad(td_tensor *x, td_tensor *grad) {
    if (!grad && !x->autograd)
        return TD_OK;
    if (grad) {
        char a[TD_SHAPE_TEXT], b[TD_SHAPE_TEXT];
        if (!td_tensor_same_shape(x, grad))
            return td_fail(TD_ESHAPE,
                           "a gradient of shape %s can't be that of a tensor of shape %s",
                           td_tensor_shape_text(grad, a), td_tensor_shape_text(x, b));
        if (grad->dtype != x->dtype ||
            (grad->layout == TD_QUANTIZED) != (x->layout == TD_QUANTIZED))
            return td_fail(TD_EDTYPE, "a %s gradient can't be that of a %s tensor",
                           td_tensor_dtype_name(grad), td_tensor_dtype_name(x));
        if (!td_device_same(td_tensor_device(grad), td_tensor_device(x)))
            return td_fail(TD_EDEVICE, "a gradient on %s can't be that of a tensor on %s",
                           td_device_name(td_tensor_device(grad)),
                           td_device_name(td_tensor_device(x)));
    }
    td_autograd *autograd = td_autograd_get(x);
    if (!autograd)
        return TD_ENOMEM;
    td_tensor *old = autograd->grad;
    autograd->grad = td_retain(grad);
    td_autograd_suspect(autograd);
    td_release(old);
    return TD_OK;
}

const char *td_grad_fn_name(const td_tensor *x) {
    if (td_view_is_stale(x))
        return "AsStridedBackward";
    return x->autograd && x->autograd->grad_fn ? td_node_name(x->autograd->grad_fn) : NULL;
}
