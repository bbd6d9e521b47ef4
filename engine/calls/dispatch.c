/* dispatch.c: the five steps of a call: look at the arguments, rule (shapes, plan) and results,
 * node with what backward reads, kernel, publish (versions, views, histories).
 *
 * Whatever can fail for want of memory fails before the kernel writes, and publishing cannot fail,
 * so a call may be made again. What only the device finds out comes from the kernel or later.
 */
#include "engine/autograd/autograd.h"
#include "engine/calls/autocast.h"
#include "engine/calls/write.h"
#include "engine/core/interrupt.h"
#include "engine/core/layout.h"
#include "engine/core/memory.h"
#include "engine/core/modes.h"
#include "engine/core/observer.h"
#include "engine/ops/given.h"
#include "engine/ops/make/copy.h"
#include "engine/ops/pointwise/pointwise.h"
#include "engine/ops/quantized/quantized.h"
#include "engine/ops/rule_helpers.h"

#include <string.h>

/* The tensor that lies elsewhere than the call's first. */
static td_status fail_device(const td_call *call, const td_tensor *x) {
    return td_fail(TD_EDEVICE, "tensors on %s and %s don't mix: move one with x:to(device)",
                   td_device_name(call->device), td_device_name(td_tensor_device(x)));
}

/* ---- events ---- */

/* Bracket what runs in a kernel event. */
static td_status observed(td_call *call, td_status (*run)(td_call *call)) {
    td_observer *o = td_observer_get(TD_EVENT_KERNEL);
    if (TD_LIKELY(!o))
        return run(call);
    td_event event = {
        .kind = TD_EVENT_KERNEL, .name = call->op->name, .track = td_stream_current(call->device)};
    o->begin(o->ctx, &event);
    event.status = run(call);
    o->end(o->ctx, &event);
    return event.status;
}

/* ---- recording ---- */

/* A view knows the tensor it looks into, so that writes through it reach that tensor's history. A
 * leaf that requires grad is looked into itself, though it may be a view: its history begins there,
 * and writes through its views are refused as those of the leaf are. */
static void link_view(td_call *call, td_tensor *out) {
    td_tensor *x = td_arg_tensor(call->args[0]);
    if (!x || !out || out == x || out->storage != x->storage || out->base)
        return;
    bool begins = x->requires_grad && td_is_leaf(x);
    out->base = td_retain(x->base && !begins ? x->base : x);
    out->view_version = td_tensor_version(out);
}

/* The memory has been written: nothing from here on can fail. */
static void publish(td_call *call) {
    const td_op *op = call->op;
    for (int k = 0; op->flags & TD_OP_VIEW && k < op->nresults; k++)
        link_view(call, call->out[k]);
    for (int k = 0; k < call->ngiven; k++) {
        td_tensor_bump_version(call->given[k]);
        if (!op->backward && call->given[k]->requires_grad)
            td_autograd_forget(call->given[k]); /* random_ and such: what was there is gone */
    }
    if (call->record)
        td_autograd_publish(call, call->record);
}

/* An interrupt cut the writing short: what reads those tensors later must not take them for what
 * they were. */
static void spoil(const td_call *call) {
    for (int k = 0; k < call->ngiven; k++)
        if (call->given[k])
            td_tensor_bump_version(call->given[k]);
}

/* ---- dtypes ---- */

/* The rule has said what it knows better; this is what the row promises of all others. */
static td_status check_dtypes(const td_call *call) {
    const td_op *op = call->op;
    for (int k = 0; k < op->nparams; k++) {
        const td_value *v = &call->args[k];
        if (op->params[k].base != TD_BASE_NONE)
            continue;
        if (v->kind == TD_KIND_TENSOR && !(op->dtypes >> v->tensor->dtype & 1))
            return td_op_refuse_dtype(op, (td_dtype)v->tensor->dtype);
        for (int j = 0; v->kind == TD_KIND_TENSORS && j < v->n; j++)
            if (v->tensors[j] && !(op->dtypes >> v->tensors[j]->dtype & 1))
                return td_op_refuse_dtype(op, (td_dtype)v->tensors[j]->dtype);
    }
    return TD_OK;
}

/* ---- operators with a rule ---- */

/* A given tensor of another dtype than the rule's, or one that shares memory with an argument, is
 * written through a fresh one; so is out= where the kernel may refuse elements, for what a call
 * that is refused was given stays as it was. */
