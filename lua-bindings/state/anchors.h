/* anchors.h: what the engine holds of Lua it holds by an anchor: a value in a table of the
 * registry.
 *
 * The engine may drop one anywhere, within a sweep of the collector and on any thread: it is noted,
 * and the value let go when a call has ended, a backward begins, or another anchor is made. An
 * anchor is a root, so a value that leads to a tensor which holds the anchor would stay; circles.c
 * finds such circles at full collections.
 */
#ifndef TIDE_LUA_STATE_ANCHORS_H
#define TIDE_LUA_STATE_ANCHORS_H

#include "lua-bindings/state/state.h"

typedef struct tide_anchor tide_anchor;

/* Of a Lua state; outlives it while anchors do. */
typedef struct tide_home {
    atomic_int refs; /* the state's, and the anchors' */
    lua_State *main; /* NULL: closed */
    tide_state *state;
    _Atomic(tide_anchor *) dropped; /* by the engine, not yet let go */
    tide_anchor *first;             /* of all, those that were dropped too */
    int count;
    bool raised; /* an error of the script waits to be raised again */
} tide_home;

/* The home of the state that this thread's work in the engine may call; NULL: none. */
extern _Thread_local tide_home *tide_home_entered;

/* Make a state's part; once, when the state is opened. Leaves the stack as it was. */
void tide_open_anchors(lua_State *L, tide_state *state);

/* Anchor the value on the top, and pop it. Raises a memory error when there is none. */
tide_anchor *tide_anchor_new(lua_State *L);
/* What the engine holds is the anchor; or this, which holds it. */
void tide_anchor_held_by(tide_anchor *anchor, const void *holder);
/* Anywhere; NULL is fine. */
void tide_anchor_drop(tide_anchor *anchor);
/* The home of the state that made it. */
tide_home *tide_anchor_home(const tide_anchor *anchor);
/* Push the value. */
void tide_anchor_push(lua_State *L, const tide_anchor *anchor);

/* The error on the top becomes the one to be raised again, and is popped: ESCRIPT, or EINTR of an
 * interrupt. */
td_status tide_home_note_error(lua_State *L, tide_home *home);
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
