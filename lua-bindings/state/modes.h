/* modes.h: installs the functions by which coroutines keep modes of their own. */
#ifndef TIDE_LUA_STATE_MODES_H
#define TIDE_LUA_STATE_MODES_H

#include <lua.h>

/* Let coroutine.resume, wrap and close switch modes; once per state. */
void tide_open_coroutines(lua_State *L);

#endif
