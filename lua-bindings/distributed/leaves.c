/* leaves.c: which leaves a result was made of: what its backward will bring a gradient to. */
#include "lua-bindings/distributed/leaves.h"

#include "lua-bindings/state/state.h"

/* The node goes behind the others in the list at stack index 4, once (index 3 has those that were
 * met). */
static void add_node(lua_State *L, td_node *node) {
    if (lua_rawgetp(L, 3, node) == LUA_TNIL) {
        lua_pushboolean(L, 1);
        lua_rawsetp(L, 3, node);
        lua_pushlightuserdata(L, node);
        lua_rawseti(L, 4, (lua_Integer)lua_rawlen(L, 4) + 1);
    }
    lua_pop(L, 1);
}

static void add_leaf(lua_State *L, const td_tensor *leaf) {
    lua_pushboolean(L, 1);
    lua_rawsetp(L, 5, leaf);
}

/* Nodes live as long as the tensors in the list do. */
static void add_next(lua_State *L, const td_node *node) {
    for (int k = 0; k < td_node_ninputs(node); k++) {
        td_node *next;
        uint32_t result;
        td_tensor *leaf;
        if (!td_node_next(node, k, &next, &result, &leaf))
            continue;
        if (next)
            add_node(L, next);
        else if (leaf)
            add_leaf(L, leaf);
    }
}

/* For each tensor of the list at stack index 2: is it one of the leaves at 5? Pushes a list. */
static void push_found(lua_State *L) {
    lua_newtable(L);
    for (lua_Integer k = 1; lua_rawgeti(L, 2, k) != LUA_TNIL; k++) {
        lua_pushboolean(L, lua_rawgetp(L, 5, tide_check_shape(L, -1, "_leaves")) != LUA_TNIL);
        lua_rawseti(L, -4, k);
        lua_pop(L, 2);
    }
    lua_pop(L, 1);
}

/* _leaves(tensors, candidates): for each of the candidates, is it a leaf behind one of the tensors?
 */
static int find_leaves(lua_State *L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    lua_newtable(L);
    lua_newtable(L);
    lua_newtable(L);
    for (lua_Integer k = 1; lua_rawgeti(L, 1, k) != LUA_TNIL; k++) {
        td_tensor *x = tide_check_tensor(L, -1, "_leaves");
        if (td_is_leaf(x)) {
            add_leaf(L, x);
        } else {
            td_node *node = td_get_grad_fn(x);
            if (!node)
                return tide_raise(L);
            td_node_release(node); /* which x holds */
            add_node(L, node);
        }
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    for (lua_Integer k = 1; lua_rawgeti(L, 4, k) != LUA_TNIL; k++) {
        const td_node *node = lua_touserdata(L, -1);
        lua_pop(L, 1);
        add_next(L, node);
    }
    lua_settop(L, 5);
    push_found(L);
    return 1;
}

void tide_open_leaves(lua_State *L) {
    static const luaL_Reg functions[] = {{"_leaves", find_leaves}, {NULL, NULL}};
    tide_set_functions(L, functions);
}
