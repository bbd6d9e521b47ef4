/* script_function.c: the userdata of a function that is a graph, and its calls.
 *
 * A call goes from Lua's arguments to the engine and back without Lua between: for tensors alone
 * nothing is allocated but the handles of the results, which are pushed before the arguments are
 * taken from theirs, since whatever Lua allocates may run a finalizer that closes them.
 */
#include "lua-bindings/script/script_function.h"

#include "lua-bindings/modules/modules.h"
#include "lua-bindings/state/script.h"

#include <stdio.h>
#include <string.h>

static const char *const class_name = "tide.ScriptFunction";

enum { FEW = 16 }; /* inputs, or outputs, of a plain function */

/* ---- the object ---- */

static bool all_tensors(int n, td_ir_value *const *values) {
    for (int k = 0; k < n; k++)
        if (values[k]->type->kind != TD_IR_TENSOR)
            return false;
    return n <= FEW;
}

tide_script_function *tide_push_script_function(lua_State *L, td_ir_graph *g, const char *name) {
    tide_script_function *f = lua_newuserdatauv(L, sizeof *f, 1);
    *f = (tide_script_function){.script = NULL};
    luaL_setmetatable(L, class_name);
    snprintf(f->name, sizeof f->name, "%s", name);
    TIDE_CHECK(L, td_script_new(g, &f->script));
    f->ninputs = g->block->ninputs;
    f->noutputs = g->block->noutputs;
    f->plain =
        all_tensors(f->ninputs, g->block->inputs) && all_tensors(f->noutputs, g->block->outputs);
    return f;
}

tide_script_function *tide_to_script_function(lua_State *L, int index) {
    return luaL_testudata(L, index, class_name);
}

tide_script_function *tide_check_script_function(lua_State *L, int index, const char *fname) {
    char text[80];
    tide_script_function *f = tide_to_script_function(L, index);
    if (!f)
        tide_error(L, "%s: argument %d: a ScriptFunction expected, got %s", fname, index,
                   tide_describe(L, index, text, sizeof text));
    if (!f->script)
        tide_error(L, "%s: this ScriptFunction was collected already", fname);
    return f;
}

static int collect(lua_State *L) {
    tide_script_function *f = luaL_checkudata(L, 1, class_name);
    td_script *script = f->script; /* a call on another thread holds it on */
    f->script = NULL;
    td_script_release(script);
    return 0;
}

/* ---- errors ---- */

static void add_inputs(luaL_Buffer *b, const td_ir_block *block) {
    char text[160];
    for (int k = 0; k < block->ninputs; k++) {
        const td_ir_type *type = block->inputs[k]->type;
        if (type->kind == TD_IR_TENSOR)
            type = td_ir_simple_type(TD_IR_TENSOR);
        luaL_addstring(b, k ? ", " : "");
        luaL_addstring(b, td_ir_type_text(type, text, sizeof text));
        luaL_addchar(b, ' ');
        luaL_addstring(b, block->inputs[k]->name);
    }
}

static int fail_count(lua_State *L, const tide_script_function *f, int given) {
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    add_inputs(&b, td_script_graph(f->script)->block);
    luaL_pushresult(&b);
    return tide_error(L, "%s: %d input%s expected (%s), got %d", f->name, f->ninputs,
                      f->ninputs == 1 ? "" : "s", lua_tostring(L, -1), given);
}

/* "; x was Float(2, 3) when the graph was made, and is Float(4, 3)", of the first input that is not
 * what the graph knows of it. */
static void push_difference(lua_State *L, const tide_script_function *f, const td_value *inputs) {
    const td_ir_block *block = td_script_graph(f->script)->block;
    char was[TD_SHAPE_TEXT], is[TD_SHAPE_TEXT];
    for (int k = 0; k < f->ninputs; k++) {
        const td_ir_type *type = block->inputs[k]->type;
        const td_tensor *x = td_arg_tensor(inputs[k]);
        if (type->kind != TD_IR_TENSOR || !x)
            continue;
        bool other = type->dtype != TD_DTYPE_NONE && type->dtype != x->dtype;
        bool known = type->n >= 0;
        for (int d = 0; d < type->n; d++)
            known &= type->sizes[d] >= 0;
        if (known && (type->n != x->ndim ||
                      memcmp(type->sizes, x->sizes, sizeof *x->sizes * (size_t)type->n) != 0)) {
            lua_pushfstring(L, " (the graph was made with %s of shape %s; here it has %s)",
                            block->inputs[k]->name,
                            td_shape_text(type->n, type->sizes, was, sizeof was),
                            td_tensor_shape_text(x, is));
            return;
        }
        if (other) {
            lua_pushfstring(L, " (the graph was made with %s of dtype %s; here it has %s)",
                            block->inputs[k]->name, td_dtype_name((td_dtype)type->dtype),
                            td_dtype_name((td_dtype)x->dtype));
            return;
        }
    }
    lua_pushliteral(L, "");
}

