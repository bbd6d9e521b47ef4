/* compile.c: an input may be an expression, statements, or statements that end in an expression:
 * compiled as the first of these that it is, or the reading that got furthest is complained about.
 * A call at the end of statements is Lua's statement and the input's value.
 */
#include "repl/session/compile.h"
#include "repl/session/scope.h"
#include "repl/session/statements.h"
#include "repl/session/syntax.h"

#include <lauxlib.h>
#include <string.h>

/* Pushes the chunk that code is with a prefix, or the message. */
static int load_with(lua_State *L, const char *prefix, const char *code, size_t len,
                     const char *chunkname) {
    lua_pushstring(L, prefix);
    lua_pushlstring(L, code, len);
    lua_concat(L, 2);
    int status = luaL_loadbufferx(L, lua_tostring(L, -1), lua_rawlen(L, -1), chunkname, "t");
    lua_remove(L, -2);
    return status;
}

/* Replaces the chunk on top by the one that sees the scope. */
static int load_in_scope(lua_State *L, const scope_input *input, const char *chunkname) {
    lua_pop(L, 1);
    return scope_load(L, input, chunkname);
}

static statement last_statement(const char *code, size_t len) {
    statement_reader r;
    statement_reader_init(&r, code, len);
    statement last = {.kind = STATEMENT_END}, st;
    while ((st = statement_next(&r)).kind != STATEMENT_END)
        last = st;
    return last;
}

/* Does code become a chunk when the value of what begins at `at` is returned? */
static bool gives_value(lua_State *L, const char *code, size_t len, size_t at) {
    bool gives = luaL_loadbufferx(L, code, at, "=", "t") == LUA_OK;
    lua_pop(L, 1);
    if (gives) {
        gives = load_with(L, SCOPE_AS_VALUE, code + at, len - at, "=") == LUA_OK;
        lua_pop(L, 1);
    }
    return gives;
}

int compile_expression(lua_State *L, const char *code, size_t len, const char *chunkname,
                       const char **prefix) {
    luaL_checkstack(L, 8, NULL);
    *prefix = SCOPE_AS_VALUE;
    int status = load_with(L, *prefix, code, len, chunkname);
    scope_input input = {code, len, 0, false};
    return status == LUA_OK ? load_in_scope(L, &input, chunkname) : status;
}

/* Statements: their last one, if it is a call, gives the value. */
static int load_statements(lua_State *L, const char *code, size_t len, const char *chunkname,
                           bool keeps) {
    scope_input input = {code, len, SCOPE_NO_VALUE, keeps};
    statement last = last_statement(code, len);
    if (last.kind == STATEMENT_EXPRESSION && gives_value(L, code, len, last.start)) {
        input.value_at = last.start;
        if (scope_load(L, &input, chunkname) == LUA_OK)
            return LUA_OK;
        lua_pop(L, 1); /* a goto that no value may stand behind */
        input.value_at = SCOPE_NO_VALUE;
    }
    return scope_load(L, &input, chunkname);
}

/* Statements that end in an expression that is no statement. LUA_OK with the function pushed, or
 * LUA_ERRSYNTAX with nothing. */
static int load_ending(lua_State *L, const char *code, size_t len, const char *chunkname,
                       bool keeps) {
    statement last = last_statement(code, len);
    if (last.kind != STATEMENT_EXPRESSION || !last.apart || !gives_value(L, code, len, last.start))
        return LUA_ERRSYNTAX;
    scope_input input = {code, len, last.start, keeps};
    int status = scope_load(L, &input, chunkname);
    if (status == LUA_ERRSYNTAX)
        lua_pop(L, 1);
    return status;
}

int compile_input(lua_State *L, const char *code, size_t len, const char *chunkname, bool keeps,
                  const char **prefix) {
    luaL_checkstack(L, 8, NULL);
    int status = compile_expression(L, code, len, chunkname, prefix);
    if (status != LUA_ERRSYNTAX)
        return status;
    status = load_with(L, "", code, len, chunkname);
    if (status != LUA_ERRSYNTAX) {
        lua_pop(L, 2);
        *prefix = "";
        return load_statements(L, code, len, chunkname, keeps);
    }
    if (load_ending(L, code, len, chunkname, keeps) == LUA_OK) {
        lua_replace(L, -3);
        lua_pop(L, 1);
        *prefix = "";
        return LUA_OK;
    }
    /* None of these: the reading that got further is what was meant. */
    size_t as_statement = syntax_offset(L, code, len, "");
    lua_insert(L, -2);
    size_t as_expression = syntax_offset(L, code, len, SCOPE_AS_VALUE);
    bool expression = as_expression != SYNTAX_NOWHERE && as_statement != SYNTAX_NOWHERE &&
                      as_expression > as_statement;
    if (!expression) {
        lua_insert(L, -2);
        *prefix = "";
    }
    lua_remove(L, -2);
    return status;
}
