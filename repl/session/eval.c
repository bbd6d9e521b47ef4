/* eval.c: inputs, scripts and expressions: compiled, run, and their outcome gathered.
 *
 * Each input is a chunk of its own, in which the locals of earlier ones are in sight (scope.h).
 * Everything happens inside one protected call, whose bottom frame the tracebacks leave out.
 */
#include "repl/session/eval.h"
#include "repl/session/advise.h"
#include "repl/session/compile.h"
#include "repl/session/control.h"
#include "repl/session/display.h"
#include "repl/session/errors.h"
#include "repl/session/history.h"
#include "repl/session/lex.h"
#include "repl/session/magic.h"
#include "repl/session/modules.h"
#include "repl/session/output.h"
#include "repl/session/remember.h"
#include "repl/session/result.h"
#include "repl/session/source.h"
#include "repl/session/state.h"
#include "repl/session/syntax.h"
#include "repl/session/text.h"
#include "repl/session/transcript.h"

#include "engine/core/device.h"
#include "lua-bindings/state/mode_stacks.h"
#include "lua-bindings/tensor/print_options.h"
#include "profiler/timing.h"

#include <lauxlib.h>
#include <lualib.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct job {
    tide_session *s;
    tide_result *r;
    const char *code; /* or the path of a script */
    size_t len;
    int number; /* of the input; 0: it has none */
    bool keep;  /* the value goes to `_` */
    int argc;
    char *const *argv;
    lua_CFunction body; /* what does it, with the job as its argument */
    lua_CFunction call; /* eval_call's */
    void *ctx;
} job;

/* ---- inputs ---- */

/* Is the display of this input silenced by a semicolon at its end? */
static bool is_silenced(const char *code, size_t len) {
    lexer lx = {code, len, 0};
    return lex_is(&lx, lex_last(code, len), ";");
}

/* Is the value at idx one of the standard files, which io.write returns? */
static bool is_standard_file(lua_State *L, int idx) {
    const tide_session *s = session_of(L);
    const luaL_Stream *file = luaL_testudata(L, idx, LUA_FILEHANDLE);
    FILE *const standard[] = {stdin, stdout, stderr, s->in, s->out, s->err};
    bool is = false;
    for (size_t i = 0; file && i < sizeof standard / sizeof *standard; i++)
        is = is || (standard[i] && file->f == standard[i]);
    return is;
}

/* Is there nothing to show of the n values from stack index 2 on? */
static bool says_nothing(lua_State *L, int n) {
    for (int i = 2; i < 2 + n; i++)
        if (!lua_isnil(L, i))
            return n == 1 && is_standard_file(L, i);
    return true;
}

/* A name by itself that stands for nothing is an error, with the nearest one named. */
static bool is_undefined(lua_State *L, const job *j) {
    lexer lx = {j->code, j->len, 0};
    lex_token name = lex_next(&lx);
    if (name.kind != LEX_NAME || lex_last(j->code, j->len).start != name.start)
        return false;
    module_push_function(L, "suggest", "undefined");
    lua_pushlstring(L, j->code + name.start, name.end - name.start);
    lua_call(L, 1, 1);
    if (lua_isstring(L, -1))
        error_plain(j->r, "Error", lua_tostring(L, -1));
    return lua_isstring(L, -1);
}

/* Guards of modes that an input leaves open and nothing holds end with it. */
static void end_loose_modes(lua_State *L, int held) {
    lua_settop(L, 0);
    if (tide_modes_held(L) > held)
        lua_gc(L, LUA_GCCOLLECT);
}

/* The values from stack index 2 on: into the result, the first one also into `_` and Out, unless it
 * is a guard, which these would keep open. */
static void take_values(lua_State *L, const job *j) {
    int n = lua_gettop(L) - 1;
    bool lasts, guard = n == 1 && tide_is_mode(L, 2, &lasts);
    if (guard && lasts)
        return;
    if ((n == 1 && lua_isnil(L, 2) && is_undefined(L, j)) || says_nothing(L, n) ||
        is_silenced(j->code, j->len))
        return;
    if (j->keep && !guard && !lua_isnil(L, 2)) {
        lua_pushvalue(L, 2);
        remember_value(L, j->number);
    }
    display_bundle(L, 2, n, &j->r->value);
}

static int run_magic(lua_State *L) {
    const magic_call *call = lua_touserdata(L, 1);
    const char *chunkname = lua_touserdata(L, 2);
    lua_settop(L, 0);
    return magic_run(L, call, chunkname);
}

