/* dispatch.c: the way of a call: observer, autograd, rule, kernel. The one file of this floor that
 * sees autograd above it. */
#include "engine/autograd/autograd.h"
#include "engine/core/memory.h"
#include "engine/core/observer.h"
#include "engine/ops/copy.h"
#include "engine/ops/pointwise.h"

#include <string.h>

static void drop_results(td_call *call) {
    for (int k = 0; k < TD_MAX_RESULTS; k++) {
        td_release(call->out[k]);
        call->out[k] = NULL;
    }
    for (int k = 0; k < call->nlist; k++)
        td_release(call->list[k]);
    td_free(call->list);
    call->list = NULL;
    call->nlist = 0;
}

/* Device of a call: that of its first tensor, else of its device option, else the CPU. */
static td_device call_device(const td_call *call) {
    td_device device = TD_DEVICE_CPU;
    for (int k = 0; k < call->op->nparams; k++) {
        const td_value *v = &call->args[k];
        if (v->kind == TD_KIND_TENSOR && v->tensor)
            return td_tensor_device(v->tensor);
        if (v->kind == TD_KIND_TENSORS)
            for (int j = 0; j < v->n; j++)
                if (v->tensors[j])
                    return td_tensor_device(v->tensors[j]);
        if (v->kind == TD_KIND_DEVICE)
            device = v->device;
    }
    return device;
}

static td_status check_given(const td_tensor *given, const td_meta *meta, bool inplace) {
    if (td_dtypes[meta->dtype].category > td_dtypes[given->dtype].category)
        return td_fail(TD_EDTYPE, "a %s result can't be written into a %s tensor",
                       td_dtype_name(meta->dtype), td_dtype_name(given->dtype));
    if (given->ndim == meta->ndim &&
        !memcmp(given->sizes, meta->sizes, sizeof(int64_t) * (size_t)meta->ndim))
        return TD_OK;
    if (!inplace)
        return td_tensor_resize((td_tensor *)given, meta->ndim, meta->sizes);
    char want[TD_SHAPE_TEXT], have[TD_SHAPE_TEXT];
    return td_fail(TD_ESHAPE, "the result's shape %s is not that of the tensor written, %s",
                   td_shape_text(meta->ndim, meta->sizes, want, sizeof want),
                   td_tensor_shape_text(given, have));
}

/* Does the tensor to be written share memory with an argument? */
static bool overlaps_argument(const td_call *call) {
    const td_storage *s = call->given->storage;
    for (int k = 0; k < call->op->nparams; k++) {
        const td_value *v = &call->args[k];
        if (v->kind == TD_KIND_TENSOR && v->tensor && v->tensor->storage == s)
            return true;
        for (int j = 0; v->kind == TD_KIND_TENSORS && j < v->n; j++)
            if (v->tensors[j] && v->tensors[j]->storage == s)
                return true;
    }
    return false;
}

/* Rule, results, kernel. A given result of another dtype than the rule's, or one that shares memory
 * with an argument, is written through a temporary. */
static td_status run_kernel(td_call *call) {
    const td_op *op = call->op;
    td_meta meta[TD_MAX_RESULTS];
    _Alignas(16) unsigned char plan[TD_PLAN_BYTES];
    td_device device = call_device(call);
    call->plan = plan;
    for (int k = 0; k < op->nresults; k++)
        meta[k] = (td_meta){.dtype = TD_DTYPE_NONE, .device = device, .ndim = -1};
    td_status status = op->rule(call, meta);
    if (status)
        return status;
    td_tensor *target = NULL;
    if (call->given) {
        status = check_given(call->given, &meta[0], call->inplace);
        if (status)
            return status;
        bool direct = op->flags & TD_OP_WRITES_SELF || !overlaps_argument(call);
        if (call->given->dtype == meta[0].dtype && direct)
            call->out[0] = td_retain(call->given);
        else
            target = call->given;
    }
    for (int k = 0; k < op->nresults; k++) {
        if (call->out[k] || meta[k].ndim < 0)
            continue;
        status = td_tensor_from_meta(&meta[k], &call->out[k]);
        if (status)
            return status;
    }
    td_observer *o = td_observer_get(TD_EVENT_KERNEL);
    if (TD_UNLIKELY(o != NULL)) {
        td_event event = {.kind = TD_EVENT_KERNEL, .name = op->name, .device = device};
        o->begin(o->ctx, &event);
        status = op->kernel(call);
        o->end(o->ctx, TD_EVENT_KERNEL);
    } else {
        status = op->kernel(call);
    }
    if (status == TD_OK && target) {
        status = td_copy_into(target, call->out[0]);
        td_release(call->out[0]);
        call->out[0] = td_retain(target);
    }
    return status;
}

/* `run` operators know nothing of a given result: theirs is copied into it. */
static td_status deliver_given(td_call *call) {
    td_tensor *result = call->out[0], *given = call->given;
    if (!given || result == given || !result)
        return TD_OK;
    td_meta meta = {.dtype = (td_dtype)result->dtype, .ndim = result->ndim};
    memcpy(meta.sizes, result->sizes, sizeof(int64_t) * (size_t)result->ndim);
    td_status status = check_given(given, &meta, call->inplace);
    if (status == TD_OK)
        status = td_copy_into(given, result);
    if (status)
        return status;
    td_release(result);
    call->out[0] = td_retain(given);
    return TD_OK;
}

static td_status run_pointwise(td_call *call) {
    td_observer *o = td_observer_get(TD_EVENT_KERNEL);
    if (TD_LIKELY(!o))
        return td_pointwise_call(call);
    td_event event = {.kind = TD_EVENT_KERNEL, .name = call->op->name, .device = call_device(call)};
    o->begin(o->ctx, &event);
    td_status status = td_pointwise_call(call);
    o->end(o->ctx, TD_EVENT_KERNEL);
    return status;
}

