/* apply.c: runs the backward of one node: what it saved is checked and handed to the operator's
 * backward function, and what comes back is brought to the shape, dtype and device of each input.
 */
#include "engine/autograd/node.h"
#include "engine/core/layout.h"
#include "engine/core/memory.h"
#include "engine/core/observer.h"

#include <stdio.h>
#include <string.h>

td_status td_check_version(const td_node *node, const td_tensor *saved, unsigned expected) {
    if (TD_LIKELY(td_tensor_version(saved) == expected))
        return TD_OK;
    char shape[TD_SHAPE_TEXT];
    return td_fail(TD_EAUTOGRAD,
                   "a %s tensor of shape %s that %s needs was changed in place after it was saved: "
                   "it is at version %u, expected version %u (write into a clone() instead)",
                   td_dtype_name((td_dtype)saved->dtype), td_tensor_shape_text(saved, shape),
                   td_node_name(node), td_tensor_version(saved), expected);
}

static inline __attribute__((always_inline)) td_status check_saved(const td_node *node) {
    if (node->released)
        return td_fail(TD_EAUTOGRAD,
                       "backward a second time through a graph whose saved tensors "
                       "are gone (%s): give the first backward {retain_graph = true}",
                       td_node_name(node));
    for (uint32_t k = 0; k < node->nslots; k++) {
        const td_slot *slot = &node->slots[k];
        td_status status = slot->saved ? td_check_version(node, slot->saved, slot->version) : TD_OK;
        if (status)
            return status;
    }
    for (int k = 0; node->saved_outs >> k; k++) {
        const td_tensor *saved = node->saved_out[k];
        td_status status = saved ? td_check_version(node, saved, node->out_version[k]) : TD_OK;
        if (status)
            return status;
    }
    return TD_OK;
}

td_status td_saved_with_history(td_tensor *x, const td_edge *history, td_tensor **out) {
    if (!td_grad_enabled() || !(history->node || history->leaf)) {
        *out = x;
        return TD_OK;
    }
    if (history->leaf) {
        td_release(x);
        *out = td_retain(history->leaf);
        return TD_OK;
    }
    td_status status = td_tensor_alias(x, out);
    td_release(x);
    if (status || !td_dtype_is_float((td_dtype)(*out)->dtype))
        return status;
    if (!td_autograd_get(*out))
        return TD_ENOMEM;
    td_autograd_attach(*out, history->node, history->result);
    return TD_OK;
}

/* What the node saved under number k: by slot, then by result; new, or NULL. */
static td_status get_saved(const td_node *node, td_tensor *own, uint32_t k, td_tensor **out) {
    *out = NULL;
    if (TD_LIKELY(own != NULL)) {
        *out = td_retain(own);
        return TD_OK;
    }
    td_packed **packed = node->notes ? node->notes->packed : NULL;
    return packed && packed[k] ? td_unpack(packed[k], out) : TD_OK;
}

/* A saved result as backward sees it: with this node as its history when backward is recorded. */
static td_status unpack_result(td_node *node, int k, td_tensor **out) {
    td_tensor *x;
    td_status status = get_saved(node, node->saved_out[k], node->nslots + (uint32_t)k, &x);
    *out = NULL;
    if (status || !x)
        return status;
    return td_saved_with_history(x, &(td_edge){.node = node, .result = (uint32_t)k}, out);
}

/* Does g's shape broadcast to the slot's as it is? */
static bool expands_to(const td_tensor *g, const td_slot *slot) {
    if (g->ndim > slot->ndim)
        return false;
    for (int d = 0; d < g->ndim; d++) {
        int64_t have = g->sizes[d], want = slot->sizes[slot->ndim - g->ndim + d];
        if (have != want && have != 1)
            return false;
    }
    return true;
}

/* Bring a gradient to the shape, dtype and device of the input it is for. */
static td_status fit(const td_slot *slot, td_tensor **gradient) {
    td_tensor *g = *gradient, *fitted = NULL;
    td_status status;
    if (g->ndim != slot->ndim ||
        memcmp(g->sizes, slot->sizes, sizeof(int64_t) * (size_t)slot->ndim)) {
        td_value shape = TD_INTS(slot->ndim, slot->sizes);
        status = expands_to(g, slot) ? TD_APPLY(&fitted, expand, TD_T(g), shape)
                                     : TD_APPLY(&fitted, sum_to, TD_T(g), shape);
        if (status)
            return status;
        td_release(g);
        *gradient = g = fitted;
    }
    td_device device = {slot->device_type, slot->device_index};
    if (g->dtype == slot->dtype && td_device_same(td_tensor_device(g), device))
        return TD_OK;
    status = TD_APPLY(&fitted, to, TD_T(g), TD_DTYPE((td_dtype)slot->dtype), TD_DEVICE(device));
    if (status)
        return status;
    td_release(g);
    *gradient = fitted;
    return TD_OK;
}

