/* comm.h: how tide.comm reaches the front end. */
#ifndef TIDE_SESSION_COMM_H
#define TIDE_SESSION_COMM_H

#include <lua.h>

/* tide._comm_send and tide._output_parent; the tide table is on top. */
void comm_install(lua_State *L);

#endif
