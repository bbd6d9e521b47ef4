/* gradient.h: the gradient of a graph as a graph.
 *
 * A call that is recorded for backward runs a forward graph, no node of which is recorded, and puts
 * one node on the tape; backward through that runs a backward graph. Both come from the operators'
 * rows (gradient_record.h), are rewritten by the passes and fused.
 *
 * What backward reads is kept as eager mode keeps it, with its versions: written in place
 * meanwhile, it is the same error. Where backward is itself recorded (create_graph) its graph runs
 * call by call, and values that were kept have the node as their history, so derivatives of any
 * order come out.
 *
 * Gradients are those of eager mode bit for bit where the order of sums is: always within the
 * graph, for one call. What a tensor gets from the graph is added up there before it meets what it
 * gets from outside, where eager mode may add in another order. Gradients of float16 and bfloat16
 * are rounded after every operator, where eager mode rounds a fused gradient once.
 */
#ifndef TD_SCRIPT_GRADIENT_H
#define TD_SCRIPT_GRADIENT_H

#include "engine/script/run.h"

/* The gradient of one graph for one kind of inputs. It is shared by any number of threads. */
typedef struct td_gradient td_gradient;

/* Derive it for calls with inputs like these: of this kind, dtype, shape, strides and device, of
 * which the same require grad; numbers have these values. (Captured tensors may require grad too.)
 * The script should not have been fused. Runs nothing and changes nothing.
 *
 * Fails, with a message that says why, where the graph has no gradient as a graph: something reads
 * an element, a list that comes in is written, tensors are not strided, a write in place destroys
 * what backward reads. Such calls are recorded operator by operator. */
td_status td_gradient_new(td_script *s, const td_value *inputs, td_gradient **out) TD_MUST_CHECK;
/* Derive one for all sizes from one that is for the sizes of one call, and the inputs of another
 * call of the same kind that has other sizes; of 2 and more, and of tensors that lie row by row.
 * ETYPE: more than that differs. EVALUE says why the graph is not one for all sizes. */
td_status td_gradient_for_sizes(const td_gradient *like, const td_value *inputs,
                                td_gradient **out) TD_MUST_CHECK;
td_gradient *td_gradient_retain(td_gradient *d);
void td_gradient_release(td_gradient *d); /* NULL is fine */

/* Is a call with these inputs, under the thread's modes, one that it is for? Not where nothing is
 * recorded, under another autocast than that in force when it was derived, or while a dispatcher is
 * in force. */
bool td_gradient_fits(const td_gradient *d, const td_value *inputs);

/* One for all sizes fits where it was seen that the graph is the same for these: where they are
 * new, look (the calls are recorded, nothing is computed). */
td_status td_gradient_learn(td_gradient *d, const td_value *inputs, bool *learned) TD_MUST_CHECK;

/* Call it with inputs that fit, as td_script_run: outputs have their history. */
td_status td_gradient_call(td_gradient *d, const td_value *inputs, td_value *outputs) TD_MUST_CHECK;

/* Is it for all sizes? */
bool td_gradient_is_sized(const td_gradient *d);
/* What runs; borrowed. Backward's inputs are the gradients of the outputs that have one, then what
 * is kept; its outputs the gradients that there are of the inputs and of captured tensors. */
const td_ir_graph *td_gradient_forward(const td_gradient *d);
const td_ir_graph *td_gradient_backward(td_gradient *d);
/* How many tensors that forward makes are kept for backward, outputs among them. */
int td_gradient_nkept(const td_gradient *d);

#endif
