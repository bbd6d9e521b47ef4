/* compiled_function.c: tide.compile's functions: a Lua function whose calls of operators are put
 * off while it runs (engine/script/defer/defer.h), as a userdata that is called as the function is.
 *
 * While one runs, the state's `deferring` is it, and handles of results that are to come have no
 * tensor but what they wait for. So whatever takes a tensor out of such a handle settles first
 * (tide_to_tensor); functions that need no elements take stand-ins (tide_to_shape). Of functions
 * within one another the outermost defers.
 *
 * Which is faster, deferring or running at once, is measured for each kind of arguments, a few
 * calls each way, and measured again as time goes on, but so seldom that the slower way costs
 * little. Calls of a kind that runs at once look at nothing but the kind.
 */
#include "lua-bindings/recording/origin.h"
#include "lua-bindings/script/script_function.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static const char *const class_name = "tide.CompiledFunction";

enum {
    FN = 1, /* user value: what is called */
    NAME,   /* the name */
    MOST_BREAKS = 48,
    MOST_KINDS = 32,
    TIMES = 3,        /* that each way is timed */
    WARM = 4,         /* calls of a kind before the first is timed */
    LEARNING = 3,     /* calls after these that still meet what is not known are not timed; then
                         meeting that is what deferring costs with such arguments */
    LEAST_AGAIN = 64, /* calls until a kind is timed anew, at least; and no less than it had */
    SHARE = 50,       /* timing the slower way takes one part in so many of what calls take */
    GAIN = 20,        /* deferring is to save one part in so many */
    TEXT = 48
};

/* A line at which what had gathered had to run before the function's end. */
typedef struct break_line {
    char what[TEXT];
    bool hasty;      /* it was among them, and may refuse elements */
    td_origin place; /* line 0: not known */
    int64_t count, ns;
} break_line;

/* Calls with arguments of one kind. */
typedef struct kind {
    uint64_t digest;
    int64_t calls, at_once, deferred; /* the last two: fewest nanoseconds; 0: not known */
    int64_t again;                    /* the call at which it is timed anew */
    int ntimes[2];                    /* how often each was timed */
    int nlearning;                    /* calls that met what was not known */
    bool eager;                       /* running at once was faster */
} kind;

typedef struct compiled {
    tide_deferring deferring; /* first */
    const char *class_name;   /* what tells one from other userdata */
    tide_state *state;
    lua_State *main;
    bool measures;     /* which way is faster */
    bool ending, lost; /* lost: more breaks than there is room for */
    td_status failed;  /* of what ran where no error could be raised */
    char message[512];
    td_origin origin;
    break_line breaks[MOST_BREAKS];
    int nbreaks;
    kind kinds[MOST_KINDS];
    int nkinds;
    kind *now; /* of the call that runs */
    int64_t began, made;
    int64_t calls, eager_calls, saved; /* saved: nanoseconds, as far as known; may be negative */
} compiled;

static int64_t clock_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static compiled *check_compiled(lua_State *L, int index) {
    return luaL_checkudata(L, index, class_name);
}

/* ---- the deferral's host ---- */

static void fill(void *ctx, td_deferred *value) {
    compiled *f = ctx;
    tide_handle *handle = value->holder;
    handle->pending = NULL;
    handle->tensor = value->tensor;
    value->tensor = NULL;
    if (handle->tensor && handle->tensor->storage->granted)
        tide_pressure_note(&f->state->pressure, handle->tensor->storage->device);
}

static void find_place(void *ctx, const char **file, int *line) {
    compiled *f = ctx;
    f->origin.line = 0;
    tide_find_origin(f->main, &f->origin);
    *file = f->origin.line ? f->origin.source : NULL;
    *line = f->origin.line;
}

/* The name of the function in C that runs. */
static void name_running(const compiled *f, char *text) {
    lua_Debug ar;
    lua_State *L = tide_running_coroutine(f->main);
    bool known = lua_getstack(L, 0, &ar) && lua_getinfo(L, "n", &ar) && ar.name;
    snprintf(text, TEXT, "%s", known ? ar.name : "a call");
}

