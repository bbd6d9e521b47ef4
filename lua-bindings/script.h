/* script.h: how the engine calls functions of a script: hooks, the gradients of functions written
 * in Lua, who keeps saved tensors.
 *
 * What the engine holds of Lua it holds by an anchor: a value in a table of the registry. The
 * engine may drop one anywhere, within a sweep of the collector and on any thread: it is noted, and
 * the value let go when a call has ended, a backward begins, or another anchor is made. An anchor
 * is a root, so a value that leads to a tensor which holds the anchor would stay;
 * circles.c finds such circles at full collections.
 *
 * Calls run on the coroutine that runs, protected. An error ends what the engine did, with status
 * ESCRIPT, and is raised again, the same value, where the engine was entered (tide_raise). While
 * such a call lasts, tensors that the script closes are kept, since the engine may be using them.
 */
#ifndef TIDE_LUA_SCRIPT_H
#define TIDE_LUA_SCRIPT_H

#include "lua-bindings/state.h"

typedef struct tide_anchor tide_anchor;

/* Make a state's part; once, when the state is opened. Leaves the stack as it was. */
void tide_open_script(lua_State *L, tide_state *state);

/* Anchor the value on the top, and pop it. Raises a memory error when there is none. */
tide_anchor *tide_anchor_new(lua_State *L);
/* What the engine holds is the anchor; or this, which holds it. */
void tide_anchor_held_by(tide_anchor *anchor, const void *holder);
/* Anywhere; NULL is fine. */
void tide_anchor_drop(tide_anchor *anchor);
/* Push the value. */
void tide_anchor_push(lua_State *L, const tide_anchor *anchor);

/* What the thread does in the engine until tide_script_leave may call functions of this state. */
struct tide_home *tide_script_enter(lua_State *L);
void tide_script_leave(struct tide_home *before);

/* From within the engine: call body(L), as a Lua function with `ctx` (a light userdata) as its
 * argument and the upvalues of bound functions. ESCRIPT: it raised an error; EAUTOGRAD: the state
 * of the anchor is not the one that entered the engine, or is closed. */
td_status tide_script_call(const tide_anchor *anchor, lua_CFunction body, void *ctx) TD_MUST_CHECK;

/* The same of the state whose work the thread does, which set the modes that it is in. */
td_status tide_script_call_here(lua_CFunction body, void *ctx) TD_MUST_CHECK;

/* Push the error that a function of the script raised last; false (nothing pushed): there is none.
 */
bool tide_script_take_error(lua_State *L);

/* Let go of what the engine has dropped. */
void tide_script_drain(lua_State *L);

/* ---- for circles.c ---- */

/* How many anchors there are. */
int tide_script_anchors(const tide_state *state);
/* Push the table of anchored values; put the one at the top in its place (a key that is there:
 * needs no memory). */
void tide_script_push_table(lua_State *L);
void tide_script_set_table(lua_State *L);
/* The anchor after one (NULL: the first) of a state; and what the engine holds it by. */
const tide_anchor *tide_anchor_next(const tide_state *state, const tide_anchor *anchor);
const void *tide_anchor_holder(const tide_anchor *anchor);

#endif
