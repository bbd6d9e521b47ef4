/* modes.h: modes belong to the coroutine that set them. */
#ifndef TIDE_LUA_MODES_H
#define TIDE_LUA_MODES_H

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

/* Let coroutine.resume, wrap and close switch modes; once per state. */
void tide_open_coroutines(lua_State *L);

#endif