static bool is_break(const break_line *b, const char *what, const td_origin *place) {
    return b->place.line == place->line && !strcmp(b->what, what) &&
           !strcmp(b->place.source, place->source);
}

static void note_break(compiled *f, int64_t ns) {
    char what[TEXT];
    td_origin place = {.line = 0};
    int k = 0;
    name_running(f, what);
    tide_find_origin(f->main, &place);
    while (k < f->nbreaks && !is_break(&f->breaks[k], what, &place))
        k++;
    if (k == MOST_BREAKS) {
        f->lost = true;
        return;
    }
    break_line *b = &f->breaks[k];
    if (k == f->nbreaks) {
        *b = (break_line){.place = place, .hasty = td_deferral_is_hasty(f->deferring.deferral)};
        memcpy(b->what, what, sizeof what);
        f->nbreaks++;
    }
    b->count++;
    b->ns += ns;
}

static void settled(void *ctx, int ncalls, int64_t ns, td_status status) {
    compiled *f = ctx;
    (void)ncalls;
    if (!f->ending)
        note_break(f, ns);
    if (status) {
        f->failed = status;
        snprintf(f->message, sizeof f->message, "%s", td_error_message());
    }
}

/* ---- settling ---- */

static int raise_failed(lua_State *L, compiled *f) {
    td_status status = f->failed;
    f->failed = TD_OK;
    if (status != TD_ESCRIPT)
        status = td_fail(status, "%s", f->message);
    return tide_raise(L);
}

/* What is not waited for any more need not be kept: garbage is looked for first, which a young
 * collection finds. */
static void settle(lua_State *L, tide_deferring *deferring) {
    compiled *f = (compiled *)deferring;
    if (td_deferral_waiting(deferring->deferral) > 1 && lua_gc(L, LUA_GCISRUNNING) > 0)
        lua_gc(L, LUA_GCSTEP, 0);
    td_status status = td_deferral_settle(deferring->deferral);
    (void)status; /* `settled` was told */
    if (TD_UNLIKELY(f->failed))
        raise_failed(L, f);
}

/* ---- kinds of arguments ---- */

static uint64_t mix(uint64_t h, uint64_t word) {
    return (h ^ word) * 0x9E3779B97F4A7C15u + (h >> 29);
}

/* Of arguments at stack indices: what tensors are, and the kinds of other values. */
static uint64_t digest(lua_State *L, int first, int last) {
    uint64_t h = td_modes_current.grad_disabled | td_modes_current.casting << 1 | 4u;
    for (int k = first; k <= last; k++) {
        const tide_handle *handle = lua_touserdata(L, k);
        const td_tensor *x = tide_is_handle(handle) ? handle->tensor : NULL;
        if (!x) {
            h = mix(h, (uint64_t)lua_type(L, k));
            continue;
        }
        h = mix(h, x->dtype | (uint64_t)x->ndim << 8 | (uint64_t)td_tensor_device(x).type << 16 |
                       (uint64_t)1 << 32);
        for (int d = 0; d < x->ndim; d++)
            h = mix(h, (uint64_t)x->sizes[d]);
    }
    return h;
}

/* The kind, made where there is none, over the one that has waited longest. */
static kind *find_kind(compiled *f, uint64_t h) {
    for (int k = 0; k < f->nkinds && k < MOST_KINDS; k++)
        if (f->kinds[k].digest == h)
            return &f->kinds[k];
    kind *fresh = &f->kinds[f->nkinds++ % MOST_KINDS];
    *fresh = (kind){.digest = h};
    return fresh;
}

static bool is_measured(const kind *k) {
    return k->ntimes[0] >= TIMES && k->ntimes[1] >= TIMES;
}

