/* scripted.c: functions made of graphs: a graph as it was written, and what it became for each kind
 * of inputs.
 *
 * Specialisations form a list that only grows at its head, or has one replaced by a more general
 * one; either is one atomic store. What was replaced is kept until the function dies, for a thread
 * may run it, so readers take no lock. Makers take one.
 */
#include "engine/script/scripted.h"

#include "engine/core/activity.h"
#include "engine/core/default_dtype.h"
#include "engine/core/memory.h"
#include "engine/core/modes.h"
#include "engine/core/observer.h"
#include "engine/script/kept_inputs.h"
#include "engine/script/passes/alias.h"
#include "engine/script/passes/edit.h"
#include "engine/script/special.h"

#include <limits.h>
#include <stddef.h>
#include <string.h>

/* ---- finding one ---- */

static uint64_t modes_now(const td_scripted *f) {
    const td_modes *m = &td_modes_current;
    uint64_t key = (uint64_t)m->grad_disabled | (uint64_t)m->inference << 1 |
                   (uint64_t)m->casting << 2 |
                   (uint64_t)atomic_load_explicit(&f->fast, memory_order_relaxed) << 3 |
                   (uint64_t)td_default_dtype() << 8 | (uint64_t)m->device.type << 16 |
                   (uint64_t)(uint8_t)m->device.index << 24;
    for (int k = 0; m->casting && k < TD_DEVICE_TYPES; k++)
        key |= (uint64_t)(m->cast[k] & 31) << (32 + 5 * k);
    return key;
}

static inline bool has_sizes(const td_tensor *x, const int64_t *sizes) {
    for (int d = 0; d < x->ndim; d++)
        if (sizes[d] != x->sizes[d] && sizes[d] != TD_IR_UNKNOWN)
            return false;
    return true;
}

/* The entries of a list, whose own key is the right one; keys and sizes go on behind them. */
static __attribute__((noinline)) bool entries_match(const td_value *list, const uint64_t **keys,
                                                    const int64_t **sizes) {
    int n;
    td_tensor *const *entries = td_special_entries(list, &n);
    for (int k = 0; entries && k < n; k++) {
        const td_value v = td_tensor_or_nil(entries[k]);
        if (td_special_key(&v) != *(*keys)++)
            return false;
        if (v.kind != TD_KIND_TENSOR)
            continue;
        if (!has_sizes(v.tensor, *sizes))
            return false;
        *sizes += v.tensor->ndim;
    }
    return true;
}

static inline bool matches(const td_scripted *f, const td_special *s, const td_value *inputs) {
    const int64_t *sizes = s->sizes;
    const uint64_t *keys = s->keys;
    for (int k = 0; k < f->nlooks; k++) {
        const td_value *v = &inputs[f->looks[k]];
        if (td_special_key(v) != *keys++)
            return false;
        if (TD_LIKELY(v->kind == TD_KIND_TENSOR)) {
            if (!has_sizes(v->tensor, sizes))
                return false;
            sizes += v->tensor->ndim;
        } else if (f->lists && !entries_match(v, &keys, &sizes)) {
            return false;
        }
    }
    return true;
}

static td_special *find(const td_scripted *f, uint64_t modes, const td_value *inputs) {
    td_special *s = atomic_load_explicit(&f->first, memory_order_acquire);
    for (; s; s = atomic_load_explicit(&s->next, memory_order_acquire))
        if (s->modes == modes && matches(f, s, inputs))
            return s;
    return NULL;
}

/* ---- making one ---- */

/* Of inputs of the same kinds, whatever their sizes. */
static td_special *find_alike(const td_scripted *f, const td_special *wanted) {
    td_special *s = atomic_load_explicit(&f->first, memory_order_relaxed);
    while (s && (s->modes != wanted->modes || s->nkeys != wanted->nkeys ||
                 memcmp(s->keys, wanted->keys, sizeof *s->keys * (size_t)s->nkeys) != 0))
        s = atomic_load_explicit(&s->next, memory_order_relaxed);
    return s;
}

/* The same; what differs is not known any more. */
static td_special *find_narrower(const td_scripted *f, td_special *wanted) {
    td_special *s = find_alike(f, wanted);
    for (int k = 0; s && k < s->nsizes; k++)
        if (s->sizes[k] != wanted->sizes[k])
            wanted->sizes[k] = TD_IR_UNKNOWN;
    return s;
}

