/* write.c: which histories may be written in place or by out=, for every operator alike. */
#include "engine/calls/write.h"

#include "engine/autograd/autograd.h"
#include "engine/core/layout.h"
#include "engine/core/modes.h"
#include "engine/ops/given.h"

/* The history of a leaf is its own: writing it would make its gradient that of another value. */
static td_status check_leaf(const td_tensor *x) {
    if (x->requires_grad && td_is_leaf(x))
        return td_fail(TD_EAUTOGRAD, "a leaf that requires grad is written in place: do it under "
                                     "tide.no_grad, or on a clone()");
    const td_tensor *base = x->base;
    if (base && base->requires_grad && td_is_leaf(base))
        return td_fail(TD_EAUTOGRAD, "a view of a leaf that requires grad is written in place: do "
                                     "it under tide.no_grad, or on a clone()");
    if (TD_UNLIKELY(base && base->requires_grad && !x->requires_grad) && !td_view_is_stale(x))
        return td_fail(TD_EAUTOGRAD, "a view made under tide.no_grad or tide.inference_mode of a "
                                     "tensor that requires grad is written while calls are "
                                     "recorded: take the view here, or write it there");
    return TD_OK;
}

static td_status check_write(const td_call *call, const td_tensor *x) {
    if (TD_UNLIKELY(x->layout != TD_STRIDED && !call->inplace))
        return td_fail(TD_ETYPE, "out= is a %s tensor: give a strided one", td_layout_of(x)->noun);
    if (td_tensor_overlaps(x) && !(call->op->flags & TD_OP_TURNS))
        return td_fail(TD_EVALUE,
                       "several elements of the tensor written share one place in memory "
                       "(an expanded tensor?); write into a clone() of it");
    if (TD_UNLIKELY(x->storage->inference && !td_modes_current.inference))
        return td_fail(TD_EAUTOGRAD, "a tensor made in inference_mode is written outside of it: "
                                     "write into a clone() of it");
    return td_is_recording() ? check_leaf(x) : TD_OK;
}

static bool requires_grad(const td_tensor *read, const void *none) {
    (void)none;
    return read->requires_grad;
}

/* Would the results be recorded if they were made afresh? Composites leave that to others. */
static bool is_recorded(const td_call *call) {
    return call->record || (!(call->op->flags & TD_OP_NONDIFF) && td_is_recording() &&
                            td_call_any_read(call, 0, requires_grad, NULL));
}

static td_status check_history(const td_call *call) {
    if (is_recorded(call))
        return td_fail(TD_EAUTOGRAD, "out= can't take part in autograd: an argument requires "
                                     "grad (use tide.no_grad, or leave out= away)");
    for (int k = 0; k < call->ngiven && td_is_recording(); k++)
        if (call->given[k]->requires_grad && !(call->op->flags & TD_OP_NONDIFF))
            return td_fail(TD_EAUTOGRAD, "out= can't take part in autograd: the tensor given "
                                         "requires grad (use tide.no_grad, or give another)");
    return TD_OK;
}

td_status td_check_writes(const td_call *call) {
    td_status status = td_settle_pending();
    for (int k = 0; k < call->ngiven && status == TD_OK; k++)
        status = check_write(call, call->given[k]);
    return status || call->inplace ? status : check_history(call);
}