static bool goes_through(const td_call *call, const td_tensor *given, const td_meta *meta) {
    uint32_t flags = call->op->flags;
    return given->dtype != meta->dtype || (flags & TD_OP_REFUSES && !call->inplace) ||
           (!(flags & TD_OP_WRITES_SELF) && td_writes_argument(call, given));
}

static td_status make_fresh(td_call *call, int k, const td_meta *meta) {
    const bool before = td_modes_current.brief;
    td_modes_current.brief = before | call->brief;
    td_status status = td_tensor_from_meta(meta, &call->out[k]);
    td_modes_current.brief = before;
    return status;
}

/* The k-th result: the given tensor itself, or a fresh one. */
static td_status make_result(td_call *call, int k, const td_meta *meta, bool *through) {
    td_tensor *given = td_call_given(call, k);
    if (meta->ndim < 0)
        return TD_OK;
    if (TD_LIKELY(!given))
        return make_fresh(call, k, meta);
    if (!td_device_same(td_tensor_device(given), meta->device))
        return td_fail(TD_EDEVICE, "the result is on %s, out on %s", td_device_name(meta->device),
                       td_device_name(td_tensor_device(given)));
    *through = goes_through(call, given, meta);
    if (*through)
        return td_tensor_from_meta(meta, &call->out[k]);
    call->out[k] = td_retain(given);
    return td_fit_given(call, k, meta);
}

/* What was made afresh for given tensors goes into them, in which the call then ends. */
static td_status deliver(td_call *call, const bool *through, const td_meta *meta) {
    td_status status = TD_OK;
    for (int k = 0; k < call->ngiven && status == TD_OK; k++)
        if (through[k])
            status = td_fit_given(call, k, &meta[k]);
    for (int k = 0; k < call->ngiven && status == TD_OK; k++) {
        if (!through[k])
            continue;
        status = td_copy_into(call->given[k], call->out[k]);
        td_release(call->out[k]);
        call->out[k] = td_retain(call->given[k]);
    }
    return status;
}

static td_status run_kernel(td_call *call) {
    const td_op *op = call->op;
    td_meta meta[TD_MAX_RESULTS];
    _Alignas(16) unsigned char plan[TD_PLAN_BYTES];
    bool through[TD_MAX_RESULTS] = {false}, any = false;
    call->plan = plan;
    for (int k = 0; k < op->nresults; k++) {
        meta[k].dtype = TD_DTYPE_NONE;
        meta[k].device = call->device;
        meta[k].ndim = -1;
        meta[k].strided = false;
    }
    td_status status = op->rule(call, meta);
    if (status == TD_OK && op->dtypes != TD_DTYPES_ALL)
        status = check_dtypes(call);
    if (status == TD_OK && TD_UNLIKELY(call->ngiven))
        status = td_check_given(call, op->nresults, meta);
    for (int k = 0; k < op->nresults && status == TD_OK; k++) {
        status = make_result(call, k, &meta[k], &through[k]);
        any |= through[k];
    }
    if (TD_UNLIKELY(status))
        return status;
    status = td_call_ready(call);
    unsigned mark = td_interrupt_mark();
    if (status == TD_OK)
        status = observed(call, op->kernel);
    if (TD_UNLIKELY(td_interrupt_mark() != mark) && status == TD_OK)
        status = td_interrupted(); /* a part may have left early */
    return status == TD_OK && any ? deliver(call, through, meta) : status;
}

/* ---- operators that run others ---- */

/* The results of a composite, or of an operator that makes its results itself, go into the given
 * tensors by copy_, which records itself. */
static td_status copy_results(td_call *call) {
    td_meta meta[TD_MAX_RESULTS];
    int n = 0;
    for (; n < TD_MAX_RESULTS && call->out[n]; n++)
        td_meta_like(&meta[n], call->out[n], (td_dtype)call->out[n]->dtype);
    if (!n || call->out[0] == call->given[0])
        return TD_OK;
    td_status status = td_check_given(call, n, meta);
    for (int k = 0; k < n && status == TD_OK; k++)
        status = td_fit_given(call, k, &meta[k]);
    for (int k = 0; k < n && status == TD_OK; k++) {
        status = TD_APPLY_INPLACE(copy_, TD_T(call->given[k]), TD_T(call->out[k]));
        td_release(call->out[k]);
        call->out[k] = td_retain(call->given[k]);
    }
    return status;
}

