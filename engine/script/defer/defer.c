/* defer.c: puts calls off while they follow a path, learns the paths that they take, and runs what
 * has gathered.
 */
#include "engine/script/defer/defer.h"

#include "engine/core/activity.h"
#include "engine/core/default_dtype.h"
#include "engine/core/map.h"
#include "engine/core/memory.h"
#include "engine/core/modes.h"
#include "engine/core/random.h"
#include "engine/ops/given.h"
#include "engine/script/defer/defer_plan.h"

#include <string.h>

enum {
    MOST_VALUES = 2 * TD_DEFERRAL_CALLS,
    MOST_INPUTS = 2 * TD_DEFERRAL_CALLS,
    MOST_OPERANDS = 512, /* of a call */
    SWEEP_LEAST = 32,
    GRAPH_AT = 2 /* the run of a path that makes its graph */
};

/* Where paths begin, by the modes that hold. */
typedef struct root {
    struct root *next;
    td_modes modes;
    td_dtype dtype;
    td_path_step step;
} root;

/* A tensor of the path that is learnt, held so that its address is its name. */
typedef struct named {
    td_tensor *tensor;
    td_path_operand what;
} named;

struct td_deferral {
    td_pending pending; /* first, so that a run finds the deferral */
    td_deferral_host host;
    td_ir_graph *memory; /* of the steps; its block is empty */
    root *roots;
    td_path_step *at; /* the path so far; NULL: none is begun */
    root *root;       /* of that */
    td_deferred *values;
    td_tensor **inputs;           /* held */
    int nvalues, ninputs, ncalls; /* that wait; ncalls of which ran already are not among them */
    bool learning, knew, crowded; /* crowded: a step was not learnt for want of room */
    named *helds;
    int nhelds, sweep_at;                    /* so many: those that nobody else holds are let go */
    td_map by_address;                       /* of helds */
    td_scripted *graphs[TD_DEFERRAL_GRAPHS]; /* borrowed from the ends */
    td_deferral_counts counts;
    char why[256];
};

static td_status no_memory(void) {
    return td_fail(TD_ENOMEM, "out of memory for calls that are put off");
}

static td_status run_pending(td_pending *self) {
    return td_deferral_settle((td_deferral *)self);
}

td_status td_deferral_new(const td_deferral_host *host, td_deferral **out) {
    td_deferral *d = *out = td_calloc(1, sizeof *d);
    if (!d)
        return no_memory();
    d->pending.run = run_pending;
    d->host = *host;
    d->knew = true;
    d->memory = td_ir_graph_new();
    d->values = td_malloc(sizeof *d->values * MOST_VALUES);
    d->inputs = td_malloc(sizeof *d->inputs * MOST_INPUTS);
    if (d->memory && d->values && d->inputs)
        return TD_OK;
    td_deferral_free(d);
    *out = NULL;
    return no_memory();
}

/* ---- the end of a path ---- */

static void forget_held(td_deferral *d) {
    for (int k = 0; k < d->nhelds; k++)
        td_release(d->helds[k].tensor);
    d->nhelds = 0;
    d->sweep_at = SWEEP_LEAST;
    td_map_clear(&d->by_address);
}

/* The next call begins a path. */
static void leave_path(td_deferral *d) {
    for (int k = 0; k < d->ninputs; k++)
        td_release(d->inputs[k]);
    forget_held(d);
    d->nvalues = d->ninputs = d->ncalls = 0;
    d->learning = false;
    d->at = NULL;
}

/* Who waits gets what there is. */
static void fill(td_deferral *d) {
    for (int k = 0; k < d->nvalues; k++) {
        td_deferred *v = &d->values[k];
        if (v->holder)
            d->host.fill(d->host.ctx, v);
        td_release(v->tensor);
        v->tensor = NULL;
        v->holder = NULL;
    }
}

static void drop_end(td_path_end *e) {
    td_plan_drop(e->plan);
}

static void drop_paths(td_deferral *d) {
    for (root *r = d->roots, *next; r; r = next) {
        next = r->next;
        td_path_drop(r->step.first, drop_end);
        td_free(r);
    }
    d->roots = NULL;
}

