/* create.c: tide.tensor: from nested tables and numbers to tensors. */
#include "lua-bindings/call/function.h"
#include "lua-bindings/call/values.h"
#include "lua-bindings/modules/modules.h"
#include "lua-bindings/tensor/tensor.h"

#include <stdio.h>
#include <string.h>

typedef struct shape_of {
    int ndim;
    int64_t sizes[TD_MAX_DIMS];
    bool any_float, any_bool, any_number;
} shape_of;

static int fail_ragged(lua_State *L, const int64_t *place, int depth, const char *what) {
    char text[TD_SHAPE_TEXT];
    return tide_error(L, "tensor: element %s %s", td_shape_text(depth, place, text, sizeof text),
                      what);
}

/* A list within the values has no options (those of the outermost are read already), no holes. */
static void check_list(lua_State *L, int index, const int64_t *place, int depth) {
    char text[TD_SHAPE_TEXT], what[TD_SHAPE_TEXT + 24];
    if (depth == 0)
        return;
    snprintf(what, sizeof what, "tensor: element %s",
             td_shape_text(depth, place, text, sizeof text));
    tide_list_length(L, index, what);
}

/* Shape by the first elements, kinds by all; `place` counts from 1. */
static void measure(lua_State *L, int index, int depth, int64_t *place, shape_of *s, bool first) {
    char what[160];
    int type = lua_type(L, index);
    if (type == LUA_TTABLE) {
        int64_t n = (int64_t)lua_rawlen(L, index);
        if (first) {
            if (depth >= TD_MAX_DIMS) {
                tide_error(L, "tensor: nested deeper than %d dims", TD_MAX_DIMS);
                return;
            }
            s->sizes[depth] = n;
            s->ndim = depth + 1;
        } else if (depth >= s->ndim) {
            fail_ragged(L, place, depth, "is a table where the others are numbers");
        } else if (s->sizes[depth] != n) {
            snprintf(what, sizeof what, "has %lld elements, the first of its kind has %lld",
                     (long long)n, (long long)s->sizes[depth]);
            fail_ragged(L, place, depth, what);
        }
        luaL_checkstack(L, 6, "tensor");
        check_list(L, index, place, depth);
        for (int64_t k = 1; k <= n; k++) {
            tide_poll(L, k - 1);
            place[depth] = k;
            lua_rawgeti(L, index, k);
            measure(L, lua_gettop(L), depth + 1, place, s, first && k == 1);
            lua_pop(L, 1);
        }
        return;
    }
    if (depth != s->ndim)
        fail_ragged(L, place, depth, "is a number where the others are tables");
    if (type == LUA_TBOOLEAN)
        s->any_bool = true;
    else if (type == LUA_TNUMBER && !lua_isinteger(L, index))
        s->any_float = true;
    else if (type == LUA_TNUMBER)
        s->any_number = true;
    else {
        char text[80];
        bool tensor = type == LUA_TUSERDATA && tide_to_tensor(L, index);
        snprintf(what, sizeof what, "is %s, not a number%s",
                 tide_describe(L, index, text, sizeof text),
                 tensor ? " (tide.stack(list) makes one tensor of several)" : "");
        fail_ragged(L, place, depth, what);
    }
}

static char *fill(lua_State *L, int index, td_dtype dtype, char *to) {
    if (lua_type(L, index) == LUA_TTABLE) {
        lua_Integer n = (lua_Integer)lua_rawlen(L, index);
        for (lua_Integer k = 1; k <= n; k++) {
            tide_poll(L, k - 1);
            lua_rawgeti(L, index, k);
            to = fill(L, lua_gettop(L), dtype, to);
            lua_pop(L, 1);
        }
        return to;
    }
    tide_check_holds(L, "tensor", dtype, index);
    if (lua_isboolean(L, index))
        td_store_int(dtype, to, lua_toboolean(L, index));
    else if (lua_isinteger(L, index))
        td_store_int(dtype, to, lua_tointeger(L, index));
    else
        td_store_double(dtype, to, lua_tonumber(L, index));
    return to + td_dtype_size(dtype);
}

/* The handle's tensor becomes a copy of the one at a stack index. */
static void copy_tensor(lua_State *L, tide_handle *handle, int index, const td_value *dtype,
                        const td_value *device) {
    td_tensor *plain = NULL;
    TIDE_CHECK(L, TD_APPLY(&handle->tensor, to, TD_T(tide_check_tensor(L, index, "tensor")), *dtype,
                           *device, TD_B(true)));
    TIDE_CHECK(L, td_tensor_alias(handle->tensor, &plain));
    td_release(handle->tensor);
    handle->tensor = plain;
}

static td_dtype dtype_of(const shape_of *s) {
    return s->any_float || !(s->any_number || s->any_bool) ? td_default_dtype()
           : s->any_number                                 ? TD_I64
                                                           : TD_BOOL;
}

