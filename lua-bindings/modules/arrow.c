/* arrow.c: columns of Arrow's C data interface (engine/io/arrow.h) for lua/files/arrow.lua, by
 * light userdata: a host program in C hands over the addresses of its structs, or takes those of
 * ours. */
#include "engine/io/arrow.h"

#include "lua-bindings/call/args.h"
#include "lua-bindings/modules/modules.h"
#include "lua-bindings/state/errors.h"

#include <string.h>

static const char taken_name[] = "tide.arrow", given_name[] = "tide.ArrowColumns";

static int fail_arrow(lua_State *L, const char *fname) {
    if (td_error_code() == TD_ENOMEM || td_error_code() == TD_EINTR)
        tide_raise(L);
    return tide_error(L, "%s: %s", fname, td_error_message());
}

/* ---- reading ---- */

static int close_taken(lua_State *L) {
    td_arrow **x = luaL_checkudata(L, 1, taken_name);
    td_arrow_release(*x);
    *x = NULL;
    return 0;
}

/* Push the list of a column's texts, false for those that are missing. */
static void push_texts(lua_State *L, const td_arrow *x, int64_t column) {
    lua_newtable(L);
    for (int64_t row = 0; row < td_arrow_rows(x); row++) {
        const char *at;
        size_t len;
        tide_poll(L, row);
        if (td_arrow_text(x, column, row, &at, &len))
            fail_arrow(L, "from_arrow");
        if (at)
            lua_pushlstring(L, at, len);
        else
            lua_pushboolean(L, 0);
        lua_rawseti(L, -2, (lua_Integer)row + 1);
    }
}

/* Push {name, tensor or list of texts}. */
static void push_column(lua_State *L, td_arrow *x, int64_t column) {
    lua_createtable(L, 2, 0);
    lua_pushstring(L, td_arrow_name(x, column));
    lua_rawseti(L, -2, 1);
    if (td_arrow_has_texts(x, column)) {
        push_texts(L, x, column);
    } else {
        tide_handle *handle = tide_push_handle(L);
        if (td_arrow_tensor(x, column, &handle->tensor))
            fail_arrow(L, "from_arrow");
        tide_check_pressure(L, TIDE_STATE(L), handle->tensor);
    }
    lua_rawseti(L, -2, 2);
}

/* _arrow_read(schema, array): the list of {name, values} of a struct's columns, or of the one
 * column; whether it is a struct; how many rows. Both structs are taken. */
static int read_arrow(lua_State *L) {
    if (lua_type(L, 1) != LUA_TLIGHTUSERDATA || lua_type(L, 2) != LUA_TLIGHTUSERDATA ||
        !lua_touserdata(L, 1) || !lua_touserdata(L, 2))
        return tide_error(
            L, "from_arrow: the addresses of a schema and of an array expected, as light userdata");
    td_arrow **x = lua_newuserdatauv(L, sizeof *x, 0);
    *x = NULL;
    luaL_setmetatable(L, taken_name);
    if (td_arrow_take(lua_touserdata(L, 1), lua_touserdata(L, 2), x))
        return fail_arrow(L, "from_arrow");
    int64_t n = td_arrow_columns(*x);
    lua_newtable(L);
    for (int64_t k = 0; k < (n < 0 ? 1 : n); k++) {
        push_column(L, *x, k);
        lua_rawseti(L, -2, (lua_Integer)k + 1);
    }
    lua_pushboolean(L, n >= 0);
    lua_pushinteger(L, (lua_Integer)td_arrow_rows(*x));
    td_arrow_release(*x);
    *x = NULL;
    return 3;
}

/* ---- writing ---- */

/* Structs that nobody has taken yet: a userdata, which releases them then. */
typedef struct given {
    struct ArrowSchema schema;
    struct ArrowArray array;
} given;

static void release_given(given *g) {
    if (g->schema.release)
        g->schema.release(&g->schema);
    if (g->array.release)
        g->array.release(&g->array);
}

static int close_given(lua_State *L) {
    release_given(luaL_checkudata(L, 1, given_name));
    return 0;
}

