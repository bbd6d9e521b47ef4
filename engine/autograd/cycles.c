/* cycles.c: tensors that nothing but their own gradient holds.
 *
 * x.grad = f(x), or backward with create_graph: the gradient's history leads back to x. References
 * alone never let go of such a circle. Whatever has a gradient that may lead somewhere is a
 * suspect; a collection walks all that lies behind the suspects, counts the references that come
 * from within, and takes the gradient from those that nobody holds from without.
 *
 * It looks at the suspects of its own thread; what others share with them they hold from without.
 *
 * Hooks, functions and keepers of saved tensors hold objects that the engine does not know (a
 * closure of a script), and those may hold tensors in turn: who knows them tells what holds what
 * (td_foreign), and what nobody else holds loses its hooks, and what it saved.
 */
#include "engine/autograd/function.h"
#include "engine/autograd/node.h"
#include "engine/core/memory.h"

#include <stdlib.h>
#include <string.h>

/* ---- what lies behind them ---- */

typedef enum kind { TENSOR, NODE, FOREIGN } kind;

typedef struct object {
    const void *at;
    kind kind;
    bool live;
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
    const td_foreign *foreign; /* by holder */
    size_t nforeign;
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
static object *reach(walk *w, const void *at, kind of) {
    if (!at || w->failed)
        return NULL;
    if (w->n == w->room && !grow(w)) {
        w->failed = true;
        return NULL;
    }
    uint32_t k = place_of(w, at);
    if (!w->table[k]) {
        w->objects[w->n] = (object){.at = at, .kind = of};
        w->table[k] = ++w->n;
    }
    return &w->objects[w->table[k] - 1];
}

typedef void visit_fn(walk *w, const void *at, kind of);

static void visit_hooks(walk *w, const td_hooks *hooks, visit_fn *visit) {
    const void *payload;
    for (int k = 0; td_hooks_payload(hooks, k, &payload); k++)
        visit(w, payload, FOREIGN);
}

static void visit_tensor(walk *w, const td_tensor *x, visit_fn *visit) {
    visit(w, x->base, TENSOR);
    if (!x->autograd)
        return;
    visit(w, x->autograd->grad, TENSOR);
    visit(w, x->autograd->grad_fn, NODE);
    visit_hooks(w, x->autograd->hooks, visit);
}

static void visit_function(walk *w, const td_node *node, visit_fn *visit) {
    td_tensor *tensor;
    td_node *history;
    visit(w, td_function_data(node), FOREIGN);
    for (int k = 0; td_function_held(node, k, &tensor, &history); k++) {
        visit(w, tensor, TENSOR);
        visit(w, history, NODE);
    }
}

static void visit_notes(walk *w, const td_node *node, visit_fn *visit) {
    td_packed **packed = node->notes->packed;
    visit_hooks(w, node->notes->hooks, visit);
    for (uint32_t k = 0; packed && k < node->nslots + TD_MAX_RESULTS; k++)
        visit(w, packed[k] ? td_packed_payload(packed[k]) : NULL, FOREIGN);
}

/* The first of those that a foreign object holds; they follow one another. */
static size_t find_foreign(const walk *w, const void *holder) {
    size_t low = 0, high = w->nforeign;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if ((uintptr_t)w->foreign[middle].holder < (uintptr_t)holder)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void visit_foreign(walk *w, const void *holder, visit_fn *visit) {
    for (size_t k = find_foreign(w, holder); k < w->nforeign && w->foreign[k].holder == holder; k++)
        visit(w, w->foreign[k].held, w->foreign[k].tensor ? TENSOR : FOREIGN);
}

/* What nodes of other classes hold besides counts as held from without. */
static void visit_node(walk *w, const td_node *node, visit_fn *visit) {
    for (uint32_t k = 0; k < node->nslots; k++) {
        visit(w, node->slots[k].saved, TENSOR);
        visit(w, node->slots[k].edge.leaf, TENSOR);
        visit(w, node->slots[k].edge.node, NODE);
    }
    for (int k = 0; k < TD_MAX_RESULTS; k++)
        visit(w, node->saved_out[k], TENSOR);
    if (node->payload)
        visit(w, td_view_inner(node), NODE);
    if (td_node_is_function(node) && node->payload)
        visit_function(w, node, visit);
    if (node->notes)
        visit_notes(w, node, visit);
}

static void visit_held(walk *w, uint32_t k, visit_fn *visit) {
    object o = w->objects[k];
    if (o.kind == TENSOR)
        visit_tensor(w, o.at, visit);
    else if (o.kind == NODE)
        visit_node(w, o.at, visit);
    else
        visit_foreign(w, o.at, visit);
}

static void count(walk *w, const void *at, kind of) {
    object *o = reach(w, at, of);
    if (o)
        o->inner++;
}

static void see(walk *w, const void *at, kind of) {
    (void)reach(w, at, of);
}

/* ---- what is held from without ---- */

/* A foreign object lives by those that hold it here alone. */
static int references(const object *o) {
    if (o->kind == FOREIGN)
        return 0;
    return o->kind == TENSOR ? atomic_load(&((td_tensor *)o->at)->refs)
                             : atomic_load(&((td_node *)o->at)->refs);
}

static void enliven(walk *w, const void *at, kind of) {
    object *o = reach(w, at, of);
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
            enliven(w, w->objects[k].at, w->objects[k].kind);
    while (w->fresh) {
        uint32_t k = w->fresh - 1;
        w->fresh = w->objects[k].next;
        visit_held(w, k, enliven);
    }
}

static void see_grad(void *ctx, const td_autograd *a) {
    see(ctx, a->grad, TENSOR);
}

/* All that lies behind this thread's suspects, and what others hold of it. */
static void walk_suspects(walk *w) {
    td_suspects_walk(see_grad, w);
    for (size_t k = 0; k < w->nforeign; k++)
        if (w->foreign[k].tensor)
            see(w, w->foreign[k].held, TENSOR);
    for (uint32_t k = 0; k < w->n && !w->failed; k++)
        visit_held(w, k, count);
    if (!w->failed)
        spread_life(w);
}

static bool closes_circles(const object *o) {
    if (o->kind == FOREIGN || o->live)
        return false;
    if (o->kind == NODE) {
        const td_node *node = o->at;
        return node->notes || (node->payload && td_node_is_function(node));
    }
    const td_autograd *a = ((const td_tensor *)o->at)->autograd;
    return a && (a->suspect || a->hooks);
}

/* Those that only circles hold and that may close them, at the front, retained; how many. */
static uint32_t gather_garbage(walk *w) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < w->n; k++) {
        object o = w->objects[k];
        if (!closes_circles(&o))
            continue;
        w->objects[n++] = o;
        if (o.kind == NODE)
            td_node_retain((td_node *)o.at);
        else
            td_retain((td_tensor *)o.at);
    }
    return n;
}