/* After a call that failed; the inputs are loaded. */
static int fail_call(lua_State *L, const tide_script_function *f, const td_value *inputs) {
    if (td_error_code() == TD_ESCRIPT || td_error_code() == TD_EINTR)
        return tide_raise(L);
    char message[600];
    snprintf(message, sizeof message, "%s", td_error_message());
    push_difference(L, f, inputs);
    return tide_error(L, "%s: %s%s", f->name, message, lua_tostring(L, -1));
}

/* ---- calls ---- */

static td_status run(lua_State *L, const tide_script_function *f, const td_value *inputs,
                     td_value *outputs) {
    struct tide_home *before = tide_script_enter(L);
    td_status status = td_script_run(f->script, inputs, outputs);
    tide_script_leave(before);
    return status;
}

/* Results pushed in a protected call, so that a memory error loses none. */
typedef struct results {
    int n;
    td_value *values;
} results;

static int push_results(lua_State *L) {
    results *r = lua_touserdata(L, 1);
    luaL_checkstack(L, r->n + 4, "too many results");
    for (int k = 0; k < r->n; k++)
        tide_script_push(L, &r->values[k]);
    return r->n;
}

/* The long way: inputs and outputs of any kind and number. */
static int call_any(lua_State *L, const tide_script_function *f) {
    const td_ir_block *block = td_script_graph(f->script)->block;
    int given = lua_gettop(L) - 1, base;
    while (given < f->ninputs && block->inputs[given]->type->kind == TD_IR_OPTIONAL) {
        lua_pushnil(L);
        given++;
    }
    if (given != f->ninputs)
        return fail_count(L, f, given);
    luaL_checkstack(L, f->ninputs + 8, f->name);
    td_value *inputs =
        lua_newuserdatauv(L, sizeof *inputs * (size_t)(f->ninputs + f->noutputs + 1), 0);
    results r = {f->noutputs, inputs + f->ninputs};
    for (int k = 0; k < f->ninputs; k++)
        inputs[k] = tide_script_read(L, k + 2, block->inputs[k], f->name, k + 1);
    tide_push_function(L, push_results, 0);
    base = lua_gettop(L) - 1;
    for (int k = 0; k < f->ninputs; k++)
        tide_script_load(L, k + 2, &inputs[k]);
    if (run(L, f, inputs, r.values))
        return fail_call(L, f, inputs);
    lua_pushlightuserdata(L, &r);
    int failed = lua_pcall(L, 1, LUA_MULTRET, 0);
    for (int k = 0; k < r.n; k++)
        td_script_drop(&r.values[k]);
    return failed ? lua_error(L) : lua_gettop(L) - base;
}

/* Tensors alone. False: one of the arguments is none. */
static inline bool read_tensors(lua_State *L, int n, td_value *inputs) {
    for (int k = 0; k < n; k++) {
        tide_handle *handle = lua_touserdata(L, k + 2);
        if (TD_UNLIKELY(!tide_is_handle(handle) || !handle->tensor))
            return false;
        inputs[k] = TD_T(handle->tensor);
    }
    return true;
}

/* f(...). Upvalue TIDE_UP_FIRST: the metatable, so that a look tells what f is. */
static int call(lua_State *L) {
    tide_script_function *f = lua_touserdata(L, 1);
    td_value inputs[FEW], outputs[FEW];
    tide_handle *handles[FEW];
    if (!f || !lua_getmetatable(L, 1))
        return tide_error(L, "a ScriptFunction expected");
    bool own = lua_rawequal(L, -1, lua_upvalueindex(TIDE_UP_FIRST));
    lua_pop(L, 1);
    if (TD_UNLIKELY(!own || !f->script))
        tide_check_script_function(L, 1, "ScriptFunction");
    int given = lua_gettop(L) - 1;
    if (TD_UNLIKELY(!f->plain || given != f->ninputs))
        return call_any(L, f);
    luaL_checkstack(L, f->noutputs + 4, f->name);
    for (int k = 0; k < f->noutputs; k++)
        handles[k] = tide_push_handle(L);
    if (TD_UNLIKELY(!read_tensors(L, given, inputs))) {
        lua_settop(L, given + 1);
        return call_any(L, f);
    }
    if (TD_UNLIKELY(run(L, f, inputs, outputs)))
        return fail_call(L, f, inputs);
    for (int k = 0; k < f->noutputs; k++)
        handles[k]->tensor = td_arg_tensor(outputs[k]);
    if (f->noutputs)
        tide_check_pressure(L, TIDE_STATE(L), handles[0]->tensor);
    return f->noutputs;
}

/* ---- the class ---- */

/* What a function has: methods, and properties that functions of it work out, both of Lua
 * (lua/jit.lua). Upvalues: the two tables. */
