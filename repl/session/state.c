/* state.c: see state.h. */
#include "repl/session/state.h"

#include <lauxlib.h>
#include <string.h>

void session_bind(lua_State *L, tide_session *s) {
    memcpy(lua_getextraspace(L), &s, sizeof s);
}

tide_session *session_of(lua_State *L) {
    tide_session *s;
    memcpy(&s, lua_getextraspace(L), sizeof s);
    return s;
}

/* Is in the registry as long as it is whole. */
static const char whole_key;

/* Sets in the table at `to` what the one at `from` has. */
static void copy_entries(lua_State *L, int from, int to) {
    for (lua_pushnil(L); lua_next(L, from);) {
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, to);
    }
}

void session_keep_registry(lua_State *L) {
    tide_session *s = session_of(L);
    lua_pushboolean(L, 1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &whole_key);
    s->vault = lua_newthread(L);
    lua_newtable(L);
    lua_pushvalue(L, LUA_REGISTRYINDEX);
    copy_entries(L, lua_gettop(L), lua_gettop(L) - 1);
    lua_pop(L, 1);
    lua_xmove(L, s->vault, 1);
}

void session_mend_registry(lua_State *L) {
    tide_session *s = session_of(L);
    bool whole = lua_rawgetp(L, LUA_REGISTRYINDEX, &whole_key) == LUA_TBOOLEAN;
    lua_pop(L, 1);
    if (whole || !s->vault)
        return;
    luaL_checkstack(L, 6, NULL);
    lua_pushvalue(s->vault, 1);
    lua_xmove(s->vault, L, 1);
    lua_pushvalue(L, LUA_REGISTRYINDEX);
    copy_entries(L, lua_gettop(L) - 1, lua_gettop(L));
    lua_pop(L, 2);
}
