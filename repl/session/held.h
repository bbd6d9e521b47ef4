/* held.h: what keeps an interrupt waiting, in words. */
#ifndef TIDE_SESSION_HELD_H
#define TIDE_SESSION_HELD_H

#include <lua.h>

/* Writes a line to standard error that names what runs in the Lua thread L, which this thread
 * evaluates. Async-signal-safe as far as reading the call frames is: for a thread that has been in
 * the same function for long. */
void held_say(lua_State *L);

#endif
