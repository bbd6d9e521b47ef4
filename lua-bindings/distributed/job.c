/* job.c: the engine's jobs, groups and transfers as Lua functions. Shapes, and what is public, are
 * lua/distributed.lua's. */
#include "lua-bindings/distributed/job.h"

#include "lua-bindings/call/args.h"
#include "lua-bindings/recording/profile.h"
#include "lua-bindings/state/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char group_name[] = "tide.job.group", work_name[] = "tide.job.work";
static const char leaver_name[] = "tide.job.leaver";

/* ---- the job ---- */

/* Where the records of a job that failed go: TIDE_FLIGHT, or where the script runs. */
static void write_flight(int rank) {
    const char *folder = getenv("TIDE_FLIGHT");
    char path[4096];
    if (!folder || !*folder)
        folder = ".";
    snprintf(path, sizeof path, "%s/tide-flight-rank%d.json", folder, rank);
    if (td_flight_write(path, rank))
        fprintf(stderr, "tide: rank %d: no flight record: %s\n", rank, td_error_message());
    else
        fprintf(stderr, "tide: rank %d: its last collectives are in %s\n", rank, path);
}

/* The job ends, whatever the script's thread does: it may wait for a rank that is gone. */
static void end_process(const char *why, int rank) {
    fprintf(stderr, "tide: rank %d: the job ends: %s\n", rank, why);
    write_flight(rank);
    if (ftrylockfile(stdout) == 0) /* the script's thread may hold it for good */
        fflush(stdout);
    _exit(TIDE_JOB_ENDED);
}

void tide_job_failed(const char *why) {
    char line[512];
    snprintf(line, sizeof line, "%.*s", (int)strcspn(why, "\n"), why);
    td_job_fail(line);
}

/* However the process ends, the others are told: MPI takes one that is gone for a crash. */
static void leave_at_exit(void) {
    if (td_job_is_open() && td_job_close() != TD_OK)
        fprintf(stderr, "tide: leaving the job: %s\n", td_error_message());
}

static int jobs; /* that were entered */

/* A userdata of the state that opened a job holds its number: a job that was left, and whose
 * userdata is collected later, is not the present one. */
static int leave(lua_State *L) {
    const int *number = luaL_checkudata(L, 1, leaver_name);
    if (*number == jobs)
        leave_at_exit();
    return 0;
}

/* _distributed_open(engine, timeout). The state that opens the job leaves it when it closes. */
static int open_job(lua_State *L) {
    static bool registered;
    const char *engine = luaL_optstring(L, 1, NULL);
    double timeout = luaL_checknumber(L, 2);
    int *number = lua_newuserdatauv(L, sizeof *number, 0);
    *number = 0;
    luaL_setmetatable(L, leaver_name);
    if (td_job_open(engine, &(td_job_options){timeout, end_process})) {
        td_error_prefix("init");
        return tide_raise(L);
    }
    *number = ++jobs;
    lua_rawsetp(L, LUA_REGISTRYINDEX, leaver_name);
    if (!registered)
        registered = atexit(leave_at_exit) == 0;
    return 0;
}

static int close_job(lua_State *L) {
    TIDE_CHECK(L, td_job_close());
    return 0;
}

/* _distributed_state(): whether it is open, rank, size, local rank, engine, whether it takes
 * tensors on devices. */
static int job_state(lua_State *L) {
    const td_group *all = td_job_all();
    lua_pushboolean(L, td_job_is_open());
    lua_pushinteger(L, td_group_rank(all));
    lua_pushinteger(L, td_group_size(all));
    lua_pushinteger(L, td_job_local_rank());
    lua_pushstring(L, td_job_engine());
    lua_pushboolean(L, td_job_takes_devices());
    return 6;
}

/* ---- groups ---- */

static int free_group(lua_State *L) {
    td_group **group = luaL_checkudata(L, 1, group_name);
    td_group_release(*group);
    *group = NULL;
    return 0;
}

/* nil is all ranks. */
static td_group *check_group(lua_State *L, int index) {
    return lua_isnoneornil(L, index) ? td_job_all()
                                     : *(td_group **)luaL_checkudata(L, index, group_name);
}

/* _group_new(ranks): a group; nil where this process is not in it. */
static int new_group(lua_State *L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_Integer n = (lua_Integer)lua_rawlen(L, 1);
    int *ranks = lua_newuserdatauv(L, ((size_t)n + 1) * sizeof *ranks, 0);
    for (lua_Integer k = 0; k < n; k++) {
        lua_rawgeti(L, 1, k + 1);
        ranks[k] = (int)luaL_checkinteger(L, -1);
        lua_pop(L, 1);
    }
    td_group **group = lua_newuserdatauv(L, sizeof *group, 0);
    *group = NULL;
    luaL_setmetatable(L, group_name);
    TIDE_CHECK(L, td_group_new((int)n, ranks, group));
    if (!*group)
        lua_pushnil(L);
    return 1;
}

