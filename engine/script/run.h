/* run.h: graphs made ready, and how they run. */
#ifndef TD_SCRIPT_RUN_H
#define TD_SCRIPT_RUN_H

#include "engine/script/boxes.h"
#include "engine/script/host.h"
#include "engine/script/ir.h"

/* A graph made ready to run. It is only read while it runs, by any number of threads at once. */
typedef struct td_script td_script;

/* New, of a graph that is verified and held; nobody changes it any more. EVALUE: a node that can't
 * be run is named. */
td_status td_script_new(td_ir_graph *g, td_script **out) TD_MUST_CHECK;
/* The same of one that takes its inputs' references, so that they die with their last use. */
td_status td_script_new_taking(td_ir_graph *g, td_script **out) TD_MUST_CHECK;
td_script *td_script_retain(td_script *s);
void td_script_release(td_script *s); /* NULL is fine */
const td_ir_graph *td_script_graph(const td_script *s);

/* A host that several threads hold: copied, new. NULL: out of memory, and its release has run. */
typedef struct td_shared_host td_shared_host;
td_shared_host *td_shared_host_new(const td_script_host *host);
td_shared_host *td_shared_host_retain(td_shared_host *host);
void td_shared_host_release(td_shared_host *host); /* NULL is fine */

/* Call it: as many inputs as its graph has, borrowed (or taken, also on failure); as many outputs,
 * the caller's to drop by td_value_drop. Every operator is a call (td_op_call): recorded for
 * backward, cast and observed as the thread's modes say, with a value let go of after its last use.
 * On failure no output is left, and the message has the node's place before it where that is known.
 * ETYPE: an input is not of the kind that the graph says. */
td_status td_script_run(const td_script *s, const td_value *inputs,
                        td_value *outputs) TD_MUST_CHECK;
/* The same with a host, or NULL. */
td_status td_script_run_with(const td_script *s, td_shared_host *host, const td_value *inputs,
                             td_value *outputs) TD_MUST_CHECK;

/* td_value_drop, by its older name. */
static inline void td_script_drop(td_value *output) {
    td_value_drop(output);
}

/* Begin the same on another thread: a future (scripted.h). Inputs are copied. */
td_status td_script_fork(const td_script *s, td_shared_host *host, const td_value *inputs,
                         td_value *future) TD_MUST_CHECK;

#endif
