/* scripted.c: functions made of graphs: a graph as it was written, and what it became for each kind
 * of inputs.
 *
 * Specialisations form a list that only grows at its head, or has one replaced by a more general
 * one; either is one atomic store. What was replaced is kept until the function dies, for a thread
 * may run it, so readers take no lock. Makers take one.
 */
#include "engine/script/scripted.h"

#include "engine/autograd/autograd.h"
#include "engine/core/default_dtype.h"
#include "engine/core/memory.h"
#include "engine/core/modes.h"
#include "engine/script/gradients.h"
#include "engine/script/passes/copy.h"
#include "engine/script/passes/passes.h"
#include "engine/script/run.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

typedef struct special special;
struct special {
    _Atomic(special *) next; /* older */
    special *made;           /* the one made before it, replaced or not */
    td_script *script;
    uint64_t modes;
    uint64_t *keys; /* of the inputs that are looked at */
    int64_t *sizes; /* of all tensors among them, one after the other; or TD_IR_UNKNOWN */
    int nsizes;
    int64_t ns;
    atomic_llong calls;
    bool replaced, failed; /* failed: the graph could not be rewritten, and runs as written */
};

struct td_scripted {
    atomic_int refs;
    atomic_bool eager;
    td_ir_graph *graph;
    char *name;
    td_script *plain;        /* the graph as it was written */
    td_gradients *gradients; /* of that */
    td_shared_host *host;
    int nlooks, *looks; /* inputs on whose kind a specialisation depends */
    bool has_tensors;   /* constants among the graph's, which may require grad */
    _Atomic(special *) first;
    pthread_mutex_t making; /* guards what follows */
    special *made;
    int nspecials; /* that are not replaced */
    bool full;     /* more were wanted than there may be */
    atomic_llong plain_calls;
};

/* ---- what inputs are ---- */

/* Strides as they follow from the sizes, dims of one element included. */
static bool is_row_major(const td_tensor *x) {
    int64_t step = 1;
    for (int d = x->ndim - 1; d >= 0; d--) {
        if (x->strides[d] != step)
            return false;
        step *= x->sizes[d] ? x->sizes[d] : 1; /* as td_contiguous_strides has them */
    }
    return true;
}

/* All that a specialisation may rely on but sizes. */
static inline uint64_t key_of(const td_value *v) {
    if (TD_UNLIKELY(v->kind != TD_KIND_TENSOR))
        return v->kind;
    const td_tensor *x = v->tensor;
    td_device device = td_tensor_device(x);
    return v->kind | (uint64_t)x->dtype << 8 | (uint64_t)x->ndim << 16 | (uint64_t)x->layout << 24 |
           (uint64_t)td_is_followed(x) << 32 | (uint64_t)(x->contiguous && is_row_major(x)) << 33 |
           (uint64_t)(v->from_one & 1) << 34 | (uint64_t)device.type << 40 |
           (uint64_t)(uint8_t)device.index << 48;
}

static uint64_t modes_now(void) {
    const td_modes *m = &td_modes_current;
    uint64_t key = (uint64_t)m->grad_disabled | (uint64_t)m->inference << 1 |
                   (uint64_t)m->casting << 2 | (uint64_t)td_default_dtype() << 8 |
                   (uint64_t)m->device.type << 16 | (uint64_t)(uint8_t)m->device.index << 24;
    for (int k = 0; m->casting && k < TD_DEVICE_TYPES; k++)
        key |= (uint64_t)(m->cast[k] & 31) << (32 + 5 * k);
    return key;
}

static inline bool matches(const td_scripted *f, const special *s, const td_value *inputs) {
    const int64_t *sizes = s->sizes;
    for (int k = 0; k < f->nlooks; k++) {
        const td_value *v = &inputs[f->looks[k]];
        if (key_of(v) != s->keys[k])
            return false;
        if (v->kind != TD_KIND_TENSOR)
            continue;
        for (int d = 0; d < v->tensor->ndim; d++)
            if (sizes[d] != v->tensor->sizes[d] && sizes[d] != TD_IR_UNKNOWN)
                return false;
        sizes += v->tensor->ndim;
    }
    return true;
}

