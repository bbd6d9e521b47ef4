/* eval.h: running what is no input as inputs are run. */
#ifndef TIDE_SESSION_EVAL_H
#define TIDE_SESSION_EVAL_H

#include "repl/session/session.h"

#include <lua.h>

/* Calls body with `ctx` (a light userdata) as its argument: an error, an interrupt or os.exit is
 * the result. It bears no number and leaves no history. */
void eval_call(tide_session *s, lua_CFunction body, void *ctx, tide_result *r);

#endif
