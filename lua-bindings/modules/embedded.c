/* embedded.c: see embedded.h. */
#include "lua-bindings/modules/embedded.h"

#include "lua-bindings/modules/compiled.h"

#include <lauxlib.h>
#include <lualib.h>
#include <string.h>

const tide_embedded *tide_embedded_find(const tide_embedded *files, const char *name) {
    for (; files->name; files++)
        if (!strcmp(files->name, name))
            return files;
    return NULL;
}

void tide_copy_fields(lua_State *L, int to) {
    for (lua_pushnil(L); lua_next(L, -2);) {
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, to);
    }
    lua_pop(L, 1);
}

void tide_push_environment(lua_State *L) {
    static const char *const libraries[] = {LUA_STRLIBNAME,  LUA_TABLIBNAME, LUA_MATHLIBNAME,
                                            LUA_UTF8LIBNAME, LUA_IOLIBNAME,  LUA_OSLIBNAME,
                                            LUA_COLIBNAME,   LUA_DBLIBNAME,  LUA_LOADLIBNAME};
    lua_newtable(L);
    int env = lua_gettop(L);
    lua_pushglobaltable(L);
    tide_copy_fields(L, env);
    for (size_t k = 0; k < sizeof libraries / sizeof *libraries; k++) {
        lua_newtable(L);
        if (lua_getfield(L, env, libraries[k]) == LUA_TTABLE)
            tide_copy_fields(L, env + 1);
        lua_settop(L, env + 1);
        lua_setfield(L, env, libraries[k]);
    }
    lua_pushglobaltable(L);
    lua_setfield(L, env, LUA_GNAME);
}

void tide_push_chunk(lua_State *L, const tide_embedded *file, const char *prefix,
                     const void *environment) {
    const char *name = lua_pushfstring(L, "=%s.%s", prefix, file->name);
    tide_push_compiled(L, file, name);
    lua_remove(L, -2);
    lua_rawgetp(L, LUA_REGISTRYINDEX, environment);
    lua_setupvalue(L, -2, 1);
}
