/* magic.c: the lines that begin with % or hold a question mark: found, rewritten, handed to the
 * magic that the session's table has under their name. What a magic does is its own business.
 */
#include "repl/session/magic.h"
#include "repl/session/lex.h"
#include "repl/session/modules.h"
#include "repl/session/output.h"
#include "repl/session/scope.h"
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
    const char *text = code, *end = code + len;
    size_t rest = len;
    magic_trim(&text, &rest);
    if (!parse_line(text, rest, call))
        return false;
    call->line = 1;
    for (const char *c = code; c < text; c++)
        call->line += *c == '\n';
    if (call->cell && call->body < text + rest)
        call->body_len = (size_t)(end - call->body); /* its last line ends as it was written */
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

/* "/words", which no Lua begins with. A text with a NUL is none: what answers reads C strings. */
static bool is_search(const char *text, size_t len) {
    return len > 1 && *text == '/' && !memchr(text, '\n', len) && !memchr(text, '\0', len);
}

bool magic_parse_question(const char *code, size_t len, size_t *start, size_t *end, int *detail) {
    const char *name = code;
    size_t name_len = len;
    magic_trim(&name, &name_len);
    bool searched = is_search(name, name_len), by_word = !searched && strip_help(&name, &name_len);
    size_t marks = searched || by_word ? 1 : strip_marks(&name, &name_len);
    if (marks == 0 || marks > 2)
        return false;
    magic_trim(&name, &name_len);
    searched = searched || is_search(name, name_len);
    for (size_t i = 0; i < name_len && !searched; i++)
        if (!is_name_byte(name[i]) && (!name[i] || !strchr(".:%", name[i])) &&
            !(name[i] == '*' && !by_word))
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
    luaL_addstring(out, SCOPE_MAGIC "('");
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

/* Is the token at `at` what a lone equals sign in the same line assigns? */
static bool is_assigned(const char *code, size_t at, lex_token before) {
    return before.kind == LEX_OP && before.end - before.start == 1 && code[before.start] == '=' &&
           !memchr(code + before.end, '\n', at - before.end);
}

/* "!command" at the beginning of a line, or behind an equals sign: the rest of the line. */
static bool parse_command(const char *code, size_t len, size_t at, bool first, magic_call *call) {
    const char *newline = memchr(code + at, '\n', len - at);
    *call = (magic_call){.name = first ? "bash" : "lines_of", .args = code + at + 1};
    call->name_len = strlen(call->name);
    call->args_len = newline ? (size_t)(newline - call->args) : len - at - 1;
    call->body = newline ? newline + 1 : code + len;
    magic_trim(&call->args, &call->args_len);
    return call->args_len > 0;
}

/* A line of text that code holds. */
typedef struct text_line {
    size_t start, end; /* bytes, without its newline */
} text_line;

static text_line line_at(const char *code, size_t len, size_t at) {
    const char *newline = memchr(code + at, '\n', len - at);
    text_line line = {at, newline ? (size_t)(newline - code) : len};
    while (line.start > 0 && code[line.start - 1] != '\n')
        line.start--;
    return line;
}

/* A line "?name", "name?", "help" or "help(name)". */
static bool parse_asking(const char *code, size_t len, text_line line, magic_call *call) {
    size_t start, end;
    int detail;
    if (!magic_parse_question(code + line.start, line.end - line.start, &start, &end, &detail) ||
        (start == end && code[line.start + end - 1] == '?'))
        return false;
    *call = (magic_call){.name = detail ? "pinfo2" : "pinfo", .args = code + line.start + start};
    call->name_len = strlen(call->name);
    call->args_len = end - start;
    call->body = line.end < len ? code + line.end + 1 : code + len;
    return true;
}

/* Is the line at token t a magic, a command or a question? *start is where it begins. */
static bool parse_any(lua_State *L, const char *code, size_t len, lex_token t, lex_token before,
                      magic_call *call, size_t *start) {
    bool first = first_on_line(code, t.start);
    text_line line = line_at(code, len, t.start);
    *start = t.start;
    if (code[t.start] == '?') {
        *start = line.start;
        return parse_asking(code, len, line, call);
    }
    if (t.kind == LEX_NAME)
        return first && parse_asking(code, len, line, call);
    if (!first && !is_assigned(code, t.start, before))
        return false;
    if (code[t.start] == '!')
        return parse_command(code, len, t.start, first, call);
    return code[t.start] == '%' && parse_line(code + t.start, line.end - t.start, call) &&
           !call->cell && is_known(L, call);
}

enum { DEEPEST = 512 };

/* What is open at a place of code: blocks, in which statements stand, and brackets in blocks, in
 * which none do. Beyond DEEPEST all is taken for brackets. */
typedef struct nesting {
    int depth;
    bool bracket[DEEPEST];
} nesting;

static void nesting_open(nesting *n, bool bracket) {
    if (n->depth < DEEPEST)
        n->bracket[n->depth] = bracket;
    n->depth++;
}

static void nesting_close(nesting *n, bool bracket) {
    if (n->depth > DEEPEST || (n->depth > 0 && n->bracket[n->depth - 1] == bracket))
        n->depth--;
}

static bool nesting_takes_statements(const nesting *n) {
    return n->depth == 0 || (n->depth <= DEEPEST && !n->bracket[n->depth - 1]);
}

static bool is_any(const lexer *lx, lex_token t, const char *const *words) {
    while (*words && !lex_is(lx, t, *words))
        words++;
    return *words != NULL;
}

static void nesting_see(nesting *n, const lexer *lx, lex_token t) {
    static const char *const opening[] = {"(", "{", "[", NULL},
                             *const closing[] = {")", "}", "]", NULL},
                             *const begins[] = {"function", "do", "if", "repeat", NULL},
                             *const ends[] = {"end", "until", NULL};
    bool word = t.kind == LEX_KEYWORD;
    if (is_any(lx, t, word ? begins : opening))
        nesting_open(n, !word);
    else if (is_any(lx, t, word ? ends : closing))
        nesting_close(n, !word);
}

/* Adds the line of a magic as a comment; copied: what of code was added before. */
static void add_comment(luaL_Buffer *out, const char *code, size_t len, size_t at, size_t copied) {
    text_line line = line_at(code, len, at);
    if (line.start > copied)
        luaL_addlstring(out, code + copied, line.start - copied);
    luaL_addstring(out, "-- ");
    copied = line.start > copied ? line.start : copied;
    luaL_addlstring(out, code + copied, line.end - copied);
}

/* Pushes code with its magics as calls or as comments; how many there were. */
static int push_changed(lua_State *L, const char *code, size_t len, bool comments) {
    lexer lx = {code, len, 0};
    size_t copied = 0, start;
    int found = 0;
    nesting open = {0};
    luaL_Buffer out;
    luaL_buffinit(L, &out);
    lex_token before = {.kind = LEX_END};
    for (lex_token t = lex_next(&lx); t.kind != LEX_END; before = t, t = lex_next(&lx)) {
        magic_call call;
        nesting_see(&open, &lx, t);
        lexer here = {code, len, 0};
        bool may =
            t.kind == LEX_OP ? strchr("%!?", code[t.start]) != NULL : lex_is(&here, t, "help");
        if (!may || !nesting_takes_statements(&open) ||
            !parse_any(L, code, len, t, before, &call, &start) || start < copied)
            continue;
        if (comments) {
            add_comment(&out, code, len, start, copied);
        } else {
            luaL_addlstring(&out, code + copied, start - copied);
            add_call(&out, &call);
        }
        lx.at = copied = (size_t)(call.body - code) - (call.body[-1] == '\n');
        found++;
    }
    luaL_addlstring(&out, code + copied, len - copied);
    luaL_pushresult(&out);
    return found;
}

bool magic_push_rewritten(lua_State *L, const char *code, size_t len) {
    if (!memchr(code, '%', len) && !memchr(code, '!', len) && !memchr(code, '?', len) &&
        !memmem(code, len, "help", 4))
        return false;
    if (push_changed(L, code, len, false) > 0)
        return true;
    lua_pop(L, 1);
    return false;
}

void magic_push_script(lua_State *L, const char *code, size_t len) {
    magic_call call;
    size_t start, end;
    int detail;
    if (magic_parse(code, len, &call) || magic_parse_question(code, len, &start, &end, &detail))
        lua_pushnil(L);
    else
        push_changed(L, code, len, true);
}

/* ---- running them ---- */

/* Runs one that is written in Lua; the number of its values. */
static int run_in_lua(lua_State *L, const magic_call *call, const char *chunkname) {
    int top = lua_gettop(L);
    luaL_checkstack(L, 8, NULL);
    module_push_function(L, "magics", "run");
    lua_pushlstring(L, call->name, call->name_len);
    lua_pushlstring(L, call->args, call->args_len);
    if (call->cell)
        lua_pushlstring(L, call->body, call->body_len);
    else
        lua_pushnil(L);
    lua_pushstring(L, chunkname);
    lua_pushinteger(L, call->line);
    lua_call(L, 5, LUA_MULTRET);
    if (!lua_toboolean(L, top + 1)) {
        module_push_function(L, "magics", "missing");
        lua_pushlstring(L, call->name, call->name_len);
        lua_call(L, 1, 1);
        return luaL_error(L, "no magic %s%s", call->cell ? "%%" : "%", lua_tostring(L, -1));
    }
    return lua_gettop(L) - top - 1;
}

int magic_run(lua_State *L, const magic_call *call, const char *chunkname) {
    const magic *found = find(L, call);
    return found ? found->run(L, call, chunkname) : run_in_lua(L, call, chunkname);
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

int magic_call_line(lua_State *L) {
    lua_Debug ar;
    magic_call call = {.body = "", .line = 1};
    call.name = luaL_checklstring(L, 1, &call.name_len);
    call.args = luaL_checklstring(L, 2, &call.args_len);
    if (!lua_getstack(L, 1, &ar) || !lua_getinfo(L, "Sl", &ar) || ar.currentline < 1)
        return magic_run(L, &call, "=(magic)");
    call.line = ar.currentline;
    lua_pushstring(L, ar.source);
    return magic_run(L, &call, lua_tostring(L, -1));
}
