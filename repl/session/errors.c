/* errors.c: what becomes of a Lua error: its name, its message, its traceback.
 *
 * The message handler runs where the error arose and keeps what is lost afterwards (the frames,
 * the names in sight); error_fill makes text of it when the stack is unwound. Any value can be an
 * error object, and turning it into text may fail too.
 */
#include "repl/session/errors.h"
#include "repl/session/control.h"
#include "repl/session/display.h"
#include "repl/session/frames.h"
#include "repl/session/modules.h"
#include "repl/session/result.h"
#include "repl/session/scope.h"
#include "repl/session/state.h"
#include "repl/session/syntax.h"

#include "lua-bindings/call/function.h"

#include <lauxlib.h>
#include <string.h>

static const char traceback_key, hint_key;

static const char HOOK_FAILED[] =
    "This was raised by the hook of debug.sethook, which has been taken away.";

/* ---- where it arose ---- */

/* Pushes a table of the locals and upvalues in sight at `ar`, by name. */
static void push_visible(lua_State *L, lua_Debug *ar) {
    lua_newtable(L);
    lua_getinfo(L, "f", ar);
    const char *name;
    for (int i = 1; (name = lua_getupvalue(L, -1, i)) != NULL; i++)
        lua_setfield(L, -3, name);
    lua_pop(L, 1);
    for (int i = 1; (name = lua_getlocal(L, ar, i)) != NULL; i++) {
        if (name[0] == '(')
            lua_pop(L, 1);
        else
            lua_setfield(L, -2, name);
    }
}

/* Protected: hint(message, chunk name, line, visible) of the module suggest; result in the
 * registry. */
static int find_hint(lua_State *L) {
    lua_Debug *ar = lua_touserdata(L, 2);
    lua_settop(L, 1);
    module_push_function(L, "suggest", "hint");
    lua_pushvalue(L, 1);
    lua_pushstring(L, ar->source);
    lua_pushinteger(L, ar->currentline);
    push_visible(L, ar);
    lua_call(L, 4, 1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &hint_key);
    return 0;
}

/* The nearest frame of Lua code that is not of Tide's own files. */
static bool user_frame(lua_State *L, lua_Debug *ar) {
    enum { DEEPEST = 20 };
    for (int level = 1; level < DEEPEST && lua_getstack(L, level, ar); level++)
        if (lua_getinfo(L, "Sl", ar) && ar->currentline > 0 &&
            strncmp(ar->source, "=tide.", 6) != 0)
            return true;
    return false;
}

int error_trace(lua_State *L) {
    tide_session *s = session_of(L);
    lua_settop(L, 1);
    if (s->traced) { /* raised again by who caught it */
        s->traced = false;
        return 1;
    }
    control_drop_failed_hook(L);
    session_mend_registry(L);
    lua_pushnil(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &hint_key);
    lua_pushcfunction(L, frames_traceback);
    lua_pushvalue(L, 1);
    if (lua_pcall(L, 1, 1, 0) != LUA_OK) { /* no room for the lines of source */
        lua_settop(L, 1);
        luaL_traceback(L, L, NULL, 1);
    }
    lua_rawsetp(L, LUA_REGISTRYINDEX, &traceback_key);
    lua_Debug ar;
    const char *message = lua_type(L, 1) == LUA_TSTRING ? lua_tostring(L, 1) : "";
    if (*message && control_stopping(s) == STOP_NONE && user_frame(L, &ar)) {
        lua_pushcfunction(L, find_hint);
        lua_pushvalue(L, 1);
        lua_pushlightuserdata(L, &ar);
        (void)control_call_own(L, 2, 0); /* no hint, then */
    }
    lua_settop(L, 1);
    return 1;
}

/* Protected: keep(error object) of the module debugger. */
static int keep_frames(lua_State *L) {
    module_push_function(L, "debugger", "keep");
    lua_insert(L, 1);
    lua_call(L, 1, 0);
    return 0;
}

int error_handler(lua_State *L) {
    bool again = session_of(L)->traced;
    error_trace(L);
    if (!again && control_stopping(session_of(L)) == STOP_NONE && !syntax_is_error(L, 1)) {
        lua_pushcfunction(L, keep_frames);
        lua_pushvalue(L, 1);
        (void)control_call_own(L, 1, 0); /* no look back, then */
        lua_settop(L, 1);
    }
    return 1;
}

