/* calltrace.c: Lua's hook for calls and returns keeps a stack of all frames that have begun since,
 * on whatever coroutine; those of the script's Lua functions are ranges of the recording.
 *
 * An error ends frames without a word: what they left on the stack goes when the function that
 * caught it returns, which lies below, or when the next one begins at the bottom of its coroutine.
 * A coroutine that yields is left likewise, by the return of what resumed it; when it goes on, its
 * frames come back onto the stack. Interrupts put a hook of their own in the place of this one,
 * which does no harm: what it would have told is being left.
 */
#include "lua-bindings/recording/calltrace.h"

#include "engine/core/memory.h"
#include "lua-bindings/recording/origin.h"
#include "profiler/event.h"
#include "profiler/recorder.h"

#include <lauxlib.h>
#include <stdio.h>
#include <string.h>

enum { MASK = LUA_MASKCALL | LUA_MASKRET, DEEPEST_AGAIN = 200 };

typedef struct frame {
    lua_State *L;
    const void *call; /* Lua's record of it */
    tide_range range; /* nothing, for C functions and Tide's own */
} frame;

struct tide_calltrace {
    tide_state *state;
    frame *frames;
    int n, room;
    bool on;
};

static const char trace_key = 0;

static tide_calltrace *find_trace(lua_State *L) {
    lua_rawgetp(L, LUA_REGISTRYINDEX, &trace_key);
    tide_calltrace *t = lua_touserdata(L, -1);
    lua_pop(L, 1);
    return t;
}

/* ---- the stack ---- */

static void cut(tide_calltrace *t, int n) {
    while (t->n > n)
        tide_range_end(t->frames[--t->n].range);
}

/* Frames without memory for them are left out: their return finds nothing. */
static frame *add(tide_calltrace *t) {
    if (t->n == t->room) {
        int room = t->room ? 2 * t->room : 64;
        frame *grown = td_realloc(t->frames, (size_t)room * sizeof *grown);
        if (!grown)
            return NULL;
        t->frames = grown;
        t->room = room;
    }
    return &t->frames[t->n++];
}

static bool is_scripts(const lua_Debug *ar) {
    return *ar->what != 'C' && strncmp(ar->source, "=tide.", 6) != 0;
}

static tide_range begin_range(const lua_Debug *ar) {
    char name[LUA_IDSIZE + 80];
    if (*ar->what == 'm')
        snprintf(name, sizeof name, "main chunk of %s", ar->short_src);
    else if (ar->name)
        snprintf(name, sizeof name, "%.60s (%s:%d)", ar->name, ar->short_src, ar->linedefined);
    else
        snprintf(name, sizeof name, "function <%s:%d>", ar->short_src, ar->linedefined);
    return tide_range_begin(TIDE_EVENT_FUNCTION, name);
}

static void push(tide_calltrace *t, lua_State *L, lua_Debug *ar) {
    frame *f = add(t);
    if (!f)
        return;
    lua_getinfo(L, "nS", ar);
    *f = (frame){.L = L, .call = ar->i_ci};
    if (is_scripts(ar))
        f->range = begin_range(ar);
}

/* ---- what the hook is told ---- */

/* Does it run, or wait for one that does? It may be gone: its address alone is looked at. */
static bool is_active(lua_State *L, const lua_State *co) {
    lua_State *at = tide_main_thread(L);
    while (at && at != co)
        at = tide_resumed_by(at);
    return at != NULL;
}

/* The innermost of L's frames that the stack has; -1: none. */
static int find_coroutine(const tide_calltrace *t, const lua_State *L) {
    int at = t->n - 1;
    while (at >= 0 && t->frames[at].L != L)
        at--;
    return at;
}

static int find_frame(const tide_calltrace *t, const lua_State *L, const void *call) {
    int at = t->n - 1;
    while (at >= 0 && !(t->frames[at].L == L && t->frames[at].call == call))
        at--;
    return at;
}

/* Of a coroutine that was resumed: the frames it has, but for the innermost, which ends now. */
static void push_again(tide_calltrace *t, lua_State *L) {
    lua_Debug ar;
    int deepest = 1;
    while (deepest < DEEPEST_AGAIN && lua_getstack(L, deepest, &ar))
        deepest++;
    for (int level = deepest - 1; level >= 1; level--)
        if (lua_getstack(L, level, &ar))
            push(t, L, &ar);
}

static void on_call(tide_calltrace *t, lua_State *L, lua_Debug *ar) {
    lua_Debug outer;
    if (!lua_getstack(L, 1, &outer)) { /* the first of its coroutine, or of the host's */
        int at = t->n;
        while (at > 0 && t->frames[at - 1].L == L)
            at--;
        cut(t, at);
    } else if (t->n && t->frames[t->n - 1].L != L) {
        int at = find_coroutine(t, L);
        if (at >= 0)
            cut(t, at + 1);
    }
    push(t, L, ar);
}

static void on_return(tide_calltrace *t, lua_State *L, const lua_Debug *ar) {
    int at = find_frame(t, L, ar->i_ci);
    if (at >= 0) {
        cut(t, at);
    } else if (t->n && find_coroutine(t, L) < 0) {
        while (t->n && !is_active(L, t->frames[t->n - 1].L))
            cut(t, t->n - 1);
        if (t->n)
            push_again(t, L);
    }
}

static void hook(lua_State *L, lua_Debug *ar) {
    tide_calltrace *t = find_trace(L);
    if (!t || !t->on) { /* set before the end, on a coroutine that waited */
        lua_sethook(L, NULL, 0, 0);
        return;
    }
    tide_enter_engine(t->state);
    if (ar->event == LUA_HOOKRET) {
        on_return(t, L, ar);
        return;
    }
    if (ar->event == LUA_HOOKTAILCALL) { /* in the place of its caller */
        int at = find_frame(t, L, ar->i_ci);
        if (at >= 0)
            cut(t, at);
    }
    on_call(t, L, ar);
}

/* ---- beginning and end ---- */

static int trace_gc(lua_State *L) {
    tide_calltrace *t = lua_touserdata(L, 1);
    td_free(t->frames);
    *t = (tide_calltrace){0};
    return 0;
}

void tide_calltrace_prepare(lua_State *L) {
    if (find_trace(L))
        return;
    tide_calltrace *t = lua_newuserdatauv(L, sizeof *t, 0);
    *t = (tide_calltrace){0};
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, trace_gc);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &trace_key);
}

static void set_hook(lua_State *L) {
    if (!lua_gethook(L))
        lua_sethook(L, hook, MASK, 0);
}

bool tide_calltrace_begin(lua_State *L, tide_state *state) {
    tide_calltrace *t = find_trace(L);
    lua_Hook there = lua_gethook(L);
    if (there && there != hook)
        return false;
    t->state = state;
    t->n = 0;
    t->on = true;
    for (lua_State *co = tide_main_thread(L); co; co = tide_resumed_by(co))
        set_hook(co);
    return true;
}

static void unset_hook(lua_State *L) {
    if (lua_gethook(L) == hook)
        lua_sethook(L, NULL, 0, 0);
}

void tide_calltrace_end(lua_State *L) {
    tide_calltrace *t = find_trace(L);
    if (!t || !t->on)
        return;
    t->on = false;
    t->n = 0;
    for (lua_State *co = tide_main_thread(L); co; co = tide_resumed_by(co))
        unset_hook(co);
}

void tide_calltrace_follow(lua_State *L, lua_State *co) {
    if (TD_UNLIKELY(lua_gethook(L) == hook))
        set_hook(co);
}
