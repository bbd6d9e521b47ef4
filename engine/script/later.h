/* later.h: a thread that makes what calls of functions can do without for a while: specialisations
 * and gradients of large graphs. Callers run the graph as it was written meanwhile, so none waits
 * for the passes.
 *
 * TIDE_SCRIPT=now|later says when: on the caller's thread, always; or on this thread where there is
 * enough to do (as if nothing is said). A child made by fork starts a thread of its own, and what
 * was being made begins anew there.
 */
#ifndef TD_SCRIPT_LATER_H
#define TD_SCRIPT_LATER_H

#include "engine/core/activity.h"
#include "engine/core/jobs/maker.h"
#include "engine/core/modes.h"
#include "engine/script/ir.h"

typedef struct td_later_job td_later_job;
struct td_later_job {
    /* On the thread, under `modes`, with no lock held. May be begun twice, where a fork came in
     * between. */
    void (*make)(td_later_job *job);
    /* Behind it, to hand over what was made: no fork comes in between, and no cancel. Must be
     * short, and not begin or cancel jobs. */
    void (*give)(td_later_job *job);
    td_modes modes; /* set by td_later_begin */
    td_compile_request request;
    td_maker_job place; /* queued: until it has been given */
};

/* Roughly how many nodes the passes will see of a block: trips of loops that are written out
 * count. */
int td_later_work(const td_ir_block *block);
/* Is so much to be made on the thread? */
bool td_later_wanted(int work);

/* Make it on the thread, under this thread's modes; the job stays the caller's and in its place
 * until it has been given or cancelled. False: there is no thread to be had. */
bool td_later_begin(td_later_job *job);
/* Take it back; where it is being made, wait until it has been given. Any number of times, and
 * where it was never begun. */
void td_later_cancel(td_later_job *job);

/* For tests: all that was begun has been given when this returns. */
void td_later_finish(void);
/* As if TIDE_SCRIPT said so, from here on: for tests and benches. */
void td_later_set(bool later);

#endif
