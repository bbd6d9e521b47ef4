/* sizes.c: shapes and strides as Lua sees them: a table that counts from 1, from the end where
 * negative, prints as "(2, 3)" and compares by its numbers. */
#include "lua-bindings/call/function.h"
#include "lua-bindings/modules/modules.h"
#include "lua-bindings/tensor/tensor.h"

#include <string.h>

static const char sizes_key = 0;

/* A number that luaL_Buffer can take: others' values may stand where sizes do. */
static int sizes_to_text(lua_State *L) {
    luaL_Buffer b;
    luaL_checktype(L, 1, LUA_TTABLE);
    int n = (int)lua_rawlen(L, 1);
    luaL_buffinit(L, &b);
    luaL_addchar(&b, '(');
    for (int k = 1; k <= n; k++) {
        if (k > 1)
            luaL_addstring(&b, ", ");
        lua_rawgeti(L, 1, k);
        luaL_tolstring(L, -1, NULL);
        lua_remove(L, -2);
        luaL_addvalue(&b);
    }
    luaL_addchar(&b, ')');
    luaL_pushresult(&b);
    return 1;
}

static int sizes_equal(lua_State *L) {
    bool same = lua_istable(L, 1) && lua_istable(L, 2) && lua_rawlen(L, 1) == lua_rawlen(L, 2);
    for (int k = same ? (int)lua_rawlen(L, 1) : 0; same && k > 0; k--) {
        lua_rawgeti(L, 1, k);
        lua_rawgeti(L, 2, k);
        same = lua_rawequal(L, -1, -2);
        lua_pop(L, 2);
    }
    lua_pushboolean(L, same);
    return 1;
}

/* x.shape:unpack(): the sizes as so many values. */
static int sizes_unpack(lua_State *L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    int n = (int)lua_rawlen(L, 1);
    luaL_checkstack(L, n, NULL);
    for (int k = 1; k <= n; k++)
        lua_rawgeti(L, 1, k);
    return n;
}

/* Keys that no element has: -1 is the last; beyond the last lies nil, where ipairs stops. */
static int sizes_index(lua_State *L) {
    char text[80];
    int ok;
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_Integer n = (lua_Integer)lua_rawlen(L, 1);
    lua_Integer k = lua_type(L, 2) == LUA_TNUMBER ? lua_tointegerx(L, 2, &ok) : (ok = 0);
    if (lua_type(L, 2) == LUA_TSTRING && !strcmp(lua_tostring(L, 2), "unpack")) {
        lua_pushcfunction(L, sizes_unpack);
        return 1;
    }
    if (!ok)
        return tide_error(L, "shape: an integer from 1 to %I expected, got %s", (LUAI_UACINT)n,
                          tide_describe(L, 2, text, sizeof text));
    if (k == 0)
        return tide_error(L, "shape: index 0: dims count from 1 (PyTorch's shape[0] is 1)");
    if (k < -n)
        return tide_error(L, "shape: index %I is out of range for %I dims", (LUAI_UACINT)k,
                          (LUAI_UACINT)n);
    if (k > 0)
        return 0;
    lua_rawgeti(L, 1, n + 1 + k);
    return 1;
}

static void push_metatable(lua_State *L) {
    static const luaL_Reg events[] = {{"__tostring", sizes_to_text},
                                      {"__eq", sizes_equal},
                                      {"__index", sizes_index},
                                      {NULL, NULL}};
    lua_createtable(L, 0, 6);
    luaL_setfuncs(L, events, 0);
    lua_pushliteral(L, "tide.Size");
    lua_setfield(L, -2, "__name");
    lua_pushliteral(L, "tide.Size");
    lua_setfield(L, -2, "__metatable");
}

void tide_push_sizes(lua_State *L, int ndim, const int64_t *sizes) {
    int64_t copy[TD_MAX_DIMS]; /* a finalizer may close the tensor that they belong to */
    for (int d = 0; d < ndim; d++)
        copy[d] = sizes[d];
    lua_createtable(L, ndim, 0);
    for (int d = 0; d < ndim; d++) {
        lua_pushinteger(L, copy[d]);
        lua_rawseti(L, -2, d + 1);
    }
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &sizes_key) != LUA_TTABLE) {
        lua_pop(L, 1);
        push_metatable(L);
        lua_pushvalue(L, -1);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &sizes_key);
    }
    lua_setmetatable(L, -2);
}

/* A shape among the arguments, broadcast with what came before. */
static void broadcast_argument(lua_State *L, int index, int *ndim, int64_t *sizes) {
    int64_t shape[TD_MAX_DIMS];
    char text[80];
    int ok = lua_istable(L, index) || lua_isinteger(L, index), one = lua_isinteger(L, index);
    int n = one ? 1 : ok ? (int)tide_list_length(L, index, "broadcast_shapes") : 0;
    for (int k = 0; k < n && ok; k++) {
        if (one)
            lua_pushvalue(L, index);
        else
            lua_rawgeti(L, index, k + 1);
        int64_t size = lua_tointegerx(L, -1, &ok);
        lua_pop(L, 1);
        ok = ok && size >= 0 && k < TD_MAX_DIMS;
        if (ok)
            shape[k] = size;
    }
    if (!ok)
        tide_error(L, "broadcast_shapes: argument %d: expected a list of at most %d sizes, got %s",
                   index, TD_MAX_DIMS, tide_describe(L, index, text, sizeof text));
    if (td_broadcast(*ndim, sizes, n, shape, ndim, sizes))
        tide_error(L, "broadcast_shapes: %s", td_error_message());
}

static int broadcast_shapes(lua_State *L) {
    int64_t sizes[TD_MAX_DIMS];
    int ndim = 0;
    for (int k = 1, n = lua_gettop(L); k <= n; k++)
        broadcast_argument(L, k, &ndim, sizes);
    tide_push_sizes(L, ndim, sizes);
    return 1;
}

void tide_open_sizes(lua_State *L) {
    static const tide_function functions[] = {
        {"broadcast_shapes(...) -> Size", "The shape that tensors of these shapes broadcast to.",
         broadcast_shapes},
        {NULL, NULL, NULL}};
    tide_declare(L, functions);
}
