/* tensor.c: the tensor class: fields, methods that are no operators, metamethods. */
#include "lua-bindings/tensor/tensor.h"

#include "lua-bindings/call/function.h"
#include "lua-bindings/modules/graph.h"
#include "lua-bindings/modules/modules.h"
#include "lua-bindings/recording/profile.h"
#include "lua-bindings/script/escape.h"
#include "lua-bindings/state/strict.h"
#include "lua-bindings/tensor/index.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- elements ---- */

/* The sign of a NaN means nothing, but Lua prints it. */
static void push_float(lua_State *L, double value) {
    lua_pushnumber(L, value != value ? NAN : value);
}

void tide_push_element(lua_State *L, td_dtype dtype, const void *p) {
    if (dtype == TD_BOOL)
        lua_pushboolean(L, *(const uint8_t *)p != 0);
    else if (td_dtype_is_float(dtype))
        push_float(L, td_load_double(dtype, p));
    else
        lua_pushinteger(L, td_load_int(dtype, p));
}

/* ---- fields ---- */

static void push_transposed(lua_State *L, td_tensor *x) {
    int64_t dims[TD_MAX_DIMS];
    for (int d = 0; d < x->ndim; d++)
        dims[d] = x->ndim - 1 - d;
    tide_handle *handle = tide_push_handle(L);
    x = tide_check_shape(L, 1, "T"); /* the handle may have run a finalizer */
    TIDE_CHECK(L, tide_op_apply(L, TD_OP(permute), handle, 2,
                                (td_value[]){TD_T(x), TD_INTS(x->ndim, dims)}));
}

/* The tensor at stack index 1 by an operator of it, made anew. */
static void push_result(lua_State *L, const char *field, const td_op *op, int nargs,
                        const td_value *more) {
    td_value args[3];
    tide_handle *handle = tide_push_handle(L);
    args[0] = TD_T(tide_check_shape(L, 1, field)); /* the handle may have run a finalizer */
    for (int k = 1; k < nargs; k++)
        args[k] = more[k - 1];
    TIDE_CHECK(L, tide_op_apply(L, op, handle, nargs, args));
}

/* Of a number the number; mH is mT, and H of one matrix T, since there are no complex numbers. */
static void push_matrix_transposed(lua_State *L, td_tensor *x, const char *field, int most) {
    char text[TD_SHAPE_TEXT];
    if (x->ndim == 0)
        push_transposed(L, x);
    else if (x->ndim < 2 || x->ndim > most)
        tide_error(L, "%s: needs a tensor of %s2 dims, got shape %s", field,
                   most == 2 ? "" : "at least ", td_tensor_shape_text(x, text));
    else
        push_result(L, field, TD_OP(transpose), 3, (td_value[]){TD_I(-2), TD_I(-1)});
}
static void get_matrix_transposed(lua_State *L, td_tensor *x) {
    push_matrix_transposed(L, x, "mT", TD_MAX_DIMS);
}
static void get_matrix_adjoint(lua_State *L, td_tensor *x) {
    push_matrix_transposed(L, x, "mH", TD_MAX_DIMS);
}
static void get_adjoint(lua_State *L, td_tensor *x) {
    push_matrix_transposed(L, x, "H", 2);
}
static void get_data(lua_State *L, td_tensor *x) {
    (void)x;
    push_result(L, "data", TD_OP(detach), 1, NULL);
}
/* Where x's elements lie, for what speaks of strided memory. */
static const td_tensor *check_strided(lua_State *L, const td_tensor *x, const char *name) {
    const td_tensor *strided = td_strided_of(x);
    if (TD_UNLIKELY(!strided))
        tide_error(L, "%s: not for %s tensors: take x:%s() first", name, td_layout_of(x)->noun,
                   td_layout_of(x)->convert);
    return strided;
}

static void get_nbytes(lua_State *L, td_tensor *x) {
    check_strided(L, x, "nbytes");
    lua_pushinteger(L, x->numel * (lua_Integer)td_tensor_itemsize(x));
}
static void get_itemsize(lua_State *L, td_tensor *x) {
    lua_pushinteger(L, (lua_Integer)td_tensor_itemsize(x));
}