static td_status run_composite(td_call *call) {
    td_status status = call->op->run(call);
    return status || TD_LIKELY(!call->ngiven) ? status : copy_results(call);
}

/* Views, and operators whose gradient is their own though they run others: these record nothing. */
static td_status run_silently(td_call *call) {
    bool before = td_set_grad_enabled(false);
    td_status status = call->op->run(call);
    td_set_grad_enabled(before);
    return status;
}

static td_status run_itself(td_call *call) {
    const td_op *op = call->op;
    td_status status = op->flags & TD_OP_VIEW ? run_silently(call) : observed(call, run_silently);
    return status ? status : td_call_ready(call);
}

/* In place, or with out=: run it afresh, then copy. */
static td_status run_then_copy(td_call *call) {
    td_call fresh = {.op = call->op, .args = call->args};
    td_status status = td_op_call(&fresh);
    if (status)
        return status;
    memcpy(call->out, fresh.out, sizeof call->out);
    call->result = fresh.result;
    return copy_results(call);
}

/* A view in place: the tensor itself becomes what it is a view of itself. Its history goes on with
 * the view's, without recording too, since the gradient of another shape would not fit it. */
static td_status turn(td_call *call) {
    td_tensor *x = call->given[0];
    td_call fresh = {.op = call->op, .args = call->args};
    bool before = td_set_grad_enabled(td_grad_enabled() || !td_is_leaf(x));
    td_status status = td_op_call(&fresh);
    td_set_grad_enabled(before);
    if (status == TD_OK)
        status = td_autograd_expect_turn(x, fresh.out[0]);
    if (status == TD_OK)
        status = td_tensor_turn(x, fresh.out[0]);
    if (status == TD_OK) {
        td_tensor_bump_version(x);
        td_autograd_turn(x, fresh.out[0]);
        call->out[0] = td_retain(x);
    }
    td_call_drop(&fresh);
    return status;
}

/* In place of what has a history, by an operator without gradients: the tensor is overwritten, so
 * its gradient is 0, and what it was has one too. */
static td_status write_constant(td_call *call) {
    td_tensor *x = call->given[0], *y = NULL;
    td_value args[TD_MAX_PARAMS];
    td_status status = TD_OK;
    bool before = td_set_grad_enabled(false);
    memcpy(args, call->args, sizeof(td_value) * call->op->nparams);
    status = TD_APPLY(&y, clone, TD_T(x));
    if (status == TD_OK) {
        args[0] = TD_T(y);
        status = td_op_apply_inplace(call->op, call->op->nparams, args);
    }
    td_set_grad_enabled(before);
    if (status == TD_OK)
        status = TD_APPLY_INPLACE(copy_, TD_T(x), TD_T(y));
    if (status == TD_OK)
        call->out[0] = td_retain(x);
    td_release(y);
    return status;
}

/* ---- calls ---- */

/* What the tensors among the arguments ask for, seen in one walk. */
typedef struct looks {
    bool record;                /* one requires grad */
    uint16_t from_one;          /* indices among them count from 1 */
    const td_tensor *other;     /* the first that is not strided; NULL: none */
    const td_tensor *mixed;     /* one of a third layout; NULL: none */
    const td_tensor *first;     /* whose device is the call's */
    const td_tensor *elsewhere; /* one on another device; NULL: none */
} looks;

static inline void look_at(const td_tensor *x, looks *l) {
    l->record |= td_is_followed(x);
    if (TD_UNLIKELY(x->layout != TD_STRIDED)) {
        l->mixed = l->other && l->other->layout != x->layout ? x : l->mixed;
        l->other = l->other ? l->other : x;
    }
    if (!l->first)
        l->first = x;
    else if (TD_UNLIKELY(!td_device_same(td_tensor_device(x), td_tensor_device(l->first))))
        l->elsewhere = x;
}

