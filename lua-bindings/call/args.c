/* args.c: which of the call's arguments goes to which parameter: positions, the table that comes
 * last, options by name, defaults. What a value must be is values.c's business. */
#include "lua-bindings/call/args.h"

#include "lua-bindings/call/values.h"
#include "lua-bindings/state/strict.h"

#include "engine/ops/language/schema.h"

#include <stdio.h>
#include <string.h>

/* ---- options ---- */

static int param_named(const td_op *op, const char *name) {
    for (int k = 0; k < op->nparams; k++)
        if (!strcmp(op->params[k].name, name))
            return k;
    return -1;
}

/* A parameter by its name or by the one that NumPy or PyTorch gives it, which means the same. */
static int find_param(const td_op *op, const char *name) {
    static const char *const others[][2] = {{"axis", "dim"},
                                            {"keepdims", "keepdim"},
                                            {"axis0", "dim0"},
                                            {"axis1", "dim1"},
                                            {"row_limit", "limit"},
                                            {"device_type", "device"},
                                            {"cache_enabled", "cache"},
                                            {"map_location", "device"},
                                            {"group_by_input_shape", "group_by_shape"},
                                            {"sep", "delimiter"},
                                            {"collate_fn", "collate"},
                                            {"worker_init_fn", "worker_init"},
                                            {"prefetch_factor", "prefetch"},
                                            {"persistent_workers", "persistent"},
                                            {"repeat", "repeats"}};
    int k = param_named(op, name);
    for (size_t other = 0; k < 0 && other < sizeof others / sizeof *others; other++)
        if (!strcmp(others[other][0], name))
            k = param_named(op, others[other][1]);
    return k;
}

/* Does it make a tensor from nothing, which may then require grad? */
static bool creates(const td_op *op) {
    return op->flags & TD_OP_CREATES ||
           (op->flags & TD_OP_FUNCTION_ONLY && op->flags & TD_OP_NONDIFF);
}

/* The place of the function among the positional parameters of one that takes a function and what
 * it is called with, as record(name, fn, ...); -1: it is not of that kind. */
static int function_place(const td_op *op) {
    if (op->flags & TD_OP_REST)
        for (int k = 0; k < op->npositional; k++)
            if (op->params[k].type == TD_PARAM_FUNCTION)
                return k;
    return -1;
}

/* An option that a call of a function has not: most likely the table is meant for that function. */
static int fail_function_option(lua_State *L, const tide_frame *f, const char *name) {
    const td_op *op = f->op;
    if (op->nparams == op->npositional)
        return tide_error(L, "%s: no option '%s': %s(fn, ...) calls fn with what stands behind it",
                          f->name, name, f->name);
    const char *option = op->params[op->npositional].name;
    bool named = function_place(op) > 0 && !op->params[0].has_default;
    const char *before = named ? op->params[0].name : "", *comma = named ? ", " : "";
    return tide_error(
        L,
        "%s: no option '%s': options are given as %s(%s%sfn, {%s = ...}), and a table "
        "that fn itself takes behind fn in %s(%s%s{}, fn, {...})",
        f->name, name, f->name, before, comma, option, f->name, before, comma);
}

/* Pushes what an option of PyTorch's is in this call: the name of one that it has, or a sentence,
 * of this function's option before any function's.
 */
static bool push_pytorch_option(lua_State *L, const td_op *op, const char *name) {
    char own[80];
    snprintf(own, sizeof own, "%s.%s", op->name, name);
    if (!tide_push_pytorch(L, own, TIDE_PYTORCH_OPTION) &&
        !tide_push_pytorch(L, name, TIDE_PYTORCH_OPTION))
        return false;
    const char *found = lua_tostring(L, -1);
    if (strchr(found, ' '))
        return true;
    bool here = param_named(op, found) >= 0;
    lua_pushfstring(L, "'%s'", found);
    lua_replace(L, -2);
    if (!here)
        lua_pop(L, 1);
    return here;
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
    if (near)
        return tide_error(L, "%s: no option '%s': did you mean '%s'?", f->name, name, near);
    if (push_pytorch_option(L, f->op, name))
        return tide_error(L, "%s: no option '%s': PyTorch's is %s", f->name, name,
                          lua_tostring(L, -1));
    return function_place(f->op) >= 0 ? fail_function_option(L, f, name)
                                      : tide_error(L, "%s: no option '%s'", f->name, name);
}

