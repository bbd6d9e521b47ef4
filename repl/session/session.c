/* session.c: birth and death of a session, and the Lua modules it carries.
 *
 * The modules (repl/session/lua) are compiled at their first use, in an environment of their own:
 * a copy of the standard library taken before any user code ran, so that `string = nil` at the
 * prompt breaks the user's code and not the display of its error.
 */
#include "repl/session/internal.h"

#include "cmake/embedded.h"
#include "lua-bindings/tide_lua.h"

#include <stdlib.h>
#include <string.h>

extern const tide_embedded tide_embedded_tide_session[];

static const char session_key, modules_key, environment_key;

tide_session *session_of(lua_State *L) {
    lua_rawgetp(L, LUA_REGISTRYINDEX, &session_key);
    tide_session *s = lua_touserdata(L, -1);
    lua_pop(L, 1);
    return s;
}

static int load_module(lua_State *L, const char *name) {
    const tide_embedded *file = tide_embedded_tide_session;
    while (file->name && strcmp(file->name, name) != 0)
        file++;
    if (!file->name)
        return luaL_error(L, "the session has no module '%s'", name);
    const char *chunkname = lua_pushfstring(L, "=tide.session.%s", name);
    if (luaL_loadbufferx(L, file->bytes, file->len, chunkname, "t") != LUA_OK)
        return lua_error(L);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &environment_key);
    lua_setupvalue(L, -2, 1);
    lua_remove(L, -2);
    lua_call(L, 0, 1);
    return 1;
}

void session_push_module(lua_State *L, const char *name) {
    luaL_checkstack(L, 8, NULL);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &modules_key);
    if (lua_getfield(L, -1, name) == LUA_TNIL) {
        lua_pop(L, 1);
        load_module(L, name);
        lua_pushvalue(L, -1);
        lua_setfield(L, -3, name);
    }
    lua_remove(L, -2);
}

void session_push_function(lua_State *L, const char *module, const char *function) {
    session_push_module(L, module);
    lua_getfield(L, -1, function);
    lua_remove(L, -2);
}

/* import(name): how one embedded module uses another. */
static int import(lua_State *L) {
    session_push_module(L, luaL_checkstring(L, 1));
    return 1;
}

/* One level deep: the library tables are copied, their functions shared. */
static void copy_environment(lua_State *L) {
    lua_newtable(L);
    int env = lua_gettop(L);
    lua_pushglobaltable(L);
    for (lua_pushnil(L); lua_next(L, env + 1);) {
        if (lua_istable(L, -1) && !lua_rawequal(L, -1, env + 1)) {
            lua_newtable(L);
            for (lua_pushnil(L); lua_next(L, -3);) {
                lua_pushvalue(L, -2);
                lua_insert(L, -2);
                lua_rawset(L, -4);
            }
            lua_remove(L, -2);
        }
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, env);
    }
    lua_pop(L, 1);
    lua_pushglobaltable(L);
    lua_setfield(L, env, "user"); /* the user's globals, as they are at any time */
    lua_pushcfunction(L, import);
    lua_setfield(L, env, "import");
    assist_install(L, env);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &environment_key);
}

/* Everything that may raise a Lua error while a session is made. */
static int prepare(lua_State *L) {
    tide_session *s = lua_touserdata(L, 1);
    lua_pushlightuserdata(L, s);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &session_key);
    lua_newtable(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &modules_key);
    control_install(L);
    if (output_install(s) != 0)
        return luaL_error(L, "out of memory");
    copy_environment(L);
    lua_getglobal(L, "require");
    lua_pushliteral(L, "tide");
    lua_call(L, 1, 1);
    if (lua_istable(L, -1))
        display_install(L);
    lua_setglobal(L, "tide");
    return 0;
}

tide_session *tide_session_new(const tide_frontend *frontend) {
    tide_session *s = calloc(1, sizeof *s);
    if (!s) {
        fputs("tide: out of memory\n", stderr);
        return NULL;
    }
    s->frontend = *frontend;
    s->count = 1;
    s->history = history_new();
    s->L = tide_lua_new();
    const char *failure = s->L && s->history ? NULL : "out of memory";
    if (!failure) {
        lua_pushcfunction(s->L, prepare);
        lua_pushlightuserdata(s->L, s);
        if (lua_pcall(s->L, 1, 0, 0) != LUA_OK) {
            failure = lua_tostring(s->L, -1);
            failure = failure ? failure : "the session could not start";
        }
    }
    if (failure) {
        fprintf(stderr, "tide: %s\n", failure);
        tide_session_free(s);
        return NULL;
    }
    return s;
}

void tide_session_free(tide_session *s) {
    if (!s)
        return;
    if (s->L)
        tide_lua_close(s->L);
    output_free(s);
    history_free(s->history);
    free(s);
}

lua_State *tide_session_lua(tide_session *s) {
    return s->L;
}

tide_frontend *tide_session_frontend(tide_session *s) {
    return &s->frontend;
}

int tide_session_count(const tide_session *s) {
    return s->count;
}
