/* script_values.c: Lua values as values of graphs, and back. Lists are tables from 1 to n. */
#include "lua-bindings/call/args.h"
#include "lua-bindings/script/script_function.h"

#include <string.h>

/* ---- from Lua ---- */

static int fail_input(lua_State *L, int index, const td_ir_value *input, const char *name, int k) {
    char type[160], text[80];
    return tide_error(
        L, "%s: input %d (%s): %s expected, got %s", name, k, input->name,
        td_ir_type_text(td_ir_simple_type((td_ir_type_kind)input->type->kind), type, sizeof type),
        tide_describe(L, index, text, sizeof text));
}

/* Of the entry of a list that is none of its type. */
static int fail_entry(lua_State *L, int entry, const td_ir_value *input, const char *name, int k,
                      int at) {
    char type[160], text[80];
    return tide_error(L, "%s: input %d (%s): %s expected, entry %d is %s", name, k, input->name,
                      td_ir_type_text(input->type, type, sizeof type), at,
                      tide_describe(L, entry, text, sizeof text));
}

static bool fits_entry(lua_State *L, td_ir_type_kind kind) {
    if (kind == TD_IR_TENSOR)
        return tide_to_tensor(L, -1) != NULL;
    return kind == TD_IR_INT ? lua_isinteger(L, -1) : lua_type(L, -1) == LUA_TNUMBER;
}

static int length_of(lua_State *L, int index, const td_ir_value *input, const char *name, int k) {
    if (!lua_istable(L, index))
        fail_input(L, index, input, name, k);
    lua_Integer n = tide_list_length(L, index, name);
    if (n > INT32_MAX)
        tide_error(L, "%s: input %d (%s): a list of %I entries", name, k, input->name,
                   (LUAI_UACINT)n);
    return (int)n;
}

/* A list of ints, floats or tensors; its elements lie in a userdata that is pushed. */
static td_value read_list(lua_State *L, int index, const td_ir_value *input, const char *name,
                          int k) {
    td_ir_type_kind kind = (td_ir_type_kind)input->type->parts[0]->kind;
    int n = length_of(L, index, input, name, k);
    if (kind != TD_IR_TENSOR && kind != TD_IR_INT && kind != TD_IR_FLOAT)
        tide_error(L, "%s: input %d (%s): lists of this kind can't be given from Lua", name, k,
                   input->name);
    luaL_checkstack(L, 4, name);
    void *elements = lua_newuserdatauv(L, 8 * (size_t)(n ? n : 1), 0);
    for (int j = 0; j < n; j++) {
        lua_rawgeti(L, index, j + 1);
        if (!fits_entry(L, kind))
            fail_entry(L, lua_gettop(L), input, name, k, j + 1);
        if (kind == TD_IR_INT)
            ((int64_t *)elements)[j] = lua_tointeger(L, -1);
        else if (kind == TD_IR_FLOAT)
            ((double *)elements)[j] = lua_tonumber(L, -1);
        else
            ((td_tensor **)elements)[j] = NULL;
        lua_pop(L, 1);
    }
    if (kind == TD_IR_TENSOR)
        return TD_TENSORS(n, elements);
    return kind == TD_IR_INT ? TD_INTS(n, elements) : TD_FLOATS(n, elements);
}

/* What stands for itself, whatever is expected. */
static td_value read_any(lua_State *L, int index, const td_ir_value *input, const char *name,
                         int k) {
    switch (lua_type(L, index)) {
    case LUA_TNIL:
    case LUA_TNONE:
        return TD_NIL;
    case LUA_TBOOLEAN:
        return TD_B(lua_toboolean(L, index));
    case LUA_TNUMBER:
        return lua_isinteger(L, index) ? TD_I(lua_tointeger(L, index))
                                       : TD_F(lua_tonumber(L, index));
    case LUA_TSTRING:
        return TD_STRING(lua_tostring(L, index));
    default:
        break;
    }
    if (tide_to_tensor(L, index))
        return (td_value){.kind = TD_KIND_TENSOR};
    td_dtype dtype = lua_isuserdata(L, index) ? tide_to_dtype(L, index) : TD_DTYPE_NONE;
    if (dtype == TD_DTYPE_NONE)
        fail_input(L, index, input, name, k);
    return TD_DTYPE(dtype);
}

