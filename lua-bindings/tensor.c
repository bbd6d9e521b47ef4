/* tensor.c: the tensor class: fields, methods that are no operators, metamethods. */
#include "lua-bindings/tensor.h"

#include "lua-bindings/args.h"
#include "lua-bindings/index.h"
#include "lua-bindings/modules.h"

#include <stdio.h>
#include <string.h>

/* ---- elements and shapes ---- */

void tide_push_element(lua_State *L, td_dtype dtype, const void *p) {
    if (dtype == TD_BOOL)
        lua_pushboolean(L, *(const uint8_t *)p != 0);
    else if (td_dtype_is_float(dtype))
        lua_pushnumber(L, td_load_double(dtype, p));
    else
        lua_pushinteger(L, td_load_int(dtype, p));
}

static const char sizes_key = 0;

static int sizes_to_text(lua_State *L) {
    luaL_Buffer b;
    int n = (int)lua_rawlen(L, 1);
    luaL_buffinit(L, &b);
    luaL_addchar(&b, '(');
    for (int k = 1; k <= n; k++) {
        if (k > 1)
            luaL_addstring(&b, ", ");
        lua_rawgeti(L, 1, k);
        luaL_addvalue(&b);
    }
    luaL_addchar(&b, ')');
    luaL_pushresult(&b);
    return 1;
}

static int sizes_equal(lua_State *L) {
    bool same = lua_istable(L, 1) && lua_istable(L, 2) && lua_rawlen(L, 1) == lua_rawlen(L, 2);
    for (int k = (int)lua_rawlen(L, 1); same && k > 0; k--) {
        lua_rawgeti(L, 1, k);
        lua_rawgeti(L, 2, k);
        same = lua_rawequal(L, -1, -2);
        lua_pop(L, 2);
    }
    lua_pushboolean(L, same);
    return 1;
}

void tide_push_sizes(lua_State *L, int ndim, const int64_t *sizes) {
    lua_createtable(L, ndim, 0);
    for (int d = 0; d < ndim; d++) {
        lua_pushinteger(L, sizes[d]);
        lua_rawseti(L, -2, d + 1);
    }
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &sizes_key) != LUA_TTABLE) {
        lua_pop(L, 1);
        lua_createtable(L, 0, 3);
        lua_pushcfunction(L, sizes_to_text);
        lua_setfield(L, -2, "__tostring");
        lua_pushcfunction(L, sizes_equal);
        lua_setfield(L, -2, "__eq");
        lua_pushliteral(L, "tide.Size");
        lua_setfield(L, -2, "__name");
        lua_pushvalue(L, -1);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &sizes_key);
    }
    lua_setmetatable(L, -2);
}

/* ---- fields ---- */

static void push_transposed(lua_State *L, td_tensor *x) {
    int64_t dims[TD_MAX_DIMS];
    for (int d = 0; d < x->ndim; d++)
        dims[d] = x->ndim - 1 - d;
    tide_handle *handle = tide_push_handle(L);
    TIDE_CHECK(L, TD_APPLY(&handle->tensor, "permute", TD_T(x), TD_INTS(x->ndim, dims)));
}

static void get_shape(lua_State *L, td_tensor *x) {
    tide_push_sizes(L, x->ndim, x->sizes);
}
static void get_dtype(lua_State *L, td_tensor *x) {
    tide_push_dtype(L, (td_dtype)x->dtype);
}
static void get_device(lua_State *L, td_tensor *x) {
    lua_pushstring(L, td_device_name(td_tensor_device(x)));
}
static void get_grad(lua_State *L, td_tensor *x) {
    td_tensor *grad = td_get_grad(x);
    if (grad)
        tide_push_tensor(L, grad);
    else
        lua_pushnil(L);
}
static void get_requires_grad(lua_State *L, td_tensor *x) {
    lua_pushboolean(L, x->requires_grad || !td_is_leaf(x));
}
static void get_is_leaf(lua_State *L, td_tensor *x) {
    lua_pushboolean(L, td_is_leaf(x));
}
static void get_grad_fn(lua_State *L, td_tensor *x) {
    lua_pushstring(L, td_grad_fn_name(x));
}
static void get_ndim(lua_State *L, td_tensor *x) {
    lua_pushinteger(L, x->ndim);
}
static void get_version(lua_State *L, td_tensor *x) {
    lua_pushinteger(L, td_tensor_version(x));
}

