/* leaves.h: which leaves a result was made of: what its backward will bring a gradient to. */
#ifndef TIDE_LUA_DISTRIBUTED_LEAVES_H
#define TIDE_LUA_DISTRIBUTED_LEAVES_H

#include <lua.h>

/* Fill the tide table at the top with _leaves. */
void tide_open_leaves(lua_State *L);

#endif