void td_deferral_free(td_deferral *d) {
    if (!d)
        return;
    if (td_pending_work == &d->pending)
        td_pending_work = NULL;
    fill(d);
    leave_path(d);
    drop_paths(d);
    td_ir_graph_release(d->memory);
    td_free(d->values);
    td_free(d->inputs);
    td_free(d->helds);
    td_free(d);
}

/* ---- running call by call ---- */

/* The tensor that an operand is now. */
static td_tensor *tensor_of(const td_deferral *d, const td_path_operand *o) {
    return o->input >= 0 ? d->inputs[o->input] : o->value >= 0 ? d->values[o->value].tensor : NULL;
}

static td_status run_step(td_deferral *d, const td_path_step *s) {
    td_value args[TD_MAX_PARAMS];
    td_tensor *room[MOST_OPERANDS], **list = room;
    const td_path_operand *o = s->operands;
    for (int k = 0; k < s->op->nparams; k++) {
        args[k] = s->args[k];
        if (args[k].kind == TD_KIND_TENSOR)
            args[k].tensor = tensor_of(d, o++);
        if (args[k].kind != TD_KIND_TENSORS)
            continue;
        args[k].tensors = list;
        for (int j = 0; j < args[k].n; j++)
            *list++ = tensor_of(d, o++);
    }
    td_tensor *given = s->inplace ? args[0].tensor : NULL;
    td_call call = {
        .op = s->op, .args = args, .inplace = s->inplace, .given = &given, .ngiven = s->inplace};
    td_status status = td_op_call(&call);
    if (status)
        return status;
    for (int k = 0; k < s->nouts; k++)
        d->values[s->first_value + k].tensor = call.list ? call.list[k] : call.out[k];
    td_free(call.list);
    return TD_OK;
}

/* The message of a call that failed, with its place before it. */
static td_status fail_at(const td_path_step *s, td_status status) {
    char message[600];
    if (!s->place.file || status == TD_ESCRIPT || status == TD_EINTR)
        return status;
    strncpy(message, td_error_message(), sizeof message - 1);
    message[sizeof message - 1] = 0;
    return td_fail(status, "%s:%d: %s", s->place.file, s->place.line, message);
}

static td_status run_calls(td_deferral *d, td_path_step *const *steps) {
    for (int k = 0; k < d->at->ncalls; k++) {
        td_status status = run_step(d, steps[k]);
        if (status)
            return fail_at(steps[k], status);
    }
    d->counts.call_runs++;
    return TD_OK;
}

/* ---- running as graphs ---- */

static bool is_held(const td_deferred *v) {
    return v->holder && v->stand_in;
}

static int list_held(const td_deferral *d, int *held) {
    int n = 0;
    for (int k = 0; k < d->nvalues; k++)
        if (is_held(&d->values[k]))
            held[n++] = k;
    return n;
}

/* The end of this path where these results are held, made where there is none; NULL: out of memory.
 */
static td_path_end *find_end(td_deferral *d, int n, const int *held) {
    td_path_end *e = d->at->ends;
    for (; e; e = e->next)
        if (e->n == n && !memcmp(e->values, held, sizeof *held * (size_t)n))
            return e;
    e = td_ir_alloc(d->memory, sizeof *e);
    int *values = td_ir_alloc(d->memory, sizeof *values * (size_t)(n + 1));
    if (!e || !values)
        return NULL;
    memcpy(values, held, sizeof *values * (size_t)n);
    *e = (td_path_end){.next = d->at->ends, .n = n, .values = values};
    d->at->ends = e;
    return e;
}

/* No graph does it: why is kept. */
static void give_up(td_deferral *d, td_path_end *e) {
    e->failed = true;
    d->counts.failed++;
    strncpy(d->why, td_error_message(), sizeof d->why - 1);
}

/* One node that stands for many refuses backward where one of them would, so whatever is written in
 * place of what is recorded is not of a graph. */