int error_pass(lua_State *L) {
    session_of(L)->traced = true;
    return lua_error(L);
}

/* ---- as text ---- */

static void add_coloured(tide_session *s, tide_result *r, const char *colour, const char *text,
                         size_t len) {
    if (!s->frontend.color) {
        result_add_lines(r, text, len);
        return;
    }
    for (const char *end = text + len;;) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        size_t n = (size_t)((newline ? newline : end) - text);
        lua_pushstring(s->L, colour);
        lua_pushlstring(s->L, text, n);
        lua_pushliteral(s->L, "\033[0m");
        lua_concat(s->L, 3);
        result_add_lines(r, lua_tostring(s->L, -1), lua_rawlen(s->L, -1));
        lua_pop(s->L, 1);
        if (!newline)
            return;
        text = newline + 1;
    }
}

/* The message, with the name of the error before it where that says more than "Error". */
static void add_message(tide_session *s, tide_result *r) {
    bool plain = !r->ename || strcmp(r->ename, "Error") == 0 || strcmp(r->ename, "Interrupt") == 0;
    lua_pushfstring(s->L, "%s%s", plain ? "" : r->ename, plain ? "" : ": ");
    lua_pushstring(s->L, tide_result_message(r));
    lua_concat(s->L, 2);
    add_coloured(s, r, "\033[31m", lua_tostring(s->L, -1), lua_rawlen(s->L, -1));
    lua_pop(s->L, 1);
}

/* Is this line of a traceback a frame of Tide's own Lua files, "\ttide.nn:12: in ..."? */
static bool is_own_frame(const char *line) {
    if (strncmp(line, "\n\ttide.", 7) != 0)
        return false;
    line += 7;
    line += strspn(line, "abcdefghijklmnopqrstuvwxyz0123456789_.");
    return *line == ':';
}

/* Length of the line of a traceback that text begins with (each begins with its newline). */
static size_t line_length(const char *text) {
    const char *end = *text ? strchr(text + 1, '\n') : NULL;
    return end ? (size_t)(end - text) : strlen(text);
}

static bool line_is(const char *text, const char *line) {
    size_t len = strlen(line);
    return line_length(text) == len && memcmp(text, line, len) == 0;
}

/* Pushes a traceback without those frames, without the call of `error` inside one, and without the
 * notes of tail calls between them and others. */
static void push_user_frames(lua_State *L, const char *text) {
    luaL_Buffer kept;
    luaL_buffinit(L, &kept);
    bool own = false, own_above;
    for (size_t len; *text; text += len) {
        len = line_length(text);
        own_above = own;
        own = is_own_frame(text);
        bool before_own = is_own_frame(text + len);
        static const char private[] = "\n\t[C]: in function 'tide._",
                          helper[] = "\n\t[C]: in global '",
                          magic[] = "\n\t[C]: in upvalue '" SCOPE_MAGIC "'";
        bool raises = (before_own && (line_is(text, "\n\t[C]: in function 'error'") ||
                                      strncmp(text, helper, sizeof helper - 1) == 0)) ||
                      strncmp(text, private, sizeof private - 1) == 0 || line_is(text, magic);
        bool note = (own_above || before_own) && line_is(text, "\n\t(...tail calls...)");
        if (!own && !raises && !note)
            luaL_addlstring(&kept, text, len);
    }
    luaL_pushresult(&kept);
}

/* The frames, without those of ours at the bottom. */
static void add_frames(tide_session *s, tide_result *r) {
    lua_State *L = s->L;
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &traceback_key) == LUA_TSTRING) {
        push_user_frames(L, lua_tostring(L, -1));
        luaL_gsub(L, lua_tostring(L, -1), "\n\t", "\n  ");
        lua_remove(L, -2);
        const char *text = lua_tostring(L, -1);
        size_t len = strlen(text);
        static const char ours[] = "\n  [C]: in ?";
        const size_t n = sizeof ours - 1;
        while (len >= n && memcmp(text + len - n, ours, n) == 0)
            len -= n;
        if (memchr(text, '\n', len)) /* more than its title */
            add_coloured(s, r, "\033[2m", text, len);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    lua_pushnil(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &traceback_key);
}

