/* foreach.c: operators over lists: tide.foreach.add(list, ...). Arguments are those of the
 * operator, of which each, an option too, may be a list with one entry per call. */
#include "lua-bindings/call/function.h"
#include "lua-bindings/call/values.h"
#include "lua-bindings/modules/modules.h"

#include "engine/calls/foreach.h"

#include <string.h>

enum { UP_OP = TIDE_UP_FIRST, UP_INPLACE, UP_NAME };

typedef struct reader {
    tide_frame f;             /* what is one value for all calls */
    int lists[TD_MAX_PARAMS]; /* stack index of a parameter's list; 0: none */
    int n;                    /* calls; -1: there was no list yet */
    int first;                /* the parameter whose list said so */
} reader;

/* ---- which argument is a list ---- */

static bool is_table(lua_State *L, int index) {
    if (lua_type(L, index) != LUA_TTABLE)
        return false;
    bool object = lua_getmetatable(L, index);
    if (object)
        lua_pop(L, 1);
    return !object;
}

static void take(lua_State *L, reader *r, int param, int index) {
    const td_param *p = &r->f.op->params[param];
    if (r->f.at[param] || r->lists[param])
        tide_error(L, "%s: '%s' is given by position and by name", r->f.name, p->name);
    if (!is_table(L, index)) {
        r->f.at[param] = lua_isnil(L, index) ? 0 : index;
        return;
    }
    lua_Integer n = (lua_Integer)lua_rawlen(L, index);
    if (r->n >= 0 && n != r->n)
        tide_error(L, "%s: list %s has %d entries, list %s has %d", r->f.name, p->name, (int)n,
                   r->f.op->params[r->first].name, r->n);
    if (r->n < 0)
        r->first = param;
    r->n = (int)n;
    r->lists[param] = index;
}

static int fail_option(lua_State *L, const reader *r, const char *name) {
    const char *names[TD_MAX_PARAMS];
    for (int k = 0; k < r->f.op->nparams; k++)
        names[k] = r->f.op->params[k].name;
    const char *near = tide_nearest(name, names, r->f.op->nparams);
    return near ? tide_error(L, "%s: no option '%s': did you mean '%s'?", r->f.name, name, near)
                : tide_error(L, "%s: no option '%s'", r->f.name, name);
}

/* The named part of a table: values stay on the stack. */
static void take_options(lua_State *L, reader *r, int table) {
    const td_op *op = r->f.op;
    luaL_checkstack(L, TD_MAX_PARAMS + 8, r->f.name);
    for (lua_pushnil(L); lua_next(L, table);) {
        if (lua_type(L, -2) != LUA_TSTRING) {
            lua_pop(L, 1);
            continue;
        }
        const char *name = lua_tostring(L, -2);
        int param = 0;
        while (param < op->nparams && strcmp(op->params[param].name, name) != 0)
            param++;
        if (param == op->nparams)
            fail_option(L, r, name);
        lua_insert(L, -2);
        take(L, r, param, lua_gettop(L) - 1);
    }
}

/* Is the table that comes last one of options alone? */
static bool is_options(lua_State *L, const reader *r, int index, bool named) {
    return lua_rawlen(L, index) == 0 && (named || index > r->f.op->npositional);
}

static void sort_out(lua_State *L, reader *r) {
    int top = lua_gettop(L), n = top, options = 0;
    for (int k = 1; k <= top; k++) {
        if (!is_table(L, k))
            continue;
        bool named = tide_scan_keys(L, k, (lua_Integer)lua_rawlen(L, k), r->f.name);
        if (named && k < top)
            tide_error(L,
                       "%s: argument %d: a list has no options: they go into the table that "
                       "comes last",
                       r->f.name, k);
        options = k == top && named ? k : 0;
        n -= k == top && is_options(L, r, k, named);
    }
    if (n > r->f.op->npositional)
        tide_error(L, "%s: at most %d arguments, got %d", r->f.name, r->f.op->npositional, n);
    for (int k = 0; k < n; k++)
        take(L, r, k, k + 1);
    if (options)
        take_options(L, r, options);
}

/* ---- values ---- */

static int fail_element(lua_State *L, const reader *r, int param, int k, const char *expected) {
    char given[80];
    return tide_error(L, "%s: list %s: entry %d: expected %s, got %s", r->f.name,
                      r->f.op->params[param].name, k + 1, expected,
                      tide_describe(L, -1, given, sizeof given));
}

