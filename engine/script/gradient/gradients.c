/* gradients.c: finds the gradient that fits a call, and derives one where it is worth it. Entries
 * are only added, so what is found is found without a lock. */
#include "engine/script/gradient/gradients.h"

#include "engine/autograd/autograd.h"
#include "engine/core/memory.h"
#include "engine/core/observer.h"
#include "engine/script/gradient/gradient_flat.h"
#include "engine/script/kept_inputs.h"
#include "engine/script/later.h"

#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum {
    MOST_SEEN = 16, /* kinds of inputs that are remembered without a gradient */
    MOST_TRIES = 8, /* to make one for all sizes */
    JOINT = 4       /* nodes that the passes see for each of the graph's: forward and backward */
};

struct td_gradients {
    td_script *script;
    const char *name; /* of the function, for people; borrowed */
    td_tensor **held; /* constants of the graph that may require grad; borrowed from it */
    int nheld;
    _Atomic(td_gradient *) entries[TD_GRADIENTS_MOST];
    atomic_int n;
    pthread_mutex_t lock; /* of all below, and of adding entries */
    uint64_t seen[MOST_SEEN], refused[MOST_SEEN];
    int ntried;          /* times that one for all sizes could not be made */
    int nseen, nrefused; /* ever; the last MOST_SEEN are there */
    char why[200];
    int work; /* that deriving one is (later.h) */
    struct {  /* the one that is being derived on another thread */
        td_later_job job;
        atomic_bool there; /* set under the lock */
        uint64_t digest;
        td_value *inputs; /* like those that it is for */
        td_gradient *made;
        td_status status;
        char why[200];
    } pending;
};

/* ---- tensors that a graph holds ---- */

static bool is_held(const td_ir_node *node) {
    const td_tensor *x = node->kind == TD_IR_CONSTANT ? td_arg_tensor(node->constant) : NULL;
    return x && td_dtype_is_float((td_dtype)x->dtype);
}

/* Those in a block; counted, or put into a list. */
static int find_held(const td_ir_block *block, td_tensor **list) {
    int n = 0;
    for (const td_ir_node *node = block->first; node; node = node->next) {
        if (is_held(node)) {
            if (list)
                list[n] = node->constant.tensor;
            n++;
        }
        for (int b = 0; b < node->nblocks; b++)
            n += find_held(node->blocks[b], list ? list + n : NULL);
        if (node->subgraph && node->subgraph != block->graph)
            n += find_held(node->subgraph->block, list ? list + n : NULL);
    }
    return n;
}

/* ---- what is derived ---- */

/* Under the lock: an entry, or that there is none for inputs of this digest, and why. */
static void add_entry(td_gradients *all, td_gradient *d) {
    atomic_store_explicit(&all->entries[td_gradients_count(all)], d, memory_order_release);
    atomic_fetch_add_explicit(&all->n, 1, memory_order_release);
}

static void refuse(td_gradients *all, uint64_t h, const char *why) {
    all->refused[all->nrefused++ % MOST_SEEN] = h;
    snprintf(all->why, sizeof all->why, "%s", why);
}

static td_gradients *of_job(td_later_job *job) {
    return (td_gradients *)(void *)((char *)job - offsetof(td_gradients, pending.job));
}

/* One for all sizes that fits now that it has looked, or a new one, which is *made; *out NULL:
 * none. One thread at a time: under the lock, or as the pending one. */
static td_status derive_sized(td_gradients *all, const td_value *inputs, td_gradient **out,
                              bool *made) {
    bool learned = false;
    int n = td_gradients_count(all);
    *out = NULL;
    *made = false;
    for (int k = 0; k < n && !learned; k++) {
        td_status status = td_gradient_learn(td_gradients_get(all, k), inputs, &learned);
        if (status)
            return status;
        *out = learned ? td_gradients_get(all, k) : NULL;
    }
    for (int k = 0; k < n && !*out && n < TD_GRADIENTS_MOST && all->ntried < MOST_TRIES; k++) {
        td_status status = td_gradient_for_sizes(td_gradients_get(all, k), inputs, out);
        if (status == TD_ENOMEM || status == TD_EINTR)
            return status;
        *made = status == TD_OK;
        all->ntried += status != TD_OK && status != TD_ETYPE;
    }
    return TD_OK;
}

static void derive_pending(td_later_job *job) {
    td_gradients *all = of_job(job);
    uint64_t began = td_compile_begin();
    td_gradient *d;
    bool made;
    td_status status = derive_sized(all, all->pending.inputs, &d, &made);
    if (status == TD_OK && !d && td_gradients_count(all) < TD_GRADIENTS_MOST) {
        status = td_gradient_new(all->script, all->pending.inputs, &d);
        made = status == TD_OK;
    }
    all->pending.made = made ? d : NULL;
    all->pending.status = status;
    snprintf(all->pending.why, sizeof all->pending.why, "%s",
             all->pending.status ? td_error_message() : "");
    td_compile_end(began, TD_COMPILER_GRAPHS, job->request, "derive the gradient of", all->name);
}