static bool writes_history(const td_path_step *s) {
    for (; s->before; s = s->before)
        if (s->inplace && s->outs[0]->requires_grad && td_is_recording())
            return true;
    return false;
}

static void make_plan(td_deferral *d, td_path_end *e) {
    if (writes_history(d->at)) {
        (void)td_fail(TD_EVALUE, "what has a history is written in place");
        give_up(d, e);
        return;
    }
    e->plan = td_plan_new(d->memory, d->at, e->n, e->values, td_is_recording());
    td_status status = e->plan ? TD_OK : no_memory();
    for (td_plan_part *p = e->plan ? e->plan->first : NULL; p && status == TD_OK; p = p->next) {
        if (p->calls)
            continue;
        status = d->counts.graphs < TD_DEFERRAL_GRAPHS
                     ? td_plan_make(d->at, p)
                     : td_fail(TD_EVALUE, "there are as many graphs as are kept");
        if (status == TD_OK)
            d->graphs[d->counts.graphs++] = p->graph;
    }
    d->counts.full |= d->counts.graphs == TD_DEFERRAL_GRAPHS;
    if (status)
        give_up(d, e);
}

/* The end by which this path runs as graphs; NULL: call by call. */
static td_path_end *choose(td_deferral *d, int n, const int *held) {
    td_path_end *e = d->learning ? NULL : find_end(d, n, held);
    if (!e || e->failed || ++e->count < GRAPH_AT)
        return NULL;
    if (!e->plan)
        make_plan(d, e);
    return e->failed ? NULL : e;
}

static td_status run_graph(td_deferral *d, const td_plan_part *p) {
    td_value *inputs = td_malloc(sizeof *inputs * (size_t)(p->ninputs + p->noutputs + 1));
    if (!inputs)
        return no_memory();
    td_value *results = inputs + p->ninputs;
    for (int k = 0; k < p->ninputs; k++)
        inputs[k] = TD_T(tensor_of(d, &p->inputs[k]));
    td_status status = td_scripted_call(p->graph, inputs, results);
    for (int k = 0; k < p->noutputs && status == TD_OK; k++)
        d->values[p->outputs[k]].tensor = td_arg_tensor(results[k]); /* with the reference */
    td_free(inputs);
    return status;
}

/* Held results that are arguments themselves. */
static void fill_idle(td_deferral *d, td_path_step *const *steps) {
    for (int k = 0; k < d->at->ncalls; k++) {
        const td_path_step *s = steps[k];
        for (int j = 0; j < s->noperands && s->idle; j++)
            if (s->operands[j].stand_in == s->outs[0] && !d->values[s->first_value].tensor)
                d->values[s->first_value].tensor = td_retain(tensor_of(d, &s->operands[j]));
    }
}

static td_status run_plan(td_deferral *d, const td_plan *plan, td_path_step *const *steps) {
    td_status status = TD_OK;
    for (const td_plan_part *p = plan->first; p && status == TD_OK; p = p->next) {
        if (!p->calls)
            status = run_graph(d, p);
        for (int k = 0; k < p->nsteps && p->calls && status == TD_OK; k++)
            status = run_step(d, steps[p->steps[k]]);
    }
    if (status == TD_OK)
        fill_idle(d, steps);
    return status;
}

/* As if nothing had run. */
static void undo(td_deferral *d, td_generator drawn) {
    for (int k = 0; k < d->nvalues; k++) {
        td_release(d->values[k].tensor);
        d->values[k].tensor = NULL;
    }
    if (d->at->random)
        td_set_default_generator(drawn);
}

/* What graphs refuse is tried call by call, which says what is wrong as eager mode does. */
static td_status run_either_way(td_deferral *d, td_path_end *e, td_path_step *const *steps) {
    td_generator drawn = td_get_default_generator();
    int64_t began = td_clock_ns();
    if (!e)
        return run_calls(d, steps);
    td_status status = run_plan(d, e->plan, steps);
    if (e->count == GRAPH_AT)
        d->counts.made += td_clock_ns() - began;
    d->counts.graph_runs += status == TD_OK;
    if (status == TD_OK || status == TD_EINTR)
        return status;
    char why[sizeof d->why];
    strncpy(why, td_error_message(), sizeof why - 1);
    why[sizeof why - 1] = 0;
    undo(d, drawn);
    status = run_calls(d, steps);
    if (status == TD_OK) { /* the calls can */
        e->failed = true;
        d->counts.failed++;
        memcpy(d->why, why, sizeof why);
    }
    return status;
}

