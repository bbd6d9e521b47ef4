/* profiler.c: tide.profiler: recording a function, a block or the steps that a schedule names.
 * What is done with a recording is in profile.c.
 */
#include "lua-bindings/modules/modules.h"
#include "lua-bindings/recording/calltrace.h"
#include "lua-bindings/recording/origin.h"
#include "lua-bindings/recording/profile.h"

#include <string.h>

enum { SCHEDULE = 1, READY, USER_VALUES = READY };

/* ---- starting and stopping ---- */

/* End the recording and keep it, or not; false: memory is out. */
static bool halt(lua_State *L, tide_profile *p, bool keep) {
    tide_recorder *recorder = p->recorder;
    if (!recorder)
        return true;
    if (p->functions)
        tide_calltrace_end(L);
    p->recorder = NULL;
    p->state->observer = NULL;
    tide_raw *raw = tide_recorder_halt(recorder);
    if (!keep) {
        tide_raw_free(raw);
        return true;
    }
    tide_raw_free(p->raw);
    p->raw = raw;
    p->fresh = raw != NULL;
    return raw != NULL;
}

static void start_recorder(lua_State *L, tide_profile *p) {
    tide_settle(L, p->state); /* what was called before is not of the recording */
    p->options.find_line = tide_find_origin;
    p->options.script = p->lines ? tide_main_thread(L) : NULL;
    if (p->functions)
        tide_calltrace_prepare(L);
    tide_enter_engine(p->state);
    p->recorder = tide_recorder_start(&p->options);
    if (!p->recorder)
        tide_error(L, "profile: %s", td_error_message());
    p->state->observer = tide_recorder_observer(p->recorder);
    if (p->functions && !tide_calltrace_begin(L, p->state)) {
        (void)halt(L, p, false);
        tide_error(L, "profile: functions: the script has set a hook (debug.sethook) already");
    }
}

static void must_halt(lua_State *L, tide_profile *p, bool keep) {
    tide_settle(L, p->state);
    if (!halt(L, p, keep))
        tide_error(L, "profiler: %s", td_error_message());
}

/* Hand what was recorded to on_trace_ready; the profile is at this index. */
static void tell_ready(lua_State *L, tide_profile *p, int at) {
    if (!p->fresh)
        return;
    p->fresh = false;
    if (lua_getiuservalue(L, at, READY) == LUA_TNIL) {
        lua_pop(L, 1);
        return;
    }
    lua_pushvalue(L, at);
    p->handing = true;
    lua_call(L, 1, 0);
    p->handing = false;
}

static bool is_recorded(tide_plan plan) {
    return plan == TIDE_PLAN_RECORD || plan == TIDE_PLAN_SAVE;
}

static void stop(lua_State *L, tide_profile *p, int at) {
    if (!p->running)
        return;
    p->running = false;
    must_halt(L, p, is_recorded(p->plan));
    tell_ready(L, p, at);
}

tide_profile *tide_check_stopped(lua_State *L) {
    tide_profile *p = luaL_checkudata(L, 1, TIDE_PROFILE_NAME);
    if (!p->handing)
        stop(L, p, 1);
    return p;
}

tide_profile *tide_check_profile(lua_State *L) {
    tide_profile *p = tide_check_stopped(L);
    tide_raw *raw = p->raw;
    p->raw = NULL;
    if (!raw)
        return p;
    tide_recording_free(&p->recording);
    if (tide_raw_gather(raw, &p->recording))
        tide_error(L, "profiler: %s", td_error_message());
    return p;
}

/* ---- schedules ---- */

/* What the schedule says of the profile's step. */
static tide_plan ask_schedule(lua_State *L, const tide_profile *p, int at) {
    static const char *const names[] = {"none", "warmup", "record", "save"};
    if (lua_getiuservalue(L, at, SCHEDULE) == LUA_TNIL) {
        lua_pop(L, 1);
        return TIDE_PLAN_RECORD;
    }
    lua_pushinteger(L, p->step);
    lua_call(L, 1, 1);
    const char *said = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
    for (int k = 0; k < 4; k++)
        if (strcmp(said, names[k]) == 0) {
            lua_pop(L, 1);
            return (tide_plan)k;
        }
    char text[TIDE_QUOTED];
    tide_error(
        L, "profile: schedule(%I): expected \"none\", \"warmup\", \"record\" or \"save\", got %s",
        (LUAI_UACINT)p->step, tide_describe(L, -1, text, sizeof text));
    return TIDE_PLAN_NONE;
}

static void mark_step(lua_State *L, tide_profile *p) {
    if (tide_recorder_step(p->recorder))
        tide_error(L, "step: %s", td_error_message());
}

/* Go over from what the last step was to what this one is. */
static void turn(lua_State *L, tide_profile *p, tide_plan before, int at) {
    bool goes_on = p->recorder && before == TIDE_PLAN_RECORD && is_recorded(p->plan);
    if (!goes_on && p->recorder) {
        must_halt(L, p, is_recorded(before));
        tell_ready(L, p, at);
    }
    if (p->plan != TIDE_PLAN_NONE && !p->recorder)
        start_recorder(L, p);
    if (p->recorder && is_recorded(p->plan))
        mark_step(L, p);
}

