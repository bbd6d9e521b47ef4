/* node.h: the recorded graph's nodes, private to autograd.
 *
 * A node belongs to the tensors it made and to the edges of later nodes. It holds what its
 * operator's `saves` names; its own results it holds without history, so that no cycle of
 * references arises. One block of memory carries the node and all its parts.
 */
#ifndef TD_AUTOGRAD_NODE_H
#define TD_AUTOGRAD_NODE_H

#include "engine/autograd/autograd.h"
#include "engine/autograd/hooks.h"
#include "engine/autograd/saved.h"
#include "engine/core/observer.h"

/* Where a gradient goes: to result `result` of a node, into a leaf, or nowhere. Owned. */
typedef struct td_edge {
    td_node *node;
    td_tensor *leaf;
    uint32_t result;
} td_edge;

typedef struct td_slot {
    td_edge edge;
    td_tensor *saved; /* owned; NULL when backward does not read it */
    unsigned version; /* of `saved` when it was saved */
    uint8_t dtype, ndim;
    bool present : 1; /* a tensor was given here */
    uint8_t device_type : 7, device_index;
    int64_t *sizes; /* in the node's block */
} td_slot;

/* What few nodes have. */
typedef struct td_notes {
    td_origin origin;   /* the line of the forward call; line 0: not known */
    td_hooks *hooks;    /* owned */
    td_packed **packed; /* what others keep of it: by slot, then by result; owned */
} td_notes;

/* Nodes that are no operators. `apply` works as td_backward_fn over gout -> in (nslots). */
typedef struct td_node_class {
    const char *name;
    td_status (*apply)(void *payload, td_tensor *const *gout, td_tensor **in);
    void (*destroy)(void *payload); /* may not call Lua */
    bool is_function;               /* function.h: nothing but td_function has it */
} td_node_class;

struct td_node {
    atomic_int refs;
    bool released;               /* what it saved was given up by a backward */
    bool give_up;                /* while it ran, by another: to be done when it has run */
    uint8_t running;             /* times, one within the other */
    uint8_t nparams, saved_outs; /* saved_outs: bits of results */
    uint16_t nresults;
    uint32_t nslots;
    const td_op *op; /* or */
    const td_node_class *node_class;
    const char *name; /* with node_class: instead of the class's; static */
    void *payload;
    uint64_t sequence;
    td_slot *slots; /* op->nlooks parameters, then elements of tensor lists */
    td_value *args; /* copies; their tensors are in the slots */
    td_tensor *saved_out[TD_MAX_RESULTS];
    unsigned out_version[TD_MAX_RESULTS];
    td_autograd **retained; /* per result: where retain_grad wants it (weak); NULL: nowhere */
    td_notes *notes;        /* owned; NULL: nothing was noted */
    td_node *next_dead;     /* while being freed */
    size_t bytes;
};

/* Is this a node of a function (function.h)? */
static inline bool td_node_is_function(const td_node *node) {
    return node->node_class && node->node_class->is_function;
}

/* What backward of a call will read: bits of parameters, and of results. An argument that only the
 * gradient of a constant would read is not kept. */
typedef struct td_saving {
    uint32_t args;
    uint8_t outs;
} td_saving;
td_saving td_saving_of(const td_op *op, const td_value *args);

/* The node of a call that saves the arguments of these bits; of those that the call will overwrite
 * it saves copies. */
td_node *td_node_new(const td_call *call, uint32_t saved, int nresults, td_status *status);
/* inputs[k], where there is one, is what slot k will be: gradients are brought to its shape. NULL:
 * they come as they should. */
td_node *td_node_new_custom(const td_node_class *node_class, void *payload, int nslots,
                            td_tensor *const *inputs, int nresults, td_status *status);
