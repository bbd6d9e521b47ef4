/* script.c: calls from the engine into Lua. */
#include "lua-bindings/state/script.h"

#include "lua-bindings/recording/origin.h"
#include "lua-bindings/state/mode_stacks.h"

static const char trampoline_key = 0;

tide_home *tide_script_enter(lua_State *L) {
    tide_home *before = tide_home_entered;
    tide_home *home = tide_home_entered = TIDE_STATE(L)->home;
    if (TD_UNLIKELY(atomic_load_explicit(&home->dropped, memory_order_relaxed) != NULL))
        tide_script_drain(L);
    return before;
}

void tide_script_leave(tide_home *before) {
    tide_home_entered = before;
}

typedef struct call {
    lua_CFunction body;
    void *ctx;
    tide_mode_switch modes;
} call;

static int trampoline(lua_State *L) {
    call *c = lua_touserdata(L, 1);
    luaL_checkstack(L, 20, NULL);
    c->modes = tide_modes_call(L);
    lua_pushlightuserdata(L, c->ctx);
    lua_replace(L, 1);
    return c->body(L);
}

static td_status call_in(tide_home *home, lua_CFunction body, void *ctx) {
    lua_State *L = tide_running_coroutine(home->main);
    if (!lua_checkstack(L, LUA_MINSTACK))
        return td_fail(TD_ENOMEM, "out of memory for a call of the script's function");
    call c = {.body = body, .ctx = ctx, .modes = {.modes = td_get_modes()}};
    td_observer *observer = td_observer_current;
    td_fail(TD_OK, "no error");
    lua_rawgetp(L, LUA_REGISTRYINDEX, &trampoline_key);
    lua_pushlightuserdata(L, &c);
    home->state->depth++;
    int failed = lua_pcall(L, 1, 0, 0);
    home->state->depth--;
    tide_modes_called(c.modes);
    td_observer_current = observer;
    return failed ? tide_home_note_error(L, home) : TD_OK;
}

td_status tide_script_call(const tide_anchor *anchor, lua_CFunction body, void *ctx) {
    tide_home *home = tide_anchor_home(anchor);
    if (!home->main)
        return td_fail(TD_EAUTOGRAD, "a function of a Lua state that is closed");
    if (home != tide_home_entered)
        return td_fail(TD_EAUTOGRAD, "a function of another Lua state");
    return call_in(home, body, ctx);
}

td_status tide_script_call_here(lua_CFunction body, void *ctx) {
    if (!tide_home_entered || !tide_home_entered->main)
        return td_fail(TD_EAUTOGRAD, "a function of a Lua state that is closed");
    return call_in(tide_home_entered, body, ctx);
}

void tide_open_script(lua_State *L) {
    tide_push_function(L, trampoline, 0);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &trampoline_key);
}
