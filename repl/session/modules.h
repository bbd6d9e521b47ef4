/* modules.h: the Lua modules that a session carries (repl/session/lua). */
#ifndef TIDE_SESSION_MODULES_H
#define TIDE_SESSION_MODULES_H

#include <lua.h>
#include <stdbool.h>

/* Makes the environment of the modules from the globals as they are now, and pushes it, so that
 * more can be put in. May raise (memory). */
void modules_install(lua_State *L);
/* The tide table, on top, is what the modules know as `tide` whatever becomes of the user's; and
 * `held_tide` its functions as they are now. Leaves it there. May raise (memory). */
void modules_set_tide(lua_State *L);
/* Pushes that table; false: another value. */
bool module_push_tide(lua_State *L);
/* Pushes a function of a module, which is loaded at its first use. Raises Lua errors. */
void module_push_function(lua_State *L, const char *module, const char *function);

#endif
