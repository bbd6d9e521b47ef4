/* origin.h: tells the engine which line of a script it works for, while somebody asks. */
#ifndef TIDE_LUA_ORIGIN_H
#define TIDE_LUA_ORIGIN_H

#include <lua.h>

/* From now on operators that this thread calls from L's state belong to the line that calls them,
 * in whatever coroutine; those of other threads to none. One state at a time. */
void tide_origin_begin(lua_State *L);
/* On any thread. The state must not be closed before. */
void tide_origin_end(void);

#endif
