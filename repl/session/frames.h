/* frames.h: the traceback of an error, each line of source with a caret under the call. */
#ifndef TIDE_SESSION_FRAMES_H
#define TIDE_SESSION_FRAMES_H

#include <lua.h>

/* (message): returns the traceback of the stack below the function that called this one, which is a
 * message handler; in the form of luaL_traceback, source lines put in. To be called protected. */
int frames_traceback(lua_State *L);

#endif
