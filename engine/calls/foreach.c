/* foreach.c: calls of one operator over lists. Each call is looked at by itself: those that are
 * plain run together, as lists of one plan; others go the ordinary way one by one. */
#include "engine/calls/foreach.h"

#include "engine/autograd/autograd.h"
#include "engine/calls/lists_run.h"
#include "engine/calls/write.h"
#include "engine/core/memory.h"
#include "engine/ops/pointwise/pointwise.h"
#include "engine/ops/storage_overlap.h"

#include <stdio.h>
#include <string.h>

/* A plain call: what it computes, and the tensor that its result is like. */
typedef struct plain {
    const td_program *program; /* NULL: it goes the ordinary way */
    td_tensor *model;
    bool done;
} plain;

typedef struct work {
    td_foreach *f;
    plain *calls;
    td_operand *operands; /* of a group */
    td_tensor **outs;
    bool apart; /* one call after the other */
} work;

bool td_foreach_takes(const td_op *op, bool inplace) {
    if (op->flags & TD_OP_INTERNAL || op->result_type != TD_RESULT_TENSOR || op->nresults != 1 ||
        op->nparams == 0 || op->params[0].type > TD_PARAM_TENSOR_OR_NUMBER)
        return false;
    if (op->flags & TD_OP_INPLACE_ONLY)
        return inplace && (op == TD_OP(copy_) || op == TD_OP(zero_) || op == TD_OP(fill_));
    return op->pointwise && (!inplace || op->flags & TD_OP_INPLACE);
}

static td_value *args_of(const td_foreach *f, int k) {
    return (td_value *)f->args + (size_t)k * f->op->nparams;
}

/* ---- looking ---- */

static bool lies_like(const td_tensor *x, const td_tensor *model) {
    if (!td_tensor_same_shape(x, model))
        return false;
    return (x->contiguous && model->contiguous) ||
           !memcmp(x->strides, model->strides, sizeof(int64_t) * (size_t)x->ndim);
}

/* May this tensor take part in a plain call? */
static bool is_plain(const td_tensor *x, uint64_t floats, bool recording) {
    return x->layout == TD_STRIDED && floats >> x->dtype & 1 && !(recording && td_is_followed(x));
}

/* Floats of one dtype, shape and layout, numbers, and single elements that change no dtype. */
static td_tensor *find_model(const td_op *op, int n, const td_value *args, bool inplace) {
    uint64_t floats = op->dtypes & TD_DTYPES_FLOATS;
    bool recording = op->backward && td_is_recording();
    td_tensor *model = inplace ? args[0].tensor : NULL;
    for (int k = 0; k < n && !inplace; k++) {
        td_tensor *x = td_arg_tensor(args[k]);
        if (x && (!model || (model->ndim == 0 && x->ndim > 0)))
            model = x;
    }
    if (!model || (!model->contiguous && !td_tensor_is_dense(model)))
        return NULL;
    for (int k = 0; k < n; k++) {
        const td_tensor *x = td_arg_tensor(args[k]);
        if (!x)
            continue;
        if (!is_plain(x, floats, recording) ||
            !td_device_same(td_tensor_device(x), td_tensor_device(model)))
            return NULL;
        bool single = x->ndim == 0 && model->ndim > 0 && !op->pointwise->same;
        if (!single && (x->dtype != model->dtype || !lies_like(x, model)))
            return NULL;
    }
    return model;
}

static td_status look_at(const td_foreach *f, int k, plain *call) {
    const td_value *args = args_of(f, k);
    const td_op *op = f->op;
    *call = (plain){0};
    td_status status = op->variant ? op->variant(args, &op) : TD_OK;
    const td_pointwise *pw = op->pointwise;
    if (status || !pw || (pw->type != TD_PW_ARITH && pw->type != TD_PW_FLOATS))
        return status;
    const td_program *program = td_pointwise_program(op, args);
    call->model = find_model(op, program->noperands, args, f->inplace);
    if (call->model)
        call->program = program;
    return TD_OK;
}

/* Would the ordinary call be refused? */
static td_status check_call(const td_foreach *f, int k) {
    td_tensor *self = td_arg_tensor(args_of(f, k)[0]);
    td_call call = {
        .op = f->op, .args = args_of(f, k), .inplace = true, .given = &self, .ngiven = 1};
    return td_op_check(&call);
}

