/* infer.c: makes a call on stand-ins: each device is replaced by its stand-in (core/device.h), and
 * each storage of the arguments by one without elements, the same for all tensors that share it. */
#include "engine/calls/infer.h"

#include "engine/core/layout.h"
#include "engine/core/memory.h"
#include "engine/core/modes.h"
#include "engine/ops/given.h"

#include <string.h>

/* The stand-ins of a call's storages, so that what shares memory goes on to do so. */
typedef struct twin {
    const td_storage *of;
    td_storage *storage; /* owned */
} twin;

typedef struct inference {
    const td_call *call;
    td_value args[TD_MAX_PARAMS];
    td_tensor **made;  /* owned: stand-ins of tensors, the given ones first */
    td_tensor **lists; /* arguments that are lists, one behind the other */
    twin *twins;
    int nmade, ntwins;
} inference;

static td_status find_twin(inference *f, const td_storage *s, td_storage **out) {
    for (int k = f->ntwins - 1; k >= 0; k--)
        if (f->twins[k].of == s) {
            *out = f->twins[k].storage;
            return TD_OK;
        }
    td_status status = td_storage_empty(td_device_stand_in(s->device), s->bytes, out);
    if (status == TD_OK)
        f->twins[f->ntwins++] = (twin){s, *out};
    return status;
}

static td_status stand_in(inference *f, const td_tensor *x, td_tensor **out) {
    td_storage *storage;
    if (x->layout != TD_STRIDED)
        return td_fail(TD_ETYPE, "the results of calls with %s tensors depend on elements",
                       td_layout_of(x)->noun);
    td_status status = find_twin(f, x->storage, &storage);
    if (status == TD_OK)
        status = td_tensor_over(x, storage, out);
    if (status == TD_OK)
        f->made[f->nmade++] = *out;
    return status;
}

/* An argument that is written in place is the tensor that is given. */
static td_status replace(void *ctx, td_tensor **x) {
    inference *f = ctx;
    for (int k = 0; k < f->call->ngiven; k++)
        if (f->call->given[k] == *x) {
            *x = f->made[k];
            return TD_OK;
        }
    return stand_in(f, *x, x);
}

/* Where there is no tensor to say so, a device that is not named is the CPU. */
static void replace_devices(inference *f) {
    const td_op *op = f->call->op;
    bool any = false;
    for (int k = 0; k < op->nparams; k++) {
        td_value *v = &f->args[k];
        any |= v->kind == TD_KIND_TENSOR || v->kind == TD_KIND_TENSORS;
        if (v->kind == TD_KIND_DEVICE)
            v->device = td_device_stand_in(v->device);
        else if (td_is_nil(*v) && op->params[k].type == TD_PARAM_DEVICE && !any)
            *v = TD_DEVICE(td_device_stand_in(TD_DEVICE_CPU));
    }
}

static td_status run(inference *f, td_call *call) {
    td_call other = {.op = call->op,
                     .args = f->args,
                     .given = f->made,
                     .ngiven = call->ngiven,
                     .nbeside = call->nbeside,
                     .inplace = call->inplace};
    td_modes modes = td_get_modes();
    modes.uncached = true; /* casts of stand-ins are nobody's to keep */
    modes.dispatcher = NULL;
    modes = td_set_modes(modes);
    td_status status = td_op_run(&other);
    td_set_modes(modes);
    if (status)
        return status;
    memcpy(call->out, other.out, sizeof call->out);
    call->list = other.list;
    call->nlist = other.nlist;
    call->result = other.result;
    return TD_OK;
}

td_status td_op_infer(td_call *call) {
    inference f = {.call = call};
    td_status status = TD_OK;
    size_t n = (size_t)(call->ngiven + call->nbeside + td_call_count_tensors(call)) + 1;
    f.made = td_calloc(n, sizeof *f.made);
    f.lists = td_calloc(n, sizeof *f.lists);
    f.twins = td_calloc(n, sizeof *f.twins);
    if (!f.made || !f.lists || !f.twins)
        TD_TRY(td_fail(TD_ENOMEM, "out of memory"));
    for (int k = 0; k < call->ngiven + call->nbeside; k++) {
        td_tensor *made;
        TD_TRY(stand_in(&f, call->given[k], &made));
    }
    TD_TRY(td_call_map_tensors(call, f.args, f.lists, replace, &f));
    replace_devices(&f);
    TD_TRY(run(&f, call));
done:
    for (int k = 0; k < f.nmade; k++)
        td_release(f.made[k]);
    for (int k = 0; k < f.ntwins; k++)
        td_storage_release(f.twins[k].storage);
    td_free(f.made);
    td_free(f.lists);
    td_free(f.twins);
    return status;
}
