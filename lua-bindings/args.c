/* args.c: reads Lua arguments by an operator's schema: positions, options by name, counting from 1.
 */
#include "lua-bindings/args.h"

#include "engine/ops/schema.h"

#include <stdio.h>
#include <string.h>

/* ---- messages ---- */

static int fail_type(lua_State *L, const tide_frame *f, int param, int index,
                     const char *expected) {
    char text[80];
    return tide_error(L, "%s: argument %d (%s): expected %s, got %s", f->name, param + 1,
                      f->op->params[param].name, expected,
                      tide_describe(L, index, text, sizeof text));
}

static const char *expectation(const td_param *p) {
    static const char *const texts[] = {[TD_PARAM_TENSOR] = "a tensor",
                                        [TD_PARAM_TENSORS] = "a list of tensors",
                                        [TD_PARAM_NUMBER] = "a number",
                                        [TD_PARAM_TENSOR_OR_NUMBER] = "a tensor or a number",
                                        [TD_PARAM_INT] = "an integer",
                                        [TD_PARAM_FLOAT] = "a number",
                                        [TD_PARAM_BOOL] = "true or false",
                                        [TD_PARAM_DIM] = "a dim (an integer)",
                                        [TD_PARAM_DIMS] = "a dim or a list of dims",
                                        [TD_PARAM_INDEX] = "an index (an integer)",
                                        [TD_PARAM_INTS] = "an integer or a list of integers",
                                        [TD_PARAM_DTYPE] = "a dtype such as tide.float32",
                                        [TD_PARAM_DEVICE] = "a device such as \"cpu\"",
                                        [TD_PARAM_STRING] = "a string",
                                        [TD_PARAM_GENERATOR] = "a tide.Generator"};
    return texts[p->type];
}

/* ---- integers ---- */

/* From counting from 1 to counting from 0; negative counts from the end either way. */
static int64_t count_from_zero(lua_State *L, const tide_frame *f, int64_t i, const char *what) {
    if (i == 0)
        tide_error(L, "%s: %s 0: %s count from 1 (PyTorch's %s=0 is 1)", f->name, what,
                   strcmp(what, "dim") ? "indices" : "dims", what);
    return i > 0 ? i - 1 : i;
}

static bool to_int(lua_State *L, int index, int64_t *out) {
    int ok;
    if (lua_type(L, index) != LUA_TNUMBER)
        return false;
    *out = lua_tointegerx(L, index, &ok);
    return ok;
}

static void store_int(lua_State *L, tide_frame *f, int64_t i) {
    if (f->nints == TIDE_FRAME_INTS)
        tide_error(L, "%s: more than %d integers in lists", f->name, TIDE_FRAME_INTS);
    f->ints[f->nints++] = i;
}

/* An element of an int[] or dim[] at a stack index. */
static void read_element(lua_State *L, tide_frame *f, int param, int index) {
    int64_t i = 0;
    const td_param *p = &f->op->params[param];
    if (!to_int(L, index, &i)) {
        if (lua_type(L, index) == LUA_TNUMBER)
            tide_error(L, "%s: argument %d (%s): %f has no integer representation", f->name,
                       param + 1, p->name, lua_tonumber(L, index));
        fail_type(L, f, param, index, expectation(p));
    }
    store_int(L, f, p->type == TD_PARAM_DIMS ? count_from_zero(L, f, i, "dim") : i);
}

static void read_int_table(lua_State *L, tide_frame *f, int param, int index) {
    lua_Unsigned n = lua_rawlen(L, index);
    for (lua_Unsigned k = 1; k <= n; k++) {
        lua_rawgeti(L, index, (lua_Integer)k);
        read_element(L, f, param, -1);
        lua_pop(L, 1);
    }
}

/* int[] and dim[]: a table, one number, or (`last` > index) the rest of the positional arguments.
 */