static td_status run_below_autograd(td_call *call) {
    const td_op *op = call->op;
    if (op->pointwise)
        return run_pointwise(call);
    if (!op->run)
        return run_kernel(call);
    td_observer *o = td_observer_get(TD_EVENT_KERNEL);
    bool leaf = o && !(op->flags & TD_OP_VIEW);
    if (leaf) {
        td_event event = {.kind = TD_EVENT_KERNEL, .name = op->name, .device = call_device(call)};
        o->begin(o->ctx, &event);
    }
    bool before = td_set_grad_enabled(false);
    td_status status = op->run(call);
    td_set_grad_enabled(before);
    if (status == TD_OK)
        status = deliver_given(call);
    if (leaf)
        o->end(o->ctx, TD_EVENT_KERNEL);
    return status;
}

/* A composite records through the operators it calls; in place, its result is copied by copy_. */
static td_status run_composite(td_call *call) {
    td_status status = call->op->run(call);
    td_tensor *given = call->given;
    if (status || !given || call->out[0] == given || !call->out[0])
        return status;
    status = TD_APPLY_INPLACE(copy_, TD_T(given), TD_T(call->out[0]));
    td_release(call->out[0]);
    call->out[0] = td_retain(given);
    return status;
}

/* A view knows the tensor it looks into, so that writes through it reach that tensor's history. */
static void link_view(td_call *call, td_tensor *out) {
    td_tensor *x = td_arg_tensor(call->args[0]);
    if (!x || !out || out == x || out->storage != x->storage || out->base)
        return;
    out->base = td_retain(x->base ? x->base : x);
    out->view_version = td_tensor_version(out);
}

static void link_views(td_call *call) {
    for (int k = 0; k < call->op->nresults; k++)
        link_view(call, call->out[k]);
    for (int k = 0; k < call->nlist; k++)
        link_view(call, call->list[k]);
}

static td_status run_call(td_call *call) {
    const td_op *op = call->op;
    bool composite = op->run && !op->backward && !(op->flags & (TD_OP_NONDIFF | TD_OP_VIEW));
    if (composite && !(op->flags & TD_OP_INPLACE_ONLY))
        return run_composite(call);
    bool record = op->backward && td_autograd_wanted(op, call->args);
    if (TD_UNLIKELY(call->given != NULL)) {
        if (record && !call->inplace)
            return td_fail(TD_EAUTOGRAD, "out= can't take part in autograd: an argument requires "
                                         "grad (use tide.no_grad, or leave out= away)");
        td_status status = td_autograd_check_inplace(op, call->given);
        if (status)
            return status;
    }
    td_status status = run_below_autograd(call);
    if (TD_UNLIKELY(status))
        return status;
    if (op->flags & TD_OP_VIEW)
        link_views(call);
    if (call->given) {
        td_tensor_bump_version(call->given);
        if (!op->backward && call->given->requires_grad)
            td_autograd_forget(call->given); /* random_ and such: what was there is gone */
    }
    return record ? td_autograd_record(call) : TD_OK;
}

td_status td_op_call(td_call *call) {
    const td_op *op = call->op;
    td_status status;
    td_observer *o = td_observer_get(TD_EVENT_OP);
    if (TD_UNLIKELY(o != NULL)) {
        td_event event = {.kind = TD_EVENT_OP,
                          .name = call->inplace && op->inplace_name ? op->inplace_name : op->name,
                          .args = call->args,
                          .nargs = op->nparams,
                          .sequence = td_autograd_next_sequence(),
                          .device = call_device(call)};
        o->begin(o->ctx, &event);
        status = run_call(call);
        o->end(o->ctx, TD_EVENT_OP);
    } else {
        status = run_call(call);
    }
    if (TD_UNLIKELY(status)) {
        drop_results(call);
        if (!(op->flags & TD_OP_INTERNAL)) /* parts of others go by the others' names */
            td_error_rename(call->inplace && op->inplace_name ? op->inplace_name : op->name);
    }
    return status;
}

/* Arguments in full: those given, then defaults. */
static td_status fill_args(const td_op *op, int nargs, const td_value *args, td_value *full) {
    for (int k = 0; k < op->nparams; k++) {
        if (k < nargs)
            full[k] = args[k];
        else if (op->params[k].has_default)
            full[k] = op->params[k].preset;
        else
            return td_fail(TD_EINTERNAL, "argument %d (%s) is missing", k + 1, op->params[k].name);
    }
    return TD_OK;
}

td_status td_op_apply(const td_op *op, td_tensor **out, int nargs, const td_value *args) {
    td_value full[TD_MAX_PARAMS];
    td_call call = {.op = op, .args = full};
    for (int k = 0; k < op->nresults; k++)
        out[k] = NULL;
    td_status status = fill_args(op, nargs, args, full);
    if (status == TD_OK)
        status = td_op_call(&call);
    if (status)
        return status;
    for (int k = 0; k < op->nresults; k++)
        out[k] = call.out[k];
    return TD_OK;
}

td_status td_op_apply_inplace(const td_op *op, int nargs, const td_value *args) {
    td_value full[TD_MAX_PARAMS];
    td_call call = {.op = op, .args = full, .inplace = true, .given = args[0].tensor};
    td_status status = fill_args(op, nargs, args, full);
    if (status == TD_OK)
        status = td_op_call(&call);
    if (status == TD_OK)
        drop_results(&call);
    return status;
}
