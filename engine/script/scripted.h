/* scripted.h: functions made of graphs, as front ends call them.
 *
 * A function holds its graph as it was written. What runs is a specialisation: the same graph with
 * types inferred from what its inputs are, rewritten by the passes, made once for each kind of
 * inputs (kinds, dtypes, dims, sizes, devices, layouts, requires_grad, and the thread's modes) and
 * found again by every call. Sizes that turn out to vary become unknown, and one specialisation
 * serves them all. When there are TD_SCRIPTED_MOST of them, further kinds of inputs run the graph
 * as it was written; td_scripted_why says so.
 *
 * Any number of threads may call one function at once; no lock is taken where a specialisation is
 * there already.
 */
#ifndef TD_SCRIPT_SCRIPTED_H
#define TD_SCRIPT_SCRIPTED_H

#include "engine/script/boxes.h"
#include "engine/script/host.h"
#include "engine/script/ir.h"

typedef struct td_scripted td_scripted;

enum { TD_SCRIPTED_MOST = 16 }; /* specialisations of one function */

/* New, of a graph that is held and that nobody changes any more, under a name that messages use
 * (copied; NULL: "function"). EVALUE: the graph does not hold together, or a node that can't be
 * run is named; ENOMEM. */
td_status td_scripted_new(td_ir_graph *g, const char *name, td_scripted **out) TD_MUST_CHECK;
td_scripted *td_scripted_retain(td_scripted *f);
void td_scripted_release(td_scripted *f); /* NULL is fine */

/* As it was written; borrowed from the function. */
const td_ir_graph *td_scripted_graph(const td_scripted *f);
const char *td_scripted_name(const td_scripted *f);
int td_scripted_ninputs(const td_scripted *f);
int td_scripted_noutputs(const td_scripted *f);
/* Constant tensors of the graph that calls may write in place (statistics of a normalization):
 * borrowed from it, td_tensor * into a list that the caller begins empty and clears. ENOMEM. */
td_status td_scripted_written(const td_scripted *f, td_list *tensors) TD_MUST_CHECK;
/* It is copied. Before the first call. ENOMEM: its release has run. */
td_status td_scripted_set_host(td_scripted *f, const td_script_host *host) TD_MUST_CHECK;
/* Run the graph as it was written, node by node, from here on: for breakpoints and comparisons. */
void td_scripted_set_eager(td_scripted *f, bool eager);
/* No call is run as it was written to be timed: for who measures what it saves himself. Before the
 * first call. */
void td_scripted_set_untimed(td_scripted *f);
/* From here on groups may differ from their operators in the last bits: machine code joins products
 * and sums and reorders both, 16-bit floats go on in float32 within a group. Calls that are
 * recorded for backward keep their bits. td_scripted_why tells the difference that was measured. */
void td_scripted_set_fast(td_scripted *f, bool fast);

/* Call it: as many inputs as its graph has, borrowed; as many outputs, the caller's to drop
 * (td_value_drop), which own all they have. Inputs may be numbers, bools, nil, tensors, dtypes,
 * devices, texts, arrays and boxes, as the types of the graph's inputs say: ETYPE names one that is
 * not; an int is taken for a float.
 *
 * Operators are recorded for backward, cast and observed as the thread's modes say. On failure no
 * output is left; the message is the operator's with the node's place before it, where that is
 * known. EINTR: an interrupt is noticed in every loop. EVALUE where calls nest too deep. */
td_status td_scripted_call(td_scripted *f, const td_value *inputs, td_value *outputs) TD_MUST_CHECK;

/* Begin the same on another thread: *future, a box, is the caller's to drop. Inputs are copied
 * (td_value_copy). The call has this thread's modes and no observer. Where no thread can be had it
 * runs at once, here. ENOMEM. */
td_status td_scripted_fork(td_scripted *f, const td_value *inputs, td_value *future) TD_MUST_CHECK;
/* Wait for a future: what the call gave, the caller's to drop: the only output, or a tuple of all
 * of them. Its failure is told here with its message, every time. A future may be waited for more
 * than once, by several threads; EINTR leaves it as it is. ETYPE: it is none. */
td_status td_future_wait(td_value future, td_value *out) TD_MUST_CHECK;

/* The graph that such inputs run, specialised and rewritten: a reference, the caller's. */
td_status td_scripted_graph_for(td_scripted *f, const td_value *inputs,
                                td_ir_graph **out) TD_MUST_CHECK;

/* What a text has of each specialisation, a line for each: what its inputs are, in what it differs
 * from the one before, how often it was called, what it took to make and has saved; and
 * whether the limit was reached. From td_malloc; NULL: out of memory. */
char *td_scripted_why(td_scripted *f);
/* The same as numbers: how many were made, those that a more general one replaced included; the
 * k-th's calls and nanoseconds. */
int td_scripted_nspecialisations(td_scripted *f);
void td_scripted_statistics(td_scripted *f, int k, int64_t *calls, int64_t *ns);

#endif
