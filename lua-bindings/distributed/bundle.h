/* bundle.h: a text and tensors as one row of bytes, in which objects travel between processes. */
#ifndef TIDE_LUA_DISTRIBUTED_BUNDLE_H
#define TIDE_LUA_DISTRIBUTED_BUNDLE_H

#include <lua.h>

/* Fill the tide table at the top with _bundle and _bundle_tensor. */
void tide_open_bundles(lua_State *L);

#endif