static special *find(const td_scripted *f, uint64_t modes, const td_value *inputs) {
    special *s = atomic_load_explicit(&f->first, memory_order_acquire);
    for (; s; s = atomic_load_explicit(&s->next, memory_order_acquire))
        if (s->modes == modes && matches(f, s, inputs))
            return s;
    return NULL;
}

/* ---- making one ---- */

static void free_special(special *s) {
    if (!s)
        return;
    td_script_release(s->script);
    td_free(s->keys);
    td_free(s->sizes);
    td_free(s);
}

/* Of these inputs, without a script. */
static special *new_special(const td_scripted *f, uint64_t modes, const td_value *inputs) {
    special *s = td_calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->modes = modes;
    for (int k = 0; k < f->nlooks; k++)
        if (inputs[f->looks[k]].kind == TD_KIND_TENSOR)
            s->nsizes += inputs[f->looks[k]].tensor->ndim;
    s->keys = td_malloc(sizeof *s->keys * (size_t)(f->nlooks + 1));
    s->sizes = td_malloc(sizeof *s->sizes * (size_t)(s->nsizes + 1));
    if (!s->keys || !s->sizes) {
        free_special(s);
        return NULL;
    }
    int64_t *sizes = s->sizes;
    for (int k = 0; k < f->nlooks; k++) {
        const td_value *v = &inputs[f->looks[k]];
        s->keys[k] = key_of(v);
        for (int d = 0; v->kind == TD_KIND_TENSOR && d < v->tensor->ndim; d++)
            *sizes++ = v->tensor->sizes[d];
    }
    return s;
}

/* Of inputs of the same kinds and other sizes: what differs is not known any more. */
static special *find_narrower(const td_scripted *f, special *wanted) {
    special *s = atomic_load_explicit(&f->first, memory_order_relaxed);
    for (; s; s = atomic_load_explicit(&s->next, memory_order_relaxed)) {
        if (s->modes != wanted->modes ||
            memcmp(s->keys, wanted->keys, sizeof *s->keys * (size_t)f->nlooks) != 0)
            continue;
        for (int k = 0; k < s->nsizes; k++)
            if (s->sizes[k] != wanted->sizes[k])
                wanted->sizes[k] = TD_IR_UNKNOWN;
        return s;
    }
    return NULL;
}

/* The type of an input tensor as far as the specialisation has it. */
static const td_ir_type *type_of(td_ir_graph *g, const td_tensor *x, const int64_t *sizes,
                                 bool recorded) {
    int64_t strides[TD_MAX_DIMS];
    bool whole = x->layout == TD_STRIDED && is_row_major(x);
    for (int d = 0; d < x->ndim; d++)
        whole &= sizes[d] != TD_IR_UNKNOWN;
    if (whole)
        td_contiguous_strides(x->ndim, sizes, strides);
    td_ir_type type = {.kind = TD_IR_TENSOR,
                       .dtype = x->dtype,
                       .requires_grad = recorded && td_is_followed(x),
                       .placed = true,
                       .device = td_device_real(td_tensor_device(x)),
                       .n = x->layout == TD_STRIDED ? x->ndim : TD_IR_UNKNOWN,
                       .sizes = sizes,
                       .strides = whole ? strides : NULL};
    return td_ir_type_copy(g, &type);
}

static bool takes_type(const td_ir_type *declared, td_ir_type_kind kind) {
    return declared->kind == kind ||
           (declared->kind == TD_IR_OPTIONAL && declared->parts[0]->kind == kind);
}

static void set_types(const td_scripted *f, const special *s, const td_value *inputs,
                      td_ir_graph *g) {
    const int64_t *sizes = s->sizes;
    for (int k = 0; k < f->nlooks; k++) {
        const td_value *v = &inputs[f->looks[k]];
        td_ir_value *input = g->block->inputs[f->looks[k]];
        const td_ir_type *type = input->type;
        if (v->kind == TD_KIND_TENSOR && takes_type(type, TD_IR_TENSOR))
            type = type_of(g, v->tensor, sizes, td_is_recording());
        else if (v->kind == TD_KIND_NIL && type->kind == TD_IR_OPTIONAL)
            type = td_ir_simple_type(TD_IR_NONE);
        input->type = type ? type : input->type;
        sizes += v->kind == TD_KIND_TENSOR ? v->tensor->ndim : 0;
    }
}

