/* strict.h: names that the tide table and its modules have not. */
#ifndef TIDE_LUA_STRICT_H
#define TIDE_LUA_STRICT_H

#include <lua.h>

/* The module tide.NAME at idx, and the modules in it, refuse to be read or set by names that they
 * have not. Functions, tables and userdata may be added. */
void tide_seal_module(lua_State *L, int idx, const char *name);
/* Sets __newindex of the tide table's metatable, which is on top. */
void tide_set_newindex(lua_State *L);
/* Raises for the name at index 2 that the table at index 1 has not; n more names that it might be
 * (at most 1024). */
int tide_fail_name(lua_State *L, const char *module, const char *const *more, int n);

#endif
