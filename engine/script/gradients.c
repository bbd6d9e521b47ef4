/* gradients.c: finds the gradient that fits a call, and derives one where it is worth it. Entries
 * are only added, so what is found is found without a lock. */
#include "engine/script/gradients.h"

#include "engine/autograd/autograd.h"
#include "engine/core/memory.h"
#include "engine/script/gradient_flat.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum {
    MOST_SEEN = 16, /* kinds of inputs that are remembered without a gradient */
    MOST_TRIES = 8  /* to make one for all sizes */
};

struct td_gradients {
    td_script *script;
    td_tensor **held; /* constants of the graph that may require grad; borrowed from it */
    int nheld;
    _Atomic(td_gradient *) entries[TD_GRADIENTS_MOST];
    atomic_int n;
    pthread_mutex_t lock; /* of all below, and of adding entries */
    uint64_t seen[MOST_SEEN], refused[MOST_SEEN];
    int ntried;          /* times that one for all sizes could not be made */
    int nseen, nrefused; /* ever; the last MOST_SEEN are there */
    char why[200];
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

td_status td_gradients_new(td_script *s, td_gradients **out) {
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
    all->held = held;
    all->nheld = find_held(block, held);
    pthread_mutex_init(&all->lock, NULL);
    *out = all;
    return TD_OK;
}

void td_gradients_free(td_gradients *all) {
    if (!all)
        return;
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
 * found to be another for each; what was refused is not tried again. */
static bool is_worth_it(td_gradients *all, const td_value *inputs) {
    uint64_t h = digest(all, inputs, all->ntried > 0);
    if (holds(all->refused, all->nrefused, digest(all, inputs, true)) ||
        td_gradients_count(all) == TD_GRADIENTS_MOST)
        return false;
    if (!td_gradients_count(all) || holds(all->seen, all->nseen, h))
        return true;
    all->seen[all->nseen++ % MOST_SEEN] = h;
    return false;
}

static void add_entry(td_gradients *all, td_gradient *d) {
    atomic_store_explicit(&all->entries[td_gradients_count(all)], d, memory_order_release);
    atomic_fetch_add_explicit(&all->n, 1, memory_order_release);
}

/* An entry for all sizes that fits now that it has looked, or a new one; *out NULL: none. */
static td_status add_sized(td_gradients *all, const td_value *inputs, td_gradient **out) {
    bool learned = false;
    *out = NULL;
    for (int k = 0; k < td_gradients_count(all); k++) {
        td_gradient *d = td_gradients_get(all, k);
        td_status status = td_gradient_learn(d, inputs, &learned);
        if (status)
            return status;
        if (learned) {
            *out = d;
            return TD_OK;
        }
    }
    int n = td_gradients_count(all);
    for (int k = 0; k < n && n < TD_GRADIENTS_MOST && all->ntried < MOST_TRIES; k++) {
        td_status status = td_gradient_for_sizes(td_gradients_get(all, k), inputs, out);
        if (status == TD_ENOMEM || status == TD_EINTR)
            return status;
        if (status == TD_OK) {
            add_entry(all, *out);
            return TD_OK;
        }
        all->ntried += status != TD_ETYPE;
    }
    return TD_OK;
}

/* A new entry, or NULL. Only want of memory is an error. */
static td_status add(td_gradients *all, const td_value *inputs, td_gradient **out) {
    td_status status = TD_OK;
    *out = find(all, inputs); /* another thread's by now? */
    if (*out)
        return TD_OK;
    status = add_sized(all, inputs, out);
    if (status || *out || !is_worth_it(all, inputs))
        return status;
    status = td_gradient_new(all->script, inputs, out);
    if (status == TD_OK) {
        add_entry(all, *out);
        return TD_OK;
    }
    if (status == TD_ENOMEM || status == TD_EINTR)
        return status;
    all->refused[all->nrefused++ % MOST_SEEN] = digest(all, inputs, true);
    snprintf(all->why, sizeof all->why, "%s", td_error_message());
    return TD_OK;
}

td_status td_gradients_call(td_gradients *all, const td_value *inputs, td_value *outputs,
                            bool *taken) {
    *taken = false;
    if (!is_recorded(all, inputs))
        return TD_OK;
    td_gradient *d = find(all, inputs);
    if (!d) {
        pthread_mutex_lock(&all->lock);
        td_status status = add(all, inputs, &d);
        pthread_mutex_unlock(&all->lock);
        if (status)
            return status;
    }
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