/* May calls of it be recorded for backward? */
static bool is_recorded(const td_scripted *f, const td_value *inputs) {
    bool followed = f->has_tensors;
    for (int k = 0; k < f->nlooks; k++) {
        const td_tensor *x = td_arg_tensor(inputs[f->looks[k]]);
        followed |= x && td_is_followed(x);
    }
    return followed && td_is_recording();
}

static td_status rewrite(const td_scripted *f, special *s, const td_value *inputs) {
    td_passes_options options = {.recorded = is_recorded(f, inputs)};
    td_ir_graph *g = td_ir_graph_copy(f->graph);
    if (!g)
        return td_fail(TD_ENOMEM, "out of memory for a graph");
    set_types(f, s, inputs, g);
    td_status status = td_ir_status(g);
    if (status == TD_OK)
        status = td_passes_run(g, &options, NULL);
    if (status == TD_OK)
        status = td_script_new(g, &s->script);
    td_ir_graph_release(g);
    if (status == TD_OK || status == TD_ENOMEM)
        return status;
    s->failed = true;
    s->script = td_script_retain(f->plain);
    return TD_OK;
}

static int64_t clock_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* In place of `narrower`, or as the newest. */
static void publish(td_scripted *f, special *s, special *narrower) {
    s->made = f->made;
    f->made = s;
    if (!narrower) {
        atomic_store_explicit(&s->next, atomic_load_explicit(&f->first, memory_order_relaxed),
                              memory_order_relaxed);
        atomic_store_explicit(&f->first, s, memory_order_release);
        f->nspecials++;
        return;
    }
    _Atomic(special *) *place = &f->first;
    for (special *p; (p = atomic_load_explicit(place, memory_order_relaxed)) != narrower;)
        place = &p->next;
    atomic_store_explicit(&s->next, atomic_load_explicit(&narrower->next, memory_order_relaxed),
                          memory_order_relaxed);
    atomic_store_explicit(place, s, memory_order_release);
    narrower->replaced = true;
}

/* Under the lock. *out stays NULL where there are as many as there may be. */
static td_status make(td_scripted *f, uint64_t modes, const td_value *inputs, special **out) {
    *out = find(f, modes, inputs);
    if (*out)
        return TD_OK;
    int64_t began = clock_ns();
    special *s = new_special(f, modes, inputs);
    if (!s)
        return td_fail(TD_ENOMEM, "out of memory for a function");
    special *narrower = find_narrower(f, s);
    if (!narrower && f->nspecials == TD_SCRIPTED_MOST) {
        f->full = true;
        free_special(s);
        return TD_OK;
    }
    td_status status = rewrite(f, s, inputs);
    if (status) {
        free_special(s);
        return status;
    }
    s->ns = clock_ns() - began;
    publish(f, s, narrower);
    *out = s;
    return TD_OK;
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
                             special **out) {
    *out = NULL;
    td_status status = check_inputs(f, inputs);
    if (status)
        return status;
    pthread_mutex_lock(&f->making);
    status = make(f, modes, inputs, out);
    pthread_mutex_unlock(&f->making);
    return status;
}