/* In place of `narrower`, or as the newest. */
static void publish(td_scripted *f, td_special *s, td_special *narrower) {
    s->made = f->made;
    f->made = s;
    if (!narrower) {
        atomic_store_explicit(&s->next, atomic_load_explicit(&f->first, memory_order_relaxed),
                              memory_order_relaxed);
        atomic_store_explicit(&f->first, s, memory_order_release);
        f->nspecials++;
        return;
    }
    _Atomic(td_special *) *place = &f->first;
    for (td_special *p; (p = atomic_load_explicit(place, memory_order_relaxed)) != narrower;)
        place = &p->next;
    atomic_store_explicit(&s->next, atomic_load_explicit(&narrower->next, memory_order_relaxed),
                          memory_order_relaxed);
    atomic_store_explicit(place, s, memory_order_release);
    narrower->replaced = true;
}

/* Under the lock: one without a script; and which it is to replace. *out stays NULL where there are
 * as many as there may be. */
static td_status begin(td_scripted *f, uint64_t modes, const td_value *inputs, td_special **out,
                       td_special **narrower) {
    *out = td_special_new(f, modes, inputs);
    if (!*out)
        return td_fail(TD_ENOMEM, "out of memory for a function");
    *narrower = find_narrower(f, *out);
    if (!*narrower && f->nspecials == TD_SCRIPTED_MOST) {
        f->full = true;
        td_special_free(*out);
        *out = NULL;
    }
    return TD_OK;
}

static td_status rewrite(const td_scripted *f, td_special *s, const td_value *inputs) {
    int64_t began = td_clock_ns();
    td_status status = td_special_rewrite(f, s, inputs);
    s->ns = td_clock_ns() - began;
    return status;
}

/* Under the lock. *out stays NULL where there are as many as there may be. */
static td_status make(td_scripted *f, uint64_t modes, const td_value *inputs, td_special **out) {
    td_special *s, *narrower;
    *out = find(f, modes, inputs);
    if (*out)
        return TD_OK;
    td_status status = begin(f, modes, inputs, &s, &narrower);
    if (status || !s)
        return status;
    td_loading loading;
    td_loading_begin(&loading, "specialise a function");
    status = rewrite(f, s, inputs);
    td_loading_end(&loading);
    if (status) {
        td_special_free(s);
        return status;
    }
    publish(f, s, narrower);
    *out = s;
    return TD_OK;
}

/* ---- making one on another thread ---- */

static td_scripted *of_job(td_later_job *job) {
    return (td_scripted *)(void *)((char *)job - offsetof(td_scripted, pending.job));
}

static void make_pending(td_later_job *job) {
    td_scripted *f = of_job(job);
    uint64_t began = td_compile_begin();
    td_script_release(f->pending.special->script); /* of an attempt before a fork */
    f->pending.special->script = NULL;
    f->pending.status = rewrite(f, f->pending.special, f->pending.inputs);
    td_compile_end(began, TD_COMPILER_GRAPHS, job->request, "specialise", f->name);
}

/* Under the lock, or as the last who has the function. */
static void clear_pending(td_scripted *f) {
    td_special_free(f->pending.special);
    td_kept_inputs_free(f->graph->block->ninputs, f->pending.inputs);
    f->pending.special = NULL;
    f->pending.inputs = NULL;
    atomic_store_explicit(&f->pending.there, false, memory_order_release);
}

/* Unless somebody who would not wait has made one meanwhile. */
static void give_pending(td_later_job *job) {
    td_scripted *f = of_job(job);
    pthread_mutex_lock(&f->making);
    bool wanted = find_alike(f, f->pending.special) == f->pending.narrower;
    if (f->pending.status == TD_OK && wanted) {
        publish(f, f->pending.special, f->pending.narrower);
        f->pending.special = NULL;
    }
    clear_pending(f);
    pthread_mutex_unlock(&f->making);
}

