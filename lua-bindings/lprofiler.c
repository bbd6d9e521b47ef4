/* lprofiler.c: tide.profiler: recording a function or a block, and what was recorded. */
#include "lua-bindings/modules.h"
#include "lua-bindings/state.h"

#include "engine/core/memory.h"
#include "profiler/chrome_trace.h"
#include "profiler/table.h"

#include <string.h>

static const char *const profile_name = "tide.profile";
static const char *const range_name = "tide.range";

/* A recording that runs (recorder) or is done. */
typedef struct profile {
    tide_recorder *recorder;
    tide_recording recording;
} profile;

static void stop(lua_State *L, profile *p) {
    tide_recorder *recorder = p->recorder;
    p->recorder = NULL;
    if (recorder && tide_recorder_stop(recorder, &p->recording))
        tide_error(L, "profiler: %s", td_error_message());
}

/* The profile at index 1, finished. */
static profile *check_profile(lua_State *L) {
    profile *p = luaL_checkudata(L, 1, profile_name);
    stop(L, p);
    return p;
}

static int profile_stop(lua_State *L) {
    check_profile(L);
    return 0;
}

static int profile_gc(lua_State *L) {
    profile *p = luaL_checkudata(L, 1, profile_name);
    if (p->recorder)
        (void)!tide_recorder_stop(p->recorder, &p->recording);
    p->recorder = NULL;
    tide_recording_free(&p->recording);
    return 0;
}

static tide_sort read_sort(lua_State *L, const char *name) {
    static const char *const names[] = {"self", "total", "calls", "name"};
    for (int k = 0; k < 4; k++)
        if (!strcmp(name, names[k]))
            return (tide_sort)k;
    return tide_error(L,
                      "table: option sort: \"self\", \"total\", \"calls\" or \"name\" expected, "
                      "got \"%s\"",
                      name);
}

static void read_table_options(lua_State *L, tide_sort *sort, int *limit) {
    static const char *const names[] = {"sort", "limit"};
    luaL_checktype(L, 2, LUA_TTABLE);
    for (lua_pushnil(L); lua_next(L, 2); lua_pop(L, 1)) {
        const char *name = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "?";
        int ok = 1;
        if (!strcmp(name, "sort") && lua_type(L, -1) == LUA_TSTRING) {
            *sort = read_sort(L, lua_tostring(L, -1));
        } else if (!strcmp(name, "limit")) {
            lua_Integer n = lua_tointegerx(L, -1, &ok);
            ok = ok && n > 0;
            *limit = n < 1000000 ? (int)n : 0;
        } else if (!strcmp(name, "sort")) {
            ok = 0;
        } else {
            const char *near = tide_nearest(name, names, 2);
            tide_error(L,
                       near ? "table: no option '%s': did you mean '%s'?" : "table: no option '%s'",
                       name, near);
        }
        if (!ok)
            tide_error(L, "table: option %s: %s expected", name,
                       strcmp(name, "sort") ? "a positive integer" : "a string");
    }
}

static int push_table(lua_State *L, const profile *p, tide_sort sort, int limit) {
    char *text = tide_table(&p->recording, sort, limit);
    if (!text)
        return tide_error(L, "profiler: out of memory");
    lua_pushstring(L, text);
    td_free(text);
    return 1;
}

static int profile_table(lua_State *L) {
    profile *p = check_profile(L);
    tide_sort sort = TIDE_SORT_SELF;
    int limit = 0;
    if (!lua_isnoneornil(L, 2))
        read_table_options(L, &sort, &limit);
    return push_table(L, p, sort, limit);
}

static int profile_tostring(lua_State *L) {
    profile *p = luaL_checkudata(L, 1, profile_name);
    if (p->recorder) {
        lua_pushliteral(L, "profile: recording");
        return 1;
    }
    return push_table(L, p, TIDE_SORT_SELF, 40);
}

static int profile_len(lua_State *L) {
    lua_pushinteger(L, check_profile(L)->recording.count);
    return 1;
}

static int profile_export(lua_State *L) {
    profile *p = luaL_checkudata(L, 1, profile_name);
    const char *path = luaL_checkstring(L, 2);
    stop(L, p);
    if (tide_write_chrome_trace(&p->recording, path))
        return tide_error(L, "export_chrome_trace: %s", td_error_message());
    return 0;
}

static void set_us(lua_State *L, const char *name, int64_t ns) {
    lua_pushnumber(L, (lua_Number)ns * 1e-3);
    lua_setfield(L, -2, name);
}

