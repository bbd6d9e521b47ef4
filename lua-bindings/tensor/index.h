/* index.h: x[key] and x[key] = value. */
#ifndef TIDE_LUA_TENSOR_INDEX_H
#define TIDE_LUA_TENSOR_INDEX_H

#include "lua-bindings/state/state.h"

/* Stack: tensor, key (no method or property name) -> pushes the part. */
int tide_index_read(lua_State *L);
/* Stack: tensor, key, value. */
int tide_index_write(lua_State *L);

/* Push tide.newaxis, which inserts a dim of size 1. */
void tide_push_newaxis(lua_State *L);

/* Is this string an index expression ("1:3, :", "..., -1") rather than a name? */
bool tide_is_index_text(const char *text);

#endif
