/* origin.c: finds the running line from the engine's side, where no Lua state is at hand.
 *
 * Calls note nothing for it: they stay as cheap as they are. The state's main thread is known
 * instead; where its innermost frame resumes a coroutine, the search goes on in there.
 */
#include "lua-bindings/origin.h"

#include "engine/core/observer.h"
#include "lua-bindings/state.h"

#include <stdio.h>

enum { DEEPEST = 220 }; /* Lua nests no more resumes */

static _Thread_local char here;
static char *_Atomic asked; /* &here of the thread whose lines are wanted */
static lua_State *main_thread;

/* The coroutine that L waits for: what runs there has it as its first argument, as coroutine.resume
 * and those like it do. NULL: none. */
static lua_State *resumed_by(lua_State *L) {
    lua_Debug ar, inner;
    if (!lua_getstack(L, 0, &ar) || !lua_checkstack(L, 2) || !lua_getlocal(L, &ar, 1))
        return NULL;
    lua_State *co = lua_tothread(L, -1);
    lua_pop(L, 1);
    bool runs = co && co != L && lua_status(co) == LUA_OK && lua_getstack(co, 0, &inner);
    return runs ? co : NULL;
}

/* The innermost line; the resumer's where a coroutine runs none of the user's code. */
static bool find_line(lua_State *L, lua_Debug *ar, int depth) {
    lua_State *co = depth < DEEPEST ? resumed_by(L) : NULL;
    return (co && find_line(co, ar, depth + 1)) || tide_find_line(L, ar);
}

static void find_origin(td_origin *origin) {
    lua_Debug ar;
    if (atomic_load_explicit(&asked, memory_order_acquire) != &here ||
        !find_line(main_thread, &ar, 0))
        return;
    snprintf(origin->source, sizeof origin->source, "%s", ar.short_src);
    origin->line = ar.currentline;
}

void tide_origin_begin(lua_State *L) {
    lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
    main_thread = lua_tothread(L, -1);
    lua_pop(L, 1);
    atomic_store_explicit(&asked, &here, memory_order_release);
    atomic_store_explicit(&td_origin_current, find_origin, memory_order_release);
}

void tide_origin_end(void) {
    atomic_store_explicit(&td_origin_current, NULL, memory_order_release);
    atomic_store_explicit(&asked, NULL, memory_order_release);
}
