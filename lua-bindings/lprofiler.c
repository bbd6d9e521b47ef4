/* lprofiler.c: tide.profiler: recording a function or a block, and what was recorded. */
#include "lua-bindings/function.h"
#include "lua-bindings/modules.h"
#include "lua-bindings/origin.h"

#include "engine/core/memory.h"
#include "profiler/chrome_trace.h"
#include "profiler/recorder.h"
#include "profiler/table.h"

#include <string.h>

static const char *const profile_name = "tide.Profile";
static const char *const range_name = "tide.range";

/* A recording that runs (recorder) or is done. */
typedef struct profile {
    tide_state *state;
    tide_recorder *recorder;
    tide_raw *raw; /* what it recorded, until somebody wants to know */
    tide_recording recording;
} profile;

static td_status finish(profile *p) {
    tide_recorder *recorder = p->recorder;
    if (!recorder)
        return TD_OK;
    p->recorder = NULL;
    p->state->observer = NULL;
    p->raw = tide_recorder_halt(recorder);
    return p->raw ? TD_OK : TD_ENOMEM;
}

static void stop(lua_State *L, profile *p) {
    if (finish(p))
        tide_error(L, "profiler: %s", td_error_message());
}

/* The profile at index 1, stopped. */
static profile *check_stopped(lua_State *L) {
    profile *p = luaL_checkudata(L, 1, profile_name);
    stop(L, p);
    return p;
}

/* The profile at index 1, stopped and with its recording. */
static profile *check_profile(lua_State *L) {
    profile *p = check_stopped(L);
    tide_raw *raw = p->raw;
    p->raw = NULL;
    if (raw && tide_raw_gather(raw, &p->recording))
        tide_error(L, "profiler: %s", td_error_message());
    return p;
}

/* Read the arguments of a method of profiles; the profile is finished. */
static profile *read_method(lua_State *L, tide_frame *f) {
    tide_read_call(L, f);
    return check_profile(L);
}

static int profile_stop(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    check_stopped(L);
    return 0;
}

static int profile_close(lua_State *L) {
    check_stopped(L);
    return 0;
}

static int profile_gc(lua_State *L) {
    profile *p = luaL_checkudata(L, 1, profile_name);
    (void)!finish(p);
    tide_raw_free(p->raw);
    tide_recording_free(&p->recording);
    return 0;
}

static tide_sort to_sort(const char *name) {
    static const char *const names[] = {"self", "total", "calls", "name"};
    int k = 0;
    while (strcmp(name, names[k]))
        k++;
    return (tide_sort)k;
}

static int push_table(lua_State *L, const profile *p, tide_sort sort, int limit) {
    char *text = tide_table(&p->recording, sort, limit);
    if (!text)
        return tide_error(L, "profiler: out of memory");
    lua_pushstring(L, text);
    td_free(text);
    return 1;
}

static int profile_table(lua_State *L) {
    tide_frame f;
    profile *p = read_method(L, &f);
    int64_t limit = td_is_nil(f.args[2]) ? 0 : f.args[2].i;
    return push_table(L, p, to_sort(f.args[1].string), limit < 1000000 ? (int)limit : 0);
}

static int profile_tostring(lua_State *L) {
    profile *p = luaL_checkudata(L, 1, profile_name);
    if (p->recorder) {
        lua_pushliteral(L, "profile: recording");
        return 1;
    }
    return push_table(L, check_profile(L), TIDE_SORT_SELF, 40);
}

static int profile_len(lua_State *L) {
    lua_pushinteger(L, check_profile(L)->recording.count);
    return 1;
}

static int profile_export(lua_State *L) {
    tide_frame f;
    profile *p = read_method(L, &f);
    if (tide_write_chrome_trace(&p->recording, f.args[1].string))
        return tide_error(L, "export_chrome_trace: %s", td_error_message());
    return 0;
}

static void set_us(lua_State *L, const char *name, int64_t ns) {
    lua_pushnumber(L, (lua_Number)ns * 1e-3);
    lua_setfield(L, -2, name);
}

static void push_inputs(lua_State *L, const tide_event *e) {
    const int64_t *at = e->inputs;
    lua_createtable(L, e->ninputs, 0);
    lua_createtable(L, e->ninputs, 0);
    for (int k = 1; k <= e->ninputs; k++) {
        tide_input in = tide_input_next(&at);
        lua_createtable(L, in.ndim, 0);
        for (int d = 0; d < in.ndim; d++) {
            lua_pushinteger(L, in.sizes[d]);
            lua_rawseti(L, -2, d + 1);
        }
        lua_rawseti(L, -3, k);
        lua_pushstring(L, td_dtype_name(in.dtype));
        lua_rawseti(L, -2, k);
    }
    lua_setfield(L, -3, "dtypes");
    lua_setfield(L, -2, "shapes");
}