/* Have one made; until it is there the graph runs as it was written. One at a time. */
static td_status make_later(td_scripted *f, uint64_t modes, const td_value *inputs) {
    td_status status = TD_OK;
    bool mine = false;
    if (atomic_load_explicit(&f->pending.there, memory_order_acquire))
        return TD_OK;
    pthread_mutex_lock(&f->making);
    if (!find(f, modes, inputs) && !atomic_load(&f->pending.there)) {
        status = begin(f, modes, inputs, &f->pending.special, &f->pending.narrower);
        mine = status == TD_OK && f->pending.special;
        if (mine)
            status = td_kept_inputs_new(f->graph->block->ninputs, inputs, &f->pending.inputs);
        atomic_store(&f->pending.there, mine);
        if (status)
            clear_pending(f);
    }
    pthread_mutex_unlock(&f->making);
    mine &= status == TD_OK;
    if (mine && !td_later_begin(&f->pending.job)) {
        pthread_mutex_lock(&f->making);
        clear_pending(f);
        pthread_mutex_unlock(&f->making);
    }
    return status;
}

/* Are the inputs such as the graph takes? Only these are worth a specialisation. */
static td_status check_inputs(const td_scripted *f, const td_value *inputs) {
    const td_ir_block *block = f->graph->block;
    for (int k = 0; k < f->nlooks; k++) {
        const td_ir_value *input = block->inputs[f->looks[k]];
        if (input->type->kind == TD_IR_TENSOR && inputs[f->looks[k]].kind != TD_KIND_TENSOR)
            return td_fail(TD_ETYPE, "input %d (%s) is a tensor", f->looks[k] + 1, input->name);
    }
    return TD_OK;
}

static td_status make_locked(td_scripted *f, uint64_t modes, const td_value *inputs,
                             td_special **out) {
    *out = NULL;
    td_status status = check_inputs(f, inputs);
    if (status)
        return status;
    pthread_mutex_lock(&f->making);
    status = make(f, modes, inputs, out);
    pthread_mutex_unlock(&f->making);
    return status;
}

/* What the passes have to do: loops over the entries of lists may be written out. */
static int work_of(const td_scripted *f, const td_value *inputs) {
    int most = 1, n;
    for (int k = 0; k < f->nlooks; k++)
        if (td_special_entries(&inputs[f->looks[k]], &n) && n > most)
            most = n;
    return f->work > INT_MAX / most ? INT_MAX : f->work * most;
}

/* *out is NULL where it is made on another thread, or there are as many as there may be. */
static td_status make_or_ask(td_scripted *f, uint64_t modes, const td_value *inputs,
                             td_special **out) {
    if (!td_later_wanted(work_of(f, inputs)))
        return make_locked(f, modes, inputs, out);
    td_status status = check_inputs(f, inputs);
    return status ? status : make_later(f, modes, inputs);
}

/* ---- calls that are timed ---- */

enum {
    WRITTEN_FROM = 1, /* these calls of a specialisation run the graph as it was written, timed, */
    WRITTEN_TO = 3,
    TIMED_TO = 16, /* further ones up to here are timed, */
    OFTEN = 256    /* and later one of so many, when machine code may have come */
};

/* Where the time of a specialisation's n-th call goes, and what it runs. Nothing is timed where
 * everything is made at once (TIDE_SCRIPT=now), so that what runs is always the same. */
static __attribute__((cold, noinline)) atomic_llong *
pick_timed(const td_scripted *f, td_special *s, long long n, const td_script **out) {
    if (s->failed || f->untimed || n < WRITTEN_FROM || !td_later_wanted(INT_MAX) ||
        atomic_load_explicit(&f->fast, memory_order_relaxed)) /* which has other bits as written */
        return NULL;
    if (n > WRITTEN_TO)
        return &s->least_ns[1];
    *out = f->plain;
    return &s->least_ns[0];
}

static __attribute__((cold, noinline)) td_status run_timed(const td_script *script,
                                                           td_shared_host *host,
                                                           const td_value *inputs,
                                                           td_value *outputs, atomic_llong *least) {
    int64_t began = td_clock_ns();
    td_status status = td_script_run_with(script, host, inputs, outputs);
    long long took = td_clock_ns() - began, before = atomic_load(least);
    while (status == TD_OK && (!before || took < before) &&
           !atomic_compare_exchange_weak(least, &before, took)) {
    }
    return status;
}

/* The script that these inputs run: borrowed from the function. *least, which is NULL before, is
 * where its time is noted. */