/* Name of an error object: its metatable's __name, a string. */
static char *name_of(lua_State *L, int idx) {
    char *name = NULL;
    if (lua_type(L, idx) != LUA_TSTRING && lua_getmetatable(L, idx)) {
        lua_pushliteral(L, "__name");
        if (lua_rawget(L, -2) == LUA_TSTRING)
            name = copy_visible(lua_tostring(L, -1), lua_rawlen(L, -1));
        lua_pop(L, 2);
    }
    return name ? name : copy_string("Error");
}

/* Pushes the message an error object at idx stands for. */
static void push_message(lua_State *L, int idx) {
    switch (lua_type(L, idx)) {
    case LUA_TSTRING:
        lua_pushvalue(L, idx);
        if (lua_rawgetp(L, LUA_REGISTRYINDEX, &hint_key) == LUA_TSTRING)
            lua_concat(L, 2);
        else
            lua_pop(L, 1);
        break;
    case LUA_TNUMBER:
        tide_push_number_text(L, idx, 0);
        break;
    case LUA_TTABLE:
    case LUA_TUSERDATA:
        display_push_plain(L, idx);
        if (luaL_getmetafield(L, idx, "__tostring") == LUA_TNIL) {
            lua_pushfstring(L, "(error object is a %s value) ", luaL_typename(L, idx));
            lua_insert(L, -2);
            lua_concat(L, 2);
        } else {
            lua_pop(L, 1);
        }
        break;
    default:
        lua_pushfstring(L, "(error object is a %s value)", luaL_typename(L, idx));
    }
}

/* (error object of syntax_raise): what Lua writes where code shows a habit of Python, or nil.
 */
static int push_habit(lua_State *L) {
    size_t offset = syntax_error_offset(L, 1);
    if (offset == SYNTAX_NOWHERE)
        return 0;
    module_push_function(L, "habits", "syntax");
    lua_getfield(L, 1, "code");
    lua_pushinteger(L, (lua_Integer)offset + 1);
    lua_call(L, 2, 1);
    return 1;
}

/* Fills r from the error object that syntax_raise made, on top of the stack. */
static void fill_syntax(tide_session *s, tide_result *r) {
    lua_State *L = s->L;
    int object = lua_gettop(L);
    syntax_push_parts(L, -1);
    r->outcome = TIDE_ERROR;
    r->ename = copy_string("SyntaxError");
    r->evalue = copy_string(lua_tostring(L, -2));
    add_message(s, r);
    if (lua_isstring(L, -1))
        result_add_lines(r, lua_tostring(L, -1), lua_rawlen(L, -1));
    lua_pushcfunction(L, push_habit);
    lua_pushvalue(L, object);
    if (lua_pcall(L, 1, 1, 0) == LUA_OK && lua_isstring(L, -1)) {
        lua_pushfstring(L, "Lua: %s", lua_tostring(L, -1));
        result_add_lines(r, lua_tostring(L, -1), lua_rawlen(L, -1));
    }
}

void error_fill(tide_session *s, tide_result *r) {
    lua_State *L = s->L;
    int object = lua_gettop(L);
    stop_reason stop = control_stopping(s);
    if (stop == STOP_EXIT) {
        r->outcome = TIDE_EXIT;
        r->exit_code = s->exit_code;
    } else if (stop == STOP_INTERRUPT) {
        r->outcome = TIDE_INTERRUPTED;
        r->ename = copy_string("Interrupt");
        r->evalue = copy_string("interrupted");
        add_message(s, r);
        add_frames(s, r);
    } else if (syntax_is_error(L, object)) {
        fill_syntax(s, r);
    } else {
        r->outcome = TIDE_ERROR;
        r->ename = name_of(L, object);
        push_message(L, object);
        r->evalue = copy_visible(lua_tostring(L, -1), lua_rawlen(L, -1));
        add_message(s, r);
        add_frames(s, r);
        if (s->hook_failed)
            result_add_lines(r, HOOK_FAILED, sizeof HOOK_FAILED - 1);
    }
    lua_settop(L, object - 1);
}

void error_plain(tide_result *r, const char *ename, const char *message) {
    r->outcome = TIDE_ERROR;
    r->ename = copy_string(ename);
    r->evalue = copy_string(message);
    result_add_lines(r, message, strlen(message));
}
