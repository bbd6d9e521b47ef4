/* modes.h: how coroutines take part in the modes that each has set. */
#ifndef TIDE_LUA_STATE_MODES_H
#define TIDE_LUA_STATE_MODES_H

#include <lua.h>

/* Let coroutine.resume, wrap and close switch modes; once per state. */
void tide_open_coroutines(lua_State *L);

#endif
