/* job.h: jobs of several processes in Lua: what lua/distributed.lua stands on. */
#ifndef TIDE_LUA_DISTRIBUTED_JOB_H
#define TIDE_LUA_DISTRIBUTED_JOB_H

#include <lua.h>

/* Fill the tide table at the top with _distributed_..., _group_..., _post and _work_... . */
void tide_open_distributed(lua_State *L);

#endif