/* Options that belong to no parameter; false when the name is none of them. */
static bool read_common_option(lua_State *L, tide_frame *f, const char *name, int index) {
    char text[80];
    if (!strcmp(name, "out") && (f->op->flags & TD_OP_OUT)) {
        f->out_at = index;
        return true;
    }
    if (!strcmp(name, "requires_grad") && creates(f->op)) {
        if (!lua_isboolean(L, index))
            tide_error(L, "%s: option requires_grad: expected true or false, got %s", f->name,
                       tide_describe(L, index, text, sizeof text));
        f->requires_grad = lua_toboolean(L, index);
        return true;
    }
    if (!strcmp(name, "inplace") && f->op->inplace_name && lua_isboolean(L, index)) {
        f->inplace = lua_toboolean(L, index);
        return true;
    }
    return false;
}

/* out=: a tensor, or of several results a list of them, which are left on the stack. How many there
 * must be only the call may know (max has one result or two). */
static void read_out(lua_State *L, tide_frame *f) {
    char text[80];
    bool list = f->op->nresults > 1 && lua_istable(L, f->out_at);
    f->nout = 1;
    if (list) {
        lua_pushfstring(L, "%s: option out", f->name);
        lua_Integer n = tide_list_length(L, f->out_at, lua_tostring(L, -1));
        if (n < 1 || n > f->op->nresults)
            tide_error(L, "%s: option out: expected a list of %d tensors, got one of %d", f->name,
                       (int)f->op->nresults, (int)n);
        for (lua_Integer k = 1; k <= n; k++)
            lua_rawgeti(L, f->out_at, k);
        f->nout = (int)n;
        f->out_at = lua_gettop(L) - f->nout + 1;
    }
    for (int k = 0; k < f->nout; k++) {
        if (lua_isuserdata(L, f->out_at + k) && tide_to_tensor(L, f->out_at + k))
            continue;
        tide_describe(L, f->out_at + k, text, sizeof text);
        if (list)
            tide_error(L, "%s: option out: expected a list of tensors, number %d is %s", f->name,
                       k + 1, text);
        tide_error(L, "%s: option out: expected %s, got %s", f->name,
                   f->op->nresults > 1 ? "a list of tensors" : "a tensor", text);
    }
}

/* The named part of the last table: each value is left on the stack, and noted in frame->at. */
static void gather_options(lua_State *L, tide_frame *f) {
    luaL_checkstack(L, TD_MAX_PARAMS + TD_MAX_RESULTS + 9, f->name);
    lua_pushnil(L);
    while (lua_next(L, f->options)) {
        if (lua_type(L, -2) != LUA_TSTRING) { /* of the list part, or nothing that may be there */
            if (!lua_rawlen(L, f->options))
                tide_scan_keys(L, f->options, 0, f->name);
            lua_pop(L, 1);
            continue;
        }
        const char *name = lua_tostring(L, -2);
        int param = find_param(f->op, name);
        lua_insert(L, -2); /* the value stays, below the key */
        int value = lua_gettop(L) - 1;
        if (param >= 0 && f->at[param])
            tide_error(L, "%s: '%s' is given twice", f->name, name);
        if (param >= 0)
            f->at[param] = value;
        else if (!read_common_option(L, f, name, value))
            fail_option(L, f, name);
    }
    if (TD_UNLIKELY(f->out_at))
        read_out(L, f);
}

/* Does this parameter take all that is left? */
static bool takes_rest(const td_op *op, int param) {
    const td_param *p = &op->params[param];
    return param == op->npositional - 1 && !p->length &&
           (p->type == TD_PARAM_INTS || p->type == TD_PARAM_DIMS || p->type == TD_PARAM_OBJECTS ||
            p->rest);
}

static bool takes_list(const td_param *p) {
    return p->type == TD_PARAM_TENSORS || p->type == TD_PARAM_INTS || p->type == TD_PARAM_DIMS ||
           p->type == TD_PARAM_NUMBERS || p->type == TD_PARAM_LIST || p->type == TD_PARAM_DATA ||
           p->type == TD_PARAM_OBJECTS;
}

