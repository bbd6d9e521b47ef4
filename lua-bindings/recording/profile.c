/* profile.c: what is done with a recording: its events, table and trace. */
#include "lua-bindings/recording/profile.h"

#include "engine/core/memory.h"
#include "profiler/chrome_trace.h"
#include "profiler/stacks.h"
#include "profiler/table.h"
#include "profiler/timeline.h"
#include "profiler/trace_read.h"
#include "profiler/work.h"

#include <stdio.h>
#include <string.h>

static tide_sort to_sort(const char *name) {
    static const char *const names[] = {"self",   "total", "calls", "name",
                                        "memory", "flops", "device"};
    int k = 0;
    while (strcmp(name, names[k]))
        k++;
    return (tide_sort)k;
}

static int push_table(lua_State *L, const tide_profile *p, tide_table_options *options) {
    options->without_work = p->options.identity && !p->flops;
    char *text = tide_table(&p->recording, options);
    if (!text)
        return tide_error(L, "profiler: out of memory");
    lua_pushstring(L, text);
    td_free(text);
    return 1;
}

static int profile_table(lua_State *L) {
    enum { SORT = 1, BY_SHAPE, LIMIT, PEAK_FLOPS, PEAK_BYTES };
    tide_frame f;
    tide_read_call(L, &f);
    tide_profile *p = tide_check_profile(L);
    const td_value *v = f.args;
    tide_table_options options = {.sort = to_sort(v[SORT].string), .by_shape = v[BY_SHAPE].b};
    if (!td_is_nil(v[LIMIT]) && v[LIMIT].i < 1000000)
        options.limit = (int)v[LIMIT].i;
    if (!td_is_nil(v[PEAK_FLOPS]))
        options.peak_flops = td_arg_double(v[PEAK_FLOPS]);
    if (!td_is_nil(v[PEAK_BYTES]))
        options.peak_bytes = td_arg_double(v[PEAK_BYTES]);
    return push_table(L, p, &options);
}

int tide_profile_tostring(lua_State *L) {
    tide_profile *p = luaL_checkudata(L, 1, TIDE_PROFILE_NAME);
    if (p->running) {
        lua_pushliteral(L, "profile: recording");
        return 1;
    }
    return push_table(L, tide_check_profile(L), &(tide_table_options){.limit = 40});
}

static int profile_export(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    tide_profile *p = tide_check_profile(L);
    if (tide_write_chrome_trace(&p->recording, f.args[1].string))
        return tide_error(L, "export_chrome_trace: %s", td_error_message());
    return 0;
}

/* _trace_part(p, rank, name, note, shift_ns, ids): its events in a trace of a job. */
static int profile_trace_part(lua_State *L) {
    char rows[32];
    tide_frame f;
    tide_read_call(L, &f);
    tide_profile *p = tide_check_profile(L);
    const td_value *v = f.args;
    snprintf(rows, sizeof rows, "rank %d: ", (int)v[1].i);
    tide_trace_process process = {(int)v[1].i, v[2].string, v[3].string, rows, v[4].i, v[5].i};
    char *text = tide_trace_part(&p->recording, &process);
    if (!text)
        return tide_error(L, "export_chrome_trace: %s", td_error_message());
    lua_pushstring(L, text);
    td_free(text);
    return 1;
}

/* _began(p): when it began by the monotonic clock, ns, and how many events it has. */
static int profile_began(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    const tide_recording *r = &tide_check_profile(L)->recording;
    lua_pushinteger(L, r->began_ns);
    lua_pushinteger(L, r->count);
    return 2;
}

static int profile_export_stacks(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    tide_profile *p = tide_check_profile(L);
    if (tide_write_stacks(&p->recording, f.args[1].string))
        return tide_error(L, "export_stacks: %s", td_error_message());
    return 0;
}

/* The window that from and to (µs, nil: the ends) say. */
static tide_window read_window(lua_State *L, const tide_profile *p, td_value from, td_value to) {
    tide_window all = tide_window_of(&p->recording);
    double first = td_is_nil(from) ? (double)all.from : td_arg_double(from) * 1e3;
    double last = td_is_nil(to) ? (double)all.to : td_arg_double(to) * 1e3;
    if (!(first >= 0 && first < 9e18 && last < 9e18 && last - first >= 1))
        tide_error(L,
                   "timeline: from %f to %f µs: expected from 0 on, and that from comes before to",
                   first / 1e3, last / 1e3);
    return (tide_window){(int64_t)first, (int64_t)last};
}

static int push_text(lua_State *L, char *text) {
    if (!text)
        return tide_error(L, "timeline: %s", td_error_message());
    lua_pushstring(L, text);
    td_free(text);
    return 1;
}

static int profile_timeline_text(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    tide_profile *p = tide_check_profile(L);
    tide_window window = read_window(L, p, f.args[1], f.args[2]);
    return push_text(L, tide_timeline_text(&p->recording, window, (int)f.args[3].i, f.args[4].b));
}

static int profile_timeline_data(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    tide_profile *p = tide_check_profile(L);
    tide_window window = read_window(L, p, f.args[1], f.args[2]);
    return push_text(L, tide_timeline_data(&p->recording, window, (int)f.args[3].i));
}

int tide_profile_load(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    tide_profile *p = tide_push_profile(L);
    if (tide_read_trace(f.args[0].string, &p->recording))
        return tide_error(L, "load: %s", td_error_message());
    return 1;
}

static void set_us(lua_State *L, const char *name, int64_t ns) {
    lua_pushnumber(L, (lua_Number)ns * 1e-3);
    lua_setfield(L, -2, name);
}

