/* job.h: jobs of several processes in Lua: what lua/distributed.lua stands on. */
#ifndef TIDE_LUA_DISTRIBUTED_JOB_H
#define TIDE_LUA_DISTRIBUTED_JOB_H

#include <lua.h>

/* Fill the tide table at the top with _distributed_..., _group_..., _post and _work_... . */
void tide_open_distributed(lua_State *L);

/* For programs: the script of this process ends with an error, in one line. Where it is in a job,
 * all ranks of it are told and end. */
void tide_job_failed(const char *why);

/* The exit code of a process whose job ended because of another rank, or of a failure. */
enum { TIDE_JOB_ENDED = 113 };

#endif
