/* script_more.c: what tide.jit does with functions besides calling them: texts, specialised graphs,
 * files, forks. All that is made of the engine's is handed to Lua in a protected call.
 */
#include "lua-bindings/script/script_function.h"

#include <string.h>

/* ---- texts ---- */

static int push_copy(lua_State *L) {
    lua_pushstring(L, lua_touserdata(L, 1));
    return 1;
}

/* Return a text from td_malloc, which is freed; lies below it: push_copy. */
static int return_text(lua_State *L, char *text, const char *fname) {
    if (!text)
        return tide_error(L, "%s: out of memory", fname);
    lua_pushlightuserdata(L, text);
    int failed = lua_pcall(L, 1, 1, 0);
    td_free(text);
    return failed ? lua_error(L) : 1;
}

/* graph(f): the printed form of its graph. */
static int get_graph(lua_State *L) {
    const tide_script_function *f = tide_check_script_function(L, 1, "graph");
    lua_pushcfunction(L, push_copy);
    return return_text(L, td_ir_print(td_scripted_graph(f->function)), "graph");
}

/* specialisations(f): what the engine has made of it, a line for each. */
static int get_specialisations(lua_State *L) {
    const tide_script_function *f = tide_check_script_function(L, 1, "why");
    lua_pushcfunction(L, push_copy);
    return return_text(L, td_scripted_why(f->function), "why");
}

/* set_fast(f): its groups need not have the bits of their operators. */
static int set_fast(lua_State *L) {
    td_scripted_set_fast(tide_check_script_function(L, 1, "fast")->function, true);
    return 0;
}

/* ---- functions of graphs ---- */

/* What becomes a userdata in a protected call, which leaves it to its caller. */
typedef struct making {
    td_ir_graph *graph;
    td_scripted *function;
    const char *name;
} making;

static int make_function(lua_State *L) {
    const making *m = lua_touserdata(L, 1);
    tide_push_script_function(L, m->graph, m->name);
    return 1;
}

static int make_object(lua_State *L) {
    making *m = lua_touserdata(L, 1);
    tide_push_script_object(L, m->function);
    m->function = NULL;
    return 1;
}

/* The tensors of the list at a stack index, borrowed: in a userdata that is pushed. */
static td_tensor **read_tensors(lua_State *L, int index, int *n) {
    *n = lua_istable(L, index) ? (int)lua_rawlen(L, index) : 0;
    td_tensor **tensors = lua_newuserdatauv(L, sizeof(td_tensor *) * (size_t)(*n + 1), 0);
    for (int k = 0; k < *n; k++) {
        lua_rawgeti(L, index, k + 1);
        tensors[k] = tide_check_tensor(L, -1, "parse");
        lua_pop(L, 1);
    }
    return tensors;
}

/* parse(text, tensors, name, functions): the function of a graph's printed form. `tensors`, a list,
 * is what its prim::Constant[tensor=k] are, `functions` what its prim::HostCall[id=k] call; both k
 * from 0. */
static int parse(lua_State *L) {
    size_t length;
    int n;
    const char *text = luaL_checklstring(L, 1, &length);
    making m = {.name = luaL_optstring(L, 3, "function")};
    lua_settop(L, 4);
    if (strlen(text) != length)
        return tide_error(L, "the text of a graph holds a NUL");
    tide_push_function(L, make_function, 0);
    td_tensor **tensors = read_tensors(L, 2, &n);
    lua_insert(L, -2);
    TIDE_CHECK(L, td_ir_parse_with(text, n, tensors, &m.graph));
    lua_pushlightuserdata(L, &m);
    int failed = lua_pcall(L, 1, 1, 0);
    td_ir_graph_release(m.graph);
    if (failed)
        return lua_error(L);
    tide_set_host(L, tide_to_script_function(L, -1)->function, 4);
    return 1;
}

/* ---- specialised graphs ---- */

static int describe_protected(lua_State *L) {
    tide_describe_graph(L, ((making *)lua_touserdata(L, 1))->graph);
    return 1;
}