/* All that has gathered; values have their tensors then, as far as they could be made. */
static td_status run_gathered(td_deferral *d) {
    td_path_step **steps = td_malloc(sizeof *steps * (size_t)(d->at->ncalls + 1));
    int *held = td_malloc(sizeof *held * (size_t)(d->nvalues + 1));
    td_status status = steps && held ? TD_OK : no_memory();
    if (status == TD_OK) {
        int n = list_held(d, held);
        int64_t began = td_clock_ns();
        td_path_end *e = choose(d, n, held);
        if (e && e->count == GRAPH_AT)
            d->counts.made += td_clock_ns() - began;
        td_path_list(d->at, steps);
        status = run_either_way(d, e, steps);
    }
    td_free(steps);
    td_free(held);
    return status;
}

/* ---- settling ---- */

/* Run what has gathered and fill it in; the path stays. */
static td_status settle(td_deferral *d) {
    td_pending_work = NULL;
    td_modes before = td_set_modes(d->root->modes);
    int64_t began = td_clock_ns();
    int ncalls = d->ncalls;
    td_status status = run_gathered(d);
    td_set_modes(before);
    d->host.settled(d->host.ctx, ncalls, td_clock_ns() - began, status);
    return status;
}

td_status td_deferral_settle(td_deferral *d) {
    td_status status = d->ncalls ? settle(d) : TD_OK;
    fill(d);
    leave_path(d);
    return status;
}

int td_deferral_waiting(const td_deferral *d) {
    int n = 0;
    for (int k = 0; k < d->nvalues; k++)
        n += is_held(&d->values[k]);
    return n;
}

bool td_deferral_is_hasty(const td_deferral *d) {
    return d->at && d->ncalls && d->at->hasty;
}

bool td_deferral_knew(td_deferral *d) {
    bool knew = d->knew;
    d->knew = true;
    return knew;
}

/* ---- learning ---- */

static bool is_of(const void *entry, const void *tensor) {
    return ((const named *)entry)->tensor == tensor;
}

static named *find_held(const td_deferral *d, const td_tensor *x) {
    return td_map_find(&d->by_address, td_hash_address(x), is_of, x);
}

/* What nobody else holds can't be an argument any more. */
static td_status sweep(td_deferral *d) {
    td_status status = TD_OK;
    int n = 0;
    td_map_clear(&d->by_address);
    for (int k = 0; k < d->nhelds; k++) {
        named h = d->helds[k];
        if (atomic_load_explicit(&h.tensor->refs, memory_order_acquire) == 1)
            td_release(h.tensor);
        else
            d->helds[n++] = h;
    }
    d->nhelds = n;
    d->sweep_at = 2 * n + SWEEP_LEAST;
    for (int k = 0; k < n && status == TD_OK; k++)
        status = td_map_add(&d->by_address, td_hash_address(d->helds[k].tensor), &d->helds[k]);
    return status;
}

static td_status hold(td_deferral *d, td_tensor *x, const td_path_operand *what) {
    td_status status = d->nhelds >= d->sweep_at ? sweep(d) : TD_OK;
    if (status)
        return status;
    named *h = find_held(d, x);
    if (h) { /* written in place: another value from here on */
        h->what = *what;
        return TD_OK;
    }
    if (d->nhelds == MOST_VALUES + MOST_INPUTS)
        return no_memory();
    h = &d->helds[d->nhelds];
    *h = (named){x, *what};
    status = td_map_add(&d->by_address, td_hash_address(x), h);
    if (status)
        return status;
    d->nhelds++;
    td_retain(x);
    return TD_OK;
}

