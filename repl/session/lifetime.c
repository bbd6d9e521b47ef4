/* lifetime.c: birth and death of a session: the one file here that knows every part of it. */
#include "repl/session/ask.h"
#include "repl/session/assist.h"
#include "repl/session/comm.h"
#include "repl/session/commands.h"
#include "repl/session/control.h"
#include "repl/session/display.h"
#include "repl/session/history.h"
#include "repl/session/library.h"
#include "repl/session/magic.h"
#include "repl/session/modules.h"
#include "repl/session/output.h"
#include "repl/session/programs.h"
#include "repl/session/scope.h"
#include "repl/session/source.h"
#include "repl/session/state.h"
#include "repl/session/text.h"
#include "repl/session/timing.h"

#include "lua-bindings/tide_lua.h"

#include "engine/core/device.h"
#include "engine/core/version.h"

#include <lauxlib.h>
#include <stdlib.h>

static const magic *const magics[] = {&magic_lsmagic, &magic_time, &magic_timeit, &magic_flood,
                                      NULL};

/* Everything that may raise a Lua error while a session is made. */
static int prepare(lua_State *L) {
    tide_session *s = lua_touserdata(L, 1);
    session_bind(L, s);
    control_install(s);
    programs_install(s->L);
    library_install(L);
    source_install(L);
    if (output_install(s) != 0)
        return luaL_error(L, "out of memory");
    scope_install(L);
    modules_install(L);
    assist_install(L);
    commands_install(L);
    lua_pop(L, 1);
    lua_getglobal(L, "require");
    lua_pushliteral(L, "tide");
    lua_call(L, 1, 1);
    if (lua_istable(L, -1)) {
        display_install(L);
        ask_install(L);
        commands_install_tide(L);
        comm_install(L);
        modules_set_tide(L);
    }
    lua_setglobal(L, "tide");
    session_keep_registry(L);
    return 1; /* stays on the stack */
}

tide_session *tide_session_new(const tide_frontend *frontend) {
    tide_session *s = calloc(1, sizeof *s);
    if (!s) {
        fputs("tide: out of memory\n", stderr);
        return NULL;
    }
    s->frontend = *frontend;
    s->count = 1;
    s->magics = magics;
    s->magic_line = magic_call_line;
    s->history = history_new();
    s->L = tide_lua_new();
    const char *failure = s->L && s->history ? NULL : "out of memory";
    if (!failure) {
        lua_pushcfunction(s->L, prepare);
        lua_pushlightuserdata(s->L, s);
        if (lua_pcall(s->L, 1, 1, 0) != LUA_OK) {
            failure = lua_tostring(s->L, -1);
            failure = failure ? failure : "the session could not start";
        }
    }
    if (failure) {
        fprintf(stderr, "tide: %s\n", failure);
        tide_session_free(s);
        return NULL;
    }
    return s;
}

void tide_session_free(tide_session *s) {
    if (!s)
        return;
    if (s->L)
        tide_lua_close(s->L);
    td_devices_stop();
    output_free(s);
    assist_free(s);
    text_free(s);
    history_free(s->history);
    free(s);
}

const char *tide_session_version(void) {
    return td_version();
}

lua_State *tide_session_lua(tide_session *s) {
    return s->L;
}

tide_frontend *tide_session_frontend(tide_session *s) {
    return &s->frontend;
}

bool tide_session_push_tide(lua_State *L) {
    return module_push_tide(L);
}

int tide_session_count(const tide_session *s) {
    return s->count;
}
