/* commands.c: see commands.h. The magics themselves are in lua/magics.lua. */
#include "repl/session/commands.h"
#include "repl/session/capture.h"
#include "repl/session/compile.h"
#include "repl/session/control.h"
#include "repl/session/display.h"
#include "repl/session/errors.h"
#include "repl/session/magic.h"
#include "repl/session/modules.h"
#include "repl/session/output.h"
#include "repl/session/remember.h"
#include "repl/session/scope.h"
#include "repl/session/state.h"
#include "repl/session/syntax.h"

#include "lua-bindings/call/function.h"

#include <errno.h>
#include <lauxlib.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* write(text): to the standard output, among what print writes. */
static int write_text(lua_State *L) {
    size_t len;
    const char *text = luaL_checklstring(L, 1, &len);
    output_write(session_of(L), TIDE_STDOUT, text, len);
    return 0;
}

/* working_directory(): its path, or nil and what is wrong. */
static int working_directory(lua_State *L) {
    char path[PATH_MAX];
    if (getcwd(path, sizeof path)) {
        lua_pushstring(L, path);
        return 1;
    }
    lua_pushnil(L);
    lua_pushfstring(L, "the working directory is not known: %s", strerror(errno));
    return 2;
}

/* change_directory(path): nothing, or what is wrong. */
static int change_directory(lua_State *L) {
    const char *path = luaL_checkstring(L, 1);
    if (chdir(path) == 0)
        return 0;
    lua_pushfstring(L, "%s: %s", path, strerror(errno));
    return 1;
}

/* set_environment(name, value): nothing, or what is wrong. */
static int set_environment(lua_State *L) {
    if (setenv(luaL_checkstring(L, 1), luaL_checkstring(L, 2), 1) == 0)
        return 0;
    lua_pushstring(L, strerror(errno));
    return 1;
}

/* apart(function, ...): calls it; the code of os.exit, where that ended it. */
static int run_apart(lua_State *L) {
    int code;
    lua_pushcfunction(L, error_handler);
    lua_insert(L, 1);
    if (lua_pcall(L, lua_gettop(L) - 2, 0, 1) == LUA_OK)
        return 0;
    if (!control_catch_exit(session_of(L), &code))
        return error_pass(L);
    lua_pushinteger(L, code);
    return 1;
}

/* without_magics(code): the code with its magics as comments, or nil where all of it is one. */
static int without_magics(lua_State *L) {
    size_t len;
    const char *code = luaL_checklstring(L, 1, &len);
    magic_push_script(L, code, len);
    return 1;
}

static int forget_locals(lua_State *L) {
    scope_clear(L);
    return 0;
}

/* compile(code, chunkname): a function, whose lines may be magics and whose top-level locals stay
 * in sight; raises syntax errors. */
static int compile_code(lua_State *L) {
    size_t len;
    const char *code = luaL_checklstring(L, 1, &len), *prefix;
    const char *chunkname = luaL_checkstring(L, 2);
    if (magic_push_rewritten(L, code, len))
        code = lua_tolstring(L, -1, &len);
    int status = compile_input(L, code, len, chunkname, true, &prefix);
    if (status == LUA_ERRSYNTAX)
        return syntax_raise(L, code, len, prefix);
    return status == LUA_OK ? 1 : lua_error(L);
}

/* is_input(function): is it what an input became? */
static int is_input(lua_State *L) {
    lua_pushboolean(L, scope_is_input(L, 1));
    return 1;
}

void commands_install(lua_State *L) {
    static const luaL_Reg functions[] = {{"write", write_text},
                                         {"working_directory", working_directory},
                                         {"change_directory", change_directory},
                                         {"set_environment", set_environment},
                                         {"apart", run_apart},
                                         {"without_magics", without_magics},
                                         {"begin_capture", capture_begin},
                                         {"show", display_show},
                                         {"show_text", display_show_text},
                                         {"remembered", remember_tables},
                                         {"forget_locals", forget_locals},
                                         {"compile", compile_code},
                                         {"is_input", is_input},
                                         {NULL, NULL}};
    luaL_setfuncs(L, functions, 0);
}

/* tide.magic.register(name, function (arguments, body) [, doc]) */
static int register_magic(lua_State *L) {
    lua_settop(L, 3);
    module_push_function(L, "magics", "register");
    lua_insert(L, 1);
    lua_call(L, 3, 0);
    return 0;
}

/* tide.breakpoint() */
static int breakpoint(lua_State *L) {
    lua_settop(L, 0);
    module_push_function(L, "debugger", "breakpoint");
    lua_call(L, 0, 0);
    return 0;
}

void commands_install_tide(lua_State *L) {
    lua_pushliteral(L, "breakpoint");
    lua_pushcfunction(L, breakpoint);
    lua_rawset(L, -3);
    lua_pushliteral(L, "magic");
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, register_magic);
    tide_document(L, -1, "register", "register(str name, function fn, str? doc=nil)",
                  "A magic of one's own: %name ARGUMENTS calls fn(arguments, body), body being the "
                  "lines below %%name.");
    lua_setfield(L, -2, "register");
    tide_document(L, -1, "magic", "tide.magic",
                  "Commands of the session (%lsmagic): register(name, fn, doc) adds one.");
    lua_rawset(L, -3);
}
