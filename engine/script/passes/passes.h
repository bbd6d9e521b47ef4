/* passes.h: rewritings of graphs, a file each, in one table.
 *
 * A pass keeps what a graph does: the bits of its results, what it writes and draws, the first
 * error, and which tensors share memory, as far as those who call it can see. It may believe the
 * types of the graph's inputs, so a rewritten graph is for inputs of these types, and for the modes
 * (autocast, recording) under which it was rewritten. One that calls itself must be a copy
 * (copy.h), whose calls go to the graph as it was, since they may have inputs of other types. A
 * graph that held its promises
 * (td_ir_verify) holds them afterwards. ENOMEM leaves it of no use.
 */
#ifndef TD_SCRIPT_PASSES_PASSES_H
#define TD_SCRIPT_PASSES_PASSES_H

#include "engine/script/passes/note.h"

typedef struct td_pass {
    const char *name;
    const char *doc; /* one line, ends with a full stop */
    bool forward; /* for calls that are not recorded for backward alone: gradients would be added in
                     another order, or what they need be written over */
    td_status (*run)(td_ir_graph *g, td_pass_note *note);
} td_pass;

/* The table, in the order in which passes are run; some are run in rounds, until none of them finds
 * anything more. */
int td_pass_count(void);
const td_pass *td_pass_get(int k);
/* By name; NULL: there is none. */
const td_pass *td_pass_find(const char *name);

/* {0}: all passes, for a call that is not recorded. */
typedef struct td_passes_options {
    uint32_t off;  /* bit k: the k-th pass is not run */
    bool recorded; /* leave out those that are `forward` */
    bool verify;   /* verify the graph after each pass; debug builds always do */
} td_passes_options;

/* Switch one on or off. EVALUE names the passes that there are. */
td_status td_passes_switch(td_passes_options *options, const char *name, bool on) TD_MUST_CHECK;

/* What one run of a pass did. */
typedef struct td_pass_step {
    const td_pass *pass;
    td_pass_note note;
    char *before, *after; /* the printed graph, from td_malloc; NULL: not kept */
} td_pass_step;

/* The steps that changed something, one after the other. {.keep = true} keeps graphs, .explain
 * lines; td_pass_log_clear lets go of all. */
typedef struct td_pass_log {
    bool keep, explain;
    int nsteps, room;
    td_pass_step *steps;
} td_pass_log;
void td_pass_log_clear(td_pass_log *log);

/* Run one pass; it is logged if it changes anything. `log` may be NULL. */
td_status td_pass_run(td_ir_graph *g, const td_pass *pass, const td_passes_options *options,
                      td_pass_log *log) TD_MUST_CHECK;
/* Run all that are not switched off. `options` and `log` may be NULL. EINTERNAL: the verifier found
 * a graph that does not hold its promises; the pass is named. */
td_status td_passes_run(td_ir_graph *g, const td_passes_options *options,
                        td_pass_log *log) TD_MUST_CHECK;

/* The passes that td_passes_run runs, one after the other, rounds written out (it leaves out those
 * that would change nothing any more): into a list with room for so many; how many there are. */
int td_passes_sequence(const td_passes_options *options, int room, const td_pass **list);

/* What each of them does is said in the table (passes.c). */
td_status td_pass_types(td_ir_graph *g, td_pass_note *note) TD_MUST_CHECK;
td_status td_pass_inline(td_ir_graph *g, td_pass_note *note) TD_MUST_CHECK;
td_status td_pass_fold(td_ir_graph *g, td_pass_note *note) TD_MUST_CHECK;
td_status td_pass_branches(td_ir_graph *g, td_pass_note *note) TD_MUST_CHECK;
td_status td_pass_unroll(td_ir_graph *g, td_pass_note *note) TD_MUST_CHECK;
td_status td_pass_peephole(td_ir_graph *g, td_pass_note *note) TD_MUST_CHECK;
td_status td_pass_common(td_ir_graph *g, td_pass_note *note) TD_MUST_CHECK;
td_status td_pass_hoist(td_ir_graph *g, td_pass_note *note) TD_MUST_CHECK;
td_status td_pass_dead(td_ir_graph *g, td_pass_note *note) TD_MUST_CHECK;
td_status td_pass_parts(td_ir_graph *g, td_pass_note *note) TD_MUST_CHECK;
td_status td_pass_epilogue(td_ir_graph *g, td_pass_note *note) TD_MUST_CHECK;
td_status td_pass_fuse(td_ir_graph *g, td_pass_note *note) TD_MUST_CHECK;
td_status td_pass_rows(td_ir_graph *g, td_pass_note *note) TD_MUST_CHECK;
td_status td_pass_order(td_ir_graph *g, td_pass_note *note) TD_MUST_CHECK;
td_status td_pass_reuse(td_ir_graph *g, td_pass_note *note) TD_MUST_CHECK;

#endif