static int get_field(lua_State *L) {
    tide_check_script_function(L, 1, "ScriptFunction");
    lua_pushvalue(L, 2);
    if (lua_rawget(L, lua_upvalueindex(TIDE_UP_FIRST)) != LUA_TNIL)
        return 1;
    lua_pushvalue(L, 2);
    if (lua_rawget(L, lua_upvalueindex(TIDE_UP_FIRST + 1)) != LUA_TNIL) {
        lua_pushvalue(L, 1);
        lua_call(L, 1, 1);
        return 1;
    }
    char text[80];
    return tide_error(L,
                      "a ScriptFunction has no field or method %s (graph, code, name; graph_for, "
                      "passes, why, draw, save)",
                      tide_describe(L, 2, text, sizeof text));
}

static int to_text(lua_State *L) {
    const tide_script_function *f = tide_check_script_function(L, 1, "ScriptFunction");
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    add_inputs(&b, td_script_graph(f->script)->block);
    luaL_pushresult(&b);
    lua_pushfstring(L, "ScriptFunction %s(%s)", f->name, lua_tostring(L, -1));
    return 1;
}

/* class(methods, properties): once, from lua/jit.lua. */
static int set_class(lua_State *L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    luaL_getmetatable(L, class_name);
    lua_insert(L, 1);
    tide_push_function(L, get_field, 2);
    lua_setfield(L, 1, "__index");
    return 0;
}

/* info(f): a table that goes with it, of what the front end knows. */
static int get_info(lua_State *L) {
    tide_check_script_function(L, 1, "info");
    if (lua_getiuservalue(L, 1, 1) == LUA_TTABLE)
        return 1;
    lua_newtable(L);
    lua_pushvalue(L, -1);
    lua_setiuservalue(L, 1, 1);
    return 1;
}

static int get_name(lua_State *L) {
    lua_pushstring(L, tide_check_script_function(L, 1, "name")->name);
    return 1;
}

static int is_function(lua_State *L) {
    lua_pushboolean(L, tide_to_script_function(L, 1) != NULL);
    return 1;
}

/* ---- graphs as texts ---- */

static int push_copy(lua_State *L) {
    lua_pushstring(L, lua_touserdata(L, 1));
    return 1;
}

/* graph(f): its printed form. */
static int get_graph(lua_State *L) {
    const tide_script_function *f = tide_check_script_function(L, 1, "graph");
    lua_pushcfunction(L, push_copy);
    char *text = td_ir_print(td_script_graph(f->script));
    if (!text)
        return tide_error(L, "graph: out of memory");
    lua_pushlightuserdata(L, text);
    int failed = lua_pcall(L, 1, 1, 0);
    td_free(text);
    return failed ? lua_error(L) : 1;
}

/* What a graph becomes in a protected call, which leaves it to its caller. */
typedef struct making {
    td_ir_graph *graph;
    const char *name;
} making;

static int make_function(lua_State *L) {
    const making *m = lua_touserdata(L, 1);
    tide_push_script_function(L, m->graph, m->name);
    return 1;
}

/* parse(text, tensors, name): the function of a graph's printed form. `tensors`, a list, is what
 * its prim::Constant[tensor=k] are, k from 0. */
static int parse(lua_State *L) {
    size_t length;
    const char *text = luaL_checklstring(L, 1, &length);
    making m = {NULL, luaL_optstring(L, 3, "function")};
    if (strlen(text) != length)
        return tide_error(L, "the text of a graph holds a NUL");
    if (!lua_isnoneornil(L, 2) && lua_rawlen(L, 2))
        return tide_error(L, "graphs with tensors are not read yet");
    tide_push_function(L, make_function, 0);
    TIDE_CHECK(L, td_ir_parse(text, &m.graph));
    lua_pushlightuserdata(L, &m);
    int failed = lua_pcall(L, 1, 1, 0);
    td_ir_graph_release(m.graph);
    return failed ? lua_error(L) : 1;
}

/* tide._script: what lua/jit.lua and its parts stand on. */
void tide_open_script_functions(lua_State *L) {
    static const luaL_Reg functions[] = {
        {"parse", parse},
        {"graph", get_graph},
        {"info", get_info},
        {"name", get_name},
        {"is", is_function},
        {"class", set_class},
        {"trace", tide_script_trace},
        {"describe", tide_script_describe},
        {NULL, NULL},
    };
    luaL_newmetatable(L, class_name);
    lua_pushvalue(L, -1);
    tide_push_function(L, call, 1);
    lua_setfield(L, -2, "__call");
    lua_pushcfunction(L, collect);
    lua_setfield(L, -2, "__gc");
    lua_pushcfunction(L, to_text);
    lua_setfield(L, -2, "__tostring");
    lua_pushstring(L, class_name);
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 1);
    lua_newtable(L);
    tide_set_functions(L, functions);
    lua_setfield(L, -2, "_script");
}
