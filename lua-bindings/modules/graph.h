/* graph.h: the recorded graph as Lua sees it. */
#ifndef TIDE_LUA_MODULES_GRAPH_H
#define TIDE_LUA_MODULES_GRAPH_H

#include "engine/td.h"

#include <lua.h>

/* Push the node that made the tensor at stack index 1, x; nil for leaves. */
void tide_push_grad_fn(lua_State *L, td_tensor *x);

/* Set tensors' methods that register hooks as fields of the table at the top. */
void tide_declare_hooks(lua_State *L);

#endif