/* Entry k of a parameter's list; a tensor is borrowed from its handle. */
static td_value read_entry(lua_State *L, const reader *r, int param, int k) {
    int type = r->f.op->params[param].type;
    bool tensor = type == TD_PARAM_TENSOR || type == TD_PARAM_TENSOR_OR_NUMBER;
    bool number = type == TD_PARAM_NUMBER || type == TD_PARAM_TENSOR_OR_NUMBER;
    lua_rawgeti(L, r->lists[param], k + 1);
    tide_handle *handle = lua_touserdata(L, -1);
    td_value v = TD_NIL;
    if (TD_LIKELY(tensor && tide_is_handle(handle)))
        v = TD_T(tide_to_tensor(L, -1));
    else if (number && lua_type(L, -1) == LUA_TNUMBER)
        v = lua_isinteger(L, -1) ? TD_I(lua_tointeger(L, -1)) : TD_F(lua_tonumber(L, -1));
    else
        fail_element(L, r, param, k,
                     !tensor && !number ? "one value for all"
                     : !number          ? "a tensor"
                     : !tensor          ? "a number"
                                        : "a tensor or a number");
    lua_pop(L, 1);
    return v;
}

static void read_single(lua_State *L, reader *r, int param) {
    tide_frame *f = &r->f;
    if (r->lists[param])
        f->args[param] = TD_NIL;
    else if (f->at[param])
        f->args[param] = tide_read_value(L, f, param, f->at[param], f->at[param]);
    else if (f->op->params[param].has_default)
        f->args[param] = f->op->params[param].preset;
    else
        tide_fail_missing(L, f, param);
}

/* All calls' arguments; allocates nothing in Lua. */
static void load(lua_State *L, reader *r, td_value *args) {
    const td_op *op = r->f.op;
    tide_load_tensors(L, &r->f);
    for (int param = 0; param < op->nparams; param++)
        for (int k = 0; k < r->n; k++)
            args[k * op->nparams + param] =
                r->lists[param] ? read_entry(L, r, param, k) : r->f.args[param];
}

static void read_call(lua_State *L, reader *r) {
    r->n = -1;
    r->f = (tide_frame){.op = lua_touserdata(L, lua_upvalueindex(UP_OP)),
                        .name = lua_tostring(L, lua_upvalueindex(UP_NAME))};
    memset(r->lists, 0, sizeof r->lists);
    sort_out(L, r);
    char given[80];
    if (r->n < 0)
        tide_error(L, "%s: argument 1 (%s): a list of tensors expected, got %s", r->f.name,
                   r->f.op->params[0].name, tide_describe(L, 1, given, sizeof given));
    for (int k = 0; k < r->f.op->nparams; k++)
        read_single(L, r, k);
}

/* ---- the call ---- */

/* The engine's message begins with the operator's name; here the list's comes first. */
static int fail_call(lua_State *L, const reader *r, const td_foreach *call) {
    const char *message = td_error_message(), *colon = strstr(message, ": ");
    if (td_error_code() == TD_ESCRIPT || td_error_code() == TD_EINTR)
        return tide_raise(L);
    if (call->failed < 0)
        return tide_error(L, "%s: %s", r->f.name, message);
    size_t len = colon ? (size_t)(colon - message) : 0;
    bool named = len && !strncmp(message, r->f.op->name, strlen(r->f.op->name)) &&
                 len <= strlen(r->f.op->name) + 1;
    return tide_error(L, "%s: entry %d: %s", r->f.name, call->failed + 1,
                      named ? colon + 2 : message);
}

/* The table of results with empty handles, and where they are. */
static tide_handle **push_results(lua_State *L, int n) {
    tide_handle **handles = lua_newuserdatauv(L, (size_t)(n + 1) * sizeof *handles, 0);
    lua_createtable(L, n, 0);
    for (int k = 0; k < n; k++) {
        handles[k] = tide_push_handle(L);
        lua_rawseti(L, -2, k + 1);
    }
    return handles;
}

static int call_foreach(lua_State *L) {
    reader r;
    read_call(L, &r);
    luaL_checkstack(L, 8, r.f.name);
    size_t n = (size_t)r.n + 1, nparams = r.f.op->nparams;
    td_foreach call = {
        .op = r.f.op, .inplace = lua_toboolean(L, lua_upvalueindex(UP_INPLACE)), .n = r.n};
    if (call.inplace && !r.lists[0])
        return tide_error(L, "%s: argument 1 (%s): a list of tensors expected", r.f.name,
                          r.f.op->params[0].name);
    td_value *args = lua_newuserdatauv(L, n * nparams * sizeof *args, 0);
    call.args = args;
    call.out = lua_newuserdatauv(L, n * sizeof *call.out, 0);
    tide_handle **handles = call.inplace ? NULL : push_results(L, r.n);
    load(L, &r, args);
    td_status status = td_foreach_call(&call);
    if (TD_UNLIKELY(status == TD_ENOMEM)) {
        tide_free_memory(L, TIDE_STATE(L));
        load(L, &r, args);
        status = td_foreach_call(&call);
    }
    if (TD_UNLIKELY(status))
        return fail_call(L, &r, &call);
    if (call.inplace) {
        lua_pushvalue(L, r.lists[0]);
        return 1;
    }
    for (int k = 0; k < r.n; k++)
        handles[k]->tensor = call.out[k];
    if (r.n)
        tide_check_pressure(L, TIDE_STATE(L), call.out[r.n - 1]);
    return 1;
}

