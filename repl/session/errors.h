/* errors.h: a Lua error as a result. */
#ifndef TIDE_SESSION_ERRORS_H
#define TIDE_SESSION_ERRORS_H

#include "repl/session/session.h"

#include <lua.h>

/* Message handler of every evaluation: keeps the traceback (and a hint) for error_fill. */
int error_trace(lua_State *L);
/* The same of what a user runs: keeps the frames for %debug too. */
int error_handler(lua_State *L);
/* Raises an error again that was caught behind one of these handlers: what they kept stays. */
int error_pass(lua_State *L);
/* Fills r from the error object on top of the stack, and pops it. May raise (memory). */
void error_fill(tide_session *s, tide_result *r);
/* An error of one line without traceback; never raises. */
void error_plain(tide_result *r, const char *ename, const char *message);

#endif
