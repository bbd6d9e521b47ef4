/* control.h: an evaluation's beginning, its end, and whether it is being stopped. */
#ifndef TIDE_SESSION_CONTROL_H
#define TIDE_SESSION_CONTROL_H

#include "repl/session/session.h"

#include <lua.h>
#include <stdint.h>

/* Why the evaluation is being unwound. */
typedef enum stop_reason { STOP_NONE, STOP_INTERRUPT, STOP_EXIT } stop_reason;

/* Replaces the library functions that would swallow a stop. May raise (memory). */
void control_install(tide_session *s);
/* Around every evaluation; they nest. */
void control_begin(tide_session *s);
void control_end(tide_session *s);
stop_reason control_stopping(const tide_session *s);
/* For who has caught the error on top: raises it again where it is the stop's. */
void control_let_stops_pass(lua_State *L);
/* Time since some fixed point, in nanoseconds: of signals' and polls' moments. Safe in a signal
 * handler. */
int64_t control_now_ns(void);

#endif
