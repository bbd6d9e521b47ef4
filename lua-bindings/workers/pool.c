/* pool.c: the threads of a pool, their Lua states, and the queue between them and those who wait.
 */
#include "lua-bindings/workers/pool.h"

#include <lauxlib.h>
#include <lualib.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

struct tide_job {
    atomic_int refs;
    tide_pool *pool; /* a reference */
    tide_job *next;  /* in the queue, which holds a reference */
    tide_parcel parcel, result;
    int wanted;           /* the number of the worker that is to do it, from 1; 0: any */
    tide_job_end end;     /* and all below: under the pool's lock */
    bool queued, stopped; /* stopped: somebody asked for it */
    td_worker *worker;    /* that runs it; NULL: it waits, or has ended */
};

struct tide_pool {
    atomic_int refs; /* handles, threads and jobs */
    pthread_mutex_t lock;
    pthread_cond_t work, ended; /* a job came or the pool closes; a job or a thread ended */
    tide_job *first, *last;     /* the queue */
    int threads;                /* that run */
    td_worker **workers;        /* by number; NULL: that thread has ended, or not begun */
    int size;
    bool closing;
    char *path, *cpath;
    tide_parcel init; /* a function that each state begins with; empty: none */
    uint64_t seed;
    const tide_states *states;
    atomic_int numbers; /* given to threads so far */
};

/* ---- lives ---- */

static void let_go(tide_pool *pool) {
    if (atomic_fetch_sub_explicit(&pool->refs, 1, memory_order_acq_rel) != 1)
        return;
    pthread_mutex_destroy(&pool->lock);
    pthread_cond_destroy(&pool->work);
    pthread_cond_destroy(&pool->ended);
    td_free(pool->path);
    td_free(pool->cpath);
    td_free(pool->workers);
    tide_parcel_free(&pool->init);
    td_free(pool);
}

void tide_job_release(tide_job *job) {
    if (atomic_fetch_sub_explicit(&job->refs, 1, memory_order_acq_rel) != 1)
        return;
    tide_parcel_free(&job->parcel);
    tide_parcel_free(&job->result);
    let_go(job->pool);
    td_free(job);
}

/* ---- a thread ---- */

/* Between Lua's instructions: kernels look by themselves. */
static void look_for_interrupt(lua_State *L, lua_Debug *ar) {
    (void)ar;
    if (td_interrupt_requested())
        luaL_error(L, "interrupted");
}

static int refuse_exit(lua_State *L) {
    return luaL_error(
        L, "os.exit would end the whole program: return from the function, or raise an error");
}

/* (path, cpath, seed, number): what a worker's state is made of besides Lua's library. */
static int open_worker(lua_State *L) {
    enum { STEPS = 1000 };
    lua_getglobal(L, LUA_LOADLIBNAME);
    lua_pushvalue(L, 1);
    lua_setfield(L, -2, "path");
    lua_pushvalue(L, 2);
    lua_setfield(L, -2, "cpath");
    lua_getglobal(L, LUA_OSLIBNAME);
    lua_pushcfunction(L, refuse_exit);
    lua_setfield(L, -2, "exit");
    lua_getglobal(L, LUA_MATHLIBNAME);
    lua_getfield(L, -1, "randomseed");
    lua_pushvalue(L, 3);
    lua_call(L, 1, 0);
    lua_getglobal(L, "require");
    lua_pushliteral(L, "tide");
    lua_call(L, 1, 1);
    lua_pushvalue(L, 4);
    lua_setfield(L, -2, "_worker");
    lua_setglobal(L, "tide");
    lua_sethook(L, look_for_interrupt, LUA_MASKCOUNT, STEPS);
    return 0;
}

static lua_State *new_state(const tide_pool *pool, int number, uint64_t seed) {
    lua_State *L = pool->states->make();
    if (!L)
        return NULL;
    lua_pushcfunction(L, open_worker);
    lua_pushstring(L, pool->path);
    lua_pushstring(L, pool->cpath);
    lua_pushinteger(L, (lua_Integer)(seed >> 1));
    lua_pushinteger(L, number + 1);
    if (lua_pcall(L, 4, 0, 0) == LUA_OK)
        return L;
    pool->states->close(L);
    return NULL;
}

static const char ready_key = 0;

/* Push what init returned. It is called in a new state, before its first job; again where that
 * failed, so that each job tells why. */
static void begin(lua_State *L, const tide_pool *pool) {
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &ready_key) != LUA_TNIL)
        return;
    if (pool->init.size) {
        tide_parcel_unpack(L, &pool->init);
        lua_call(L, 0, 1);
    }
    if (lua_isnil(L, -1))
        lua_pushboolean(L, 1);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &ready_key);
}

