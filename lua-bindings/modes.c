/* modes.c: no_grad, enable_grad, set_grad_enabled: as `local _ <close> = tide.no_grad()` and as
 * `tide.no_grad(fn)`.
 *
 * Each coroutine has a stack of the guards that it opened, in a table with weak keys. A guard
 * changes the modes of its own coroutine alone, whoever closes or collects it, and may be closed
 * out of order: those above it are applied anew to what was below it. coroutines.c switches between
 * stacks.
 */
#include "lua-bindings/modes.h"

#include "lua-bindings/function.h"
#include "lua-bindings/modules.h"

#include <stdatomic.h>

static const char *const guard_name = "tide.mode";
static const char stacks_key = 0;

typedef struct tide_mode_stack mode_stack;

typedef struct guard {
    struct guard *below, *above;
    mode_stack *stack; /* the guard's user value keeps it */
    td_modes before;   /* modes below this guard */
    void (*apply)(td_modes *modes, int value);
    int value;
    bool open;
} guard;

struct tide_mode_stack {
    guard *top;
    td_modes now;
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

tide_mode_switch tide_modes_enter(lua_State *L, int coroutine) {
    tide_mode_switch before = {.modes = td_get_modes()};
    if (!atomic_load_explicit(&guards_open, memory_order_relaxed) || !lua_checkstack(L, 8))
        return before;
    push_stacks(L);
    lua_pushthread(L);
    mode_stack *own = find_stack(L);
    before.own = own && own->top ? own : NULL;
    lua_pushvalue(L, coroutine);
    mode_stack *theirs = find_stack(L);
    if (theirs && theirs->top)
        td_set_modes(theirs->now);
    lua_pop(L, 1);
    return before;
}

void tide_modes_leave(tide_mode_switch before) {
    td_set_modes(before.own ? before.own->now : before.modes);
}

/* ---- guards ---- */

static guard *push_guard(lua_State *L, void (*apply)(td_modes *, int), int value) {
    mode_stack *stack = push_own_stack(L);
    guard *g = lua_newuserdatauv(L, sizeof *g, 1);
    *g = (guard){.stack = stack, .apply = apply, .value = value};
    lua_insert(L, -2);
    lua_setiuservalue(L, -2, 1);
    luaL_setmetatable(L, guard_name);
    if (!stack->top)
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
    return g;
}

/* Take a guard out of its stack; what those above it asked for is applied to what was below it. */
static void take_out(mode_stack *stack, guard *gone) {
    td_modes modes = gone->before;
    if (gone->below)
        gone->below->above = gone->above;
    if (gone->above)
        gone->above->below = gone->below;
    else
        stack->top = gone->below;
    for (guard *g = gone->above; g; g = g->above) {
        g->before = modes;
        g->apply(&modes, g->value);
    }
    stack->now = modes;
}

/* __close and __gc. */
static int guard_close(lua_State *L) {
    guard *g = luaL_checkudata(L, 1, guard_name);
    if (!g->open)
        return 0;
    mode_stack *stack = g->stack;
    g->open = false;
    atomic_fetch_sub_explicit(&guards_open, 1, memory_order_relaxed);
    take_out(stack, g);
    luaL_checkstack(L, 8, NULL);
    push_stacks(L);
    lua_pushthread(L);
    if (find_stack(L) == stack)
        td_set_modes(stack->now);
    return 0;
}

/* ---- functions ---- */

static int finish_run(lua_State *L, int status, lua_KContext index) {
    (void)status;
    return lua_gettop(L) - (int)index;
}

/* Run the function at `index` with the arguments above it under a mode, or return the guard where
 * there is none. The guard is closed on the way out, by an error too; the function may yield. */
static int enter(lua_State *L, int index, void (*apply)(td_modes *, int), int value) {
    if (lua_isnoneornil(L, index)) {
        push_guard(L, apply, value);
        return 1;
    }
    int nargs = lua_gettop(L) - index;
    push_guard(L, apply, value);
    lua_insert(L, index);
    lua_toclose(L, index);
    lua_callk(L, nargs, LUA_MULTRET, index, finish_run);
    return finish_run(L, LUA_OK, index);
}

static void apply_grad(td_modes *modes, int enabled) {
    modes->grad_disabled = !enabled;
}

static int no_grad(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    return enter(L, 1, apply_grad, false);
}

static int enable_grad(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    return enter(L, 1, apply_grad, true);
}

static int set_grad_enabled(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    return enter(L, 2, apply_grad, f.args[0].b);
}

static int is_grad_enabled(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    lua_pushboolean(L, td_grad_enabled());
    return 1;
}

void tide_open_modes(lua_State *L) {
    static const tide_function functions[] = {
        {"no_grad(function? fn=nil, ...) -> any",
         "Run fn without recording for backward; or `local _ <close> = tide.no_grad()` to the end "
         "of the block.",
         no_grad},
        {"enable_grad(function? fn=nil, ...) -> any", "Record again, inside a no_grad.",
         enable_grad},
        {"set_grad_enabled(bool enabled, function? fn=nil, ...) -> any",
         "no_grad or enable_grad, as the flag says.", set_grad_enabled},
        {"is_grad_enabled() -> bool", "Are operators recorded for backward?", is_grad_enabled},
        {NULL, NULL, NULL},
    };
    luaL_newmetatable(L, guard_name);
    lua_pushcfunction(L, guard_close);
    lua_setfield(L, -2, "__close");
    lua_pushcfunction(L, guard_close);
    lua_setfield(L, -2, "__gc");
    lua_pushstring(L, guard_name);
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 1);
    tide_declare(L, functions);
    tide_open_coroutines(L);
}
