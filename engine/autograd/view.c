/* view.c: writes through views.
 *
 * y = x:view(...); y:mul_(2) changes x. The operator is recorded for y as ever, then wrapped in a
 * node that takes the gradient of all of x, runs the operator's backward on y's part of it and puts
 * the result back in its place; that node becomes x's history. Other views of x notice by the
 * storage's version that their history is stale, and take x's, seen through as_strided.
 * The gradient is laid out as the base is, so that what is a view of it is one of the gradient.
 */
#include "engine/autograd/function.h"
#include "engine/autograd/node.h"
#include "engine/core/memory.h"

#include <string.h>

typedef struct geometry {
    int ndim;
    int64_t sizes[TD_MAX_DIMS], strides[TD_MAX_DIMS];
} geometry;

typedef struct write_payload {
    td_node *inner;  /* the operator on the view; owned */
    uint32_t result; /* which of its results the view is */
    uint32_t self;   /* the slot by which it reads the view */
    geometry base, view;
    int64_t offset; /* of the view's first element from the base's */
} write_payload;

static void read_geometry(const td_tensor *x, geometry *g) {
    g->ndim = x->ndim;
    memcpy(g->sizes, x->sizes, sizeof(int64_t) * x->ndim);
    memcpy(g->strides, x->strides, sizeof(int64_t) * x->ndim);
}

static int64_t offset_in(const td_tensor *view, const td_tensor *base) {
    return ((char *)view->data - (char *)base->data) / (int64_t)td_tensor_itemsize(base);
}

/* The last element that sizes and strides reach, counted from their first. */
static int64_t reach(int ndim, const int64_t *sizes, const int64_t *strides) {
    int64_t last = 0;
    for (int d = 0; d < ndim; d++)
        last += sizes[d] ? (sizes[d] - 1) * strides[d] : 0;
    return last;
}

/* as_strided may see, and as_strided_ leave behind, more than the base's history knows of. */
static td_status check_within(const td_tensor *x) {
    const td_tensor *base = x->base;
    int64_t first = offset_in(x, base), last = first + reach(x->ndim, x->sizes, x->strides);
    if (x->numel == 0 || (first >= 0 && last <= reach(base->ndim, base->sizes, base->strides)))
        return TD_OK;
    return td_fail(TD_EAUTOGRAD, "autograd can't follow a view that reaches beyond the tensor it "
                                 "looks into (by as_strided?); write into a clone() of it");
}

/* The node that sees x, a view of base, in what `history` gives of all of base. */
static td_node *seen_through(td_tensor *x, td_edge history, td_status *status) {
    td_tensor *base = x->base;
    td_value args[6] = {TD_T(base),
                        TD_INTS(x->ndim, x->sizes),
                        TD_INTS(x->ndim, x->strides),
                        TD_I(offset_in(x, base)),
                        TD_INTS(base->ndim, base->strides),
                        TD_B(td_tensor_overlaps(base))};
    td_call call = {.op = TD_OP(strided), .args = args};
    *status = check_within(x);
    td_node *node = *status ? NULL : td_node_new(&call, 0, 1, status);
    if (node)
        node->slots[0].edge = history;
    else
        td_edge_release(&history);
    return node;
}

/* What a function made of its input's memory is known to that function alone. */
static td_status check_maker(const td_tensor *x) {
    const td_node *node = x->autograd ? x->autograd->grad_fn : NULL;
    if (TD_LIKELY(!node || !td_node_is_function(node)) || x->base->autograd->grad_fn == node)
        return TD_OK;
    return td_fail(TD_EAUTOGRAD,
                   "a view that a function (%s) returned, or what it looks into, was "
                   "written in place: return a clone() from forward",
                   td_node_name(node));
}

td_status td_view_refresh(td_tensor *x) {
    td_status status = check_maker(x);
    if (status)
        return status;
    if (!td_autograd_get(x))
        return TD_ENOMEM;
    td_node *node = seen_through(x, td_edge_of(x->base), &status);
    if (!node)
        return status;
    status = td_autograd_expect(x, node);
    if (status == TD_OK)
        td_autograd_attach(x, node, 0);
    td_node_release(node);
    return status;
}

/* ---- the node that wraps a write ---- */

/* Run the operator's backward for the gradient of the one result. */
static td_status apply_inner(const write_payload *p, td_tensor *g, td_tensor **inner) {
    td_tensor *few[TD_MAX_RESULTS] = {NULL}, **gout = few;
    uint32_t n = p->inner->nresults;
    if (n > TD_MAX_RESULTS && !(gout = td_calloc(n, sizeof *gout)))
        return td_fail(TD_ENOMEM, "out of memory");
    gout[p->result] = g;
    td_status status = td_node_apply(p->inner, gout, inner);
    if (gout != few)
        td_free(gout);
    return status;
}

