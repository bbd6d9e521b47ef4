/* states.c: what a target needs that reads through a Lua state or a session; see bytes.h. */
#include "tests/torture/fuzz/bytes.h"

#include "lua-bindings/tide_lua.h"
#include "repl/session/session.h"

#include <jansson.h>
#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the states hold is seen by the leak sanitizer at the end alone, when they have gone. */
static lua_State *state;
static tide_session *session;

static void close_states(void) {
    if (state)
        tide_lua_close(state);
    if (session)
        tide_session_free(session);
}

static lua_State *start(const char *code) {
    lua_State *L = tide_lua_new();
    HOLDS(L && atexit(close_states) == 0);
    if (luaL_dostring(L, "tide = require 'tide'") || luaL_dostring(L, code)) {
        fprintf(stderr, "%s\n", lua_tostring(L, -1));
        abort();
    }
    return L;
}

void bytes_call_lua(const char *code, const uint8_t *data, size_t size, int choice) {
    lua_State *L = state = state ? state : start(code);
    lua_pushvalue(L, 1);
    lua_pushlstring(L, (const char *)data, size);
    lua_pushinteger(L, choice);
    if (lua_pcall(L, 2, 0, 0) != LUA_OK) {
        fprintf(stderr, "%s\n", lua_tostring(L, -1));
        abort();
    }
}

static const char load_code[] =
    "local draft = os.tmpname()\n"
    "local function use(x, seen)\n"
    "    if type(x) == 'table' and not seen[x] then\n"
    "        seen[x] = true\n"
    "        for key, value in pairs(x) do use(key, seen) use(value, seen) end\n"
    "    elseif tide.is_tensor(x) and x:numel() < 100000 then\n" /* a stride of 0 makes many of one
                                                                  */
    "        x:detach():to_dense():sum()\n"
    "    end\n"
    "end\n"
    "return function(path, choice)\n"
    "    local ok, got = pcall(tide.load, path, {map = choice % 2 == 0})\n"
    "    if ok then\n"
    "        use(got, {})\n"
    "        if choice > 250 then pcall(tide.save, got, draft) end\n"
    "    else\n"
    "        assert(got:find('load: ', 1, true) and not got:find('\\n'), got)\n"
    "    end\n"
    "    os.remove(draft)\n"
    "end\n";

void bytes_load(const uint8_t *data, size_t size, int choice) {
    const char *path = bytes_file(data, size);
    bytes_call_lua(load_code, (const uint8_t *)path, strlen(path), choice);
}

struct tide_session *bytes_session(void) {
    static const tide_frontend quiet;
    if (!session) {
        session = tide_session_new(&quiet);
        HOLDS(session && atexit(close_states) == 0);
    }
    return session;
}

bool bytes_is_utf8(const char *text, size_t len) {
    json_t *value = json_stringn(text, len);
    json_decref(value);
    return value != NULL;
}