static int profile_events(lua_State *L) {
    tide_frame f;
    profile *p = read_method(L, &f);
    lua_createtable(L, (int)p->recording.count, 0);
    for (int64_t k = 0; k < p->recording.count; k++) {
        tide_poll(L, k);
        const tide_event *e = &p->recording.events[k];
        lua_createtable(L, 0, 10);
        lua_pushstring(L, e->name);
        lua_setfield(L, -2, "name");
        lua_pushstring(L, tide_event_kind_name(e->kind));
        lua_setfield(L, -2, "kind");
        lua_pushinteger(L, e->thread);
        lua_setfield(L, -2, "thread");
        if (e->parent >= 0) {
            lua_pushinteger(L, e->parent + 1);
            lua_setfield(L, -2, "parent");
        }
        if (e->sequence && e->kind != TD_EVENT_KERNEL) {
            lua_pushinteger(L, (lua_Integer)e->sequence);
            lua_setfield(L, -2, "sequence");
        }
        set_us(L, "start_us", e->start_ns);
        set_us(L, "duration_us", e->end_ns - e->start_ns);
        set_us(L, "self_us", e->self_ns);
        if (e->line) {
            lua_pushstring(L, e->line);
            lua_setfield(L, -2, "line");
        }
        if (e->kind == TD_EVENT_OP)
            push_inputs(L, e);
        lua_rawseti(L, -2, k + 1);
    }
    return 1;
}

/* profile{...} -> profile, for `local prof <close> = ...`; profile(fn, ...) -> profile, results. */
static lua_State *main_thread(lua_State *L) {
    lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
    lua_State *found = lua_tothread(L, -1);
    lua_pop(L, 1);
    return found;
}

static int profiler_profile(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    int nargs = f.last - 1;
    lua_settop(L, f.last);
    profile *p = lua_newuserdatauv(L, sizeof *p, 0);
    *p = (profile){.state = TIDE_STATE(L)};
    luaL_setmetatable(L, profile_name);
    tide_enter_engine(p->state);
    p->recorder =
        tide_recorder_start(&(tide_record_options){.shapes = true,
                                                   .find_line = tide_find_origin,
                                                   .script = f.args[1].b ? main_thread(L) : NULL});
    if (!p->recorder)
        return tide_error(L, "profile: %s", td_error_message());
    p->state->observer = tide_recorder_observer(p->recorder);
    if (!f.at[0])
        return 1;
    lua_insert(L, 1);
    lua_pushvalue(L, 1);
    lua_insert(L, 1); /* one to close on the way out, by an error too; one to return */
    lua_toclose(L, 1);
    lua_call(L, nargs, LUA_MULTRET);
    stop(L, p);
    return lua_gettop(L) - 1;
}

/* ---- ranges ---- */

static int range_close(lua_State *L) {
    tide_range *range = luaL_checkudata(L, 1, range_name);
    tide_range_end(*range);
    return 0;
}

/* record(name) for `local _ <close> = ...`; record(name, fn, ...) -> results. */
static int profiler_record(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    const char *name = f.args[0].string;
    int nargs = lua_gettop(L) - 2;
    tide_range *range = lua_newuserdatauv(L, sizeof *range, 0);
    *range = (tide_range){0};
    luaL_setmetatable(L, range_name);
    tide_enter_engine(TIDE_STATE(L));
    *range = tide_range_begin(TD_EVENT_RANGE, name);
    if (!f.at[1])
        return 1;
    lua_replace(L, 1);
    lua_toclose(L, 1);
    lua_call(L, nargs, LUA_MULTRET);
    return lua_gettop(L) - 1;
}

static void make_metatable(lua_State *L, const char *name, const tide_function *methods,
                           const luaL_Reg *events) {
    luaL_newmetatable(L, name);
    luaL_setfuncs(L, events, 0);
    lua_newtable(L);
    tide_declare(L, methods);
    lua_setfield(L, -2, "__index");
    lua_pushstring(L, name);
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 1);
}

int tide_open_profiler(lua_State *L) {
    static const tide_function methods[] = {
        {"table(Profile p, *, \"self\"|\"total\"|\"calls\"|\"name\" sort=\"self\", int(1..)? "
         "limit=nil) "
         "-> str",
         "Time and calls by name.", profile_table},
        {"export_chrome_trace(Profile p, str path)",
         "Write a trace for Perfetto and chrome://tracing.", profile_export},
        {"events(Profile p) -> list", "What was recorded, in the order of its beginnings.",
         profile_events},
        {"stop(Profile p)", "End the recording.", profile_stop},
        {NULL, NULL, NULL},
    };
    static const luaL_Reg events[] = {
        {"__close", profile_close},       {"__gc", profile_gc}, {"__len", profile_len},
        {"__tostring", profile_tostring}, {NULL, NULL},
    };
    static const tide_function no_methods[] = {{NULL, NULL, NULL}};
    static const luaL_Reg range_events[] = {{"__close", range_close}, {NULL, NULL}};
    static const tide_function functions[] = {
        {"profile(function? fn=nil, ..., *, bool with_stack=false) -> profile, any",
         "Record every operator, kernel and backward node while fn runs, or to the end of the "
         "block with `local p <close> = tide.profiler.profile()`; with the lines that they work "
         "for: profile{fn, with_stack = true}. print(p), p:table({sort, limit}), p:events(), "
         "p:export_chrome_trace(path).",
         profiler_profile},
        {"record(str name, function? fn=nil, ...) -> any", "A named range in the recording.",
         profiler_record},
        {NULL, NULL, NULL},
    };
    make_metatable(L, profile_name, methods, events);
    make_metatable(L, range_name, no_methods, range_events);
    lua_newtable(L);
    tide_declare(L, functions);
    tide_document(L, -1, "profiler", "tide.profiler",
                  "profile(fn) records what runs; record(name, fn) names a part of it.");
    return 1;
}
