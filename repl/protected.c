/* protected.c: see protected.h. */
#include "repl/protected.h"

#include <lauxlib.h>

typedef struct call {
    lua_CFunction body;
    int n;
    const char *const *texts;
} call;

static int run(lua_State *L) {
    const call *c = lua_touserdata(L, 1);
    luaL_checkstack(L, c->n + 1, NULL);
    lua_pushcfunction(L, c->body);
    for (int i = 0; i < c->n; i++)
        lua_pushstring(L, c->texts[i]);
    lua_call(L, c->n, 1);
    return 1;
}

const char *protected_call(lua_State *L, lua_CFunction body, int n, const char *const *texts) {
    call c = {body, n, texts};
    lua_pushcfunction(L, run);
    lua_pushlightuserdata(L, &c);
    if (lua_pcall(L, 1, 1, 0) == LUA_OK)
        return NULL;
    return lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "an error that is no text";
}