static td_status check_plain(const td_foreach *f, int k) {
    td_tensor *self = args_of(f, k)[0].tensor;
    td_call call = {
        .op = f->op, .args = args_of(f, k), .inplace = true, .given = &self, .ngiven = 1};
    return td_check_writes(&call);
}

static td_status fail_meeting(int first, int second) {
    return td_fail(TD_EVALUE,
                   "tensors %d and %d of the list that is written have elements in common",
                   first + 1, second + 1);
}

/* Tensors that share a storage with one before them: do they meet it? */
static td_status check_apart(work *w, const td_storages *set) {
    const td_foreach *f = w->f;
    for (int k = 1; k < f->n; k++) {
        const td_tensor *x = args_of(f, k)[0].tensor;
        if (td_storages_find(set, x->storage) == k)
            continue;
        for (int j = 0; j < k; j++)
            if (td_tensors_meet(args_of(f, j)[0].tensor, x)) {
                w->f->failed = k;
                return fail_meeting(j, k);
            }
    }
    return TD_OK;
}

/* Where a call reads what another one writes, or storages are shared, the order matters. */
static td_status look_at_memory(work *w) {
    td_foreach *f = w->f;
    td_storages set;
    bool shared = false;
    td_status status = td_storages_init(&set, f->n);
    if (status)
        return status;
    for (int k = 0; k < f->n; k++)
        shared |= td_storages_put(&set, args_of(f, k)[0].tensor->storage, k) >= 0;
    for (int k = 0; k < f->n; k++)
        for (int j = 1; j < f->op->nparams; j++) {
            const td_tensor *x = td_arg_tensor(args_of(f, k)[j]);
            int owner = x ? td_storages_find(&set, x->storage) : -1;
            w->apart |= owner >= 0 && owner != k;
        }
    w->apart |= shared;
    if (shared)
        status = check_apart(w, &set);
    td_storages_clear(&set);
    return status;
}

/* The tensors of calls further on: what the elements of a long list have pushed out of the cache.
 */
static void fetch_tensors(const td_foreach *f, int k) {
    enum { AHEAD = 8 };
    for (int j = 0; j < f->op->nparams && k + AHEAD < f->n; j++) {
        const char *x = (const char *)td_arg_tensor(args_of(f, k + AHEAD)[j]);
        const td_tensor *near = td_arg_tensor(args_of(f, k + AHEAD / 2)[j]);
        if (x) {
            __builtin_prefetch(x);
            __builtin_prefetch(x + 64);
        }
        if (near)
            __builtin_prefetch(near->storage);
    }
}

static td_status look(work *w) {
    td_foreach *f = w->f;
    td_status status = TD_OK;
    for (int k = 0; k < f->n && status == TD_OK; k++) {
        f->failed = k;
        fetch_tensors(f, k);
        if (f->inplace && !td_arg_tensor(args_of(f, k)[0]))
            return td_fail(TD_ETYPE, "a tensor expected, to be written");
        status = look_at(f, k, &w->calls[k]);
        if (status == TD_OK && f->inplace)
            status = w->calls[k].program ? check_plain(f, k) : check_call(f, k);
    }
    if (status == TD_OK)
        f->failed = -1;
    return status == TD_OK && f->inplace ? look_at_memory(w) : status;
}

/* ---- plain calls ---- */

static td_status make_result(const td_tensor *model, td_tensor **out) {
    td_status status = td_tensor_empty_like(model, (td_dtype)model->dtype, out);
    if (status == TD_OK && !model->contiguous)
        status = td_tensor_set_shape(*out, model->ndim, model->sizes, model->strides);
    return status;
}

static bool same_group(const plain *a, const plain *b) {
    return a->program == b->program && a->model->dtype == b->model->dtype &&
           td_device_same(td_tensor_device(a->model), td_tensor_device(b->model));
}

/* Put call k into the group. */
static td_status add_call(work *w, int k, int at) {
    td_foreach *f = w->f;
    const td_value *args = args_of(f, k);
    int n = w->calls[k].program->noperands;
    for (int j = 0; j < n; j++)
        w->operands[at * n + j] = td_operand_of(args[j]);
    w->calls[k].done = true;
    if (f->inplace) {
        w->outs[at] = args[0].tensor;
        return TD_OK;
    }
    td_status status = make_result(w->calls[k].model, &f->out[k]);
    w->outs[at] = f->out[k];
    return status;
}

