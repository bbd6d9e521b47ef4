/* modes.c: no_grad, enable_grad, set_grad_enabled: as `local _ <close> = tide.no_grad()` and as
 * `tide.no_grad(fn)`. A guard restores the mode it found, once; at the latest when it is collected.
 */
#include "lua-bindings/modules.h"
#include "lua-bindings/state.h"

static const char *const guard_name = "tide.mode";

typedef struct guard {
    bool before, open;
} guard;

static guard *push_guard(lua_State *L, bool enabled) {
    guard *g = lua_newuserdatauv(L, sizeof *g, 0);
    g->open = false;
    luaL_setmetatable(L, guard_name);
    g->before = td_set_grad_enabled(enabled);
    g->open = true;
    return g;
}

static int guard_close(lua_State *L) {
    guard *g = luaL_checkudata(L, 1, guard_name);
    if (g->open)
        td_set_grad_enabled(g->before);
    g->open = false;
    return 0;
}

/* Run the function at `index` with the arguments above it under a mode. The guard is closed on the
 * way out, by an error too, and tracebacks still see the function. */
static int run_under(lua_State *L, int index, bool enabled) {
    int nargs = lua_gettop(L) - index;
    push_guard(L, enabled);
    lua_insert(L, index);
    lua_toclose(L, index);
    lua_call(L, nargs, LUA_MULTRET);
    return lua_gettop(L) - index;
}

static int enter(lua_State *L, int index, bool enabled) {
    if (lua_isnoneornil(L, index)) {
        push_guard(L, enabled);
        return 1;
    }
    if (!lua_isfunction(L, index))
        return tide_error(L,
                          "argument %d: a function expected, or nothing for the form "
                          "`local _ <close> = ...`",
                          index);
    return run_under(L, index, enabled);
}

static int no_grad(lua_State *L) {
    return enter(L, 1, false);
}

static int enable_grad(lua_State *L) {
    return enter(L, 1, true);
}

static int set_grad_enabled(lua_State *L) {
    luaL_checktype(L, 1, LUA_TBOOLEAN);
    return enter(L, 2, lua_toboolean(L, 1));
}

static int is_grad_enabled(lua_State *L) {
    lua_pushboolean(L, td_grad_enabled());
    return 1;
}

void tide_open_modes(lua_State *L) {
    static const luaL_Reg functions[] = {
        {"no_grad", no_grad},
        {"enable_grad", enable_grad},
        {"set_grad_enabled", set_grad_enabled},
        {"is_grad_enabled", is_grad_enabled},
        {NULL, NULL},
    };
    luaL_newmetatable(L, guard_name);
    lua_pushcfunction(L, guard_close);
    lua_setfield(L, -2, "__close");
    lua_pushcfunction(L, guard_close);
    lua_setfield(L, -2, "__gc");
    lua_pop(L, 1);
    luaL_setfuncs(L, functions, 0);
}