static inline looks look(td_call *call) {
    looks l = {.first = NULL};
    call->device = TD_DEVICE_CPU;
    for (int k = 0; k < call->op->nlooks; k++) {
        const td_value *v = &call->args[k];
        l.from_one |= v->from_one;
        if (v->kind == TD_KIND_TENSOR && v->tensor)
            look_at(v->tensor, &l);
        else if (v->kind == TD_KIND_TENSORS)
            for (int j = 0; j < v->n; j++) {
                if (v->tensors[j])
                    look_at(v->tensors[j], &l);
            }
        else if (v->kind == TD_KIND_DEVICE)
            call->device = v->device;
    }
    if (l.first)
        call->device = td_tensor_device(l.first);
    l.record = l.record && call->op->backward && td_is_recording();
    return l;
}

static inline bool is_composite(const td_op *op) {
    return op->run && !op->backward && !(op->flags & (TD_OP_NONDIFF | TD_OP_VIEW));
}

static td_status run_steps(td_call *call) {
    const td_op *op = call->op;
    bool composite = is_composite(op);
    td_status status = TD_UNLIKELY(call->ngiven) ? td_check_writes(call) : TD_OK;
    if (TD_UNLIKELY(status))
        return status;
    if (TD_UNLIKELY(call->ngiven && call->inplace && op->flags & (TD_OP_TURNS | TD_OP_NONDIFF))) {
        if (op->flags & TD_OP_TURNS)
            return turn(call);
        if (call->given[0]->requires_grad && td_is_recording())
            return write_constant(call);
    }
    if (composite && !(op->flags & TD_OP_INPLACE_ONLY))
        return run_composite(call);
    if (op->run && call->ngiven && !(op->flags & TD_OP_INPLACE_ONLY))
        return run_then_copy(call);
    status = op->pointwise ? observed(call, td_pointwise_call)
             : op->run     ? run_itself(call)
                           : run_kernel(call);
    if (TD_LIKELY(status == TD_OK))
        publish(call);
    else if (status == TD_EINTR)
        spoil(call);
    return status;
}

/* ---- other layouts ---- */

/* The name of the argument that holds a tensor. */
static const char *name_of(const td_call *call, const td_tensor *x) {
    for (int k = 0; k < call->op->nlooks; k++) {
        const td_value *v = &call->args[k];
        if (v->kind == TD_KIND_TENSOR && v->tensor == x)
            return call->op->params[k].name;
        for (int j = 0; v->kind == TD_KIND_TENSORS && j < v->n; j++)
            if (v->tensors[j] == x)
                return call->op->params[k].name;
    }
    return "an argument";
}

/* The row has no form for the layout of this argument. */
static td_status fail_layout(const td_call *call, const td_tensor *x) {
    const td_layout_traits *layout = td_layout_of(x);
    const char *name = name_of(call, x);
    return td_fail(TD_ETYPE, "not for %s tensors: give %s:%s() instead of %s", layout->noun, name,
                   layout->convert, name);
}

/* A tensor that is written in place gets the parts of the result, which is of its layout. */
static td_status become(td_call *call, td_tensor *x) {
    td_tensor *fresh = NULL, *result = call->out[0];
    td_meta meta;
    td_meta_set(&meta, (td_dtype)result->dtype, result->ndim, result->sizes);
    td_status status = td_check_given(call, 1, &meta);
    if (status == TD_OK)
        status = TD_APPLY(&fresh, to, TD_T(result), TD_DTYPE((td_dtype)x->dtype));
    if (status == TD_OK)
        status = td_autograd_expect_turn(x, fresh);
    if (status) {
        td_release(fresh);
        return status;
    }
    td_layout_of(x)->become(x, fresh);
    td_tensor_bump_version(x);
    if (fresh->requires_grad)
        td_autograd_turn(x, fresh);
    else if (td_is_recording())
        td_autograd_forget(x);
    td_release(fresh);
    td_release(result);
    call->out[0] = td_retain(x);
    return TD_OK;
}

/* The result goes into the tensor given: into a strided one by copy_, made dense in place. */
static td_status settle(td_call *call, td_tensor *x) {
    td_tensor *dense = NULL, *result = call->out[0];
    const char *is = result->layout == TD_STRIDED ? NULL : td_layout_of(result)->noun;
    if (x->layout != TD_STRIDED && x->layout == result->layout && td_layout_of(x)->become)
        return become(call, x);
    if (x->layout != TD_STRIDED)
        return td_fail(TD_ETYPE, "the result is %s, the tensor written is %s", is ? is : "dense",
                       td_layout_of(x)->noun);
    if (is && !call->inplace)
        return td_fail(TD_ETYPE, "the result is %s: it can't go into out=", is);
    if (is) {
        td_status status = TD_APPLY(&dense, to_dense, TD_T(result));
        if (status)
            return status;
        td_release(result);
        call->out[0] = dense;
    }
    return copy_results(call);
}

