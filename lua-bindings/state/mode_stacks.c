/* mode_stacks.c: the modes of coroutines, and the guards that change them.
 *
 * Each coroutine has a stack of the guards that it opened, in a table with weak keys. A guard
 * changes the modes of its own coroutine alone, whoever closes or collects it, and may be closed
 * out of order: those above it are applied anew to what was below it. coroutines.c switches between
 * stacks. What set_grad_enabled and its like ask for lasts when their guard is collected
 * and not closed, since they are called as statements too.
 */
#include "lua-bindings/state/mode_stacks.h"

#include "lua-bindings/state/state.h"

#include <stdatomic.h>
#include <string.h>

static const char *const guard_name = "tide.mode";
static const char stacks_key = 0;

typedef struct tide_mode_stack mode_stack;

/* What is asked of the modes. */
typedef struct ask {
    void (*apply)(td_modes *modes, int64_t value); /* NULL: nothing */
    int64_t value;
} ask;

enum { LASTING_KINDS = 3 }; /* grad mode, anomaly mode, default device */

typedef struct guard {
    struct guard *below, *above;
    mode_stack *stack; /* the guard's user value keeps it */
    const char *name;  /* of the function that gave it */
    td_modes before;   /* modes below this guard */
    ask own;
    ask later[LASTING_KINDS]; /* of guards that stood above it, lasted and are gone */
    void (*end)(lua_State *L, int64_t value); /* when it is closed; NULL: nothing is to be done */
    bool open;
    bool lasts; /* when it is collected, what it asked for holds on */
} guard;

struct tide_mode_stack {
    guard *top;
    td_modes now;
    bool lasting; /* `now` is of guards that were collected */
};

static atomic_int guards_open; /* of all states: while there are none, nobody need look */

/* ---- stacks ---- */

static void push_stacks(lua_State *L) {
    tide_push_weak_table(L, &stacks_key);
}

/* The stack of the coroutine on the top, which is popped, in the table below it; NULL: none. */
static mode_stack *find_stack(lua_State *L) {
    lua_rawget(L, -2);
    mode_stack *stack = lua_touserdata(L, -1);
    lua_pop(L, 1);
    return stack;
}

/* The running coroutine's stack, made where there was none; pushed. */
static mode_stack *push_own_stack(lua_State *L) {
    luaL_checkstack(L, 8, NULL);
    push_stacks(L);
    lua_pushthread(L);
    if (lua_rawget(L, -2) != LUA_TUSERDATA) {
        lua_pop(L, 1);
        *(mode_stack *)lua_newuserdatauv(L, sizeof(mode_stack), 0) = (mode_stack){0};
        lua_pushthread(L);
        lua_pushvalue(L, -2);
        lua_rawset(L, -4);
    }
    lua_replace(L, -2);
    return lua_touserdata(L, -1);
}

static bool has_modes(const mode_stack *stack) {
    return stack->top || stack->lasting;
}

tide_mode_switch tide_modes_enter(lua_State *L, int coroutine) {
    tide_mode_switch before = {.modes = td_get_modes()};
    if (!atomic_load_explicit(&guards_open, memory_order_relaxed) || !lua_checkstack(L, 8))
        return before;
    push_stacks(L);
    lua_pushthread(L);
    mode_stack *own = find_stack(L);
    before.own = own && has_modes(own) ? own : NULL;
    lua_pushvalue(L, coroutine);
    mode_stack *theirs = find_stack(L);
    if (theirs && has_modes(theirs))
        td_set_modes(theirs->now);
    lua_pop(L, 1);
    return before;
}

void tide_modes_leave(tide_mode_switch before) {
    td_set_modes(before.own ? before.own->now : before.modes);
}

tide_mode_switch tide_modes_call(lua_State *L) {
    tide_mode_switch before = {.modes = td_get_modes()};
    if (!atomic_load_explicit(&guards_open, memory_order_relaxed))
        return before;
    push_stacks(L);
    lua_pushthread(L);
    mode_stack *own = find_stack(L);
    lua_pop(L, 1);
    if (!own || !has_modes(own))
        return before;
    before.own = own;
    before.now = own->now;
    own->now = before.modes;
    return before;
}

void tide_modes_called(tide_mode_switch before) {
    if (before.own)
        before.own->now = before.now;
    td_set_modes(before.modes);
}

/* ---- guards ---- */

static int guard_close(lua_State *L);

static void apply_ask(ask a, td_modes *modes) {
    if (a.apply)
        a.apply(modes, a.value);
}

static void apply_guard(const guard *g, td_modes *modes) {
    apply_ask(g->own, modes);
    for (int k = 0; k < LASTING_KINDS; k++)
        apply_ask(g->later[k], modes);
}

/* Let what was asked later hold over a guard: the last word of its kind. */
static void leave_ask(guard *g, ask a) {
    for (int k = 0; a.apply && k < LASTING_KINDS; k++)
        if (!g->later[k].apply || g->later[k].apply == a.apply) {
            g->later[k] = a;
            return;
        }
}