static td_value read_ints(lua_State *L, tide_frame *f, int param, int index, int last) {
    const td_param *p = &f->op->params[param];
    int start = f->nints;
    if (lua_type(L, index) == LUA_TTABLE && last > index)
        tide_error(L,
                   "%s: argument %d (%s): a list, and nothing after it but options, or numbers, "
                   "got %d arguments",
                   f->name, param + 1, p->name, last);
    if (lua_type(L, index) == LUA_TTABLE)
        read_int_table(L, f, param, index);
    else
        for (int at = index; at <= last; at++)
            read_element(L, f, param, at);
    int n = f->nints - start;
    if (p->length && n == 1)
        for (; n < p->length; n++)
            store_int(L, f, f->ints[start]);
    if (p->length && n != p->length)
        tide_error(L, "%s: argument %d (%s): %d integers expected, got %d", f->name, param + 1,
                   p->name, p->length, n);
    return TD_INTS(n, f->ints + start);
}

/* ---- tensors ---- */

td_tensor *tide_from_one_based(lua_State *L, td_tensor *x, const char *fname) {
    tide_handle *handle = tide_push_handle(L);
    if (TD_APPLY(&handle->tensor, from_one_based, TD_T(x)))
        tide_error(L, "%s: %s", fname, td_error_message());
    return handle->tensor;
}

static td_value read_tensors(lua_State *L, tide_frame *f, int param, int index) {
    lua_Integer n = (lua_Integer)lua_rawlen(L, index);
    td_tensor **list = lua_newuserdatauv(L, (size_t)(n ? n : 1) * sizeof *list, 0);
    for (lua_Integer k = 1; k <= n; k++) {
        lua_rawgeti(L, index, k);
        list[k - 1] = tide_to_tensor(L, -1); /* the table keeps it alive */
        if (!list[k - 1]) {
            char text[80];
            tide_error(L, "%s: argument %d (%s): element %d: expected a tensor, got %s", f->name,
                       param + 1, f->op->params[param].name, (int)k,
                       tide_describe(L, -1, text, sizeof text));
        }
        lua_pop(L, 1);
    }
    return TD_TENSORS((int32_t)n, list);
}

/* ---- one argument ---- */

static td_value read_number(lua_State *L, int index) {
    return lua_isinteger(L, index) ? TD_I(lua_tointeger(L, index)) : TD_F(lua_tonumber(L, index));
}

static td_value read_device(lua_State *L, tide_frame *f, int param, int index) {
    td_device device;
    if (lua_type(L, index) != LUA_TSTRING)
        fail_type(L, f, param, index, expectation(&f->op->params[param]));
    if (td_device_parse(lua_tostring(L, index), &device))
        tide_error(L, "%s: %s", f->name, td_error_message());
    return TD_DEVICE(device);
}

static td_value read_integer(lua_State *L, tide_frame *f, int param, int index) {
    const td_param *p = &f->op->params[param];
    int64_t i = 0;
    if (!to_int(L, index, &i)) {
        if (lua_type(L, index) == LUA_TNUMBER)
            tide_error(L, "%s: argument %d (%s): %f has no integer representation", f->name,
                       param + 1, p->name, lua_tonumber(L, index));
        fail_type(L, f, param, index, expectation(p));
    }
    return TD_I(p->type == TD_PARAM_INT     ? i
                : p->type == TD_PARAM_INDEX ? count_from_zero(L, f, i, "index")
                                            : count_from_zero(L, f, i, "dim"));
}