static void get_shape(lua_State *L, td_tensor *x) {
    if (TD_UNLIKELY(td_modes_current.dispatcher != NULL)) {
        tide_escapes(L, 1, "shape", TIDE_ESCAPE_SIZES);
        x = tide_check_tensor(L, 1, "shape"); /* a finalizer may have closed it */
    }
    tide_push_sizes(L, x->ndim, x->sizes);
}
static void get_dtype(lua_State *L, td_tensor *x) {
    tide_push_dtype_of(L, x);
}
static void get_device(lua_State *L, td_tensor *x) {
    lua_pushstring(L, td_device_name(td_device_real(td_tensor_device(x))));
}
static void get_grad(lua_State *L, td_tensor *x) {
    td_tensor *grad = td_get_grad(x);
    if (!grad) {
        if (x->requires_grad && !td_is_leaf(x) && !x->autograd->retains_grad)
            lua_warning(L,
                        "tide: backward fills .grad of leaves alone, and of results after "
                        "x:retain_grad()",
                        0);
        lua_pushnil(L);
        return;
    }
    tide_handle *handle = tide_push_handle(L);
    handle->tensor = td_retain(td_get_grad(tide_check_tensor(L, 1, "grad")));
}
static void get_requires_grad(lua_State *L, td_tensor *x) {
    lua_pushboolean(L, x->requires_grad || !td_is_leaf(x));
}
static void get_is_leaf(lua_State *L, td_tensor *x) {
    lua_pushboolean(L, td_is_leaf(x));
}
static void get_ndim(lua_State *L, td_tensor *x) {
    lua_pushinteger(L, x->ndim);
}
static void get_layout(lua_State *L, td_tensor *x) {
    lua_pushstring(L, x->layout == TD_STRIDED ? "strided" : td_layout_of(x)->name);
}
static void get_is_sparse(lua_State *L, td_tensor *x) {
    lua_pushboolean(L, x->layout == TD_SPARSE_COO);
}
static void get_is_quantized(lua_State *L, td_tensor *x) {
    lua_pushboolean(L, x->layout == TD_QUANTIZED);
}
static void get_version(lua_State *L, td_tensor *x) {
    if (x->storage->inference)
        tide_error(L, "_version: writes into tensors made in inference_mode are not counted");
    lua_pushinteger(L, td_tensor_version(x));
}

/* Methods of sparse tensors; asked of a dense one, what is meant are results of max, sort and their
 * like, which are no fields of the first. */
static void push_part(lua_State *L, const td_tensor *x, const char *name) {
    if (x->layout != TD_SPARSE_COO)
        tide_error(L,
                   "a dense tensor has no '%s': several results come one behind the other, "
                   "local values, indices = x:max(2) (x:%s() is for sparse tensors)",
                   name, name);
    tide_push_operator(L, td_op_find(name), NULL, false);
}

static void get_values(lua_State *L, td_tensor *x) {
    push_part(L, x, "values");
}

static void get_indices(lua_State *L, td_tensor *x) {
    push_part(L, x, "indices");
}

typedef struct field {
    const char *name;
    void (*push)(lua_State *L, td_tensor *x);
    bool elements; /* it may look at elements or history: a stand-in will not do */
} field;

static const field fields[] = {
    {"shape", get_shape, false},
    {"dtype", get_dtype, false},
    {"grad", get_grad, true},
    {"device", get_device, false},
    {"requires_grad", get_requires_grad, false},
    {"is_leaf", get_is_leaf, true},
    {"grad_fn", tide_push_grad_fn, true},
    {"ndim", get_ndim, false},
    {"T", push_transposed, false},
    {"H", get_adjoint, false},
    {"mT", get_matrix_transposed, false},
    {"mH", get_matrix_adjoint, false},
    {"data", get_data, false},
    {"nbytes", get_nbytes, false},
    {"itemsize", get_itemsize, false},
    {"layout", get_layout, false},
    {"is_sparse", get_is_sparse, false},
    {"is_quantized", get_is_quantized, false},
    {"_version", get_version, true},
    {"values", get_values, false},
    {"indices", get_indices, false},
};

/* The name of the function that asks for a field of the tensor at 1, where that is its `self`. */
static const char *called_with_dot(lua_State *L) {
    lua_Debug ar;
    if (!lua_getstack(L, 1, &ar) || !lua_getinfo(L, "n", &ar) || !ar.name)
        return NULL;
    const char *local = lua_getlocal(L, &ar, 1);
    bool self = local && strcmp(local, "self") == 0 && lua_rawequal(L, -1, 1);
    if (local)
        lua_pop(L, 1);
    return self ? ar.name : NULL;
}