/* Is the list part of a table at this position the call's positional arguments? */
static bool is_whole_call(const td_op *op, const td_param *p, int top, lua_Integer n, bool named) {
    bool method = op->nparams && op->params[0].type == TD_PARAM_OBJECT;
    if (top != 1 && !(top == 2 && method))
        return false;
    if (takes_list(p)) /* {2, 3, stride = 1} for int[2] kernel_size, int[2] stride */
        return p->length && (named || n != p->length);
    return named || p->type != TD_PARAM_TENSOR;
}

/* Does this call know an option of that name, or what PyTorch's of that name is? */
static bool knows_option(lua_State *L, const td_op *op, const char *name) {
    if (find_param(op, name) >= 0)
        return true;
    bool known = push_pytorch_option(L, op, name);
    lua_pop(L, known);
    return known;
}

/* Does a table hold options? Where anything may stand this tells them from data: each key is a
 * parameter's name. Behind the first argument one such key, or one of PyTorch's, is enough, so that
 * another beside it is refused by its name. An empty table holds no options where `p` must have a
 * value, or the row has no options. */
static bool names_options(lua_State *L, const td_op *op, const td_param *p, int table) {
    bool any = p->has_default && op->nparams > op->npositional, known = false, all = true;
    for (lua_pushnil(L); lua_next(L, table); any = true) {
        lua_pop(L, 1);
        const char *name = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : NULL;
        if (!name) {
            lua_pop(L, 1);
            return false;
        }
        all = all && find_param(op, name) >= 0;
        known = known || knows_option(L, op, name);
    }
    return any && (all || (known && p->has_default && p > op->params));
}

/* The last argument is a table: notes in the frame which parts of it are data and options, and
 * returns how many positional arguments there are. */
static int read_last_table(lua_State *L, tide_frame *f, int top) {
    static const td_param none = {.type = TD_PARAM_BOOL};
    const td_op *op = f->op;
    const td_param *p = top <= op->npositional ? &op->params[top - 1] : &none;
    if (lua_getmetatable(L, top)) { /* an object */
        lua_pop(L, 1);
        return top;
    }
    if (p->type == TD_PARAM_TABLE || (p->type == TD_PARAM_ANY && !names_options(L, op, p, top)))
        return top;
    lua_Integer n = (lua_Integer)lua_rawlen(L, top);
    bool list = takes_list(p);
    if (n == 0 && (!list || p->length)) { /* gather_options looks at the keys */
        f->options = top;
        return top - 1;
    }
    bool named = tide_scan_keys(L, top, n, f->name);
    if (n == 0 && named) {
        f->options = top;
        return top - 1;
    }
    if (is_whole_call(op, p, top, n, named)) {
        luaL_checkstack(L, (int)(n < 1000 ? n : 1000) + 8, f->name);
        for (lua_Integer k = 1; k <= n && k <= 1000; k++)
            lua_rawgeti(L, top, k);
        lua_rotate(L, top, -1);
        f->options = lua_gettop(L);
        return f->options - 1;
    }
    if (named && !list)
        tide_error(L, "%s: the last table holds options by name, got a list in it", f->name);
    f->list = top;
    f->options = named ? top : 0;
    return top;
}

/* Only tide.zeros() may do without an argument that has no default. */
static void take_default(lua_State *L, tide_frame *f, int k) {
    const td_op *op = f->op;
    if (takes_rest(op, k) && op->params[k].type == TD_PARAM_INTS && k == 0)
        f->args[k] = TD_INTS(0, f->ints); /* tide.zeros() is a 0-dim tensor */
    else
        tide_fail_missing(L, f, k);
}

/* ---- calls of functions that take a function and what it is called with ---- */

static bool is_plain_table(lua_State *L, int index) {
    if (!lua_istable(L, index))
        return false;
    bool object = lua_getmetatable(L, index);
    if (object)
        lua_pop(L, 1);
    return !object;
}

static bool is_empty_table(lua_State *L, int index) {
    lua_pushnil(L);
    bool empty = !lua_next(L, index);
    lua_pop(L, empty ? 0 : 2);
    return empty;
}

/* Are these the options, behind what the function is called with? Where the row has options any
 * table of names is; where it has none, but parameters may be named, one that names them. An empty
 * one behind the function is the function's. */
