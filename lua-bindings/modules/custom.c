/* custom.c: the C part of tide.autograd.Function: a call of a function whose gradient is written in
 * Lua, as an object that lua/autograd/function.lua works with.
 *
 *   call = _begin(name, n, inputs, runner)
 *       inputs: the n arguments; backward calls runner(call, gradients...), which returns the
 *       gradients of the inputs.
 *   call:save(...), call:dirty(x), call:plain(x), call:materialize(on), call:needs(k), call:saved()
 *   call:finish(outputs)
 *       The outputs get their history, in the table.
 *   _retains()
 *       Within a backward: are graphs kept for another?
 */
#include "lua-bindings/modules/modules.h"
#include "lua-bindings/state/script.h"

#include "lua-bindings/call/function.h"

#include <stdlib.h>

static const char *const call_name = "tide.FunctionCall";

typedef struct function_call {
    td_function *f; /* owned until the end, or borrowed for the time of a backward; NULL: neither */
    bool backward;
} function_call;

/* What belongs to the recorded call. */
typedef struct recorded {
    tide_anchor *runner;
    td_function_class function_class;
} recorded;

static void drop_recorded(void *data) {
    recorded *r = data;
    tide_anchor_drop(r->runner);
    free(r);
}

/* ---- backward ---- */

typedef struct running {
    td_function *f;
    const recorded *of;
    td_tensor *const *gout;
    td_tensor **in;
    function_call *call; /* to be made empty when it is over */
} running;

static function_call *push_call(lua_State *L) {
    function_call *c = lua_newuserdatauv(L, sizeof *c, 0);
    *c = (function_call){NULL, false};
    luaL_setmetatable(L, call_name);
    return c;
}

/* The gradients that the runner returned, a list at the top with their number n in it. */
static void take_gradients(lua_State *L, const running *r) {
    int list = lua_gettop(L), n = td_function_ninputs(r->f);
    for (int k = 0; k < n; k++) {
        lua_rawgeti(L, list, k + 1);
        td_tensor *x = tide_to_tensor(L, -1);
        r->in[k] = td_retain(x);
        lua_pop(L, 1);
    }
}

static int call_runner(lua_State *L) {
    running *r = lua_touserdata(L, 1);
    int n = td_function_noutputs(r->f);
    luaL_checkstack(L, n + 8, "too many outputs");
    r->call = push_call(L); /* stays here until it is over */
    r->call->f = r->f;
    r->call->backward = true;
    tide_anchor_push(L, r->of->runner);
    lua_pushvalue(L, -2);
    for (int k = 0; k < n; k++) {
        if (r->gout[k])
            tide_push_handle(L)->tensor = td_retain(r->gout[k]);
        else
            lua_pushnil(L);
    }
    lua_call(L, n + 1, 1);
    take_gradients(L, r);
    return 0;
}

static td_status run_backward(td_function *f, void *data, td_tensor *const *gout, td_tensor **in) {
    running r = {f, data, gout, in, NULL};
    td_status status = tide_script_call(r.of->runner, call_runner, &r);
    if (r.call) /* it was on the stack a moment ago: nothing was collected since */
        r.call->f = NULL;
    return status;
}

/* ---- a call ---- */

static function_call *check_call(lua_State *L) {
    function_call *c = luaL_checkudata(L, 1, call_name);
    if (!c->f)
        tide_error(L, "this context's call is over");
    return c;
}

static function_call *check_forward(lua_State *L, const char *what) {
    function_call *c = check_call(L);
    if (c->backward)
        tide_error(L, "%s: for forward alone", what);
    return c;
}

static int call_gc(lua_State *L) {
    function_call *c = luaL_checkudata(L, 1, call_name);
    if (c->f && !c->backward)
        td_function_drop(c->f);
    c->f = NULL;
    return 0;
}

static int check_count(lua_State *L, int index) {
    lua_Integer n = luaL_checkinteger(L, index);
    luaL_argcheck(L, n >= 0 && n < 1 << 16, index, "too many");
    return (int)n;
}

/* The tensors among n values of the table at an index; allocates nothing. */
static void read_tensors(lua_State *L, int table, int n, td_tensor **tensors) {
    for (int k = 0; k < n; k++) {
        lua_rawgeti(L, table, k + 1);
        tide_handle *handle = lua_touserdata(L, -1);
        tensors[k] = tide_is_handle(handle) ? handle->tensor : NULL; /* tide_settle came before */
        lua_pop(L, 1);
    }
}

static td_tensor **push_block(lua_State *L, int n) {
    return lua_newuserdatauv(L, sizeof(td_tensor *) * ((size_t)n + 1), 0);
}

/* _begin(name, n, inputs, runner) */
static int begin(lua_State *L) {
    const char *name = td_function_name(luaL_checkstring(L, 1));
    int n = check_count(L, 2);
    luaL_checktype(L, 3, LUA_TTABLE);
    luaL_checktype(L, 4, LUA_TFUNCTION);
    tide_settle(L, tide_state_find(L));
    td_tensor **inputs = push_block(L, n);
    lua_pushvalue(L, 4);
    function_call *c = push_call(L);
    lua_insert(L, -2);
    tide_anchor *anchor = tide_anchor_new(L);
    recorded *r = malloc(sizeof *r);
    if (!r || !name) {
        tide_anchor_drop(anchor);
        free(r);
        return tide_error(L, "not enough memory");
    }
    *r = (recorded){anchor, {name, run_backward, drop_recorded}};
    tide_anchor_held_by(anchor, r);
    read_tensors(L, 3, n, inputs);
    TIDE_CHECK(L, td_function_begin(&r->function_class, r, n, inputs, &c->f));
    return 1;
}