typedef struct field {
    const char *name;
    void (*push)(lua_State *L, td_tensor *x);
} field;

static const field fields[] = {
    {"shape", get_shape},
    {"dtype", get_dtype},
    {"grad", get_grad},
    {"device", get_device},
    {"requires_grad", get_requires_grad},
    {"is_leaf", get_is_leaf},
    {"grad_fn", get_grad_fn},
    {"ndim", get_ndim},
    {"T", push_transposed},
    {"_version", get_version},
};
enum { FIELDS = sizeof fields / sizeof *fields };

/* Upvalue TIDE_UP_FIRST: the method table. */
static int fail_field(lua_State *L, const char *name) {
    const char *names[1024];
    int n = 0;
    for (; n < FIELDS; n++)
        names[n] = fields[n].name;
    lua_pushnil(L);
    while (n < 1024 && lua_next(L, lua_upvalueindex(TIDE_UP_FIRST))) {
        names[n++] = lua_tostring(L, -2);
        lua_pop(L, 1);
    }
    const char *near = tide_nearest(name, names, n);
    return near ? tide_error(L, "a tensor has no field or method '%s': did you mean '%s'?", name,
                             near)
                : tide_error(L, "a tensor has no field or method '%s'", name);
}

static int tensor_index(lua_State *L) {
    if (TD_UNLIKELY(lua_type(L, 2) != LUA_TSTRING))
        return tide_index_read(L);
    lua_pushvalue(L, 2);
    if (TD_LIKELY(lua_rawget(L, lua_upvalueindex(TIDE_UP_FIRST)) != LUA_TNIL))
        return 1;
    const char *name = lua_tostring(L, 2);
    td_tensor *x = tide_check_tensor(L, 1, "index");
    for (int k = 0; k < FIELDS; k++)
        if (!strcmp(name, fields[k].name)) {
            fields[k].push(L, x);
            return 1;
        }
    if (!tide_is_index_text(name))
        return fail_field(L, name);
    lua_settop(L, 2);
    return tide_index_read(L);
}

static int tensor_newindex(lua_State *L) {
    const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : NULL;
    if (!name || tide_is_index_text(name))
        return tide_index_write(L);
    td_tensor *x = tide_check_tensor(L, 1, "assignment");
    if (!strcmp(name, "grad")) {
        td_tensor *grad = lua_isnil(L, 3) ? NULL : tide_check_tensor(L, 3, "grad");
        TIDE_CHECK(L, td_set_grad(x, grad));
        return 0;
    }
    if (!strcmp(name, "requires_grad")) {
        luaL_checktype(L, 3, LUA_TBOOLEAN);
        TIDE_CHECK(L, td_set_requires_grad(x, lua_toboolean(L, 3)));
        return 0;
    }
    return tide_error(L, "a tensor's '%s' can't be assigned (grad and requires_grad can)", name);
}

/* ---- metamethods ---- */

static int tensor_len(lua_State *L) {
    td_tensor *x = tide_check_tensor(L, 1, "#");
    if (x->ndim == 0)
        return tide_error(L, "#: a 0-dim tensor has no length");
    lua_pushinteger(L, x->sizes[0]);
    return 1;
}

static int tensor_tostring(lua_State *L) {
    tide_handle *handle = lua_touserdata(L, 1);
    if (tide_is_handle(handle) && !handle->tensor)
        lua_pushliteral(L, "tensor (closed)");
    else
        tide_push_tensor_text(L, tide_check_tensor(L, 1, "tostring"));
    return 1;
}

