/* circles.h: full collections that see through anchors. */
#ifndef TIDE_LUA_STATE_CIRCLES_H
#define TIDE_LUA_STATE_CIRCLES_H

#include "lua-bindings/state/state.h"

/* Once, when the state is opened. */
void tide_open_circles(lua_State *L, tide_state *state);

/* Collect all garbage of Lua and of autograd, and what holds itself through both: a hook whose
 * function leads to its own tensor, a context that holds its output. False: within a finalizer,
 * where nothing can be collected. */
bool tide_collect_circles(lua_State *L);

#endif
