/* defer_plan.h: how the calls of a path are run once it has ended: as few graphs, and what each
 * reads and gives.
 *
 * Where calls are recorded for backward, a result that somebody holds is a place where gradients
 * can be asked for, hooked or cut off. So what is made of it belongs to a later graph, which has it
 * as an input; and a view that somebody holds is made of its base by a call, so that both have the
 * history that eager mode gives them.
 */
#ifndef TD_SCRIPT_DEFER_PLAN_H
#define TD_SCRIPT_DEFER_PLAN_H

#include "engine/script/defer/defer_path.h"
#include "engine/script/scripted.h"

/* Steps that run together. */
typedef struct td_plan_part {
    struct td_plan_part *next;
    int nsteps, *steps; /* by their place on the path, from 0 */
    int ninputs, noutputs;
    td_path_operand *inputs; /* what it reads of other parts and of the path's inputs */
    int *outputs;            /* the path's results that it gives */
    bool calls;              /* too little for a graph: its steps are called */
    td_scripted *graph;      /* made when it first runs; NULL before, and with `calls` */
} td_plan_part;

typedef struct td_plan {
    td_plan_part *first; /* in the order in which they run */
} td_plan;

/* The plan of a path that ends with s, of whose results these n are held; in the memory of a graph.
 * `recorded`: calls are recorded for backward. NULL: out of memory. */
td_plan *td_plan_new(td_ir_graph *memory, td_path_step *s, int n, const int *held, bool recorded);
/* Make a part's graph. */
td_status td_plan_make(td_path_step *s, td_plan_part *part) TD_MUST_CHECK;
/* Let go of its graphs. */
void td_plan_drop(td_plan *plan);

#endif
