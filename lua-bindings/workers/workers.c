/* workers.c: what tide.workers (lua/workers.lua) stands on: pools of threads and jobs as values of
 * Lua. */
#include "lua-bindings/call/function.h"
#include "lua-bindings/modules/modules.h"
#include "lua-bindings/workers/pool.h"

#include "engine/core/backend.h"
#include "engine/core/queues.h"

static const char pool_type[] = "tide.pool", job_type[] = "tide.job";

enum { MOST = 256, LOOK = 50 /* milliseconds between two looks for an interrupt */ };

static tide_pool **check_pool(lua_State *L) {
    tide_pool **pool = luaL_checkudata(L, 1, pool_type);
    if (!*pool)
        tide_error(L, "the pool is closed");
    return pool;
}

/* (threads, init): a pool. */
static int new_pool(lua_State *L) {
    lua_Integer threads = luaL_checkinteger(L, 1);
    if (threads < 1 || threads > MOST)
        return tide_error(L, "workers: from 1 to %d of them, got %I", MOST, threads);
    lua_settop(L, 2);
    tide_parcel init = {0};
    lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE); /* the global may be the script's own */
    lua_getfield(L, 3, LUA_LOADLIBNAME);
    const char *path = "", *cpath = "", *problem;
    if (lua_istable(L, 4)) {
        path = lua_getfield(L, 4, "path") == LUA_TSTRING ? lua_tostring(L, -1) : "";
        cpath = lua_getfield(L, 4, "cpath") == LUA_TSTRING ? lua_tostring(L, -1) : "";
    }
    tide_pool **pool = lua_newuserdatauv(L, sizeof *pool, 0);
    *pool = NULL;
    luaL_setmetatable(L, pool_type);
    if (!lua_isnil(L, 2)) {
        lua_pushvalue(L, 2);
        tide_parcel_pack(L, &init, lua_gettop(L));
        lua_pop(L, 1);
    }
    uint64_t seed, offset;
    uint32_t words[4];
    td_generator_reserve(NULL, 1, &seed, &offset);
    td_philox(seed, offset, words);
    *pool = tide_pool_new(lua_touserdata(L, lua_upvalueindex(TIDE_UP_FIRST)), (int)threads, path,
                          cpath, (uint64_t)words[1] << 32 | words[0], &init, &problem);
    tide_parcel_free(&init);
    if (!*pool)
        return tide_error(L, "workers: %s", problem);
    return 1;
}

static int drop_pool(lua_State *L) {
    tide_pool **pool = luaL_checkudata(L, 1, pool_type);
    if (*pool)
        tide_pool_release(*pool);
    *pool = NULL;
    return 0;
}

static int close_pool(lua_State *L) {
    tide_pool **pool = luaL_checkudata(L, 1, pool_type);
    if (*pool)
        tide_pool_close(*pool);
    return drop_pool(L);
}

/* (pool, worker's number or 0, function or nil, arguments...): a job. */
static int submit(lua_State *L) {
    tide_pool **pool = check_pool(L);
    int worker = (int)luaL_checkinteger(L, 2);
    lua_remove(L, 2);
    luaL_argexpected(L, lua_isnil(L, 2) || lua_isfunction(L, 2), 2, "function");
    tide_parcel parcel = {0};
    tide_job **job = lua_newuserdatauv(L, sizeof *job, 0);
    *job = NULL;
    luaL_setmetatable(L, job_type);
    lua_insert(L, 2);
    tide_parcel_pack(L, &parcel, 3);
    *job = tide_pool_submit(*pool, worker, &parcel);
    if (!*job) {
        tide_parcel_free(&parcel);
        return tide_error(L, "workers: out of memory");
    }
    lua_settop(L, 2);
    return 1;
}

static tide_job *check_job(lua_State *L) {
    tide_job **job = luaL_checkudata(L, 1, job_type);
    if (!*job)
        tide_error(L, "this job was collected");
    return *job;
}

