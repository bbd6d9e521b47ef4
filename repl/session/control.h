/* control.h: an evaluation's beginning, its end, and whether it is being stopped. */
#ifndef TIDE_SESSION_CONTROL_H
#define TIDE_SESSION_CONTROL_H

#include "repl/session/session.h"

#include <lua.h>
#include <stdbool.h>
#include <stdint.h>

/* Why the evaluation is being unwound. */
typedef enum stop_reason { STOP_NONE, STOP_INTERRUPT, STOP_EXIT } stop_reason;

/* Replaces the library functions that would swallow a stop. May raise (memory). */
void control_install(tide_session *s);
/* Around every evaluation; they nest. */
void control_begin(tide_session *s);
void control_end(tide_session *s);
stop_reason control_stopping(const tide_session *s);
/* lua_pcall, for all values, of what is the user's: meanwhile the hook of debug.sethook is in its
 * place, which is no business of what the session runs in Lua itself; and a registry that was
 * emptied is whole again behind it. May raise (memory). */
int control_call(lua_State *L, int nargs, int handler);
/* lua_pcall, without a handler, of what is the session's own where the user's code runs. */
int control_call_own(lua_State *L, int nargs, int nresults);
/* In a message handler: a hook that raised the error is taken away, for it would raise again in
 * every input, that which takes it away included. */
void control_drop_failed_hook(lua_State *L);
/* os.exit([code [, close]]) */
int control_exit(lua_State *L);
/* For who has caught an error: was it os.exit's? Then the evaluation goes on, with its code in
 * *code. */
bool control_catch_exit(tide_session *s, int *code);
/* For who has caught the error on top: raises it again where it is the stop's. */
void control_let_stops_pass(lua_State *L);
/* Time since some fixed point, in nanoseconds: of signals' and polls' moments. Safe in a signal
 * handler. */
int64_t control_now_ns(void);

#endif
