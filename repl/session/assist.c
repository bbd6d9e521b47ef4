/* assist.c: complete, inspect and is_complete: the questions of an editor.
 *
 * Nothing of the user's runs here. What the names mean is found by the embedded modules complete
 * and inspect with raw access; this file gives them tokens and files, and hands their answers out.
 */
#include "repl/session/assist.h"
#include "repl/session/compile.h"
#include "repl/session/display.h"
#include "repl/session/lex.h"
#include "repl/session/magic.h"
#include "repl/session/modules.h"
#include "repl/session/result.h"
#include "repl/session/scope.h"
#include "repl/session/source.h"
#include "repl/session/state.h"
#include "repl/session/transcript.h"

#include "lua-bindings/call/function.h"
#include "lua-bindings/modules/embedded.h"

#include <dirent.h>
#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- functions the embedded modules use ---- */

/* lex(code): flat list kind, first byte, last byte, … of the tokens; kinds as below. An unfinished
 * string is of kind "open". */
static int lua_lex(lua_State *L) {
    static const char *const kinds[] = {"end",    "name",    "keyword", "number",
                                        "string", "comment", "op"};
    size_t len;
    const char *code = luaL_checklstring(L, 1, &len);
    lexer lx = {code, len, 0};
    lua_newtable(L);
    lua_Integer n = 0;
    for (lex_token t = lex_next(&lx); t.kind != LEX_END; t = lex_next(&lx)) {
        lua_pushstring(L, t.unfinished && t.kind == LEX_STRING ? "open" : kinds[t.kind]);
        lua_rawseti(L, -2, ++n);
        lua_pushinteger(L, (lua_Integer)t.start + 1);
        lua_rawseti(L, -2, ++n);
        lua_pushinteger(L, (lua_Integer)t.end);
        lua_rawseti(L, -2, ++n);
    }
    return 1;
}

/* files(folder): names in a folder, folders with a slash at their end; empty when it can't be read.
 */
static int lua_files(lua_State *L) {
    const char *folder = luaL_checkstring(L, 1);
    lua_newtable(L);
    DIR *dir = opendir(folder);
    if (!dir)
        return 1;
    lua_Integer n = 0;
    for (struct dirent *item; n < 10000 && (item = readdir(dir)) != NULL;) {
        if (strcmp(item->d_name, ".") == 0 || strcmp(item->d_name, "..") == 0)
            continue;
        struct stat info;
        bool is_folder =
            item->d_type == DT_DIR ||
            ((item->d_type == DT_LNK || item->d_type == DT_UNKNOWN) &&
             fstatat(dirfd(dir), item->d_name, &info, 0) == 0 && S_ISDIR(info.st_mode));
        lua_pushfstring(L, "%s%s", item->d_name, is_folder ? "/" : "");
        lua_rawseti(L, -2, ++n);
    }
    closedir(dir);
    return 1;
}

/* source(chunkname): the text behind "=In[3]", "@file.lua" or "=tide.nn", or nil. */
static int lua_source(lua_State *L) {
    const char *chunkname = luaL_checkstring(L, 1);
    if (source_push(L, chunkname))
        return 1;
    bool ours = strncmp(chunkname, "=tide.", 6) == 0;
    const tide_embedded *e =
        ours ? tide_embedded_find(tide_embedded_tide_lua, chunkname + 6) : NULL;
    if (e)
        lua_pushlstring(L, e->bytes, e->len);
    else
        lua_pushnil(L);
    return 1;
}

/* plain(value): its text as displayed. */
static int lua_plain(lua_State *L) {
    luaL_checkany(L, 1);
    display_push_plain(L, 1);
    return 1;
}

/* locals(): the locals of earlier inputs that are in sight, by name; and a table whose keys are all
 * their names, also of those that are nil. */
static int lua_locals(lua_State *L) {
    scope_push_values(L);
    scope_push_names(L);
    return 2;
}

static void push_keywords(lua_State *L) {
    lua_newtable(L);
    for (int i = 0; lex_keywords[i]; i++) {
        lua_pushstring(L, lex_keywords[i]);
        lua_rawseti(L, -2, i + 1);
    }
}

