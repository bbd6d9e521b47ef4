/* mode_stacks.h: modes belong to the coroutine that set them, by guards that are values of Lua:
 * closed, or collected, they take back what they asked for.
 */
#ifndef TIDE_LUA_STATE_MODE_STACKS_H
#define TIDE_LUA_STATE_MODE_STACKS_H

#include "engine/core/modes.h"

#include <lua.h>

struct tide_mode_stack;

/* What tide_modes_enter found, for tide_modes_leave. */
typedef struct tide_mode_switch {
    td_modes modes;
    struct tide_mode_stack *own; /* of the coroutine that runs, when it has guards open */
    td_modes now;                /* of tide_modes_call: that stack's */
} tide_mode_switch;

/* The coroutine at a stack index is about to run: where it has guards open, their modes hold;
 * otherwise those of the one that resumes it. */
tide_mode_switch tide_modes_enter(lua_State *L, int coroutine);
/* It has stopped: what held for the running one holds again. */
void tide_modes_leave(tide_mode_switch before);

/* The engine calls a function of the script: its modes hold in there, whatever guards are open
 * without, until it has returned. */
tide_mode_switch tide_modes_call(lua_State *L);
void tide_modes_called(tide_mode_switch before);

/* ---- guards ---- */

/* Once per state, before the first guard. */
void tide_open_mode_stacks(lua_State *L);

typedef void (*tide_mode_apply)(td_modes *modes, int64_t value);
/* Push a guard under which apply(modes, value) holds; `end`, where it is not NULL, is called with
 * the value when it is closed. `name`: a constant, the function that gives it. */
void tide_push_mode(lua_State *L, const char *name, tide_mode_apply apply, int64_t value,
                    void (*end)(lua_State *L, int64_t value));
/* Another value for the guard on the top, which was pushed last. */
void tide_change_mode(lua_State *L, int64_t value);
/* What the guard on the top asks for holds on when it is collected without being closed. */
void tide_mode_lasts(lua_State *L);
/* How many guards of the running coroutine hold until they are closed or collected. */
int tide_modes_held(lua_State *L);
/* Is the value at idx a guard? *lasts: it may be a statement, see tide_mode_lasts. */
bool tide_is_mode(lua_State *L, int idx, bool *lasts);

#endif
