/* script_function.c: the userdata of a function that is a graph, and its calls.
 *
 * A call goes from Lua's arguments to the engine and back without Lua between: for tensors alone
 * nothing is allocated but the handles of the results, which are pushed before the arguments are
 * taken from theirs, since whatever Lua allocates may run a finalizer that closes them.
 */
#include "lua-bindings/script/script_function.h"

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

static tide_script_function *push_empty(lua_State *L) {
    tide_script_function *f = lua_newuserdatauv(L, sizeof *f, 3);
    *f = (tide_script_function){.class_name = class_name};
    luaL_setmetatable(L, class_name);
    return f;
}

static void fill(tide_script_function *f, td_scripted *function) {
    const td_ir_block *block = td_scripted_graph(function)->block;
    *f = (tide_script_function){
        .class_name = class_name,
        .function = function,
        .name = td_scripted_name(function),
        .ninputs = block->ninputs,
        .noutputs = block->noutputs,
        .plain = all_tensors(block->ninputs, block->inputs) &&
                 all_tensors(block->noutputs, block->outputs),
    };
}

tide_script_function *tide_push_script_function(lua_State *L, td_ir_graph *g, const char *name) {
    tide_script_function *f = push_empty(L);
    td_scripted *function;
    TIDE_CHECK(L, td_scripted_new(g, name, &function));
    fill(f, function);
    return f;
}

tide_script_function *tide_push_script_object(lua_State *L, td_scripted *function) {
    tide_script_function *f = push_empty(L);
    fill(f, function);
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
    if (!f->function)
        tide_error(L, "%s: this ScriptFunction was collected already", fname);
    return f;
}

static int collect(lua_State *L) {
    tide_script_function *f = luaL_checkudata(L, 1, class_name);
    td_scripted *function = f->function; /* a call on another thread holds it on */
    f->function = NULL;
    td_scripted_release(function);
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
    add_inputs(&b, td_scripted_graph(f->function)->block);
    luaL_pushresult(&b);
    return tide_error(L, "%s: %d input%s expected (%s), got %d", f->name, f->ninputs,
                      f->ninputs == 1 ? "" : "s", lua_tostring(L, -1), given);
}

/* "; x was Float(2, 3) when the graph was made, and is Float(4, 3)", of the first input that is not
 * what the graph knows of it. */
static void push_difference(lua_State *L, const tide_script_function *f, const td_value *inputs) {
    const td_ir_block *block = td_scripted_graph(f->function)->block;
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
int tide_fail_script(lua_State *L, const tide_script_function *f, const td_value *inputs) {
    if (td_error_code() == TD_ESCRIPT || td_error_code() == TD_EINTR)
        return tide_raise(L);
    char message[600];
    snprintf(message, sizeof message, "%s", td_error_message());
    push_difference(L, f, inputs);
    return tide_error(L, "%s: %s%s", f->name, message, lua_tostring(L, -1));
}

/* ---- calls ---- */

td_status tide_call_script(lua_State *L, const tide_script_function *f, const td_value *inputs,
                           td_value *outputs) {
    struct tide_home *before = tide_script_enter(L);
    td_status status = td_scripted_call(f->function, inputs, outputs);
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

td_value *tide_read_inputs(lua_State *L, const tide_script_function *f) {
    const td_ir_block *block = td_scripted_graph(f->function)->block;
    int given = lua_gettop(L) - 1;
    luaL_checkstack(L, f->ninputs + 12, f->name);
    while (given < f->ninputs && block->inputs[given]->type->kind == TD_IR_OPTIONAL) {
        lua_pushnil(L);
        given++;
    }
    if (given != f->ninputs)
        fail_count(L, f, given);
    td_value *inputs =
        lua_newuserdatauv(L, sizeof *inputs * (size_t)(f->ninputs + f->noutputs + 1), 0);
    for (int k = 0; k < f->ninputs; k++)
        inputs[k] = tide_script_read(L, k + 2, block->inputs[k], f->name, k + 1);
    return inputs;
}

void tide_load_inputs(lua_State *L, const tide_script_function *f, td_value *inputs) {
    for (int k = 0; k < f->ninputs; k++)
        tide_script_load(L, k + 2, &inputs[k]);
}

/* The long way: inputs and outputs of any kind and number. */
static int call_any(lua_State *L, const tide_script_function *f) {
    td_value *inputs = tide_read_inputs(L, f);
    results r = {f->noutputs, inputs + f->ninputs};
    tide_push_function(L, push_results, 0);
    int base = lua_gettop(L) - 1;
    tide_load_inputs(L, f, inputs);
    if (tide_call_script(L, f, inputs, r.values))
        return tide_fail_script(L, f, inputs);
    lua_pushlightuserdata(L, &r);
    int failed = lua_pcall(L, 1, LUA_MULTRET, 0);
    for (int k = 0; k < r.n; k++)
        td_value_drop(&r.values[k]);
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

/* The function that is called: __call has it but for a program that took the metamethod by debug,
 * so a look at the name of its class is enough. */
static inline tide_script_function *called(lua_State *L) {
    tide_script_function *f = lua_touserdata(L, 1);
    if (TD_UNLIKELY(!f || lua_rawlen(L, 1) < sizeof *f || f->class_name != class_name ||
                    !f->function))
        return tide_check_script_function(L, 1, "ScriptFunction");
    return f;
}

/* f(...). The stack has room for a plain function's handles (LUA_MINSTACK). */
static int call(lua_State *L) {
    tide_script_function *f = called(L);
    td_value inputs[FEW], outputs[FEW];
    tide_handle *handles[FEW];
    if (f->looks) {
        if (TD_UNLIKELY(tide_script_runs_source(L, f)))
            return tide_script_call_source(L);
        if (f->nwatched)
            tide_script_check_watched(L, f);
    }
    int given = lua_gettop(L) - 1;
    if (TD_UNLIKELY(!f->plain || given != f->ninputs))
        return call_any(L, f);
    _Static_assert(FEW + 4 <= LUA_MINSTACK, "room for handles");
    for (int k = 0; k < f->noutputs; k++)
        handles[k] = tide_push_handle(L);
    if (TD_UNLIKELY(!read_tensors(L, given, inputs))) {
        lua_settop(L, given + 1);
        return call_any(L, f);
    }
    if (TD_UNLIKELY(tide_call_script(L, f, inputs, outputs)))
        return tide_fail_script(L, f, inputs);
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
    return tide_error(
        L,
        "a ScriptFunction has no field or method %s (graph, code, constants, name; graph_for, "
        "passes, why, draw, save, emit_c)",
        tide_describe(L, 2, text, sizeof text));
}

static int to_text(lua_State *L) {
    const tide_script_function *f = tide_check_script_function(L, 1, "ScriptFunction");
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    add_inputs(&b, td_scripted_graph(f->function)->block);
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

void tide_open_script_class(lua_State *L) {
    static const luaL_Reg functions[] = {
        {"info", get_info},   {"name", get_name}, {"is", is_function},
        {"class", set_class}, {NULL, NULL},
    };
    tide_set_functions(L, functions);
    luaL_newmetatable(L, class_name);
    tide_push_function(L, call, 0);
    lua_setfield(L, -2, "__call");
    lua_pushcfunction(L, collect);
    lua_setfield(L, -2, "__gc");
    lua_pushcfunction(L, to_text);
    lua_setfield(L, -2, "__tostring");
    lua_pushstring(L, class_name);
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 1);
}