static void step(lua_State *L, tide_profile *p, int at) {
    tide_plan before = p->plan;
    p->step++;
    p->handing = false; /* a handler that failed left it so */
    tide_enter_engine(p->state);
    p->plan = ask_schedule(L, p, at);
    turn(L, p, before, at);
}

static int profile_step(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    tide_profile *p = luaL_checkudata(L, 1, TIDE_PROFILE_NAME);
    if (!p->running)
        return tide_error(L, "step: the profile has ended");
    step(L, p, 1);
    return 0;
}

/* ---- the object ---- */

static const char running_key = 0; /* weak: the profile that runs */

static int profile_stop(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    stop(L, luaL_checkudata(L, 1, TIDE_PROFILE_NAME), 1);
    return 0;
}

/* A profile records from when it is made: there is nothing to do but to see that it does. */
static int profile_start(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    tide_profile *p = luaL_checkudata(L, 1, TIDE_PROFILE_NAME);
    if (!p->running)
        return tide_error(L, "start: the profile has ended: make another one");
    return 0;
}

static int profile_close(lua_State *L) {
    stop(L, luaL_checkudata(L, 1, TIDE_PROFILE_NAME), 1);
    return 0;
}

static int profile_gc(lua_State *L) {
    tide_profile *p = luaL_checkudata(L, 1, TIDE_PROFILE_NAME);
    (void)halt(L, p, false);
    p->running = false;
    tide_raw_free(p->raw);
    p->raw = NULL;
    tide_recording_free(&p->recording);
    return 0;
}

static int profile_len(lua_State *L) {
    lua_pushinteger(L, tide_check_profile(L)->recording.count);
    return 1;
}

tide_profile *tide_push_profile(lua_State *L) {
    tide_profile *p = lua_newuserdatauv(L, sizeof *p, USER_VALUES);
    *p = (tide_profile){.state = TIDE_STATE(L), .plan = TIDE_PLAN_RECORD};
    luaL_setmetatable(L, TIDE_PROFILE_NAME);
    return p;
}

/* The arguments of `profile`, in their order. */
enum {
    FN,
    WITH_STACK,
    RECORD_SHAPES,
    PROFILE_MEMORY,
    WITH_FLOPS,
    KERNELS,
    FUNCTIONS,
    NVTX,
    MAX_EVENTS,
    SCHEDULE_AT,
    READY_AT,
    IDENTITIES
};

/* Where calls are recorded with lines and shapes, which tensors they work on is worth its cost. */
static bool wants_identities(const td_value *v) {
    return td_is_nil(v[IDENTITIES]) ? v[WITH_STACK].b && v[RECORD_SHAPES].b : v[IDENTITIES].b;
}

static void read_options(lua_State *L, tide_profile *p, const tide_frame *f, int at) {
    const td_value *v = f->args;
    const td_annotations *annotations =
        v[NVTX].b ? tide_check_annotations(L, "profile: nvtx") : NULL;
    p->lines = v[WITH_STACK].b;
    p->flops = v[WITH_FLOPS].b;
    p->functions = v[FUNCTIONS].b;
    p->options = (tide_record_options){.shapes = v[RECORD_SHAPES].b,
                                       .results = p->flops,
                                       .identity = wants_identities(v),
                                       .memory = v[PROFILE_MEMORY].b,
                                       .all_kernels = v[KERNELS].b,
                                       .annotations = annotations,
                                       .max_events = v[MAX_EVENTS].i};
    const int places[] = {SCHEDULE_AT, READY_AT};
    for (int k = 0; k < 2; k++)
        if (f->at[places[k]]) {
            lua_pushvalue(L, f->at[places[k]]);
            lua_setiuservalue(L, at, k + 1);
        }
}

static void note_running(lua_State *L, int at) {
    tide_push_weak_table(L, &running_key);
    lua_pushvalue(L, at);
    lua_pushboolean(L, true);
    lua_rawset(L, -3);
    lua_pop(L, 1);
}

/* profile{...} -> profile, for `local prof <close> = ...`; profile(fn, ...) -> profile, results. */
static int profiler_profile(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    int nargs = f.last - 1;
    tide_profile *p = tide_push_profile(L);
    int made = lua_gettop(L);
    read_options(L, p, &f, made);
    note_running(L, made);
    p->plan = ask_schedule(L, p, made);
    if (p->plan != TIDE_PLAN_NONE)
        start_recorder(L, p);
    p->running = true;
    bool has_schedule = lua_getiuservalue(L, made, SCHEDULE) != LUA_TNIL;
    if (p->recorder && has_schedule && is_recorded(p->plan))
        mark_step(L, p);
    lua_settop(L, made);
    if (!f.at[FN])
        return 1;
    lua_insert(L, 1);
    lua_settop(L, f.last + 1); /* the profile, fn, its arguments */
    lua_pushvalue(L, 1);
    lua_insert(L, 1); /* one to close on the way out, by an error too; one to return */
    lua_toclose(L, 1);
    if (nargs == 0 && has_schedule) {
        lua_pushvalue(L, 1);
        nargs = 1;
    }
    lua_call(L, nargs, LUA_MULTRET);
    stop(L, p, 1);
    return lua_gettop(L) - 1;
}

