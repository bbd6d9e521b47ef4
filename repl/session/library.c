/* library.c: functions of Lua's library that take long in one piece without allocating, written
 * anew so that an interrupt stops them. They do what the manual says of Lua's own.
 */
#include "repl/session/library.h"

#include "engine/core/interrupt.h"

#include <lauxlib.h>
#include <limits.h>
#include <string.h>

static void poll(lua_State *L) {
    if (td_interrupt_requested())
        luaL_error(L, "interrupted");
}

/* Repeats the first `unit` bytes of `to` until there are `total`: in pieces that are whole units.
 */
static void repeat(lua_State *L, char *to, size_t unit, size_t total) {
    enum { PIECE = 1 << 20 };
    size_t most = unit < PIECE ? PIECE / unit * unit : unit;
    for (size_t done = unit; done < total;) {
        size_t n = done < most ? done : most;
        if (n > total - done)
            n = total - done;
        memcpy(to + done, to, n);
        done += n;
        poll(L);
    }
}

/* string.rep(s, n [, sep]) */
static int string_rep(lua_State *L) {
    size_t len, sep_len;
    const char *s = luaL_checklstring(L, 1, &len);
    lua_Integer n = luaL_checkinteger(L, 2);
    const char *sep = luaL_optlstring(L, 3, "", &sep_len);
    size_t unit, total;
    if (n <= 0 || len + sep_len == 0) {
        lua_pushliteral(L, "");
        return 1;
    }
    if (__builtin_add_overflow(len, sep_len, &unit) ||
        __builtin_mul_overflow(unit, (size_t)n, &total) || total > INT_MAX)
        return luaL_error(L, "resulting string too large");
    total -= sep_len;
    luaL_Buffer buffer;
    char *to = luaL_buffinitsize(L, &buffer, total);
    memcpy(to, s, len);
    if (n > 1) {
        memcpy(to + len, sep, sep_len);
        repeat(L, to, unit, total);
    }
    luaL_pushresultsize(&buffer, total);
    return 1;
}

void library_install(lua_State *L) {
    lua_getglobal(L, "string");
    lua_pushcfunction(L, string_rep);
    lua_setfield(L, -2, "rep");
    lua_pop(L, 1);
}
