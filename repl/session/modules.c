/* modules.c: the Lua modules that a session carries.
 *
 * The modules (repl/session/lua) are compiled at their first use, in an environment of their own
 * (lua-bindings/modules/embedded.h) taken before any user code ran, so that `string = nil` at the
 * prompt breaks the user's code and not the display of its error.
 */
#include "repl/session/modules.h"
#include "repl/session/state.h"

#include "lua-bindings/modules/embedded.h"

#include <lauxlib.h>
#include <lualib.h>
#include <string.h>

extern const tide_embedded tide_embedded_tide_session[];

static const char modules_key, environment_key;

static void load_module(lua_State *L, const char *name) {
    const tide_embedded *file = tide_embedded_find(tide_embedded_tide_session, name);
    if (!file)
        luaL_error(L, "the session has no module '%s'", name);
    tide_push_chunk(L, file, "tide.session", &environment_key);
    lua_call(L, 0, 1);
}

/* Pushes the table of a module. */
static void push_module(lua_State *L, const char *name) {
    luaL_checkstack(L, 8, NULL);
    session_mend_registry(L);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &modules_key);
    if (lua_getfield(L, -1, name) == LUA_TNIL) {
        lua_pop(L, 1);
        load_module(L, name);
        lua_pushvalue(L, -1);
        lua_setfield(L, -3, name);
    }
    lua_remove(L, -2);
}

void module_push_function(lua_State *L, const char *module, const char *function) {
    push_module(L, module);
    lua_getfield(L, -1, function);
    lua_remove(L, -2);
}

/* import(name): how one embedded module uses another. */
static int import(lua_State *L) {
    push_module(L, luaL_checkstring(L, 1));
    return 1;
}

/* standard: a table whose keys are the names of the globals as they are now. */
static void set_standard_names(lua_State *L, int env) {
    lua_newtable(L);
    lua_pushglobaltable(L);
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
        lua_pushvalue(L, -2);
        lua_pushboolean(L, 1);
        lua_rawset(L, -6);
    }
    lua_pop(L, 1);
    lua_setfield(L, env, "standard");
}

/* streams: the methods of files. loader: the table that require looks into. */
static void set_held_tables(lua_State *L, int env) {
    if (luaL_getmetatable(L, LUA_FILEHANDLE) == LUA_TTABLE &&
        lua_getfield(L, -1, "__index") == LUA_TTABLE) {
        lua_newtable(L);
        lua_insert(L, -2);
        tide_copy_fields(L, lua_gettop(L) - 1);
        lua_setfield(L, env, "streams");
    }
    lua_settop(L, env);
    lua_getglobal(L, LUA_LOADLIBNAME);
    lua_setfield(L, env, "loader");
}

void modules_install(lua_State *L) {
    lua_newtable(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &modules_key);
    tide_push_environment(L);
    int env = lua_gettop(L);
    set_held_tables(L, env);
    set_standard_names(L, env);
    lua_pushglobaltable(L);
    lua_setfield(L, env, "user"); /* the user's globals, as they are at any time */
    lua_pushcfunction(L, import);
    lua_setfield(L, env, "import");
    lua_pushvalue(L, env);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &environment_key);
}

void modules_set_tide(lua_State *L) {
    int tide = lua_gettop(L);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &environment_key);
    lua_pushvalue(L, tide);
    lua_setfield(L, -2, "tide");
    lua_newtable(L);
    lua_pushvalue(L, tide);
    tide_copy_fields(L, tide + 2);
    lua_createtable(L, 0, 1);
    lua_pushvalue(L, tide);
    lua_setfield(L, -2, "__index"); /* parts that are loaded later */
    lua_setmetatable(L, -2);
    lua_setfield(L, -2, "held_tide");
    lua_settop(L, tide);
}

bool module_push_tide(lua_State *L) {
    lua_rawgetp(L, LUA_REGISTRYINDEX, &environment_key);
    bool found = lua_getfield(L, -1, "tide") == LUA_TTABLE;
    lua_replace(L, -2);
    return found;
}