/* Its notes, made where there are none; NULL: out of memory (message set). */
td_notes *td_node_notes(td_node *node);
/* Room for the marks of retain_grad of its results. */
td_status td_node_make_retained(td_node *node) TD_MUST_CHECK;
/* td_node_retain, in place. */
static inline td_node *node_retain(td_node *node) {
    if (node)
        atomic_fetch_add_explicit(&node->refs, 1, memory_order_relaxed);
    return node;
}
/* Give up saved tensors and custom payload, keeping the edges. */
void td_node_release_saved(td_node *node);

/* What backward reads, seen with its history where backward is recorded: a new tensor, or x
 * (stolen), or the leaf of the edge. */
td_status td_saved_with_history(td_tensor *x, const td_edge *history,
                                td_tensor **out) TD_MUST_CHECK;
/* Has what a node saved been written since? */
td_status td_check_version(const td_node *node, const td_tensor *saved,
                           unsigned expected) TD_MUST_CHECK;
/* A tensor of inference_mode is to be saved. */
td_status td_fail_inference(void);
/* Give what the node of a call has saved into the custody of others (td_modes.keeper). */
td_status td_node_pack(td_node *node) TD_MUST_CHECK;

/* The edge to follow from an input (new references inside). */
td_edge td_edge_of(td_tensor *x);
void td_edge_release(td_edge *edge);

/* x's autograd part, made when missing; NULL: out of memory (message set). */
td_autograd *td_autograd_get(td_tensor *x);
/* Make room for x's mark of retain_grad on the node that it will be a result of. */
td_status td_autograd_expect(const td_tensor *x, td_node *node) TD_MUST_CHECK;
/* Make x, which has its autograd part, result `result` of a node (its own reference is taken). A
 * mark of retain_grad moves along where the node has room for it; hooks stay with the history that
 * they were registered for. */
void td_autograd_attach(td_tensor *x, td_node *node, uint32_t result);

/* To be called when a->grad was set: is it one that may lead back to its tensor? */
void td_autograd_suspect(td_autograd *a);
/* See each of this thread's; nothing may be added or taken out meanwhile. */
void td_suspects_walk(void (*see)(void *ctx, const td_autograd *a), void *ctx);

/* A new hook at the end of the list at `place`, which is made where there is none; place NULL: the
 * thread's error says why there can be none. Two references: the list's and *out. */
td_status td_hooks_add(td_hooks **place, td_hook_kind kind, uint32_t result,
                       const td_hook_class *hook_class, void *payload, td_hook **out) TD_MUST_CHECK;

/* The node of the operator that a node of a write through a view wraps; NULL: it is none. */
td_node *td_view_inner(const td_node *node);
/* Give a stale view the history of its base. */
td_status td_view_refresh(td_tensor *x) TD_MUST_CHECK;
/* What a write through a view will change: made by prepare, put in force by publish. */
typedef struct td_write {
    td_node *outer;     /* the history that the base will have; owned */
    td_node *refreshed; /* the view's, through it; owned */
} td_write;
/* For result `result` of `node`, which is written through the view x, read by slot `self`. */
td_status td_view_prepare(td_tensor *x, td_node *node, uint32_t result, uint32_t self,
                          td_write *write) TD_MUST_CHECK;
void td_view_publish(td_tensor *x, td_write *write);
void td_view_abandon(td_write *write);

/* While a node runs: does the backward that runs it need the gradient of this slot? Where gradients
 * of chosen inputs are asked for, only what leads to them is needed. */
bool td_node_wants(const td_node *node, uint32_t slot);
/* In backward through a node, which is the innermost that the thread runs: is what it saved given
 * up behind it? Then the gradient of a result may be let go of before. */
bool td_node_gives_up(const td_node *node);
void td_node_drop_gradient(const td_node *node, int result);

/* Run one node: gout[nresults] -> in[nslots] (new references). Hooks are the caller's to run. */
td_status td_node_apply(td_node *node, td_tensor *const *gout, td_tensor **in) TD_MUST_CHECK;
/* The backward of a part (TD_OP_PART): g is added to the part of `sum` that it is the gradient of.
 * Nothing is recorded. */
td_status td_node_add_part(td_node *node, td_tensor *g, td_tensor *sum) TD_MUST_CHECK;

#endif