static int raise_syntax(lua_State *L) {
    const job *j = lua_touserdata(L, 2);
    const char *prefix = lua_touserdata(L, 3);
    lua_settop(L, 1);
    return syntax_raise(L, j->code, j->len, prefix);
}

/* Pushes a function and its arguments, which it counts: the input, or what raises its error. */
static int push_input(lua_State *L, const job *j, const char *chunkname, bool keeps) {
    const char *code = j->code, *prefix;
    size_t len = j->len;
    if (magic_push_rewritten(L, code, len))
        code = lua_tolstring(L, -1, &len);
    int status = compile_input(L, code, len, chunkname, keeps, &prefix);
    if (status == LUA_OK)
        return 0;
    if (status != LUA_ERRSYNTAX)
        return lua_error(L);
    syntax_name_magic(L, j->code, j->len);
    lua_pushcfunction(L, raise_syntax);
    lua_insert(L, -2);
    lua_pushlightuserdata(L, (void *)j);
    lua_pushlightuserdata(L, (void *)prefix);
    return 3;
}

/* What a module's function gives about the name at the stack index: so many results. */
static void push_answer(lua_State *L, const char *module, const char *function, int name,
                        int nresults) {
    module_push_function(L, module, function);
    lua_pushvalue(L, name);
    lua_call(L, 1, nresults);
}

static void answer_question(lua_State *L, const job *j, size_t start, size_t end, int detail) {
    tide_bundle bundle = {0};
    lua_pushlstring(L, j->code + start, end - start);
    int name = lua_gettop(L);
    if (end == start)
        push_answer(L, "help", "introduction", name, 1);
    if (lua_gettop(L) > name && lua_isstring(L, -1)) {
        j->r->pager = copy_visible(lua_tostring(L, -1), lua_rawlen(L, -1));
    } else if (tide_session_inspect(j->s, j->code + start, end - start, end - start, detail,
                                    &bundle)) {
        j->r->pager = copy_visible(bundle.entries[0].data, bundle.entries[0].len);
    } else {
        push_answer(L, "suggest", "unknown", name, 2);
        if (lua_toboolean(L, -1)) /* a search that found nothing has not failed */
            j->r->pager = copy_visible(lua_tostring(L, -2), lua_rawlen(L, -2));
        else
            error_plain(j->r, "Error", lua_tostring(L, -2));
    }
    tide_bundle_clear(&bundle);
}

/* Is the input exit or quit, and no name of the user's? */
static bool is_farewell(lua_State *L, const job *j) {
    static const char *const words[] = {"exit", "quit", "exit()", "quit()"};
    const char *text = j->code;
    size_t len = j->len;
    bool is = false;
    magic_trim(&text, &len);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        is = is || (strlen(words[i]) == len && memcmp(words[i], text, len) == 0);
    if (!is)
        return false;
    lua_pushglobaltable(L);
    lua_pushlstring(L, text, 4);
    is = lua_rawget(L, -2) == LUA_TNIL;
    lua_pop(L, 2);
    return is;
}

/* As os.exit(true, true). */
static int leave(lua_State *L) {
    lua_pushboolean(L, 1);
    lua_pushboolean(L, 1);
    return control_exit(L);
}

/* Runs the input, or the magic or question that all of it is, above the handler at index 1. */
static void run_input(lua_State *L, const job *j, const char *chunkname) {
    size_t start, end;
    int detail, nargs = 2;
    magic_call call;
    if (magic_parse_question(j->code, j->len, &start, &end, &detail)) {
        answer_question(L, j, start, end, detail);
        return;
    }
    if (magic_parse(j->code, j->len, &call)) {
        call.shown = true;
        lua_pushcfunction(L, run_magic);
        lua_pushlightuserdata(L, &call);
        lua_pushlightuserdata(L, (void *)chunkname);
    } else {
        nargs = push_input(L, j, chunkname, true);
        if (lua_type(L, 2) == LUA_TSTRING) /* the rewritten code */
            lua_remove(L, 2);
    }
    if (control_call(L, nargs, 1) == LUA_OK)
        take_values(L, j);
    else
        error_fill(j->s, j->r);
}

static int eval_body(lua_State *L) {
    const job *j = lua_touserdata(L, 1);
    char chunkname[32];
    lua_settop(L, 0);
    if (j->number) {
        remember_input(L, j->number, j->code, j->len);
        advise_globals(L);
        advise_input(L, j->code, j->len);
    }
    if (is_farewell(L, j)) {
        lua_settop(L, 0);
        return leave(L);
    }
    source_name(j->number, chunkname, sizeof chunkname);
    lua_pushcfunction(L, error_handler);
    int held = tide_modes_held(L);
    run_input(L, j, chunkname);
    end_loose_modes(L, held);
    return 0;
}

