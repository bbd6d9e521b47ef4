/* autograd.h: the recorded graph, backward through it, and the modes that steer recording. */
#ifndef TD_AUTOGRAD_H
#define TD_AUTOGRAD_H

#include "engine/core/modes.h"
#include "engine/ops/op.h"

typedef struct td_node td_node;

/* What autograd knows of one tensor; hangs off td_tensor.autograd. */
typedef struct td_autograd {
    td_tensor *grad;     /* accumulated gradient of a leaf (or kept by retain_grad); owned */
    td_node *grad_fn;    /* the node that made it; owned; NULL for leaves */
    uint32_t result;     /* which result of grad_fn it is */
    bool retains_grad;   /* keep grad though not a leaf */
    atomic_uint suspect; /* place among those whose grad may lead back to them, from 1; 0: none */
} td_autograd;

/* ---- tensors ---- */

/* EAUTOGRAD for integer tensors and for setting false on a result of an operator. */
td_status td_set_requires_grad(td_tensor *x, bool requires_grad) TD_MUST_CHECK;
bool td_is_leaf(const td_tensor *x);
td_status td_retain_grad(td_tensor *x) TD_MUST_CHECK;
td_tensor *td_get_grad(const td_tensor *x); /* borrowed, may be NULL */
/* Replace (x's shape, dtype, device) or clear (NULL) the gradient; takes its own reference. */
td_status td_set_grad(td_tensor *x, td_tensor *grad) TD_MUST_CHECK;
/* Name of the operator that made it, with "Backward" as PyTorch prints it; NULL for leaves. */
const char *td_grad_fn_name(const td_tensor *x);

/* ---- recording: called by the dispatcher ---- */

/* Has the tensor that this view looks into got another history since the view was made? */
bool td_view_is_stale(const td_tensor *x);

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
/* Let go of what a record holds, whether it was published or not. */
void td_autograd_drop(td_record *record);

/* A result of recorded operators was overwritten by values that depend on nothing: it becomes a
 * plain tensor. Leaves are left alone. */
void td_autograd_forget(td_tensor *x);

/* x has become what `view`, a view of x, is: it takes over the view's history, if that has one. The
 * version has been bumped. */
void td_autograd_turn(td_tensor *x, const td_tensor *view);

/* Nodes that are no operators: Lua Functions, later collectives. `apply` works as td_backward_fn
 * over gout -> in (ninputs slots); `destroy` frees payload, may not call Lua. */
typedef struct td_node_class {
    const char *name;
    td_status (*apply)(void *payload, td_tensor *const *gout, td_tensor **in);
    void (*destroy)(void *payload);
} td_node_class;
td_status td_autograd_record_custom(const td_node_class *node_class, void *payload, int ninputs,
                                    td_tensor *const *inputs, int noutputs,
                                    td_tensor *const *outputs) TD_MUST_CHECK;

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

/* Gradients with respect to `inputs` alone: results[i] new, NULL where unused (EAUTOGRAD unless
 * allow_unused). Leaves' grad fields are not touched. */
td_status td_autograd_grad(int n, td_tensor *const *outputs, td_tensor *const *gradients,
                           int ninputs, td_tensor *const *inputs, td_backward_options options,
                           bool allow_unused, td_tensor **results) TD_MUST_CHECK;

/* Let go of tensors of this thread that only their own gradient's history holds (x.grad = f(x),
 * create_graph). Its cost is what lies behind gradients with a history; nothing where none has. */
void td_autograd_collect(void);

/* For td_tensor_destroy. */
void td_autograd_free(td_autograd *autograd);

#endif
