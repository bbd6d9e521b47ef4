/* calls.c: p:_calls(): the calls of a recording as columns, in which lua/advice/collect.lua and its
 * recognisers look for what could be better. */
#include "lua-bindings/call/values.h"
#include "lua-bindings/recording/profile.h"

#include "profiler/calls.h"

#include <string.h>

static const char calls_name[] = "tide.calls";

static int calls_gc(lua_State *L) {
    tide_calls_free(luaL_checkudata(L, 1, calls_name));
    return 0;
}

static tide_calls *push_calls(lua_State *L) {
    tide_calls *calls = lua_newuserdatauv(L, sizeof *calls, 0);
    *calls = (tide_calls){0};
    if (luaL_newmetatable(L, calls_name)) {
        lua_pushcfunction(L, calls_gc);
        lua_setfield(L, -2, "__gc");
        lua_pushboolean(L, 0);
        lua_setfield(L, -2, "__metatable");
    }
    lua_setmetatable(L, -2);
    return calls;
}

/* ---- columns: t.name = {...} of the table at the top ---- */

typedef int64_t (*column_fn)(const tide_calls *calls, int64_t k);

#define COLUMN(name, list, field)                                                                  \
    static int64_t name(const tide_calls *c, int64_t k) {                                          \
        return (int64_t)c->list[k].field;                                                          \
    }
COLUMN(call_start, calls, start_ns)
COLUMN(call_stop, calls, end_ns)
COLUMN(call_cost, calls, cost_ns)
COLUMN(call_kernel, calls, kernel_ns)
COLUMN(call_back, calls, backward_ns)
COLUMN(call_first, calls, first)
COLUMN(call_site, calls, site)
COLUMN(call_arguments, calls, arguments)
COLUMN(call_outer, calls, outer)
COLUMN(call_inputs, calls, ninputs)
COLUMN(call_results, calls, nresults)
COLUMN(call_recorded, calls, recorded)
COLUMN(call_used, calls, used)
COLUMN(seen_storage, seen, storage)
COLUMN(seen_offset, seen, offset)
COLUMN(seen_version, seen, version)
COLUMN(seen_layout, seen, layout)
COLUMN(seen_grad, seen, requires_grad)

typedef struct column {
    const char *name;
    column_fn get;
} column;

static void push_columns(lua_State *L, const tide_calls *c, const column *columns, int64_t n) {
    for (; columns->name; columns++) {
        lua_createtable(L, (int)n, 0);
        for (int64_t k = 0; k < n; k++) {
            tide_poll(L, k);
            lua_pushinteger(L, columns->get(c, k));
            lua_rawseti(L, -2, k + 1);
        }
        lua_setfield(L, -2, columns->name);
    }
}

/* ---- what calls share ---- */

static void push_ints(lua_State *L, const int64_t *values, int64_t n) {
    lua_createtable(L, (int)n, 0);
    for (int64_t k = 0; k < n; k++) {
        lua_pushinteger(L, values[k]);
        lua_rawseti(L, -2, k + 1);
    }
}

static void push_floats(lua_State *L, const int64_t *words, int64_t n) {
    lua_createtable(L, (int)n, 0);
    for (int64_t k = 0; k < n; k++) {
        double value;
        memcpy(&value, &words[k], sizeof value);
        lua_pushnumber(L, value);
        lua_rawseti(L, -2, k + 1);
    }
}

static const char *dtype_text(int64_t dtype) {
    return dtype >= 0 && dtype < TD_DTYPE_COUNT ? td_dtype_name((td_dtype)dtype)
                                                : TIDE_DTYPE_UNKNOWN;
}

/* Push what begins at words[k] as {kind, value}; where the next one begins. Kinds that hold nothing
 * have no value; false: cut off. */
static int64_t push_argument(lua_State *L, const int64_t *words, int64_t k, int64_t n) {
    td_kind kind = (td_kind)(words[k] & 0xFF);
    int64_t entries = words[k] >> 8, left = n - ++k, taken = 1;
    lua_createtable(L, 2, 0);
    lua_pushstring(L, tide_kind_name(kind));
    lua_rawseti(L, -2, 1);
    if (kind == TD_KIND_INTS || kind == TD_KIND_FLOATS)
        taken = entries;
    else if (kind == TD_KIND_STRING && left > 0)
        taken = 1 + (words[k] + 7) / 8;
    else if (kind == TD_KIND_NIL || kind == TD_KIND_TENSOR || kind == TD_KIND_TENSORS ||
             kind == TD_KIND_DEVICE || kind == TD_KIND_GENERATOR)
        taken = 0;
    if (taken > left)
        return n;
    if (kind == TD_KIND_INTS)
        push_ints(L, &words[k], entries);
    else if (kind == TD_KIND_FLOATS)
        push_floats(L, &words[k], entries);
    else if (kind == TD_KIND_FLOAT) {
        double value;
        memcpy(&value, &words[k], sizeof value);
        lua_pushnumber(L, value);
    } else if (kind == TD_KIND_BOOL)
        lua_pushboolean(L, words[k] != 0);
    else if (kind == TD_KIND_DTYPE)
        lua_pushstring(L, dtype_text(words[k]));
    else if (kind == TD_KIND_STRING)
        lua_pushlstring(L, (const char *)&words[k + 1], (size_t)words[k]);
    else
        lua_pushinteger(L, kind == TD_KIND_INT ? words[k] : entries);
    lua_rawseti(L, -2, 2);
    return k + taken;
}

