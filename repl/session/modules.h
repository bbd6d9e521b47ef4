/* modules.h: the Lua modules that a session carries (repl/session/lua). */
#ifndef TIDE_SESSION_MODULES_H
#define TIDE_SESSION_MODULES_H

#include <lua.h>

/* Makes the environment of the modules from the globals as they are now, and pushes it, so that
 * more can be put in. May raise (memory). */
void modules_install(lua_State *L);
/* Pushes a function of a module, which is loaded at its first use. Raises Lua errors. */
void module_push_function(lua_State *L, const char *module, const char *function);

#endif
