/* cycles.c: tensors that nothing but their own gradient holds.
 *
 * x.grad = f(x), or backward with create_graph: the gradient's history leads back to x. References
 * alone never let go of such a circle. Whatever has a gradient that may lead somewhere is a
 * suspect; a collection walks all that lies behind the suspects, counts the references that come
 * from within, and takes the gradient from those that nobody holds from without.
 *
 * It looks at the suspects of its own thread; what others share with them they hold from without.
 */
#include "engine/autograd/function.h"
#include "engine/autograd/node.h"
#include "engine/core/memory.h"

#include <pthread.h>
#include <string.h>

/* ---- suspects ---- */

typedef struct suspect {
    td_autograd *autograd;
    pthread_t thread;
} suspect;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static suspect *suspects;
static uint32_t nsuspects, capacity;

static bool may_lead_somewhere(const td_tensor *grad) {
    return grad && (grad->requires_grad || grad->autograd || grad->base);
}

/* Without room it is no suspect: the circle, if it is one, stays. */
static void add(td_autograd *a) {
    if (nsuspects == capacity) {
        uint32_t more = capacity ? 2 * capacity : 64;
        suspect *grown = td_realloc(suspects, more * sizeof *grown);
        if (!grown)
            return;
        suspects = grown;
        capacity = more;
    }
    suspects[nsuspects] = (suspect){a, pthread_self()};
    a->suspect = ++nsuspects;
}

static void take_out(td_autograd *a) {
    suspect last = suspects[--nsuspects];
    suspects[a->suspect - 1] = last;
    last.autograd->suspect = a->suspect;
    a->suspect = 0;
}

void td_autograd_suspect(td_autograd *a) {
    bool is = may_lead_somewhere(a->grad);
    if (TD_LIKELY(is == (a->suspect != 0)))
        return;
    pthread_mutex_lock(&lock);
    if (is)
        add(a);
    else
        take_out(a);
    pthread_mutex_unlock(&lock);
}

/* ---- what lies behind them ---- */

/* A tensor or a node. */
typedef struct object {
    const void *at;
    bool tensor, live;
    int inner;     /* references from other objects */
    uint32_t next; /* of those that live and whose own are not yet seen, from 1; 0: the last */
} object;

typedef struct walk {
    object *objects;
    uint32_t n, room;
    uint32_t *table; /* by address: place in objects, from 1; a power of two of them */
    uint32_t size;
    uint32_t fresh; /* the first of those that live and whose own are not yet seen, from 1 */
    bool failed;
} walk;

static uint32_t place_of(const walk *w, const void *at) {
    uint32_t k = (uint32_t)((uintptr_t)at >> 4) * 2654435761u & (w->size - 1);
    while (w->table[k] && w->objects[w->table[k] - 1].at != at)
        k = (k + 1) & (w->size - 1);
    return k;
}

static bool grow(walk *w) {
    uint32_t room = w->room ? 2 * w->room : 256;
    object *objects = td_realloc(w->objects, room * sizeof *objects);
    if (objects)
        w->objects = objects;
    uint32_t *table = objects ? td_calloc(2 * room, sizeof *table) : NULL;
    if (!table)
        return false;
    td_free(w->table);
    w->table = table;
    w->size = 2 * room;
    w->room = room;
    for (uint32_t k = 0; k < w->n; k++)
        w->table[place_of(w, w->objects[k].at)] = k + 1;
    return true;
}

/* The object at an address, made when it is new; NULL: out of memory, or nothing there. */
static object *reach(walk *w, const void *at, bool tensor) {
    if (!at || w->failed)
        return NULL;
    if (w->n == w->room && !grow(w)) {
        w->failed = true;
        return NULL;
    }
    uint32_t k = place_of(w, at);
    if (!w->table[k]) {
        w->objects[w->n] = (object){.at = at, .tensor = tensor};
        w->table[k] = ++w->n;
    }
    return &w->objects[w->table[k] - 1];
}

typedef void visit_fn(walk *w, const void *at, bool tensor);