static void open_circle(const object *o) {
    if (o->kind == NODE) {
        td_node *node = (td_node *)o->at;
        td_hooks *hooks = node->notes ? node->notes->hooks : NULL;
        if (node->notes)
            node->notes->hooks = NULL;
        td_hooks_free(hooks);
        td_node_release_saved(node);
        return;
    }
    td_autograd *a = ((td_tensor *)o->at)->autograd;
    td_tensor *grad = a->grad;
    td_hooks *hooks = a->hooks;
    a->grad = NULL;
    a->hooks = NULL;
    td_autograd_suspect(a);
    td_release(grad);
    td_hooks_free(hooks);
}

static void collect(size_t n, const td_foreign *foreign) {
    walk w = {.foreign = foreign, .nforeign = n};
    walk_suspects(&w);
    uint32_t garbage = w.failed ? 0 : gather_garbage(&w);
    for (uint32_t k = 0; k < garbage; k++)
        open_circle(&w.objects[k]);
    for (uint32_t k = 0; k < garbage; k++) {
        if (w.objects[k].kind == NODE)
            td_node_release((td_node *)w.objects[k].at);
        else
            td_release((td_tensor *)w.objects[k].at);
    }
    td_free(w.objects);
    td_free(w.table);
}

static int by_holder(const void *a, const void *b) {
    uintptr_t x = (uintptr_t)((const td_foreign *)a)->holder;
    uintptr_t y = (uintptr_t)((const td_foreign *)b)->holder;
    return (x > y) - (x < y);
}

void td_autograd_collect_foreign(size_t n, td_foreign *foreign) {
    qsort(foreign, n, sizeof *foreign, by_holder);
    collect(n, foreign);
}

void td_autograd_collect(void) {
    collect(0, NULL);
}
