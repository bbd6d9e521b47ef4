/* frames.c: see frames.h. Lua tells of a frame its line, and of the frame above how it was called:
 * where that name is called once in the line, the caret stands under it.
 */
#include "repl/session/frames.h"
#include "repl/session/lex.h"
#include "repl/session/scope.h"
#include "repl/session/source.h"

#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As luaL_traceback: of a deep stack the first and the last ones. */
enum { FIRST_LEVELS = 10, LAST_LEVELS = 11 };

#define NOWHERE ((size_t)-1)

/* ---- the name of a function ---- */

/* Pushes the name under which a loaded library has the function on top, "string.rep"; false. */
static bool push_library_name(lua_State *L) {
    int function = lua_gettop(L);
    lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    for (lua_pushnil(L); lua_next(L, function + 1); lua_pop(L, 1)) {
        if (!lua_istable(L, -1) || lua_type(L, -2) != LUA_TSTRING)
            continue;
        for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
            if (!lua_rawequal(L, -1, function) || lua_type(L, -2) != LUA_TSTRING)
                continue;
            bool global = strcmp(lua_tostring(L, -4), LUA_GNAME) == 0;
            lua_pushfstring(L, "%s%s%s", global ? "" : lua_tostring(L, -4), global ? "" : ".",
                            lua_tostring(L, -2));
            lua_replace(L, function + 1);
            lua_settop(L, function + 1);
            return true;
        }
    }
    lua_settop(L, function);
    return false;
}

/* Pushes "function 'f'", "method 'sum'", "main chunk". */
static void push_title(lua_State *L, lua_Debug *ar) {
    lua_getinfo(L, "f", ar);
    if (push_library_name(L)) {
        lua_pushfstring(L, "function '%s'", lua_tostring(L, -1));
        lua_remove(L, -2);
    } else if (*ar->what == 'm' || scope_is_input(L, -1)) {
        lua_pushliteral(L, "main chunk");
    } else if (*ar->namewhat != '\0') {
        lua_pushfstring(L, "%s '%s'", ar->namewhat, ar->name);
    } else if (*ar->what != 'C') {
        lua_pushfstring(L, "function <%s:%d>", ar->short_src, ar->linedefined);
    } else {
        lua_pushliteral(L, "?");
    }
    lua_remove(L, -2);
}

/* ---- the place in the line ---- */

/* The operator behind which a metamethod stands, or NULL. */
static const char *operator_of(const char *event) {
    static const char *const operators[][2] = {
        {"add", "+"},  {"sub", "-"},  {"mul", "*"},   {"div", "/"},  {"mod", "%"},
        {"pow", "^"},  {"unm", "-"},  {"idiv", "//"}, {"band", "&"}, {"bor", "|"},
        {"bxor", "~"}, {"shl", "<<"}, {"shr", ">>"},  {"bnot", "~"}, {"concat", ".."},
        {"len", "#"},  {"eq", "=="},  {"lt", "<"},    {"le", "<="},  {NULL, NULL}};
    for (int i = 0; operators[i][0]; i++)
        if (strcmp(operators[i][0], event) == 0)
            return operators[i][1];
    return NULL;
}

/* What to look for in a line: a name, called or not, or an operator. */
typedef struct target {
    const char *text;
    size_t len;
    bool called;
} target;

static bool begins_arguments(const lexer *lx, lex_token t) {
    return lex_is(lx, t, "(") || lex_is(lx, t, "{") || t.kind == LEX_STRING;
}

/* The one place in code where the target stands; NOWHERE: none, or several. */
static size_t find_target(const char *code, size_t len, const target *wanted) {
    lexer lx = {code, len, 0};
    size_t found = NOWHERE;
    for (lex_token t = lex_next(&lx), next; t.kind != LEX_END; t = next) {
        next = lex_next(&lx);
        if ((t.kind != LEX_NAME && t.kind != LEX_OP) || t.end - t.start != wanted->len ||
            memcmp(code + t.start, wanted->text, wanted->len) != 0 ||
            (wanted->called && !begins_arguments(&lx, next)))
            continue;
        if (found != NOWHERE)
            return NOWHERE;
        found = t.start;
    }
    return found;
}

/* The name in a message such as "attempt to index a nil value (field 'x')" or "tide has no 'x'";
 * else text is NULL. */
static target complained_about(const char *message) {
    target none = {NULL, 0, false};
    const char *quote = strchr(message, '\'');
    const char *end = quote ? strchr(quote + 1, '\'') : NULL;
    return end ? (target){quote + 1, (size_t)(end - quote - 1), false} : none;
}

/* What the frame at `level` was doing: calling the one above it; the first one, what is in the
 * message. */
static target target_of(lua_State *L, int level, int first, const char *message) {
    lua_Debug above;
    if (level == first)
        return complained_about(message);
    if (!lua_getstack(L, level - 1, &above) || !lua_getinfo(L, "nt", &above) || above.istailcall ||
        !above.name)
        return (target){NULL, 0, false};
    bool event = strcmp(above.namewhat, "metamethod") == 0;
    if (event && (strcmp(above.name, "index") == 0 || strcmp(above.name, "newindex") == 0))
        return complained_about(message);
    const char *text = event ? operator_of(above.name) : above.name;
    return (target){text, text ? strlen(text) : 0, !event};
}

/* Pushes the line of source that a frame is in, with a caret where that can be told; false: it is
 * not known. */
