/* file.c: files of tensors (engine/io/file.h) as objects of Lua, for the formats in lua/files that
 * say where in them elements lie. */
#include "lua-bindings/modules/file.h"

#include "lua-bindings/call/args.h"
#include "lua-bindings/modules/modules.h"
#include "lua-bindings/state/state.h"

static const char file_name[] = "tide.file";

td_file *tide_check_file(lua_State *L, int index) {
    td_file **file = luaL_checkudata(L, index, file_name);
    luaL_argcheck(L, *file, index, "an open file expected");
    return *file;
}

static int close_file(lua_State *L) {
    td_file **file = luaL_checkudata(L, 1, file_name);
    td_file_release(*file);
    *file = NULL;
    return 0;
}

/* _file_open(path, map, fname): a file, to close; raises where it can't be read. */
static int open_file(lua_State *L) {
    const char *path = luaL_checkstring(L, 1), *fname = luaL_checkstring(L, 3);
    td_file **file = lua_newuserdatauv(L, sizeof *file, 0);
    *file = NULL;
    luaL_setmetatable(L, file_name);
    if (td_file_open(path, lua_toboolean(L, 2), file))
        return tide_error(L, "%s: cannot read '%s': %s", fname, path, td_error_message());
    return 1;
}

/* file:size() in bytes */
static int get_size(lua_State *L) {
    lua_pushinteger(L, td_file_bytes(tide_check_file(L, 1)));
    return 1;
}

/* file:read(at, n): a string of at most n bytes from place `at`, counted from 0, on; what lies
 * beyond the end is not there. */
static int read_bytes(lua_State *L) {
    td_file *file = tide_check_file(L, 1);
    lua_Integer at = luaL_checkinteger(L, 2), n = luaL_checkinteger(L, 3);
    int64_t have = at >= 0 && at < td_file_bytes(file) ? td_file_bytes(file) - at : 0;
    luaL_Buffer bytes;
    n = n < have ? n : have;
    if (n <= 0) {
        lua_pushliteral(L, "");
        return 1;
    }
    char *to = luaL_buffinitsize(L, &bytes, (size_t)n);
    TIDE_CHECK(L, td_file_read(file, to, n, at));
    luaL_pushresultsize(&bytes, (size_t)n);
    return 1;
}

int tide_read_sizes(lua_State *L, int index, int64_t sizes[static TD_MAX_DIMS]) {
    lua_Unsigned n = lua_rawlen(L, index);
    if (n > TD_MAX_DIMS)
        return -1;
    for (int k = 0; k < (int)n; k++) {
        int is_int;
        lua_rawgeti(L, index, k + 1);
        sizes[k] = lua_tointegerx(L, -1, &is_int);
        lua_pop(L, 1);
        if (!is_int || sizes[k] < 0)
            return -1;
    }
    return (int)n;
}

int tide_tell_why(lua_State *L, td_status status) {
    if (status != TD_EVALUE && status != TD_EIO)
        return tide_raise(L);
    lua_pushnil(L);
    lua_pushstring(L, td_error_message());
    return 2;
}

/* file:tensor(at, dtype, sizes [, turned]): row-major elements from byte `at` on, mapped where they
 * can be; nil and why where the file hasn't them. */
static int make_tensor(lua_State *L) {
    td_file *file = tide_check_file(L, 1);
    lua_Integer at = luaL_checkinteger(L, 2);
    td_dtype dtype = tide_to_dtype(L, 3);
    int64_t sizes[TD_MAX_DIMS];
    luaL_argcheck(L, dtype != TD_DTYPE_NONE, 3, "a dtype expected");
    luaL_checktype(L, 4, LUA_TTABLE);
    int ndim = tide_read_sizes(L, 4, sizes);
    bool turned = lua_toboolean(L, 5);
    if (ndim < 0)
        return tide_tell_why(
            L,
            td_fail(TD_EVALUE, "its shape has what is no size, or more than %d dims", TD_MAX_DIMS));
    tide_handle *handle = tide_push_handle(L);
    td_status status = td_file_tensor(file, at, dtype, turned, ndim, sizes, &handle->tensor);
    if (status == TD_ENOMEM) {
        tide_free_memory(L, TIDE_STATE(L));
        status = td_file_tensor(file, at, dtype, turned, ndim, sizes, &handle->tensor);
    }
    if (status)
        return tide_tell_why(L, status);
    tide_check_pressure(L, TIDE_STATE(L), handle->tensor);
    return 1;
}

void tide_open_file(lua_State *L) {
    static const luaL_Reg functions[] = {{"_file_open", open_file}, {NULL, NULL}};
    static const luaL_Reg methods[] = {{"size", get_size},
                                       {"read", read_bytes},
                                       {"tensor", make_tensor},
                                       {"close", close_file},
                                       {NULL, NULL}};
    luaL_newmetatable(L, file_name);
    lua_pushcfunction(L, close_file);
    lua_setfield(L, -2, "__gc");
    lua_pushcfunction(L, close_file);
    lua_setfield(L, -2, "__close");
    lua_newtable(L);
    tide_set_functions(L, methods);
    lua_setfield(L, -2, "__index");
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 1);
    tide_set_functions(L, functions);
}
