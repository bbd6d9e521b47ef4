/* autograd.h: the recorded graph, backward through it, and the modes that steer recording. */
#ifndef TD_AUTOGRAD_H
#define TD_AUTOGRAD_H

#include "engine/core/modes.h"
#include "engine/ops/op.h"

typedef struct td_node td_node;
struct td_hooks;

/* What autograd knows of one tensor; hangs off td_tensor.autograd. */
typedef struct td_autograd {
    td_tensor *grad;     /* accumulated gradient of a leaf (or kept by retain_grad); owned */
    td_node *grad_fn;    /* the node that made it; owned; NULL for leaves */
    uint32_t result;     /* which result of grad_fn it is */
    bool retains_grad;   /* keep grad though not a leaf */
    atomic_uint suspect; /* place among those whose grad may lead back to them, from 1; 0: none */
    struct td_hooks *hooks; /* of a leaf (autograd/hooks.h); owned */
} td_autograd;

/* ---- tensors ---- */

/* Has the tensor that this view looks into got another history since the view was made? */
static inline bool td_view_is_stale(const td_tensor *x) {
    const td_tensor *base = x->base;
    return base && base->autograd && base->autograd->grad_fn &&
           x->view_version != td_tensor_version(x);
}
/* Did no recorded operator make it? */
static inline bool td_is_leaf(const td_tensor *x) {
    return !(x->autograd && x->autograd->grad_fn) && !td_view_is_stale(x);
}

/* EAUTOGRAD for integer tensors, for setting false on a result of an operator, and outside of
 * inference mode for a tensor made in it. */
td_status td_set_requires_grad(td_tensor *x, bool requires_grad) TD_MUST_CHECK;
td_status td_retain_grad(td_tensor *x) TD_MUST_CHECK;
/* x becomes a tensor without history, in place. EAUTOGRAD for views. */
td_status td_detach(td_tensor *x) TD_MUST_CHECK;
td_tensor *td_get_grad(const td_tensor *x); /* borrowed, may be NULL */
/* Replace (x's shape, dtype, device) or clear (NULL) the gradient; takes its own reference. */
td_status td_set_grad(td_tensor *x, td_tensor *grad) TD_MUST_CHECK;
/* Name of the operator that made it, with "Backward" as PyTorch prints it; NULL for leaves. */
const char *td_grad_fn_name(const td_tensor *x);

/* ---- nodes ---- */

/* The node that made x (new reference); NULL for leaves, and with a message when memory is out. */
td_node *td_get_grad_fn(td_tensor *x);
td_node *td_node_retain(td_node *node); /* NULL is fine, here and below */
void td_node_release(td_node *node);
const char *td_node_name(const td_node *node);
/* The inputs of the call that a node stands for: where the gradient of the k-th, from 0, goes: to
 * result *result of *node or into *leaf, both borrowed and NULL where it goes nowhere. False: it
 * has no k-th input that is a tensor. */
bool td_node_next(const td_node *node, int k, td_node **next, uint32_t *result, td_tensor **leaf);
int td_node_ninputs(const td_node *node); /* k of td_node_next runs up to this */

/* ---- recording: called by the dispatcher ---- */

/* Where calls are recorded (td_is_recording), is one that reads x? */
static inline bool td_is_followed(const td_tensor *x) {
    return x->requires_grad || (TD_UNLIKELY(x->base != NULL) && td_view_is_stale(x));
}

/* A call on its way into the graph. */
typedef struct td_record {
    td_node *node;           /* owned */
    struct td_write *writes; /* given views: the histories that their bases will have */
    int nwrites;
} td_record;

/* Make the node of a call whose results are there but not written: save what backward reads, make
 * room for the results' histories. All that can fail is done here; nothing is visible yet. */
td_status td_autograd_prepare(td_call *call, td_record *record) TD_MUST_CHECK;
/* The results have been written (and versions bumped): they get their history. */
void td_autograd_publish(td_call *call, td_record *record);
uint64_t td_autograd_sequence(const td_record *record);
/* After the call: what was saved goes to who keeps it (autograd/saved.h). */
td_status td_autograd_hand_over(td_record *record) TD_MUST_CHECK;
/* Let go of what a record holds, whether it was published or not. */
void td_autograd_drop(td_record *record);

/* A result of recorded operators was overwritten by values that depend on nothing: it becomes a
 * plain tensor. Leaves are left alone. */
void td_autograd_forget(td_tensor *x);

/* x has become what `view`, a view of x, is: it takes over the view's history, if that has one. The
 * version has been bumped. Before that td_autograd_expect_turn, which may run out of memory. */
td_status td_autograd_expect_turn(const td_tensor *x, const td_tensor *view) TD_MUST_CHECK;
void td_autograd_turn(td_tensor *x, const td_tensor *view);

/* ---- backward ---- */

typedef struct td_backward_options {
    bool retain_graph; /* keep what nodes saved, for another backward */
    bool create_graph; /* record backward itself (implies retain_graph) */
} td_backward_options;

/* Accumulate gradients of sum(outputs * gradients) into the leaves. gradients[i] may be NULL for a
 * one-element output. Errors as PyTorch's: no grad_fn, non-scalar without gradient, second
 * backward, saved tensor changed in place. Iterative: the depth of the graph does not matter. */
td_status td_backward(int n, td_tensor *const *outputs, td_tensor *const *gradients,
                      td_backward_options options) TD_MUST_CHECK;
/* The same into the .grad of `inputs` alone (leaves or not). */
td_status td_backward_into(int n, td_tensor *const *outputs, td_tensor *const *gradients,
                           int ninputs, td_tensor *const *inputs,
                           td_backward_options options) TD_MUST_CHECK;

/* Gradients with respect to `inputs` alone: results[i] new, NULL where unused (EAUTOGRAD unless
 * allow_unused). Leaves' grad fields are not touched. */
td_status td_autograd_grad(int n, td_tensor *const *outputs, td_tensor *const *gradients,
                           int ninputs, td_tensor *const *inputs, td_backward_options options,
                           bool allow_unused, td_tensor **results) TD_MUST_CHECK;

/* Does the backward that runs on this thread keep what nodes saved, for another? false: none runs,
 * or it does not. */
bool td_backward_retains(void);

/* Let go of tensors of this thread that only their own gradient's history holds (x.grad = f(x),
 * create_graph). Its cost is what lies behind gradients with a history; nothing where none has. */
void td_autograd_collect(void);

/* One thing that a foreign object, which the engine does not know, holds: a payload of a hook, the
 * data of a function, what a keeper packed, or what those hold in turn. */
typedef struct td_foreign {
    const void *holder;
    const void *held; /* a td_tensor, by one reference; or a foreign object */
    bool tensor;
} td_foreign;
/* The same of what is held by hooks, functions and keepers too, given all that they hold, each
 * reference once. (Sorted on the way.) */
void td_autograd_collect_foreign(size_t n, td_foreign *foreign);

/* For td_tensor_destroy. */
void td_autograd_free(td_autograd *autograd);

#endif
