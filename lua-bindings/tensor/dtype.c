/* dtype.c: dtypes as values of Lua: the constants tide.float32 and so on. */
#include "lua-bindings/call/args.h"
#include "lua-bindings/modules/modules.h"

#include <string.h>

static const char dtypes_key = 0;

/* A dtype is a userdata of one byte, one per state and dtype, so that == works. */
void tide_push_dtype(lua_State *L, td_dtype dtype) {
    lua_rawgetp(L, LUA_REGISTRYINDEX, &dtypes_key);
    lua_rawgeti(L, -1, dtype + 1);
    lua_replace(L, -2);
}

td_dtype tide_to_dtype(lua_State *L, int index) {
    if (lua_type(L, index) == LUA_TSTRING)
        return lua_rawlen(L, index) == strlen(lua_tostring(L, index))
                   ? td_dtype_find(lua_tostring(L, index))
                   : TD_DTYPE_NONE;
    uint8_t *d = lua_isuserdata(L, index) ? luaL_testudata(L, index, "tide.dtype") : NULL;
    return d ? (td_dtype)*d : TD_DTYPE_NONE;
}

static int dtype_tostring(lua_State *L) {
    uint8_t *d = luaL_checkudata(L, 1, "tide.dtype");
    lua_pushfstring(L, "tide.%s", td_dtype_name((td_dtype)*d));
    return 1;
}

static int dtype_index(lua_State *L) {
    uint8_t *d = luaL_checkudata(L, 1, "tide.dtype");
    const char *name = luaL_checkstring(L, 2);
    if (!strcmp(name, "itemsize"))
        lua_pushinteger(L, (lua_Integer)td_dtype_size((td_dtype)*d));
    else if (!strcmp(name, "is_floating_point"))
        lua_pushboolean(L, td_dtype_is_float((td_dtype)*d));
    else
        lua_pushnil(L);
    return 1;
}

void tide_open_dtypes(lua_State *L) {
    luaL_newmetatable(L, "tide.dtype");
    lua_pushcfunction(L, dtype_tostring);
    lua_setfield(L, -2, "__tostring");
    lua_pushcfunction(L, dtype_index);
    lua_setfield(L, -2, "__index");
    lua_pushliteral(L, "tide.dtype");
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 1);
    lua_createtable(L, TD_DTYPE_COUNT, 0);
    for (int d = 0; d < TD_DTYPE_COUNT; d++) {
        uint8_t *dtype = lua_newuserdatauv(L, 1, 0);
        *dtype = (uint8_t)d;
        luaL_setmetatable(L, "tide.dtype");
        lua_pushvalue(L, -1);
        lua_setfield(L, -4, td_dtypes[d].name);
        lua_pushvalue(L, -1);
        lua_setfield(L, -4, td_dtypes[d].alias);
        lua_rawseti(L, -2, d + 1);
    }
    lua_rawsetp(L, LUA_REGISTRYINDEX, &dtypes_key);
}