static int expression_body(lua_State *L) {
    const job *j = lua_touserdata(L, 1);
    lua_settop(L, 0);
    lua_pushcfunction(L, error_trace);
    const char *prefix;
    int status = compile_expression(L, j->code, j->len, "=(expression)", &prefix);
    int nargs = 0;
    if (status == LUA_ERRSYNTAX) {
        lua_pushcfunction(L, raise_syntax);
        lua_insert(L, -2);
        lua_pushlightuserdata(L, (void *)j);
        lua_pushlightuserdata(L, (void *)prefix);
        nargs = 3;
    }
    if ((status == LUA_OK || status == LUA_ERRSYNTAX) && control_call(L, nargs, 1) == LUA_OK)
        display_bundle(L, 2, lua_gettop(L) - 1, &j->r->value);
    else
        error_fill(j->s, j->r);
    return 0;
}

/* ---- scripts ---- */

/* Sets `arg` where arguments were given, and pushes arg[1], arg[2], …; returns their number. */
static int push_arguments(lua_State *L, const job *j) {
    if (j->argc > 0) {
        lua_createtable(L, j->argc, 1);
        for (int i = 0; i < j->argc; i++) {
            lua_pushstring(L, j->argv[i]);
            lua_rawseti(L, -2, i);
        }
        lua_setglobal(L, "arg");
    }
    if (lua_getglobal(L, "arg") != LUA_TTABLE) {
        lua_pop(L, 1);
        return 0;
    }
    int n = (int)luaL_len(L, -1);
    luaL_checkstack(L, n + 3, "too many arguments to script");
    int arg = lua_gettop(L);
    for (int i = 1; i <= n; i++)
        lua_rawgeti(L, arg, i);
    lua_remove(L, arg);
    return n;
}

/* The compiler refused a script: its message is on top. */
static void script_refused(lua_State *L, const job *j, int status) {
    if (status != LUA_ERRSYNTAX) {
        error_plain(j->r, "Error", lua_tostring(L, -1));
        return;
    }
    size_t len = 0;
    const char *code = "";
    lua_pushfstring(L, "@%s", j->code);
    if (source_push(L, lua_tostring(L, -1)))
        code = lua_tolstring(L, -1, &len);
    while (len > 0 && code[0] == '#') { /* the compiler skips a first line with # */
        const char *newline = memchr(code, '\n', len);
        len = newline ? len - (size_t)(newline - code) : 0;
        code = newline ? newline : code;
    }
    job source = {.code = code, .len = len};
    lua_pushvalue(L, 2);
    lua_pushcfunction(L, raise_syntax);
    lua_insert(L, -2);
    lua_pushlightuserdata(L, &source);
    lua_pushlightuserdata(L, (void *)"");
    if (lua_pcall(L, 3, 0, 0) != LUA_OK)
        error_fill(j->s, j->r);
}

