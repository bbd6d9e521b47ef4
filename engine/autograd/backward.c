/* backward.c: one run through the graph, from the highest sequence number down.
 *
 * A node is ready when everything recorded after it has run, so a heap ordered by sequence number
 * is all the bookkeeping there is: no counting of dependencies, no recursion. Gradients that meet
 * are added, in place where nobody else holds the sum.
 */
#include "engine/autograd/needed.h"
#include "engine/core/interrupt.h"
#include "engine/core/memory.h"

#include <string.h>

/* A node (or leaf) that gradients have reached. */
typedef struct entry {
    td_node *node;         /* owned */
    td_tensor *leaf;       /* owned */
    td_tensor **gradients; /* per result; owned */
    td_tensor *single;     /* where gradients points when there is but one result */
} entry;

typedef struct capture { /* an input that td_autograd_grad asks about */
    const void *key;     /* node or leaf */
    uint32_t result;
    td_tensor **to;
} capture;

typedef struct run {
    td_backward_options options;
    entry **heap; /* nodes waiting, by sequence */
    size_t nheap, heap_size;
    entry **table; /* all reached, by address of node or leaf; open addressing */
    size_t ntable, table_size;
    const capture *captures; /* NULL: gradients go into the leaves */
    int ncaptures;
    td_node_set needed; /* with captures: the nodes that run */
} run;

static td_status no_memory(void) {
    return td_fail(TD_ENOMEM, "out of memory in backward");
}

static const void *key_of(const entry *e) {
    return e->node ? (const void *)e->node : (const void *)e->leaf;
}

/* ---- table of what was reached ---- */

static size_t slot_of(const run *r, const void *key) {
    size_t at = ((uintptr_t)key >> 4) * 0x9e3779b97f4a7c15ull >> 20 & (r->table_size - 1);
    while (r->table[at] && key_of(r->table[at]) != key)
        at = (at + 1) & (r->table_size - 1);
    return at;
}

static td_status grow_table(run *r) {
    entry **old = r->table;
    size_t old_size = r->table_size;
    r->table_size = old_size ? old_size * 2 : 64;
    r->table = td_calloc(r->table_size, sizeof *r->table);
    if (!r->table) {
        r->table = old;
        r->table_size = old_size;
        return no_memory();
    }
    for (size_t k = 0; k < old_size; k++)
        if (old[k])
            r->table[slot_of(r, key_of(old[k]))] = old[k];
    td_free(old);
    return TD_OK;
}

/* ---- heap of nodes ---- */

static void heap_up(run *r, size_t k) {
    for (; k > 0; k = (k - 1) / 2) {
        size_t parent = (k - 1) / 2;
        if (r->heap[parent]->node->sequence >= r->heap[k]->node->sequence)
            return;
        entry *e = r->heap[k];
        r->heap[k] = r->heap[parent];
        r->heap[parent] = e;
    }
}

static entry *heap_pop(run *r) {
    entry *top = r->heap[0];
    r->heap[0] = r->heap[--r->nheap];
    for (size_t k = 0;;) {
        size_t child = 2 * k + 1;
        if (child >= r->nheap)
            return top;
        if (child + 1 < r->nheap &&
            r->heap[child + 1]->node->sequence > r->heap[child]->node->sequence)
            child++;
        if (r->heap[k]->node->sequence >= r->heap[child]->node->sequence)
            return top;
        entry *e = r->heap[k];
        r->heap[k] = r->heap[child];
        r->heap[child] = e;
        k = child;
    }
}

static td_status heap_push(run *r, entry *e) {
    if (r->nheap == r->heap_size) {
        size_t size = r->heap_size ? r->heap_size * 2 : 64;
        entry **heap = td_realloc(r->heap, size * sizeof *heap);
        if (!heap)
            return no_memory();
        r->heap = heap;
        r->heap_size = size;
    }
    r->heap[r->nheap++] = e;
    heap_up(r, r->nheap - 1);
    return TD_OK;
}

/* ---- entries ---- */

