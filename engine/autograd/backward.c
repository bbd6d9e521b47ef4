/* backward.c: one run through the graph.
 *
 * A walk over what lies behind the outputs counts the edges that lead to each node and each leaf.
 * A node runs when the last of them has been served, of those that are ready the youngest first; a
 * leaf takes its gradient when its last edge has been served, while others still run. No recursion:
 * the depth of the graph does not matter. Gradients that meet are added, in place where nobody else
 * holds the sum.
 */
#include "engine/autograd/node.h"
#include "engine/core/interrupt.h"
#include "engine/core/layout.h"
#include "engine/core/map.h"
#include "engine/core/memory.h"
#include "engine/core/modes.h"

#include <stdlib.h>
#include <string.h>

/* A node (or leaf) that lies behind the outputs. */
typedef struct entry {
    td_node *node;         /* owned */
    td_tensor *leaf;       /* owned */
    td_tensor **gradients; /* per result; owned */
    td_tensor *single;     /* where gradients points when there is but one result */
    struct entry *next;    /* in the order of the walk */
    uint32_t pending;      /* edges that have not been served */
    bool needed;           /* a chosen input lies behind it, or all count */
} entry;

typedef struct capture { /* an input whose gradient is asked for */
    const void *key;     /* node or leaf */
    uint32_t result;
    td_tensor **to; /* where it goes; NULL: to x's .grad */
    td_tensor *x;   /* owned */
} capture;

enum { FEW_READY = 8 };

struct run;
static _Thread_local const struct run *running; /* the innermost of this thread */

typedef struct run {
    td_backward_options options;
    entry **heap; /* nodes that are ready, by sequence; in `few` while they are few */
    size_t nheap, heap_size;
    entry *few[FEW_READY];
    td_map behind;           /* all behind the outputs, by address of node or leaf */
    entry *first, *last;     /* the same in the order of the walk */
    const capture *captures; /* NULL: gradients go into the leaves */
    int ncaptures;
    entry *at; /* whose node runs; NULL */
} run;

static td_status no_memory(void) {
    return td_fail(TD_ENOMEM, "out of memory in backward");
}

static const void *key_of(const entry *e) {
    return e->node ? (const void *)e->node : (const void *)e->leaf;
}

