/* syntax.c: see syntax.h. The compiler names a line and a token; the place is where it stumbles
 * over that token again when the code ends there.
 */
#include "repl/session/syntax.h"
#include "repl/session/lex.h"
#include "repl/session/scope.h"
#include "repl/session/source.h"

#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

static const char syntax_error_key;

int syntax_raise(lua_State *L, const char *code, size_t len, const char *prefix) {
    luaL_checkstack(L, 6, NULL);
    lua_createtable(L, 0, 3);
    lua_insert(L, -2);
    lua_setfield(L, -2, "message");
    lua_pushlstring(L, code, len);
    lua_setfield(L, -2, "code");
    lua_pushstring(L, prefix);
    lua_setfield(L, -2, "prefix");
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &syntax_error_key) != LUA_TTABLE) {
        lua_pop(L, 1);
        lua_newtable(L);
        lua_pushvalue(L, -1);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &syntax_error_key);
    }
    lua_setmetatable(L, -2);
    return lua_error(L);
}

bool syntax_is_error(lua_State *L, int idx) {
    if (!lua_getmetatable(L, idx))
        return false;
    bool is = lua_rawgetp(L, LUA_REGISTRYINDEX, &syntax_error_key) == LUA_TTABLE &&
              lua_rawequal(L, -1, -2);
    lua_pop(L, 2);
    return is;
}

/* Line of a message "chunk:LINE: what near 'token'", and its token; 0 when it has another form. */
static long parse_complaint(const char *message, const char **near) {
    const char *last = NULL;
    for (const char *at = message; (at = strstr(at, " near ")) != NULL; at++)
        last = at;
    *near = last ? last + strlen(" near ") : NULL;
    for (const char *at = message; (at = strchr(at, ':')) != NULL; at++) {
        char *end;
        long line = strtol(at + 1, &end, 10);
        if (end > at + 1 && *end == ':' && line > 0)
            return line;
    }
    return 0;
}

void syntax_name_magic(lua_State *L, const char *code, size_t len) {
    static const char rewritten[] = "'" SCOPE_MAGIC "'";
    const char *message = lua_tostring(L, -1), *near;
    long line = strstr(message, rewritten) ? parse_complaint(message, &near) : 0;
    const char *at = code, *end = code + len;
    for (; line > 1 && at; line--) {
        at = memchr(at, '\n', (size_t)(end - at));
        at = at ? at + 1 : NULL;
    }
    while (at && at < end && (*at == ' ' || *at == '\t'))
        at++;
    if (line != 1 || !at || at == end)
        return;
    lua_pushfstring(L, "'%c'", *at);
    luaL_gsub(L, message, rewritten, lua_tostring(L, -1));
    lua_replace(L, -3);
    lua_pop(L, 1);
}

/* Does the token read as the message writes it: 'text' or '<\195>'? */
static bool token_matches(const lexer *lx, lex_token t, const char *near) {
    size_t len = t.end - t.start, n = strlen(near);
    if (n < 2 || near[0] != '\'')
        return false;
    if (strncmp(near, "'<\\", 3) == 0)
        return len == 1 && (unsigned char)lx->code[t.start] == strtol(near + 3, NULL, 10);
    return n - 2 == len && memcmp(near + 1, lx->code + t.start, len) == 0;
}

/* Does the compiler stumble over the last token when code ends there? */
static bool stumbles_at_end(lua_State *L, const char *code, size_t len, const char *prefix) {
    lua_pushstring(L, prefix);
    lua_pushlstring(L, code, len);
    lua_concat(L, 2);
    int status = luaL_loadbufferx(L, lua_tostring(L, -1), lua_rawlen(L, -1), "=", "t");
    const char *message = status == LUA_ERRSYNTAX ? lua_tostring(L, -1) : "<eof>";
    const char *near;
    bool stumbles = status == LUA_ERRSYNTAX && parse_complaint(message, &near) > 0 && near &&
                    strcmp(near, "<eof>") != 0;
    lua_pop(L, 2);
    return stumbles;
}

size_t syntax_offset(lua_State *L, const char *code, size_t len, const char *prefix) {
    enum { TRIES = 50 };
    const char *near;
    long wanted = parse_complaint(lua_tostring(L, -1), &near);
    if (wanted == 0 || !near)
        return SYNTAX_NOWHERE;
    if (strcmp(near, "<eof>") == 0)
        return len;
    luaL_checkstack(L, 4, NULL);
    lexer lx = {code, len, 0};
    long line = 1;
    size_t counted = 0;
    int tries = 0;
    for (lex_token t = lex_next(&lx); t.kind != LEX_END && tries < TRIES; t = lex_next(&lx)) {
        for (; counted < t.end; counted++)
            line += code[counted] == '\n';
        if (line > wanted)
            break;
        if (line < wanted || !token_matches(&lx, t, near))
            continue;
        tries++;
        if (t.unfinished || stumbles_at_end(L, code, t.end, prefix))
            return t.start;
    }
    return SYNTAX_NOWHERE;
}

/* Pushes the line of code around the byte at offset, with a caret under it. */
static void push_caret(lua_State *L, const char *code, size_t len, size_t offset) {
    while (offset == len && offset > 0 && strchr(" \t\r\n", code[len - 1]))
        offset = --len;
    size_t start = offset, end = offset;
    while (start > 0 && code[start - 1] != '\n')
        start--;
    while (end < len && code[end] != '\n' && code[end] != '\r')
        end++;
    source_push_line(L, code + start, end - start, offset - start);
}

/* Pushes the code, the prefix and the message of an error object. */
static size_t push_fields(lua_State *L, int idx) {
    int top = lua_gettop(L);
    lua_getfield(L, idx, "code");
    lua_getfield(L, idx, "prefix");
    lua_getfield(L, idx, "message");
    size_t len;
    const char *code = lua_tolstring(L, top + 1, &len);
    return syntax_offset(L, code, len, lua_tostring(L, top + 2));
}

size_t syntax_error_offset(lua_State *L, int idx) {
    int top = lua_gettop(L);
    size_t offset = push_fields(L, lua_absindex(L, idx));
    lua_settop(L, top);
    return offset;
}

void syntax_push_parts(lua_State *L, int idx) {
    int top = lua_gettop(L);
    size_t len, offset = push_fields(L, lua_absindex(L, idx));
    const char *code = lua_tolstring(L, top + 1, &len);
    if (offset != SYNTAX_NOWHERE && len > 0)
        push_caret(L, code, len, offset);
    else
        lua_pushnil(L);
    lua_remove(L, top + 2);
    lua_remove(L, top + 1);
}
