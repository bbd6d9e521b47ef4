/* future.h: work that runs on another thread, and the boxes that wait for it. Knows nothing of
 * graphs; scripted.h has what front ends call.
 *
 * Work that waits for a thread is done by whoever waits for it, so work may wait for other work to
 * any depth. Nobody need wait: work that was begun ends, and what it gave goes with its box. */
#ifndef TD_SCRIPT_FUTURE_H
#define TD_SCRIPT_FUTURE_H

#include "engine/core/modes.h"
#include "engine/script/boxes.h"

typedef struct td_future_work {
    /* Do it: *out is the future's. Under the modes of the thread that began it. */
    td_status (*run)(void *ctx, td_value *out);
    void (*free)(void *ctx); /* afterwards, or when it could not be begun */
    void *ctx;
} td_future_work;

/* Begin: *future is the caller's to drop. `work` is stolen. ENOMEM. */
td_status td_future_begin(const td_future_work *work, td_value *future) TD_MUST_CHECK;

/* This thread's modes as far as they are worth something to another: casts that are kept, what
 * takes calls and what keeps for backward are the thread's own. */
td_modes td_fork_modes(void);

/* As td_future_wait of scripted.h says. */
td_status td_future_wait(td_value future, td_value *out) TD_MUST_CHECK;

#endif
