/* bisect.h: which pass, and which node, makes a graph give other values. */
#ifndef TD_SCRIPT_BISECT_H
#define TD_SCRIPT_BISECT_H

#include "engine/script/passes/passes.h"

typedef struct td_bisect_result {
    const td_pass *pass; /* behind which a run differs for the first time; NULL: none does */
    int step;            /* its place in the sequence, from 1 */
    char *node;          /* the first node of the graph behind it whose value differs, as it is
                            printed, from td_malloc; NULL: none has a counterpart that differs */
    td_ir_place place;   /* of that node; its file is in the result's memory */
    char file[160];
    char why[256];        /* what differs: "element 3: 1.5 becomes 2" */
    char *before, *after; /* the graphs before and behind the pass, printed, from td_malloc */
} td_bisect_result;

/* Run a graph on these inputs as it is, and again after each of these passes (NULL: those that
 * td_passes_run runs under the options), until results, written inputs or the error differ: a pass
 * is to change none of their bits (NaN is as good as NaN). Then the values of nodes are compared by
 * their names. Each run gets copies of the inputs and the same random numbers; nothing is recorded,
 * and the graph stays as it is. The run's own failure is no failure of this function. ENOMEM, and
 * what td_script_new refuses. */
td_status td_bisect(const td_ir_graph *g, const td_value *inputs, int npasses,
                    const td_pass *const *passes, const td_passes_options *options,
                    td_bisect_result *out) TD_MUST_CHECK;
void td_bisect_result_clear(td_bisect_result *result);

#endif