/* What has gathered so far ran, and what is to come is learnt: the path's tensors are known by
 * their addresses. */
static td_status begin_learning(td_deferral *d) {
    td_status status = TD_OK;
    if (!d->helds)
        d->helds = td_malloc(sizeof *d->helds * (MOST_VALUES + MOST_INPUTS));
    if (!d->helds)
        return no_memory();
    td_path_step **steps = td_malloc(sizeof *steps * (size_t)(d->at->ncalls + 1));
    if (!steps)
        return no_memory();
    td_path_list(d->at, steps);
    for (int k = 0, n = 0; k < d->at->ncalls && status == TD_OK; k++) {
        const td_path_step *s = steps[k];
        for (int j = 0; j < s->noperands && status == TD_OK; j++)
            if (s->operands[j].input == n)
                status = hold(d, d->inputs[n++], &s->operands[j]);
        for (int j = 0; j < s->nouts && status == TD_OK; j++)
            if (d->values[s->first_value + j].holder && !s->idle)
                status = hold(d, d->values[s->first_value + j].tensor,
                              &(td_path_operand){s->outs[j], -1, s->first_value + j, 0});
    }
    td_free(steps);
    d->learning = true;
    return status;
}

/* The arguments of a call that was made with stand-ins as they are now. */
typedef struct real_args {
    td_value args[TD_MAX_PARAMS];
    td_tensor *room[MOST_OPERANDS], *given;
    int n;
} real_args;

static td_tensor *real_tensor(const td_deferral *d, td_tensor *x) {
    if (!x || !td_is_stand_in(x))
        return x;
    for (int k = d->nvalues - 1; k >= 0; k--)
        if (d->values[k].stand_in == x && d->values[k].holder)
            return d->values[k].tensor;
    return x;
}

static void make_real(const td_deferral *d, td_call *call, real_args *r) {
    td_tensor **list = r->room;
    for (int k = 0; k < call->op->nparams; k++) {
        const td_value *v = &call->args[k];
        r->args[k] = *v;
        if (v->kind == TD_KIND_TENSOR)
            r->args[k].tensor = real_tensor(d, v->tensor);
        if (v->kind != TD_KIND_TENSORS)
            continue;
        r->args[k].tensors = list;
        for (int j = 0; j < v->n; j++)
            *list++ = real_tensor(d, v->tensors[j]);
    }
    call->args = r->args;
    if (call->ngiven == 1 && call->inplace) {
        r->given = r->args[0].tensor;
        call->given = &r->given;
    }
}

/* A call's tensors, in order; how many. */
static int list_tensors(const td_call *call, td_tensor **list) {
    int n = 0;
    for (int k = 0; k < call->op->nparams; k++) {
        const td_value *v = &call->args[k];
        if (v->kind == TD_KIND_TENSOR)
            list[n++] = v->tensor;
        for (int j = 0; v->kind == TD_KIND_TENSORS && j < v->n; j++)
            list[n++] = v->tensors[j];
    }
    return n;
}

/* What the tensors of a call are on the path; those that it does not know yet become inputs. */
static td_status find_operands(td_deferral *d, int n, td_tensor *const *list, td_path_operand *o,
                               int *ninputs) {
    *ninputs = d->at->ninputs;
    for (int k = 0; k < n; k++) {
        named *h = list[k] ? find_held(d, list[k]) : NULL;
        o[k] = h ? h->what : (td_path_operand){NULL, -1, -1, 0};
        for (int j = 0; j < k && !h && list[k]; j++)
            if (list[j] == list[k]) {
                o[k] = o[j];
                h = &(named){0}; /* an input of this very call */
            }
        if (h || !list[k])
            continue;
        if (*ninputs == MOST_INPUTS)
            return no_memory();
        td_status status = td_path_stand_in(list[k], &o[k].stand_in);
        if (status)
            return status;
        o[k].input = (*ninputs)++;
        o[k].traits = td_path_traits(list[k]);
    }
    return TD_OK;
}