static int tensor_eq(lua_State *L) {
    td_tensor *a = tide_to_tensor(L, 1), *b = tide_to_tensor(L, 2);
    if (!a || !b) {
        lua_pushboolean(L, 0);
        return 1;
    }
    td_value args[2] = {TD_T(a), TD_T(b)};
    td_call call = {.op = TD_OP("equal"), .args = args};
    TIDE_CHECK(L, td_op_call(&call));
    lua_pushboolean(L, call.result.b);
    return 1;
}

/* `<` gives Lua a boolean, so it works for single elements only. */
static double comparable(lua_State *L, int index, const char *operator, const char * method) {
    td_tensor *x = lua_isuserdata(L, index) ? tide_to_tensor(L, index) : NULL;
    double value = 0;
    char text[80];
    if (!x) {
        if (lua_type(L, index) != LUA_TNUMBER)
            tide_error(L, "%s: a tensor can't be compared with %s", operator,
                       tide_describe(L, index, text, sizeof text));
        return lua_tonumber(L, index);
    }
    if (x->numel != 1)
        tide_error(L,
                   "%s gives one boolean in Lua: for the elements of a tensor of shape %s use "
                   "x:%s(y)",
                   operator, td_tensor_shape_text(x, text), method);
    TIDE_CHECK(L, td_tensor_item(x, &value));
    return value;
}

static int tensor_lt(lua_State *L) {
    lua_pushboolean(L, comparable(L, 1, "<", "lt") < comparable(L, 2, "<", "lt"));
    return 1;
}

static int tensor_le(lua_State *L) {
    lua_pushboolean(L, comparable(L, 1, "<=", "le") <= comparable(L, 2, "<=", "le"));
    return 1;
}

static int tensor_close(lua_State *L) {
    tide_handle *handle = lua_touserdata(L, 1);
    if (!tide_is_handle(handle))
        return tide_error(L, "close: tensor expected");
    tide_close_handle(L, handle);
    return 0;
}

/* ---- methods ---- */

static int tensor_item(lua_State *L) {
    unsigned char bytes[16];
    char text[80];
    td_tensor *x = tide_check_tensor(L, 1, "item");
    if (x->numel != 1)
        return tide_error(L, "item: a tensor of one element is needed, got shape %s",
                          td_tensor_shape_text(x, text));
    td_device device = td_tensor_device(x);
    TIDE_CHECK(L, td_device_get_ops(device.type)
                      ->copy(TD_DEVICE_CPU, bytes, device, x->data, td_tensor_itemsize(x)));
    tide_push_element(L, (td_dtype)x->dtype, bytes);
    return 1;
}

static void push_nested(lua_State *L, const td_tensor *x, int dim, const char *p) {
    if (dim == x->ndim) {
        tide_push_element(L, (td_dtype)x->dtype, p);
        return;
    }
    luaL_checkstack(L, 3, "tolist");
    lua_createtable(L, (int)x->sizes[dim], 0);
    int64_t step = x->strides[dim] * (int64_t)td_tensor_itemsize(x);
    for (int64_t k = 0; k < x->sizes[dim]; k++) {
        push_nested(L, x, dim + 1, p + k * step);
        lua_rawseti(L, -2, k + 1);
    }
}

static int tensor_tolist(lua_State *L) {
    td_tensor *x = tide_check_tensor(L, 1, "tolist");
    if (td_tensor_device(x).type != TD_CPU) {
        tide_handle *handle = tide_push_handle(L);
        TIDE_CHECK(L, TD_APPLY(&handle->tensor, "to", TD_T(x), TD_NIL, TD_DEVICE(TD_DEVICE_CPU)));
        x = handle->tensor;
    }
    push_nested(L, x, 0, x->data);
    return 1;
}

