/* call.c: the door of all calls of operators, and short ways to it. Behind it a call runs
 * (dispatch.c), or is what the dispatcher in force makes of it.
 */
#include "engine/core/memory.h"
#include "engine/core/modes.h"
#include "engine/ops/given.h"

#include <string.h>

void td_call_drop(td_call *call) {
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

static td_status dispatch(td_call *call, const td_dispatcher *d) {
    td_status status = d->call(d, call);
    if (status)
        td_call_drop(call);
    return status;
}

static bool is_stand_in(const td_tensor *x, const void *none) {
    (void)none;
    return td_tensor_device(x).type == TD_META && td_tensor_device(x).index != 0;
}

static td_status run_or_dispatch(td_call *call) {
    const td_dispatcher *d = td_modes_current.dispatcher;
    return TD_LIKELY(!d) ? td_op_run(call) : dispatch(call, d);
}

/* What was put off runs before a call that does not know of it, to which its stand-ins are nothing.
 * Apart, so that the way of all other calls stays short. */
static __attribute__((noinline)) td_status call_settled(td_call *call) {
    td_status status = td_settle_pending();
    if (status == TD_OK && td_call_any_read(call, 0, is_stand_in, NULL))
        status = td_fail(TD_EINTERNAL, "%s: an argument's call is put off", call->op->name);
    return status ? status : run_or_dispatch(call);
}

td_status td_op_call(td_call *call) {
    return TD_LIKELY(!td_pending_work) ? run_or_dispatch(call) : call_settled(call);
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

td_status td_call_as(td_call *call, const td_op *op, int nargs) {
    td_value full[TD_MAX_PARAMS];
    td_call other = {.op = op,
                     .args = full,
                     .given = call->given,
                     .ngiven = call->ngiven,
                     .nbeside = call->nbeside,
                     .inplace = call->inplace};
    td_status status = fill_args(op, nargs, call->args, full);
    if (status == TD_OK)
        status = td_op_call(&other);
    if (status == TD_OK)
        memcpy(call->out, other.out, sizeof call->out);
    return status;
}

td_status td_op_apply_inplace(const td_op *op, int nargs, const td_value *args) {
    td_value full[TD_MAX_PARAMS];
    td_tensor *self = args[0].tensor;
    td_call call = {.op = op, .args = full, .inplace = true, .given = &self, .ngiven = 1};
    td_status status = fill_args(op, nargs, args, full);
    if (status == TD_OK)
        status = td_op_call(&call);
    if (status == TD_OK)
        td_call_drop(&call);
    return status;
}