/* Shall this call run at once? */
static bool runs_at_once(kind *k) {
    k->calls++;
    if (k->calls == k->again)
        k->ntimes[0] = k->ntimes[1] = 0;
    if (k->calls < WARM)
        return false;
    return is_measured(k) ? k->eager : k->ntimes[1] < TIMES && (k->calls & 1);
}

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* Both ways have been timed. */
static void decide(kind *k) {
    int64_t more = k->deferred - k->at_once, slower = more < 0 ? -more : more;
    int64_t least = more < 0 ? k->deferred : k->at_once;
    k->eager = k->deferred > k->at_once - k->at_once / GAIN;
    k->again =
        k->calls + larger(larger(k->calls, LEAST_AGAIN), TIMES * SHARE * slower / larger(least, 1));
}

static void note_time(kind *k, bool at_once, int64_t ns) {
    int64_t *best = at_once ? &k->at_once : &k->deferred;
    int *times = &k->ntimes[at_once];
    if (!*times || ns < *best)
        *best = ns;
    ++*times;
    if (is_measured(k))
        decide(k);
}

/* ---- calls ---- */

enum { AT_ONCE = 1, DEFERRED }; /* contexts of calls */

static void note_call(compiled *f, bool at_once) {
    kind *k = f->now;
    bool clean = at_once || (td_deferral_knew(f->deferring.deferral) &&
                             td_deferral_count(f->deferring.deferral).made == f->made);
    f->now = NULL;
    if (!k || k->calls < WARM || (!clean && ++k->nlearning <= LEARNING))
        return;
    if (k->ntimes[at_once] < TIMES)
        note_time(k, at_once, clock_ns() - f->began);
    if (!at_once && k->at_once && k->deferred)
        f->saved += k->at_once - k->deferred;
}

/* The function has returned or failed: nothing is put off any more. */
static void end_run(compiled *f) {
    if (f->state->deferring == &f->deferring)
        f->state->deferring = NULL;
    f->ending = false;
}

static int finish(lua_State *L, int status, lua_KContext how) {
    compiled *f = lua_touserdata(L, 1);
    if (status == LUA_YIELD) /* other work was done meanwhile */
        f->now = NULL;
    if (how == DEFERRED && f->state->deferring == &f->deferring) {
        f->ending = true;
        settle(L, &f->deferring);
        end_run(f);
    }
    note_call(f, how == AT_ONCE);
    return lua_gettop(L) - 1;
}

static int returned(lua_State *L, int status, lua_KContext how) {
    (void)status;
    (void)how;
    return lua_gettop(L);
}

/* The function itself with n arguments, and nothing to be done behind it. */
static int call_plainly(lua_State *L, int n) {
    lua_getiuservalue(L, 1, FN);
    lua_replace(L, 1);
    lua_callk(L, n, LUA_MULTRET, 0, returned);
    return lua_gettop(L);
}

/* The one that is called, as in script_function.c. */
static inline compiled *called(lua_State *L) {
    compiled *f = lua_touserdata(L, 1);
    if (TD_UNLIKELY(!f || lua_rawlen(L, 1) < sizeof *f || f->class_name != class_name))
        return check_compiled(L, 1);
    return f;
}

/* f(...) */
static int call(lua_State *L) {
    compiled *f = called(L);
    int n = lua_gettop(L) - 1;
    if (f->state->deferring)
        return call_plainly(L, n);
    kind *k = find_kind(f, digest(L, 2, n + 1));
    lua_KContext how = runs_at_once(k) && f->measures ? AT_ONCE : DEFERRED;
    f->calls++;
    f->eager_calls += how == AT_ONCE;
    if (how == AT_ONCE && is_measured(k))
        return call_plainly(L, n);
    f->now = k;
    lua_getiuservalue(L, 1, FN);
    lua_insert(L, 2);
    if (how == DEFERRED) {
        f->made = td_deferral_count(f->deferring.deferral).made;
        (void)td_deferral_knew(f->deferring.deferral);
        f->state->deferring = &f->deferring;
        lua_toclose(L, 1);
    }
    if (!is_measured(k))
        f->began = clock_ns();
    lua_callk(L, n, LUA_MULTRET, how, finish);
    return finish(L, LUA_OK, how);
}