/* _group_state(group): rank, size. */
static int group_state(lua_State *L) {
    const td_group *group = check_group(L, 1);
    lua_pushinteger(L, td_group_rank(group));
    lua_pushinteger(L, td_group_size(group));
    return 2;
}

/* ---- transfers ---- */

static int free_work(lua_State *L) {
    td_work **work = luaL_checkudata(L, 1, work_name);
    td_work_release(*work);
    *work = NULL;
    return 0;
}

static int find_name(lua_State *L, int index, const char *const *names, int n) {
    const char *name = luaL_checkstring(L, index);
    for (int k = 0; k < n; k++)
        if (strcmp(names[k], name) == 0)
            return k;
    return luaL_argerror(L, index, name);
}

/* Counts in a list, or NULL; their memory is a value that is pushed. */
static const int64_t *check_counts(lua_State *L, int index, int size) {
    if (lua_isnoneornil(L, index)) {
        lua_pushnil(L);
        return NULL;
    }
    luaL_checktype(L, index, LUA_TTABLE);
    int64_t *counts = lua_newuserdatauv(L, (size_t)size * sizeof *counts, 0);
    for (int k = 0; k < size; k++) {
        lua_rawgeti(L, index, k + 1);
        counts[k] = luaL_checkinteger(L, -1);
        lua_pop(L, 1);
    }
    return counts;
}

/* The script's line, "train.lua:88", into a buffer. */
static void find_place(lua_State *L, char place[TD_PLACE]) {
    lua_Debug ar;
    if (tide_find_line(L, &ar))
        snprintf(place, TD_PLACE, "%s:%d", ar.short_src, ar.currentline);
    else
        place[0] = '\0';
}

/* _post(group, kind, op, peer, tag, send, recv, send_counts, recv_counts, label): the
 * transfer. */
static int post(lua_State *L) {
    char place[TD_PLACE];
    lua_settop(L, 10);
    td_group *group = check_group(L, 1);
    int size = td_group_size(group);
    td_post p = {.kind = (td_collective)find_name(L, 2, td_collective_names, TD_COLLECTIVES),
                 .op = (td_across)find_name(L, 3, td_across_names, TD_ACROSS_OPS),
                 .peer = (int)luaL_checkinteger(L, 4),
                 .tag = (int)luaL_checkinteger(L, 5),
                 .place = place,
                 .label = luaL_optstring(L, 10, NULL)};
    find_place(L, place);
    p.send_counts = check_counts(L, 8, size);
    p.recv_counts = check_counts(L, 9, size);
    td_work **work = lua_newuserdatauv(L, sizeof *work, 0);
    *work = NULL;
    luaL_setmetatable(L, work_name);
    p.send = tide_to_tensor(L, 6);
    p.recv = tide_to_tensor(L, 7);
    if (td_post_start(group, &p, work)) {
        td_error_prefix(td_collective_names[p.kind]);
        return tide_raise(L);
    }
    return 1;
}

static int wait_for(lua_State *L) {
    char name[TD_WORK_NAME + 16];
    td_work **work = luaL_checkudata(L, 1, work_name);
    if (!td_work_has_ended(*work)) {
        snprintf(name, sizeof name, "wait for %s", (*work)->name);
        tide_record_until_return(L, TIDE_EVENT_WAIT, name);
    }
    TIDE_CHECK(L, td_work_wait(*work));
    return 0;
}

static int is_done(lua_State *L) {
    td_work **work = luaL_checkudata(L, 1, work_name);
    lua_pushboolean(L, td_work_has_ended(*work));
    return 1;
}

static void make_class(lua_State *L, const char *name, lua_CFunction collect) {
    luaL_newmetatable(L, name);
    lua_pushcfunction(L, collect);
    lua_setfield(L, -2, "__gc");
    lua_pop(L, 1);
}

void tide_open_distributed(lua_State *L) {
    static const luaL_Reg functions[] = {
        {"_distributed_open", open_job},
        {"_distributed_close", close_job},
        {"_distributed_state", job_state},
        {"_group_new", new_group},
        {"_group_state", group_state},
        {"_post", post},
        {"_work_wait", wait_for},
        {"_work_done", is_done},
        {NULL, NULL},
    };
    make_class(L, group_name, free_group);
    make_class(L, work_name, free_work);
    make_class(L, leaver_name, leave);
    tide_set_functions(L, functions);
}