/* Warns of what a script says; of a file alone, since a pipe can't be read again. */
static void advise_file(lua_State *L, const char *path) {
    struct stat file;
    size_t len;
    if (stat(path, &file) != 0 || !S_ISREG(file.st_mode))
        return;
    const char *chunkname = lua_pushfstring(L, "@%s", path);
    if (source_push(L, chunkname)) {
        const char *code = lua_tolstring(L, -1, &len);
        advise_script(L, chunkname, code, len);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

static int script_body(lua_State *L) {
    const job *j = lua_touserdata(L, 1);
    lua_settop(L, 0);
    lua_pushcfunction(L, error_handler);
    int status = luaL_loadfilex(L, j->code, NULL);
    if (status != LUA_OK) {
        script_refused(L, j, status);
        return 0;
    }
    advise_file(L, j->code);
    int n = push_arguments(L, j);
    if (control_call(L, n, 1) != LUA_OK)
        error_fill(j->s, j->r);
    return 0;
}

/* Twice: what a finalizer let go goes with the second collection. */
static int collect_body(lua_State *L) {
    for (int k = 0; k < 2 && lua_gc(L, LUA_GCISRUNNING); k++)
        lua_gc(L, LUA_GCCOLLECT);
    return 0;
}

/* Pushes the function that the whole text is: an expression, or a script, whose last expression may
 * be its value; false: no chunk of Lua. */
static bool push_whole(lua_State *L, const char *code, size_t len) {
    const char *prefix;
    if (compile_expression(L, code, len, SOURCE_STDIN, &prefix) == LUA_OK)
        return true;
    const char *newline = len > 0 && code[0] == '#' ? memchr(code, '\n', len) : NULL;
    size_t skip = newline ? (size_t)(newline - code) : 0;
    lua_settop(L, 1);
    if (luaL_loadbufferx(L, code + skip, len - skip, SOURCE_STDIN, NULL) != LUA_OK) {
        lua_settop(L, 1);
        return false;
    }
    if (session_of(L)->text.shows &&
        compile_input(L, code + skip, len - skip, SOURCE_STDIN, false, &prefix) == LUA_OK)
        lua_replace(L, 2);
    lua_settop(L, 2); /* what is too large with a value is a script without one, as is bytecode */
    return true;
}

/* Raises the error of the first input that does not compile, so that nothing of the text runs. */
static void check_inputs(lua_State *L, job *j) {
    tide_session *s = j->s;
    size_t start, end, at = s->text.at, lines = s->text.lines;
    int detail;
    magic_call call;
    while ((j->code = text_next(s, &j->len)) != NULL) {
        if (magic_parse_question(j->code, j->len, &start, &end, &detail) ||
            magic_parse(j->code, j->len, &call))
            continue;
        int nargs = push_input(L, j, SOURCE_STDIN, false);
        if (nargs)
            lua_call(L, nargs, 0);
        lua_settop(L, 1);
    }
    s->text.at = at;
    s->text.lines = lines;
}

static int check_body(lua_State *L) {
    check_inputs(L, lua_touserdata(L, 1));
    return 0;
}

/* Is help asked for in it, which Lua takes for a call, where it has no help of its own? */
static bool asks_for_help(lua_State *L, const char *code, size_t len) {
    static const char *const own[] = {"function help", "help =", "local help"};
    size_t start, end;
    int detail;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (memmem(code, len, own[i], strlen(own[i])))
            return false;
    bool asks = magic_push_rewritten(L, code, len);
    lua_settop(L, 1);
    return asks || magic_parse_question(code, len, &start, &end, &detail);
}

/* The whole text, where it is one chunk, one question or one cell; else, the first time, checks all
 * its inputs. False: there is nothing to run. */
static bool take_text(lua_State *L, job *j) {
    tide_session *s = j->s;
    magic_call call;
    if (s->text.at > 0)
        return true;
    bool whole =
        !asks_for_help(L, s->text.code, s->text.len) && push_whole(L, s->text.code, s->text.len);
    if (whole || (magic_parse(s->text.code, s->text.len, &call) && call.cell)) {
        j->code = text_whole(s, &j->len);
        return true;
    }
    if (s->text.len > 1 && memcmp(s->text.code, "#!", 2) == 0) {
        const char *newline = memchr(s->text.code, '\n', s->text.len);
        s->text.lines = newline != NULL;
        s->text.at = newline ? (size_t)(newline - s->text.code) + 1 : s->text.len;
    }
    lua_pushcfunction(L, check_body);
    lua_pushlightuserdata(L, j);
    j->code = NULL;
    if (lua_pcall(L, 1, 0, 1) == LUA_OK)
        return true;
    error_fill(s, j->r);
    text_whole(s, &j->len);
    return false;
}

/* Lines of an input without the newlines that stand for what is before it. */
static void remember_text(lua_State *L, const job *j) {
    const char *code = j->code;
    size_t len = j->len;
    magic_trim(&code, &len);
    remember_input(L, j->number, code, len);
}

/* What came by standard input, all at once or the next input of it. */
static int text_body(lua_State *L) {
    job *j = lua_touserdata(L, 1);
    lua_settop(L, 0);
    lua_pushcfunction(L, error_handler);
    if (!take_text(L, j))
        return 0;
    if (lua_type(L, 2) == LUA_TFUNCTION) {
        advise_script(L, SOURCE_STDIN, j->code, j->len);
        if (control_call(L, push_arguments(L, j), 1) == LUA_OK)
            take_values(L, j);
        else
            error_fill(j->s, j->r);
        return 0;
    }
    if (!j->code && !(j->code = text_next(j->s, &j->len)))
        return 0;
    j->number = j->s->count++;
    j->keep = true;
    remember_text(L, j);
    advise_globals(L);
    advise_input(L, j->code, j->len);
    if (is_farewell(L, j)) {
        lua_settop(L, 0);
        return leave(L);
    }
    lua_settop(L, 1);
    int held = tide_modes_held(L);
    run_input(L, j, SOURCE_STDIN);
    end_loose_modes(L, held);
    return 0;
}

/* A function of C, as an input is run. */
static int call_body(lua_State *L) {
    const job *j = lua_touserdata(L, 1);
    lua_settop(L, 0);
    lua_pushcfunction(L, error_handler);
    lua_pushcfunction(L, j->call);
    lua_pushlightuserdata(L, j->ctx);
    if (control_call(L, 1, 1) != LUA_OK)
        error_fill(j->s, j->r);
    return 0;
}

/* ---- the outer protection ---- */

static int job_body(lua_State *L) {
    const job *j = lua_touserdata(L, 1);
    session_mend_registry(L);
    return j->body(L);
}

/* Runs a body of work; whatever it raises itself (memory, a late interrupt) becomes the result. */
static void run_job(job *j, lua_CFunction body) {
    tide_session *s = j->s;
    j->body = body;
    lua_State *L = s->L;
    int top = lua_gettop(L);
    double began = tide_clock_wall();
    tide_print_options *printing = tide_print_options_of(L);
    if (printing)
        printing->terminal = s->frontend.width;
    if (s->depth == 0)
        output_forget_input(s);
    control_begin(s);
    lua_pushcfunction(L, job_body);
    lua_pushlightuserdata(L, j);
    if (lua_pcall(L, 1, 0, 0) != LUA_OK) {
        stop_reason stop = control_stopping(s);
        const char *message = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "error";
        tide_result_clear(j->r);
        error_plain(j->r, stop == STOP_INTERRUPT ? "Interrupt" : "Error",
                    stop == STOP_INTERRUPT ? "interrupted" : message);
        if (stop != STOP_NONE)
            j->r->outcome = stop == STOP_EXIT ? TIDE_EXIT : TIDE_INTERRUPTED;
        j->r->exit_code = s->exit_code;
    }
    control_end(s);
    lua_settop(L, top);
    j->r->seconds = tide_clock_wall() - began;
}

static bool is_blank(const char *code, size_t len) {
    for (size_t i = 0; i < len; i++)
        if (!strchr(" \t\r\n\f\v", code[i]) || code[i] == '\0')
            return false;
    return true;
}

void tide_session_eval(tide_session *s, const char *code, size_t len, bool silent, tide_result *r) {
    *r = (tide_result){0};
    char *plain = transcript_plain(&code, &len);
    if (is_blank(code, len)) {
        free(plain);
        return;
    }
    job j = {.s = s, .r = r, .code = code, .len = len, .keep = !silent};
    const char *outer = s->input; /* an evaluation may run inside another */
    size_t outer_len = s->input_len;
    s->input = code;
    s->input_len = len;
    if (!silent) {
        j.number = s->count++;
        history_add(s, j.number, code, len);
    }
    run_job(&j, eval_body);
    if (!silent && r->value.n > 0)
        history_add_output(s, j.number, r->value.entries[0].data, r->value.entries[0].len);
    s->input = outer;
    s->input_len = outer_len;
    free(plain);
}

void tide_session_run_file(tide_session *s, const char *path, int argc, char *const *argv,
                           tide_result *r) {
    *r = (tide_result){0};
    job j = {.s = s, .r = r, .code = path, .len = strlen(path), .argc = argc, .argv = argv};
    run_job(&j, script_body);
}

bool tide_session_run_init(tide_session *s, tide_result *r) {
    char path[4096];
    const char *folder = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    bool own = folder && folder[0] == '/';
    *r = (tide_result){0};
    if (!own && !(home && home[0] == '/'))
        return false;
    int n = snprintf(path, sizeof path, "%s%s/tide/init.lua", own ? folder : home,
                     own ? "" : "/.config");
    if (n < 0 || (size_t)n >= sizeof path || access(path, F_OK) != 0)
        return false;
    tide_session_run_file(s, path, 0, NULL, r);
    return true;
}

bool tide_session_run_text(tide_session *s, tide_result *r) {
    *r = (tide_result){0};
    bool any = s->text.at < s->text.len;
    job j = {.s = s, .r = r};
    if (any)
        run_job(&j, text_body);
    return any;
}

void tide_session_rest(tide_session *s, bool collects) {
    tide_result r = {0};
    job j = {.s = s, .r = &r};
    if (collects)
        run_job(&j, collect_body);
    tide_result_clear(&r);
    td_memory_empty_cache(TD_DEVICE_CPU);
}

void tide_session_expression(tide_session *s, const char *code, size_t len, tide_result *r) {
    *r = (tide_result){0};
    job j = {.s = s, .r = r, .code = code, .len = len};
    run_job(&j, expression_body);
}

void eval_call(tide_session *s, lua_CFunction body, void *ctx, tide_result *r) {
    *r = (tide_result){0};
    job j = {.s = s, .r = r, .call = body, .ctx = ctx};
    run_job(&j, call_body);
}
