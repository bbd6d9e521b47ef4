/* known_values.h: values that every state has under the same name: the functions, tables and
 * constants of Lua's library, of tide and of modules. A function written in C can't be copied into
 * another state, and tide.nn.Linear is to be that state's own. */
#ifndef TIDE_LUA_WORKERS_KNOWN_VALUES_H
#define TIDE_LUA_WORKERS_KNOWN_VALUES_H

#include <lua.h>
#include <stddef.h>

/* Push the table from these values to their names ("tide.nn.Linear", "string.format", "_G"). */
void tide_push_known_names(lua_State *L);

/* Push what has that name here: the first word is a module, which is loaded where it isn't. Raises
 * an error where nothing has it. */
void tide_push_known_named(lua_State *L, const char *name, size_t len);

#endif
