/* pool.h: threads that wait for work and help with it when they come in time. Knows nothing of
 * loops; core/threads.c cuts those. */
#ifndef TD_CORE_POOL_H
#define TD_CORE_POOL_H

#include <stdbool.h>
#include <stdint.h>

enum { TD_POOL_MOST = 1024 }; /* workers of one call, the caller among them */

/* `worker` is in [0, workers) and differs among those that are at work for a call at the same time;
 * 0 is the caller. */
typedef void (*td_crew_fn)(void *ctx, int worker);

/* Call fn on this thread and on up to workers - 1 others, each of which may come or not: fn must
 * take up what nobody has taken yet, until nothing is left. Returns when this thread's fn and those
 * of the others that came have returned; who is late is not waited for. Nobody is called for a
 * while where calls of about that much work (in grains, TD_GRAIN) have lost by it. Any number of
 * threads may call at once. Not within fn (td_pool_within). */
void td_pool_run(int workers, int64_t grains, td_crew_fn fn, void *ctx);

/* Is this thread inside a td_pool_run? */
bool td_pool_within(void);

/* How many threads may run at the same time (1: nobody ever waits awake). Call before the first
 * td_pool_run; it starts no thread. */
void td_pool_set_processors(int n);

#endif
