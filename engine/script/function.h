/* function.h: functions made of graphs, as front ends call them.
 *
 * A function holds its graph as it was written. What runs is a specialisation: the same graph with
 * types inferred from what its inputs are, rewritten by the passes, made once for each kind of
 * inputs (kinds, dtypes, dims, sizes, devices, layouts, requires_grad, and the thread's modes) and
 * found again by every call. Sizes that turn out to vary become unknown, and one specialisation
 * serves them all. When there are TD_FUNCTION_MOST of them, further kinds of inputs run the graph
 * as it was written; td_function_why says so.
 *
 * Any number of threads may call one function at once; no lock is taken where a specialisation is
 * there already.
 */
#ifndef TD_SCRIPT_FUNCTION_H
#define TD_SCRIPT_FUNCTION_H

#include "engine/script/boxes.h"
#include "engine/script/ir.h"

typedef struct td_function td_function;

enum { TD_FUNCTION_MOST = 16 }; /* specialisations of one function */

/* What lends a function what the engine has not. It is copied; every member may be NULL. */
typedef struct td_function_host {
    void *ctx;
    /* prim::HostCall[id]: inputs are borrowed; outputs, nil at first, are the graph's. Only on the
     * thread that called the function, and not within a fork, unless any_thread. */
    td_status (*call)(void *ctx, int id, int ninputs, const td_value *inputs, int noutputs,
                      td_value *outputs);
    /* prim::Print: a line, without its end. NULL: nothing is printed. From any thread. */
    void (*print)(void *ctx, const char *text);
    void (*release)(void *ctx); /* when the function dies or has another host */
    bool any_thread;
} td_function_host;

/* New, of a graph that is held and that nobody changes any more, under a name that messages use
 * (copied; NULL: "function"). EVALUE: the graph does not hold together, or a node that can't be
 * run is named; ENOMEM. */
td_status td_function_new(td_ir_graph *g, const char *name, td_function **out) TD_MUST_CHECK;
td_function *td_function_retain(td_function *f);
void td_function_release(td_function *f); /* NULL is fine */

/* As it was written; borrowed from the function. */
const td_ir_graph *td_function_graph(const td_function *f);
const char *td_function_name(const td_function *f);
int td_function_ninputs(const td_function *f);
int td_function_noutputs(const td_function *f);
/* Before the first call. */
void td_function_set_host(td_function *f, const td_function_host *host);
/* Run the graph as it was written, node by node, from here on: for breakpoints and comparisons. */
void td_function_set_eager(td_function *f, bool eager);

/* Call it: as many inputs as its graph has, borrowed; as many outputs, the caller's to drop
 * (td_value_drop), which own all they have. Inputs may be numbers, bools, nil, tensors, dtypes,
 * devices, texts, arrays and boxes, as the types of the graph's inputs say: ETYPE names one that is
 * not; an int is taken for a float.
 *
 * Operators are recorded for backward, cast and observed as the thread's modes say. On failure no
 * output is left; the message is the operator's with the node's place before it, where that is
 * known. EINTR: an interrupt is noticed in every loop. EVALUE where calls nest too deep. */
td_status td_function_call(td_function *f, const td_value *inputs, td_value *outputs) TD_MUST_CHECK;

/* Begin the same on another thread: *future, a box, is the caller's to drop. Inputs are copied
 * (td_value_copy). The call has this thread's modes and no observer. Where no thread can be had it
 * runs at once, here. ENOMEM. */
td_status td_function_fork(td_function *f, const td_value *inputs, td_value *future) TD_MUST_CHECK;
/* Wait for a future: what the call gave, the caller's to drop: the only output, or a tuple of all
 * of them. Its failure is told here with its message, every time. A future may be waited for more
 * than once, by several threads; EINTR leaves it as it is. ETYPE: it is none. */
td_status td_future_wait(td_value future, td_value *out) TD_MUST_CHECK;

/* The graph that such inputs run, specialised and rewritten: a reference, the caller's. */
td_status td_function_graph_for(td_function *f, const td_value *inputs,
                                td_ir_graph **out) TD_MUST_CHECK;

/* What a text has of each specialisation, a line for each: what its inputs are, in what it differs
 * from the one before, how often it was called and the nanoseconds that it took to make; and
 * whether the limit was reached. From td_malloc; NULL: out of memory. */
char *td_function_why(const td_function *f);
/* The same as numbers: how many there are, the k-th's calls and nanoseconds. */
int td_function_nspecialisations(const td_function *f);
void td_function_statistics(const td_function *f, int k, int64_t *calls, int64_t *ns);

#endif
