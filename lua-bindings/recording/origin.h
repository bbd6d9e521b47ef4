/* origin.h: which line of a script an operator works for. */
#ifndef TIDE_LUA_RECORDING_ORIGIN_H
#define TIDE_LUA_RECORDING_ORIGIN_H

#include "engine/core/observer.h"

#include <lua.h>

/* The line that the state of this main thread (a lua_State) runs, in whatever coroutine; as
 * tide_recorder_start wants it. Call it on the thread that runs the state. */
void tide_find_origin(void *main_thread, td_origin *origin);

/* The coroutine that L waits for; NULL: none. */
lua_State *tide_resumed_by(lua_State *L);

/* The coroutine of a state that runs now: its main thread, or what was resumed from there. */
lua_State *tide_running_coroutine(lua_State *main_thread);

#endif