static bool is_options_behind(lua_State *L, const td_op *op, int n) {
    if (!is_plain_table(L, n))
        return false;
    if (is_empty_table(L, n))
        return n <= op->npositional;
    if (lua_rawlen(L, n))
        return false;
    return op->nparams > op->npositional || names_options(L, op, &op->params[0], n);
}

/* name({options}, fn, ...), or with what comes first before them: they go behind the rest. */
static bool turn_options(lua_State *L, const td_op *op, int place, int n) {
    for (int at = op->params[0].has_default ? 1 : place + 1; at <= place + 1 && at < n; at++)
        if (is_plain_table(L, at) && !lua_rawlen(L, at) && lua_isfunction(L, at + 1)) {
            lua_rotate(L, at, -1);
            return true;
        }
    return false;
}

/* Find the options of such a call: in front, behind, or with all in one table, as
 * name{fn, option = value}. Returns the number of positional arguments. */
static int find_function_options(lua_State *L, tide_frame *f, int place, int n) {
    if (n == 1 && is_plain_table(L, 1))
        return read_last_table(L, f, n);
    bool in_front = turn_options(L, f->op, place, n);
    if (in_front || (n > 1 && is_options_behind(L, f->op, n)))
        f->options = n--;
    return n;
}

/* A function where a parameter with a default is due that comes before one, as in autocast(fn), is
 * that one: what stands before it is left out. */
static int skip_default(lua_State *L, tide_frame *f, int n) {
    const td_param *params = f->op->params;
    if (!n || f->op->npositional != 2 || params[1].type != TD_PARAM_FUNCTION ||
        params[0].type == TD_PARAM_FUNCTION || !params[0].has_default || !lua_isfunction(L, 1))
        return n;
    lua_pushnil(L);
    lua_insert(L, 1);
    f->options += f->options != 0;
    return n + 1;
}

/* Positional parameters that were given by name take their places on the stack, where the function
 * and its arguments are looked for. */
static void place_named(lua_State *L, tide_frame *f, int place) {
    for (int k = f->last; k <= place && f->at[place] > f->last; k++) {
        if (f->at[k])
            lua_pushvalue(L, f->at[k]);
        else
            lua_pushnil(L);
        lua_insert(L, k + 1);
        for (int other = 0; other < f->op->nparams; other++)
            f->at[other] += f->at[other] > k;
        f->options++;
        f->at[k] = f->at[k] ? k + 1 : 0;
        f->last = k + 1;
    }
}

/* ---- options that were given by position ---- */

static bool option_fits(lua_State *L, const td_param *p, int index) {
    if (p->type == TD_PARAM_ANY)
        return true;
    switch (lua_type(L, index)) {
    case LUA_TBOOLEAN:
        return p->type == TD_PARAM_BOOL;
    case LUA_TNUMBER:
        return p->type == TD_PARAM_INT || p->type == TD_PARAM_FLOAT || p->type == TD_PARAM_NUMBER;
    case LUA_TSTRING:
        return p->type == TD_PARAM_STRING || p->type == TD_PARAM_DEVICE;
    default:
        return p->type == TD_PARAM_DTYPE && tide_to_dtype(L, index) != TD_DTYPE_NONE;
    }
}

/* Pushes " (options go in a table: {keepdim = true})" with the options that the arguments from
 * `first` to n seem to be; whether each of them is one. */
static bool push_meant(lua_State *L, const tide_frame *f, int first, int n) {
    const td_op *op = f->op;
    int k = op->npositional, unbiased = param_named(op, "unbiased"); /* PyTorch's first */
    bool all = first <= n;
    luaL_Buffer text;
    luaL_checkstack(L, 8, NULL);
    luaL_buffinit(L, &text);
    for (int index = first; all && index <= n; index++) {
        bool is_unbiased = index == first && unbiased >= 0 && lua_isboolean(L, index);
        while (!is_unbiased && k < op->nparams && !option_fits(L, &op->params[k], index))
            k++;
        all = k < op->nparams;
        if (!all)
            break;
        luaL_addstring(&text, index > first ? ", " : "");
        luaL_addstring(&text, op->params[is_unbiased ? unbiased : k++].name);
        luaL_addstring(&text, " = ");
        if (lua_type(L, index) == LUA_TSTRING) {
            luaL_addchar(&text, '"');
            luaL_addstring(&text, lua_tostring(L, index));
            luaL_addchar(&text, '"');
        } else {
            luaL_tolstring(L, index, NULL);
            luaL_addvalue(&text);
        }
    }
    luaL_pushresult(&text);
    lua_pushfstring(L, " (options go in a table: {%s})",
                    all ? lua_tostring(L, -1) : "name = value");
    return all;
}