/* Forms of rows that have none of their own. */
static const td_kernel_fn otherwise[TD_LAYOUTS] = {[TD_QUANTIZED] = td_quantized_otherwise};

static td_kernel_fn find_form(const td_op *op, const td_tensor *x) {
    td_kernel_fn form = op->forms[x->layout];
    return form ? form : otherwise[x->layout];
}

/* What the row does with tensors of this layout, which run operators that record themselves. */
static td_status run_form(td_call *call, const looks *l) {
    td_tensor *x = call->ngiven ? call->given[0] : NULL;
    td_record record = {0};
    td_status status = TD_OK;
    td_kernel_fn form = find_form(call->op, l->other);
    if (!form)
        return fail_layout(call, l->other);
    if (l->mixed)
        return td_fail(TD_ETYPE, "tensors of layouts %s and %s don't mix",
                       td_layout_of(l->other)->name, td_layout_of(l->mixed)->name);
    if (x) {
        call->record = l->record ? &record : NULL; /* out= is refused then */
        status = td_check_writes(call);
        call->record = NULL;
    }
    if (status == TD_OK)
        status = form(call);
    return status || !x || call->out[0] == x ? status : settle(call, x);
}

/* ---- one call ---- */

static td_status run_looked(td_call *call, const looks *l, uint64_t *sequence) {
    const td_op *op = call->op;
    /* Pointwise operators take single elements of the host as numbers, and look for themselves. */
    if (TD_UNLIKELY(l->elsewhere != NULL) && op->kernel && !(op->flags & TD_OP_ANY_DEVICE))
        return fail_device(call, l->elsewhere);
    if (TD_UNLIKELY(l->other != NULL) && !(op->flags & TD_OP_ANY_LAYOUT))
        return run_form(call, l);
    if (TD_LIKELY(!l->record))
        return run_steps(call);
    td_record record = {0};
    call->record = &record;
    call->mode = TD_CALL_RECORD;
    td_status status = run_steps(call);
    if (record.node) {
        *sequence = td_autograd_sequence(&record);
        if (TD_UNLIKELY(td_modes_current.keeper != NULL) && status == TD_OK)
            status = td_autograd_hand_over(&record);
    }
    td_autograd_drop(&record);
    call->record = NULL;
    call->mode = TD_CALL_RUN;
    return status;
}

/* With its arguments cast, or, where it only runs others, these: what is written in place has its
 * dtype, and so has all that an operator does by itself. */
static td_status run_autocast(td_call *call, const looks *l, uint64_t *sequence) {
    if (!call->ngiven && is_composite(call->op) && !td_autocast_class_of(call))
        return run_looked(call, l, sequence);
    td_autocast_args casts;
    td_modes_current.casting = false;
    td_status status = td_autocast_begin(call, &casts);
    if (status == TD_OK)
        status = run_looked(call, l, sequence);
    td_autocast_end(call, &casts);
    td_modes_current.casting = true;
    return status;
}

static inline td_status run_call(td_call *call, const looks *l, uint64_t *sequence) {
    return TD_UNLIKELY(td_modes_current.casting) ? run_autocast(call, l, sequence)
                                                 : run_looked(call, l, sequence);
}

static td_status run_observed(td_call *call, const looks *l, td_observer *o) {
    const td_op *op = call->op;
    td_event event = {.kind = TD_EVENT_OP,
                      .name = call->inplace && op->inplace_name ? op->inplace_name : op->name,
                      .args = call->args,
                      .nargs = op->nparams,
                      .track = td_stream_current(call->device)};
    const td_origin *before = td_origin_in_force;
    td_origin origin;
    if (o->origin && !before) {
        origin.line = 0;
        o->origin(o->ctx, &origin);
        td_origin_in_force = &origin;
    }
    event.origin = td_origin_known();
    o->begin(o->ctx, &event);
    event.status = run_call(call, l, &event.sequence);
    event.results = call->list ? call->list : call->out;
    event.nresults = call->list ? call->nlist : op->nresults;
    o->end(o->ctx, &event);
    td_origin_in_force = before;
    return event.status;
}

