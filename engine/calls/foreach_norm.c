/* foreach_norm.c: the norm of each tensor of a list: those that are plain are one plan over the
 * list, others go the ordinary way. */
#include "engine/calls/foreach.h"
#include "engine/calls/lists_run.h"
#include "engine/core/memory.h"
#include "engine/core/modes.h"
#include "engine/ops/plan/plan.h"
#include "engine/ops/quantized/quantized_tensor.h"

typedef struct norms {
    int n;
    td_tensor *const *list;
    td_value args[TD_MAX_PARAMS]; /* of the operator; the first one changes */
    td_tensor **out;
    td_reduce_plan *plans; /* of a group */
    td_tensor **made;      /* its results */
} norms;

/* May this tensor's norm be one of a plan's? */
static bool is_plain(const td_tensor *x) {
    bool recorded = td_op_records(x);
    return x->layout == TD_STRIDED && !recorded && !td_modes_current.casting &&
           !td_modes_current.dispatcher && td_backend_of(td_tensor_device(x))->reduce_lists;
}

static td_status run_ordinary(norms *w, int k) {
    w->args[0] = TD_T(w->list[k]);
    return td_op_apply(TD_OP(norm), &w->out[k], TD_OP(norm)->nparams, w->args);
}

/* The plan of tensor k, as the operator's rule makes it, and its result. */
static td_status plan_one(norms *w, int k, td_reduce_plan *plan) {
    _Alignas(16) unsigned char room[TD_PLAN_BYTES];
    td_meta meta;
    td_tensor *x = w->list[k];
    td_call call = {.op = TD_OP(norm), .args = w->args, .plan = room};
    w->args[0] = TD_T(x);
    td_status status = TD_OP(norm)->rule(&call, &meta);
    if (status == TD_OK)
        status =
            td_tensor_empty(meta.dtype, td_tensor_device(x), meta.ndim, meta.sizes, &w->out[k]);
    if (status)
        return status;
    *plan = *TD_PLAN(&call, td_reduce_plan);
    plan->x = x;
    plan->out = w->out[k];
    return TD_OK;
}

static td_status run_kernel(td_device device, void *plan) {
    return TD_RUN(device, reduce_lists, (td_reduce_lists_plan *)plan);
}

/* All plain tensors from `first` on that lie on its device and have no result yet. */
static td_status run_group(norms *w, int first, int *failed) {
    td_device device = td_tensor_device(w->list[first]);
    td_reduce_lists_plan plan = {.plans = w->plans};
    for (int k = first; k < w->n; k++) {
        const td_tensor *x = w->list[k];
        if (w->out[k] || !is_plain(x) || !td_device_same(td_tensor_device(x), device))
            continue;
        *failed = k;
        td_status status = plan_one(w, k, &w->plans[plan.n]);
        if (status)
            return status;
        w->made[plan.n++] = w->out[k];
    }
    *failed = -1;
    td_lists_run run = {.name = "foreach_norm",
                        .device = device,
                        .n = plan.n,
                        .results = w->made,
                        .run = run_kernel,
                        .plan = &plan};
    return td_lists_run_observed(&run);
}

static td_status run_all(norms *w, int *failed) {
    td_status status = TD_OK;
    for (int k = 0; k < w->n && status == TD_OK; k++) {
        *failed = k;
        if (!td_dtype_is_float((td_dtype)w->list[k]->dtype))
            status =
                td_fail(TD_EDTYPE, "floats expected, got %s", td_tensor_dtype_name(w->list[k]));
    }
    for (int k = 0; k < w->n && status == TD_OK; k++) {
        *failed = k;
        if (!w->out[k])
            status = is_plain(w->list[k]) ? run_group(w, k, failed) : run_ordinary(w, k);
    }
    return status;
}

td_status td_foreach_norm(int n, td_tensor *const *list, td_value ord, td_tensor **out,
                          int *failed) {
    norms w = {.n = n, .list = list, .out = out};
    td_status status = TD_OK;
    *failed = -1;
    for (int k = 0; k < n; k++)
        out[k] = NULL;
    for (int k = 2; k < TD_OP(norm)->nparams; k++)
        w.args[k] = TD_OP(norm)->params[k].preset;
    w.args[1] = ord;
    w.plans = td_malloc(sizeof *w.plans * (size_t)(n + 1));
    w.made = td_malloc(sizeof *w.made * (size_t)(n + 1));
    if (!w.plans || !w.made)
        TD_TRY(td_fail(TD_ENOMEM, "out of memory for a list of %d tensors", n));
    TD_TRY(run_all(&w, failed));
done:
    td_free(w.plans);
    td_free(w.made);
    for (int k = 0; k < n && status; k++) {
        td_release(out[k]);
        out[k] = NULL;
    }
    return status;
}