static int check_dim(lua_State *L, const td_tensor *x, int index, const char *fname) {
    int dim;
    lua_Integer i = luaL_checkinteger(L, index);
    if (i == 0)
        tide_error(L, "%s: dim 0: dims count from 1 (PyTorch's dim=0 is 1)", fname);
    if (td_wrap_dim(i > 0 ? i - 1 : i, x->ndim, &dim))
        tide_error(L, "%s: %s", fname, td_error_message());
    return dim;
}

static int tensor_size(lua_State *L) {
    td_tensor *x = tide_check_tensor(L, 1, "size");
    if (lua_isnoneornil(L, 2))
        tide_push_sizes(L, x->ndim, x->sizes);
    else if (x->ndim == 0)
        return tide_error(L, "size: a 0-dim tensor has no dims");
    else
        lua_pushinteger(L, x->sizes[check_dim(L, x, 2, "size")]);
    return 1;
}

static int tensor_stride(lua_State *L) {
    td_tensor *x = tide_check_tensor(L, 1, "stride");
    if (lua_isnoneornil(L, 2))
        tide_push_sizes(L, x->ndim, x->strides);
    else if (x->ndim == 0)
        return tide_error(L, "stride: a 0-dim tensor has no dims");
    else
        lua_pushinteger(L, x->strides[check_dim(L, x, 2, "stride")]);
    return 1;
}

static int tensor_dim(lua_State *L) {
    lua_pushinteger(L, tide_check_tensor(L, 1, "dim")->ndim);
    return 1;
}

static int tensor_numel(lua_State *L) {
    lua_pushinteger(L, tide_check_tensor(L, 1, "numel")->numel);
    return 1;
}

static int tensor_element_size(lua_State *L) {
    lua_pushinteger(L, (lua_Integer)td_tensor_itemsize(tide_check_tensor(L, 1, "element_size")));
    return 1;
}

static int tensor_is_contiguous(lua_State *L) {
    lua_pushboolean(L, tide_check_tensor(L, 1, "is_contiguous")->contiguous);
    return 1;
}

static int tensor_is_floating_point(lua_State *L) {
    td_tensor *x = tide_check_tensor(L, 1, "is_floating_point");
    lua_pushboolean(L, td_dtype_is_float((td_dtype)x->dtype));
    return 1;
}

static int tensor_data_ptr(lua_State *L) {
    lua_pushinteger(L, (lua_Integer)(uintptr_t)tide_check_tensor(L, 1, "data_ptr")->data);
    return 1;
}

static int tensor_requires_grad_(lua_State *L) {
    td_tensor *x = tide_check_tensor(L, 1, "requires_grad_");
    bool on = lua_isnoneornil(L, 2) || lua_toboolean(L, 2);
    TIDE_CHECK(L, td_set_requires_grad(x, on));
    lua_settop(L, 1);
    return 1;
}

static int tensor_retain_grad(lua_State *L) {
    TIDE_CHECK(L, td_retain_grad(tide_check_tensor(L, 1, "retain_grad")));
    lua_settop(L, 1);
    return 1;
}

/* x:float() and the like; the dtype is the upvalue TIDE_UP_FIRST. */
static int tensor_convert(lua_State *L) {
    td_dtype dtype = (td_dtype)lua_tointeger(L, lua_upvalueindex(TIDE_UP_FIRST));
    td_tensor *x = tide_check_tensor(L, 1, td_dtypes[dtype].alias);
    tide_handle *handle = tide_push_handle(L);
    TIDE_CHECK(L, TD_APPLY(&handle->tensor, "to", TD_T(x), TD_DTYPE(dtype)));
    tide_check_pressure(L, TIDE_STATE(L), handle->tensor);
    return 1;
}