/* Under the lock, or as the last who has them. */
static void clear_pending(td_gradients *all) {
    td_kept_inputs_free(td_script_graph(all->script)->block->ninputs, all->pending.inputs);
    all->pending.inputs = NULL;
    all->pending.made = NULL;
    atomic_store_explicit(&all->pending.there, false, memory_order_release);
}

static void give_pending(td_later_job *job) {
    td_gradients *all = of_job(job);
    pthread_mutex_lock(&all->lock);
    td_status status = all->pending.status;
    if (all->pending.made)
        add_entry(all, all->pending.made);
    else if (status && status != TD_ENOMEM && status != TD_EINTR)
        refuse(all, all->pending.digest, all->pending.why);
    clear_pending(all);
    pthread_mutex_unlock(&all->lock);
}

/* ---- making and freeing them ---- */

td_status td_gradients_new(td_script *s, const char *name, td_gradients **out) {
    const td_ir_block *block = td_script_graph(s)->block;
    int n = find_held(block, NULL);
    *out = NULL;
    td_gradients *all = td_calloc(1, sizeof *all);
    td_tensor **held = td_calloc((size_t)n + 1, sizeof *held);
    if (!all || !held) {
        td_free(all);
        td_free(held);
        return td_fail(TD_ENOMEM, "out of memory for gradients");
    }
    all->script = td_script_retain(s);
    all->name = name;
    all->held = held;
    all->nheld = find_held(block, held);
    all->work = td_later_work(block);
    all->pending.job.make = derive_pending;
    all->pending.job.give = give_pending;
    pthread_mutex_init(&all->lock, NULL);
    *out = all;
    return TD_OK;
}

void td_gradients_free(td_gradients *all) {
    if (!all)
        return;
    td_later_cancel(&all->pending.job);
    clear_pending(all);
    for (int k = 0; k < td_gradients_count(all); k++)
        td_gradient_release(atomic_load(&all->entries[k]));
    pthread_mutex_destroy(&all->lock);
    td_script_release(all->script);
    td_free(all->held);
    td_free(all);
}

/* ---- kinds of inputs ---- */

static uint64_t mix(uint64_t h, uint64_t word) {
    return (h ^ word) * 0x9E3779B97F4A7C15u + (h >> 29);
}

static uint64_t digest_tensor(uint64_t h, const td_tensor *x, bool sizes) {
    h = mix(h, x->dtype | (uint64_t)x->ndim << 8 | (uint64_t)td_is_followed(x) << 16 |
                   (uint64_t)x->layout << 24 | (uint64_t)td_tensor_device(x).type << 32);
    for (int d = 0; d < x->ndim && sizes; d++)
        h = mix(mix(h, (uint64_t)x->sizes[d]), (uint64_t)x->strides[d]);
    return h;
}

static uint64_t digest_value(uint64_t h, const td_value *v, bool sizes) {
    h = mix(h, v->kind | (uint64_t)v->from_one << 8);
    if (v->kind == TD_KIND_TENSOR)
        return digest_tensor(h, v->tensor, sizes);
    if (v->kind == TD_KIND_BOOL)
        return mix(h, v->b);
    return v->kind == TD_KIND_INT || v->kind == TD_KIND_FLOAT ? mix(h, (uint64_t)v->i) : h;
}

/* Inputs of one kind have one digest; two kinds that have the same cost a derivation too early. */
static uint64_t digest(const td_gradients *all, const td_value *inputs, bool sizes) {
    td_flat flat;
    uint64_t h = 1;
    bool read = td_flat_begin(td_script_graph(all->script)->block->ninputs, inputs, &flat) == TD_OK;
    for (int k = 0; read && flat.layout && k < flat.nlayout; k++)
        h = mix(h, (uint64_t)flat.layout[k]);
    for (int k = 0; read && k < flat.n; k++)
        h = digest_value(h, &flat.values[k], sizes);
    td_flat_end(&flat);
    for (int k = 0; k < all->nheld; k++)
        h = mix(h, td_is_followed(all->held[k]));
    const td_modes *m = &td_modes_current;
    for (int k = 0; m->casting && k < TD_DEVICE_TYPES; k++)
        h = mix(h, (uint64_t)m->cast[k] << 1 | m->uncached);
    return h;
}

static bool holds(const uint64_t *list, int n, uint64_t h) {
    for (int k = 0; k < n && k < MOST_SEEN; k++)
        if (list[k] == h)
            return true;
    return false;
}

/* ---- calls ---- */