static void visit_tensor(walk *w, const td_tensor *x, visit_fn *visit) {
    visit(w, x->base, true);
    if (!x->autograd)
        return;
    visit(w, x->autograd->grad, true);
    visit(w, x->autograd->grad_fn, false);
}

static void visit_function(walk *w, const td_node *node, visit_fn *visit) {
    td_tensor *tensor;
    td_node *history;
    for (int k = 0; td_function_held(node, k, &tensor, &history); k++) {
        visit(w, tensor, true);
        visit(w, history, false);
    }
}

/* What nodes of other classes hold besides counts as held from without. */
static void visit_node(walk *w, const td_node *node, visit_fn *visit) {
    for (uint32_t k = 0; k < node->nslots; k++) {
        visit(w, node->slots[k].saved, true);
        visit(w, node->slots[k].edge.leaf, true);
        visit(w, node->slots[k].edge.node, false);
    }
    for (int k = 0; k < TD_MAX_RESULTS; k++)
        visit(w, node->saved_out[k], true);
    if (node->payload)
        visit(w, td_view_inner(node), false);
    if (td_node_is_function(node))
        visit_function(w, node, visit);
}

static void visit_held(walk *w, uint32_t k, visit_fn *visit) {
    object o = w->objects[k];
    if (o.tensor)
        visit_tensor(w, o.at, visit);
    else
        visit_node(w, o.at, visit);
}

static void count(walk *w, const void *at, bool tensor) {
    object *o = reach(w, at, tensor);
    if (o)
        o->inner++;
}

static void see(walk *w, const void *at, bool tensor) {
    (void)reach(w, at, tensor);
}

/* ---- what is held from without ---- */

static int references(const object *o) {
    return o->tensor ? atomic_load(&((td_tensor *)o->at)->refs)
                     : atomic_load(&((td_node *)o->at)->refs);
}

static void enliven(walk *w, const void *at, bool tensor) {
    object *o = reach(w, at, tensor);
    if (!o || o->live)
        return;
    o->live = true;
    o->next = w->fresh;
    w->fresh = (uint32_t)(o - w->objects) + 1;
}

/* What lives keeps what it holds. */
static void spread_life(walk *w) {
    for (uint32_t k = 0; k < w->n; k++)
        if (references(&w->objects[k]) > w->objects[k].inner)
            enliven(w, w->objects[k].at, w->objects[k].tensor);
    while (w->fresh) {
        uint32_t k = w->fresh - 1;
        w->fresh = w->objects[k].next;
        visit_held(w, k, enliven);
    }
}

static void walk_suspects(walk *w) {
    pthread_mutex_lock(&lock);
    for (uint32_t k = 0; k < nsuspects; k++)
        if (pthread_equal(suspects[k].thread, pthread_self()))
            see(w, suspects[k].autograd->grad, true);
    pthread_mutex_unlock(&lock);
    for (uint32_t k = 0; k < w->n && !w->failed; k++)
        visit_held(w, k, count);
    if (!w->failed)
        spread_life(w);
}

/* Tensors with a gradient that only the circle holds, at the front; how many. */
static uint32_t gather_garbage(walk *w) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < w->n; k++) {
        object o = w->objects[k];
        td_tensor *x = o.tensor && !o.live ? (td_tensor *)o.at : NULL;
        if (x && x->autograd && x->autograd->suspect)
            w->objects[n++].at = td_retain(x);
    }
    return n;
}

void td_autograd_collect(void) {
    walk w = {0};
    walk_suspects(&w);
    uint32_t n = w.failed ? 0 : gather_garbage(&w);
    for (uint32_t k = 0; k < n; k++) {
        td_tensor *x = (td_tensor *)w.objects[k].at, *grad = x->autograd->grad;
        x->autograd->grad = NULL;
        td_autograd_suspect(x->autograd);
        td_release(grad);
    }
    for (uint32_t k = 0; k < n; k++)
        td_release((td_tensor *)w.objects[k].at);
    td_free(w.objects);
    td_free(w.table);
}