/* ---- norms ---- */

/* The tensors of the list at 1, borrowed. */
static void load_list(lua_State *L, int n, td_tensor **list) {
    for (int k = 0; k < n; k++) {
        lua_rawgeti(L, 1, k + 1);
        list[k] = tide_to_tensor(L, -1);
        luaL_argcheck(L, list[k], 1, "foreach.norm: a list of tensors expected");
        lua_pop(L, 1);
    }
}

/* tide._foreach_norm(list, ord): both are what they should be but for the list's dtypes. */
static int call_norm(lua_State *L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checknumber(L, 2);
    int n = (int)lua_rawlen(L, 1), failed;
    td_value ord = lua_isinteger(L, 2) ? TD_I(lua_tointeger(L, 2)) : TD_F(lua_tonumber(L, 2));
    size_t room = (size_t)(n + 1) * sizeof(td_tensor *);
    td_tensor **list = lua_newuserdatauv(L, room, 0), **out = lua_newuserdatauv(L, room, 0);
    tide_handle **handles = push_results(L, n);
    load_list(L, n, list);
    td_status status = td_foreach_norm(n, list, ord, out, &failed);
    if (TD_UNLIKELY(status == TD_ENOMEM)) {
        tide_free_memory(L, TIDE_STATE(L));
        load_list(L, n, list);
        status = td_foreach_norm(n, list, ord, out, &failed);
    }
    if (status == TD_ESCRIPT || status == TD_EINTR)
        return tide_raise(L);
    if (status && failed >= 0)
        return tide_error(L, "foreach.norm: entry %d: %s", failed + 1, td_error_message());
    if (status)
        return tide_error(L, "foreach.norm: %s", td_error_message());
    for (int k = 0; k < n; k++)
        handles[k]->tensor = out[k];
    if (n)
        tide_check_pressure(L, TIDE_STATE(L), out[n - 1]);
    return 1;
}

/* ---- the table ---- */

/* Push an operator over lists, which messages call by its name behind `foreach.`. */
static void push_function(lua_State *L, const td_op *op, const char *name, bool inplace) {
    lua_pushlightuserdata(L, (void *)op);
    lua_pushboolean(L, inplace);
    lua_pushfstring(L, "foreach.%s", name);
    tide_push_function(L, call_foreach, 3);
}

/* Set table[name] at the top, a table that is called `foreach`. */
static void set_function(lua_State *L, const td_op *op, const char *name, bool inplace) {
    push_function(L, op, name, inplace);
    tide_push_signature(L, op, name);
    char text[160];
    lua_pushfstring(L, "The operator over lists: every argument may be a list. %s", op->doc);
    strncpy(text, lua_tostring(L, -2), sizeof text - 1);
    text[sizeof text - 1] = '\0';
    tide_document(L, -3, name, text, lua_tostring(L, -1));
    lua_pop(L, 2);
    lua_setfield(L, -2, name);
}

static void set_functions(lua_State *L, const td_op *op, const char *name, const char *inplace) {
    if (td_foreach_takes(op, false))
        set_function(L, op, name, false);
    if (inplace && td_foreach_takes(op, true))
        set_function(L, op, inplace, true);
}

/* tide._foreach_clamp(numbers, in_place): clamp between two bounds, both numbers or not, in one
 * pass. */
static int make_clamp(lua_State *L) {
    bool numbers = lua_toboolean(L, 1), inplace = lua_toboolean(L, 2);
    push_function(L, numbers ? TD_OP(clamp_between) : TD_OP(clamp_both),
                  inplace ? "clamp_" : "clamp", inplace);
    return 1;
}

/* tide._foreach(): the functions by their names. */
static int make_table(lua_State *L) {
    lua_newtable(L);
    for (int k = 0; k < td_op_count(); k++) {
        const td_op *op = td_op_get(k);
        set_functions(L, op, op->name,
                      op->flags & TD_OP_INPLACE_ONLY ? op->name : op->inplace_name);
    }
    for (int k = 0; k < td_alias_count(); k++) {
        const td_alias *alias = td_alias_get(k);
        set_functions(L, alias->op, alias->name, alias->inplace_name);
    }
    return 1;
}

void tide_open_foreach(lua_State *L) {
    static const luaL_Reg functions[] = {{"_foreach", make_table},
                                         {"_foreach_clamp", make_clamp},
                                         {"_foreach_norm", call_norm},
                                         {NULL, NULL}};
    tide_set_functions(L, functions);
}
