/* run.h: functions made of graphs, and how they run. */
#ifndef TD_SCRIPT_RUN_H
#define TD_SCRIPT_RUN_H

#include "engine/script/ir.h"

/* A graph made ready to run. It is only read while it runs, by any number of threads at once. */
typedef struct td_script td_script;

/* New, of a graph that is verified and held; nobody changes it any more. EVALUE: a node that can't
 * be run is named. */
td_status td_script_new(td_ir_graph *g, td_script **out) TD_MUST_CHECK;
td_script *td_script_retain(td_script *s);
void td_script_release(td_script *s); /* NULL is fine */
const td_ir_graph *td_script_graph(const td_script *s);

/* Call it: as many inputs as its graph has, borrowed; as many outputs, the caller's to drop by
 * td_script_drop. Every operator is a call (td_op_call): recorded for backward, cast and observed
 * as the thread's modes say, with a value let go of after its last use. On failure no output is
 * left, and the message is the operator's, with the node's place before it where that is known. */
td_status td_script_run(const td_script *s, const td_value *inputs,
                        td_value *outputs) TD_MUST_CHECK;
/* Let go of what an output holds. */
void td_script_drop(td_value *output);

#endif
