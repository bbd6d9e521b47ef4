/* graph.c: the recorded graph as Lua sees it: nodes (x.grad_fn), and hooks on tensors and nodes. */
#include "lua-bindings/modules/graph.h"

#include "lua-bindings/call/function.h"
#include "lua-bindings/modules/modules.h"
#include "lua-bindings/state/script.h"

#include <string.h>

static const char *const node_name = "tide.Node";
static const char *const hook_name = "tide.Hook";

/* ---- nodes ---- */

/* Where a gradient goes: a node, or what adds it to the .grad of a leaf. */
typedef struct node {
    td_node *node;   /* owned */
    td_tensor *leaf; /* owned */
} node;

static node *push_node(lua_State *L) {
    node *n = lua_newuserdatauv(L, sizeof *n, 0);
    *n = (node){NULL, NULL};
    luaL_setmetatable(L, node_name);
    return n;
}

static const char *name_of(const node *n) {
    return n->node ? td_node_name(n->node) : "AccumulateGrad";
}

void tide_push_grad_fn(lua_State *L, td_tensor *x) {
    if (td_is_leaf(x)) {
        lua_pushnil(L);
        return;
    }
    node *n = push_node(L);
    x = tide_check_tensor(L, 1, "grad_fn"); /* a finalizer may have closed it */
    n->node = td_get_grad_fn(x);
    if (!n->node)
        tide_raise(L);
}

static int node_gc(lua_State *L) {
    node *n = luaL_checkudata(L, 1, node_name);
    td_node_release(n->node);
    td_release(n->leaf);
    *n = (node){NULL, NULL};
    return 0;
}

static int node_tostring(lua_State *L) {
    lua_pushfstring(L, "<%s>", name_of(luaL_checkudata(L, 1, node_name)));
    return 1;
}

static int node_eq(lua_State *L) {
    const node *a = luaL_testudata(L, 1, node_name), *b = luaL_testudata(L, 2, node_name);
    lua_pushboolean(L, a && b && a->node == b->node && a->leaf == b->leaf);
    return 1;
}

static int node_get_name(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    lua_pushstring(L, name_of(luaL_checkudata(L, 1, node_name)));
    return 1;
}

/* One of next_functions: {node, result}, or false where no gradient goes. */
static void push_next(lua_State *L, td_node *next, uint32_t result, td_tensor *leaf) {
    if (!next && !leaf) {
        lua_pushboolean(L, 0);
        return;
    }
    lua_createtable(L, 2, 0);
    node *n = push_node(L);
    n->node = td_node_retain(next);
    n->leaf = td_retain(leaf);
    lua_rawseti(L, -2, 1);
    lua_pushinteger(L, (lua_Integer)result + 1);
    lua_rawseti(L, -2, 2);
}

static void push_next_functions(lua_State *L, const node *n) {
    int count = 0;
    lua_newtable(L);
    for (int k = 0; n->node && k < td_node_ninputs(n->node); k++) {
        td_node *next;
        uint32_t result;
        td_tensor *leaf;
        if (!td_node_next(n->node, k, &next, &result, &leaf))
            continue;
        push_next(L, next, result, leaf);
        lua_rawseti(L, -2, ++count);
    }
}

static void push_variable(lua_State *L, const node *n) {
    if (n->leaf)
        tide_push_handle(L)->tensor = td_retain(n->leaf);
    else
        lua_pushnil(L);
}

/* Upvalue TIDE_UP_FIRST: methods. */
static int node_index(lua_State *L) {
    const node *n = luaL_checkudata(L, 1, node_name);
    const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "";
    lua_pushvalue(L, 2);
    if (lua_rawget(L, lua_upvalueindex(TIDE_UP_FIRST)) != LUA_TNIL)
        return 1;
    if (!strcmp(name, "next_functions"))
        push_next_functions(L, n);
    else if (!strcmp(name, "variable"))
        push_variable(L, n);
    else
        return tide_error(L,
                          "a node of the graph has no field or method '%s' (name, "
                          "next_functions, variable, register_hook, register_prehook)",
                          name);
    return 1;
}

/* ---- hooks ---- */

/* What a hook returned, at the top of the stack, in the place of value k; nil: nothing. */
static void take_result(lua_State *L, const td_hook_call *call, int k, const char *what) {
    char text[80];
    td_tensor *x = tide_to_tensor(L, -1);
    if (x)
        call->replacements[k] = td_retain(x);
    else if (!lua_isnil(L, -1) && !(lua_isboolean(L, -1) && !lua_toboolean(L, -1)))
        tide_error(L, "%s: a hook returns a tensor or nil, got %s", what,
                   tide_describe(L, -1, text, sizeof text));
}

