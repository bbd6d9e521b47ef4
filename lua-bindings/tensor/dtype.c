/* dtype.c: dtypes as values of Lua: the constants tide.float32 and so on. */
#include "lua-bindings/call/args.h"
#include "lua-bindings/modules/modules.h"

#include "engine/ops/quantized/quantized_tensor.h"

#include <string.h>

static const char dtypes_key = 0;

/* A dtype is a userdata of one byte, one per state and dtype, so that == works. Those of quantized
 * tensors have the byte of their integers and this bit. */
enum { QUANTIZED = 0x80 };

static void push_byte(lua_State *L, int byte) {
    lua_rawgetp(L, LUA_REGISTRYINDEX, &dtypes_key);
    lua_rawgeti(L, -1, byte + 1);
    lua_replace(L, -2);
}

void tide_push_dtype(lua_State *L, td_dtype dtype) {
    push_byte(L, (int)dtype);
}

void tide_push_quantized_dtype(lua_State *L, td_dtype ints) {
    push_byte(L, (int)ints | QUANTIZED);
}

void tide_push_dtype_of(lua_State *L, const td_tensor *x) {
    push_byte(L, x->layout == TD_QUANTIZED ? x->dtype | QUANTIZED : x->dtype);
}

const char *tide_to_quantized(lua_State *L, int index) {
    uint8_t *d = lua_isuserdata(L, index) ? luaL_testudata(L, index, "tide.dtype") : NULL;
    return d && *d & QUANTIZED ? td_quantized_name((td_dtype)(*d & ~QUANTIZED)) : NULL;
}

td_dtype tide_to_dtype(lua_State *L, int index) {
    if (lua_type(L, index) == LUA_TSTRING)
        return lua_rawlen(L, index) == strlen(lua_tostring(L, index))
                   ? td_dtype_find(lua_tostring(L, index))
                   : TD_DTYPE_NONE;
    uint8_t *d = lua_isuserdata(L, index) ? luaL_testudata(L, index, "tide.dtype") : NULL;
    return d && !(*d & QUANTIZED) ? (td_dtype)*d : TD_DTYPE_NONE;
}

static int dtype_tostring(lua_State *L) {
    uint8_t *d = luaL_checkudata(L, 1, "tide.dtype");
    const char *name = tide_to_quantized(L, 1);
    lua_pushfstring(L, "tide.%s", name ? name : td_dtype_name((td_dtype)*d));
    return 1;
}

static int dtype_index(lua_State *L) {
    uint8_t *d = luaL_checkudata(L, 1, "tide.dtype");
    const char *name = luaL_checkstring(L, 2);
    if (!strcmp(name, "itemsize"))
        lua_pushinteger(L, (lua_Integer)td_dtype_size((td_dtype)(*d & ~QUANTIZED)));
    else if (!strcmp(name, "is_floating_point"))
        lua_pushboolean(L, td_dtype_is_float((td_dtype)(*d & ~QUANTIZED)));
    else
        lua_pushnil(L);
    return 1;
}

/* The tide table below the list of dtypes gets the constant of a byte. */
static void add_dtype(lua_State *L, int byte, const char *name, const char *alias) {
    uint8_t *dtype = lua_newuserdatauv(L, 1, 0);
    *dtype = (uint8_t)byte;
    luaL_setmetatable(L, "tide.dtype");
    lua_pushvalue(L, -1);
    lua_setfield(L, -4, name);
    if (alias) {
        lua_pushvalue(L, -1);
        lua_setfield(L, -4, alias);
    }
    lua_rawseti(L, -2, byte + 1);
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
        add_dtype(L, d, td_dtypes[d].name, td_dtypes[d].alias);
        if (td_quantized_name((td_dtype)d))
            add_dtype(L, d | QUANTIZED, td_quantized_name((td_dtype)d), NULL);
    }
    lua_rawsetp(L, LUA_REGISTRYINDEX, &dtypes_key);
}