/* An error leaves the function, or its coroutine is closed: what has gathered runs all the same,
 * since it is seen from outside; the error stays what it is. */
static int close_run(lua_State *L) {
    compiled *f = check_compiled(L, 1);
    if (f->state->deferring != &f->deferring)
        return 0;
    f->ending = true;
    f->now = NULL;
    td_status status = td_deferral_settle(f->deferring.deferral);
    (void)status;
    f->failed = TD_OK;
    end_run(f);
    return 0;
}

static int collect(lua_State *L) {
    compiled *f = check_compiled(L, 1);
    end_run(f);
    td_deferral_free(f->deferring.deferral);
    f->deferring.deferral = NULL;
    return 0;
}

/* compile(fn, name, measures): a new CompiledFunction. */
static int compile(lua_State *L) {
    luaL_checkstring(L, 2);
    lua_settop(L, 3);
    compiled *f = lua_newuserdatauv(L, sizeof *f, 2);
    *f = (compiled){.class_name = class_name,
                    .state = TIDE_STATE(L),
                    .main = tide_main_thread(L),
                    .measures = lua_toboolean(L, 3)};
    f->deferring.settle = settle;
    TIDE_CHECK(L, td_deferral_new(&(td_deferral_host){f, fill, settled, find_place},
                                  &f->deferring.deferral));
    luaL_setmetatable(L, class_name);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, FN);
    lua_pushvalue(L, 2);
    lua_setiuservalue(L, -2, NAME);
    return 1;
}

/* ---- reports ---- */

static void set_integer(lua_State *L, const char *name, int64_t value) {
    lua_pushinteger(L, value);
    lua_setfield(L, -2, name);
}

static void push_breaks(lua_State *L, const compiled *f) {
    lua_createtable(L, f->nbreaks, 0);
    for (int k = 0; k < f->nbreaks; k++) {
        const break_line *b = &f->breaks[k];
        lua_createtable(L, 0, 4);
        lua_pushstring(L, b->what);
        lua_setfield(L, -2, "what");
        lua_pushfstring(L, "%s:%d", b->place.line ? b->place.source : "?", b->place.line);
        lua_setfield(L, -2, "place");
        lua_pushboolean(L, b->hasty);
        lua_setfield(L, -2, "refuses");
        set_integer(L, "count", b->count);
        set_integer(L, "ns", b->ns);
        lua_rawseti(L, -2, k + 1);
    }
}

static void push_kinds(lua_State *L, const compiled *f) {
    lua_newtable(L);
    for (int k = 0; k < f->nkinds && k < MOST_KINDS; k++) {
        lua_createtable(L, 0, 4);
        set_integer(L, "calls", f->kinds[k].calls);
        set_integer(L, "at_once", f->kinds[k].at_once);
        set_integer(L, "deferred", f->kinds[k].deferred);
        lua_pushboolean(L, f->kinds[k].eager);
        lua_setfield(L, -2, "eager");
        lua_rawseti(L, -2, k + 1);
    }
}

/* compiled_counts(f): all of f:why() in numbers. */
static int get_counts(lua_State *L) {
    const compiled *f = check_compiled(L, 1);
    td_deferral_counts c = td_deferral_count(f->deferring.deferral);
    lua_newtable(L);
    set_integer(L, "calls", f->calls);
    set_integer(L, "eager_calls", f->eager_calls);
    set_integer(L, "saved", f->saved);
    set_integer(L, "steps", c.steps);
    set_integer(L, "graphs", c.graphs);
    set_integer(L, "failed", c.failed);
    set_integer(L, "deferred", c.deferred);
    set_integer(L, "ran", c.ran);
    set_integer(L, "under_modes", c.under_modes);
    set_integer(L, "graph_runs", c.graph_runs);
    set_integer(L, "call_runs", c.call_runs);
    set_integer(L, "made", c.made);
    set_integer(L, "forgotten", c.forgotten);
    lua_pushboolean(L, c.full);
    lua_setfield(L, -2, "full");
    lua_pushboolean(L, f->lost);
    lua_setfield(L, -2, "lost");
    lua_pushstring(L, td_deferral_why(f->deferring.deferral));
    lua_setfield(L, -2, "reason");
    push_breaks(L, f);
    lua_setfield(L, -2, "breaks");
    push_kinds(L, f);
    lua_setfield(L, -2, "kinds");
    return 1;
}

