/* advise.c: see advise.h. What to say is found by the modules doubts and suggest; this file finds
 * out when to ask them, and says it on the error stream.
 */
#include "repl/session/advise.h"
#include "repl/session/control.h"
#include "repl/session/lex.h"
#include "repl/session/modules.h"
#include "repl/session/output.h"
#include "repl/session/source.h"
#include "repl/session/state.h"

#include <lauxlib.h>
#include <string.h>

static const char globals_key, told_key;

/* Says the text on top, a warning a line, and pops it. */
static void warn(lua_State *L) {
    tide_session *s = session_of(L);
    luaL_gsub(L, lua_tostring(L, -1), "\n", "\nwarning: ");
    lua_pushfstring(L, "warning: %s\n", lua_tostring(L, -1));
    output_write(s, TIDE_STDERR, lua_tostring(L, -1), lua_rawlen(L, -1));
    lua_pop(L, 3);
}

/* (code), of an input; (code, name), of a script. */
static int find_warnings(lua_State *L) {
    module_push_function(L, "doubts", lua_gettop(L) > 1 ? "script_warnings" : "warnings");
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, 1);
    if (lua_isstring(L, -1))
        warn(L);
    return 0;
}

/* Are there words that the module may warn of, or an index of what a call gives? */
static bool has_doubts(const char *code, size_t len) {
    static const char *const words[] = {"if",
                                        "while",
                                        "until",
                                        "and",
                                        "or",
                                        "not",
                                        "assert",
                                        "==",
                                        "~=",
                                        "no_grad",
                                        "enable_grad",
                                        "inference_mode",
                                        "autocast",
                                        "detect_anomaly",
                                        "saved_tensors_hooks",
                                        "device"};
    lexer lx = {code, len, 0};
    bool called = false;
    for (lex_token t = lex_next(&lx); t.kind != LEX_END; t = lex_next(&lx)) {
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            if (lex_is(&lx, t, words[i]))
                return true;
        if (called && lex_is(&lx, t, "["))
            return true;
        called = lex_is(&lx, t, ")");
    }
    return false;
}

void advise_input(lua_State *L, const char *code, size_t len) {
    if (!has_doubts(code, len))
        return;
    int top = lua_gettop(L);
    lua_pushcfunction(L, find_warnings);
    lua_pushlstring(L, code, len);
    if (lua_pcall(L, 1, 0, 0) != LUA_OK)
        control_let_stops_pass(L);
    lua_settop(L, top);
}

void advise_script(lua_State *L, const char *chunkname, const char *code, size_t len) {
    enum { MOST = 1 << 20 }; /* what a person writes is shorter */
    if (len > MOST || !has_doubts(code, len))
        return;
    int top = lua_gettop(L);
    lua_pushcfunction(L, find_warnings);
    lua_pushlstring(L, code, len);
    lua_pushstring(L, chunkname + 1);
    if (lua_pcall(L, 2, 0, 0) != LUA_OK)
        control_let_stops_pass(L);
    lua_settop(L, top);
}

static int find_missing(lua_State *L) {
    lua_Debug *ar = lua_touserdata(L, 2);
    module_push_function(L, "suggest", "missing");
    lua_pushvalue(L, 1);
    lua_pushstring(L, ar->source);
    lua_pushinteger(L, ar->currentline);
    lua_call(L, 3, 1);
    if (lua_isstring(L, -1))
        warn(L);
    return 0;
}

/* __index of the globals: nil, as ever. A name is looked into once. */
static int missing_global(lua_State *L) {
    lua_Debug ar;
    lua_settop(L, 2);
    session_mend_registry(L);
    if (lua_type(L, 2) != LUA_TSTRING || !lua_getstack(L, 1, &ar) || !lua_getinfo(L, "Sl", &ar) ||
        (strncmp(ar.source, "=In[", 4) != 0 && strcmp(ar.source, SOURCE_STDIN) != 0))
        return 0;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &told_key);
    lua_pushvalue(L, 2);
    if (lua_rawget(L, 3) != LUA_TNIL)
        return 0;
    lua_pushvalue(L, 2);
    lua_pushboolean(L, 1);
    lua_rawset(L, 3);
    lua_pushcfunction(L, find_missing);
    lua_pushvalue(L, 2);
    lua_pushlightuserdata(L, &ar);
    if (control_call_own(L, 2, 0) != LUA_OK)
        control_let_stops_pass(L);
    return 0;
}

void advise_globals(lua_State *L) {
    lua_newtable(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &told_key); /* of this input */
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &globals_key) == LUA_TNIL) {
        lua_pushboolean(L, 1);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &globals_key);
        lua_pushglobaltable(L);
        if (!lua_getmetatable(L, -1)) {
            lua_createtable(L, 0, 1);
            lua_pushcfunction(L, missing_global);
            lua_setfield(L, -2, "__index");
        }
        lua_setmetatable(L, -2);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}