static void push_shared(lua_State *L, td_tensor *x) {
    if (x)
        tide_push_handle(L)->tensor = td_retain(x);
    else
        lua_pushboolean(L, 0);
}

typedef struct hook_frame {
    const tide_anchor *anchor;
    const td_hook_call *call;
} hook_frame;

static int call_gradient_hook(lua_State *L) {
    const hook_frame *f = lua_touserdata(L, 1);
    tide_anchor_push(L, f->anchor);
    push_shared(L, f->call->values[0]);
    lua_call(L, 1, 1);
    take_result(L, f->call, 0, "register_hook");
    return 0;
}

static int call_accumulated_hook(lua_State *L) {
    const hook_frame *f = lua_touserdata(L, 1);
    tide_anchor_push(L, f->anchor);
    push_shared(L, f->call->others[0]);
    lua_call(L, 1, 0);
    return 0;
}

/* Is the hook's value k one that Lua sees: of inputs those that are tensors. */
static bool is_shown(const td_hook_call *call, bool inputs, int k) {
    td_node *next;
    uint32_t result;
    td_tensor *leaf;
    return !inputs || td_node_next(call->node, k, &next, &result, &leaf);
}

static void push_values(lua_State *L, const td_hook_call *call, bool inputs) {
    int count = 0;
    lua_newtable(L);
    for (int k = 0; k < call->n; k++) {
        if (!is_shown(call, inputs, k))
            continue;
        push_shared(L, call->values[k]);
        lua_rawseti(L, -2, ++count);
    }
}

/* A list in the order of push_values, or one tensor where there is one. */
static void take_list(lua_State *L, const td_hook_call *call, bool inputs, const char *what) {
    int count = 0, at = lua_gettop(L);
    char text[80];
    bool alone = tide_to_tensor(L, at) != NULL;
    if (lua_isnil(L, at))
        return;
    if (!alone && !lua_istable(L, at))
        tide_error(L, "%s: a hook returns a list of tensors or nil, got %s", what,
                   tide_describe(L, at, text, sizeof text));
    for (int k = 0; k < call->n; k++) {
        if (!is_shown(call, inputs, k))
            continue;
        count++;
        if (alone && count == 1)
            lua_pushvalue(L, at);
        else if (alone)
            tide_error(L, "%s: a hook that sees several gradients returns a list", what);
        else
            lua_rawgeti(L, at, count);
        take_result(L, call, k, what);
        lua_pop(L, 1);
    }
    if (!alone && (int)lua_rawlen(L, at) > count)
        tide_error(L, "%s: a hook returned %d gradients for %d", what, (int)lua_rawlen(L, at),
                   count);
}

static int call_before_hook(lua_State *L) {
    const hook_frame *f = lua_touserdata(L, 1);
    tide_anchor_push(L, f->anchor);
    push_values(L, f->call, false);
    lua_call(L, 1, 1);
    take_list(L, f->call, false, "register_prehook");
    return 0;
}

static int call_after_hook(lua_State *L) {
    const hook_frame *f = lua_touserdata(L, 1);
    tide_anchor_push(L, f->anchor);
    push_values(L, f->call, true);
    lua_newtable(L);
    for (int k = 0; k < f->call->nothers; k++) {
        push_shared(L, f->call->others[k]);
        lua_rawseti(L, -2, k + 1);
    }
    lua_call(L, 2, 1);
    take_list(L, f->call, true, "register_hook");
    return 0;
}

static void drop_hook(void *payload) {
    tide_anchor_drop(payload);
}

#define HOOK_CLASS(kind)                                                                           \
    static td_status run_##kind(void *payload, const td_hook_call *call) {                         \
        return tide_script_call(payload, call_##kind##_hook, &(hook_frame){payload, call});        \
    }                                                                                              \
    static const td_hook_class kind##_class = {run_##kind, drop_hook};
HOOK_CLASS(gradient)
HOOK_CLASS(accumulated)
HOOK_CLASS(before)
HOOK_CLASS(after)

/* ---- registering them ---- */

/* A new, empty handle of a hook, and the anchor of the function at index 2. */
static td_hook **push_hook(lua_State *L, tide_anchor **anchor) {
    td_hook **hook = lua_newuserdatauv(L, sizeof *hook, 0);
    *hook = NULL;
    luaL_setmetatable(L, hook_name);
    lua_pushvalue(L, 2);
    *anchor = tide_anchor_new(L);
    return hook;
}

typedef td_status (*register_fn)(td_tensor *x, const td_hook_class *hook_class, void *payload,
                                 td_hook **out);