/* The tables magics and magic_docs of the environment. */
static void set_magics(lua_State *L, int env) {
    const magic *const *m = session_of(L)->magics;
    lua_newtable(L);
    lua_newtable(L);
    for (int i = 0; m[i]; i++) {
        lua_pushstring(L, m[i]->name);
        lua_rawseti(L, -3, i + 1);
        lua_pushstring(L, m[i]->doc);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, env, "magic_docs");
    lua_setfield(L, env, "magics");
}

void assist_install(lua_State *L) {
    int env = lua_gettop(L);
    static const luaL_Reg functions[] = {{"lex", lua_lex},
                                         {"files", lua_files},
                                         {"source", lua_source},
                                         {"plain", lua_plain},
                                         {"locals", lua_locals},
                                         {"number", tide_number_function},
                                         {"before", tide_before_function},
                                         {NULL, NULL}};
    for (const luaL_Reg *f = functions; f->name; f++) {
        lua_pushcfunction(L, f->func);
        lua_setfield(L, env, f->name);
    }
    push_keywords(L);
    lua_setfield(L, env, "keywords");
    set_magics(L, env);
}

/* ---- complete ---- */

typedef struct question {
    const char *code;
    size_t len, cursor;
    int detail;
    tide_completions *completions;
    tide_bundle *bundle;
    char *hint;
    const char *chunkname;
    tide_completeness completeness;
    lua_CFunction body; /* what answers it, with the question as its argument */
} question;

/* Copies the lists of matches and types at the stack indices into the result. */
static void take_matches(lua_State *L, int matches, int types, tide_completions *c) {
    size_t n = lua_rawlen(L, matches);
    c->matches = calloc(n + 1, sizeof *c->matches);
    c->types = calloc(n + 1, sizeof *c->types);
    for (size_t i = 1; c->matches && c->types && i <= n; i++) {
        lua_rawgeti(L, matches, (lua_Integer)i);
        lua_rawgeti(L, types, (lua_Integer)i);
        char *match = copy_bytes(lua_tostring(L, -2), lua_rawlen(L, -2));
        char *type = copy_string(lua_tostring(L, -1));
        lua_pop(L, 2);
        if (!match || !type) {
            free(match);
            free(type);
            return;
        }
        c->matches[c->n] = match;
        c->types[c->n++] = type;
    }
}

static int complete_body(lua_State *L) {
    question *q = lua_touserdata(L, 1);
    lua_settop(L, 0);
    module_push_function(L, "complete", "complete");
    lua_pushlstring(L, q->code, q->len);
    lua_pushinteger(L, (lua_Integer)q->cursor);
    lua_call(L, 2, 3); /* first byte of what is replaced (from 1), matches, types */
    q->completions->start = (size_t)lua_tointeger(L, 1) - 1;
    take_matches(L, 2, 3, q->completions);
    return 0;
}

/* Runs a body protected; its errors are ours and leave the answer empty. */
static int ask_body(lua_State *L) {
    const question *q = lua_touserdata(L, 1);
    session_mend_registry(L);
    return q->body(L);
}

static bool ask(tide_session *s, question *q, lua_CFunction body) {
    int top = lua_gettop(s->L);
    q->body = body;
    lua_pushcfunction(s->L, ask_body);
    lua_pushlightuserdata(s->L, q);
    bool ok = lua_pcall(s->L, 1, 0, 0) == LUA_OK;
    lua_settop(s->L, top);
    return ok;
}

void tide_session_complete(tide_session *s, const char *code, size_t len, size_t cursor,
                           tide_completions *c) {
    cursor = cursor < len ? cursor : len;
    *c = (tide_completions){.start = cursor, .end = cursor};
    question q = {.code = code, .len = len, .cursor = cursor, .completions = c};
    if (!ask(s, &q, complete_body)) {
        tide_completions_clear(c);
        c->start = c->end = cursor;
    }
}

/* ---- inspect ---- */

