/* script_values.c: Lua values as values of graphs, and back. Lists and tuples are tables from 1 to
 * n, dicts tables with names, futures an object of their own. What a value owns while arguments are
 * read lies in userdata on the stack, so that an error loses nothing.
 */
#include "lua-bindings/call/args.h"
#include "lua-bindings/script/script_function.h"

#include "engine/ops/quantized/quantized_tensor.h"

#include <stdlib.h>
#include <string.h>

/* ---- from Lua ---- */

static int fail_input(lua_State *L, int index, const td_ir_value *input, const char *name, int k) {
    char type[160], text[80];
    const td_ir_type *wanted =
        input->type->kind == TD_IR_TENSOR ? td_ir_simple_type(TD_IR_TENSOR) : input->type;
    return tide_error(L, "%s: input %d (%s): %s expected, got %s", name, k, input->name,
                      td_ir_type_text(wanted, type, sizeof type),
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
static td_value read_elements(lua_State *L, int index, const td_ir_value *input, const char *name,
                              int k) {
    td_ir_type_kind kind = (td_ir_type_kind)input->type->parts[0]->kind;
    int n = length_of(L, index, input, name, k);
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

/* ---- boxes ---- */

static const char *const holder_name = "tide.jit.Value"; /* drops its value when it is collected */
static const char *const future_name = "tide.Future";

static td_value *push_holder(lua_State *L, const char *class_name) {
    td_value *v = lua_newuserdatauv(L, sizeof *v, 0);
    *v = TD_NIL;
    luaL_setmetatable(L, class_name);
    return v;
}

static int drop_held(lua_State *L) {
    td_value_drop(lua_touserdata(L, 1));
    return 0;
}

td_value *tide_push_future(lua_State *L) {
    return push_holder(L, future_name);
}

td_value *tide_to_future(lua_State *L, int index) {
    return luaL_testudata(L, index, future_name);
}

/* A value with all that it has, for a list: tensors are retained at once. */
static td_value read_whole(lua_State *L, int index, const td_ir_value *input, const char *name,
                           int k) {
    td_value v = tide_script_read(L, index, input, name, k);
    tide_script_load(L, index, &v);
    return v;
}

/* A list whose entries are kept as values; the box is held by a userdata that is pushed. */
static td_value read_values(lua_State *L, int index, const td_ir_value *input, const char *name,
                            int k) {
    int n = length_of(L, index, input, name, k);
    td_ir_value entry = *input;
    entry.type = input->type->parts[0];
    luaL_checkstack(L, 8, name);
    td_value *held = push_holder(L, holder_name);
    TIDE_CHECK(L, td_box_list_new(td_entries_of_type(entry.type), held));
    for (int j = 0; j < n; j++) {
        lua_rawgeti(L, index, j + 1);
        int top = lua_gettop(L);
        td_value v = read_whole(L, top, &entry, name, k);
        TIDE_CHECK(L, td_list_append(td_value_list(*held), v));
        lua_settop(L, top - 1);
    }
    td_value_set_given(*held);
    return *held;
}

static td_value read_tuple(lua_State *L, int index, const td_ir_value *input, const char *name,
                           int k) {
    int n = input->type->n; /* parts that are nil may be left out */
    td_ir_value part = *input;
    if (!lua_istable(L, index) || lua_rawlen(L, index) > (lua_Unsigned)n)
        fail_input(L, index, input, name, k);
    luaL_checkstack(L, 8, name);
    td_value *held = push_holder(L, holder_name);
    TIDE_CHECK(L, td_box_tuple_new(n, held));
    for (int j = 0; j < n; j++) {
        lua_rawgeti(L, index, j + 1);
        int top = lua_gettop(L);
        part.type = input->type->parts[j];
        td_value v = read_whole(L, top, &part, name, k);
        TIDE_CHECK(L, td_value_keep(v, &td_value_tuple(*held)->parts[j]));
        lua_settop(L, top - 1);
    }
    td_value_set_given(*held);
    return *held;
}

/* As it lies in Lua; one that holds a NUL is boxed, since the engine's texts end there. */
static td_value read_string(lua_State *L, int index) {
    size_t length;
    const char *text = lua_tolstring(L, index, &length);
    if (strlen(text) == length)
        return TD_STRING(text);
    td_value *held = push_holder(L, holder_name);
    TIDE_CHECK(L, td_box_string_new(text, (int64_t)length, held));
    return *held;
}

/* A key of a table, where the string lies in Lua. */
typedef struct table_key {
    const char *text;
    size_t length;
} table_key;

static int compare_keys(const void *first, const void *second) {
    const table_key *a = first, *b = second;
    int order = memcmp(a->text, b->text, a->length < b->length ? a->length : b->length);
    return order ? order : (a->length > b->length) - (a->length < b->length);
}

/* The keys of a table, which are strings, in their order, since tables have none; pushed. */
static table_key *push_keys(lua_State *L, int index, const td_ir_value *input, const char *name,
                            int k, int *n) {
    *n = 0;
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TSTRING)
            fail_input(L, index, input, name, k);
        ++*n;
    }
    table_key *keys = lua_newuserdatauv(L, sizeof *keys * (size_t)(*n + 1), 0);
    int j = 0;
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1), j++)
        keys[j].text = lua_tolstring(L, -2, &keys[j].length);
    qsort(keys, (size_t)*n, sizeof *keys, compare_keys);
    return keys;
}