static int job_done(lua_State *L) {
    lua_pushboolean(L, tide_job_wait(check_job(L), 0) != TIDE_JOB_RUNS);
    return 1;
}

/* (job, seconds): has it ended, within so long? */
static int job_wait(lua_State *L) {
    tide_job *job = check_job(L);
    double left = luaL_checknumber(L, 2);
    for (;; left -= 1e-3 * LOOK) {
        int patience = left > 1e-3 * LOOK ? LOOK : left > 0 ? (int)(1e3 * left) + 1 : 0;
        if (tide_job_wait(job, patience) != TIDE_JOB_RUNS || patience < LOOK)
            break;
        if (td_interrupt_requested()) {
            (void)td_interrupted();
            return tide_raise(L);
        }
    }
    lua_pushboolean(L, tide_job_wait(job, 0) != TIDE_JOB_RUNS);
    return 1;
}

/* May a tensor's memory be written anew: does nothing else hold it, and does no device read it? Who
 * may ask: the only one who can make another hold it. */
static int is_sole(lua_State *L) {
    const td_tensor *x = tide_check_tensor(L, 1, "_is_sole");
    const td_backend *cuda = td_backends[TD_CUDA];
    bool sole = atomic_load_explicit(&x->refs, memory_order_acquire) == 1 &&
                atomic_load_explicit(&x->storage->refs, memory_order_acquire) == 1;
    if (sole && x->storage->on_release && cuda && cuda->queues)
        sole = cuda->queues->is_read(x->data);
    lua_pushboolean(L, sole);
    return 1;
}

static int drop_job(lua_State *L) {
    tide_job **job = luaL_checkudata(L, 1, job_type);
    if (*job)
        tide_job_release(*job);
    *job = NULL;
    return 0;
}

/* (job [, once]): waits, and gives what the job returned, or raises its error. An interrupt stops
 * the job. once: nobody asks again, and what it holds is let go. */
static int job_get(lua_State *L) {
    tide_job *job = check_job(L);
    bool once = lua_toboolean(L, 2);
    lua_settop(L, 1);
    tide_job_end end;
    while ((end = tide_job_wait(job, LOOK)) == TIDE_JOB_RUNS)
        if (td_interrupt_requested()) {
            tide_job_stop(job);
            (void)td_interrupted();
            return tide_raise(L);
        }
    if (end == TIDE_JOB_STOPPED)
        return tide_error(L, "the job was stopped");
    int n = tide_parcel_unpack(L, tide_job_result(job));
    if (once)
        (void)drop_job(L);
    if (end != TIDE_JOB_FAILED)
        return n;
    lua_Debug ar; /* the text has lines, which tide_error would quote */
    const char *text = lua_tostring(L, -1);
    if (tide_find_line(L, &ar))
        lua_pushfstring(L, "%s:%d: in a worker: %s", ar.short_src, ar.currentline, text);
    else
        lua_pushfstring(L, "in a worker: %s", text);
    return lua_error(L);
}

static int job_stop(lua_State *L) {
    tide_job_stop(check_job(L));
    return 0;
}

static void make_type(lua_State *L, const char *name, lua_CFunction drop) {
    luaL_newmetatable(L, name);
    lua_pushcfunction(L, drop);
    lua_setfield(L, -2, "__gc");
    lua_pushstring(L, name);
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 1);
}

void tide_open_workers(lua_State *L, const tide_states *states) {
    static const luaL_Reg functions[] = {{"_pool_close", close_pool}, {"_pool_submit", submit},
                                         {"_job_done", job_done},     {"_job_get", job_get},
                                         {"_job_stop", job_stop},     {"_job_wait", job_wait},
                                         {"_is_sole", is_sole},       {NULL, NULL}};
    make_type(L, pool_type, drop_pool);
    make_type(L, job_type, drop_job);
    tide_set_functions(L, functions);
    lua_pushlightuserdata(L, (void *)(uintptr_t)states);
    tide_push_function(L, new_pool, 1);
    lua_setfield(L, -2, "_pool_new");
}