void tide_push_mode(lua_State *L, const char *name, tide_mode_apply apply, int64_t value,
                    void (*end)(lua_State *L, int64_t value)) {
    mode_stack *stack = push_own_stack(L);
    guard *g = lua_newuserdatauv(L, sizeof *g, 1);
    *g = (guard){.stack = stack, .name = name, .own = {apply, value}, .end = end};
    lua_insert(L, -2);
    lua_setiuservalue(L, -2, 1);
    luaL_setmetatable(L, guard_name);
    if (!has_modes(stack))
        stack->now = td_get_modes();
    g->before = stack->now;
    g->below = stack->top;
    if (g->below)
        g->below->above = g;
    g->open = true;
    stack->top = g;
    atomic_fetch_add_explicit(&guards_open, 1, memory_order_relaxed);
    apply(&stack->now, value);
    td_set_modes(stack->now);
}

void tide_change_mode(lua_State *L, int64_t value) {
    guard *g = lua_touserdata(L, -1);
    g->own.value = value;
    g->own.apply(&g->stack->now, value);
    td_set_modes(g->stack->now);
}

void tide_mode_lasts(lua_State *L) {
    ((guard *)lua_touserdata(L, -1))->lasts = true;
}

int tide_modes_held(lua_State *L) {
    if (!atomic_load_explicit(&guards_open, memory_order_relaxed))
        return 0;
    luaL_checkstack(L, 8, NULL);
    push_stacks(L);
    lua_pushthread(L);
    const mode_stack *own = find_stack(L);
    lua_pop(L, 1);
    int n = 0;
    for (const guard *g = own ? own->top : NULL; g; g = g->below)
        n += !g->lasts;
    return n;
}

bool tide_is_mode(lua_State *L, int idx, bool *lasts) {
    const guard *g = luaL_testudata(L, idx, guard_name);
    *lasts = g && g->lasts;
    return g != NULL;
}

/* Take a guard out of its stack; what those above it asked for is applied to what was below it.
 * What was asked after it stays in its place, and what it asked itself if that lasts: over the
 * guard below, or for good. True: for good, so that the stack has modes without a guard. */
static bool take_out(mode_stack *stack, guard *gone, bool lasts) {
    td_modes modes = gone->before;
    ask stays[1 + LASTING_KINDS] = {lasts ? gone->own : (ask){NULL, 0}};
    bool any = false;
    memcpy(stays + 1, gone->later, sizeof gone->later);
    for (int k = 0; k < 1 + LASTING_KINDS; k++) {
        any |= stays[k].apply != NULL;
        apply_ask(stays[k], &modes);
        if (gone->below)
            leave_ask(gone->below, stays[k]);
    }
    if (gone->below)
        gone->below->above = gone->above;
    if (gone->above)
        gone->above->below = gone->below;
    else
        stack->top = gone->below;
    for (guard *g = gone->above; g; g = g->above) {
        g->before = modes;
        apply_guard(g, &modes);
    }
    stack->now = modes;
    return any && !gone->below;
}

/* The same, and the end of it. While some coroutine's modes are of guards that have gone, all are
 * looked for: the first of them goes on to count, for the stack. */
static void let_go(guard *g, bool lasts) {
    mode_stack *stack = g->stack;
    bool for_good = take_out(stack, g, lasts);
    g->open = false;
    if (!for_good || stack->lasting)
        atomic_fetch_sub_explicit(&guards_open, 1, memory_order_relaxed);
    stack->lasting |= for_good;
}

static int guard_gc(lua_State *L) {
    guard *g = luaL_checkudata(L, 1, guard_name);
    if (!g->open || !g->lasts)
        return guard_close(L);
    let_go(g, true);
    return 0;
}

static int guard_close(lua_State *L) {
    guard *g = luaL_checkudata(L, 1, guard_name);
    if (!g->open)
        return 0;
    mode_stack *stack = g->stack;
    if (g->end)
        g->end(L, g->own.value);
    let_go(g, false);
    luaL_checkstack(L, 8, NULL);
    push_stacks(L);
    lua_pushthread(L);
    if (find_stack(L) == stack)
        td_set_modes(stack->now);
    return 0;
}

static int guard_tostring(lua_State *L) {
    const guard *g = luaL_checkudata(L, 1, guard_name);
    lua_pushfstring(L, "tide.%s: %s", g->name, g->open ? "on until closed" : "closed");
    return 1;
}

void tide_open_mode_stacks(lua_State *L) {
    luaL_newmetatable(L, guard_name);
    lua_pushcfunction(L, guard_tostring);
    lua_setfield(L, -2, "__tostring");
    lua_pushcfunction(L, guard_close);
    lua_setfield(L, -2, "__close");
    lua_pushcfunction(L, guard_gc);
    lua_setfield(L, -2, "__gc");
    lua_pushstring(L, guard_name);
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 1);
}
