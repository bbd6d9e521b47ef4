/* kernel.h: a fusion group as one program: one pass over memory, whatever its graph calls. */
#ifndef TD_SCRIPT_KERNEL_H
#define TD_SCRIPT_KERNEL_H

#include "engine/script/ir.h"
#include "engine/script/kernel_error.h"
#include "engine/script/kernel_ways.h"

typedef struct td_script_kernel td_script_kernel;

/* Of a pointwise operator's node: are some of its steps calls of functions (exp, tanh) rather than
 * operations of a processor? */
bool td_script_kernel_calls(const td_ir_node *node);

/* What an element of a node that may stand in a group costs, an addition being 1; INT_MAX of
 * others.
 */
int td_script_kernel_cost(const td_ir_node *node);

/* May a node stand in a group? It is a pointwise operator, or a conversion to another dtype, of
 * tensors whose dtypes and numbers of dims its types say, and whose other arguments are constants;
 * one that cannot fail for what elements are. */
bool td_script_kernel_takes(const td_ir_node *node);

/* New, of a group's graph, which is borrowed for its life; EVALUE where a node can't be part of one
 * program. A fast graph's program may join and reorder sums and products, and does not round
 * 16-bit floats between operators. */
td_status td_script_kernel_new(const td_ir_graph *g, td_script_kernel **out) TD_MUST_CHECK;
/* Its program, borrowed: an operand for each input and an output for each output of the graph. */
const struct td_program *td_script_kernel_program(const td_script_kernel *k);
/* The dtype that its steps of TD_DTYPE_CALL are computed in. */
td_dtype td_script_kernel_compute(const td_script_kernel *k);
void td_script_kernel_free(td_script_kernel *k); /* NULL is fine */

/* What its results were found to differ in from its operators', calls 1, 2, 4, 8 ... having been
 * looked at, each with its own inputs. Joins `error`; nothing where the graph is not fast. */
void td_script_kernel_measured(td_script_kernel *k, td_kernel_error *error);

/* Run it on inputs, borrowed; outputs are new. The bits are those of the operators one by one,
 * unless the graph is fast.
 * *taken is false, and nothing is done, where these inputs need the operators themselves: other
 * dtypes, layouts or devices, results of several shapes, calls that are recorded, that autocast
 * does something to, or that a dispatcher is to see. */
td_status td_script_kernel_run(const td_script_kernel *k, const td_value *inputs, td_value *outputs,
                               bool *taken) TD_MUST_CHECK;

/* The same for the usual case, in which there is less to look at: few inputs, all of them row-major
 * and of one shape. */
td_status td_script_kernel_run_alike(const td_script_kernel *k, const td_value *inputs,
                                     td_value *outputs, bool *taken) TD_MUST_CHECK;
/* By what its calls took it is decided how they run; NULL: it runs as a kernel. */
td_kernel_ways *td_script_kernel_ways(const td_script_kernel *k);

#endif
