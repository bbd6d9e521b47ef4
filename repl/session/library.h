/* library.h: functions of Lua's library that an interrupt stops. */
#ifndef TIDE_SESSION_LIBRARY_H
#define TIDE_SESSION_LIBRARY_H

#include <lua.h>

/* Puts them in the place of Lua's own. May raise (memory). */
void library_install(lua_State *L);

#endif