/* Has a value that was read the kind that a type wants? An int is taken for a float. */
static bool has_kind(td_value *v, td_ir_type_kind kind) {
    switch (kind) {
    case TD_IR_TENSOR:
        return v->kind == TD_KIND_TENSOR;
    case TD_IR_INT:
        return v->kind == TD_KIND_INT;
    case TD_IR_FLOAT:
        if (v->kind == TD_KIND_INT)
            *v = TD_F((double)v->i);
        return v->kind == TD_KIND_FLOAT;
    case TD_IR_BOOL:
        return v->kind == TD_KIND_BOOL;
    case TD_IR_NUMBER:
        return v->kind == TD_KIND_INT || v->kind == TD_KIND_FLOAT || v->kind == TD_KIND_BOOL;
    case TD_IR_STRING:
        return v->kind == TD_KIND_STRING;
    case TD_IR_NONE:
        return v->kind == TD_KIND_NIL;
    case TD_IR_DTYPE:
        return v->kind == TD_KIND_DTYPE;
    case TD_IR_ANY:
        return true;
    case TD_IR_DEVICE:
    case TD_IR_GENERATOR:
    case TD_IR_LIST:
    case TD_IR_OPTIONAL:
    case TD_IR_FUTURE:
    case TD_IR_TUPLE:
    case TD_IR_TYPE_KINDS:
        break;
    }
    return false;
}

td_value tide_script_read(lua_State *L, int index, const td_ir_value *input, const char *name,
                          int k) {
    td_ir_value inner = *input;
    while (inner.type->kind == TD_IR_OPTIONAL) {
        if (lua_isnoneornil(L, index))
            return TD_NIL;
        inner.type = inner.type->parts[0];
    }
    if (inner.type->kind == TD_IR_LIST)
        return read_list(L, index, &inner, name, k);
    td_value v = read_any(L, index, &inner, name, k);
    if (v.kind == TD_KIND_STRING && inner.type->kind == TD_IR_DTYPE)
        v = TD_DTYPE(tide_to_dtype(L, index));
    if (v.kind == TD_KIND_STRING && inner.type->kind == TD_IR_DEVICE) {
        td_device device;
        TIDE_CHECK(L, td_device_parse(v.string, &device));
        return TD_DEVICE(device);
    }
    if (!has_kind(&v, (td_ir_type_kind)inner.type->kind))
        fail_input(L, index, &inner, name, k);
    return v;
}

void tide_script_load(lua_State *L, int index, td_value *v) {
    if (v->kind == TD_KIND_TENSOR)
        v->tensor = tide_to_tensor(L, index);
    for (int j = 0; v->kind == TD_KIND_TENSORS && j < v->n; j++) {
        lua_rawgeti(L, index, j + 1);
        ((td_tensor **)(uintptr_t)v->tensors)[j] = tide_to_tensor(L, -1);
        lua_pop(L, 1);
    }
}

/* ---- to Lua ---- */

static void push_list(lua_State *L, const td_value *v) {
    lua_createtable(L, v->n, 0);
    for (int j = 0; j < v->n; j++) {
        if (v->kind == TD_KIND_INTS)
            lua_pushinteger(L, v->ints[j]);
        else if (v->kind == TD_KIND_FLOATS)
            lua_pushnumber(L, v->floats[j]);
        else if (v->tensors[j])
            tide_push_handle(L)->tensor = td_retain(v->tensors[j]);
        else
            lua_pushboolean(L, 0);
        lua_rawseti(L, -2, j + 1);
    }
}

void tide_script_push(lua_State *L, const td_value *v) {
    luaL_checkstack(L, 4, "too many values");
    switch ((td_kind)v->kind) {
    case TD_KIND_TENSOR:
        tide_push_handle(L)->tensor = td_retain(v->tensor);
        return;
    case TD_KIND_INT:
        lua_pushinteger(L, v->i);
        return;
    case TD_KIND_FLOAT:
        lua_pushnumber(L, v->f);
        return;
    case TD_KIND_BOOL:
        lua_pushboolean(L, v->b);
        return;
    case TD_KIND_INTS:
    case TD_KIND_FLOATS:
    case TD_KIND_TENSORS:
        push_list(L, v);
        return;
    case TD_KIND_DTYPE:
        tide_push_dtype(L, v->dtype);
        return;
    case TD_KIND_DEVICE:
        lua_pushstring(L, td_device_name(v->device));
        return;
    case TD_KIND_STRING:
        lua_pushstring(L, v->string);
        return;
    case TD_KIND_NIL:
    case TD_KIND_GENERATOR:
        break;
    }
    lua_pushnil(L);
}