static int inspect_body(lua_State *L) {
    question *q = lua_touserdata(L, 1);
    lua_settop(L, 0);
    module_push_function(L, "inspect", "inspect");
    lua_pushlstring(L, q->code, q->len);
    lua_pushinteger(L, (lua_Integer)q->cursor);
    lua_pushinteger(L, q->detail);
    lua_call(L, 3, 1);
    if (lua_type(L, 1) != LUA_TSTRING)
        return 0;
    bundle_add(q->bundle, "text/plain", lua_tostring(L, 1), lua_rawlen(L, 1));
    module_push_function(L, "inspect", "html");
    lua_pushvalue(L, 1);
    lua_call(L, 1, 1);
    if (lua_type(L, 2) == LUA_TSTRING)
        bundle_add(q->bundle, "text/html", lua_tostring(L, 2), lua_rawlen(L, 2));
    return 0;
}

bool tide_session_inspect(tide_session *s, const char *code, size_t len, size_t cursor, int detail,
                          tide_bundle *bundle) {
    *bundle = (tide_bundle){0};
    question q = {.code = code,
                  .len = len,
                  .cursor = cursor < len ? cursor : len,
                  .detail = detail,
                  .bundle = bundle};
    return ask(s, &q, inspect_body) && bundle->n > 0;
}

/* ---- hint ---- */

static int hint_body(lua_State *L) {
    question *q = lua_touserdata(L, 1);
    lua_settop(L, 0);
    module_push_function(L, "inspect", q->detail ? "signature" : "note");
    lua_pushlstring(L, q->code, q->len);
    lua_pushinteger(L, (lua_Integer)q->cursor);
    lua_call(L, 2, 1);
    q->hint = lua_type(L, 1) == LUA_TSTRING ? copy_string(lua_tostring(L, 1)) : NULL;
    return 0;
}

char *tide_session_hint(tide_session *s, const char *code, size_t len, size_t cursor,
                        bool of_call) {
    question q = {
        .code = code, .len = len, .cursor = cursor < len ? cursor : len, .detail = of_call};
    return ask(s, &q, hint_body) ? q.hint : NULL;
}

/* ---- is_complete ---- */

/* Is the compiler's message on top about an end that came too soon? */
static bool ends_too_soon(lua_State *L) {
    static const char mark[] = "<eof>";
    size_t len;
    const char *message = lua_tolstring(L, -1, &len);
    return message && len >= sizeof mark - 1 &&
           strcmp(message + len - (sizeof mark - 1), mark) == 0;
}

/* Does code end in a quoted string that no further line can finish? */
static bool ends_in_open_quote(const char *code, size_t len) {
    lexer lx = {code, len, 0};
    lex_token last = lex_last(code, len);
    return last.kind == LEX_STRING && last.unfinished && !last.bracketed &&
           !lex_string_goes_on(&lx, last);
}

/* Is unfinished code one that no further line finishes, the head of a block in Python? */
static bool is_python(lua_State *L, const char *code, size_t len) {
    module_push_function(L, "habits", "is_python");
    lua_pushlstring(L, code, len);
    lua_call(L, 1, 1);
    return lua_toboolean(L, -1);
}

/* ---- lines that are added to what is unfinished ---- */

/* An input that grows line by line is not compiled anew each time: where its end stands within a
 * table or a block, lines that make whole items or statements leave it so. */

static bool ends_item(const char *code, size_t len, bool before) {
    lexer lx = {code, len, 0};
    lex_token last = lex_last(code, len);
    return last.kind == LEX_END ? before : lex_is(&lx, last, ",") || lex_is(&lx, last, ";");
}

static void forget_unfinished(tide_session *s) {
    free(s->unfinished.text);
    memset(&s->unfinished, 0, sizeof s->unfinished);
}

/* Keeps the text, of which what was kept may be the beginning. */
static void keep_unfinished(tide_session *s, const char *code, size_t len) {
    size_t kept = s->unfinished.len;
    if (len > s->unfinished.room) {
        char *grown = realloc(s->unfinished.text, 2 * len);
        if (!grown) {
            forget_unfinished(s);
            return;
        }
        s->unfinished.text = grown;
        s->unfinished.room = 2 * len;
    }
    memcpy(s->unfinished.text + kept, code + kept, len - kept);
    s->unfinished.len = len;
}

static void note_unfinished(tide_session *s, const char *code, size_t len) {
    lexer lx = {code, len, 0};
    lex_token last = lex_last(code, len);
    s->unfinished.len = 0;
    s->unfinished.open = last.unfinished ? 0 : lex_innermost(code, len);
    s->unfinished.item = lex_is(&lx, last, "{") || ends_item(code, len, false);
    keep_unfinished(s, code, len);
}