/* (job): runs its function, or what init returned where it has none; what that returns becomes the
 * job's result. */
static int run_job(lua_State *L) {
    tide_job *job = lua_touserdata(L, 1);
    begin(L, job->pool);
    lua_replace(L, 1);
    lua_settop(L, 1);
    int n = tide_parcel_unpack(L, &job->parcel);
    if (lua_isnil(L, 2))
        lua_copy(L, 1, 2);
    lua_call(L, n - 1, LUA_MULTRET);
    tide_parcel_pack(L, &job->result, 2);
    return 0;
}

static int add_traceback(lua_State *L) {
    const char *message = luaL_tolstring(L, 1, NULL);
    luaL_traceback(L, L, message, 1);
    return 1;
}

static tide_job_end run(lua_State *L, tide_job *job) {
    lua_settop(L, 0);
    lua_pushcfunction(L, add_traceback);
    lua_pushcfunction(L, run_job);
    lua_pushlightuserdata(L, job);
    if (lua_pcall(L, 1, 0, 1) == LUA_OK)
        return TIDE_JOB_RETURNED;
    size_t len;
    const char *text = lua_type(L, -1) == LUA_TSTRING ? lua_tolstring(L, -1, &len) : NULL;
    if (!text) /* memory was out for words too */
        len = strlen(text = "out of memory");
    (void)tide_parcel_text(&job->result, text, len);
    return TIDE_JOB_FAILED;
}

static void end_job(tide_pool *pool, tide_job *job, tide_job_end end) {
    pthread_mutex_lock(&pool->lock);
    job->worker = NULL;
    bool stopped = job->stopped || pool->closing;
    job->end = stopped && end != TIDE_JOB_RETURNED ? TIDE_JOB_STOPPED : end;
    pthread_cond_broadcast(&pool->ended);
    pthread_mutex_unlock(&pool->lock);
    tide_job_release(job); /* the queue's */
}

/* Out of the queue. Under the lock. */
static void take_out(tide_pool *pool, tide_job *job) {
    tide_job **at = &pool->first, *before = NULL;
    for (; *at != job; at = &(*at)->next)
        before = *at;
    *at = job->next;
    if (pool->last == job)
        pool->last = before;
    job->queued = false;
}

/* The first job in the queue that this worker may do. */
static tide_job *find_job(const tide_pool *pool, int number) {
    tide_job *job = pool->first;
    while (job && job->wanted && job->wanted != number + 1)
        job = job->next;
    return job;
}

/* The next job, marked as this worker's; NULL: the pool closes. */
static tide_job *take_job(tide_pool *pool, int number, td_worker *worker) {
    tide_job *job;
    pthread_mutex_lock(&pool->lock);
    while (!(job = find_job(pool, number)) && !pool->closing)
        pthread_cond_wait(&pool->work, &pool->lock);
    if (job) {
        take_out(pool, job);
        job->worker = worker;
        td_interrupt_clear(); /* of the job before */
    }
    pthread_mutex_unlock(&pool->lock);
    return job;
}

static void set_worker(tide_pool *pool, int number, td_worker *worker) {
    pthread_mutex_lock(&pool->lock);
    pool->workers[number] = worker;
    pthread_mutex_unlock(&pool->lock);
}

static void *work(void *ctx) {
    tide_pool *pool = ctx;
    int number = atomic_fetch_add(&pool->numbers, 1);
    uint64_t seed = pool->seed + (uint64_t)number;
    td_worker *worker = td_worker_new(seed);
    td_worker_enter(worker);
    set_worker(pool, number, worker);
    lua_State *L = worker ? new_state(pool, number, seed) : NULL;
    for (tide_job *job; (job = take_job(pool, number, worker));) {
        if (L) {
            end_job(pool, job, run(L, job));
            lua_settop(L, 0);
        } else {
            static const char text[] = "no memory for a worker's Lua state";
            (void)tide_parcel_text(&job->result, text, sizeof text - 1);
            end_job(pool, job, TIDE_JOB_FAILED);
        }
    }
    set_worker(pool, number, NULL);
    if (L)
        pool->states->close(L);
    td_worker_enter(NULL);
    if (worker)
        td_worker_release(worker);
    pthread_mutex_lock(&pool->lock);
    pool->threads--;
    pthread_cond_broadcast(&pool->ended);
    pthread_mutex_unlock(&pool->lock);
    let_go(pool);
    return NULL;
}

/* ---- the pool ---- */