static bool is_of(const void *e, const void *key) {
    return key_of(e) == key;
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
        size_t size = r->heap_size * 2;
        entry **heap = td_realloc(r->heap == r->few ? NULL : r->heap, size * sizeof *heap);
        if (!heap)
            return no_memory();
        if (r->heap == r->few)
            memcpy(heap, r->few, sizeof r->few);
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
    *e = (entry){.node = node_retain(edge->node), .leaf = td_retain(edge->leaf)};
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

static const void *target_of(const td_edge *edge) {
    return edge->node ? (const void *)edge->node : (const void *)edge->leaf;
}

/* The entry of where an edge leads, which the walk has met; NULL: nowhere. */
static entry *find(const run *r, const td_edge *edge) {
    const void *key = target_of(edge);
    return key ? td_map_find(&r->behind, td_hash_address(key), is_of, key) : NULL;
}

/* ---- the walk ---- */

/* Count an edge; what it leads to joins the walk when it is met for the first time. */
static td_status count_edge(run *r, const td_edge *edge) {
    const void *key = target_of(edge);
    if (!key)
        return TD_OK;
    entry *e = find(r, edge);
    if (!e) {
        td_status status = entry_new(edge, &e);
        if (status)
            return status;
        if (r->last)
            r->last->next = e;
        else
            r->first = e;
        r->last = e;
        status = td_map_add(&r->behind, td_hash_address(key), e);
        if (status)
            return status;
    }
    e->pending++;
    return TD_OK;
}

static td_status walk(run *r, int nstarts, const td_edge *starts) {
    td_status status = TD_OK;
    for (int k = 0; k < nstarts && status == TD_OK; k++)
        status = count_edge(r, &starts[k]);
    for (entry *e = r->first; e && status == TD_OK; e = e->next)
        for (uint32_t k = 0; e->node && k < e->node->nslots && status == TD_OK; k++)
            status = count_edge(r, &e->node->slots[k].edge);
    return status;
}

static int by_sequence(const void *a, const void *b) {
    const entry *const *x = a, *const *y = b;
    uint64_t left = (*x)->node ? (*x)->node->sequence : 0;
    uint64_t right = (*y)->node ? (*y)->node->sequence : 0;
    return (left > right) - (left < right);
}

static bool is_chosen(const run *r, const entry *e) {
    for (int k = 0; k < r->ncaptures; k++)
        if (r->captures[k].key == key_of(e))
            return true;
    return false;
}

static bool leads_on(const run *r, const entry *e) {
    for (uint32_t k = 0; e->node && k < e->node->nslots; k++) {
        const entry *behind = find(r, &e->node->slots[k].edge);
        if (behind && (behind->needed || is_chosen(r, behind)))
            return true;
    }
    return false;
}

bool td_backward_retains(void) {
    return running && running->options.retain_graph;
}

bool td_node_wants(const td_node *node, uint32_t slot) {
    const td_edge *edge = &node->slots[slot].edge;
    if (!target_of(edge) || !running || !running->captures)
        return target_of(edge) != NULL;
    const entry *behind = find(running, edge); /* NULL: of a node within a node (td_view_inner) */
    return !behind || behind->needed || is_chosen(running, behind);
}

bool td_grad_needs(const td_grad *grad, int slot) {
    return (uint32_t)slot < grad->node->nslots && td_node_wants(grad->node, (uint32_t)slot);
}

/* For gradients of chosen inputs: nodes behind which none of them lies neither run nor lose what
 * they saved. Edges point at older nodes: in that order what lies behind a node is known first. */
static td_status mark_needed(run *r) {
    if (!r->captures) {
        for (entry *e = r->first; e; e = e->next)
            e->needed = true;
        return TD_OK;
    }
    entry **all = td_malloc((r->behind.count + 1) * sizeof *all);
    size_t n = 0;
    if (!all)
        return no_memory();
    for (entry *e = r->first; e; e = e->next)
        all[n++] = e;
    qsort(all, n, sizeof *all, by_sequence);
    for (size_t k = 0; k < n; k++)
        all[k]->needed = leads_on(r, all[k]);
    td_free(all);
    return TD_OK;
}

/* ---- sums of gradients ---- */

/* Nobody but us sees these elements, and they are all there: may be added to in place. */
static bool is_ours(const td_tensor *x) {
    bool other = x->layout != TD_STRIDED;
    return atomic_load(&x->refs) == 1 && atomic_load(&x->storage->refs) == 1 && !x->requires_grad &&
           !td_tensor_overlaps(x) && (!other || is_ours(td_layout_of(x)->elements(x)));
}

/* May b be added to a in place? What is sparse can't take in what is not. */
static bool takes(const td_tensor *a, const td_tensor *b) {
    return a->layout == TD_STRIDED || b->layout != TD_STRIDED;
}

/* a + b, the sparse one behind the other. */
static td_status add_both(td_tensor *a, td_tensor *b, td_tensor **out) {
    return takes(a, b) ? TD_APPLY(out, add, TD_T(a), TD_T(b))
                       : TD_APPLY(out, add, TD_T(b), TD_T(a));
}

/* *sum += g; steals g. */
static td_status add_to(td_tensor **sum, td_tensor *g) {
    td_status status = TD_OK;
    td_tensor *total = NULL;
    if (!*sum) {
        *sum = g;
        return TD_OK;
    }
    if (!td_grad_enabled() && is_ours(*sum) && takes(*sum, g)) {
        status = TD_APPLY_INPLACE(add, TD_T(*sum), TD_T(g));
    } else {
        status = add_both(*sum, g, &total);
        if (status == TD_OK) {
            td_release(*sum);
            *sum = total;
        }
    }
    td_release(g);
    return status;
}

/* ---- what becomes of gradients ---- */

/* A leaf's gradient lies as the leaf does; row-major where that has gaps. */
static td_status lie_as(const td_tensor *leaf, td_tensor **g) {
    int64_t strides[TD_MAX_DIMS];
    td_tensor *laid = NULL;
    bool same = td_tensor_same_shape(leaf, *g) && (*g)->layout == TD_STRIDED;
    if (!same || (leaf->contiguous && (*g)->contiguous))
        return TD_OK;
    if (td_tensor_is_dense(leaf))
        memcpy(strides, leaf->strides, sizeof(int64_t) * leaf->ndim);
    else
        td_contiguous_strides(leaf->ndim, leaf->sizes, strides);
    for (int d = 0; same && d < leaf->ndim; d++)
        same = leaf->sizes[d] == 1 || strides[d] == (*g)->strides[d];
    if (same)
        return TD_OK;
    td_status status =
        TD_APPLY(&laid, laid_out, TD_T(*g), TD_INTS(leaf->ndim, strides), TD_I(leaf->numel));
    if (status)
        return status;
    td_release(*g);
    *g = laid;
    return TD_OK;
}

/* The gradient to keep in a .grad field: of its own memory, without gaps. Steals g. */
static td_status own_gradient(td_tensor *g, td_tensor **out) {
    if (is_ours(g) && td_tensor_is_dense(g)) {
        *out = g;
        return TD_OK;
    }
    td_status status = TD_APPLY(out, clone, TD_T(g));
    td_release(g);
    return status;
}

/* grad += g (steals g). An existing gradient is added to in place, unless backward is recorded. */
static td_status accumulate(td_autograd *a, td_tensor *g) {
    td_status status;
    td_tensor *sum = NULL;
    if (!a->grad) {
        status = own_gradient(g, &a->grad);
        td_autograd_suspect(a);
        return status;
    }
    if (td_grad_enabled() || !takes(a->grad, g)) {
        status = add_both(a->grad, g, &sum);
        if (status == TD_OK) {
            td_release(a->grad);
            a->grad = sum;
            td_autograd_suspect(a);
        }
    } else {
        status = TD_APPLY_INPLACE(add, TD_T(a->grad), TD_T(g));
    }
    td_release(g);
    return status;
}

/* Asked for by retain_grad as well, which has added it already. */
static bool is_retained(const entry *e, const capture *c) {
    return e->node && e->node->retained && e->node->retained[c->result] == c->x->autograd;
}

static td_status fill_captures(const run *r, const entry *e) {
    td_status status = TD_OK;
    for (int k = 0; k < r->ncaptures && status == TD_OK; k++) {
        const capture *c = &r->captures[k];
        if (c->key != key_of(e))
            continue;
        td_tensor *g = e->gradients[e->node ? c->result : 0];
        if (c->to) {
            td_release(*c->to);
            *c->to = td_retain(g);
        } else if (g && !is_retained(e, c)) {
            td_autograd *a = td_autograd_get(c->x);
            status = a ? accumulate(a, td_retain(g)) : TD_ENOMEM;
            if (status == TD_OK && TD_UNLIKELY(a->hooks != NULL))
                status = td_hooks_run(a->hooks, NULL, TD_HOOK_ACCUMULATED, 0, 0, NULL, 1, &c->x);
        }
    }
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

/* What hooks have to say to the gradients of a node's results, and to the node. */
static td_status run_hooks_before(entry *e, bool runs) {
    td_hooks *hooks = e->node->notes->hooks;
    td_status status = TD_OK;
    for (uint32_t k = 0; k < e->node->nresults && status == TD_OK; k++)
        if (e->gradients[k])
            status =
                td_hooks_run(hooks, e->node, TD_HOOK_GRADIENT, k, 1, &e->gradients[k], 0, NULL);
    if (status == TD_OK && runs)
        status = td_hooks_run(hooks, e->node, TD_HOOK_BEFORE, 0, e->node->nresults, e->gradients, 0,
                              NULL);
    return status;
}

static bool has_hooks(const td_node *node) {
    return TD_UNLIKELY(node->notes != NULL) && node->notes->hooks;
}

static td_status add_to_leaf(td_autograd *a, entry *e) {
    td_status status = a->grad ? TD_OK : lie_as(e->leaf, &e->single);
    if (status)
        return status;
    td_tensor *g = e->single;
    e->single = NULL;
    status = accumulate(a, g);
    if (TD_LIKELY(!a->hooks) || status)
        return status;
    return td_hooks_run(a->hooks, NULL, TD_HOOK_ACCUMULATED, 0, 0, NULL, 1, &e->leaf);
}

/* All that comes to a leaf has come. */
static td_status finish_leaf(run *r, entry *e) {
    if (!e->single)
        return TD_OK;
    td_autograd *a = td_autograd_get(e->leaf);
    if (!a)
        return TD_ENOMEM;
    if (TD_UNLIKELY(a->hooks != NULL)) {
        td_status status =
            td_hooks_run(a->hooks, NULL, TD_HOOK_GRADIENT, 0, 1, &e->single, 0, NULL);
        if (status)
            return status;
    }
    return r->captures ? fill_captures(r, e) : add_to_leaf(a, e);
}

/* Serve an edge: hand on a gradient (stolen; NULL: none comes), and what is behind the last edge is
 * ready. */
static td_status serve(run *r, const td_edge *edge, td_tensor *g) {
    entry *e = find(r, edge);
    td_status status = TD_OK;
    if (!e) {
        td_release(g);
        return TD_OK;
    }
    if (g)
        status = add_to(&e->gradients[e->node ? edge->result : 0], g);
    if (status || --e->pending > 0)
        return status;
    return e->node ? heap_push(r, e) : finish_leaf(r, e);
}

/* Serve all edges of a node, with what its backward gave (stolen), or nothing. */
static td_status serve_edges(run *r, td_node *node, td_tensor **in) {
    td_status status = TD_OK;
    for (uint32_t k = 0; k < node->nslots; k++) {
        if (status == TD_OK)
            status = serve(r, &node->slots[k].edge, in[k]);
        else
            td_release(in[k]);
    }
    return status;
}

bool td_node_gives_up(const td_node *node) {
    return running && running->at && running->at->node == node && node->running == 1 &&
           !running->options.retain_graph && !has_hooks(node) && !td_modes_current.anomaly;
}

void td_node_drop_gradient(const td_node *node, int result) {
    if (!td_node_gives_up(node))
        return;
    td_release(running->at->gradients[result]);
    running->at->gradients[result] = NULL;
}

/* Run a node and the hooks that follow; what they give has yet to be checked. */
static td_status apply_hooked(entry *e, td_tensor **in) {
    td_node *node = e->node;
    td_status status = td_node_apply(node, e->gradients, in);
    if (TD_LIKELY(status || !has_hooks(node)))
        return status;
    status = td_hooks_run(node->notes->hooks, node, TD_HOOK_AFTER, 0, (int)node->nslots, in,
                          node->nresults, e->gradients);
    for (uint32_t k = 0; k < node->nslots && status; k++) {
        td_release(in[k]);
        in[k] = NULL;
    }
    return status;
}

/* Where the gradient of what a part was taken of gathers, if the part's may be added in its place
 * there; NULL: it has to become a tensor of zeros with the part in it. */
static td_tensor *sum_around(const run *r, const entry *e) {
    const td_node *node = e->node;
    if (!node->op || !(node->op->flags & TD_OP_PART) || td_grad_enabled() || has_hooks(node) ||
        td_modes_current.anomaly)
        return NULL;
    const td_slot *slot = &node->slots[0];
    const entry *behind = find(r, &slot->edge);
    td_tensor *sum = behind ? behind->gradients[behind->node ? slot->edge.result : 0] : NULL;
    const td_tensor *g = e->single;
    bool fits = sum && sum->layout == TD_STRIDED && g->layout == TD_STRIDED && is_ours(sum) &&
                sum->dtype == g->dtype && sum->dtype == slot->dtype && sum->ndim == slot->ndim &&
                !memcmp(sum->sizes, slot->sizes, sizeof(int64_t) * slot->ndim);
    return fits ? sum : NULL;
}

static td_status run_needed(const run *r, entry *e, td_tensor **in) {
    td_tensor *sum = sum_around(r, e);
    return sum ? td_node_add_part(e->node, e->single, sum) : apply_hooked(e, in);
}

static td_status run_node(run *r, entry *e) {
    td_node *node = e->node;
    td_tensor *few[16], **in = few;
    bool any = false;
    for (int k = 0; k < node->nresults; k++)
        any = any || e->gradients[k];
    td_status status = has_hooks(node) ? run_hooks_before(e, any && e->needed) : TD_OK;
    if (status == TD_OK)
        status = keep_retained(e);
    if (status == TD_OK)
        status = fill_captures(r, e);
    if (status)
        return status;
    if (node->nslots > 16 && !(in = td_malloc(node->nslots * sizeof *in)))
        return no_memory();
    memset(in, 0, node->nslots * sizeof *in);
    r->at = e;
    if (any && e->needed)
        status = run_needed(r, e, in);
    r->at = NULL;
    entry_drop_gradients(e);
    if (!r->options.retain_graph && e->needed && status == TD_OK)
        td_node_release_saved(node);
    if (status == TD_OK)
        status = serve_edges(r, node, in);
    if (in != few)
        td_free(in);
    return status;
}

/* The gradient to start from: the one given, or 1 for a one-element output. Of another device only
 * a number is taken, as by operators. */
static td_status seed(td_tensor *output, td_tensor *given, td_tensor **out) {
    char a[TD_SHAPE_TEXT], b[TD_SHAPE_TEXT];
    *out = NULL;
    if (given) {
        if (!td_tensor_same_shape(output, given))
            return td_fail(TD_ESHAPE, "gradient of shape %s for an output of shape %s",
                           td_tensor_shape_text(given, a), td_tensor_shape_text(output, b));
        td_device device = td_tensor_device(output);
        bool elsewhere = !td_device_same(td_tensor_device(given), device);
        if (elsewhere && given->ndim > 0)
            return td_fail(TD_EDEVICE,
                           "gradient on %s for an output on %s: move it there, g:to(y.device)",
                           td_device_name(td_tensor_device(given)), td_device_name(device));
        if (given->dtype != output->dtype || elsewhere)
            return TD_APPLY(out, to, TD_T(given), TD_DTYPE((td_dtype)output->dtype),
                            TD_DEVICE(device));
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

/* The edges by which the outputs are reached, after their histories were brought up to date. */
static td_status find_starts(int n, td_tensor *const *outputs, td_edge *starts) {
    for (int k = 0; k < n; k++) {
        td_status status = td_view_is_stale(outputs[k]) ? td_view_refresh(outputs[k]) : TD_OK;
        if (status)
            return status;
        if (!outputs[k]->requires_grad && n > 1)
            return td_fail(TD_EAUTOGRAD, "output %d does not require grad and has no grad_fn",
                           k + 1);
        if (!outputs[k]->requires_grad)
            return td_fail(TD_EAUTOGRAD, "the tensor does not require grad and has no grad_fn");
        starts[k] = td_edge_of(outputs[k]);
    }
    return TD_OK;
}

static td_status start(run *r, int n, td_tensor *const *outputs, td_tensor *const *gradients,
                       const td_edge *starts) {
    td_status status = TD_OK;
    for (int k = 0; k < n && status == TD_OK; k++) {
        td_tensor *g;
        status = seed(outputs[k], gradients ? gradients[k] : NULL, &g);
        if (status == TD_OK)
            status = serve(r, &starts[k], g);
    }
    return status;
}

static td_status run_all(run *r, int n, td_tensor *const *outputs, td_tensor *const *gradients,
                         td_edge *starts) {
    td_status status = find_starts(n, outputs, starts);
    if (status == TD_OK)
        status = walk(r, n, starts);
    if (status == TD_OK)
        status = mark_needed(r);
    if (status == TD_OK)
        status = start(r, n, outputs, gradients, starts);
    while (status == TD_OK && r->nheap) {
        status = td_interrupt_check();
        if (status == TD_OK)
            status = run_node(r, heap_pop(r));
    }
    return status;
}

static td_status execute(run *r, int n, td_tensor *const *outputs, td_tensor *const *gradients) {
    td_edge few[4], *starts = few;
    td_status settled = td_settle_pending();
    if (settled)
        return settled;
    if (n > 4 && !(starts = td_malloc((size_t)n * sizeof *starts)))
        return no_memory();
    memset(starts, 0, (size_t)n * sizeof *starts);
    r->heap = r->few;
    r->heap_size = FEW_READY;
    for (int k = 0; k < n && n > 1; k++) { /* a hook of the first may let go of the second */
        td_retain(outputs[k]);
        td_retain(gradients ? gradients[k] : NULL);
    }
    td_modes before = td_get_modes();
    td_modes_current.grad_disabled = !r->options.create_graph;
    td_modes_current.casting = false; /* gradients have the dtypes of what was computed */
    if (r->options.create_graph)
        r->options.retain_graph = true;
    const run *around = running;
    running = r;
    td_status status = run_all(r, n, outputs, gradients, starts);
    running = around;
    for (entry *e = r->first, *next; e; e = next) {
        next = e->next;
        entry_free(e);
    }
    for (int k = 0; k < n; k++)
        td_edge_release(&starts[k]);
    for (int k = 0; k < n && n > 1; k++) {
        td_release(outputs[k]);
        td_release(gradients ? gradients[k] : NULL);
    }
    if (starts != few)
        td_free(starts);
    td_map_clear(&r->behind);
    if (r->heap != r->few)
        td_free(r->heap);
    td_set_modes(before);
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

/* Where the gradient of an input arises; its place is the caller's to set. */
static td_status find_capture(td_tensor *x, int number, capture *c) {
    td_status status = td_view_is_stale(x) ? td_view_refresh(x) : TD_OK;
    if (status)
        return status;
    if (!x->requires_grad)
        return td_fail(TD_EAUTOGRAD, "input %d does not require grad", number);
    bool leaf = td_is_leaf(x);
    *c = (capture){.x = td_retain(x),
                   .key = leaf ? (const void *)x : (const void *)x->autograd->grad_fn,
                   .result = leaf ? 0 : x->autograd->result};
    return TD_OK;
}

static void free_captures(capture *captures, int n) {
    for (int k = 0; k < n; k++)
        td_release(captures[k].x);
    td_free(captures);
}

td_status td_backward_into(int n, td_tensor *const *outputs, td_tensor *const *gradients,
                           int ninputs, td_tensor *const *inputs, td_backward_options options) {
    td_status status = TD_OK;
    capture *captures = td_calloc((size_t)ninputs + 1, sizeof *captures);
    if (!captures)
        return no_memory();
    for (int k = 0; k < ninputs && status == TD_OK; k++) {
        status = find_capture(inputs[k], k + 1, &captures[k]);
    }
    run r = {.options = options, .captures = captures, .ncaptures = ninputs};
    if (status == TD_OK)
        status = execute(&r, n, outputs, gradients);
    free_captures(captures, ninputs);
    if (status)
        td_error_prefix("backward");
    return status;
}

td_status td_autograd_grad(int n, td_tensor *const *outputs, td_tensor *const *gradients,
                           int ninputs, td_tensor *const *inputs, td_backward_options options,
                           bool allow_unused, td_tensor **results) {
    td_status status = TD_OK;
    capture *captures = td_calloc((size_t)ninputs + 1, sizeof *captures);
    if (!captures)
        return no_memory();
    for (int k = 0; k < ninputs; k++)
        results[k] = NULL;
    for (int k = 0; k < ninputs; k++) {
        TD_TRY(find_capture(inputs[k], k + 1, &captures[k]));
        captures[k].to = &results[k];
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
    free_captures(captures, ninputs);
    if (status) {
        for (int k = 0; k < ninputs; k++) {
            td_release(results[k]);
            results[k] = NULL;
        }
        td_error_prefix("grad");
    }
    return status;
}
