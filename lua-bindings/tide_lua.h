/* tide_lua.h: a Lua state with Tide in it, for the programs that host one. */
#ifndef TIDE_LUA_H
#define TIDE_LUA_H

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

/* New state: standard libraries, Tide's allocator (tensor handles live in an arena of it) and
 * package.preload.tide. NULL: out of memory. Close with tide_lua_close, never lua_close. */
lua_State *tide_lua_new(void);
void tide_lua_close(lua_State *L);

/* `require "tide"`: pushes the module table. In a state that tide_lua_new did not make it wraps
 * the state's allocator first. */
int luaopen_tide(lua_State *L);

#endif