/* Upvalue TIDE_UP_FIRST of tensor_index: by name, methods and (as addresses) fields. */
static int fail_field(lua_State *L, const char *name) {
    const char *names[1024];
    int n = 0;
    lua_pushnil(L);
    while (n < 1024 && lua_next(L, lua_upvalueindex(TIDE_UP_FIRST))) {
        names[n++] = lua_tostring(L, -2);
        lua_pop(L, 1);
    }
    const char *method = called_with_dot(L);
    if (method)
        return tide_error(L,
                          "a tensor has no field or method '%s': %s got it as self: a method is "
                          "called with a colon, x:%s()",
                          name, method, method);
    const char *path = lua_pushfstring(L, "Tensor.%s", name);
    if (tide_push_pytorch(L, path, TIDE_PYTORCH_NAMED) ||
        tide_push_pytorch(L, path, TIDE_PYTORCH_ABSENT))
        return tide_error(L, "a tensor has no field or method '%s': %s", name, lua_tostring(L, -1));
    const char *near = tide_nearest(name, names, n);
    return near ? tide_error(L, "a tensor has no field or method '%s': did you mean '%s'?", name,
                             near)
                : tide_error(L, "a tensor has no field or method '%s'", name);
}

static int tensor_index(lua_State *L) {
    if (TD_UNLIKELY(lua_type(L, 2) != LUA_TSTRING))
        return tide_index_read(L);
    lua_pushvalue(L, 2);
    int type = lua_rawget(L, lua_upvalueindex(TIDE_UP_FIRST));
    if (TD_LIKELY(type == LUA_TFUNCTION))
        return 1;
    if (TD_LIKELY(type == LUA_TLIGHTUSERDATA)) {
        const field *f = lua_touserdata(L, -1);
        f->push(L,
                f->elements ? tide_check_tensor(L, 1, f->name) : tide_check_shape(L, 1, f->name));
        return 1;
    }
    const char *name = lua_tostring(L, 2);
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
        char text[80];
        if (!lua_isboolean(L, 3))
            return tide_error(L, "requires_grad: expected true or false, got %s",
                              tide_describe(L, 3, text, sizeof text));
        TIDE_CHECK(L, td_set_requires_grad(x, lua_toboolean(L, 3)));
        return 0;
    }
    return tide_error(L, "a tensor's '%s' can't be assigned (grad and requires_grad can)%s", name,
                      strcmp(name, "data") ? "" : ": x.data:copy_(y) writes its values");
}

/* ---- metamethods ---- */

static int tensor_len(lua_State *L) {
    tide_escapes(L, 1, "#", TIDE_ESCAPE_SIZES);
    td_tensor *x = tide_check_shape(L, 1, "#");
    if (x->ndim == 0)
        return tide_error(L, "#: a 0-dim tensor has no length");
    lua_pushinteger(L, x->sizes[0]);
    return 1;
}

static int tensor_tostring(lua_State *L) {
    tide_handle *handle = lua_touserdata(L, 1);
    if (tide_is_handle(handle) && !handle->tensor && !handle->pending) {
        lua_pushliteral(L, "tensor (closed)");
        return 1;
    }
    tide_record_until_return(L, TIDE_EVENT_COPY, "tostring");
    tide_push_tensor_text(L, tide_hold_tensor(L, 1, "tostring"));
    return 1;
}

static int tensor_eq(lua_State *L) {
    td_tensor *a = lua_isuserdata(L, 1) ? tide_to_tensor(L, 1) : NULL;
    td_tensor *b = lua_isuserdata(L, 2) ? tide_to_tensor(L, 2) : NULL;
    if (!a || !b) {
        lua_pushboolean(L, 0);
        return 1;
    }
    td_value args[2] = {TD_T(a), TD_T(b)};
    td_call call = {.op = TD_OP(equal), .args = args};
    TIDE_CHECK(L, td_op_call(&call));
    lua_pushboolean(L, call.result.b);
    return 1;
}

/* A tensor's text has its dtype in it, which is hardly what is to be written. */
static int tensor_concat(lua_State *L) {
    return tide_error(L, "attempt to concatenate a tensor: x:item() is the number of one element, "
                         "tostring(x) the text of all");
}

