/* summary.c: a recording in a few numbers for Lua: what took most by name and by line, the peak of
 * memory. What is found is copied into a block of Lua's before anything is pushed, so that an error
 * loses nothing.
 */
#include "lua-bindings/modules/modules.h"
#include "lua-bindings/recording/profile.h"

#include "engine/core/memory.h"
#include "profiler/loads.h"
#include "profiler/places.h"
#include "profiler/table.h"
#include "profiler/whole.h"

#include <string.h>

static void set_text(lua_State *L, const char *name, const char *text) {
    lua_pushstring(L, text);
    lua_setfield(L, -2, name);
}

static void set_integer(lua_State *L, const char *name, int64_t value) {
    lua_pushinteger(L, value);
    lua_setfield(L, -2, name);
}

/* The first entries of a block, in one of Lua's, pushed; the block is freed. */
static void *take_first(lua_State *L, void *into, void *block, int n, size_t size) {
    if (!block)
        tide_error(L, "profiler: %s", td_error_message());
    memcpy(into, block, (size_t)n * size);
    td_free(block);
    return into;
}

static void push_row(lua_State *L, const tide_row *row) {
    lua_createtable(L, 0, 12);
    set_text(L, "name", row->name);
    set_text(L, "kind", tide_event_kind_name(row->kind));
    set_integer(L, "calls", row->calls);
    set_integer(L, "self_ns", row->self_ns);
    set_integer(L, "total_ns", row->total_ns);
    set_integer(L, "memory", row->memory);
    set_integer(L, "memory_total", row->memory_total);
    set_integer(L, "device_ns", row->device_ns);
    set_integer(L, "device_total_ns", row->device_total_ns);
    lua_pushnumber(L, row->flops);
    lua_setfield(L, -2, "flops");
    lua_pushboolean(L, tide_is_device_kind(row->kind));
    lua_setfield(L, -2, "on_device");
    if (row->inputs)
        tide_push_inputs(L, row->inputs, row->ninputs);
}

/* _rows(p, most, by_shape): by name, what took most of its own time first. */
static int profile_rows(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    int most = (int)f.args[1].i, n;
    tide_profile *p = tide_check_profile(L);
    tide_table_options options = {.sort = TIDE_SORT_SELF, .by_shape = f.args[2].b};
    tide_row *rows = lua_newuserdatauv(L, (size_t)most * sizeof *rows, 0);
    tide_row *found = tide_rows(&p->recording, &options, &n);
    n = n < most ? n : most;
    take_first(L, rows, found, n, sizeof *rows);
    lua_createtable(L, n, 0);
    for (int k = 0; k < n; k++) {
        push_row(L, &rows[k]);
        lua_rawseti(L, -2, k + 1);
    }
    return 1;
}

/* _places(p, most): by line and operator, what took longest first. */
static int profile_places(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    int most = (int)f.args[1].i, n;
    tide_profile *p = tide_check_profile(L);
    tide_place *places = lua_newuserdatauv(L, (size_t)most * sizeof *places, 0);
    tide_place *found = tide_places(&p->recording, &n);
    n = n < most ? n : most;
    take_first(L, places, found, n, sizeof *places);
    lua_createtable(L, n, 0);
    for (int k = 0; k < n; k++) {
        lua_createtable(L, 0, 5);
        set_text(L, "name", places[k].name);
        set_text(L, "line", places[k].line);
        set_integer(L, "calls", places[k].calls);
        set_integer(L, "ns", places[k].ns);
        set_integer(L, "bytes", places[k].bytes);
        lua_rawseti(L, -2, k + 1);
    }
    return 1;
}

/* _totals(p): the whole: wall time, events, and the peak of memory with who took it there. */
static int profile_totals(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    const tide_recording *r = &tide_check_profile(L)->recording;
    tide_peak peak = tide_find_peak(r);
    tide_loads loads;
    TIDE_CHECK(L, tide_loads_find(r, &loads));
    int64_t loading = loads.total_ns;
    tide_loads_clear(&loads);
    lua_createtable(L, 0, 8);
    set_integer(L, "wall_ns", r->wall_ns - r->kept_from_ns - loading);
    set_integer(L, "all_ns", r->wall_ns);
    set_integer(L, "loading_ns", loading);
    set_integer(L, "events", r->count);
    set_integer(L, "evicted", r->evicted);
    set_integer(L, "peak_bytes", peak.bytes);
    set_text(L, "peak_line", peak.line);
    set_text(L, "peak_name", peak.name);
    return 1;
}

static void write_text(FILE *file, const void *text) {
    fputs(text, file);
}

/* _profiler_write(path, text): a file that appears whole or not at all. */
int tide_profiler_write(lua_State *L) {
    const char *path = luaL_checkstring(L, 1);
    if (tide_write_whole(path, write_text, luaL_checkstring(L, 2)))
        return tide_error(L, "save: %s", td_error_message());
    return 0;
}

const tide_function tide_summary_methods[] = {
    {"_rows(Profile p, int(1..100000) most, bool by_shape=false) -> list", "By name.",
     profile_rows},
    {"_places(Profile p, int(1..1000) most) -> list", "By line and operator.", profile_places},
    {"_totals(Profile p) -> table", "Wall time, events, the peak of memory.", profile_totals},
    {NULL, NULL, NULL},
};