/* Is the running function called with a colon? Then its first argument isn't counted. */
static int counts_self(lua_State *L) {
    lua_Debug ar;
    return lua_getstack(L, 0, &ar) && lua_getinfo(L, "n", &ar) && !strcmp(ar.namewhat, "method");
}

static void fail_too_many(lua_State *L, const tide_frame *f, int n) {
    int most = f->op->npositional - counts_self(L), given = n - counts_self(L);
    bool options = f->op->nparams > f->op->npositional;
    const td_param *p = &f->op->params[0];
    if (p->type == TD_PARAM_TENSORS && !p->alone && lua_isuserdata(L, 1) && lua_isuserdata(L, 2))
        tide_error(L, "%s: expected a list of tensors, got %d arguments: %s({a, b})", f->name, n,
                   f->name);
    if (options)
        push_meant(L, f, f->op->npositional + 1, n);
    tide_error(L, "%s: at most %d argument%s, got %d%s", f->name, most, most == 1 ? "" : "s", given,
               options ? lua_tostring(L, -1) : "");
}

/* A list of numbers that may be written without a table has taken options in. */
static void check_rest(lua_State *L, const tide_frame *f, int n) {
    int first = f->op->npositional;
    while (first <= n && (lua_isnumber(L, first) || lua_istable(L, first) || lua_isnil(L, first)))
        first++;
    if (first <= n && push_meant(L, f, first, n))
        tide_error(L, "%s: argument %d: %s where a number belongs%s", f->name,
                   first - counts_self(L), luaL_typename(L, first), lua_tostring(L, -1));
}

static void read_args(lua_State *L, tide_frame *f) {
    const td_op *op = f->op;
    int n = lua_gettop(L), npositional = op->npositional;
    bool rest = op->flags & TD_OP_REST;
    int place = TD_UNLIKELY(rest) ? function_place(op) : -1;
    f->nints = f->out_at = f->nout = f->nbeside = f->options = f->list = 0;
    f->requires_grad = f->inplace = false;
    while (n > npositional && !rest && lua_isnil(L, n)) /* f(x, options) of options that are not */
        n--;
    if (place >= 0)
        n = find_function_options(L, f, place, n);
    else if (n && lua_type(L, n) == LUA_TTABLE && !rest)
        n = read_last_table(L, f, n);
    n = skip_default(L, f, n);
    for (int k = 0; k < op->nparams; k++)
        f->at[k] = k < n && k < npositional && !lua_isnil(L, k + 1) ? k + 1 : 0;
    if (TD_UNLIKELY(n > npositional && !rest && !(npositional && takes_rest(op, npositional - 1))))
        fail_too_many(L, f, n);
    if (TD_UNLIKELY(npositional && n >= npositional &&
                    (op->params[npositional - 1].type == TD_PARAM_DIMS ||
                     op->params[npositional - 1].type == TD_PARAM_INTS)))
        check_rest(L, f, n);
    f->last = n;
    if (TD_UNLIKELY(f->options))
        gather_options(L, f);
    if (TD_UNLIKELY(place >= 0))
        place_named(L, f, place);
    for (int k = 0; k < op->nparams; k++)
        if (!f->at[k] && TD_LIKELY(op->params[k].has_default))
            f->args[k] = op->params[k].preset;
        else if (!f->at[k])
            take_default(L, f, k);
        else
            f->args[k] = tide_read_value(
                L, f, k, f->at[k],
                f->at[k] == npositional && n > npositional && takes_rest(op, k) ? n : f->at[k]);
}

void tide_read_args(lua_State *L, tide_frame *f) {
    f->defers = false;
    read_args(L, f);
}

void tide_read_shapes(lua_State *L, tide_frame *f) {
    f->defers = true;
    read_args(L, f);
}
