/* graph_runs.h: runs of graphs on inputs made from a seed, and whether two of them did the same. */
#ifndef TIDE_TESTS_SCRIPT_GRAPH_RUNS_H
#define TIDE_TESTS_SCRIPT_GRAPH_RUNS_H

#include "engine/script/ir.h"

enum { MOST_RUN_VALUES = 32 };

/* What a run did: its results, its inputs as they are afterwards, where it failed. */
typedef struct graph_run {
    td_status status;
    char message[512];
    int ninputs, noutputs;
    td_value inputs[MOST_RUN_VALUES], outputs[MOST_RUN_VALUES];
    double drawn; /* the next random number afterwards */
} graph_run;

/* Run a graph on inputs of its inputs' types (what is not known of them is chosen), made from the
 * seed: elements with zeros of both signs, infinities, NaN and the ends of integers among them.
 * False: it can't be run, and status and message say why. */
bool graph_run_make(const td_ir_graph *g, uint64_t seed, graph_run *run);
/* The same by a function made of the graph, which is called twice: specialised for its inputs and
 * rewritten. What the second call did. */
bool graph_run_scripted(const td_ir_graph *g, uint64_t seed, graph_run *run);
void graph_run_clear(graph_run *run);

/* Did two runs do the same? The same bits (one NaN is as good as another), dtypes, shapes and
 * strides; the same tensors sharing memory; the same error; inputs written alike. If not, what
 * differs is written into `why`. */
bool graph_run_same(const graph_run *a, const graph_run *b, char *why, size_t size);

#endif