int td_grad_slot(const td_grad *grad, int param, int element) {
    int slot = grad->op->nlooks;
    if (grad->args[param].kind != TD_KIND_TENSORS)
        return param;
    for (int k = 0; k < param; k++)
        if (grad->args[k].kind == TD_KIND_TENSORS)
            slot += grad->args[k].n;
    return slot + element;
}

const int64_t *td_grad_shape(const td_grad *grad, int slot, int *ndim) {
    *ndim = grad->node->slots[slot].ndim;
    return grad->node->slots[slot].sizes;
}

td_dtype td_grad_dtype(const td_grad *grad, int slot) {
    return (td_dtype)grad->node->slots[slot].dtype;
}

/* A saved argument as backward sees it: with its history when backward is recorded. */
static td_status unpack_argument(const td_node *node, uint32_t k, td_tensor **out) {
    const td_slot *slot = &node->slots[k];
    td_tensor *x;
    td_status status = get_saved(node, slot->saved, k, &x);
    *out = NULL;
    if (TD_UNLIKELY(status || (x && td_grad_enabled())))
        return status ? status : td_saved_with_history(x, &slot->edge, out);
    *out = x;
    return TD_OK;
}

/* The arguments of the forward call with what was saved of their tensors; `tensors` has a place for
 * each slot, and owns them. */
static td_status fill_args(const td_node *node, td_value *args, td_tensor **tensors) {
    td_status status = TD_OK;
    for (uint32_t k = 0; k < node->nslots && status == TD_OK; k++)
        status = unpack_argument(node, k, &tensors[k]);
    td_tensor **list = tensors + node->op->nlooks;
    for (int k = 0; k < node->nparams; k++) {
        args[k] = node->args[k];
        if (args[k].kind == TD_KIND_TENSOR) {
            args[k].tensor = tensors[k];
        } else if (args[k].kind == TD_KIND_TENSORS) {
            args[k].tensors = list;
            list += args[k].n;
        }
    }
    return status;
}

static td_status apply_op(td_node *node, td_tensor *const *gout, td_tensor **in) {
    td_value args[TD_MAX_PARAMS];
    td_tensor *out[TD_MAX_RESULTS] = {NULL};
    td_tensor *few[16], **tensors = few;
    td_status status = TD_OK;
    if (node->nslots > 16 && !(tensors = td_malloc(node->nslots * sizeof *tensors)))
        return td_fail(TD_ENOMEM, "out of memory");
    memset(tensors, 0, node->nslots * sizeof *tensors);
    TD_TRY(fill_args(node, args, tensors));
    for (int k = 0; node->saved_outs >> k; k++)
        TD_TRY(unpack_result(node, k, &out[k]));
    td_grad grad = {.op = node->op, .args = args, .out = out, .gout = gout, .in = in, .node = node};
    status = node->op->backward(&grad);
done:
    for (int k = 0; node->saved_outs >> k; k++)
        td_release(out[k]);
    for (uint32_t k = 0; k < node->nslots; k++)
        td_release(tensors[k]);
    if (tensors != few)
        td_free(tensors);
    return status;
}

static td_status apply(td_node *node, td_tensor *const *gout, td_tensor **in) {
    td_status status = check_saved(node);
    if (status)
        return status;
    status = node->op ? apply_op(node, gout, in) : node->node_class->apply(node->payload, gout, in);
    for (uint32_t k = 0; k < node->nslots && status == TD_OK; k++)
        if (in[k] && node->slots[k].present)
            status = fit(&node->slots[k], &in[k]);
    return status;
}

/* ---- anomalies ---- */

static td_status has_nan(td_tensor *g, bool *nan) {
    td_tensor *marks = NULL, *one = NULL;
    double value = 0;
    td_status status;
    *nan = false;
    g = g->layout == TD_STRIDED ? g : td_layout_of(g)->elements(g);
    if (!td_dtype_is_float((td_dtype)g->dtype) || !g->numel)
        return TD_OK;
    TD_TRY(TD_APPLY(&marks, isnan, TD_T(g)));
    TD_TRY(TD_APPLY(&one, any, TD_T(marks)));
    TD_TRY(td_tensor_item(one, &value));
    *nan = value != 0;
done:
    td_release(marks);
    td_release(one);
    return status;
}

/* ": recorded at FILE:LINE", as far as it is known. */
static const char *place_of(const td_node *node, char *text, size_t size) {
    if (node->notes && node->notes->origin.line)
        snprintf(text, size, "recorded at %s:%d", node->notes->origin.source,
                 node->notes->origin.line);
    else
        snprintf(text, size, "recorded before detect_anomaly was on");
    return text;
}

static td_status fail_nan(const td_node *node, int input) {
    char place[96];
    return td_fail(TD_EAUTOGRAD, "%s gave nan in the gradient of its input %d (%s)",
                   td_node_name(node), input, place_of(node, place, sizeof place));
}