void tide_push_inputs(lua_State *L, const int64_t *at, int n) {
    lua_createtable(L, n, 0);
    lua_createtable(L, n, 0);
    for (int k = 1; k <= n; k++) {
        tide_input in = tide_input_next(&at);
        lua_createtable(L, in.ndim, 0);
        for (int d = 0; d < in.ndim; d++) {
            lua_pushinteger(L, in.sizes[d]);
            lua_rawseti(L, -2, d + 1);
        }
        lua_rawseti(L, -3, k);
        lua_pushstring(L, tide_input_dtype(&in));
        lua_rawseti(L, -2, k);
    }
    lua_setfield(L, -3, "dtypes");
    lua_setfield(L, -2, "shapes");
}

static void push_apart(lua_State *L, const tide_event *e) {
    if (e->launcher) {
        lua_pushinteger(L, e->launcher);
        lua_setfield(L, -2, "launcher");
    }
    if (e->kind != TD_EVENT_ACTIVITY) {
        lua_pushinteger(L, e->bytes);
        lua_setfield(L, -2, "bytes");
    }
    if (e->kind == TIDE_EVENT_COLLECTIVE && e->correlation) {
        lua_pushinteger(L, e->correlation >> 32);
        lua_setfield(L, -2, "group");
        lua_pushinteger(L, e->correlation & UINT32_MAX);
        lua_setfield(L, -2, "number");
    }
}

static int profile_events(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    tide_profile *p = tide_check_profile(L);
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
        if (p->recording.tracks) {
            lua_pushstring(L, p->recording.tracks[e->thread - 1].name);
            lua_setfield(L, -2, "track");
        }
        if (e->parent >= 0) {
            lua_pushinteger(L, e->parent + 1);
            lua_setfield(L, -2, "parent");
        }
        if (e->kind == TD_EVENT_ALLOC) {
            lua_pushinteger(L, e->bytes);
            lua_setfield(L, -2, "bytes");
            lua_pushinteger(L, e->total);
            lua_setfield(L, -2, "total");
        } else if (tide_is_apart_kind(e->kind)) {
            push_apart(L, e);
        } else if (e->sequence && e->kind != TD_EVENT_KERNEL) {
            lua_pushinteger(L, (lua_Integer)e->sequence);
            lua_setfield(L, -2, "sequence");
        }
        set_us(L, "start_us", e->start_ns);
        set_us(L, "duration_us", e->end_ns - e->start_ns);
        set_us(L, "self_us", e->self_ns);
        if (e->step) {
            lua_pushinteger(L, e->step);
            lua_setfield(L, -2, "step");
        }
        if (e->line) {
            lua_pushstring(L, e->line);
            lua_setfield(L, -2, "line");
        }
        if (e->kind == TD_EVENT_OP || (e->kind != TD_EVENT_ALLOC && e->ninputs))
            tide_push_inputs(L, e->inputs, e->ninputs);
        lua_rawseti(L, -2, k + 1);
    }
    return 1;
}

/* Lies the event in an operator's, of which FLOPs are known where that is asked? */
static bool has_outer(const tide_recording *r, const tide_event *e, bool with_flops) {
    for (int32_t at = e->parent; at >= 0; at = r->events[at].parent) {
        const tide_event *outer = &r->events[at];
        if (outer->kind == TD_EVENT_OP && (!with_flops || tide_work_of(outer).flops > 0))
            return true;
    }
    return false;
}

/* _work(p): FLOPs and bytes of what was recorded with_flops, of operators within others once. */
static int profile_work(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    const tide_recording *r = &tide_check_profile(L)->recording;
    tide_work sum = {0, 0};
    for (int64_t k = 0; k < r->count; k++) {
        tide_work work = tide_work_of(&r->events[k]);
        if (work.flops > 0 && !has_outer(r, &r->events[k], true))
            sum.flops += work.flops;
        if (work.bytes > 0 && !has_outer(r, &r->events[k], false))
            sum.bytes += work.bytes;
    }
    lua_pushnumber(L, sum.flops);
    lua_pushnumber(L, sum.bytes);
    return 2;
}

const tide_function tide_profile_methods[] = {
    {"_table(Profile p, *, \"self\"|\"total\"|\"calls\"|\"name\"|\"memory\"|\"flops\"|"
     "\"device\" sort=\"self\", bool group_by_shape=false, int(1..)? limit=nil, number? "
     "peak_flops=nil, "
     "number? peak_bytes=nil) -> str",
     "The table for the peaks of a machine.", profile_table},
    {"export_chrome_trace(Profile p, str path)", "Write a trace for Perfetto and chrome://tracing.",
     profile_export},
    {"_timeline_text(Profile p, number? from=nil, number? to=nil, int(10..1000) width=80, bool "
     "color=false) -> str",
     "The timeline for a terminal.", profile_timeline_text},
    {"_timeline_data(Profile p, number? from=nil, number? to=nil, int(1..1000000) most=30000) -> "
     "str",
     "The timeline's slices as JSON.", profile_timeline_data},
    {"_trace_part(Profile p, int(0..2147483647) rank, str name, str note, int shift_ns, int(0..) "
     "ids) -> str",
     "Its events in a trace of several processes.", profile_trace_part},
    {"_began(Profile p) -> int, int",
     "When it began, ns by the monotonic clock (0: it was read from a file), and its events.",
     profile_began},
    {"_calls(Profile p) -> table", "The calls of the script as columns.", tide_profile_calls},
    {"export_stacks(Profile p, str path, \"self_cpu_time_total\" metric=\"self_cpu_time_total\")",
     "Write folded stacks, a line per way from outside in with its own time in µs: for flame "
     "graphs.",
     profile_export_stacks},
    {"_work(Profile p) -> number, number", "FLOPs and bytes of what was recorded.", profile_work},
    {"_events(Profile p) -> list", "What was recorded, as events() tells it.", profile_events},
    {NULL, NULL, NULL},
};