/* graph_for(f, described, ...): the graph that such inputs run, as a text or described. */
static int graph_for(lua_State *L) {
    const tide_script_function *f = tide_check_script_function(L, 1, "graph_for");
    bool described = lua_toboolean(L, 2);
    making m = {.name = f->name};
    lua_remove(L, 2);
    td_value *inputs = tide_read_inputs(L, f);
    if (described)
        tide_push_function(L, describe_protected, 0);
    else
        lua_pushcfunction(L, push_copy);
    tide_load_inputs(L, f, inputs);
    if (td_scripted_graph_for(f->function, inputs, &m.graph))
        return tide_fail_script(L, f, inputs);
    if (!described) {
        char *text = td_ir_print(m.graph);
        td_ir_graph_release(m.graph);
        return return_text(L, text, "graph_for");
    }
    lua_pushlightuserdata(L, &m);
    int failed = lua_pcall(L, 1, 1, 0);
    td_ir_graph_release(m.graph);
    return failed ? lua_error(L) : 1;
}

/* ---- files ---- */

/* save(f, path) */
static int save(lua_State *L) {
    const tide_script_function *f = tide_check_script_function(L, 1, "save");
    const char *path = luaL_checkstring(L, 2);
    td_status status = td_script_save(f->function, path);
    if (status == TD_EINTR)
        return tide_raise(L);
    return status ? tide_error(L, "save: %s: %s", f->name, td_error_message()) : 0;
}

/* load(path) */
static int load(lua_State *L) {
    const char *path = luaL_checkstring(L, 1);
    making m = {.name = path};
    tide_push_function(L, make_object, 0);
    td_status status = td_script_load(path, &m.function);
    if (status == TD_EINTR)
        return tide_raise(L);
    if (status)
        return tide_error(L, "load: '%s': %s", path, td_error_message());
    lua_pushlightuserdata(L, &m);
    int failed = lua_pcall(L, 1, 1, 0);
    td_scripted_release(m.function);
    return failed ? lua_error(L) : 1;
}

/* ---- forks ---- */

/* fork(f, ...): a future of the call. */
static int fork_call(lua_State *L) {
    const tide_script_function *f = tide_check_script_function(L, 1, "fork");
    tide_script_check_watched(L, f);
    td_value *inputs = tide_read_inputs(L, f);
    td_value *future = tide_push_future(L);
    tide_load_inputs(L, f, inputs);
    if (td_scripted_fork(f->function, inputs, future))
        return tide_fail_script(L, f, inputs);
    return 1;
}

typedef struct waited {
    td_value value;
    int n; /* how many results a tuple stands for */
} waited;

/* Of several outputs the future has a tuple. */
static int push_waited(lua_State *L) {
    const waited *w = lua_touserdata(L, 1);
    const td_box_tuple *tuple = td_value_tuple(w->value);
    luaL_checkstack(L, 8 + (tuple ? tuple->n : 0), "wait");
    if (!tuple) {
        tide_script_push(L, &w->value);
        return 1;
    }
    for (int k = 0; k < tuple->n; k++)
        tide_script_push(L, &tuple->parts[k]);
    return tuple->n;
}

/* wait(future): what the call gave. */
static int wait_future(lua_State *L) {
    char text[80];
    td_value *future = tide_to_future(L, 1);
    waited w = {.value = TD_NIL};
    if (!future)
        return tide_error(L, "wait: argument 1: a Future expected, got %s",
                          tide_describe(L, 1, text, sizeof text));
    lua_settop(L, 1);
    tide_push_function(L, push_waited, 0);
    if (td_future_wait(*future, &w.value))
        return tide_raise(L);
    lua_pushlightuserdata(L, &w);
    int failed = lua_pcall(L, 1, LUA_MULTRET, 0);
    td_value_drop(&w.value);
    return failed ? lua_error(L) : lua_gettop(L) - 1;
}

/* ---- what it was made of ---- */

static int set_source(lua_State *L) {
    tide_script_set_source(L, tide_check_script_function(L, 1, "set_source"));
    return 0;
}

static int watch(lua_State *L) {
    tide_script_watch(L, tide_check_script_function(L, 1, "watch"));
    return 0;
}

void tide_set_script_functions(lua_State *L) {
    static const luaL_Reg functions[] = {
        {"parse", parse},
        {"graph", get_graph},
        {"specialisations", get_specialisations},
        {"set_fast", set_fast},
        {"graph_for", graph_for},
        {"trace", tide_script_trace},
        {"describe", tide_script_describe},
        {"passes", tide_script_passes},
        {"memory", tide_script_memory},
        {"bisect", tide_script_bisect},
        {"operators", tide_script_operators},
        {"code_cache", tide_script_code_cache},
        {"written", tide_script_written},
        {"set_source", set_source},
        {"watch", watch},
        {"save", save},
        {"load", load},
        {"fork", fork_call},
        {"wait", wait_future},
        {NULL, NULL},
    };
    tide_set_functions(L, functions);
}
