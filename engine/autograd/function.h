/* function.h: operators of one's own, whose gradient is a C function: what `tide.autograd.Function`
 * stands on, and how a C program writes its own.
 *
 * A call of such a function goes
 *
 *     td_function_begin     with its inputs: does anything have to be recorded?
 *     ... work out the outputs, not recorded: td_set_grad_enabled(false) ...
 *     td_function_save, td_function_mark_dirty, td_function_mark_non_differentiable
 *     td_function_end       the outputs get their history
 *
 * and backward calls `backward` once, with the gradients of the outputs, for those of the inputs.
 * y = x * factor, the whole of it (tests/unit/test_function.c runs it):
 *
 *     static td_status scale_backward(td_function *f, void *data, td_tensor *const *gout,
 *                                     td_tensor **in) {
 *         return TD_APPLY(&in[0], mul, TD_T(gout[0]), TD_F(*(double *)data));
 *     }
 *     static const td_function_class scale_class = {"ScaleBackward", scale_backward, td_free};
 *
 *     td_status scale(td_tensor *x, double factor, td_tensor **y) {
 *         double *data = td_malloc(sizeof *data);
 *         *data = factor;
 *         td_function *f;
 *         td_status status = td_function_begin(&scale_class, data, 1, &x, &f);
 *         if (status)
 *             return status;
 *         bool before = td_set_grad_enabled(false);
 *         status = TD_APPLY(y, mul, TD_T(x), TD_F(factor));
 *         td_set_grad_enabled(before);
 *         if (status == TD_OK)
 *             return td_function_end(f, 1, y);
 *         td_function_drop(f);
 *         return status;
 *     }
 *
 * A backward that calls operators alone can be differentiated again (create_graph).
 */
#ifndef TD_AUTOGRAD_FUNCTION_H
#define TD_AUTOGRAD_FUNCTION_H

#include "engine/autograd/autograd.h"

typedef struct td_function td_function; /* one call */

typedef struct td_function_class {
    const char *name; /* of the node, "ScaleBackward"; static or td_function_name's */
    /* gout: gradients of the outputs, NULL for those that are not differentiable (and, without
     * materialize, where none flows). in: to be filled with new references, one per input; NULL:
     * none. Gradients may have any dtype, and any shape that broadcasts to the input's or sums to
     * it. */
    td_status (*backward)(td_function *f, void *data, td_tensor *const *gout, td_tensor **in);
    void (*destroy)(void *data); /* on any thread, within a sweep of a collector: calls nobody */
} td_function_class;

/* A name for a class that is made at run time; the same pointer for the same name, for ever. NULL:
 * out of memory. */
const char *td_function_name(const char *name);

/* Begin a call. inputs[k] NULL: that argument is no tensor. `data` is taken over, also on failure.
 * *f is to be given to td_function_end or td_function_drop. */
td_status td_function_begin(const td_function_class *function_class, void *data, int ninputs,
                            td_tensor *const *inputs, td_function **f) TD_MUST_CHECK;
/* Is a gradient wanted of input k; of any at all (k < 0)? Where none is, nothing is recorded. */
bool td_function_needs(const td_function *f, int input);

/* What backward will read, in place of what was saved before; entries may be NULL. Inputs and
 * outputs are saved such that nothing holds itself, and writes in place are noticed. May come
 * before the outputs are known; takes effect at the end. */
td_status td_function_save(td_function *f, int n, td_tensor *const *tensors) TD_MUST_CHECK;
/* An input that was written in place; it must be an output as well. EVALUE where x is no input. */
td_status td_function_mark_dirty(td_function *f, td_tensor *x) TD_MUST_CHECK;
/* An output that has no gradient (those that are no floats have none anyway). */
td_status td_function_mark_non_differentiable(td_function *f, td_tensor *x) TD_MUST_CHECK;
/* Zeros where no gradient flows into an output (so it is at first), or NULL. */
void td_function_set_materialize(td_function *f, bool materialize);

/* The outputs get their history. outputs[] are the caller's references; one that is an input (and
 * not dirty), or has a history of its own, is replaced by another tensor on the same memory. On
 * failure they stay the caller's. f is taken over. */
td_status td_function_end(td_function *f, int noutputs, td_tensor **outputs) TD_MUST_CHECK;
void td_function_drop(td_function *f);

/* In backward: how many were saved; a new reference to the k-th (*out NULL where NULL was saved),
 * with its history where backward is recorded. EAUTOGRAD where it was written since. */
int td_function_nsaved(const td_function *f);
/* Is the gradient of input k wanted by the backward that runs: not where that asks for gradients of
 * chosen inputs, none of which lies behind it. */
bool td_function_wants(const td_function *f, int input);
int td_function_ninputs(const td_function *f);
int td_function_noutputs(const td_function *f);
td_status td_function_saved(td_function *f, int k, td_tensor **out) TD_MUST_CHECK;
/* The same, once in a call of backward: where no backward is to run after this one, the function
 * holds it no longer. */
td_status td_function_take_saved(td_function *f, int k, td_tensor **out) TD_MUST_CHECK;
/* Likewise of those that backward was given: a reference to the k-th, or NULL. */
td_tensor *td_function_take_gradient(const td_function *f, td_tensor *const *gout, int k);

/* ---- private to autograd ---- */

/* What the function of such a node has saved, k from 0; false: no more. */
/* (Call these for one that has its payload.) Its data, and */
const void *td_function_data(const td_node *node);
bool td_function_held(const td_node *node, int k, td_tensor **tensor, td_node **history);

#endif