static void push_call_arguments(lua_State *L, const tide_shared *shared) {
    int count = 0;
    lua_newtable(L);
    for (int64_t k = 0; k < shared->n;) {
        k = push_argument(L, shared->words, k, shared->n);
        lua_rawseti(L, -2, ++count);
    }
}

/* {name =, line =, file =, lineno =} */
static void push_site(lua_State *L, const tide_shared *shared) {
    const char *name = (const char *)shared->words, *line = name + strlen(name) + 1;
    lua_createtable(L, 0, 8);
    lua_pushstring(L, name);
    lua_setfield(L, -2, "name");
    if (*line) {
        lua_pushstring(L, line);
        lua_setfield(L, -2, "line");
    }
}

/* {dtype =, shape =, strides =, dense =, numel =} */
static void push_layout(lua_State *L, const tide_shared *shared) {
    int64_t head = shared->words[0], numel = 1;
    int ndim = (int)(head >> 8 & 0xFF);
    lua_createtable(L, 0, 8);
    lua_pushstring(L, dtype_text(head & 0xFF));
    lua_setfield(L, -2, "dtype");
    push_ints(L, &shared->words[1], ndim);
    lua_setfield(L, -2, "shape");
    if (head & TIDE_INPUT_STRIDED) {
        push_ints(L, &shared->words[1 + ndim], ndim);
        lua_setfield(L, -2, "strides");
    }
    lua_pushboolean(L, (head & TIDE_INPUT_DENSE) != 0);
    lua_setfield(L, -2, "dense");
    for (int d = 0; d < ndim; d++)
        numel *= shared->words[1 + d];
    lua_pushinteger(L, numel);
    lua_setfield(L, -2, "numel");
}

static void push_shared(lua_State *L, const char *name, const tide_shared_list *list,
                        void (*push)(lua_State *L, const tide_shared *shared)) {
    lua_createtable(L, list->count, 0);
    for (int32_t k = 0; k < list->count; k++) {
        tide_poll(L, k);
        push(L, list->list[k]);
        lua_rawseti(L, -2, k + 1);
    }
    lua_setfield(L, -2, name);
}

/* {kind =, name =, line =, start =, stop =, before =, outer =}, ... */
static void push_spans(lua_State *L, const tide_calls *c) {
    lua_createtable(L, (int)c->nspans, 0);
    for (int64_t k = 0; k < c->nspans; k++) {
        const tide_span *s = &c->spans[k];
        tide_poll(L, k);
        lua_createtable(L, 0, 7);
        lua_pushstring(L, tide_event_kind_name(s->event->kind));
        lua_setfield(L, -2, "kind");
        lua_pushstring(L, s->event->name);
        lua_setfield(L, -2, "name");
        if (s->event->line) {
            lua_pushstring(L, s->event->line);
            lua_setfield(L, -2, "line");
        }
        lua_pushinteger(L, s->event->start_ns);
        lua_setfield(L, -2, "start");
        lua_pushinteger(L, s->event->end_ns);
        lua_setfield(L, -2, "stop");
        lua_pushinteger(L, s->before);
        lua_setfield(L, -2, "before");
        lua_pushinteger(L, s->outer);
        lua_setfield(L, -2, "outer");
        lua_rawseti(L, -2, k + 1);
    }
    lua_setfield(L, -2, "spans");
}

int tide_profile_calls(lua_State *L) {
    static const column of_calls[] = {{"start", call_start},  {"stop", call_stop},
                                      {"cost", call_cost},    {"kernel", call_kernel},
                                      {"back", call_back},    {"first", call_first},
                                      {"site", call_site},    {"args", call_arguments},
                                      {"outer", call_outer},  {"nin", call_inputs},
                                      {"nout", call_results}, {"recorded", call_recorded},
                                      {"used", call_used},    {NULL, NULL}};
    static const column of_tensors[] = {{"obj", seen_storage}, {"off", seen_offset},
                                        {"ver", seen_version}, {"lay", seen_layout},
                                        {"grad", seen_grad},   {NULL, NULL}};
    tide_frame f;
    tide_read_call(L, &f);
    tide_profile *p = tide_check_profile(L);
    tide_calls *c = push_calls(L);
    td_status status = tide_calls_find(&p->recording, c);
    if (status == TD_EINTR)
        tide_raise(L);
    if (status)
        return tide_error(L, "advice: %s", td_error_message());
    lua_createtable(L, 0, 32);
    push_columns(L, c, of_calls, c->ncalls);
    push_columns(L, c, of_tensors, c->nseen);
    push_shared(L, "sites", &c->sites, push_site);
    push_shared(L, "arguments", &c->arguments, push_call_arguments);
    push_shared(L, "layouts", &c->layouts, push_layout);
    push_spans(L, c);
    lua_pushinteger(L, c->ncalls);
    lua_setfield(L, -2, "n");
    lua_pushinteger(L, c->wall_ns);
    lua_setfield(L, -2, "wall");
    lua_pushboolean(L, c->known);
    lua_setfield(L, -2, "known");
    tide_calls_free(c);
    return 1;
}
