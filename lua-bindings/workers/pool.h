/* pool.h: threads that each run a Lua state of their own, and jobs for them: a function and its
 * arguments.
 *
 * A job is a parcel that comes back as another, or as an error with the worker's traceback. The
 * pool, its jobs and its threads are each held by who uses them: a pool that is dropped stops its
 * threads, none of which anybody waits for; who closes it waits.
 */
#ifndef TIDE_LUA_WORKERS_POOL_H
#define TIDE_LUA_WORKERS_POOL_H

#include "lua-bindings/workers/parcel.h"

#include <stdint.h>

typedef struct tide_pool tide_pool;
typedef struct tide_job tide_job;

/* How Lua states with Tide in them are made and closed (tide_lua_new, tide_lua_close). */
typedef struct tide_states {
    lua_State *(*make)(void);
    void (*close)(lua_State *L);
} tide_states;

/* A pool of so many threads, which load modules along `path` and `cpath` (package.path and cpath);
 * worker k's generators begin at seed + k. Each calls the function in the parcel `init` first,
 * where there is one; the pool takes that over. NULL: out of memory, or the system gives no thread;
 * *problem says which. */
tide_pool *tide_pool_new(const tide_states *states, int threads, const char *path,
                         const char *cpath, uint64_t seed, tide_parcel *init, const char **problem);
/* No job begins any more, those that run are stopped, and their threads end; waits for them. More
 * than once is harmless. */
void tide_pool_close(tide_pool *pool);
/* The same without waiting, and let go of the pool. */
void tide_pool_release(tide_pool *pool);

/* A job of the pool, which takes over the parcel: a function and its arguments; nil stands for the
 * function that `init` returned. Worker number `worker` does it, from 1; 0: any. NULL: out of
 * memory, or the pool is closed; the parcel is the caller's still. */
tide_job *tide_pool_submit(tide_pool *pool, int worker, tide_parcel *parcel);
void tide_job_release(tide_job *job);

typedef enum tide_job_end {
    TIDE_JOB_RUNS,
    TIDE_JOB_RETURNED,
    TIDE_JOB_FAILED,
    TIDE_JOB_STOPPED
} tide_job_end;
/* How the job has ended; waits at most so many milliseconds for that. */
tide_job_end tide_job_wait(tide_job *job, int milliseconds);
/* What it returned, or the text of its error; of a job that has ended. */
const tide_parcel *tide_job_result(const tide_job *job);
/* Stop it: it does not begin, or is interrupted. */
void tide_job_stop(tide_job *job);

#endif