static void entry_drop_gradients(entry *e) {
    int n = e->node ? e->node->nresults : 1;
    for (int k = 0; k < n && e->gradients; k++) {
        td_release(e->gradients[k]);
        e->gradients[k] = NULL;
    }
}

static void entry_free(entry *e) {
    entry_drop_gradients(e);
    if (e->gradients != &e->single)
        td_free(e->gradients);
    td_node_release(e->node);
    td_release(e->leaf);
    td_object_free(e, sizeof *e);
}

static td_status entry_new(const td_edge *edge, entry **out) {
    entry *e = td_object_alloc(sizeof *e);
    if (!e)
        return no_memory();
    *e = (entry){.node = td_node_retain(edge->node), .leaf = td_retain(edge->leaf)};
    if (!edge->node || edge->node->nresults == 1)
        e->gradients = &e->single;
    else
        e->gradients = td_calloc(edge->node->nresults, sizeof *e->gradients);
    if (!e->gradients) {
        entry_free(e);
        return no_memory();
    }
    *out = e;
    return TD_OK;
}

static td_status reach(run *r, const td_edge *edge, entry **out) {
    td_status status = TD_OK;
    if (2 * (r->ntable + 1) > r->table_size)
        status = grow_table(r);
    if (status)
        return status;
    const void *key = edge->node ? (const void *)edge->node : (const void *)edge->leaf;
    size_t at = slot_of(r, key);
    if (!r->table[at]) {
        entry *e = NULL;
        status = entry_new(edge, &e);
        if (status)
            return status;
        r->table[at] = e;
        r->ntable++;
        if (e->node)
            status = heap_push(r, e);
    }
    *out = r->table[at];
    return status;
}

/* ---- sums of gradients ---- */

/* Nobody but us sees these elements, and they are all there: may be added to in place. */
static bool is_ours(const td_tensor *x) {
    return atomic_load(&x->refs) == 1 && atomic_load(&x->storage->refs) == 1 && !x->requires_grad &&
           !td_tensor_overlaps(x);
}

/* *sum += g; steals g. */
static td_status add_to(td_tensor **sum, td_tensor *g) {
    td_status status = TD_OK;
    td_tensor *total = NULL;
    if (!*sum) {
        *sum = g;
        return TD_OK;
    }
    if (!td_grad_enabled() && is_ours(*sum)) {
        status = TD_APPLY_INPLACE(add, TD_T(*sum), TD_T(g));
    } else {
        status = TD_APPLY(&total, add, TD_T(*sum), TD_T(g));
        if (status == TD_OK) {
            td_release(*sum);
            *sum = total;
        }
    }
    td_release(g);
    return status;
}

/* Hand a gradient to where an edge points; steals g. */
static td_status deliver(run *r, const td_edge *edge, td_tensor *g) {
    entry *e = NULL;
    if (!edge->node && !edge->leaf) {
        td_release(g);
        return TD_OK;
    }
    td_status status = reach(r, edge, &e);
    if (status) {
        td_release(g);
        return status;
    }
    return add_to(&e->gradients[edge->node ? edge->result : 0], g);
}

/* ---- what becomes of gradients ---- */

static void fill_captures(const run *r, const entry *e) {
    for (int k = 0; k < r->ncaptures; k++)
        if (r->captures[k].key == key_of(e)) {
            td_tensor *g = e->gradients[e->node ? r->captures[k].result : 0];
            td_release(*r->captures[k].to);
            *r->captures[k].to = td_retain(g);
        }
}

/* The gradient to keep in a .grad field: of its own memory, row-major. Steals g. */
static td_status own_gradient(td_tensor *g, td_tensor **out) {
    if (td_grad_enabled() || (is_ours(g) && g->contiguous)) {
        *out = g;
        return TD_OK;
    }
    td_status status = TD_APPLY(out, clone, TD_T(g), TD_STRING("contiguous"));
    td_release(g);
    return status;
}

