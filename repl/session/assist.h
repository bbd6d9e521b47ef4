/* assist.h: what the embedded modules need of C. Front ends ask through session.h. */
#ifndef TIDE_SESSION_ASSIST_H
#define TIDE_SESSION_ASSIST_H

#include <lua.h>

/* Puts into the modules' environment, which is on top, what complete and inspect ask for. */
void assist_install(lua_State *L);

#endif