/* The script that these inputs run: borrowed from the function. */
static inline td_status choose(td_scripted *f, const td_value *inputs, const td_script **out) {
    special *s = NULL;
    *out = f->plain;
    if (TD_UNLIKELY(td_modes_current.dispatcher ||
                    atomic_load_explicit(&f->eager, memory_order_relaxed))) {
        atomic_fetch_add_explicit(&f->plain_calls, 1, memory_order_relaxed);
        return TD_OK;
    }
    uint64_t modes = modes_now();
    s = find(f, modes, inputs);
    td_status status = TD_LIKELY(s) ? TD_OK : make_locked(f, modes, inputs, &s);
    if (TD_UNLIKELY(status))
        return status;
    atomic_fetch_add_explicit(s ? &s->calls : &f->plain_calls, 1, memory_order_relaxed);
    *out = s ? s->script : f->plain;
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
        td_ir_type_kind kind = (td_ir_type_kind)g->block->inputs[k]->type->kind;
        if (kind == TD_IR_TENSOR || kind == TD_IR_OPTIONAL || kind == TD_IR_ANY)
            f->looks[f->nlooks++] = k;
    }
    f->has_tensors = has_tensors(g->block);
    status = td_gradients_new(f->plain, &f->gradients);
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
    for (special *s = f->made, *before; s; s = before) {
        before = s->made;
        free_special(s);
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

void td_scripted_set_eager(td_scripted *f, bool eager) {
    atomic_store_explicit(&f->eager, eager, memory_order_relaxed);
}

/* ---- calls ---- */

/* A call that is recorded for backward, as one node; *taken is false where it is none, or none that
 * has a gradient as a graph. */
static td_status call_recorded(td_scripted *f, const td_value *inputs, td_value *outputs,
                               bool *taken) {
    *taken = false;
    if (TD_LIKELY(!is_recorded(f, inputs)) || atomic_load_explicit(&f->eager, memory_order_relaxed))
        return TD_OK;
    return td_gradients_call(f->gradients, inputs, outputs, taken);
}

td_status td_scripted_call(td_scripted *f, const td_value *inputs, td_value *outputs) {
    const td_script *script;
    bool taken;
    td_status status = call_recorded(f, inputs, outputs, &taken);
    if (status == TD_OK && taken)
        return TD_OK;
    if (status == TD_OK)
        status = choose(f, inputs, &script);
    if (TD_LIKELY(status == TD_OK))
        return td_script_run_with(script, f->host, inputs, outputs);
    for (int k = 0; k < f->graph->block->noutputs; k++)
        outputs[k] = TD_NIL;
    return status;
}

td_status td_scripted_fork(td_scripted *f, const td_value *inputs, td_value *future) {
    const td_script *script;
    td_status status = choose(f, inputs, &script);
    return status ? status : td_script_fork(script, f->host, inputs, future);
}

td_status td_scripted_graph_for(td_scripted *f, const td_value *inputs, td_ir_graph **out) {
    special *s = NULL;
    *out = NULL;
    uint64_t modes = modes_now();
    td_status status = make_locked(f, modes, inputs, &s);
    if (status == TD_OK)
        *out = td_ir_graph_retain((td_ir_graph *)td_script_graph(s ? s->script : f->plain));
    return status;
}

/* ---- why ---- */

/* A text that grows. */
typedef struct words {
    char *text;
    size_t used, room;
    bool failed;
} words;

TD_PRINTF(2, 3) static void add(words *w, const char *format, ...) {
    char line[600];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    size_t n = strlen(line);
    if (w->used + n + 1 > w->room) {
        size_t room = 2 * (w->used + n) + 256;
        char *text = w->failed ? NULL : td_realloc(w->text, room);
        if (!text) {
            w->failed = true;
            return;
        }
        w->text = text;
        w->room = room;
    }
    memcpy(w->text + w->used, line, n + 1);
    w->used += n;
}

static void add_input(words *w, uint64_t key, const int64_t *sizes) {
    if ((key & 255) != TD_KIND_TENSOR) {
        add(w, "%s", (key & 255) == TD_KIND_NIL ? "nil" : "a value");
        return;
    }
    int n = (int)(key >> 16 & 255);
    add(w, "%s(", td_ir_dtype_name((td_dtype)(key >> 8 & 255)));
    for (int d = 0; d < n; d++) {
        if (sizes[d] == TD_IR_UNKNOWN)
            add(w, "%s*", d ? ", " : "");
        else
            add(w, "%s%lld", d ? ", " : "", (long long)sizes[d]);
    }
    add(w, "%s%s)", key >> 32 & 1 ? (n ? ", requires_grad" : "requires_grad") : "",
        key >> 33 & 1 ? "" : ", not row-major");
}

/* In what it differs from another one. */
static void add_difference(words *w, const td_scripted *f, const special *s, const special *other) {
    const td_ir_block *block = f->graph->block;
    bool any = false;
    if (s->modes != other->modes) {
        add(w, "; other modes");
        any = true;
    }
    const int64_t *sizes = s->sizes, *others = other->sizes;
    for (int k = 0; k < f->nlooks; k++) {
        int n = (s->keys[k] & 255) == TD_KIND_TENSOR ? (int)(s->keys[k] >> 16 & 255) : 0;
        int m = (other->keys[k] & 255) == TD_KIND_TENSOR ? (int)(other->keys[k] >> 16 & 255) : 0;
        bool sized = n == m && (!n || !memcmp(sizes, others, sizeof *sizes * (size_t)n));
        if (s->keys[k] != other->keys[k] || !sized) {
            add(w, "%s%%%s", any ? ", " : "; differs in ", block->inputs[f->looks[k]]->name);
            any = true;
        }
        sizes += n;
        others += m;
    }
}

static void add_special(words *w, const td_scripted *f, const special *s, int number) {
    const int64_t *sizes = s->sizes;
    add(w, "%d: (", number);
    for (int k = 0; k < f->nlooks; k++) {
        add(w, k ? ", " : "");
        add_input(w, s->keys[k], sizes);
        sizes += (s->keys[k] & 255) == TD_KIND_TENSOR ? (int)(s->keys[k] >> 16 & 255) : 0;
    }
    add(w, "): %lld calls, %lld ns to make", (long long)atomic_load(&s->calls), (long long)s->ns);
    if (s->replaced)
        add(w, "; sizes varied, a later one serves them");
    if (s->failed)
        add(w, "; could not be rewritten, runs as written");
    if (s->made)
        add_difference(w, f, s, s->made);
    add(w, "\n");
}

/* Under the lock: how many were made, replaced ones too; the k-th of them. */
static int count(const td_scripted *f) {
    int n = 0;
    for (const special *s = f->made; s; s = s->made)
        n++;
    return n;
}

static const special *get(const td_scripted *f, int k) {
    const special *s = f->made;
    for (int left = count(f) - 1 - k; s && left > 0; left--)
        s = s->made;
    return s;
}

char *td_scripted_why(td_scripted *f) {
    words w = {.text = NULL};
    pthread_mutex_lock(&f->making);
    int n = count(f);
    add(&w, "%s: %d specialisation%s\n", f->name, f->nspecials, f->nspecials == 1 ? "" : "s");
    for (int k = 0; k < n; k++)
        add_special(&w, f, get(f, k), k + 1);
    long long plain = atomic_load(&f->plain_calls);
    if (f->full)
        add(&w, "no more than %d are made: other inputs run the graph as written\n",
            TD_SCRIPTED_MOST);
    if (plain)
        add(&w, "%lld calls ran the graph as written\n", plain);
    char why[200];
    n = td_gradients_count(f->gradients);
    if (n)
        add(&w, "backward is a graph for %d kind%s of inputs\n", n, n == 1 ? "" : "s");
    if (*td_gradients_why(f->gradients, why, sizeof why))
        add(&w, "backward is recorded call by call: %s\n", why);
    pthread_mutex_unlock(&f->making);
    if (w.failed) {
        td_free(w.text);
        return NULL;
    }
    return w.text;
}

int td_scripted_nspecialisations(td_scripted *f) {
    pthread_mutex_lock(&f->making);
    int n = count(f);
    pthread_mutex_unlock(&f->making);
    return n;
}

void td_scripted_statistics(td_scripted *f, int k, int64_t *calls, int64_t *ns) {
    pthread_mutex_lock(&f->making);
    const special *s = k >= 0 && k < count(f) ? get(f, k) : NULL;
    *calls = s ? atomic_load(&s->calls) : 0;
    *ns = s ? s->ns : 0;
    pthread_mutex_unlock(&f->making);
}