/* grad += g (steals g). An existing gradient is added to in place, unless backward is recorded. */
static td_status accumulate(td_autograd *a, td_tensor *g) {
    td_status status;
    td_tensor *sum = NULL;
    if (!a->grad)
        return own_gradient(g, &a->grad);
    if (td_grad_enabled()) {
        status = TD_APPLY(&sum, add, TD_T(a->grad), TD_T(g));
        if (status == TD_OK) {
            td_release(a->grad);
            a->grad = sum;
        }
    } else {
        status = TD_APPLY_INPLACE(add, TD_T(a->grad), TD_T(g));
    }
    td_release(g);
    return status;
}

static td_status keep_retained(const entry *e) {
    td_node *node = e->node;
    for (int k = 0; node->retained && k < node->nresults; k++) {
        td_autograd *a = node->retained[k];
        if (!a || !e->gradients[k])
            continue;
        td_status status = accumulate(a, td_retain(e->gradients[k]));
        if (status)
            return status;
    }
    return TD_OK;
}

static td_status run_node(run *r, entry *e) {
    td_node *node = e->node;
    td_tensor *few[16], **in = few;
    td_status status = keep_retained(e);
    fill_captures(r, e);
    if (status)
        return status;
    if (r->captures && !td_node_set_has(&r->needed, node)) {
        entry_drop_gradients(e);
        return TD_OK;
    }
    if (node->nslots > 16 && !(in = td_malloc(node->nslots * sizeof *in)))
        return no_memory();
    memset(in, 0, node->nslots * sizeof *in);
    bool any = false;
    for (int k = 0; k < node->nresults; k++)
        any = any || e->gradients[k];
    if (any)
        status = td_node_apply(node, e->gradients, in);
    entry_drop_gradients(e);
    if (!r->options.retain_graph && status == TD_OK)
        td_node_release_saved(node);
    for (uint32_t k = 0; k < node->nslots; k++) {
        if (!in[k])
            continue;
        if (status == TD_OK)
            status = deliver(r, &node->slots[k].edge, in[k]);
        else
            td_release(in[k]);
    }
    if (in != few)
        td_free(in);
    return status;
}

static td_status finish_leaves(run *r) {
    for (size_t k = 0; k < r->table_size; k++) {
        entry *e = r->table[k];
        if (!e || !e->leaf || !e->single)
            continue;
        if (r->captures) {
            fill_captures(r, e);
            continue;
        }
        td_autograd *a = td_autograd_get(e->leaf);
        if (!a)
            return TD_ENOMEM;
        td_tensor *g = e->single;
        e->single = NULL;
        td_status status = accumulate(a, g);
        if (status)
            return status;
    }
    return TD_OK;
}

/* The gradient to start from: the one given, or 1 for a one-element output. */
static td_status seed(td_tensor *output, td_tensor *given, td_tensor **out) {
    char a[TD_SHAPE_TEXT], b[TD_SHAPE_TEXT];
    *out = NULL;
    if (!output->requires_grad && !td_view_is_stale(output))
        return td_fail(TD_EAUTOGRAD, "the tensor does not require grad and has no grad_fn");
    if (given) {
        if (!td_tensor_same_shape(output, given))
            return td_fail(TD_ESHAPE, "gradient of shape %s for an output of shape %s",
                           td_tensor_shape_text(given, a), td_tensor_shape_text(output, b));
        *out = td_retain(given);
        return TD_OK;
    }
    if (output->numel != 1)
        return td_fail(TD_EAUTOGRAD,
                       "an output of shape %s needs a gradient to start from: only for "
                       "one element is it implied (take :sum() or :mean(), or give one)",
                       td_tensor_shape_text(output, a));
    return TD_APPLY(out, ones_like, TD_T(output));
}

static td_status start(run *r, int n, td_tensor *const *outputs, td_tensor *const *gradients) {
    for (int k = 0; k < n; k++) {
        td_tensor *g;
        td_status status = seed(outputs[k], gradients ? gradients[k] : NULL, &g);
        if (status)
            return status;
        if (td_view_is_stale(outputs[k]))
            status = td_view_refresh(outputs[k]);
        td_edge edge = td_edge_of(outputs[k]);
        status = status ? (td_release(g), status) : deliver(r, &edge, g);
        td_edge_release(&edge);
        if (status)
            return status;
    }
    return TD_OK;
}