/* call:save(...): n values, tensors or nil. */
static int call_save(lua_State *L) {
    function_call *c = check_forward(L, "save_for_backward");
    char text[80];
    int n = lua_gettop(L) - 1;
    td_tensor **tensors = lua_newuserdatauv(L, sizeof *tensors * ((size_t)n + 1), 0);
    for (int k = 0; k < n; k++) {
        tensors[k] = lua_isuserdata(L, k + 2) ? tide_to_tensor(L, k + 2) : NULL;
        if (!tensors[k] && !lua_isnil(L, k + 2))
            return tide_error(L,
                              "save_for_backward: argument %d: a tensor or nil expected, got %s "
                              "(keep other values in fields of ctx)",
                              k + 1, tide_describe(L, k + 2, text, sizeof text));
    }
    TIDE_CHECK(L, td_function_save(c->f, n, tensors));
    return 0;
}

static td_tensor *check_marked(lua_State *L, const char *what) {
    char text[80];
    td_tensor *x = tide_to_tensor(L, 2);
    if (!x)
        tide_error(L, "%s: tensors expected, got %s", what, tide_describe(L, 2, text, sizeof text));
    return x;
}

static int call_dirty(lua_State *L) {
    function_call *c = check_forward(L, "mark_dirty");
    TIDE_CHECK(L, td_function_mark_dirty(c->f, check_marked(L, "mark_dirty")));
    return 0;
}

static int call_plain(lua_State *L) {
    function_call *c = check_forward(L, "mark_non_differentiable");
    td_tensor *x = check_marked(L, "mark_non_differentiable");
    TIDE_CHECK(L, td_function_mark_non_differentiable(c->f, x));
    return 0;
}

static int call_materialize(lua_State *L) {
    function_call *c = check_forward(L, "set_materialize_grads");
    luaL_checktype(L, 2, LUA_TBOOLEAN);
    td_function_set_materialize(c->f, lua_toboolean(L, 2));
    return 0;
}

static int call_needs(lua_State *L) {
    const td_function *f = check_call(L)->f;
    lua_Integer k = luaL_checkinteger(L, 2);
    luaL_argcheck(L, k >= 1 && k <= td_function_ninputs(f), 2, "no such input");
    lua_pushboolean(L, td_function_needs(f, (int)k - 1));
    return 1;
}

/* call:saved(): a list, and how many. */
static int call_saved(lua_State *L) {
    function_call *c = check_call(L);
    int n = td_function_nsaved(c->f);
    lua_createtable(L, n, 0);
    for (int k = 0; k < n; k++) {
        tide_handle *handle = tide_push_handle(L);
        c = check_call(L); /* the handle may have run a finalizer */
        TIDE_CHECK(L, td_function_saved(c->f, k, &handle->tensor));
        if (!handle->tensor) {
            lua_pop(L, 1);
            lua_pushboolean(L, 0);
        }
        lua_rawseti(L, -2, k + 1);
    }
    return 1;
}

/* call:finish(n, outputs): tensors among the outputs are replaced where they must be. */
static int call_finish(lua_State *L) {
    enum { OUTPUTS = 3, GIVEN, NOW, HANDLES };
    function_call *c = check_forward(L, "finish");
    int n = check_count(L, 2);
    luaL_checktype(L, OUTPUTS, LUA_TTABLE);
    tide_settle(L, tide_state_find(L));
    lua_settop(L, OUTPUTS);
    td_tensor **given = push_block(L, n), **now = push_block(L, n);
    lua_createtable(L, n, 0);
    for (int k = 0; k < n; k++) { /* room for what may come */
        tide_push_handle(L);
        lua_rawseti(L, HANDLES, k + 1);
    }
    td_function *f = check_forward(L, "finish")->f;
    c->f = NULL;
    read_tensors(L, OUTPUTS, n, given);
    for (int k = 0; k < n; k++)
        now[k] = td_retain(given[k]);
    td_status status = td_function_end(f, n, now);
    for (int k = 0; k < n; k++) {
        if (now[k] != given[k]) {
            lua_rawgeti(L, HANDLES, k + 1);
            ((tide_handle *)lua_touserdata(L, -1))->tensor = now[k];
            lua_rawseti(L, OUTPUTS, k + 1);
        } else {
            td_release(now[k]);
        }
    }
    TIDE_CHECK(L, status);
    return 0;
}

static int retains(lua_State *L) {
    lua_pushboolean(L, td_backward_retains());
    return 1;
}

void tide_open_custom(lua_State *L) {
    static const luaL_Reg methods[] = {{"save", call_save},     {"dirty", call_dirty},
                                       {"plain", call_plain},   {"needs", call_needs},
                                       {"saved", call_saved},   {"materialize", call_materialize},
                                       {"finish", call_finish}, {NULL, NULL}};
    static const luaL_Reg functions[] = {{"_begin", begin}, {"_retains", retains}, {NULL, NULL}};
    luaL_newmetatable(L, call_name);
    lua_newtable(L);
    tide_set_functions(L, methods);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, call_gc);
    lua_setfield(L, -2, "__gc");
    lua_pushstring(L, call_name);
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 1);
    tide_set_functions(L, functions);
}