static void push_inputs(lua_State *L, const tide_event *e) {
    const int64_t *at = e->inputs;
    lua_createtable(L, e->ninputs, 0);
    lua_createtable(L, e->ninputs, 0);
    for (int k = 1; k <= e->ninputs; k++) {
        tide_input in = tide_input_next(&at);
        lua_createtable(L, in.ndim, 0);
        for (int d = 0; d < in.ndim; d++) {
            lua_pushinteger(L, in.sizes[d]);
            lua_rawseti(L, -2, d + 1);
        }
        lua_rawseti(L, -3, k);
        lua_pushstring(L, td_dtype_name(in.dtype));
        lua_rawseti(L, -2, k);
    }
    lua_setfield(L, -3, "dtypes");
    lua_setfield(L, -2, "shapes");
}

static int profile_events(lua_State *L) {
    profile *p = check_profile(L);
    lua_createtable(L, (int)p->recording.count, 0);
    for (int64_t k = 0; k < p->recording.count; k++) {
        const tide_event *e = &p->recording.events[k];
        lua_createtable(L, 0, 10);
        lua_pushstring(L, e->name);
        lua_setfield(L, -2, "name");
        lua_pushstring(L, tide_event_kind_name(e->kind));
        lua_setfield(L, -2, "kind");
        lua_pushinteger(L, e->thread);
        lua_setfield(L, -2, "thread");
        if (e->parent >= 0) {
            lua_pushinteger(L, e->parent + 1);
            lua_setfield(L, -2, "parent");
        }
        if (e->sequence && e->kind != TD_EVENT_KERNEL) {
            lua_pushinteger(L, (lua_Integer)e->sequence);
            lua_setfield(L, -2, "sequence");
        }
        set_us(L, "start_us", e->start_ns);
        set_us(L, "duration_us", e->end_ns - e->start_ns);
        set_us(L, "self_us", e->self_ns);
        if (e->kind == TD_EVENT_OP)
            push_inputs(L, e);
        lua_rawseti(L, -2, k + 1);
    }
    return 1;
}

/* profile() -> profile, for `local prof <close> = ...`; profile(fn, ...) -> profile, results. */
static int profiler_profile(lua_State *L) {
    int nargs = lua_gettop(L) - 1;
    bool block = lua_isnoneornil(L, 1);
    if (!block && !lua_isfunction(L, 1))
        return tide_error(L, "profile: argument 1: a function expected, or nothing for the form "
                             "`local prof <close> = tide.profiler.profile()`");
    profile *p = lua_newuserdatauv(L, sizeof *p, 0);
    *p = (profile){0};
    luaL_setmetatable(L, profile_name);
    p->recorder = tide_recorder_start();
    if (!p->recorder)
        return tide_error(L, "profile: %s", td_error_message());
    if (block)
        return 1;
    lua_insert(L, 1);
    lua_pushvalue(L, 1);
    lua_insert(L, 1); /* one to close on the way out, by an error too; one to return */
    lua_toclose(L, 1);
    lua_call(L, nargs, LUA_MULTRET);
    stop(L, p);
    return lua_gettop(L) - 1;
}

/* ---- ranges ---- */

static int range_close(lua_State *L) {
    tide_range *range = luaL_checkudata(L, 1, range_name);
    tide_range_end(*range);
    return 0;
}

/* record(name) for `local _ <close> = ...`; record(name, fn, ...) -> results. */
static int profiler_record(lua_State *L) {
    const char *name = luaL_checkstring(L, 1);
    int nargs = lua_gettop(L) - 2;
    bool block = lua_isnoneornil(L, 2);
    if (!block && !lua_isfunction(L, 2))
        return tide_error(L, "record: argument 2: a function expected, or nothing for the form "
                             "`local _ <close> = tide.profiler.record(name)`");
    tide_range *range = lua_newuserdatauv(L, sizeof *range, 0);
    *range = (tide_range){0};
    luaL_setmetatable(L, range_name);
    *range = tide_range_begin(name);
    if (block)
        return 1;
    lua_replace(L, 1);
    lua_toclose(L, 1);
    lua_call(L, nargs, LUA_MULTRET);
    return lua_gettop(L) - 1;
}

static void make_metatable(lua_State *L, const char *name, const luaL_Reg *functions) {
    luaL_newmetatable(L, name);
    luaL_setfuncs(L, functions, 0);
    lua_pushvalue(L, -1);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
}

int tide_open_profiler(lua_State *L) {
    static const luaL_Reg profile_functions[] = {
        {"table", profile_table},
        {"export_chrome_trace", profile_export},
        {"events", profile_events},
        {"stop", profile_stop},
        {"__close", profile_stop},
        {"__gc", profile_gc},
        {"__len", profile_len},
        {"__tostring", profile_tostring},
        {NULL, NULL},
    };
    static const luaL_Reg range_functions[] = {{"__close", range_close}, {NULL, NULL}};
    static const luaL_Reg functions[] = {
        {"profile", profiler_profile}, {"record", profiler_record}, {NULL, NULL}};
    make_metatable(L, profile_name, profile_functions);
    make_metatable(L, range_name, range_functions);
    luaL_newlib(L, functions);
    return 1;
}
