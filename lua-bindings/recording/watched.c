/* watched.c: tells recordings of garbage collections that the script asks for and of files that it
 * reads, by functions in the place of Lua's own. They call those in their own stack frame, so that
 * errors read as before.
 */
#include "lua-bindings/modules/modules.h"
#include "lua-bindings/state/state.h"

#include "profiler/recorder.h"

#include <lauxlib.h>
#include <lualib.h>
#include <stdatomic.h>
#include <string.h>

static const char installed_key = 0;
static _Atomic(lua_CFunction) original_collect, original_read, original_lines, original_file_read,
    original_file_lines;

static int run_original(lua_State *L, _Atomic(lua_CFunction) *original, int kind,
                        const char *name) {
    tide_range range = tide_range_begin(kind, name);
    int n = atomic_load_explicit(original, memory_order_relaxed)(L);
    tide_range_end(range);
    return n;
}

/* Of what collectgarbage can be asked for but these take time. */
static int watched_collect(lua_State *L) {
    const char *what = lua_type(L, 1) == LUA_TSTRING ? lua_tostring(L, 1) : NULL;
    if (what ? strcmp(what, "collect") != 0 && strcmp(what, "step") != 0 : !lua_isnoneornil(L, 1))
        return atomic_load_explicit(&original_collect, memory_order_relaxed)(L);
    return run_original(L, &original_collect, TIDE_EVENT_COLLECT, "collectgarbage");
}

static int watched_read(lua_State *L) {
    return run_original(L, &original_read, TIDE_EVENT_DATA, "io.read");
}

static int watched_file_read(lua_State *L) {
    return run_original(L, &original_file_read, TIDE_EVENT_DATA, "file:read");
}

/* The iterator of lines; upvalue 1: the library's. */
static int watched_line(lua_State *L) {
    tide_range range = tide_range_begin(TIDE_EVENT_DATA, "lines");
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    tide_range_end(range);
    return lua_gettop(L);
}

static int watch_iterator(lua_State *L, _Atomic(lua_CFunction) *original) {
    int n = run_original(L, original, TIDE_EVENT_DATA, "lines");
    if (!td_observer_current)
        return n;
    lua_pushvalue(L, -n);
    lua_pushcclosure(L, watched_line, 1);
    lua_replace(L, -n - 1);
    return n;
}

static int watched_lines(lua_State *L) {
    return watch_iterator(L, &original_lines);
}

static int watched_file_lines(lua_State *L) {
    return watch_iterator(L, &original_file_lines);
}

/* Replaces a function of the table on the top; others' Lua functions, and closures, stay. */
static void replace(lua_State *L, const char *name, lua_CFunction function,
                    _Atomic(lua_CFunction) *original) {
    lua_getfield(L, -1, name);
    lua_CFunction there = lua_tocfunction(L, -1);
    bool closure = there && lua_getupvalue(L, -1, 1);
    lua_pop(L, closure ? 2 : 1);
    if (!there || closure || there == function)
        return;
    atomic_store_explicit(original, there, memory_order_relaxed);
    lua_pushcfunction(L, function);
    lua_setfield(L, -2, name);
}

static void watch_files(lua_State *L) {
    if (lua_getglobal(L, LUA_IOLIBNAME) == LUA_TTABLE) {
        replace(L, "read", watched_read, &original_read);
        replace(L, "lines", watched_lines, &original_lines);
    }
    if (luaL_getmetatable(L, LUA_FILEHANDLE) == LUA_TTABLE &&
        lua_getfield(L, -1, "__index") == LUA_TTABLE) {
        replace(L, "read", watched_file_read, &original_file_read);
        replace(L, "lines", watched_file_lines, &original_file_lines);
    }
}

void tide_open_watched(lua_State *L) {
    int top = lua_gettop(L);
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &installed_key) == LUA_TNIL) {
        lua_pushglobaltable(L);
        replace(L, "collectgarbage", watched_collect, &original_collect);
        watch_files(L);
        lua_pushboolean(L, 1);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &installed_key);
    }
    lua_settop(L, top);
}
