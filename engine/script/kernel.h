/* kernel.h: a fusion group as one program: one pass over memory, whatever its graph calls. */
#ifndef TD_SCRIPT_KERNEL_H
#define TD_SCRIPT_KERNEL_H

#include "engine/script/ir.h"

typedef struct td_script_kernel td_script_kernel;

/* Of a pointwise operator's node: are some of its steps calls of functions (exp, tanh) rather than
 * operations of a processor? */
bool td_script_kernel_calls(const td_ir_node *node);

/* May a node stand in a group? It is a pointwise operator on tensors of one dtype, float32 or
 * float64, whose other arguments are constants, as far as its types say: one that makes such
 * tensors, or masks of them (comparisons and what joins those), or chooses by a mask. */
bool td_script_kernel_takes(const td_ir_node *node);

/* New, of a group's graph, which is borrowed for its life; EVALUE where a node can't be part of one
 * program. */
td_status td_script_kernel_new(const td_ir_graph *g, td_script_kernel **out) TD_MUST_CHECK;
/* Its program, borrowed: an operand for each input and an output for each output of the graph. */
const struct td_program *td_script_kernel_program(const td_script_kernel *k);
void td_script_kernel_free(td_script_kernel *k); /* NULL is fine */

/* Run it on inputs, borrowed; outputs are new. The bits are those of the operators one by one.
 * *taken is false, and nothing is done, where these inputs need the operators themselves: other
 * dtypes, layouts or devices, results of several shapes, calls that are recorded or cast, or that a
 * dispatcher is to see. */
td_status td_script_kernel_run(const td_script_kernel *k, const td_value *inputs, td_value *outputs,
                               bool *taken) TD_MUST_CHECK;

/* The same for the usual case, in which there is less to look at: few inputs, all of them row-major
 * and of one shape. */
td_status td_script_kernel_run_alike(const td_script_kernel *k, const td_value *inputs,
                                     td_value *outputs, bool *taken) TD_MUST_CHECK;

#endif