/* compiled_graphs(f): its graphs as ScriptFunctions. */
static int get_graphs(lua_State *L) {
    const compiled *f = check_compiled(L, 1);
    const td_ir_graph *g;
    lua_newtable(L);
    for (int k = 0; (g = td_deferral_graph(f->deferring.deferral, k)); k++) {
        char name[TEXT];
        snprintf(name, sizeof name, "graph %d", k + 1);
        tide_push_script_function(L, (td_ir_graph *)(uintptr_t)g, name);
        lua_rawseti(L, -2, k + 1);
    }
    return 1;
}

static int get_function(lua_State *L) {
    check_compiled(L, 1);
    lua_getiuservalue(L, 1, FN);
    return 1;
}

static int is_compiled(lua_State *L) {
    lua_pushboolean(L, luaL_testudata(L, 1, class_name) != NULL);
    return 1;
}

/* ---- the class ---- */

/* A method of the module, called with the CompiledFunction. Upvalues: it, the module. */
static int call_method(lua_State *L) {
    if (lua_gettop(L) && luaL_testudata(L, 1, class_name)) {
        lua_pushvalue(L, lua_upvalueindex(2));
        lua_replace(L, 1);
    }
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    return lua_gettop(L);
}

/* Methods first, then what the function itself has, which may be a module. Upvalue: methods. */
static int get_field(lua_State *L) {
    check_compiled(L, 1);
    lua_pushvalue(L, 2);
    if (lua_rawget(L, lua_upvalueindex(TIDE_UP_FIRST)) != LUA_TNIL)
        return 1;
    if (lua_getiuservalue(L, 1, FN) == LUA_TFUNCTION) {
        char text[80];
        return tide_error(L, "a CompiledFunction has no field or method %s (why, graphs)",
                          tide_describe(L, 2, text, sizeof text));
    }
    lua_pushvalue(L, 2);
    if (lua_gettable(L, -2) == LUA_TFUNCTION) {
        lua_insert(L, -2);
        lua_pushcclosure(L, call_method, 2);
    }
    return 1;
}

/* f.field = value: the module's. */
static int set_field(lua_State *L) {
    check_compiled(L, 1);
    lua_getiuservalue(L, 1, FN);
    lua_replace(L, 1);
    if (lua_type(L, 1) == LUA_TFUNCTION)
        return tide_error(L, "a CompiledFunction has no fields to set");
    lua_settable(L, 1);
    return 0;
}

static int to_text(lua_State *L) {
    check_compiled(L, 1);
    lua_getiuservalue(L, 1, NAME);
    lua_pushfstring(L, "CompiledFunction %s", lua_tostring(L, -1));
    return 1;
}

/* compiled_class(methods): once, from lua/compile.lua. */
static int set_class(lua_State *L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    luaL_getmetatable(L, class_name);
    lua_insert(L, 1);
    tide_push_function(L, get_field, 1);
    lua_setfield(L, 1, "__index");
    return 0;
}

void tide_open_compiled_class(lua_State *L) {
    static const luaL_Reg functions[] = {
        {"compile", compile},
        {"compiled_counts", get_counts},
        {"compiled_graphs", get_graphs},
        {"compiled_function", get_function},
        {"is_compiled", is_compiled},
        {"compiled_class", set_class},
        {NULL, NULL},
    };
    static const luaL_Reg metamethods[] = {
        {"__call", call},        {"__close", close_run},    {"__gc", collect},
        {"__tostring", to_text}, {"__newindex", set_field}, {NULL, NULL},
    };
    tide_set_functions(L, functions);
    luaL_newmetatable(L, class_name);
    tide_set_functions(L, metamethods);
    lua_pushstring(L, class_name);
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 1);
}