static bool start_thread(tide_pool *pool) {
    pthread_t thread;
    atomic_fetch_add(&pool->refs, 1);
    pthread_mutex_lock(&pool->lock);
    pool->threads++;
    pthread_mutex_unlock(&pool->lock);
    if (pthread_create(&thread, NULL, work, pool) == 0) {
        pthread_detach(thread);
        return true;
    }
    pthread_mutex_lock(&pool->lock);
    pool->threads--;
    pthread_mutex_unlock(&pool->lock);
    let_go(pool);
    return false;
}

tide_pool *tide_pool_new(const tide_states *states, int threads, const char *path,
                         const char *cpath, uint64_t seed, tide_parcel *init,
                         const char **problem) {
    tide_pool *pool = td_calloc(1, sizeof *pool);
    *problem = "out of memory";
    if (!pool)
        return NULL;
    atomic_init(&pool->refs, 1);
    pthread_mutex_init(&pool->lock, NULL);
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&pool->work, NULL);
    pthread_cond_init(&pool->ended, &clock);
    pthread_condattr_destroy(&clock);
    pool->states = states;
    pool->seed = seed;
    pool->init = *init;
    *init = (tide_parcel){0};
    pool->path = td_strdup(path);
    pool->cpath = td_strdup(cpath);
    pool->workers = td_calloc((size_t)threads, sizeof(td_worker *));
    pool->size = threads;
    bool ok = pool->path && pool->cpath && pool->workers;
    for (int k = 0; ok && k < threads; k++)
        if (!start_thread(pool)) {
            *problem = "the system gives no more threads";
            ok = false;
        }
    if (ok)
        return pool;
    tide_pool_close(pool);
    let_go(pool);
    return NULL;
}

/* Nothing begins any more, and what runs is told to end. Under the lock. */
static void stop_all(tide_pool *pool) {
    pool->closing = true;
    for (tide_job *job = pool->first, *next; job; job = next) {
        next = job->next;
        job->queued = false;
        job->end = TIDE_JOB_STOPPED;
        tide_job_release(job);
    }
    pool->first = pool->last = NULL;
    for (int k = 0; pool->workers && k < pool->size; k++)
        if (pool->workers[k])
            td_interrupt_raise(&pool->workers[k]->interrupt);
    pthread_cond_broadcast(&pool->work);
    pthread_cond_broadcast(&pool->ended);
}

void tide_pool_close(tide_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    if (!pool->closing)
        stop_all(pool);
    while (pool->threads > 0)
        pthread_cond_wait(&pool->ended, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}

void tide_pool_release(tide_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    if (!pool->closing)
        stop_all(pool);
    pthread_mutex_unlock(&pool->lock);
    let_go(pool);
}

/* ---- jobs ---- */

tide_job *tide_pool_submit(tide_pool *pool, int worker, tide_parcel *parcel) {
    tide_job *job = td_calloc(1, sizeof *job);
    if (!job)
        return NULL;
    atomic_init(&job->refs, 2); /* the caller's and the queue's */
    job->pool = pool;
    pthread_mutex_lock(&pool->lock);
    if (pool->closing) {
        pthread_mutex_unlock(&pool->lock);
        td_free(job);
        return NULL;
    }
    atomic_fetch_add(&pool->refs, 1);
    job->wanted = worker;
    job->parcel = *parcel;
    *parcel = (tide_parcel){0};
    job->queued = true;
    if (pool->last)
        pool->last->next = job;
    else
        pool->first = job;
    pool->last = job;
    (worker ? pthread_cond_broadcast : pthread_cond_signal)(&pool->work);
    pthread_mutex_unlock(&pool->lock);
    return job;
}

tide_job_end tide_job_wait(tide_job *job, int milliseconds) {
    tide_pool *pool = job->pool;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += milliseconds / 1000;
    until.tv_nsec += milliseconds % 1000 * 1000000L;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_mutex_lock(&pool->lock);
    while (job->end == TIDE_JOB_RUNS && milliseconds > 0 &&
           pthread_cond_timedwait(&pool->ended, &pool->lock, &until) == 0)
        ;
    tide_job_end end = job->end;
    pthread_mutex_unlock(&pool->lock);
    return end;
}

const tide_parcel *tide_job_result(const tide_job *job) {
    return &job->result;
}

/* Takes it out of the queue where it waits there. */
void tide_job_stop(tide_job *job) {
    tide_pool *pool = job->pool;
    bool waited = false;
    pthread_mutex_lock(&pool->lock);
    if (job->queued) {
        take_out(pool, job);
        job->end = TIDE_JOB_STOPPED;
        waited = true;
        pthread_cond_broadcast(&pool->ended);
    } else if (job->worker) {
        job->stopped = true;
        td_interrupt_raise(&job->worker->interrupt);
    }
    pthread_mutex_unlock(&pool->lock);
    if (waited)
        tide_job_release(job);
}