static bool push_source(lua_State *L, const lua_Debug *ar, const target *wanted) {
    if (ar->currentline <= 0 || !source_push(L, ar->source))
        return false;
    size_t len, start = 0;
    const char *code = lua_tolstring(L, -1, &len);
    for (int line = 1; line < ar->currentline; line++) {
        const char *newline = memchr(code + start, '\n', len - start);
        if (!newline) {
            lua_pop(L, 1);
            return false;
        }
        start = (size_t)(newline - code) + 1;
    }
    const char *newline = memchr(code + start, '\n', len - start);
    size_t end = newline ? (size_t)(newline - code) : len;
    while (start < end && (code[start] == ' ' || code[start] == '\t'))
        start++;
    size_t at = wanted->text ? find_target(code + start, end - start, wanted) : NOWHERE;
    source_push_line(L, code + start, end - start, at);
    lua_remove(L, -2);
    return true;
}

/* ---- the traceback ---- */

static void add_frame(lua_State *L, luaL_Buffer *out, lua_Debug *ar, const target *wanted,
                      bool shows_source) {
    if (ar->currentline <= 0)
        lua_pushfstring(L, "\n\t%s: in ", ar->short_src);
    else
        lua_pushfstring(L, "\n\t%s:%d: in ", ar->short_src, ar->currentline);
    luaL_addvalue(out);
    push_title(L, ar);
    luaL_addvalue(out);
    if (shows_source && push_source(L, ar, wanted)) {
        lua_pushliteral(L, "\n");
        lua_insert(L, -2);
        lua_concat(L, 2);
        luaL_addvalue(out);
    }
    if (ar->istailcall)
        luaL_addstring(out, "\n\t(...tail calls...)");
}

/* Behind a place "NAME:LINE: " that a text has within its first line, how long NAME is, and LINE;
 * NULL: there is none. */
static const char *behind_place(const char *text, size_t *name_len, int *line) {
    for (const char *colon = text; *colon && *colon != '\n'; colon++) {
        if (*colon != ':')
            continue;
        size_t digits = strspn(colon + 1, "0123456789");
        if (digits == 0 || digits > 7 || strncmp(colon + 1 + digits, ": ", 2) != 0)
            continue;
        *name_len = (size_t)(colon - text);
        *line = (int)strtol(colon + 1, NULL, 10);
        return colon + 1 + digits + 2;
    }
    return NULL;
}

/* A call of a graph has one frame, of C. What failed in it says where by its message, "PLACE of the
 * call: FUNCTION: PLACE: OPERATOR: ...": the frame that a call of the function itself would have.
 */
static void add_scripted_frame(lua_State *L, luaL_Buffer *out, int level, const char *message) {
    lua_Debug ar;
    size_t len;
    int line;
    const char *name = behind_place(message, &len, &line);
    const char *op = name ? behind_place(name, &len, &line) : NULL;
    const char *place = op ? strstr(name, ": ") : NULL;
    if (!place || place + 2 > name + len || !lua_getstack(L, level, &ar) ||
        !lua_getinfo(L, "S", &ar) || *ar.what != 'C')
        return;
    char function[64], source[512], operator[64];
    bool file = strncmp(place + 2, "In[", 3) != 0 && strncmp(place + 2, "stdin:", 6) != 0;
    snprintf(function, sizeof function, "%.*s", (int)(place - name), name);
    snprintf(source, sizeof source, "%c%.*s", file ? '@' : '=', (int)(name + len - place - 2),
             place + 2);
    snprintf(operator, sizeof operator, "%.*s", (int)strcspn(op, ":"), op);
    const char *sign = operator_of(operator);
    target wanted = {sign ? sign : operator, strlen(sign ? sign : operator), !sign};
    ar = (lua_Debug){.source = source, .currentline = line};
    if (!push_source(L, &ar, &wanted))
        return;
    lua_pushfstring(L, "\n\t%s:%d: in scripted function '%s'\n%s", source + 1, line, function,
                    lua_tostring(L, -1));
    lua_remove(L, -2);
    luaL_addvalue(out);
}

static int count_levels(lua_State *L) {
    lua_Debug ar;
    int low = 0, high = 1;
    while (lua_getstack(L, high, &ar)) {
        low = high;
        high *= 2;
    }
    while (low + 1 < high) {
        int middle = (low + high) / 2;
        if (lua_getstack(L, middle, &ar))
            low = middle;
        else
            high = middle;
    }
    return high;
}

int frames_traceback(lua_State *L) {
    enum { FIRST = 2 }; /* this function, and the handler */
    const char *message = lua_type(L, 1) == LUA_TSTRING ? lua_tostring(L, 1) : "";
    luaL_checkstack(L, 16, NULL);
    luaL_Buffer out;
    luaL_buffinit(L, &out);
    luaL_addstring(&out, "stack traceback:");
    int levels = count_levels(L);
    lua_Debug ar = {.currentline = -1};
    add_scripted_frame(L, &out, FIRST, message);
    for (int level = FIRST; lua_getstack(L, level, &ar); level++) {
        if (level == FIRST + FIRST_LEVELS && levels - level > LAST_LEVELS) {
            int skipped = levels - level - LAST_LEVELS;
            lua_pushfstring(L, "\n\t...\t(skipping %d levels)", skipped);
            luaL_addvalue(&out);
            level += skipped - 1;
            continue;
        }
        int line_above = ar.currentline, function_above = ar.linedefined;
        lua_getinfo(L, "Slnt", &ar);
        target wanted = target_of(L, level, FIRST, message);
        bool again = level > FIRST && ar.currentline == line_above &&
                     ar.linedefined == function_above; /* a recursion, mostly */
        add_frame(L, &out, &ar, &wanted, !again);
    }
    luaL_pushresult(&out);
    return 1;
}