static int index_given(lua_State *L) {
    given *g = luaL_checkudata(L, 1, given_name);
    const char *key = luaL_checkstring(L, 2);
    if (!strcmp(key, "schema"))
        lua_pushlightuserdata(L, &g->schema);
    else if (!strcmp(key, "array"))
        lua_pushlightuserdata(L, &g->array);
    else
        lua_pushnil(L);
    return 1;
}

static given *push_given(lua_State *L) {
    given *g = lua_newuserdatauv(L, sizeof *g, 0);
    memset(g, 0, sizeof *g);
    luaL_setmetatable(L, given_name);
    return g;
}

/* Fill `to` with the column at the top, {name, tensor} or {name, codes, bytes, offsets}. */
static void give_column(lua_State *L, given *to) {
    int column = lua_gettop(L);
    for (int k = 1; k <= 4; k++)
        lua_rawgeti(L, column, k);
    const char *name = luaL_checkstring(L, column + 1);
    td_tensor *values = tide_hold_elements(L, column + 2, "to_arrow");
    td_status status;
    if (lua_isnil(L, column + 3)) {
        status = td_to_arrow(values, name, &to->schema, &to->array);
    } else {
        td_tensor *bytes = tide_hold_elements(L, column + 3, "to_arrow");
        td_tensor *offsets = tide_hold_elements(L, column + 4, "to_arrow");
        status = td_texts_to_arrow(values, bytes, offsets, name, &to->schema, &to->array);
    }
    if (status) {
        memset(to, 0, sizeof *to); /* they are released */
        fail_arrow(L, "to_arrow");
    }
    lua_settop(L, column);
}

/* _arrow_write(columns, rows or nil): the structs of a table, or without rows of the one column. */
static int write_arrow(lua_State *L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 2);
    lua_Integer n = (lua_Integer)lua_rawlen(L, 1);
    given *whole = push_given(L);
    lua_newtable(L);
    int columns = lua_gettop(L);
    for (lua_Integer k = 1; k <= n; k++) {
        given *column = push_given(L);
        lua_rawgeti(L, 1, k);
        luaL_checktype(L, -1, LUA_TTABLE);
        give_column(L, column);
        lua_pop(L, 1);
        lua_rawseti(L, columns, k);
    }
    struct ArrowSchema *schemas = lua_newuserdatauv(L, (size_t)(n + 1) * sizeof *schemas, 0);
    struct ArrowArray *arrays = lua_newuserdatauv(L, (size_t)(n + 1) * sizeof *arrays, 0);
    for (lua_Integer k = 0; k < n; k++) { /* moved, with nothing that raises behind it */
        lua_rawgeti(L, columns, k + 1);
        given *column = lua_touserdata(L, -1);
        schemas[k] = column->schema;
        arrays[k] = column->array;
        column->schema.release = NULL;
        column->array.release = NULL;
        lua_pop(L, 1);
    }
    if (lua_isnil(L, 2) && n == 1) {
        *whole = (given){schemas[0], arrays[0]};
    } else if (td_columns_to_arrow(n, schemas, arrays, (int64_t)lua_tointeger(L, 2), &whole->schema,
                                   &whole->array)) {
        memset(whole, 0, sizeof *whole);
        fail_arrow(L, "to_arrow");
    }
    lua_pushvalue(L, 3);
    return 1;
}

static void set_class(lua_State *L, const char *name, lua_CFunction close, lua_CFunction index) {
    luaL_newmetatable(L, name);
    lua_pushcfunction(L, close);
    lua_setfield(L, -2, "__gc");
    if (index) {
        lua_pushcfunction(L, index);
        lua_setfield(L, -2, "__index");
    }
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 1);
}

void tide_open_arrow(lua_State *L) {
    static const luaL_Reg functions[] = {
        {"_arrow_read", read_arrow}, {"_arrow_write", write_arrow}, {NULL, NULL}};
    set_class(L, taken_name, close_taken, NULL);
    set_class(L, given_name, close_given, index_given);
    tide_set_functions(L, functions);
}
