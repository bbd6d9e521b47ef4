/* state.c: see state.h. */
#include "repl/session/state.h"

static const char session_key;

void session_bind(lua_State *L, tide_session *s) {
    lua_pushlightuserdata(L, s);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &session_key);
}

tide_session *session_of(lua_State *L) {
    lua_rawgetp(L, LUA_REGISTRYINDEX, &session_key);
    tide_session *s = lua_touserdata(L, -1);
    lua_pop(L, 1);
    return s;
}
