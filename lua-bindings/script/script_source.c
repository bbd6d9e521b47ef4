/* script_source.c: the Lua function that a ScriptFunction was made of, which runs in its place
 * where it is to be looked into; and what of modules was fixed when it was made, which calls
 * compare.
 */
#include "lua-bindings/script/script_function.h"

enum { SOURCE = 2, WATCHED = 3 }; /* user values */

/* ---- the source ---- */

/* set_source(f, fn, eager), f being the one: calls run fn itself where `eager`, and while a
 * debugger stops at lines.
 */
void tide_script_set_source(lua_State *L, tide_script_function *f) {
    f->eager = lua_toboolean(L, 3);
    f->has_source = !lua_isnil(L, 2);
    lua_settop(L, 2);
    lua_setiuservalue(L, 1, SOURCE);
    f->looks = f->has_source || f->nwatched > 0;
    if (f->eager && !f->has_source) /* nothing but the graph: it runs as it was written */
        td_scripted_set_eager(f->function, true);
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

/* watch(f, list): for each module the list holds it, the number of its fields, and of each field
 * its key, what stood there (of nil false) and, of a tensor, its address, else false; and
 * `changed`, which raises the error. */
void tide_script_watch(lua_State *L, tide_script_function *f) {
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    f->nwatched = (int)lua_rawlen(L, 2);
    for (int at = 1; at <= f->nwatched;) {
        lua_rawgeti(L, 2, at + 1);
        int fields = (int)lua_tointeger(L, -1);
        at += 2;
        for (int k = 0; k < fields; k++, at += 3) {
            lua_rawgeti(L, 2, at + 1);
            const td_tensor *x = tide_to_tensor(L, -1); /* which the graph holds */
            if (x) {
                lua_pushlightuserdata(L, (void *)(uintptr_t)x);
                lua_rawseti(L, 2, at + 2);
            }
            lua_settop(L, 2);
        }
    }
    lua_setiuservalue(L, 1, WATCHED);
    f->looks = f->has_source || f->nwatched > 0;
}

/* Does what stood in a field (at the top) stand there still (below it)? Its address lies in the
 * list at `at`. */
static bool is_same(lua_State *L, int list, int at) {
    if (!lua_rawequal(L, -1, -2))
        return lua_isnil(L, -2) && lua_isboolean(L, -1) && !lua_toboolean(L, -1);
    if (!lua_isuserdata(L, -1))
        return true;
    lua_rawgeti(L, list, at);
    const void *address = lua_touserdata(L, -1);
    return !address || ((const tide_handle *)lua_touserdata(L, -2))->tensor == address;
}

static void raise_change(lua_State *L, int list, int at) {
    lua_getfield(L, list, "changed");
    lua_pushvalue(L, list + 1);
    lua_rawgeti(L, list, at);
    lua_rawgeti(L, list, at + 1);
    lua_pushvalue(L, list + 2);
    lua_call(L, 4, 0);
}

void tide_script_check_watched(lua_State *L, const tide_script_function *f) {
    int top = lua_gettop(L), list = top + 1;
    luaL_checkstack(L, 12, f->name);
    lua_getiuservalue(L, 1, WATCHED);
    for (int at = 1; at <= f->nwatched; lua_settop(L, list)) {
        lua_rawgeti(L, list, at);
        lua_rawgeti(L, list, at + 1);
        int fields = (int)lua_tointeger(L, -1);
        at += 2;
        for (int k = 0; k < fields; k++, at += 3) {
            lua_settop(L, list + 1);
            lua_rawgeti(L, list, at);
            lua_rawget(L, list + 1);
            lua_rawgeti(L, list, at + 1);
            if (!is_same(L, list, at + 2))
                raise_change(L, list, at);
        }
    }
    lua_settop(L, top);
}