/* ---- indices that count from 1 ---- */

/* The value of an argument with indices from 0 in the places of those from 1; `made` owns what is
 * new, and `list` becomes its list. Both have room for TD_MAX_DIMS, as from_one has bits. */
static td_status rebase(td_value *v, td_tensor **made, td_tensor **list) {
    bool alone = v->kind == TD_KIND_TENSOR;
    int n = alone ? 1 : v->n;
    if (n > TD_MAX_DIMS)
        return td_fail(TD_EINDEX, "%d indices: a tensor has at most %d dims", n, TD_MAX_DIMS);
    td_status status = TD_OK;
    for (int k = 0; k < n && status == TD_OK; k++) {
        td_tensor *x = alone ? v->tensor : v->tensors[k];
        if (v->from_one >> k & 1 && x)
            status = TD_APPLY(&made[k], from_one_based, TD_T(x));
        list[k] = made[k] ? made[k] : x;
    }
    v->from_one = 0;
    if (alone)
        v->tensor = list[0];
    else
        v->tensors = list;
    return status;
}

static td_status call_itself(td_call *call);

/* What reads no base of indices is called with such as count from 0. One argument at a time: few
 * operators have two. */
static td_status call_rebased(td_call *call) {
    td_tensor *made[TD_MAX_DIMS] = {NULL}, *list[TD_MAX_DIMS];
    td_value args[TD_MAX_PARAMS];
    const td_value *const before = call->args;
    int k = 0;
    while (!before[k].from_one)
        k++;
    memcpy(args, before, sizeof *args * call->op->nparams);
    call->args = args;
    td_status status = rebase(&args[k], made, list);
    if (status == TD_EINDEX && call->op->params[k].base == TD_BASE_CLASS)
        status = td_fail(TD_EINDEX, TD_CLASS_ZERO);
    if (status == TD_OK)
        status = call_itself(call);
    call->args = before;
    for (k = 0; k < TD_MAX_DIMS; k++)
        td_release(made[k]);
    return status;
}

static td_status call_itself(td_call *call) {
    uint64_t sequence = 0;
    td_observer *o = td_observer_get(TD_EVENT_OP);
    looks l = look(call);
    if (TD_UNLIKELY(l.from_one) &&
        (!(call->op->flags & TD_OP_ANY_BASE) || call->device.type != TD_CPU || l.other))
        return call_rebased(call);
    return TD_UNLIKELY(o != NULL) ? run_observed(call, &l, o) : run_call(call, &l, &sequence);
}

td_status td_op_run(td_call *call) {
    const td_op *op = call->op;
    td_status status = TD_OK;
    if (TD_UNLIKELY(op->variant != NULL))
        status = op->variant(call->args, &call->op);
    if (TD_LIKELY(status == TD_OK))
        status = call_itself(call);
    if (TD_UNLIKELY(status)) {
        td_call_drop(call);
        if (!(op->flags & TD_OP_INTERNAL)) /* parts of others go by the others' names */
            td_error_rename(call->inplace && op->inplace_name ? op->inplace_name : op->name);
    }
    return status;
}

/* Up to the point where the node would be made, behind which nothing is refused. */
static td_status check_itself(td_call *call) {
    const td_op *op = call->op;
    looks l = look(call);
    if (l.elsewhere && op->kernel && !(op->flags & TD_OP_ANY_DEVICE))
        return fail_device(call, l.elsewhere);
    bool other = l.other && !(op->flags & TD_OP_ANY_LAYOUT);
    if (other && !find_form(op, l.other))
        return fail_layout(call, l.other);
    td_status status = td_check_writes(call);
    if (status || other)
        return status;
    call->mode = TD_CALL_CHECK;
    status = op->pointwise ? td_pointwise_call(call) : run_kernel(call);
    return call->mode == TD_CALL_CHECKED ? TD_OK : status;
}

td_status td_op_check(td_call *call) {
    const td_op *op = call->op;
    td_status status = op->variant ? op->variant(call->args, &call->op) : TD_OK;
    if (status == TD_OK)
        status = check_itself(call);
    td_call_drop(call);
    if (status)
        td_error_rename(call->inplace && op->inplace_name ? op->inplace_name : op->name);
    return status;
}