static inline td_status choose(td_scripted *f, const td_value *inputs, const td_script **out,
                               atomic_llong **least) {
    td_special *s = NULL;
    *out = f->plain;
    if (TD_UNLIKELY(td_modes_current.dispatcher || td_modes_current.anomaly ||
                    atomic_load_explicit(&f->eager, memory_order_relaxed) ||
                    (td_gradients_are_made(f->gradients) && td_is_recording()))) {
        atomic_fetch_add_explicit(&f->plain_calls, 1, memory_order_relaxed);
        return TD_OK;
    }
    uint64_t modes = modes_now(f);
    s = find(f, modes, inputs);
    td_status status = TD_LIKELY(s) ? TD_OK : make_or_ask(f, modes, inputs, &s);
    if (TD_UNLIKELY(status))
        return status;
    long long n =
        atomic_fetch_add_explicit(s ? &s->calls : &f->plain_calls, 1, memory_order_relaxed);
    if (TD_UNLIKELY(!s))
        return TD_OK;
    *out = s->script;
    if (TD_UNLIKELY(n < TIMED_TO || n % OFTEN == 0))
        *least = pick_timed(f, s, n, out);
    return TD_OK;
}

/* ---- functions ---- */

static bool has_tensors(const td_ir_block *block) {
    for (const td_ir_node *node = block->first; node; node = node->next) {
        if (node->kind == TD_IR_CONSTANT && node->constant.kind == TD_KIND_TENSOR)
            return true;
        if (node->subgraph && node->subgraph != block->graph && has_tensors(node->subgraph->block))
            return true;
        for (int b = 0; b < node->nblocks; b++)
            if (has_tensors(node->blocks[b]))
                return true;
    }
    return false;
}

td_status td_scripted_new(td_ir_graph *g, const char *name, td_scripted **out) {
    td_scripted *f = td_calloc(1, sizeof *f);
    *out = NULL;
    if (!f)
        return td_fail(TD_ENOMEM, "out of memory for a function");
    atomic_init(&f->refs, 1);
    pthread_mutex_init(&f->making, NULL);
    f->graph = td_ir_graph_retain(g);
    f->name = td_strdup(name ? name : "function");
    f->looks = td_malloc(sizeof *f->looks * (size_t)(g->block->ninputs + 1));
    td_status status = f->name && f->looks ? td_script_new(g, &f->plain)
                                           : td_fail(TD_ENOMEM, "out of memory for a function");
    if (status) {
        td_scripted_release(f);
        return status;
    }
    for (int k = 0; k < g->block->ninputs; k++) {
        const td_ir_type *type = g->block->inputs[k]->type;
        bool list = type->kind == TD_IR_LIST && type->parts[0]->kind == TD_IR_TENSOR &&
                    td_list_is_only_read(g->block->inputs[k]);
        f->lists |= list || type->kind == TD_IR_OPTIONAL || type->kind == TD_IR_ANY;
        if (list || type->kind == TD_IR_TENSOR || type->kind == TD_IR_OPTIONAL ||
            type->kind == TD_IR_ANY)
            f->looks[f->nlooks++] = k;
    }
    f->has_tensors = has_tensors(g->block);
    f->work = td_later_work(g->block);
    f->pending.job.make = make_pending;
    f->pending.job.give = give_pending;
    status = td_gradients_new(f->plain, f->name, &f->gradients);
    if (status) {
        td_scripted_release(f);
        return status;
    }
    *out = f;
    return TD_OK;
}

td_scripted *td_scripted_retain(td_scripted *f) {
    if (f)
        atomic_fetch_add_explicit(&f->refs, 1, memory_order_relaxed);
    return f;
}

void td_scripted_release(td_scripted *f) {
    if (!f || !td_was_last(&f->refs))
        return;
    td_later_cancel(&f->pending.job);
    if (f->graph)
        clear_pending(f);
    for (td_special *s = f->made, *before; s; s = before) {
        before = s->made;
        td_special_free(s);
    }
    td_gradients_free(f->gradients);
    td_script_release(f->plain);
    td_shared_host_release(f->host);
    td_ir_graph_release(f->graph);
    pthread_mutex_destroy(&f->making);
    td_free(f->looks);
    td_free(f->name);
    td_free(f);
}

const td_ir_graph *td_scripted_graph(const td_scripted *f) {
    return f->graph;
}

const char *td_scripted_name(const td_scripted *f) {
    return f->name;
}

int td_scripted_ninputs(const td_scripted *f) {
    return f->graph->block->ninputs;
}

