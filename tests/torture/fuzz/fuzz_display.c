/* fuzz_display.c: values that hold any bytes, as the prompt shows them: UTF-8 always, strings on
 * one line and such that Lua reads them back. */
#include "tests/torture/fuzz/bytes.h"

#include "repl/session/session.h"

#include <lauxlib.h>
#include <string.h>

static void check_text(tide_session *s, const char *expression, bool quoted) {
    tide_result r;
    tide_session_expression(s, expression, strlen(expression), &r);
    HOLDS(r.outcome == TIDE_OK && r.value.n > 0);
    const char *text = r.value.entries[0].data;
    size_t len = r.value.entries[0].len;
    HOLDS(bytes_is_utf8(text, len));
    if (quoted) {
        lua_State *L = tide_session_lua(s);
        HOLDS(!memchr(text, '\n', len) && !memchr(text, '\r', len));
        lua_pushliteral(L, "return ");
        lua_pushlstring(L, text, len);
        lua_concat(L, 2);
        HOLDS(luaL_dostring(L, lua_tostring(L, -1)) == LUA_OK);
        lua_getglobal(L, "S");
        HOLDS(lua_rawequal(L, -1, -2));
        lua_pop(L, 3);
    }
    tide_result_clear(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tide_session *s = bytes_session();
    lua_State *L = tide_session_lua(s);
    lua_pushlstring(L, size ? (const char *)data : "", size);
    lua_setglobal(L, "S");
    check_text(s, "S", true);
    check_text(s, "{S, [S] = S, {S}}", false);
    check_text(s, "setmetatable({}, {__name = S})", false);
    return 0;
}