static td_status check_nan(const td_node *node, td_tensor *const *in) {
    bool before = td_set_grad_enabled(false), nan = false;
    td_status status = TD_OK;
    int input = 0;
    for (uint32_t k = 0; k < node->nslots && status == TD_OK && !nan; k++) {
        input += node->slots[k].present;
        if (in[k])
            status = has_nan(in[k], &nan);
    }
    td_set_grad_enabled(before);
    return status == TD_OK && nan ? fail_nan(node, input) : status;
}

/* What failed by the script's own error, an interrupt or for want of memory says so itself. */
static td_status tell_place(const td_node *node, td_status status) {
    char place[96], message[700];
    if (status == TD_ESCRIPT || status == TD_EINTR || status == TD_ENOMEM)
        return status;
    snprintf(message, sizeof message, "%s", td_error_message());
    return td_fail(status, "%s (%s %s)", message, td_node_name(node),
                   place_of(node, place, sizeof place));
}

/* What runs in here has the line of the forward call. */
static td_status apply_watched(td_node *node, td_tensor *const *gout, td_tensor **in) {
    static const td_origin unknown;
    const td_origin *before = td_origin_in_force;
    td_origin_in_force = node->notes ? &node->notes->origin : &unknown;
    td_status status = apply(node, gout, in);
    td_origin_in_force = before;
    if (status)
        return tell_place(node, status);
    return td_modes_current.unchecked ? TD_OK : check_nan(node, in);
}

static td_event event_of(const td_node *node) {
    return (td_event){.kind = TD_EVENT_BACKWARD,
                      .name = td_node_name(node),
                      .sequence = node->sequence,
                      .origin = td_origin_known()};
}

/* What runs between these works for the line of the forward call. Returns what stood there. */
static const td_origin *begin_observed(const td_node *node, td_observer *o) {
    static const td_origin unknown;
    const td_origin *before = td_origin_in_force;
    if (o->origin)
        td_origin_in_force = node->notes ? &node->notes->origin : &unknown;
    td_event event = event_of(node);
    o->begin(o->ctx, &event);
    return before;
}

static void end_observed(const td_node *node, td_observer *o, const td_origin *before,
                         td_status status) {
    td_event event = event_of(node);
    event.status = status;
    o->end(o->ctx, &event);
    td_origin_in_force = before;
}

static td_status apply_observed(td_node *node, td_tensor *const *gout, td_tensor **in,
                                td_observer *o) {
    const td_origin *before = begin_observed(node, o);
    td_status status =
        td_modes_current.anomaly ? apply_watched(node, gout, in) : apply(node, gout, in);
    end_observed(node, o, before, status);
    return status;
}

td_status td_node_apply(td_node *node, td_tensor *const *gout, td_tensor **in) {
    td_observer *o = td_observer_get(TD_EVENT_BACKWARD);
    td_status status;
    if (TD_UNLIKELY(node->running == UINT8_MAX))
        return td_fail(TD_EAUTOGRAD, "%s runs within itself too often", td_node_name(node));
    node->running++;
    if (TD_UNLIKELY(o != NULL))
        status = apply_observed(node, gout, in, o);
    else if (TD_UNLIKELY(td_modes_current.anomaly))
        status = apply_watched(node, gout, in);
    else
        status = apply(node, gout, in);
    node->running--;
    if (TD_UNLIKELY(node->give_up) && !node->running)
        td_node_release_saved(node);
    if (TD_UNLIKELY(status))
        for (uint32_t k = 0; k < node->nslots; k++) {
            td_release(in[k]);
            in[k] = NULL;
        }
    return status;
}

/* ---- parts ---- */

/* The same part of another tensor. */
static td_status part_of(const td_node *node, td_tensor *x, td_tensor **part) {
    td_value args[TD_MAX_PARAMS];
    td_tensor *out[TD_MAX_RESULTS] = {NULL};
    memcpy(args, node->args, sizeof *args * node->nparams);
    args[0] = TD_T(x);
    td_status status = td_op_apply(node->op, out, node->nparams, args);
    *part = out[0];
    return status;
}

static td_status add_part(const td_node *node, td_tensor *g, td_tensor *sum) {
    td_tensor *part = NULL;
    td_status status = check_saved(node);
    if (status == TD_OK)
        status = part_of(node, sum, &part);
    if (status == TD_OK)
        status = TD_APPLY_INPLACE(add, TD_T(part), TD_T(g));
    td_release(part);
    return status;
}

td_status td_node_add_part(td_node *node, td_tensor *g, td_tensor *sum) {
    td_observer *o = td_observer_get(TD_EVENT_BACKWARD);
    if (TD_LIKELY(!o))
        return add_part(node, g, sum);
    const td_origin *before = begin_observed(node, o);
    td_status status = add_part(node, g, sum);
    end_observed(node, o, before, status);
    return status;
}