static void drop_new(const td_deferral *d, int n, const td_path_operand *o) {
    int seen = d->at->ninputs;
    for (int k = 0; k < n; k++)
        if (o[k].input == seen && o[k].stand_in) {
            td_release(o[k].stand_in);
            seen++;
        }
}

/* Can the same call be put off another time, from what it did? `versions`: of its tensors before.
 */
static bool can_wait(const td_call *call, int n, td_tensor *const *list, const unsigned *versions,
                     const td_path_operand *o) {
    bool can = true;
    for (int k = 0; k < n; k++) {
        bool written = list[k] && td_tensor_version(list[k]) != versions[k];
        can &= !written || (call->inplace && list[k]->storage == list[0]->storage);
        can &= !list[k] || list[k]->layout == TD_STRIDED;
    }
    for (int k = 0; k < TD_MAX_RESULTS; k++)
        can &= !call->out[k] || call->out[k]->layout == TD_STRIDED;
    for (int k = 0; k < call->nlist; k++)
        can &= call->list[k]->layout == TD_STRIDED;
    /* In place: a result of the path of which there are no views. */
    if (call->inplace)
        can &= n && o[0].value >= 0 && !list[0]->base &&
               atomic_load_explicit(&list[0]->storage->refs, memory_order_relaxed) == 1;
    return can;
}

/* The step's results: stand-ins of what the call gave. */
static td_status learn_results(td_deferral *d, td_path_step *s, td_call *call, int n,
                               td_tensor *const *list) {
    int nouts = call->list ? call->nlist : call->op->nresults;
    td_tensor *const *outs = call->list ? call->list : call->out;
    s->outs = td_ir_alloc(d->memory, sizeof *s->outs * (size_t)(nouts + 1));
    if (!s->outs)
        return no_memory();
    for (int k = 0; k < nouts; k++) {
        td_status status = TD_OK;
        for (int j = 0; j < n && !s->inplace && !s->outs[k]; j++)
            if (outs[k] && outs[k] == list[j])
                s->outs[k] = td_retain(s->operands[j].stand_in);
        s->idle |= s->outs[k] != NULL;
        for (int j = 0; j < n && outs[k] && !s->inplace; j++)
            s->view |= list[j] && outs[k]->storage == list[j]->storage;
        if (outs[k] && !s->outs[k])
            status = td_path_stand_in(outs[k], &s->outs[k]);
        s->nouts = k + 1;
        if (status == TD_OK && outs[k] && !s->idle)
            status = hold(d, outs[k], &(td_path_operand){s->outs[k], -1, s->first_value + k, 0});
        if (status)
            return status;
    }
    s->alone |= s->idle && nouts > 1; /* gives some of its arguments, and others too */
    return TD_OK;
}

/* May such a call refuse elements? What is not known to take all is not. */
static bool may_refuse(const td_path_step *s) {
    static const char *const families[] = {"linalg",        "matrices", "loss",  "margin",
                                           "ctc",           "sample",   "index", "gather",
                                           "scatter_write", "embedding"};
    static const char *const quotients[] = {"div",       "floor_divide", "trunc_divide",
                                            "remainder", "fmod",         "pow"};
    const td_op *op = s->op;
    bool may = op->flags & TD_OP_REFUSES;
    for (int k = 0; k < op->nparams; k++)
        may |= op->params[k].base != TD_BASE_NONE;
    for (size_t k = 0; k < sizeof families / sizeof *families; k++)
        may |= !strcmp(op->family, families[k]);
    for (size_t k = 0; k < sizeof quotients / sizeof *quotients; k++)
        may |= !strcmp(op->name, quotients[k]) && s->outs[0] &&
               !td_dtype_is_float((td_dtype)s->outs[0]->dtype);
    return may;
}

static void learn_place(td_deferral *d, td_path_step *s) {
    const char *file = NULL;
    d->host.place(d->host.ctx, &file, &s->place.line);
    if (file)
        s->place.file = td_ir_text(d->memory, file, strlen(file));
}

/* The call, which has run, becomes the next step, and the path goes on behind it unless no such
 * call can be put off. */