/* For gradients of chosen inputs: what has to run for them. */
static td_status find_needed(run *r, int n, td_tensor *const *outputs) {
    td_status status = TD_OK;
    td_edge *starts = td_calloc((size_t)n, sizeof *starts);
    const void **targets = td_calloc((size_t)r->ncaptures, sizeof *targets);
    if (!starts || !targets)
        status = no_memory();
    for (int k = 0; k < r->ncaptures && status == TD_OK; k++)
        targets[k] = r->captures[k].key;
    for (int k = 0; k < n && status == TD_OK; k++) {
        if (td_view_is_stale(outputs[k]))
            status = td_view_refresh(outputs[k]);
        starts[k] = td_edge_of(outputs[k]);
    }
    if (status == TD_OK)
        status = td_needed_find(n, starts, r->ncaptures, targets, &r->needed);
    for (int k = 0; k < n && starts; k++)
        td_edge_release(&starts[k]);
    td_free(starts);
    td_free(targets);
    return status;
}

static td_status execute(run *r, int n, td_tensor *const *outputs, td_tensor *const *gradients) {
    bool before = td_set_grad_enabled(r->options.create_graph);
    if (r->options.create_graph)
        r->options.retain_graph = true;
    td_status status = r->captures ? find_needed(r, n, outputs) : TD_OK;
    if (status == TD_OK)
        status = start(r, n, outputs, gradients);
    while (status == TD_OK && r->nheap) {
        status = td_interrupt_check();
        if (status == TD_OK)
            status = run_node(r, heap_pop(r));
    }
    if (status == TD_OK)
        status = finish_leaves(r);
    for (size_t k = 0; k < r->table_size; k++)
        if (r->table[k])
            entry_free(r->table[k]);
    td_free(r->table);
    td_free(r->heap);
    td_node_set_free(&r->needed);
    td_set_grad_enabled(before);
    return status;
}

td_status td_backward(int n, td_tensor *const *outputs, td_tensor *const *gradients,
                      td_backward_options options) {
    run r = {.options = options};
    td_status status = execute(&r, n, outputs, gradients);
    if (status)
        td_error_prefix("backward");
    return status;
}

td_status td_autograd_grad(int n, td_tensor *const *outputs, td_tensor *const *gradients,
                           int ninputs, td_tensor *const *inputs, td_backward_options options,
                           bool allow_unused, td_tensor **results) {
    td_status status = TD_OK;
    capture *captures = td_calloc((size_t)ninputs, sizeof *captures);
    if (!captures)
        return no_memory();
    for (int k = 0; k < ninputs; k++)
        results[k] = NULL;
    for (int k = 0; k < ninputs; k++) {
        td_tensor *x = inputs[k];
        if (!x->requires_grad && !td_view_is_stale(x)) {
            status = td_fail(TD_EAUTOGRAD, "input %d does not require grad", k + 1);
            goto done;
        }
        if (td_view_is_stale(x))
            TD_TRY(td_view_refresh(x));
        bool leaf = td_is_leaf(x);
        captures[k] = (capture){.key = leaf ? (const void *)x : (const void *)x->autograd->grad_fn,
                                .result = leaf ? 0 : x->autograd->result,
                                .to = &results[k]};
    }
    run r = {.options = options, .captures = captures, .ncaptures = ninputs};
    TD_TRY(execute(&r, n, outputs, gradients));
    for (int k = 0; k < ninputs && !allow_unused; k++)
        if (!results[k]) {
            status = td_fail(TD_EAUTOGRAD,
                             "input %d has no part in the outputs ({allow_unused = "
                             "true} gives nil for it)",
                             k + 1);
            goto done;
        }
done:
    td_free(captures);
    if (status) {
        for (int k = 0; k < ninputs; k++) {
            td_release(results[k]);
            results[k] = NULL;
        }
        td_error_prefix("grad");
    }
    return status;
}