/* The profile that records what this state does, pushed; NULL (nothing pushed): none does. */
static tide_profile *push_running(lua_State *L) {
    tide_push_weak_table(L, &running_key);
    lua_pushnil(L);
    while (lua_next(L, -2)) {
        lua_pop(L, 1);
        tide_profile *p = luaL_testudata(L, -1, TIDE_PROFILE_NAME);
        if (p && p->running) {
            lua_remove(L, -2);
            return p;
        }
    }
    lua_pop(L, 1);
    return NULL;
}

/* A step of the profile that runs; nothing where none does. */
static int profiler_step(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    tide_profile *p = push_running(L);
    if (p)
        step(L, p, lua_gettop(L));
    return 0;
}

/* ---- ranges ---- */

static int range_close(lua_State *L) {
    tide_range *range = luaL_checkudata(L, 1, TIDE_RANGE_NAME);
    tide_range_end(*range);
    return 0;
}

void tide_record_until_return(lua_State *L, int kind, const char *name) {
    tide_enter_engine(TIDE_STATE(L));
    if (!td_observer_current || luaL_getmetatable(L, TIDE_RANGE_NAME) != LUA_TTABLE)
        return;
    tide_range *range = lua_newuserdatauv(L, sizeof *range, 0);
    lua_insert(L, -2);
    *range = (tide_range){0};
    lua_setmetatable(L, -2);
    lua_toclose(L, -1);
    *range = tide_range_begin(kind, name);
}

static int to_kind(const char *name) {
    static const int kinds[] = {TD_EVENT_RANGE,  TIDE_EVENT_FUNCTION, TIDE_EVENT_OPTIMIZER,
                                TIDE_EVENT_DATA, TIDE_EVENT_COPY,     TIDE_EVENT_COLLECT};
    size_t k = 0;
    while (strcmp(name, tide_event_kind_name(kinds[k])))
        k++;
    return kinds[k];
}

/* record(name) for `local _ <close> = ...`; record(name, fn, ...) -> results. */
static int profiler_record(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    const char *name = f.args[0].string;
    int nargs = f.last - 2, kind = to_kind(f.args[2].string);
    lua_settop(L, f.last > 1 ? f.last : 1);
    tide_range *range = lua_newuserdatauv(L, sizeof *range, 0);
    *range = (tide_range){0};
    luaL_setmetatable(L, TIDE_RANGE_NAME);
    tide_enter_engine(TIDE_STATE(L));
    *range = tide_range_begin(kind, name);
    if (!f.at[1])
        return 1;
    lua_replace(L, 1);
    lua_toclose(L, 1);
    lua_call(L, nargs, LUA_MULTRET);
    return lua_gettop(L) - 1;
}

/* ---- what the module is made of ---- */

const tide_function tide_recording_methods[] = {
    {"step(Profile p)", "The next step begins: of the schedule, and in the recording.",
     profile_step},
    {"start(Profile p)", "Nothing: a profile records from when it is made, to stop().",
     profile_start},
    {"stop(Profile p)", "End the recording.", profile_stop},
    {NULL, NULL, NULL},
};

const luaL_Reg tide_profile_events[] = {
    {"__close", profile_close}, {"__gc", profile_gc}, {"__len", profile_len}, {NULL, NULL}};

const luaL_Reg tide_range_events[] = {{"__close", range_close}, {NULL, NULL}};

const tide_function tide_recording_functions[] = {
    {"profile(function? fn=nil, ..., *, bool with_stack=false, bool record_shapes=true, "
     "bool profile_memory=false, bool with_flops=false, bool kernels=false, bool "
     "functions=false, bool nvtx=false, int(1..) max_events=4000000, function? schedule=nil, "
     "function? on_trace_ready=nil, bool? identities=nil, list? activities=nil) -> profile, any",
     "Record every operator, kernel and backward node while fn runs, or to the end of the "
     "block with `local p <close> = tide.profiler.profile()`; with the lines that they work "
     "for: profile{fn, with_stack = true}. kernels = true times the kernels of tiny calls too, "
     "of which but a sample is timed otherwise, functions = true the script's Lua functions; "
     "nvtx = true tells operators and ranges to Nsight too (NVTX; needs CUDA); of more than "
     "max_events the oldest steps go. Which "
     "tensor is which (identities) is recorded where lines and shapes are: p:advice() needs "
     "it. With a schedule, fn gets the profile, whose p:step() it calls after each step. "
     "print(p), p:table({sort, limit}), p:events(), p:export_chrome_trace(path).",
     profiler_profile},
    {"record(str name, function? fn=nil, ..., *, \"range\"|\"function\"|\"optimizer\"|\"data\"|"
     "\"copy\"|\"collector\" kind=\"range\") -> any",
     "A named range in the recording.", profiler_record},
    {"step()", "The next step of the profile that records this; nothing where none does.",
     profiler_step},
    {NULL, NULL, NULL},
};
