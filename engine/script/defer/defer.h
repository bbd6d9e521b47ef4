/* defer.h: calls of operators that are put off and run as one graph, for a function that makes the
 * same calls again and again.
 *
 * A td_deferral knows the paths of calls that its function has made. A call that is on none runs at
 * once and becomes a step of one, with all that its results were: shapes, strides, dtypes, history.
 * A call that is on one is put off: its results are known, and their elements come when somebody
 * needs them. Then all that has gathered runs (td_deferral_settle), as a graph of the path, made
 * when the path is run for the second time; before that, and where no graph can, call by call. So
 * a call that is put off is one that has run before with arguments of that very kind, and what is
 * refused is refused at once by the call itself.
 *
 * While calls are put off, every other call of an operator on the thread, every write into a list
 * and every draw settles first (core/modes.h), so nothing is seen to happen out of order. Not put
 * off are: calls that write what is not a result of the path, answer with numbers or draw from
 * generators of their own, results that depend on elements, tensors that are not strided, and all
 * calls under autocast, anomaly mode, a dispatcher or hooks of saved tensors.
 *
 * A deferral is one thread's.
 */
#ifndef TD_SCRIPT_DEFER_H
#define TD_SCRIPT_DEFER_H

#include "engine/ops/op.h"
#include "engine/script/ir.h"

typedef struct td_deferral td_deferral;

/* A result of a call that is put off. */
typedef struct td_deferred {
    td_tensor *stand_in; /* borrowed: what the tensor will be, without elements; NULL: no result */
    td_tensor *tensor;   /* owned, between the run and `fill` */
    void *holder;        /* the front end's, who waits for it; NULL: nobody does any more */
} td_deferred;

typedef struct td_deferral_host {
    void *ctx;
    /* A result that somebody waits for is there: take value->tensor, NULL where the call failed. */
    void (*fill)(void *ctx, td_deferred *value);
    /* What has gathered has run in so many nanoseconds; its calls, and the message's status. Must
     * not fail. */
    void (*settled)(void *ctx, int ncalls, int64_t ns, td_status status);
    /* Where the running call stands: the line; *file, borrowed for the moment, stays where it is
     * NULL. */
    void (*place)(void *ctx, const char **file, int *line);
} td_deferral_host;

enum {
    TD_DEFERRAL_CALLS = 1000,  /* on one path; then they run */
    TD_DEFERRAL_STEPS = 10000, /* of all paths together: then all are forgotten */
    TD_DEFERRAL_GRAPHS = 64    /* then further paths run call by call */
};

/* New; the host is copied. ENOMEM. */
td_status td_deferral_new(const td_deferral_host *host, td_deferral **out) TD_MUST_CHECK;
/* What is still put off is given up: its holders get NULL. */
void td_deferral_free(td_deferral *d); /* NULL is fine */

/* Make a call as td_op_call does, or put it off: then *values are its *n results, in order, of
 * which the caller sets the holders; they stay where they are until they are filled. Arguments may
 * be stand-ins of results that are put off. In place, the one new value takes over the holder of
 * the old one. *n is 0 where the call was made. `alone`: it may not be put off. */
td_status td_deferral_call(td_deferral *d, td_call *call, bool alone, td_deferred **values,
                           int *n) TD_MUST_CHECK;

/* Run what has gathered, if anything has; the next call begins a path. What could be made is in its
 * holders also after a failure, whose message begins with the place of the call that failed. */
td_status td_deferral_settle(td_deferral *d) TD_MUST_CHECK;
/* May the call that was put off last refuse elements? Then the caller settles as soon as it has set
 * the holders, so that errors arise where the call stands. */
bool td_deferral_is_hasty(const td_deferral *d);
/* How many results are waited for. */
int td_deferral_waiting(const td_deferral *d);
/* Was every call since the last time this was asked put off, or one that never is? */
bool td_deferral_knew(td_deferral *d);

/* In numbers, for reports. */
typedef struct td_deferral_counts {
    int steps, graphs, failed;     /* failed: paths that no graph can do */
    int64_t deferred, ran;         /* calls that were put off; that ran at once, */
    int64_t under_modes;           /* of which so many for the modes that held */
    int64_t graph_runs, call_runs; /* settled as a graph; call by call */
    int64_t made;                  /* nanoseconds: graphs, with their first runs */
    int forgotten;                 /* how often all paths were */
    bool full;                     /* there were as many graphs as may be */
} td_deferral_counts;
td_deferral_counts td_deferral_count(const td_deferral *d);
/* Why the last path that no graph can do had none; "" where that never was. */
const char *td_deferral_why(const td_deferral *d);
/* The k-th graph, in the order in which they were made; borrowed. NULL: there is none. */
const td_ir_graph *td_deferral_graph(const td_deferral *d, int k);

#endif