/* `<` gives Lua a boolean, so it works for single elements only. x > y is y < x in Lua: whichever
 * of them was written, the method of the tensor that is compared with a number is the same. */
typedef struct comparison {
    const char *operators, *method, *turned; /* of the first operand, of the second */
} comparison;

static int fail_comparison(lua_State *L, int index, const comparison *c, const td_tensor *x) {
    char text[80];
    td_tensor_shape_text(x, text);
    int other = 3 - index;
    if (lua_type(L, other) == LUA_TNUMBER) {
        tide_push_number_text(L, other, 6);
        return tide_error(L,
                          "%s gives one boolean in Lua: for the elements of a tensor of shape %s "
                          "use x:%s(%s)",
                          c->operators, text, index == 1 ? c->method : c->turned,
                          lua_tostring(L, -1));
    }
    return tide_error(L,
                      "%s gives one boolean in Lua: for the elements of a tensor of shape %s use "
                      "x:%s(y) or x:%s(y)",
                      c->operators, text, c->method, c->turned);
}

static double comparable(lua_State *L, int index, const comparison *c) {
    td_tensor *x = lua_isuserdata(L, index) ? tide_to_tensor(L, index) : NULL;
    double value = 0;
    char text[80];
    if (!x) {
        if (lua_type(L, index) != LUA_TNUMBER)
            tide_error(L, "%s: a tensor can't be compared with %s", c->operators,
                       tide_describe(L, index, text, sizeof text));
        return lua_tonumber(L, index);
    }
    if (x->numel != 1)
        fail_comparison(L, index, c, x);
    tide_escapes(L, index, c->method, TIDE_ESCAPE_ELEMENTS);
    x = tide_check_tensor(L, index, c->method);
    TIDE_CHECK(L, td_tensor_item(x, &value));
    return value;
}

static int tensor_lt(lua_State *L) {
    static const comparison c = {"< or >", "lt", "gt"};
    lua_pushboolean(L, comparable(L, 1, &c) < comparable(L, 2, &c));
    return 1;
}

