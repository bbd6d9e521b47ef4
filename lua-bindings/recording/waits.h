/* waits.h: tells a script where it waits for a device without having asked to. */
#ifndef TIDE_LUA_RECORDING_WAITS_H
#define TIDE_LUA_RECORDING_WAITS_H

#include <lua.h>

/* Lua function (mode): of this thread's waits nothing is said (false), each line that waits is
 * warned of once (true), or the wait is refused ("error"). */
int tide_watch_waits(lua_State *L);

#endif