static td_status apply_write(void *payload, td_tensor *const *gout, td_tensor **in) {
    write_payload *p = payload;
    td_status status = TD_OK;
    td_tensor *whole = NULL, *part = NULL, *g = NULL;
    uint32_t self = p->self, n = p->inner->nslots;
    td_tensor **inner = td_calloc(n, sizeof *inner);
    if (!inner)
        return td_fail(TD_ENOMEM, "out of memory");
    td_value strides = TD_INTS(p->base.ndim, p->base.strides);
    int64_t length = reach(p->base.ndim, p->base.sizes, p->base.strides) + 1;
    TD_TRY(TD_APPLY(&whole, laid_out, TD_T(gout[0]), strides, TD_I(length)));
    TD_TRY(TD_APPLY(&part, strided, TD_T(whole), TD_INTS(p->view.ndim, p->view.sizes),
                    TD_INTS(p->view.ndim, p->view.strides), TD_I(p->offset), strides, TD_B(false)));
    TD_TRY(TD_APPLY(&g, clone, TD_T(part)));
    TD_TRY(apply_inner(p, g, inner));
    if (inner[self])
        TD_TRY(TD_APPLY_INPLACE(copy_, TD_T(part), TD_T(inner[self])));
    else
        TD_TRY(TD_APPLY_INPLACE(zero_, TD_T(part)));
    in[0] = td_retain(whole);
    for (uint32_t k = 0; k < n; k++) {
        if (k == self)
            continue;
        in[k + 1] = inner[k];
        inner[k] = NULL;
    }
done:
    for (uint32_t k = 0; k < n; k++)
        td_release(inner[k]);
    td_free(inner);
    td_release(whole);
    td_release(part);
    td_release(g);
    return status;
}

static void destroy_write(void *payload) {
    write_payload *p = payload;
    td_node_release(p->inner);
    td_free(p);
}

static const td_node_class write_class = {
    .name = "CopySlicesBackward", .apply = apply_write, .destroy = destroy_write};

td_node *td_view_inner(const td_node *node) {
    return node->node_class == &write_class ? ((write_payload *)node->payload)->inner : NULL;
}

static td_status new_payload(const td_tensor *x, td_node *node, uint32_t result, uint32_t self,
                             write_payload **out) {
    const td_tensor *base = x->base;
    if (td_tensor_overlaps(base))
        return td_fail(TD_EAUTOGRAD,
                       "autograd can't follow a write through a view of a tensor whose "
                       "elements share memory (an expanded one?); write into a clone()");
    write_payload *p = td_malloc(sizeof *p);
    if (!p)
        return td_fail(TD_ENOMEM, "out of memory");
    p->inner = node_retain(node);
    p->result = result;
    p->self = self;
    p->offset = offset_in(x, base);
    read_geometry(x, &p->view);
    read_geometry(base, &p->base);
    *out = p;
    return TD_OK;
}

/* Slots of the wrapping node: 0 is the base; the others are the operator's, but for the one by
 * which it reads the view. */
static td_status wrap(td_tensor *x, td_node *node, uint32_t result, uint32_t self, td_node **out) {
    write_payload *p = NULL;
    td_status status = new_payload(x, node, result, self, &p);
    if (status)
        return status;
    td_node *outer = td_node_new_custom(&write_class, p, (int)node->nslots + 1, NULL, 1, &status);
    if (!outer) {
        destroy_write(p);
        return status;
    }
    outer->slots[0].edge = td_edge_of(x->base);
    for (uint32_t k = 0; k < node->nslots; k++) {
        if (k == self)
            continue;
        outer->slots[k + 1].edge = node->slots[k].edge;
        node_retain(node->slots[k].edge.node);
        td_retain(node->slots[k].edge.leaf);
    }
    *out = outer;
    return TD_OK;
}

td_status td_view_prepare(td_tensor *x, td_node *node, uint32_t result, uint32_t self,
                          td_write *write) {
    if (!td_autograd_get(x->base) || !td_autograd_get(x))
        return TD_ENOMEM;
    td_status status = check_maker(x);
    if (status == TD_OK)
        status = wrap(x, node, result, self, &write->outer);
    if (status)
        return status;
    td_edge history = {.node = node_retain(write->outer)};
    write->refreshed = seen_through(x, history, &status);
    if (status == TD_OK)
        status = td_autograd_expect(x->base, write->outer);
    return status ? status : td_autograd_expect(x, write->refreshed);
}

void td_view_publish(td_tensor *x, td_write *write) {
    td_autograd_attach(x->base, write->outer, 0);
    td_autograd_attach(x, write->refreshed, 0);
}

void td_view_abandon(td_write *write) {
    td_node_release(write->outer);
    td_node_release(write->refreshed);
    *write = (td_write){0};
}