static bool is_recorded(const td_gradients *all, const td_value *inputs) {
    td_flat flat;
    bool followed = false;
    if (!td_is_recording() || td_modes_current.dispatcher)
        return false;
    for (int k = 0; k < all->nheld && !followed; k++)
        followed = td_is_followed(all->held[k]);
    if (followed)
        return true;
    int n = td_script_graph(all->script)->block->ninputs;
    bool read = td_flat_begin(n, inputs, &flat) == TD_OK;
    for (int k = 0; read && k < flat.n && !followed; k++)
        followed = flat.values[k].kind == TD_KIND_TENSOR && td_is_followed(flat.values[k].tensor);
    td_flat_end(&flat);
    return followed;
}

static td_gradient *find(const td_gradients *all, const td_value *inputs) {
    for (int k = 0; k < td_gradients_count(all); k++) {
        td_gradient *d = atomic_load_explicit(&all->entries[k], memory_order_acquire);
        if (td_gradient_fits(d, inputs))
            return d;
    }
    return NULL;
}

/* The first kind of inputs at once, others when they come again: of any sizes, unless a graph was
 * found to be another for each, or deriving is much work; so sizes that change with every call cost
 * nothing where the first kind was refused either. What was refused is not tried again. */
static bool is_worth_it(td_gradients *all, const td_value *inputs, bool each_size) {
    uint64_t whole = digest(all, inputs, true);
    uint64_t h = each_size ? whole : digest(all, inputs, false);
    if (holds(all->refused, all->nrefused, whole))
        return false;
    if ((!td_gradients_count(all) && !all->nrefused) || holds(all->seen, all->nseen, h))
        return true;
    all->seen[all->nseen++ % MOST_SEEN] = h;
    return false;
}

/* Under the lock: have one derived. While it is there no other is. */
static td_status prepare_pending(td_gradients *all, const td_value *inputs) {
    int n = td_script_graph(all->script)->block->ninputs;
    td_status status = td_kept_inputs_new(n, inputs, &all->pending.inputs);
    all->pending.digest = digest(all, inputs, true);
    atomic_store(&all->pending.there, status == TD_OK);
    return status;
}

static td_status add_now(td_gradients *all, const td_value *inputs, td_gradient **out) {
    bool made = false;
    td_status status = derive_sized(all, inputs, out, &made);
    if (made)
        add_entry(all, *out);
    if (status || *out || td_gradients_count(all) == TD_GRADIENTS_MOST ||
        !is_worth_it(all, inputs, all->ntried > 0))
        return status;
    status = td_gradient_new(all->script, inputs, out);
    if (status == TD_ENOMEM || status == TD_EINTR)
        return status;
    if (status == TD_OK)
        add_entry(all, *out);
    else
        refuse(all, digest(all, inputs, true), td_error_message());
    return TD_OK;
}

/* An entry that fits, or NULL: *ask then says whether one is to be derived on another thread. Only
 * want of memory is an error. */
static td_status add(td_gradients *all, const td_value *inputs, td_gradient **out, bool *ask) {
    *out = find(all, inputs); /* another thread's by now? */
    *ask = false;
    if (*out || atomic_load(&all->pending.there))
        return TD_OK;
    if (td_later_wanted(JOINT * all->work)) {
        *ask = is_worth_it(all, inputs, true);
        return *ask ? prepare_pending(all, inputs) : TD_OK;
    }
    td_loading loading;
    td_loading_begin(&loading, "derive a gradient");
    td_status status = add_now(all, inputs, out);
    td_loading_end(&loading);
    return status;
}

static td_status add_locked(td_gradients *all, const td_value *inputs, td_gradient **out) {
    bool ask;
    pthread_mutex_lock(&all->lock);
    td_status status = add(all, inputs, out, &ask);
    pthread_mutex_unlock(&all->lock);
    if (status || !ask || td_later_begin(&all->pending.job))
        return status;
    pthread_mutex_lock(&all->lock);
    clear_pending(all);
    pthread_mutex_unlock(&all->lock);
    return TD_OK;
}

bool td_gradients_are_made(const td_gradients *all) {
    return atomic_load_explicit(&all->pending.there, memory_order_acquire);
}

td_status td_gradients_call(td_gradients *all, const td_value *inputs, td_value *outputs,
                            bool *taken) {
    *taken = false;
    if (!is_recorded(all, inputs))
        return TD_OK;
    td_gradient *d = find(all, inputs);
    td_status status = d || td_gradients_are_made(all) ? TD_OK : add_locked(all, inputs, &d);
    if (status)
        return status;
    *taken = d != NULL;
    return d ? td_gradient_call(d, inputs, outputs) : TD_OK;
}

/* ---- what there is ---- */

const char *td_gradients_why(td_gradients *all, char *buffer, size_t size) {
    pthread_mutex_lock(&all->lock);
    snprintf(buffer, size, "%s", all->why);
    pthread_mutex_unlock(&all->lock);
    return buffer;
}

int td_gradients_count(const td_gradients *all) {
    return atomic_load_explicit(&all->n, memory_order_acquire);
}

td_gradient *td_gradients_get(const td_gradients *all, int k) {
    return atomic_load_explicit(&all->entries[k], memory_order_acquire);
}
