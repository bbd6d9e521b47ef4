/* write.c: what may be written in place, for every operator alike. */
#include "engine/ops/write.h"

#include "engine/autograd/autograd.h"

#include <string.h>

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

static td_status check_apart(const td_call *call) {
    for (int k = 1; k < call->ngiven; k++)
        for (int j = 0; j < k; j++)
            if (call->given[k] == call->given[j])
                return td_fail(TD_EVALUE, "tensors %d and %d to be written are the same", j + 1,
                               k + 1);
    return TD_OK;
}

td_status td_check_writes(const td_call *call) {
    for (int k = 0; k < call->ngiven; k++) {
        const td_tensor *x = call->given[k];
        if (TD_UNLIKELY(x->layout != TD_STRIDED && !call->inplace))
            return td_fail(TD_ETYPE, "out= is a sparse tensor: give a strided one");
        if (td_tensor_overlaps(x) && !(call->op->flags & TD_OP_TURNS))
            return td_fail(TD_EVALUE,
                           "several elements of the tensor written share one place in memory "
                           "(an expanded tensor?); write into a clone() of it");
        if (TD_UNLIKELY(x->storage->inference && !td_modes_current.inference))
            return td_fail(TD_EAUTOGRAD, "a tensor made in inference_mode is written outside of "
                                         "it: write into a clone() of it");
        td_status status = td_is_recording() ? check_leaf(x) : TD_OK;
        if (status)
            return status;
    }
    if (call->record && !call->inplace)
        return td_fail(TD_EAUTOGRAD, "out= can't take part in autograd: an argument requires "
                                     "grad (use tide.no_grad, or leave out= away)");
    return call->ngiven > 1 ? check_apart(call) : TD_OK;
}

td_status td_call_fit(const td_call *call, td_tensor *given, td_dtype dtype, int ndim,
                      const int64_t *sizes) {
    if (!call->inplace && call->op->flags & TD_OP_OUT_EXACT && given->dtype != dtype)
        return td_fail(TD_EDTYPE, "the result is %s, out is %s", td_dtype_name(dtype),
                       td_dtype_name((td_dtype)given->dtype));
    if (td_dtypes[dtype].category > td_dtypes[given->dtype].category)
        return td_fail(TD_EDTYPE, "a %s result can't be written into a %s tensor",
                       td_dtype_name(dtype), td_dtype_name((td_dtype)given->dtype));
    bool fits = given->ndim == ndim;
    for (int d = 0; d < ndim && fits; d++)
        fits = given->sizes[d] == sizes[d];
    if (fits)
        return TD_OK;
    if (!call->inplace)
        return td_tensor_resize(given, ndim, sizes);
    char want[TD_SHAPE_TEXT], have[TD_SHAPE_TEXT];
    return td_fail(TD_ESHAPE, "the result's shape %s is not that of the tensor written, %s",
                   td_shape_text(ndim, sizes, want, sizeof want),
                   td_tensor_shape_text(given, have));
}

bool td_writes_argument(const td_call *call, const td_tensor *given) {
    const td_storage *s = given->storage;
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