static td_value read_dict(lua_State *L, int index, const td_ir_value *input, const char *name,
                          int k) {
    int n;
    td_ir_value entry = *input;
    entry.type = input->type->parts[1];
    if (!lua_istable(L, index))
        fail_input(L, index, input, name, k);
    luaL_checkstack(L, 12, name);
    td_value *held = push_holder(L, holder_name);
    TIDE_CHECK(L, td_box_dict_new(held));
    const table_key *keys = push_keys(L, index, input, name, k, &n);
    for (int j = 0, top = lua_gettop(L); j < n; j++, lua_settop(L, top)) {
        lua_pushlstring(L, keys[j].text, keys[j].length);
        td_value key = read_string(L, top + 1);
        lua_pushvalue(L, top + 1);
        lua_rawget(L, index);
        td_value v = read_whole(L, lua_gettop(L), &entry, name, k);
        TIDE_CHECK(L, td_dict_set(td_value_dict(*held), key, v));
    }
    td_value_set_given(*held);
    return *held;
}

static td_value read_list(lua_State *L, int index, const td_ir_value *input, const char *name,
                          int k) {
    td_ir_type_kind kind = (td_ir_type_kind)input->type->parts[0]->kind;
    bool simple = kind == TD_IR_TENSOR || kind == TD_IR_INT || kind == TD_IR_FLOAT;
    return (simple ? read_elements : read_values)(L, index, input, name, k);
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
        return read_string(L, index);
    default:
        break;
    }
    if (tide_to_tensor(L, index))
        return (td_value){.kind = TD_KIND_TENSOR};
    if (tide_to_future(L, index))
        return *tide_to_future(L, index);
    td_generator *generator = luaL_testudata(L, index, "tide.Generator");
    if (generator)
        return (td_value){.kind = TD_KIND_GENERATOR, .generator = generator};
    const char *quantized = tide_to_quantized(L, index);
    if (quantized)
        return TD_QUANTIZED_DTYPE(td_quantized_find(quantized));
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
        return v->kind == TD_KIND_STRING || v->kind == TD_BOX_STRING;
    case TD_IR_NONE:
        return v->kind == TD_KIND_NIL;
    case TD_IR_DTYPE:
        return v->kind == TD_KIND_DTYPE || v->kind == TD_VALUE_QUANTIZED_DTYPE;
    case TD_IR_ANY:
        return true;
    case TD_IR_FUTURE:
        return v->kind == TD_BOX_FUTURE;
    case TD_IR_GENERATOR:
        return v->kind == TD_KIND_GENERATOR;
    case TD_IR_DEVICE:
    case TD_IR_LIST:
    case TD_IR_OPTIONAL:
    case TD_IR_DICT:
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
    if (inner.type->kind == TD_IR_DICT)
        return read_dict(L, index, &inner, name, k);
    if (inner.type->kind == TD_IR_TUPLE)
        return read_tuple(L, index, &inner, name, k);
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

static void push_box_list(lua_State *L, const td_box_list *list) {
    lua_createtable(L, list->n, 0);
    for (int j = 0; j < list->n; j++) {
        td_value entry = td_list_entry(list, j);
        tide_script_push(L, &entry);
        lua_rawseti(L, -2, j + 1);
    }
}

static void push_tuple(lua_State *L, const td_box_tuple *tuple) {
    lua_createtable(L, tuple->n, 0);
    for (int j = 0; j < tuple->n; j++) {
        tide_script_push(L, &tuple->parts[j]);
        lua_rawseti(L, -2, j + 1);
    }
}

static void push_dict(lua_State *L, const td_box_dict *dict) {
    lua_createtable(L, 0, dict->n);
    for (const td_dict_entry *e = dict->first; e; e = e->next) {
        tide_script_push(L, &e->key);
        tide_script_push(L, &e->value);
        lua_rawset(L, -3);
    }
}

static void push_box(lua_State *L, const td_value *v) {
    int64_t length;
    const char *text = td_value_text(*v, &length);
    if (text)
        lua_pushlstring(L, text, (size_t)length);
    else if (td_value_list(*v))
        push_box_list(L, td_value_list(*v));
    else if (td_value_tuple(*v))
        push_tuple(L, td_value_tuple(*v));
    else if (td_value_dict(*v))
        push_dict(L, td_value_dict(*v));
    else
        *tide_push_future(L) = td_value_retain(*v);
}

void tide_script_push(lua_State *L, const td_value *v) {
    luaL_checkstack(L, 8, "too many values");
    if (td_value_box(*v)) {
        push_box(L, v);
        return;
    }
    if (v->kind == TD_VALUE_QUANTIZED_DTYPE) {
        tide_push_quantized_dtype(L, v->dtype);
        return;
    }
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

/* ---- the classes ---- */

static int future_text(lua_State *L) {
    lua_pushfstring(L, "tide.Future: %p", lua_topointer(L, 1));
    return 1;
}

void tide_open_script_values(lua_State *L) {
    luaL_newmetatable(L, holder_name);
    lua_pushcfunction(L, drop_held);
    lua_setfield(L, -2, "__gc");
    lua_pop(L, 1);
    luaL_newmetatable(L, future_name);
    lua_pushcfunction(L, drop_held);
    lua_setfield(L, -2, "__gc");
    lua_pushcfunction(L, future_text);
    lua_setfield(L, -2, "__tostring");
    lua_pushstring(L, future_name);
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 1);
}
