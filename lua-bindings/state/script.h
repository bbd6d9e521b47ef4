/* script.h: how the engine calls functions of a script: hooks, the gradients of functions written
 * in Lua, who keeps saved tensors.
 *
 * The functions are held by anchors (anchors.h).
 *
 * Calls run on the coroutine that runs, protected. An error ends what the engine did, with status
 * ESCRIPT, and is raised again, the same value, where the engine was entered (tide_raise). While
 * such a call lasts, tensors that the script closes are kept, since the engine may be using them.
 */
#ifndef TIDE_LUA_STATE_SCRIPT_H
#define TIDE_LUA_STATE_SCRIPT_H

#include "lua-bindings/state/anchors.h"

/* Once, when the state is opened. */
void tide_open_script(lua_State *L);

/* What the thread does in the engine until tide_script_leave may call functions of this state. */
struct tide_home *tide_script_enter(lua_State *L);
void tide_script_leave(struct tide_home *before);

/* From within the engine: call body(L), as a Lua function with `ctx` (a light userdata) as its
 * argument and the upvalues of bound functions. ESCRIPT: it raised an error; EAUTOGRAD: the state
 * of the anchor is not the one that entered the engine, or is closed. */
td_status tide_script_call(const tide_anchor *anchor, lua_CFunction body, void *ctx) TD_MUST_CHECK;

/* The same of the state whose work the thread does, which set the modes that it is in. */
td_status tide_script_call_here(lua_CFunction body, void *ctx) TD_MUST_CHECK;

#endif
