/* coroutines.c: coroutine.resume, wrap and close switch to the modes of the coroutine that they run
 * and back, so that a guard that is open while its coroutine waits is nobody else's.
 *
 * They call Lua's own functions in their very frame and need no upvalues of their own, so that
 * others may replace them in the same way in turn.
 */
#include "lua-bindings/recording/calltrace.h"
#include "lua-bindings/state/mode_stacks.h"
#include "lua-bindings/state/modes.h"

#include <lauxlib.h>
#include <lualib.h>
#include <stdatomic.h>

static const char installed_key = 0;
static _Atomic(lua_CFunction) original_resume, original_wrap, original_close;

static int switching_resume(lua_State *L) {
    lua_CFunction original = atomic_load_explicit(&original_resume, memory_order_relaxed);
    if (!lua_isthread(L, 1))
        return original(L); /* says what is wrong */
    tide_calltrace_follow(L, lua_tothread(L, 1));
    tide_mode_switch before = tide_modes_enter(L, 1);
    int n = original(L);
    tide_modes_leave(before);
    return n;
}

/* Runs the pending __close functions of the coroutine at `index`, which ended in an error; pushes
 * the error. */
static void close_failed(lua_State *L, lua_State *co, int index) {
    tide_mode_switch before = tide_modes_enter(L, index);
#if LUA_VERSION_RELEASE_NUM >= 50406
    int status = lua_closethread(co, L);
#elif LUA_VERSION_RELEASE_NUM == 50405 /* the only one whose function has this form */
    int status = lua_resetthread(co, L);
#else
    int status = lua_resetthread(co);
#endif
    tide_modes_leave(before);
    if (status != LUA_OK)
        lua_xmove(co, L, 1);
}

/* The function that coroutine.wrap returns; upvalue 1: the coroutine. An error passes on with the
 * place of the call in front of it. */
static int switching_wrapped(lua_State *L) {
    lua_State *co = lua_tothread(L, lua_upvalueindex(1));
    luaL_checkstack(L, 8, NULL);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    int n = switching_resume(L);
    if (lua_toboolean(L, -n))
        return n - 1;
    int status = lua_status(co);
    if (status > LUA_YIELD) /* else it could not be resumed at all */
        close_failed(L, co, lua_upvalueindex(1));
    if (status != LUA_ERRMEM && lua_type(L, -1) == LUA_TSTRING) {
        luaL_where(L, 1);
        lua_insert(L, -2);
        lua_concat(L, 2);
    }
    return lua_error(L);
}

static int switching_wrap(lua_State *L) {
    atomic_load_explicit(&original_wrap, memory_order_relaxed)(L);
    lua_getupvalue(L, -1, 1);
    lua_pushcclosure(L, switching_wrapped, 1);
    return 1;
}

static int switching_close(lua_State *L) {
    lua_CFunction original = atomic_load_explicit(&original_close, memory_order_relaxed);
    lua_State *co = lua_tothread(L, 1);
    if (!co || lua_status(co) == LUA_OK)
        return original(L); /* no pending __close, or an error */
    tide_mode_switch before = tide_modes_enter(L, 1);
    int n = original(L);
    tide_modes_leave(before);
    return n;
}

/* Replaces a function of the library on the top; others' Lua functions stay. */
static void replace(lua_State *L, const char *name, lua_CFunction function,
                    _Atomic(lua_CFunction) *original) {
    lua_getfield(L, -1, name);
    lua_CFunction there = lua_tocfunction(L, -1);
    lua_pop(L, 1);
    if (!there)
        return;
    atomic_store_explicit(original, there, memory_order_relaxed);
    lua_pushcfunction(L, function);
    lua_setfield(L, -2, name);
}

void tide_open_coroutines(lua_State *L) {
    int top = lua_gettop(L);
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &installed_key) == LUA_TNIL &&
        lua_getglobal(L, LUA_COLIBNAME) == LUA_TTABLE) {
        replace(L, "resume", switching_resume, &original_resume);
        replace(L, "wrap", switching_wrap, &original_wrap);
        replace(L, "close", switching_close, &original_close);
        lua_pushboolean(L, 1);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &installed_key);
    }
    lua_settop(L, top);
}