/* The value at `index` for a parameter; `last` as in read_ints. */
static td_value read_value(lua_State *L, tide_frame *f, int param, int index, int last) {
    const td_param *p = &f->op->params[param];
    int type = lua_type(L, index);
    td_tensor *x;
    switch ((td_param_type)p->type) {
    case TD_PARAM_TENSOR:
        x = type == LUA_TUSERDATA ? tide_to_tensor(L, index) : NULL;
        if (!x)
            break;
        return TD_T(TD_LIKELY(p->base == TD_BASE_NONE || td_dtype_is_float((td_dtype)x->dtype))
                        ? x
                        : tide_from_one_based(L, x, f->name));
    case TD_PARAM_TENSOR_OR_NUMBER:
        x = type == LUA_TUSERDATA ? tide_to_tensor(L, index) : NULL;
        if (x)
            return TD_T(x);
        if (type == LUA_TBOOLEAN)
            return TD_I(lua_toboolean(L, index));
        if (type != LUA_TNUMBER)
            break;
        return read_number(L, index);
    case TD_PARAM_NUMBER:
        if (type != LUA_TNUMBER)
            break;
        return read_number(L, index);
    case TD_PARAM_FLOAT:
        if (type != LUA_TNUMBER)
            break;
        return TD_F(lua_tonumber(L, index));
    case TD_PARAM_INT:
    case TD_PARAM_DIM:
    case TD_PARAM_INDEX:
        return read_integer(L, f, param, index);
    case TD_PARAM_INTS:
    case TD_PARAM_DIMS:
        return read_ints(L, f, param, index, last);
    case TD_PARAM_TENSORS:
        if (type != LUA_TTABLE)
            break;
        return read_tensors(L, f, param, index);
    case TD_PARAM_BOOL:
        if (type != LUA_TBOOLEAN)
            break;
        return TD_B(lua_toboolean(L, index));
    case TD_PARAM_DTYPE: {
        td_dtype d = tide_to_dtype(L, index);
        if (d == TD_DTYPE_NONE)
            break;
        return TD_DTYPE(d);
    }
    case TD_PARAM_DEVICE:
        return read_device(L, f, param, index);
    case TD_PARAM_STRING:
        if (type != LUA_TSTRING)
            break;
        return TD_STRING(lua_tostring(L, index));
    case TD_PARAM_GENERATOR: {
        td_generator *g = luaL_testudata(L, index, "tide.Generator");
        if (!g)
            break;
        return (td_value){.kind = TD_KIND_GENERATOR, .generator = g};
    }
    }
    fail_type(L, f, param, index, expectation(p));
    return TD_NIL;
}

/* ---- options ---- */

static int find_param(const td_op *op, const char *name) {
    for (int k = 0; k < op->nparams; k++)
        if (!strcmp(op->params[k].name, name))
            return k;
    return -1;
}

/* Does it make a tensor from nothing, which may then require grad? */
static bool creates(const td_op *op) {
    return op->flags & TD_OP_FUNCTION_ONLY && op->flags & TD_OP_NONDIFF;
}

static int fail_option(lua_State *L, const tide_frame *f, const char *name) {
    const char *names[TD_MAX_PARAMS + 2];
    int n = 0;
    for (; n < f->op->nparams; n++)
        names[n] = f->op->params[n].name;
    if (f->op->flags & TD_OP_OUT)
        names[n++] = "out";
    if (creates(f->op))
        names[n++] = "requires_grad";
    const char *near = tide_nearest(name, names, n);
    return near ? tide_error(L, "%s: no option '%s': did you mean '%s'?", f->name, name, near)
                : tide_error(L, "%s: no option '%s'", f->name, name);
}

/* Options that belong to no parameter; false when the name is none of them. */
static bool read_common_option(lua_State *L, tide_frame *f, const char *name, int index) {
    char text[80];
    if (!strcmp(name, "out") && (f->op->flags & TD_OP_OUT)) {
        f->out = tide_to_tensor(L, index);
        if (!f->out)
            tide_error(L, "%s: option out: expected a tensor, got %s", f->name,
                       tide_describe(L, index, text, sizeof text));
        return true;
    }
    if (!strcmp(name, "requires_grad") && creates(f->op)) {
        if (!lua_isboolean(L, index))
            tide_error(L, "%s: option requires_grad: expected true or false, got %s", f->name,
                       tide_describe(L, index, text, sizeof text));
        f->requires_grad = lua_toboolean(L, index);
        return true;
    }
    return false;
}