/* Pushes the chunk that the added lines are by themselves, or a message; a status. */
static int load_added(lua_State *L, const char *code, size_t len, bool in_table) {
    lua_pushstring(L, in_table ? "return {" : "");
    lua_pushlstring(L, code, len);
    lua_pushstring(L, in_table ? "\n}" : "");
    lua_concat(L, 3);
    return luaL_loadbufferx(L, lua_tostring(L, -1), lua_rawlen(L, -1), "=", "t");
}

static int added_body(lua_State *L) {
    question *q = lua_touserdata(L, 1);
    tide_session *s = session_of(L);
    size_t kept = s->unfinished.len;
    const char *added = q->code + kept;
    bool in_table = s->unfinished.open == '{';
    bool whole = !in_table || (s->unfinished.item && ends_item(added, q->len - kept, true));
    if (whole && load_added(L, added, q->len - kept, in_table) == LUA_OK)
        q->completeness = TIDE_INCOMPLETE;
    return 0;
}

/* Is the code what is unfinished, with lines behind it that leave it so? */
static bool stays_unfinished(tide_session *s, question *q) {
    size_t kept = s->unfinished.len;
    bool may = s->unfinished.text && (s->unfinished.open == '{' || s->unfinished.open == 'b') &&
               q->len > kept && q->code[kept] == '\n' &&
               memcmp(q->code, s->unfinished.text, kept) == 0;
    q->completeness = TIDE_COMPLETE;
    if (!may || !ask(s, q, added_body) || q->completeness != TIDE_INCOMPLETE)
        return false;
    keep_unfinished(s, q->code, q->len);
    return true;
}

/* ---- whole or not ---- */

static int completeness_body(lua_State *L) {
    question *q = lua_touserdata(L, 1);
    const char *code = q->code, *prefix;
    size_t len = q->len;
    lua_settop(L, 0);
    if (magic_push_rewritten(L, code, len))
        code = lua_tolstring(L, -1, &len);
    int status = compile_input(L, code, len, "=", false, &prefix);
    q->completeness = status == LUA_OK                                     ? TIDE_COMPLETE
                      : ends_too_soon(L) && !ends_in_open_quote(code, len) ? TIDE_INCOMPLETE
                                                                           : TIDE_INVALID;
    if (q->completeness == TIDE_INCOMPLETE && is_python(L, q->code, q->len))
        q->completeness = TIDE_INVALID;
    return 0;
}

/* A cell with a %% magic goes on until a blank line. */
static tide_completeness cell_completeness(const magic_call *call, const char *code, size_t len) {
    bool blank = len > 0 && code[len - 1] == '\n';
    (void)call;
    return blank && call->body_len > 0 ? TIDE_COMPLETE : TIDE_INCOMPLETE;
}

tide_completeness tide_session_is_complete(tide_session *s, const char *code, size_t len,
                                           char *indent, size_t size) {
    enum { INDENT = 4 };
    magic_call call;
    size_t start, end;
    int detail;
    char *plain = transcript_plain(&code, &len);
    question q = {.code = code, .len = len, .completeness = TIDE_COMPLETE};
    bool question_mark = magic_parse_question(code, len, &start, &end, &detail);
    bool is_magic = !question_mark && magic_parse(code, len, &call);
    if (is_magic && call.cell)
        q.completeness = cell_completeness(&call, code, len);
    else if (!is_magic && !question_mark && !stays_unfinished(s, &q)) {
        if (!ask(s, &q, completeness_body))
            q.completeness = TIDE_INVALID;
        if (q.completeness == TIDE_INCOMPLETE)
            note_unfinished(s, code, len);
        else
            forget_unfinished(s);
    }
    if (indent && size > 0) {
        size_t n = 0;
        if (q.completeness == TIDE_INCOMPLETE && !is_magic)
            n = (size_t)INDENT * (size_t)lex_open_blocks(code, len);
        n = n < size ? n : size - 1;
        memset(indent, ' ', n);
        indent[n] = '\0';
    }
    free(plain);
    return q.completeness;
}

void assist_free(tide_session *s) {
    forget_unfinished(s);
}
