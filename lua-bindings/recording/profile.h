/* profile.h: the object that a recording is for Lua: while it runs, and when it is done. */
#ifndef TIDE_LUA_RECORDING_PROFILE_H
#define TIDE_LUA_RECORDING_PROFILE_H

#include "lua-bindings/call/function.h"

#include "profiler/recorder.h"

#define TIDE_PROFILE_NAME "tide.Profile"
#define TIDE_RANGE_NAME   "tide.range"

/* What a schedule says of a step. */
typedef enum tide_plan {
    TIDE_PLAN_NONE,
    TIDE_PLAN_WARMUP,
    TIDE_PLAN_RECORD,
    TIDE_PLAN_SAVE
} tide_plan;

/* User values: the schedule, on_trace_ready. */
typedef struct tide_profile {
    tide_state *state;
    tide_record_options options;
    bool lines, flops, functions;
    bool running;            /* recording, or waiting for a step that is to be recorded */
    bool fresh;              /* what was recorded has not been handed to on_trace_ready */
    bool handing;            /* on_trace_ready has it */
    tide_plan plan;          /* of this step; without a schedule TIDE_PLAN_RECORD */
    int64_t step;            /* of the schedule, from 0 */
    tide_recorder *recorder; /* NULL: nothing is recorded now */
    tide_raw *raw;           /* what it recorded, until somebody wants to know */
    tide_recording recording;
} tide_profile;

/* An empty one, pushed. */
tide_profile *tide_push_profile(lua_State *L);

/* The profile at index 1, stopped. */
tide_profile *tide_check_stopped(lua_State *L);
/* The same with its recording. Within on_trace_ready it has that of the cycle that has ended. */
tide_profile *tide_check_profile(lua_State *L);

/* NVTX, or an error that begins with `what`. In cuda.c. */
const td_annotations *tide_check_annotations(lua_State *L, const char *what);

/* Recording: methods of profiles, functions of tide.profiler, events of profiles and of ranges. */
extern const tide_function tide_recording_methods[];
extern const tide_function tide_recording_functions[];
extern const luaL_Reg tide_profile_events[];
extern const luaL_Reg tide_range_events[];
/* What is done with a recording: the methods, and load. */
extern const tide_function tide_profile_methods[];
extern const tide_function tide_summary_methods[]; /* in numbers, for summaries */
/* Fields `shapes` and `dtypes` of the table on top: of n tensors, for tide_input_next. */
void tide_push_inputs(lua_State *L, const int64_t *inputs, int n);
int tide_profile_tostring(lua_State *L);
int tide_profile_load(lua_State *L);
int tide_profiler_write(lua_State *L);
int tide_profile_calls(lua_State *L);

/* An event of this tide_event_kind from here to the end of the running C function, however that
 * ends; nothing where nothing is recorded. It may push a value, which must stay where it is. */
void tide_record_until_return(lua_State *L, int kind, const char *name);

#endif