static int register_on_tensor(lua_State *L, register_fn add, const td_hook_class *hook_class) {
    tide_frame f;
    tide_anchor *anchor;
    tide_read_call(L, &f);
    td_hook **hook = push_hook(L, &anchor);
    td_tensor *x = ((tide_handle *)lua_touserdata(L, 1))->tensor;
    if (!x) {
        tide_anchor_drop(anchor);
        return tide_error(L, "%s: this tensor was closed", f.name);
    }
    if (add(x, hook_class, anchor, hook))
        return tide_error(L, "%s: %s", f.name, td_error_message());
    return 1;
}

static int register_gradient(lua_State *L) {
    return register_on_tensor(L, td_hook_gradient, &gradient_class);
}

static int register_accumulated(lua_State *L) {
    return register_on_tensor(L, td_hook_accumulated, &accumulated_class);
}

static int register_on_node(lua_State *L, bool before) {
    tide_frame f;
    tide_anchor *anchor;
    tide_read_call(L, &f);
    const node *n = luaL_checkudata(L, 1, node_name);
    if (!n->node)
        return tide_error(L,
                          "%s: a leaf's gradient is seen by x:register_hook and "
                          "x:register_post_accumulate_grad_hook",
                          f.name);
    td_hook **hook = push_hook(L, &anchor);
    if (td_hook_node(n->node, before, before ? &before_class : &after_class, anchor, hook))
        return tide_error(L, "%s: %s", f.name, td_error_message());
    return 1;
}

static int node_register_hook(lua_State *L) {
    return register_on_node(L, false);
}

static int node_register_prehook(lua_State *L) {
    return register_on_node(L, true);
}

/* ---- handles of hooks ---- */

static int hook_remove(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    td_hook **hook = luaL_checkudata(L, 1, hook_name);
    if (*hook)
        td_hook_remove(*hook);
    tide_script_drain(L);
    return 0;
}

static int hook_close(lua_State *L) {
    td_hook **hook = luaL_checkudata(L, 1, hook_name);
    if (*hook)
        td_hook_remove(*hook);
    return 0;
}

static int hook_gc(lua_State *L) {
    td_hook **hook = luaL_checkudata(L, 1, hook_name);
    td_hook_release(*hook);
    *hook = NULL;
    return 0;
}

static void make_hook_metatable(lua_State *L) {
    static const tide_function methods[] = {
        {"remove(Hook h)",
         "The hook is not called any more; also at the end of a block that has "
         "it as `local h <close>`.",
         hook_remove},
        {NULL, NULL, NULL}};
    luaL_newmetatable(L, hook_name);
    lua_newtable(L);
    tide_declare(L, methods);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, hook_close);
    lua_setfield(L, -2, "__close");
    lua_pushcfunction(L, hook_gc);
    lua_setfield(L, -2, "__gc");
    lua_pushstring(L, hook_name);
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 1);
}

static void make_node_metatable(lua_State *L) {
    static const tide_function methods[] = {
        {"name(Node node) -> str", "The operator's name, as \"MulBackward\".", node_get_name},
        {"register_hook(Node node, function fn) -> Hook",
         "fn(grad_inputs, grad_outputs), two lists, runs after the node; what it returns takes the "
         "place of grad_inputs.",
         node_register_hook},
        {"register_prehook(Node node, function fn) -> Hook",
         "fn(grad_outputs) runs before the node; what it returns takes their place.",
         node_register_prehook},
        {NULL, NULL, NULL}};
    luaL_newmetatable(L, node_name);
    lua_newtable(L);
    tide_declare(L, methods);
    tide_push_function(L, node_index, 1);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, node_gc);
    lua_setfield(L, -2, "__gc");
    lua_pushcfunction(L, node_tostring);
    lua_setfield(L, -2, "__tostring");
    lua_pushcfunction(L, node_eq);
    lua_setfield(L, -2, "__eq");
    lua_pushstring(L, node_name);
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 1);
}

void tide_declare_hooks(lua_State *L) {
    static const tide_function methods[] = {
        {"register_hook(Tensor x, function fn) -> Hook",
         "fn(gradient) runs whenever backward has the gradient of x; what it returns takes the "
         "gradient's place. The hook's remove() ends it.",
         register_gradient},
        {"register_post_accumulate_grad_hook(Tensor x, function fn) -> Hook",
         "fn(x) runs whenever backward has added to the .grad of the leaf x.",
         register_accumulated},
        {NULL, NULL, NULL}};
    tide_declare(L, methods);
}

void tide_open_graph(lua_State *L) {
    make_hook_metatable(L);
    make_node_metatable(L);
}