static td_status add_step(td_deferral *d, const td_op *op, td_call *call, int n,
                          td_tensor *const *list, td_path_operand *o, bool waits) {
    td_call as = {.op = op, .args = call->args, .inplace = call->inplace};
    td_path_step *s = td_path_add(d->memory, d->at, &as, n, o);
    if (!s) {
        drop_new(d, n, o);
        return no_memory();
    }
    td_status status = TD_OK;
    for (int k = 0; k < n && status == TD_OK; k++)
        if (o[k].input >= d->at->ninputs && !find_held(d, list[k]))
            status = hold(d, list[k], &s->operands[k]);
    d->counts.steps++;
    s->alone = !waits;
    if (status == TD_OK && waits)
        status = learn_results(d, s, call, n, list);
    if (status == TD_OK && waits) {
        s->hasty = s->nouts && may_refuse(s);
        learn_place(d, s);
    }
    s->alone |= status != TD_OK;
    if (!s->alone)
        d->at = s;
    return status;
}

static td_status run_alone(td_deferral *d, td_call *call) {
    d->counts.ran++;
    return td_op_call(call);
}

/* Run a call that is on no path, and learn it. */
static td_status learn(td_deferral *d, td_call *call) {
    td_tensor *list[MOST_OPERANDS];
    td_path_operand operands[MOST_OPERANDS];
    unsigned versions[MOST_OPERANDS];
    const td_op *op = call->op; /* the one that was asked for, of which a variant may run */
    int n = list_tensors(call, list), ninputs;
    d->knew = false;
    td_status status = find_operands(d, n, list, operands, &ninputs);
    for (int k = 0; k < n; k++)
        versions[k] = list[k] ? td_tensor_version(list[k]) : 0;
    if (status == TD_OK)
        status = run_alone(d, call);
    if (status) {
        drop_new(d, n, operands);
        return status;
    }
    bool waits = can_wait(call, n, list, versions, operands);
    if (add_step(d, op, call, n, list, operands, waits) || !waits)
        leave_path(d); /* what is learnt so far holds */
    return TD_OK;
}

/* ---- calls ---- */

/* May such a call be put off at all? */
static bool may_wait(const td_call *call) {
    const td_op *op = call->op;
    bool may = (op->result_type == TD_RESULT_TENSOR || op->result_type == TD_RESULT_TENSORS) &&
               !(op->flags & TD_OP_BY_ELEMENTS) && td_call_count_tensors(call) <= MOST_OPERANDS;
    may &= !call->ngiven || (call->inplace && !(op->flags & (TD_OP_TURNS | TD_OP_INPLACE_ONLY)));
    for (int k = 0; k < op->nparams; k++)
        may &= call->args[k].kind != TD_KIND_GENERATOR;
    return may;
}

static bool modes_allow(void) {
    const td_modes *m = &td_modes_current;
    return !m->dispatcher && !m->casting && !m->keeper && !m->anomaly;
}

static bool same_modes(const root *r) {
    const td_modes *m = &td_modes_current;
    return r->modes.grad_disabled == m->grad_disabled && r->modes.inference == m->inference &&
           td_device_same(r->modes.device, m->device) && r->dtype == td_default_dtype();
}

/* As many steps are known as may be, and more are wanted: begin anew with none. */
static td_status forget_paths(td_deferral *d) {
    td_ir_graph *memory = td_ir_graph_new();
    if (!memory)
        return no_memory();
    drop_paths(d);
    td_ir_graph_release(d->memory);
    d->memory = memory;
    d->counts.steps = d->counts.graphs = 0;
    d->counts.forgotten++;
    d->crowded = false;
    return TD_OK;
}

/* Begin a path under the modes that hold. */
static td_status begin_path(td_deferral *d) {
    if (d->crowded && forget_paths(d))
        return no_memory();
    root *r = d->roots;
    while (r && !same_modes(r))
        r = r->next;
    if (!r) {
        r = td_calloc(1, sizeof *r);
        if (!r)
            return no_memory();
        r->modes = td_get_modes();
        r->dtype = td_default_dtype();
        r->next = d->roots;
        d->roots = r;
    }
    d->root = r;
    d->at = &r->step;
    return TD_OK;
}

