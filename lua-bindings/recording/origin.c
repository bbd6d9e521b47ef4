/* origin.c: finds the running line for a recording, which knows the state and not who runs in it.
 *
 * Calls note nothing for it: they stay as cheap as they are. The state's main thread is asked;
 * where its innermost frame resumes a coroutine, the search goes on in there.
 */
#include "lua-bindings/recording/origin.h"

#include "engine/core/observer.h"
#include "lua-bindings/state/state.h"

#include <string.h>

enum { DEEPEST = 220 }; /* Lua nests no more resumes */

/* What runs there has it as its first argument, as coroutine.resume
 * and those like it do. */
lua_State *tide_resumed_by(lua_State *L) {
    lua_Debug ar, inner;
    if (!lua_getstack(L, 0, &ar) || !lua_checkstack(L, 2) || !lua_getlocal(L, &ar, 1))
        return NULL;
    lua_State *co = lua_tothread(L, -1);
    lua_pop(L, 1);
    bool runs = co && co != L && lua_status(co) == LUA_OK && lua_getstack(co, 0, &inner);
    return runs ? co : NULL;
}

lua_State *tide_running_coroutine(lua_State *L) {
    lua_State *co;
    for (int depth = 0; depth < DEEPEST && (co = tide_resumed_by(L)); depth++)
        L = co;
    return L;
}

/* The innermost line; the resumer's where a coroutine runs none of the user's code. */
static bool find_line(lua_State *L, lua_Debug *ar, int depth) {
    lua_State *co = depth < DEEPEST ? tide_resumed_by(L) : NULL;
    return (co && find_line(co, ar, depth + 1)) || tide_find_line(L, ar);
}

void tide_find_origin(void *main_thread, td_origin *origin) {
    lua_Debug ar;
    if (!find_line(main_thread, &ar, 0))
        return;
    size_t len = strnlen(ar.short_src, sizeof origin->source - 1);
    memcpy(origin->source, ar.short_src, len);
    origin->source[len] = '\0';
    origin->line = ar.currentline;
}
