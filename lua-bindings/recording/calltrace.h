/* calltrace.h: the script's functions as ranges of a recording, while one asks for them. */
#ifndef TIDE_LUA_RECORDING_CALLTRACE_H
#define TIDE_LUA_RECORDING_CALLTRACE_H

#include "lua-bindings/state/state.h"

typedef struct tide_calltrace tide_calltrace;

/* Make room, once in a state, so that what follows fails for no want of memory. Raises memory
 * errors. */
void tide_calltrace_prepare(lua_State *L);

/* From here on each call of a Lua function of the script's, on whatever coroutine, is a range
 * (TIDE_EVENT_FUNCTION) of what records this state; a coroutine's go on as new ranges when it is
 * resumed. Uses Lua's hook: false where the script has set one. */
bool tide_calltrace_begin(lua_State *L, tide_state *state);
/* No more. Does nothing where none has begun. */
void tide_calltrace_end(lua_State *L);

/* The coroutine is about to be resumed by L: its calls are told as those of L. */
void tide_calltrace_follow(lua_State *L, lua_State *co);

#endif
