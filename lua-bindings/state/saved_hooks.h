/* saved_hooks.h: saved tensors in the custody of a script's functions (engine/autograd/saved.h). */
#ifndef TIDE_LUA_STATE_SAVED_HOOKS_H
#define TIDE_LUA_STATE_SAVED_HOOKS_H

#include "engine/td.h"

#include <lua.h>

/* For td_modes.keeper; td_modes.keeping is the number of a pair of functions. */
extern const td_keeper tide_keeper;

/* Number the functions pack and unpack at stack indices 1 and 2. */
int tide_keeper_new(lua_State *L);
/* They are asked to pack no more; what they packed they will be asked for. */
void tide_keeper_end(lua_State *L, int64_t number);

#endif