static int tensor_le(lua_State *L) {
    static const comparison c = {"<= or >=", "le", "ge"};
    lua_pushboolean(L, comparable(L, 1, &c) <= comparable(L, 2, &c));
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

/* The tensor that the running method is called with; its other arguments are in the frame. All of
 * them have defaults, and most calls give none. */
static td_tensor *read_method(lua_State *L, tide_frame *f) {
    tide_handle *handle = lua_touserdata(L, 1);
    if (TD_LIKELY(lua_gettop(L) == 1 && tide_is_handle(handle) && handle->tensor)) {
        f->op = tide_own_schema(L);
        f->name = f->op->name;
        for (int k = 1; k < f->op->nparams; k++)
            f->args[k] = f->op->params[k].preset;
        return handle->tensor;
    }
    tide_read_call(L, f);
    tide_load_tensors(L, f);
    return f->args[0].tensor;
}

/* The same for methods that read no elements. */
static td_tensor *read_shape(lua_State *L, tide_frame *f) {
    const tide_handle *handle = lua_touserdata(L, 1);
    if (TD_LIKELY(lua_gettop(L) == 1 && tide_is_handle(handle) && handle->tensor))
        return read_method(L, f);
    tide_read_shape_call(L, f);
    tide_load_tensors(L, f);
    return f->args[0].tensor;
}

static int tensor_item(lua_State *L) {
    unsigned char bytes[16];
    char text[80];
    tide_frame f;
    tide_escapes(L, 1, "item", TIDE_ESCAPE_ELEMENTS);
    td_tensor *x = read_method(L, &f);
    if (x->numel != 1)
        return tide_error(L, "item: a tensor of one element is needed, got shape %s",
                          td_tensor_shape_text(x, text));
    tide_range range = tide_range_begin(TIDE_EVENT_COPY, "item");
    td_status status = td_tensor_fetch(x, bytes);
    tide_range_end(range);
    TIDE_CHECK(L, status);
    tide_push_element(L, (td_dtype)x->dtype, bytes);
    return 1;
}

enum { ROOM = 1 << 22 }; /* elements that a list has room for at once: nothing stops the making */

static void push_nested(lua_State *L, const td_tensor *x, int dim, const char *p) {
    if (dim == x->ndim) {
        tide_push_element(L, (td_dtype)x->dtype, p);
        return;
    }
    luaL_checkstack(L, 3, "tolist");
    lua_createtable(L, (int)(x->sizes[dim] < ROOM ? x->sizes[dim] : ROOM), 0);
    int64_t step = x->strides[dim] * (int64_t)td_tensor_itemsize(x);
    for (int64_t k = 0; k < x->sizes[dim]; k++) {
        tide_poll(L, k);
        push_nested(L, x, dim + 1, p + k * step);
        lua_rawseti(L, -2, k + 1);
    }
}

static int tensor_tolist(lua_State *L) {
    tide_frame f;
    tide_escapes(L, 1, "tolist", TIDE_ESCAPE_ELEMENTS);
    read_method(L, &f);
    td_tensor *x = tide_hold_elements(L, 1, "tolist");
    tide_record_until_return(L, TIDE_EVENT_COPY, "tolist");
    if (td_tensor_device(x).type != TD_CPU) {
        tide_handle *handle = tide_push_handle(L);
        TIDE_CHECK(L, TD_APPLY(&handle->tensor, to, TD_T(x), TD_NIL, TD_DEVICE(TD_DEVICE_CPU)));
        x = handle->tensor;
    }
    push_nested(L, x, 0, x->data);
    return 1;
}

/* x:size(), x:size(dim): all of a list of numbers by dim, or one of them. */
static int push_of_dims(lua_State *L, const tide_frame *f, const td_tensor *x,
                        const int64_t *values) {
    int dim;
    if (td_is_nil(f->args[1])) {
        tide_push_sizes(L, x->ndim, values);
        return 1;
    }
    if (x->ndim == 0)
        return tide_error(L, "%s: a 0-dim tensor has no dims", f->name);
    if (td_wrap_dim(f->args[1].i, x->ndim, &dim))
        return tide_error(L, "%s: %s", f->name, td_error_message());
    lua_pushinteger(L, values[dim]);
    return 1;
}

static int tensor_size(lua_State *L) {
    tide_frame f;
    tide_escapes(L, 1, "size", TIDE_ESCAPE_SIZES);
    const td_tensor *x = read_shape(L, &f);
    return push_of_dims(L, &f, x, x->sizes);
}

static int tensor_stride(lua_State *L) {
    tide_frame f;
    const td_tensor *x = check_strided(L, read_shape(L, &f), "stride");
    return push_of_dims(L, &f, x, x->strides);
}

static int tensor_dim(lua_State *L) {
    tide_frame f;
    lua_pushinteger(L, read_shape(L, &f)->ndim);
    return 1;
}

static int tensor_numel(lua_State *L) {
    tide_frame f;
    tide_escapes(L, 1, "numel", TIDE_ESCAPE_SIZES);
    lua_pushinteger(L, read_shape(L, &f)->numel);
    return 1;
}

static int tensor_element_size(lua_State *L) {
    tide_frame f;
    lua_pushinteger(L, (lua_Integer)td_tensor_itemsize(read_shape(L, &f)));
    return 1;
}

static int tensor_is_contiguous(lua_State *L) {
    static const char *const names[] = {[TD_ROW_MAJOR] = "contiguous",
                                        [TD_CHANNELS_LAST] = "channels_last",
                                        [TD_CHANNELS_LAST_3D] = "channels_last_3d"};
    tide_frame f;
    const td_tensor *x = td_strided_of(read_shape(L, &f));
    for (int k = 0; k < 3; k++)
        if (!strcmp(f.args[1].string, names[k]))
            lua_pushboolean(L, x && td_tensor_is_in_format(x, (td_format)k));
    return 1;
}

static int tensor_storage_offset(lua_State *L) {
    tide_frame f;
    const td_tensor *x = check_strided(L, read_method(L, &f), "storage_offset");
    int64_t bytes = (char *)x->data - (char *)x->storage->data;
    lua_pushinteger(L, bytes / (lua_Integer)td_tensor_itemsize(x));
    return 1;
}

static int tensor_is_floating_point(lua_State *L) {
    tide_frame f;
    lua_pushboolean(L, td_dtype_is_float((td_dtype)read_shape(L, &f)->dtype));
    return 1;
}

static int tensor_data_ptr(lua_State *L) {
    tide_frame f;
    lua_pushinteger(L,
                    (lua_Integer)(uintptr_t)check_strided(L, read_method(L, &f), "data_ptr")->data);
    return 1;
}

/* tide.cuda's function of that name, of the tensor. */
static int call_cuda(lua_State *L, const char *name) {
    tide_frame f;
    (void)read_method(L, &f);
    lua_settop(L, 1);
    lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    lua_getfield(L, -1, "tide");
    lua_getfield(L, -1, "cuda");
    lua_getfield(L, -1, name);
    lua_pushvalue(L, 1);
    lua_call(L, 1, 1);
    return 1;
}

static int tensor_pin_memory(lua_State *L) {
    return call_cuda(L, "pin_memory");
}

static int tensor_is_pinned(lua_State *L) {
    return call_cuda(L, "is_pinned");
}

static int tensor_requires_grad_(lua_State *L) {
    tide_frame f;
    td_tensor *x = read_method(L, &f);
    TIDE_CHECK(L, td_set_requires_grad(x, f.args[1].b));
    lua_settop(L, 1);
    return 1;
}

static int tensor_retain_grad(lua_State *L) {
    tide_frame f;
    TIDE_CHECK(L, td_retain_grad(read_method(L, &f)));
    lua_settop(L, 1);
    return 1;
}

static int tensor_detach_(lua_State *L) {
    tide_frame f;
    if (td_detach(read_method(L, &f)))
        return tide_error(L, "detach_: %s", td_error_message());
    lua_settop(L, 1);
    return 1;
}

static int tensor_is_inference(lua_State *L) {
    tide_frame f;
    lua_pushboolean(L, read_method(L, &f)->storage->inference);
    return 1;
}

static int tensor_free(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    return tensor_close(L);
}

static int convert_to(lua_State *L, tide_frame *f, td_value dtype, td_value device,
                      td_value format) {
    tide_handle *handle = tide_push_handle(L);
    tide_load_tensors(L, f);
    const td_value args[] = {f->args[0], dtype, device, TD_B(false), format};
    TIDE_CHECK(L, tide_op_apply(L, TD_OP(to), handle, 5, args));
    tide_check_pressure(L, TIDE_STATE(L), handle->tensor);
    return 1;
}

/* x:float() and the like, named as a dtype or its alias. */
static int tensor_convert(lua_State *L) {
    tide_frame f;
    tide_read_shape_call(L, &f);
    return convert_to(L, &f, TD_DTYPE(td_dtype_find(f.name)), TD_NIL, f.args[1]);
}

static int tensor_type_as(lua_State *L) {
    tide_frame f;
    tide_read_shape_call(L, &f);
    const td_tensor *other = tide_check_shape(L, f.at[1], "type_as");
    if (other->layout == TD_QUANTIZED)
        return tide_error(L, "type_as: other is quantized: tide.quantize_per_tensor says by what "
                             "scale x becomes so");
    td_device device = td_device_real(td_tensor_device(other));
    return convert_to(L, &f, TD_DTYPE((td_dtype)other->dtype), TD_DEVICE(device),
                      TD_STRING("preserve"));
}

static int tensor_cpu(lua_State *L) {
    tide_frame f;
    tide_read_shape_call(L, &f);
    return convert_to(L, &f, TD_NIL, TD_DEVICE(TD_DEVICE_CPU), TD_STRING("preserve"));
}

static int tensor_cuda(lua_State *L) {
    tide_frame f;
    td_device device;
    tide_read_shape_call(L, &f);
    if (td_device_parse("cuda", &device))
        return tide_error(L, "cuda: %s", td_error_message());
    return convert_to(L, &f, TD_NIL, TD_DEVICE(device), TD_STRING("preserve"));
}

/* The tensor comes first in PyTorch's method, the condition in the function. */
static int tensor_where(lua_State *L) {
    tide_frame f;
    tide_read_shape_call(L, &f);
    tide_handle *handle = tide_push_handle(L);
    tide_load_tensors(L, &f);
    const td_value args[] = {f.args[1], f.args[0], f.args[2]};
    TIDE_CHECK(L, tide_op_apply(L, TD_OP(where), handle, 3, args));
    tide_check_pressure(L, TIDE_STATE(L), handle->tensor);
    return 1;
}

#define CONVERSION(alias, dtype)                                                                   \
    {                                                                                              \
        alias "(Tensor x, *, str memory_format=\"preserve\") -> Tensor",                           \
            "The same values in tide." dtype "; the tensor itself where it is that already.",      \
            tensor_convert                                                                         \
    }

static const tide_function methods[] = {
    {"item(Tensor x) -> number", "The value of a tensor of one element.", tensor_item},
    {"tolist(Tensor x) -> list", "The elements as nested tables.", tensor_tolist},
    {"size(Tensor x, dim? dim=nil) -> Size|int", "The shape, or the size of one dim.", tensor_size},
    {"stride(Tensor x, dim? dim=nil) -> Size|int",
     "Elements between neighbours along each dim, or one.", tensor_stride},
    {"dim(Tensor x) -> int", "The number of dims.", tensor_dim},
    {"numel(Tensor x) -> int", "The number of elements.", tensor_numel},
    {"element_size(Tensor x) -> int", "Bytes of an element.", tensor_element_size},
    {"is_contiguous(Tensor x, *, \"contiguous\"|\"channels_last\"|\"channels_last_3d\" "
     "memory_format=\"contiguous\") -> bool",
     "Do the elements lie row-major, or in the memory format given, without gaps?",
     tensor_is_contiguous},
    {"storage_offset(Tensor x) -> int", "Elements of the storage before the tensor's first.",
     tensor_storage_offset},
    {"nelement(Tensor x) -> int", "The number of elements.", tensor_numel},
    {"ndimension(Tensor x) -> int", "The number of dims.", tensor_dim},
    {"is_floating_point(Tensor x) -> bool", "Is the dtype a floating one?",
     tensor_is_floating_point},
    {"data_ptr(Tensor x) -> int", "Address of the first element.", tensor_data_ptr},
    {"pin_memory(Tensor x) -> Tensor",
     "x in memory of the host that devices read without a detour: x:pin_memory():to(\"cuda\", "
     "{non_blocking = true}) is copied beside other work; x itself where it lies there.",
     tensor_pin_memory},
    {"is_pinned(Tensor x) -> bool", "Does x lie in such memory?", tensor_is_pinned},
    {"requires_grad_(Tensor x, bool requires_grad=true) -> Tensor",
     "Ask for gradients of a leaf, or (false) no longer.", tensor_requires_grad_},
    {"retain_grad(Tensor x) -> Tensor", "Keep the gradient of a result of operators in .grad too.",
     tensor_retain_grad},
    {"detach_(Tensor x) -> Tensor", "Drop the history of x itself: it becomes a leaf.",
     tensor_detach_},
    {"is_inference(Tensor x) -> bool", "Was it made in inference_mode?", tensor_is_inference},
    {"backward(Tensor x, Tensor? gradient=nil, *, bool? retain_graph=nil, bool create_graph=false, "
     "Tensor|Tensor[]? inputs=nil)",
     "Add the gradients of this tensor to the .grad of the leaves it depends on, or of `inputs` "
     "alone.",
     tide_backward},
    {"new_tensor(Tensor x, data values, *, dtype? dtype=nil, device? device=nil, "
     "bool requires_grad=false) -> Tensor",
     "A tensor of numbers, or a copy of a tensor, of x's dtype and on its device.",
     tide_new_tensor},
    {"free(any x)", "Let go of the memory now; the tensor can't be used any more.", tensor_free},
    {"where(Tensor x, Tensor condition, Tensor|number other) -> Tensor",
     "x where the condition is true, other elsewhere.", tensor_where},
    {"type_as(Tensor x, Tensor other) -> Tensor",
     "The same values in another's dtype, on its device.", tensor_type_as},
    {"cpu(Tensor x) -> Tensor", "The same values in the host's memory.", tensor_cpu},
    {"cuda(Tensor x) -> Tensor", "The same values on the CUDA device.", tensor_cuda},
    CONVERSION("bool", "bool"),
    CONVERSION("byte", "uint8"),
    CONVERSION("char", "int8"),
    CONVERSION("short", "int16"),
    CONVERSION("int", "int32"),
    CONVERSION("long", "int64"),
    CONVERSION("half", "float16"),
    CONVERSION("bfloat16", "bfloat16"),
    CONVERSION("float", "float32"),
    CONVERSION("double", "float64"),
    {NULL, NULL, NULL},
};

/* ---- operators as metamethods ---- */

static const struct {
    const char *event, *op;
} metamethods[] = {
    {"__add", "add"},
    {"__sub", "sub"},
    {"__mul", "mul"},
    {"__div", "div"},
    {"__idiv", "floor_divide"},
    {"__mod", "remainder"},
    {"__pow", "pow"},
    {"__band", "bitwise_and"},
    {"__bor", "bitwise_or"},
    {"__bxor", "bitwise_xor"},
    {"__shl", "bitwise_left_shift"},
    {"__shr", "bitwise_right_shift"},
};

/* Lua calls these with the operand twice. */
static int tensor_unm(lua_State *L) {
    tide_handle *handle = tide_push_handle(L);
    const td_value x = TD_T(tide_check_shape(L, 1, "-"));
    TIDE_CHECK(L, tide_op_apply(L, TD_OP(neg), handle, 1, &x));
    tide_check_pressure(L, TIDE_STATE(L), handle->tensor);
    return 1;
}

static int tensor_bnot(lua_State *L) {
    tide_handle *handle = tide_push_handle(L);
    const td_value x = TD_T(tide_check_shape(L, 1, "~"));
    TIDE_CHECK(L, tide_op_apply(L, TD_OP(bitwise_not), handle, 1, &x));
    return 1;
}

static bool is_method(const td_op *op) {
    return !(op->flags & (TD_OP_FUNCTION_ONLY | TD_OP_INTERNAL)) && op->nparams > 0 &&
           (op->params[0].type == TD_PARAM_TENSOR ||
            op->params[0].type == TD_PARAM_TENSOR_OR_NUMBER);
}

/* An operator's forms, under its own names or, where there is one, under an alias. */
static void set_forms(lua_State *L, const td_op *op, const td_alias *alias) {
    const char *name = alias ? alias->name : op->name;
    const char *inplace_name = alias ? alias->inplace_name : op->inplace_name;
    if (!(op->flags & TD_OP_INPLACE_ONLY)) {
        tide_push_operator(L, op, alias ? name : NULL, false);
        lua_setfield(L, -2, name);
    }
    if (op->inplace_name) {
        tide_push_operator(L, op, alias ? inplace_name : NULL, true);
        lua_setfield(L, -2, inplace_name);
    }
}

static void push_methods(lua_State *L) {
    lua_createtable(L, 0, 512);
    for (int k = 0; k < td_op_count(); k++)
        if (is_method(td_op_get(k)))
            set_forms(L, td_op_get(k), NULL);
    for (int k = 0; k < td_alias_count(); k++)
        if (is_method(td_alias_get(k)->op))
            set_forms(L, td_alias_get(k)->op, td_alias_get(k));
    tide_declare(L, methods);
    tide_declare_quantized(L);
    tide_declare_hooks(L);
}

/* All that a name behind a tensor may mean: the methods on the top, and fields. */
static void push_members(lua_State *L) {
    lua_createtable(L, 0, 256);
    for (lua_pushnil(L); lua_next(L, -3); lua_pop(L, 1)) {
        lua_pushvalue(L, -2);
        lua_pushvalue(L, -2);
        lua_rawset(L, -5);
    }
    for (size_t k = 0; k < sizeof fields / sizeof *fields; k++) {
        lua_pushlightuserdata(L, (void *)&fields[k]);
        lua_setfield(L, -2, fields[k].name);
    }
}

void tide_add_method(lua_State *L, int tide, const td_op *op) {
    if (!is_method(op))
        return;
    luaL_getmetatable(L, "tide.Tensor");
    lua_getfield(L, -1, "__index");
    lua_getupvalue(L, -1, TIDE_UP_FIRST);
    set_forms(L, op, NULL);
    lua_getfield(L, tide, "_methods");
    set_forms(L, op, NULL);
    lua_pop(L, 4);
}

void tide_open_tensor(lua_State *L) {
    push_methods(L);
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, "_methods");
    push_members(L);
    luaL_getmetatable(L, "tide.Tensor"); /* tide, methods, members, metatable */
    lua_pushliteral(L, "tide.Tensor");
    lua_setfield(L, -2, "__metatable");
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
        {"__concat", tensor_concat},
        {"__unm", tensor_unm},
        {"__bnot", tensor_bnot},
        {NULL, NULL},
    };
    tide_set_functions(L, events);
    for (size_t k = 0; k < sizeof metamethods / sizeof *metamethods; k++) {
        tide_push_operator(L, td_op_find(metamethods[k].op), NULL, false);
        lua_setfield(L, -2, metamethods[k].event);
    }
    lua_pop(L, 3);
}
