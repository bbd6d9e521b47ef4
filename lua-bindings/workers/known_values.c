/* known_values.c: walks the modules that a state has loaded, breadth first, so that the shortest
 * name is found. */
#include "lua-bindings/workers/known_values.h"

#include <lauxlib.h>
#include <stdbool.h>
#include <string.h>

static const char names_key = 0, size_key = 0;

enum { DEEPEST = 4 }; /* words behind a module's name: tide.optim.lr_scheduler.StepLR */

static lua_Integer fields_of(lua_State *L, int index) {
    lua_Integer n = 0;
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1))
        n++;
    return n;
}

/* Something to note: what has an identity. */
static bool has_identity(lua_State *L, int index) {
    int type = lua_type(L, index);
    return type == LUA_TFUNCTION || type == LUA_TTABLE || type == LUA_TUSERDATA ||
           type == LUA_TLIGHTUSERDATA;
}

/* Lua's own library, in which a script may have put values of its own: another state has not those.
 */
static const char *const standard[] = {"_G",        "string", "table", "math",    "io", "os",
                                       "coroutine", "utf8",   "debug", "package", NULL};

static bool is_standard(const char *module) {
    const char *const *name = standard;
    while (*name && strcmp(*name, module) != 0)
        name++;
    return *name != NULL;
}

/* Has every state the field on top of a table of this name? */
static bool is_everywhere(lua_State *L, const char *within) {
    return !is_standard(within) || lua_iscfunction(L, -1);
}

/* names[value] = name, for the value on top; false where it has one. */
static bool note(lua_State *L, int names, const char *name) {
    lua_pushvalue(L, -1);
    bool fresh = lua_rawget(L, names) == LUA_TNIL;
    lua_pop(L, 1);
    if (fresh) {
        lua_pushvalue(L, -1);
        lua_pushstring(L, name);
        lua_rawset(L, names);
    }
    return fresh;
}

/* The fields of each table in the list at `now`: names, and the tables among them in the list at
 * `next`. */
static void walk_level(lua_State *L, int names, int now, int next) {
    for (lua_Integer k = 1; lua_rawgeti(L, now, k) == LUA_TTABLE; k++) {
        int table = lua_gettop(L);
        lua_pushvalue(L, table);
        lua_rawget(L, names);
        const char *within = lua_tostring(L, -1);
        for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1)) {
            const char *field = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : NULL;
            if (!field || strchr(field, '.') || !has_identity(L, -1) || !is_everywhere(L, within))
                continue;
            lua_pushfstring(L, "%s.%s", within, field);
            lua_insert(L, -2);
            if (note(L, names, lua_tostring(L, -2)) && lua_istable(L, -1)) {
                lua_pushvalue(L, -1);
                lua_rawseti(L, next, (lua_Integer)lua_rawlen(L, next) + 1);
            }
            lua_remove(L, -2);
        }
        lua_settop(L, table - 1);
    }
    lua_pop(L, 1);
}

/* It is made anew when modules have been loaded since. */
void tide_push_known_names(lua_State *L) {
    int top = lua_gettop(L);
    lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    lua_Integer size = fields_of(L, top + 1);
    if (lua_getfield(L, top + 1, "tide") == LUA_TTABLE)
        size += fields_of(L, top + 2) << 20;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &size_key);
    if (lua_tointeger(L, -1) == size &&
        lua_rawgetp(L, LUA_REGISTRYINDEX, &names_key) == LUA_TTABLE) {
        lua_replace(L, top + 1);
        lua_settop(L, top + 1);
        return;
    }
    lua_settop(L, top + 1);
    lua_newtable(L);
    int names = top + 2;
    lua_newtable(L);
    for (lua_pushnil(L); lua_next(L, top + 1); lua_pop(L, 1))
        if (lua_type(L, -2) == LUA_TSTRING && lua_istable(L, -1) &&
            !strchr(lua_tostring(L, -2), '.') && note(L, names, lua_tostring(L, -2))) {
            lua_pushvalue(L, -1);
            lua_rawseti(L, names + 1, (lua_Integer)lua_rawlen(L, names + 1) + 1);
        }
    for (int depth = 0; depth < DEEPEST; depth++) {
        lua_newtable(L);
        walk_level(L, names, names + 1, names + 2);
        lua_replace(L, names + 1);
    }
    lua_pushvalue(L, names);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &names_key);
    lua_pushinteger(L, size);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &size_key);
    lua_copy(L, names, top + 1);
    lua_settop(L, top + 1);
}

void tide_push_known_named(lua_State *L, const char *name, size_t len) {
    const char *dot = memchr(name, '.', len), *end = name + len;
    lua_getglobal(L, "require");
    lua_pushlstring(L, name, dot ? (size_t)(dot - name) : len);
    lua_call(L, 1, 1);
    for (const char *at = dot ? dot + 1 : end; at < end; at = dot ? dot + 1 : end) {
        dot = memchr(at, '.', (size_t)(end - at));
        lua_pushlstring(L, at, (size_t)((dot ? dot : end) - at));
        lua_gettable(L, -2);
        lua_remove(L, -2);
    }
    if (lua_isnil(L, -1)) {
        lua_pushlstring(L, name, len);
        luaL_error(L, "a worker has no '%s'", lua_tostring(L, -1));
    }
}
