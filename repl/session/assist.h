/* assist.h: what the embedded modules need of C. Front ends ask through session.h. */
#ifndef TIDE_SESSION_ASSIST_H
#define TIDE_SESSION_ASSIST_H

#include "repl/session/session.h"

#include <lua.h>

/* Puts into the modules' environment, which is on top, what complete and inspect ask for. */
void assist_install(lua_State *L);
/* Frees what is_complete keeps of a session. */
void assist_free(tide_session *s);

#endif
