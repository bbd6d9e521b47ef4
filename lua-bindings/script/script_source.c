/* script_source.c: the Lua function that a ScriptFunction was made of, which runs in its place
 * where it is to be looked into; and what of modules was fixed when it was made, which calls
 * compare.
 */
#include "lua-bindings/script/script_function.h"

enum { SOURCE = 2, WATCHED = 3 }; /* user values */

/* ---- the source ---- */

/* set_source(f, fn, eager): calls run fn itself where `eager`, and while a debugger stops at lines.
 */
int tide_script_set_source(lua_State *L) {
    tide_script_function *f = tide_check_script_function(L, 1, "set_source");
    f->eager = lua_toboolean(L, 3);
    f->has_source = !lua_isnil(L, 2);
    lua_settop(L, 2);
    lua_setiuservalue(L, 1, SOURCE);
    f->looks = f->has_source || f->nwatched > 0;
    if (f->eager && !f->has_source) /* nothing but the graph: it runs as it was written */
        td_scripted_set_eager(f->function, true);
    return 0;
}

bool tide_script_runs_source(lua_State *L, const tide_script_function *f) {
    return f->has_source && (f->eager || lua_gethookmask(L) & LUA_MASKLINE);
}

int tide_script_call_source(lua_State *L) {
    lua_getiuservalue(L, 1, SOURCE);
    lua_replace(L, 1);
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    return lua_gettop(L);
}

/* ---- modules ---- */

/* watch(f, list): the list holds a table, a key and what stood there, one after the other; of a
 * tensor its address, of nil false; and `changed`, which raises the error. */
int tide_script_watch(lua_State *L) {
    tide_script_function *f = tide_check_script_function(L, 1, "watch");
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    f->nwatched = (int)lua_rawlen(L, 2) / 3;
    for (int k = 1; k <= f->nwatched; k++) {
        lua_rawgeti(L, 2, 3 * k);
        const td_tensor *x = tide_to_tensor(L, -1);
        if (x) { /* the graph holds it */
            lua_pushlightuserdata(L, (void *)(uintptr_t)x);
            lua_rawseti(L, 2, 3 * k);
        }
        lua_pop(L, 1);
    }
    lua_setiuservalue(L, 1, WATCHED);
    f->looks = f->has_source || f->nwatched > 0;
    return 0;
}

/* Is what stands in a table (at the top) what stood there (below it)? */
static bool is_same(lua_State *L) {
    if (lua_islightuserdata(L, -2))
        return tide_to_tensor(L, -1) == lua_touserdata(L, -2);
    return lua_rawequal(L, -1, -2) ||
           (lua_isnil(L, -1) && lua_isboolean(L, -2) && !lua_toboolean(L, -2));
}

void tide_script_check_watched(lua_State *L, const tide_script_function *f) {
    int top = lua_gettop(L), list = top + 1;
    luaL_checkstack(L, 8, f->name);
    lua_getiuservalue(L, 1, WATCHED);
    for (int k = 0; k < f->nwatched; k++) {
        lua_rawgeti(L, list, 3 * k + 3);
        lua_rawgeti(L, list, 3 * k + 1);
        lua_rawgeti(L, list, 3 * k + 2);
        lua_rawget(L, -2);
        lua_remove(L, -2);
        if (!is_same(L)) {
            lua_getfield(L, list, "changed");
            lua_rawgeti(L, list, 3 * k + 1);
            lua_rawgeti(L, list, 3 * k + 2);
            lua_pushvalue(L, -5);
            lua_pushvalue(L, -5);
            lua_call(L, 4, 0);
        }
        lua_settop(L, list);
    }
    lua_settop(L, top);
}