/* ... becomes the numbers at `values`. */
static void read_numbers(lua_State *L, tide_handle *handle, int values, const td_value *dtype,
                         const td_value *device) {
    int64_t place[TD_MAX_DIMS + 1];
    shape_of s = {0};
    td_tensor *moved = NULL;
    measure(L, values, 0, place, &s, true);
    td_dtype d = td_is_nil(*dtype) ? dtype_of(&s) : dtype->dtype;
    TIDE_CHECK(L, td_tensor_empty(d, TD_DEVICE_CPU, s.ndim, s.sizes, &handle->tensor));
    fill(L, values, d, handle->tensor->data);
    td_device where = td_is_nil(*device) ? td_modes_current.device : device->device;
    if (where.type == TD_CPU)
        return;
    TIDE_CHECK(L, TD_APPLY(&moved, to, TD_T(handle->tensor), TD_NIL, TD_DEVICE(where)));
    td_release(handle->tensor);
    handle->tensor = moved;
}

enum { VALUES, DTYPE, DEVICE, REQUIRES_GRAD };

/* Of the numbers, or the tensor, at a stack index; options: dtype, device, requires_grad. */
static int make_tensor(lua_State *L, int values, const td_value *options) {
    tide_handle *handle = tide_push_handle(L);
    if (lua_isuserdata(L, values))
        copy_tensor(L, handle, values, &options[0], &options[1]);
    else
        read_numbers(L, handle, values, &options[0], &options[1]);
    if (options[REQUIRES_GRAD - DTYPE].b)
        TIDE_CHECK(L, td_set_requires_grad(handle->tensor, true));
    tide_check_pressure(L, TIDE_STATE(L), handle->tensor);
    return 1;
}

static int tide_tensor(lua_State *L) {
    tide_frame f;
    if (lua_gettop(L) > 2)
        return tide_error(L,
                          "tensor: a table (or number) and options expected, got %d arguments: put "
                          "the values in a table",
                          lua_gettop(L));
    tide_read_call(L, &f);
    return make_tensor(L, f.at[VALUES], &f.args[DTYPE]);
}

/* x:new_tensor(values): of x's dtype, on its device. */
int tide_new_tensor(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    tide_load_tensors(L, &f);
    const td_tensor *x = f.args[0].tensor;
    td_value *options = f.args + 1 + DTYPE;
    if (td_is_nil(options[0]) && x->layout == TD_QUANTIZED)
        return tide_error(
            L, "new_tensor: x is quantized: give a dtype, and quantize_per_tensor the result");
    if (td_is_nil(options[0]))
        options[0] = TD_DTYPE((td_dtype)x->dtype);
    if (td_is_nil(options[1]))
        options[1] = TD_DEVICE(td_tensor_device(x));
    return make_tensor(L, f.at[1 + VALUES], options);
}

void tide_make_tensor_at(lua_State *L, int index, td_value dtype) {
    const td_value options[] = {dtype, TD_DEVICE(TD_DEVICE_CPU), TD_B(false)};
    make_tensor(L, index, options);
    lua_replace(L, index);
}

/* A tensor that is so already comes back itself. */
static int tide_as_tensor(lua_State *L) {
    tide_frame f;
    const td_value none = TD_B(false);
    tide_read_call(L, &f);
    if (!lua_isuserdata(L, f.at[VALUES]))
        return make_tensor(L, f.at[VALUES],
                           (const td_value[]){f.args[DTYPE], f.args[DEVICE], none});
    tide_handle *handle = tide_push_handle(L);
    td_tensor *x = tide_check_tensor(L, f.at[VALUES], "as_tensor");
    TIDE_CHECK(L, TD_APPLY(&handle->tensor, to, TD_T(x), f.args[DTYPE], f.args[DEVICE]));
    if (handle->tensor == tide_check_tensor(L, f.at[VALUES], "as_tensor"))
        lua_pushvalue(L, f.at[VALUES]);
    return 1;
}

static int tide_is_tensor(lua_State *L) {
    lua_pushboolean(L, lua_isuserdata(L, 1) && tide_is_handle(lua_touserdata(L, 1)));
    return 1;
}

static int tide_is_floating_point(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    tide_load_tensors(L, &f);
    lua_pushboolean(L, td_dtype_is_float((td_dtype)f.args[0].tensor->dtype));
    return 1;
}

void tide_open_creation(lua_State *L) {
    static const tide_function functions[] = {
        {"tensor(data values, *, dtype? dtype=nil, device? device=nil, bool requires_grad=false) "
         "-> Tensor",
         "A tensor of a number, a (nested) table of numbers, or a copy of a tensor. Integers give "
         "int64, floats float32.",
         tide_tensor},
        {"as_tensor(data values, *, dtype? dtype=nil, device? device=nil) -> Tensor",
         "A tensor as it is, or converted where its dtype or device are others; else as tensor.",
         tide_as_tensor},
        {"is_tensor(any value=nil) -> bool", "Is the value a tensor?", tide_is_tensor},
        {"is_floating_point(Tensor x) -> bool", "Is the dtype a floating one?",
         tide_is_floating_point},
        {NULL, NULL, NULL},
    };
    static const char *const formats[][2] = {{"contiguous_format", "contiguous"},
                                             {"preserve_format", "preserve"},
                                             {"channels_last", "channels_last"},
                                             {"channels_last_3d", "channels_last_3d"},
                                             {"strided", "strided"},
                                             {"sparse_coo", "sparse_coo"}};
    for (size_t k = 0; k < sizeof formats / sizeof *formats; k++) {
        lua_pushstring(L, formats[k][1]);
        lua_setfield(L, -2, formats[k][0]);
    }
    tide_declare(L, functions);
}
