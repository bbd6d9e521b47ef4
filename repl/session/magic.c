/* magic.c: the lines that begin with % or hold a question mark: found, rewritten, handed to the
 * magic that the session's table has under their name. What a magic does is its own business.
 */
#include "repl/session/magic.h"
#include "repl/session/lex.h"
#include "repl/session/modules.h"
#include "repl/session/output.h"
#include "repl/session/state.h"

#include <lauxlib.h>
#include <string.h>

/* ---- finding them ---- */

void magic_trim(const char **text, size_t *len) {
    while (*len > 0 && strchr(" \t\r\n", **text) && **text)
        (*text)++, (*len)--;
    while (*len > 0 && (*text)[*len - 1] && strchr(" \t\r\n", (*text)[*len - 1]))
        (*len)--;
}

static bool is_name_byte(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* A magic at the start of text: "%name rest of its line". */
static bool parse_line(const char *text, size_t len, magic_call *call) {
    size_t at = 1;
    if (len < 2 || text[0] != '%')
        return false;
    call->cell = text[1] == '%';
    at += call->cell;
    call->name = text + at;
    while (at < len && is_name_byte(text[at]))
        at++;
    call->name_len = (size_t)(text + at - call->name);
    const char *newline = memchr(text + at, '\n', len - at);
    call->args = text + at;
    call->args_len = newline ? (size_t)(newline - call->args) : len - at;
    call->body = newline ? newline + 1 : text + len;
    call->body_len = (size_t)(text + len - call->body);
    magic_trim(&call->args, &call->args_len);
    return call->name_len > 0;
}

bool magic_parse(const char *code, size_t len, magic_call *call) {
    magic_trim(&code, &len);
    if (!parse_line(code, len, call))
        return false;
    return call->cell || call->body_len == 0;
}

/* "help", "help()" or "help(name)": takes its ends off. */
static bool strip_help(const char **text, size_t *len) {
    static const char word[] = "help";
    const size_t n = sizeof word - 1;
    if (*len < n || memcmp(*text, word, n) != 0)
        return false;
    if (*len > n && ((*text)[n] != '(' || (*text)[*len - 1] != ')'))
        return false;
    bool alone = *len == n;
    *text += alone ? n : n + 1;
    *len -= alone ? n : n + 2;
    return true;
}

/* Takes question marks off one end; their number. */
static size_t strip_marks(const char **text, size_t *len) {
    size_t first = 0, last = *len;
    while (first < last && (*text)[first] == '?')
        first++;
    while (last > first && (*text)[last - 1] == '?')
        last--;
    size_t marks = first > 0 ? first : *len - last;
    if (first > 0 && last < *len)
        return 0;
    *text += first;
    *len = last - first;
    return marks;
}

bool magic_parse_question(const char *code, size_t len, size_t *start, size_t *end, int *detail) {
    const char *name = code;
    size_t name_len = len;
    magic_trim(&name, &name_len);
    size_t marks = strip_help(&name, &name_len) ? 1 : strip_marks(&name, &name_len);
    if (marks == 0 || marks > 2)
        return false;
    magic_trim(&name, &name_len);
    for (size_t i = 0; i < name_len; i++)
        if (!is_name_byte(name[i]) && name[i] != '.' && name[i] != ':' && name[i] != '%')
            return false;
    *start = (size_t)(name - code);
    *end = *start + name_len;
    *detail = marks == 2;
    return true;
}

static const magic *find(lua_State *L, const magic_call *call) {
    const magic *const *m = session_of(L)->magics;
    while (*m && !(strlen((*m)->name) == call->name_len &&
                   memcmp((*m)->name, call->name, call->name_len) == 0))
        m++;
    return *m;
}

/* Is there a magic of that name, in C or in Lua? */
static bool is_known(lua_State *L, const magic_call *call) {
    if (find(L, call))
        return true;
    module_push_function(L, "magics", "known");
    lua_pushlstring(L, call->name, call->name_len);
    lua_call(L, 1, 1);
    bool known = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return known;
}

static bool first_on_line(const char *code, size_t at) {
    while (at > 0 && (code[at - 1] == ' ' || code[at - 1] == '\t'))
        at--;
    return at == 0 || code[at - 1] == '\n';
}

/* "%timeit f()" as a call. The name and the arguments go in long brackets of a level that the
 * arguments don't close. */
static void add_call(luaL_Buffer *out, const magic_call *call) {
    char close[64] = "]";
    size_t level = 0;
    do {
        memset(close + 1, '=', level);
        memcpy(close + 1 + level, "]", 2);
    } while (memmem(call->args, call->args_len, close, level + 2) && ++level < sizeof close - 4);
    luaL_addstring(out, "package.loaded.tide._magic('");
    luaL_addlstring(out, call->name, call->name_len);
    luaL_addstring(out, "', [");
    luaL_addlstring(out, close + 1, level);
    luaL_addchar(out, '[');
    luaL_addlstring(out, call->args, call->args_len);
    if (call->args_len && call->args[call->args_len - 1] == ']')
        luaL_addchar(out, ' ');
    luaL_addlstring(out, close, level + 2);
    luaL_addstring(out, ");");
}

/* "!command" at the beginning of a line, or behind an equals sign: the rest of the line. */
static bool parse_command(const char *code, size_t len, size_t at, lex_token before,
                          magic_call *call) {
    bool first = first_on_line(code, at);
    bool assigned = !first && before.kind == LEX_OP && before.end - before.start == 1 &&
                    code[before.start] == '=' && !memchr(code + before.end, '\n', at - before.end);
    if (!first && !assigned)
        return false;
    const char *newline = memchr(code + at, '\n', len - at);
    *call = (magic_call){.name = first ? "bash" : "lines_of", .args = code + at + 1};
    call->name_len = strlen(call->name);
    call->args_len = newline ? (size_t)(newline - call->args) : len - at - 1;
    call->body = newline ? newline + 1 : code + len;
    magic_trim(&call->args, &call->args_len);
    return call->args_len > 0;
}

/* Is the line at token t a magic? */
static bool parse_any(lua_State *L, const char *code, size_t len, lex_token t, lex_token before,
                      magic_call *call) {
    if (code[t.start] == '!')
        return parse_command(code, len, t.start, before, call);
    return code[t.start] == '%' && first_on_line(code, t.start) &&
           parse_line(code + t.start, len - t.start, call) && !call->cell && is_known(L, call);
}

bool magic_push_rewritten(lua_State *L, const char *code, size_t len) {
    if (!memchr(code, '%', len) && !memchr(code, '!', len))
        return false;
    lexer lx = {code, len, 0};
    size_t copied = 0;
    int depth = 0;
    luaL_Buffer out;
    luaL_buffinit(L, &out);
    lex_token before = {.kind = LEX_END};
    for (lex_token t = lex_next(&lx); t.kind != LEX_END; before = t, t = lex_next(&lx)) {
        depth += lex_is(&lx, t, "(") || lex_is(&lx, t, "{") || lex_is(&lx, t, "[");
        depth -= lex_is(&lx, t, ")") || lex_is(&lx, t, "}") || lex_is(&lx, t, "]");
        magic_call call;
        if (depth > 0 || t.kind != LEX_OP || !parse_any(L, code, len, t, before, &call))
            continue;
        luaL_addlstring(&out, code + copied, t.start - copied);
        add_call(&out, &call);
        lx.at = copied = (size_t)(call.body - code) - (call.body[-1] == '\n');
    }
    bool rewritten = copied > 0;
    luaL_addlstring(&out, code + copied, len - copied);
    luaL_pushresult(&out);
    if (!rewritten)
        lua_pop(L, 1);
    return rewritten;
}

/* ---- running them ---- */

/* Runs one that is written in Lua; the number of its values. */
static int run_in_lua(lua_State *L, const magic_call *call) {
    int top = lua_gettop(L);
    luaL_checkstack(L, 8, NULL);
    module_push_function(L, "magics", "run");
    lua_pushlstring(L, call->name, call->name_len);
    lua_pushlstring(L, call->args, call->args_len);
    if (call->cell)
        lua_pushlstring(L, call->body, call->body_len);
    else
        lua_pushnil(L);
    lua_call(L, 3, LUA_MULTRET);
    if (!lua_toboolean(L, top + 1)) {
        lua_pushlstring(L, call->name, call->name_len);
        return luaL_error(L, "no magic %s%s (%%lsmagic lists them)", call->cell ? "%%" : "%",
                          lua_tostring(L, -1));
    }
    return lua_gettop(L) - top - 1;
}

int magic_run(lua_State *L, const magic_call *call, const char *chunkname) {
    const magic *found = find(L, call);
    return found ? found->run(L, call, chunkname) : run_in_lua(L, call);
}

static int run_lsmagic(lua_State *L, const magic_call *call, const char *chunkname) {
    (void)call;
    (void)chunkname;
    tide_session *s = session_of(L);
    for (int i = 0; s->magics[i]; i++)
        output_line(s, s->magics[i]->doc);
    module_push_function(L, "magics", "lines");
    lua_call(L, 0, 1);
    output_line(s, lua_tostring(L, -1));
    lua_pop(L, 1);
    output_line(s, "!command: runs it; files = !command: the lines that it writes");
    output_line(
        s, "tide.magic.register(name, function(arguments, body) ... end, doc): one of your own");
    output_line(s, "?name, name?: what a name is; ??name: its source too");
    return 0;
}

const magic magic_lsmagic = {"lsmagic", "%lsmagic: the magics and what they do", run_lsmagic};

/* tide._magic(name, arguments): what a line "%name arguments" among other lines becomes. */
static int tide_magic(lua_State *L) {
    magic_call call = {0};
    call.name = luaL_checklstring(L, 1, &call.name_len);
    call.args = luaL_checklstring(L, 2, &call.args_len);
    call.body = "";
    return magic_run(L, &call, "=%magic");
}

void magic_install(lua_State *L) {
    lua_pushliteral(L, "_magic");
    lua_pushcfunction(L, tide_magic);
    lua_rawset(L, -3);
}
