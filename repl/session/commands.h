/* commands.h: what the magics that are written in Lua need of the session. */
#ifndef TIDE_SESSION_COMMANDS_H
#define TIDE_SESSION_COMMANDS_H

#include <lua.h>

/* Puts it into the environment of the modules, which is on top. May raise (memory). */
void commands_install(lua_State *L);
/* tide.magic and tide.breakpoint; the tide table is on top. */
void commands_install_tide(lua_State *L);

#endif