int td_scripted_noutputs(const td_scripted *f) {
    return f->graph->block->noutputs;
}

td_status td_scripted_set_host(td_scripted *f, const td_script_host *host) {
    td_shared_host_release(f->host);
    f->host = host ? td_shared_host_new(host) : NULL;
    return host && !f->host ? td_fail(TD_ENOMEM, "out of memory for a host") : TD_OK;
}

static td_status gather_written(const td_alias_info *a, const td_ir_block *block,
                                td_list *tensors) {
    td_status status = TD_OK;
    for (const td_ir_node *node = block->first; node && status == TD_OK; node = node->next) {
        td_tensor *x = node->kind == TD_IR_CONSTANT ? td_arg_tensor(node->constant) : NULL;
        if (x && td_alias_is_written(a, node->outputs[0])) {
            td_tensor **place = td_list_add(tensors, sizeof *place);
            if (!place)
                return td_fail(TD_ENOMEM, "out of memory for a list");
            *place = x;
        }
        for (int b = 0; b < node->nblocks && status == TD_OK; b++)
            status = gather_written(a, node->blocks[b], tensors);
    }
    return status;
}

td_status td_scripted_written(const td_scripted *f, td_list *tensors) {
    td_alias_info *a;
    td_status status = td_alias_new(f->graph, &a);
    if (status == TD_OK)
        status = gather_written(a, f->graph->block, tensors);
    td_alias_free(a);
    return status;
}

void td_scripted_set_eager(td_scripted *f, bool eager) {
    atomic_store_explicit(&f->eager, eager, memory_order_relaxed);
}

void td_scripted_set_untimed(td_scripted *f) {
    f->untimed = true;
}

void td_scripted_set_fast(td_scripted *f, bool fast) {
    atomic_store(&f->fast, fast);
}

/* ---- calls ---- */

/* Could the call be recorded for backward? Quick to say of one that could not. */
static inline bool may_be_recorded(const td_scripted *f, const td_value *inputs) {
    if (!td_is_recording() || td_modes_current.anomaly)
        return false;
    bool may = f->has_tensors;
    for (int k = 0; k < f->graph->block->ninputs && !may; k++)
        may = inputs[k].kind == TD_KIND_TENSOR
                  ? td_is_followed(inputs[k].tensor)
                  : inputs[k].kind >= TD_KIND_BOX || inputs[k].kind == TD_KIND_TENSORS;
    return may;
}

/* A call that is recorded for backward, as one node; *taken is false where it is none, or none that
 * has a gradient as a graph. */
static td_status call_recorded(td_scripted *f, const td_value *inputs, td_value *outputs,
                               bool *taken) {
    *taken = false;
    if (!may_be_recorded(f, inputs) || atomic_load_explicit(&f->eager, memory_order_relaxed))
        return TD_OK;
    return td_gradients_call(f->gradients, inputs, outputs, taken);
}

td_status td_scripted_call(td_scripted *f, const td_value *inputs, td_value *outputs) {
    const td_script *script;
    atomic_llong *least = NULL;
    bool taken;
    td_status status = call_recorded(f, inputs, outputs, &taken);
    if (status == TD_OK && taken)
        return TD_OK;
    if (status == TD_OK)
        status = choose(f, inputs, &script, &least);
    if (TD_UNLIKELY(status == TD_OK && least))
        return run_timed(script, f->host, inputs, outputs, least);
    if (TD_LIKELY(status == TD_OK))
        return td_script_run_with(script, f->host, inputs, outputs);
    for (int k = 0; k < f->graph->block->noutputs; k++)
        outputs[k] = TD_NIL;
    return status;
}

td_status td_scripted_fork(td_scripted *f, const td_value *inputs, td_value *future) {
    const td_script *script;
    atomic_llong *least = NULL;
    td_status status = choose(f, inputs, &script, &least);
    return status ? status : td_script_fork(script, f->host, inputs, future);
}

td_status td_scripted_graph_for(td_scripted *f, const td_value *inputs, td_ir_graph **out) {
    td_special *s = NULL;
    *out = NULL;
    uint64_t modes = modes_now(f);
    td_status status = make_locked(f, modes, inputs, &s);
    if (status == TD_OK)
        *out = td_ir_graph_retain((td_ir_graph *)td_script_graph(s ? s->script : f->plain));
    return status;
}