/* The step behind the path that the call is; it moves to the front, as what is likely. */
static td_path_step *find_step(td_deferral *d, const td_call *call) {
    td_path_step **place = &d->at->first, *s;
    while ((s = *place) && !td_path_matches(s, call, d->inputs))
        place = &s->next;
    if (s && place != &d->at->first) {
        *place = s->next;
        s->next = d->at->first;
        d->at->first = s;
    }
    return s;
}

/* Is there room for one more step's values and inputs? */
static bool has_room(const td_deferral *d, const td_call *call) {
    int most = td_call_count_tensors(call) + TD_MAX_RESULTS + MOST_OPERANDS / 4;
    return d->at->ncalls < TD_DEFERRAL_CALLS && d->at->ninputs + most < MOST_INPUTS &&
           d->at->first_value + d->at->nouts + most < MOST_VALUES;
}

/* In place: who held what was written holds what it is now. */
static void pass_holder(td_deferral *d, const td_path_step *s, td_deferred *fresh) {
    td_deferred *old = &d->values[s->operands[0].value];
    fresh->holder = old->holder;
    old->holder = NULL;
}

static void put_off(td_deferral *d, td_path_step *s, td_deferred **values, int *n) {
    for (int k = d->at->ninputs; k < s->ninputs; k++)
        td_retain(d->inputs[k]);
    d->ninputs = s->ninputs;
    *values = &d->values[d->nvalues];
    *n = s->nouts;
    for (int k = 0; k < s->nouts; k++)
        d->values[d->nvalues++] = (td_deferred){.stand_in = s->outs[k]};
    if (s->inplace)
        pass_holder(d, s, *values);
    d->at = s;
    d->ncalls++;
    d->counts.deferred++;
    td_pending_work = &d->pending;
}

/* What has gathered runs, so that the call's arguments are there. `stay`: the path goes on. */
static td_status settle_for(td_deferral *d, td_call *call, real_args *r, bool stay) {
    td_status status = TD_OK;
    if (d->ncalls) {
        status = settle(d);
        if (status == TD_OK)
            make_real(d, call, r);
        if (status == TD_OK && stay)
            status = begin_learning(d);
        fill(d);
        d->nvalues = d->ncalls = 0;
    }
    if (!stay || status)
        leave_path(d);
    return status;
}

td_status td_deferral_call(td_deferral *d, td_call *call, bool alone, td_deferred **values,
                           int *n) {
    real_args r;
    *n = 0;
    bool allowed = modes_allow(), waits = !alone && allowed && may_wait(call);
    td_status status = TD_OK;
    if (d->at && (!waits || !same_modes(d->root) || !has_room(d, call)))
        status = settle_for(d, call, &r, false);
    d->counts.under_modes += !allowed;
    if (status || !waits)
        return status ? status : run_alone(d, call);
    if (!d->at)
        status = begin_path(d);
    if (status)
        return status;
    td_path_step *s = d->learning ? NULL : find_step(d, call);
    if (s && !s->alone) {
        put_off(d, s, values, n);
        return TD_OK;
    }
    bool learns = !s && d->counts.steps < TD_DEFERRAL_STEPS;
    d->crowded |= !s && !learns;
    bool begun = d->learning;
    status = settle_for(d, call, &r, learns);
    if (status == TD_OK && learns && !begun && !d->learning)
        status = begin_learning(d); /* at the very beginning */
    if (status)
        return status;
    return learns ? learn(d, call) : run_alone(d, call);
}

/* ---- reports ---- */

td_deferral_counts td_deferral_count(const td_deferral *d) {
    return d->counts;
}

const char *td_deferral_why(const td_deferral *d) {
    return d->why;
}

const td_ir_graph *td_deferral_graph(const td_deferral *d, int k) {
    return k >= 0 && k < d->counts.graphs ? td_scripted_graph(d->graphs[k]) : NULL;
}
