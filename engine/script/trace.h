/* trace.h: graphs of the calls that a thread makes. */
#ifndef TD_SCRIPT_TRACE_H
#define TD_SCRIPT_TRACE_H

#include "engine/script/ir.h"

typedef struct td_trace td_trace;

/* Begin to record the calls of operators that this thread makes, under the dispatcher of its modes,
 * while they run as they would. The graph's inputs are these n tensors, no two the same, under
 * these names (NULL: numbers). What else the calls read is constant: tensors by reference, numbers
 * and lists by value. Written in place, a tensor is another value from there on. `place`, where it
 * is not NULL, is asked for the place of each call.
 *
 * Modes that the function sets keep their meaning: under its autocast the casts of arguments become
 * nodes, and what it makes in no_grad is detached where it is read outside. (A write in no_grad to
 * what has a history is refused.) Modes in force at the beginning are those of the graph's caller.
 *
 * EVALUE: a trace is being made already, or an input stands twice. */
td_status td_trace_begin(int n, td_tensor *const *inputs, const char *const *names,
                         void (*place)(void *ctx, td_ir_graph *g, td_ir_place *place), void *ctx,
                         td_trace **out) TD_MUST_CHECK;

/* End it: the graph, new, whose outputs are these tensors. The trace is gone, also after a failure:
 * ENOMEM, or what a call did that no graph can hold. */
td_status td_trace_end(td_trace *t, int n, td_tensor *const *outputs,
                       td_ir_graph **out) TD_MUST_CHECK;
/* The same; an output may be a list of tensors (TD_KIND_TENSORS), too. */
td_status td_trace_end_values(td_trace *t, int n, const td_value *outputs,
                              td_ir_graph **out) TD_MUST_CHECK;
/* What the thread's modes hold while the trace is made. A front end that keeps modes of its own
 * puts it back there. */
const struct td_dispatcher *td_trace_dispatcher(const td_trace *t);
/* Of the trace that this thread makes: may the elements of a tensor be others when the graph is
 * called, since they follow from its inputs or are drawn? A front end that reads them fixes what it
 * makes of them. False where no trace is made. */
bool td_trace_follows(const td_tensor *x);
/* End it without a graph; NULL does nothing. */
void td_trace_abandon(td_trace *t);

/* ---- for dispatchers of one's own, which put what they run into a trace ---- */

/* A trace that is in force nowhere and has no inputs. `stranger` is asked for the value of a tensor
 * that the trace has not seen, once; NULL: it is a constant. `place` as above. td_trace_abandon
 * ends it. */
td_status td_trace_new(td_ir_value *(*stranger)(void *ctx, td_trace *t, td_tensor *x),
                       void (*place)(void *ctx, td_ir_graph *g, td_ir_place *place), void *ctx,
                       td_trace **out) TD_MUST_CHECK;
td_ir_graph *td_trace_graph(const td_trace *t); /* borrowed, unfinished */
/* ENOMEM, or what td_trace_refuse was told first. */
td_status td_trace_status(const td_trace *t) TD_MUST_CHECK;
void td_trace_refuse(td_trace *t, const char *why);
/* A call of `op` that has run becomes a node. */
void td_trace_add_call(td_trace *t, const td_op *op, td_call *call);
/* From here on the tensor, which is held, is that value. */
void td_trace_name(td_trace *t, td_tensor *x, td_ir_value *value);
/* What a tensor is now; NULL: out of memory, or the stranger's answer. */
td_ir_value *td_trace_value(td_trace *t, td_tensor *x);
/* The tensor that is that value now, borrowed; NULL: none. */
td_tensor *td_trace_tensor(const td_trace *t, const td_ir_value *value);
/* What the first tensor is that was seen on the same elements as x; NULL: none was. */
td_ir_value *td_trace_value_like(const td_trace *t, const td_tensor *x);

#endif
