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

/* Push a part of Tide's own modules ("doctor.report": lua/doctor/report.lua), loaded when it isn't;
 * the tide table is at the top. */
static inline void tide_push_part(lua_State *L, const char *name) {
    lua_getfield(L, -1, "_require");
    lua_pushstring(L, name);
    lua_call(L, 1, 1);
}

#endif