static void read_options(lua_State *L, tide_frame *f, int table, uint32_t *given) {
    lua_pushnil(L);
    while (lua_next(L, table)) {
        if (lua_type(L, -2) != LUA_TSTRING)
            tide_error(L, "%s: the option table mixes a list and options", f->name);
        const char *name = lua_tostring(L, -2);
        int param = find_param(f->op, name), value = lua_gettop(L);
        if (param >= 0) {
            if (*given >> param & 1)
                tide_error(L, "%s: '%s' is given by position and by name", f->name, name);
            f->args[param] = read_value(L, f, param, value, value);
            *given |= 1u << param;
            if (lua_gettop(L) > value) { /* keep what was made, below the key */
                lua_rotate(L, table + 1, lua_gettop(L) - value);
            }
        } else if (!read_common_option(L, f, name, value)) {
            fail_option(L, f, name);
        }
        lua_pop(L, 1);
    }
}

/* Is the last argument an option table? One with a list part is data; an empty one is data where a
 * list is due at its place. */
static bool ends_in_options(lua_State *L, const td_op *op, int top) {
    if (top == 0 || lua_type(L, top) != LUA_TTABLE || lua_rawlen(L, top))
        return false;
    lua_pushnil(L);
    if (lua_next(L, top)) {
        lua_pop(L, 2);
        return true;
    }
    if (top > op->npositional)
        return true;
    int type = op->params[top - 1].type;
    return type != TD_PARAM_TENSORS && type != TD_PARAM_INTS && type != TD_PARAM_DIMS;
}

/* Does this parameter take all that is left? */
static bool takes_rest(const td_op *op, int param) {
    const td_param *p = &op->params[param];
    return param == op->npositional - 1 && !p->length &&
           (p->type == TD_PARAM_INTS || p->type == TD_PARAM_DIMS);
}

static void fill_missing(lua_State *L, tide_frame *f, uint32_t given) {
    const td_op *op = f->op;
    for (int k = 0; k < op->nparams; k++) {
        if (given >> k & 1)
            continue;
        if (!op->params[k].has_default) {
            if (takes_rest(op, k) && op->params[k].type == TD_PARAM_INTS && k == 0) {
                f->args[k] = TD_INTS(0, f->ints); /* tide.zeros() is a 0-dim tensor */
                continue;
            }
            tide_error(L, "%s: argument %d (%s): expected %s, got nothing", f->name, k + 1,
                       op->params[k].name, expectation(&op->params[k]));
        }
        f->args[k] = op->params[k].preset;
    }
}

void tide_read_args(lua_State *L, tide_frame *f) {
    const td_op *op = f->op;
    int top = lua_gettop(L), npositional = op->npositional;
    bool options = lua_type(L, top) == LUA_TTABLE && top && ends_in_options(L, op, top);
    int n = options ? top - 1 : top;
    uint32_t given = 0;
    f->nints = 0;
    f->out = NULL;
    f->requires_grad = false;
    for (int k = 0; k < npositional && k < n; k++) {
        if (lua_type(L, k + 1) == LUA_TNIL)
            continue;
        bool rest = k == npositional - 1 && n > npositional && takes_rest(op, k);
        f->args[k] = read_value(L, f, k, k + 1, rest ? n : k + 1);
        given |= 1u << k;
        if (rest)
            n = npositional;
    }
    if (TD_UNLIKELY(n > npositional))
        tide_error(L, "%s: at most %d arguments, got %d%s", f->name, npositional, n,
                   op->nparams > npositional ? " (options go in a table: {name = value})" : "");
    if (TD_UNLIKELY(options))
        read_options(L, f, top, &given);
    if (given != (1u << op->nparams) - 1)
        fill_missing(L, f, given);
}