/* The name of an operator's calls over lists, for observers; made at first use and kept. */
static const char *event_name(const td_op *op, bool inplace) {
    enum { OPERATORS = 2048 };
    static const char *names[2][OPERATORS];
    if (op->id >= OPERATORS)
        return op->name;
    const char *name = __atomic_load_n(&names[inplace][op->id], __ATOMIC_ACQUIRE), *none = NULL;
    if (name)
        return name;
    char text[80];
    snprintf(text, sizeof text, "foreach_%s",
             inplace && op->inplace_name ? op->inplace_name : op->name);
    char *made = td_strdup(text);
    if (!made)
        return op->name;
    if (__atomic_compare_exchange_n(&names[inplace][op->id], &none, made, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE))
        return made;
    td_free(made);
    return none;
}

static td_status run_kernel(td_device device, void *plan) {
    return TD_RUN(device, pointwise, (td_pointwise_plan *)plan);
}

static td_status run_plan(const work *w, const plain *first, int n) {
    td_pointwise_plan plan = {.program = first->program,
                              .operands = w->operands,
                              .compute = (td_dtype)first->model->dtype,
                              .nlists = n,
                              .outs = w->outs};
    td_lists_run run = {.name = event_name(w->f->op, w->f->inplace),
                        .device = td_tensor_device(first->model),
                        .n = n,
                        .results = w->outs,
                        .run = run_kernel,
                        .plan = &plan};
    td_status status = td_lists_run_observed(&run);
    bool written = w->f->inplace && (status == TD_OK || status == TD_EINTR);
    for (int k = 0; k < n && written; k++) {
        td_tensor_bump_version(w->outs[k]);
        if (!w->f->op->backward && w->outs[k]->requires_grad)
            td_autograd_forget(w->outs[k]);
    }
    return status;
}

/* All plain calls that are like call `first`. */
static td_status run_group(work *w, int first) {
    int n = 0;
    td_status status = TD_OK;
    for (int k = first; k < w->f->n && status == TD_OK; k++) {
        const plain *call = &w->calls[k];
        if (call->program && !call->done && same_group(&w->calls[first], call))
            status = add_call(w, k, n++);
    }
    return status ? status : run_plan(w, &w->calls[first], n);
}

/* ---- calls ---- */

static td_status run_ordinary(td_foreach *f, int k) {
    const td_value *args = args_of(f, k);
    td_tensor *self = f->inplace ? args[0].tensor : NULL;
    td_call call = {
        .op = f->op, .args = args, .inplace = f->inplace, .given = &self, .ngiven = f->inplace};
    td_status status = td_op_call(&call);
    if (status)
        f->failed = k;
    else if (f->inplace)
        td_release(call.out[0]);
    else
        f->out[k] = call.out[0];
    return status;
}

static td_status run_all(work *w) {
    td_foreach *f = w->f;
    td_status status = TD_OK;
    w->apart |= td_modes_current.dispatcher != NULL; /* which sees every call */
    for (int k = 0; k < f->n && status == TD_OK; k++) {
        if (w->calls[k].done)
            continue;
        status = w->calls[k].program && !w->apart ? run_group(w, k) : run_ordinary(f, k);
    }
    return status;
}

static td_status run_lists(td_foreach *f) {
    work w = {.f = f};
    td_status status = TD_OK;
    size_t n = (size_t)f->n + 1;
    f->failed = -1;
    for (int k = 0; k < f->n && !f->inplace; k++)
        f->out[k] = NULL;
    w.calls = td_malloc(n * sizeof *w.calls);
    w.operands = td_malloc(n * f->op->nparams * sizeof *w.operands);
    w.outs = td_malloc(n * sizeof *w.outs);
    if (!w.calls || !w.operands || !w.outs)
        TD_TRY(td_fail(TD_ENOMEM, "out of memory for a list of %d tensors", f->n));
    TD_TRY(look(&w));
    TD_TRY(run_all(&w));
done:
    td_free(w.calls);
    td_free(w.operands);
    td_free(w.outs);
    for (int k = 0; k < f->n && status && !f->inplace; k++) {
        td_release(f->out[k]);
        f->out[k] = NULL;
    }
    return status;
}

/* Calls over lists keep their dtypes: autocast is not for them. */
td_status td_foreach_call(td_foreach *f) {
    bool casting = td_modes_current.casting;
    td_modes_current.casting = false;
    td_status status = run_lists(f);
    td_modes_current.casting = casting;
    return status;
}