static const luaL_Reg methods[] = {
    {"item", tensor_item},
    {"tolist", tensor_tolist},
    {"size", tensor_size},
    {"stride", tensor_stride},
    {"dim", tensor_dim},
    {"numel", tensor_numel},
    {"element_size", tensor_element_size},
    {"is_contiguous", tensor_is_contiguous},
    {"is_floating_point", tensor_is_floating_point},
    {"data_ptr", tensor_data_ptr},
    {"requires_grad_", tensor_requires_grad_},
    {"retain_grad", tensor_retain_grad},
    {"backward", tide_backward},
    {"free", tensor_close},
    {NULL, NULL},
};

/* ---- operators as metamethods ---- */

static const struct {
    const char *event, *op;
} metamethods[] = {
    {"__add", "add"},          {"__sub", "sub"},           {"__mul", "mul"},
    {"__div", "div"},          {"__idiv", "floor_divide"}, {"__mod", "remainder"},
    {"__pow", "pow"},          {"__band", "bitwise_and"},  {"__bor", "bitwise_or"},
    {"__bxor", "bitwise_xor"},
};

static void push_operator(lua_State *L, const td_op *op) {
    lua_pushlightuserdata(L, (void *)op);
    tide_push_function(L, tide_operator_function(op), 1);
}

/* Lua calls these with the operand twice. */
static int tensor_unm(lua_State *L) {
    tide_handle *handle = tide_push_handle(L);
    TIDE_CHECK(L, TD_APPLY(&handle->tensor, "neg", TD_T(tide_check_tensor(L, 1, "-"))));
    tide_check_pressure(L, TIDE_STATE(L), handle->tensor);
    return 1;
}

static int tensor_bnot(lua_State *L) {
    tide_handle *handle = tide_push_handle(L);
    TIDE_CHECK(L, TD_APPLY(&handle->tensor, "bitwise_not", TD_T(tide_check_tensor(L, 1, "~"))));
    return 1;
}

static void push_methods(lua_State *L) {
    lua_createtable(L, 0, 256);
    for (int k = 0; k < td_op_count(); k++) {
        const td_op *op = td_op_get(k);
        if (op->flags & (TD_OP_FUNCTION_ONLY | TD_OP_INTERNAL) || op->nparams == 0)
            continue;
        if (op->params[0].type != TD_PARAM_TENSOR &&
            op->params[0].type != TD_PARAM_TENSOR_OR_NUMBER)
            continue;
        if (!(op->flags & TD_OP_INPLACE_ONLY)) {
            push_operator(L, op);
            lua_setfield(L, -2, op->name);
        }
        if (op->inplace_name) {
            lua_pushlightuserdata(L, (void *)op);
            tide_push_function(L, tide_call_operator_inplace, 1);
            lua_setfield(L, -2, op->inplace_name);
        }
    }
    for (int d = 0; d < TD_DTYPE_COUNT; d++) {
        lua_pushinteger(L, d);
        tide_push_function(L, tensor_convert, 1);
        lua_setfield(L, -2, td_dtypes[d].alias);
    }
    tide_set_functions(L, methods);
}

void tide_open_tensor(lua_State *L) {
    push_methods(L);
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, "_methods");
    luaL_getmetatable(L, "tide.Tensor"); /* tide, methods, metatable */
    lua_pushvalue(L, -2);
    tide_push_function(L, tensor_index, 1);
    lua_setfield(L, -2, "__index");
    static const luaL_Reg events[] = {
        {"__newindex", tensor_newindex},
        {"__len", tensor_len},
        {"__tostring", tensor_tostring},
        {"__eq", tensor_eq},
        {"__lt", tensor_lt},
        {"__le", tensor_le},
        {"__close", tensor_close},
        {"__unm", tensor_unm},
        {"__bnot", tensor_bnot},
        {NULL, NULL},
    };
    tide_set_functions(L, events);
    for (size_t k = 0; k < sizeof metamethods / sizeof *metamethods; k++) {
        push_operator(L, td_op_find(metamethods[k].op));
        lua_setfield(L, -2, metamethods[k].event);
    }
    lua_pop(L, 2);
}
