/* dtype_functions.c: finfo and iinfo, promote_types, result_type and can_cast, and the default
 * dtype. */
#include "lua-bindings/call/function.h"
#include "lua-bindings/modules/modules.h"

#include <math.h>
#include <string.h>

/* ---- what a dtype holds ---- */

/* Binary digits and the exponent of the first power of two beyond the largest number; {0, 0} for a
 * dtype that is no floating one. */
typedef struct format {
    int digits, exponent;
} format;

static format format_of(td_dtype dtype) {
    switch (dtype) {
    case TD_F16:
        return (format){11, 16};
    case TD_BF16:
        return (format){8, 128};
    case TD_F32:
        return (format){24, 128};
    case TD_F64:
        return (format){53, 1024};
    case TD_BOOL:
    case TD_U8:
    case TD_I8:
    case TD_I16:
    case TD_I32:
    case TD_I64:
    case TD_DTYPE_COUNT:
    case TD_DTYPE_NONE:
        break;
    }
    return (format){0, 0};
}

static void set_number(lua_State *L, const char *name, double value) {
    lua_pushnumber(L, value);
    lua_setfield(L, -2, name);
}

static void set_integer(lua_State *L, const char *name, int64_t value) {
    lua_pushinteger(L, (lua_Integer)value);
    lua_setfield(L, -2, name);
}

static void push_info(lua_State *L, td_dtype dtype) {
    lua_createtable(L, 0, 8);
    set_integer(L, "bits", 8 * (int64_t)td_dtype_size(dtype));
    lua_pushstring(L, td_dtype_name(dtype));
    lua_setfield(L, -2, "dtype");
}

static int dtype_finfo(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    td_dtype dtype = td_is_nil(f.args[0]) ? td_default_dtype() : f.args[0].dtype;
    format a = format_of(dtype);
    if (!a.digits)
        return tide_error(L, "finfo: a floating dtype expected, got %s: ask iinfo",
                          td_dtype_name(dtype));
    double largest = ldexp(1 - ldexp(1, -a.digits), a.exponent);
    push_info(L, dtype);
    set_number(L, "eps", ldexp(1, 1 - a.digits));
    set_number(L, "max", largest);
    set_number(L, "min", -largest);
    set_number(L, "tiny", ldexp(1, 2 - a.exponent));
    set_number(L, "smallest_normal", ldexp(1, 2 - a.exponent));
    set_number(L, "resolution", pow(10, -floor((a.digits - 1) * log10(2))));
    return 1;
}

static int dtype_iinfo(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    td_dtype dtype = f.args[0].dtype;
    char bytes[8];
    if (!td_dtype_is_int(dtype))
        return tide_error(L, "iinfo: an integer dtype expected, got %s%s", td_dtype_name(dtype),
                          td_dtype_is_float(dtype) ? ": ask finfo" : "");
    td_store_int(dtype, bytes, -1);
    bool is_signed = td_load_int(dtype, bytes) < 0;
    int width = 8 * (int)td_dtype_size(dtype) - is_signed;
    int64_t largest = (int64_t)(UINT64_MAX >> (64 - width));
    push_info(L, dtype);
    set_integer(L, "max", largest);
    set_integer(L, "min", is_signed ? -largest - 1 : 0);
    return 1;
}

/* ---- promotion ---- */

static int dtype_promote(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    tide_push_dtype(L, td_dtype_promote(f.args[0].dtype, f.args[1].dtype));
    return 1;
}

static int dtype_of_result(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    tide_load_tensors(L, &f);
    td_dtype dtype = td_promote_operands(2, f.args);
    tide_push_dtype(L, dtype);
    return 1;
}

static int dtype_can_cast(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    lua_pushboolean(L, td_dtypes[f.args[0].dtype].category <= td_dtypes[f.args[1].dtype].category);
    return 1;
}

static int dtype_of_tensor_is_float(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    tide_load_tensors(L, &f);
    lua_pushboolean(L, td_dtype_is_float((td_dtype)f.args[0].tensor->dtype));
    return 1;
}

static int dtype_default(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    tide_push_dtype(L, td_default_dtype());
    return 1;
}

static int set_dtype_default(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    if (td_set_default_dtype(f.args[0].dtype))
        return tide_error(L, "set_default_dtype: %s", td_error_message());
    return 0;
}

/* ---- the module ---- */

void tide_open_dtype_functions(lua_State *L) {
    static const tide_function functions[] = {
        {"finfo(dtype? dtype=nil) -> table",
         "What a floating dtype holds: bits, eps, min, max, tiny (also smallest_normal), "
         "resolution; "
         "of the default dtype where none is given.",
         dtype_finfo},
        {"iinfo(dtype dtype) -> table", "What an integer dtype holds: bits, min, max.",
         dtype_iinfo},
        {"promote_types(dtype a, dtype b) -> dtype",
         "The dtype that tensors of two dtypes are promoted to.", dtype_promote},
        {"result_type(Tensor|number a, Tensor|number b) -> dtype",
         "The dtype of a + b: tensors with dims decide, 0-dim ones and numbers where their "
         "category "
         "is higher.",
         dtype_of_result},
        {"can_cast(dtype from, dtype to) -> bool",
         "May a result of one dtype be written into a tensor of the other: is its category not "
         "higher?",
         dtype_can_cast},
        {"is_floating_point(Tensor x) -> bool", "Is the dtype of x a floating one?",
         dtype_of_tensor_is_float},
        {"get_default_dtype() -> dtype", "The dtype of floating tensors where none is given.",
         dtype_default},
        {"set_default_dtype(dtype dtype)",
         "From here on floating tensors are of this dtype where none is given: numbers with a "
         "point, zeros, rand, parameters of layers, quotients of integers; float32 at first.",
         set_dtype_default},
        {NULL, NULL, NULL},
    };
    tide_declare(L, functions);
}
