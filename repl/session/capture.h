/* capture.h: what a piece of code writes and displays, kept instead of shown. */
#ifndef TIDE_SESSION_CAPTURE_H
#define TIDE_SESSION_CAPTURE_H

#include "repl/session/session.h"

#include <lua.h>
#include <stdbool.h>

/* (object, out, err, displays): from now on the standard output, the standard error and displays,
 * those of them that are true, go into the object's fields stdout, stderr (strings, set when it
 * ends) and outputs (a list of tables {MIME type = data, metadata = JSON text}). What programs
 * write that are started meanwhile counts too. Gives a variable to be closed, which ends it. */
int capture_begin(lua_State *L);
/* Takes a display into the innermost capture; false: none wants it. May raise (memory). */
bool capture_take_display(lua_State *L, const tide_bundle *bundle);

#endif
