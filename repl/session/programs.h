/* programs.h: what os.execute is in a session. */
#ifndef TIDE_SESSION_PROGRAMS_H
#define TIDE_SESSION_PROGRAMS_H

#include "repl/session/control.h"

/* Puts it in its place: a Ctrl-C meanwhile is the program's and, where it ends by it, ours too. May
 * raise (memory). */
void programs_install(lua_State *L);

#endif
