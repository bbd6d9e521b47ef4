/* view.c: writes through views.
 *
 * y = x:view(...); y:mul_(2) changes x. The operator is recorded for y as ever, then wrapped in a
 * node that takes the gradient of all of x, runs the operator's backward on y's part of it and puts
 * the result back in its place; that node becomes x's history. Other views of x notice by the
 * storage's version that their history is stale, and take x's, seen through as_strided.
 */
#include "engine/autograd/node.h"
#include "engine/core/memory.h"

#include <string.h>

typedef struct geometry {
    int ndim;
    int64_t sizes[TD_MAX_DIMS], strides[TD_MAX_DIMS];
} geometry;

typedef struct write_payload {
    td_node *inner; /* the operator on the view; owned */
    geometry view;
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

bool td_view_is_stale(const td_tensor *x) {
    const td_tensor *base = x->base;
    return base && base->autograd && base->autograd->grad_fn &&
           x->view_version != td_tensor_version(x);
}

td_status td_view_refresh(td_tensor *x) {
    td_tensor *base = x->base;
    const td_op *op = TD_OP(as_strided);
    td_value args[4] = {TD_T(base), TD_INTS(x->ndim, x->sizes), TD_INTS(x->ndim, x->strides),
                        TD_I(offset_in(x, base))};
    td_status status;
    td_node *node = td_node_new(op, args, 1, &status);
    if (!node)
        return status;
    node->slots[0].edge = td_edge_of(base);
    status = td_autograd_attach(x, node, 0);
    td_node_release(node);
    return status;
}

/* ---- the node that wraps a write ---- */

static td_status apply_write(void *payload, td_tensor *const *gout, td_tensor **in) {
    write_payload *p = payload;
    td_status status = TD_OK;
    td_tensor *whole = NULL, *part = NULL, *g = NULL;
    td_tensor **inner = td_calloc(p->inner->nslots, sizeof *inner);
    if (!inner)
        return td_fail(TD_ENOMEM, "out of memory");
    TD_TRY(TD_APPLY(&whole, clone, TD_T(gout[0]), TD_STRING("contiguous")));
    TD_TRY(TD_APPLY(&part, as_strided, TD_T(whole), TD_INTS(p->view.ndim, p->view.sizes),
                    TD_INTS(p->view.ndim, p->view.strides), TD_I(p->offset)));
    TD_TRY(TD_APPLY(&g, clone, TD_T(part)));
    TD_TRY(td_node_apply(p->inner, &g, inner));
    if (inner[0])
        TD_TRY(TD_APPLY_INPLACE(copy_, TD_T(part), TD_T(inner[0])));
    else
        TD_TRY(TD_APPLY_INPLACE(zero_, TD_T(part)));
    in[0] = td_retain(whole);
    for (uint32_t k = 1; k < p->inner->nslots; k++) {
        in[k] = inner[k];
        inner[k] = NULL;
    }
done:
    for (uint32_t k = 0; k < p->inner->nslots; k++)
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

static const td_node_class write_class = {"CopySlicesBackward", apply_write, destroy_write};

td_status td_view_written(td_tensor *x, td_node *node) {
    td_tensor *base = x->base;
    td_status status = TD_OK;
    td_node *outer = NULL;
    write_payload *p = td_malloc(sizeof *p);
    if (!p)
        return td_fail(TD_ENOMEM, "out of memory");
    p->inner = td_node_retain(node);
    p->offset = offset_in(x, base);
    read_geometry(x, &p->view);
    /* The gradient of the base is row-major; a view of a base that is not has other strides there.
     */
    if (!base->contiguous) {
        destroy_write(p);
        return td_fail(TD_EAUTOGRAD,
                       "autograd can't follow a write through a view of a tensor that "
                       "is not row-major; write into x:contiguous() instead");
    }
    outer = td_node_new_custom(&write_class, p, (int)node->nslots, 1, &status);
    if (!outer) {
        destroy_write(p);
        return status;
    }
    outer->slots[0].edge = td_edge_of(base);
    for (uint32_t k = 1; k < node->nslots; k++) {
        outer->slots[k].edge = node->slots[k].edge;
        td_node_retain(node->slots[k].edge.node);
        td_retain(node->slots[k].edge.leaf);
    }
    status = td_autograd_attach(base, outer, 0);
    if (status == TD_OK)
        status = td_view_refresh(x);
    td_node_release(outer);
    return status;
}
