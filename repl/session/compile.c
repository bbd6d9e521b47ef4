/* compile.c: an input may be an expression, statements, or statements that end in an expression:
 * compiled as the first of these that it is, or the reading that got furthest is complained about.
 */
#include "repl/session/compile.h"
#include "repl/session/lex.h"
#include "repl/session/syntax.h"

#include <lauxlib.h>
#include <string.h>

/* What makes an expression a chunk. With a variable to be closed the call is no tail call, so that
 * errors and tracebacks still know this line. */
#define AS_EXPRESSION "local _call <close> = nil return "

static int load_with(lua_State *L, const char *prefix, const char *code, size_t len,
                     const char *chunkname) {
    lua_pushstring(L, prefix);
    lua_pushlstring(L, code, len);
    lua_concat(L, 2);
    int status = luaL_loadbufferx(L, lua_tostring(L, -1), lua_rawlen(L, -1), chunkname, "t");
    lua_remove(L, -2);
    return status;
}

/* Statements that end in an expression, whose value is then the input's: the expression starts a
 * line or stands behind a semicolon. LUA_OK with the function pushed, or LUA_ERRSYNTAX with
 * nothing. */
static int load_ending(lua_State *L, const char *code, size_t len, const char *chunkname) {
    enum { CANDIDATES = 64 };
    size_t starts[CANDIDATES];
    int n = 0;
    lexer lx = {code, len, 0};
    lex_token last = lex_next(&lx);
    for (lex_token t = lex_next(&lx); t.kind != LEX_END; t = lex_next(&lx)) {
        if (lex_is(&lx, last, ";") || memchr(code + last.end, '\n', t.start - last.end))
            starts[n++ % CANDIDATES] = t.start;
        last = t;
    }
    for (int k = n - 1; k >= 0 && k >= n - CANDIDATES; k--) {
        size_t at = starts[k % CANDIDATES];
        int status = luaL_loadbufferx(L, code, at, chunkname, "t");
        lua_pop(L, 1);
        if (status != LUA_OK)
            continue;
        lua_pushlstring(L, code, at);
        lua_pushliteral(L, AS_EXPRESSION);
        lua_pushlstring(L, code + at, len - at);
        lua_concat(L, 3);
        status = luaL_loadbufferx(L, lua_tostring(L, -1), lua_rawlen(L, -1), chunkname, "t");
        lua_remove(L, -2);
        if (status == LUA_OK)
            return status;
        lua_pop(L, 1);
    }
    return LUA_ERRSYNTAX;
}

int compile_expression(lua_State *L, const char *code, size_t len, const char *chunkname,
                       const char **prefix) {
    *prefix = AS_EXPRESSION;
    return load_with(L, *prefix, code, len, chunkname);
}

int compile_input(lua_State *L, const char *code, size_t len, const char *chunkname,
                  const char **prefix) {
    luaL_checkstack(L, 8, NULL);
    int status = compile_expression(L, code, len, chunkname, prefix);
    if (status != LUA_ERRSYNTAX)
        return status;
    status = load_with(L, "", code, len, chunkname);
    if (status != LUA_ERRSYNTAX) {
        lua_remove(L, -2);
        *prefix = "";
        return status;
    }
    if (load_ending(L, code, len, chunkname) == LUA_OK) {
        lua_replace(L, -3);
        lua_pop(L, 1);
        *prefix = "";
        return LUA_OK;
    }
    /* None of these: the reading that got further is what was meant. */
    size_t as_statement = syntax_offset(L, code, len, "");
    lua_insert(L, -2);
    size_t as_expression = syntax_offset(L, code, len, AS_EXPRESSION);
    bool expression = as_expression != SYNTAX_NOWHERE && as_statement != SYNTAX_NOWHERE &&
                      as_expression > as_statement;
    if (!expression) {
        lua_insert(L, -2);
        *prefix = "";
    }
    lua_remove(L, -2);
    return status;
}
