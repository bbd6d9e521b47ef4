/* script_host.c: what Lua lends a function that is a graph: its own functions (tide.jit.ignore) and
 * print. They run in the state that made the function, while that calls it.
 */
#include "lua-bindings/script/script_function.h"
#include "lua-bindings/state/script.h"

#include "engine/core/memory.h"

typedef struct lender {
    int n;
    tide_anchor *print;
    tide_anchor *functions[];
} lender;

/* ---- calls ---- */

typedef struct host_call {
    const tide_anchor *anchor;
    int ninputs, noutputs;
    const td_value *inputs;
    td_value *outputs;
} host_call;

/* A result as a value of its own; of tables lists of tensors alone. */
static void take_result(lua_State *L, int index, td_value *out) {
    char text[80];
    td_tensor *x = tide_to_tensor(L, index);
    if (x)
        *out = TD_T(td_retain(x));
    else if (lua_isboolean(L, index))
        *out = TD_B(lua_toboolean(L, index));
    else if (lua_isinteger(L, index))
        *out = TD_I(lua_tointeger(L, index));
    else if (lua_type(L, index) == LUA_TNUMBER)
        *out = TD_F(lua_tonumber(L, index));
    else if (lua_type(L, index) == LUA_TSTRING)
        TIDE_CHECK(L,
                   td_box_string_new(lua_tostring(L, index), (int64_t)lua_rawlen(L, index), out));
    else if (!lua_isnil(L, index))
        tide_error(L,
                   "a function that a graph calls returned %s: tensors, numbers, booleans, "
                   "strings or nil expected",
                   tide_describe(L, index, text, sizeof text));
}

static int call_body(lua_State *L) {
    const host_call *c = lua_touserdata(L, 1);
    luaL_checkstack(L, c->ninputs + c->noutputs + 8, "too many values");
    tide_anchor_push(L, c->anchor);
    for (int k = 0; k < c->ninputs; k++)
        tide_script_push(L, &c->inputs[k]);
    lua_call(L, c->ninputs, c->noutputs);
    for (int k = 0; k < c->noutputs; k++)
        take_result(L, lua_gettop(L) - c->noutputs + 1 + k, &c->outputs[k]);
    return 0;
}

static td_status call_function(void *ctx, int id, int ninputs, const td_value *inputs, int noutputs,
                               td_value *outputs) {
    const lender *l = ctx;
    if (id < 0 || id >= l->n)
        return td_fail(TD_EVALUE, "there is no function %d of the script", id);
    host_call c = {l->functions[id], ninputs, noutputs, inputs, outputs};
    td_status status = tide_script_call(l->functions[id], call_body, &c);
    for (int k = 0; status && k < noutputs; k++)
        td_value_drop(&outputs[k]);
    return status;
}

static td_status print_values(void *ctx, int n, const td_value *values) {
    const lender *l = ctx;
    host_call c = {l->print, n, 0, values, NULL};
    return tide_script_call(l->print, call_body, &c);
}

static void release_lender(void *ctx) {
    lender *l = ctx;
    for (int k = 0; k < l->n; k++)
        tide_anchor_drop(l->functions[k]);
    tide_anchor_drop(l->print);
    td_free(l);
}

/* ---- making one ---- */

/* print of whoever the script has put there, as it is at the time. */
static int call_print(lua_State *L) {
    int n = lua_gettop(L);
    lua_getglobal(L, "print");
    lua_insert(L, 1);
    lua_call(L, n, 0);
    return 0;
}

/* Protected: (list of functions, lender). */
static int make_anchors(lua_State *L) {
    lender *l = lua_touserdata(L, 2);
    int n = lua_istable(L, 1) ? (int)lua_rawlen(L, 1) : 0;
    lua_pushcfunction(L, call_print);
    l->print = tide_anchor_new(L);
    for (; l->n < n; l->n++) {
        lua_rawgeti(L, 1, l->n + 1);
        l->functions[l->n] = tide_anchor_new(L);
    }
    return 0;
}

void tide_set_host(lua_State *L, td_scripted *f, int index) {
    index = lua_absindex(L, index);
    int n = lua_istable(L, index) ? (int)lua_rawlen(L, index) : 0;
    tide_push_function(L, make_anchors, 0);
    lua_pushvalue(L, index);
    lender *l = td_calloc(1, sizeof *l + sizeof *l->functions * (size_t)(n + 1));
    if (!l)
        tide_error(L, "out of memory for a function of a graph");
    lua_pushlightuserdata(L, l);
    if (lua_pcall(L, 2, 0, 0)) {
        release_lender(l);
        lua_error(L);
    }
    const td_script_host host = {
        .ctx = l, .call = call_function, .print = print_values, .release = release_lender};
    TIDE_CHECK(L, td_scripted_set_host(f, &host));
}
