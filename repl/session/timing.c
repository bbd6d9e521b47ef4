/* timing.c: %timeit: its options and its loop; %time. The arithmetic is the profiler's
 * (profiler/timing.h).
 */
#include "repl/session/timing.h"
#include "repl/session/compile.h"
#include "repl/session/output.h"
#include "repl/session/scope.h"
#include "repl/session/state.h"
#include "repl/session/syntax.h"

#include "lua-bindings/state/state.h"

#include "engine/core/number.h"
#include "engine/core/observer.h"
#include "profiler/timing.h"

#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

/* ---- %timeit ---- */

typedef struct timeit_options {
    long loops; /* 0: find out */
    int runs, digits;
    bool quiet, result;
} timeit_options;

/* A number from *text on, which moves past it. */
static long read_count(lua_State *L, const char **text, char option, long most) {
    while (**text == ' ' || **text == '\t')
        (*text)++;
    char *end;
    long value = strtol(*text, &end, 10);
    if (end == *text || value < 1 || value > most)
        luaL_error(L, "%%timeit: -%c takes a whole number from 1 to %d", option, (int)most);
    *text = end;
    return value;
}

/* Reads the options off the front of a NUL-terminated text; returns what follows them. */
static const char *read_options(lua_State *L, const char *text, timeit_options *o) {
    *o = (timeit_options){.runs = 7, .digits = 3};
    for (;;) {
        while (*text == ' ' || *text == '\t')
            text++;
        if (text[0] != '-' || text[1] == '\0')
            return text;
        char option = text[1];
        text += 2;
        if (option == '-' && (*text == ' ' || *text == '\0'))
            return text;
        if (option == 'n')
            o->loops = read_count(L, &text, option, 1000000000);
        else if (option == 'r')
            o->runs = (int)read_count(L, &text, option, 10000);
        else if (option == 'p')
            o->digits = (int)read_count(L, &text, option, 17);
        else if (option == 'q' && (*text == ' ' || *text == '\0'))
            o->quiet = true;
        else if (option == 'o' && (*text == ' ' || *text == '\0'))
            o->result = true;
        else
            luaL_error(L, "%%timeit: unknown option -%c (known: -n, -r, -p, -q, -o; -- ends them)",
                       option);
    }
}

/* Stands still while something is loaded. */
static int clock_seconds(lua_State *L) {
    lua_pushnumber(L, tide_clock_wall() - 1e-9 * (double)td_loading_ns());
    return 1;
}

/* Compile, or raise the syntax error. Leaves the function; returns whether it is an expression. */
static bool compile(lua_State *L, const char *code, size_t len, const char *chunkname, bool keeps) {
    const char *prefix;
    int status = compile_input(L, code, len, chunkname, keeps, &prefix);
    if (status == LUA_ERRSYNTAX)
        syntax_raise(L, code, len, prefix);
    if (status != LUA_OK)
        lua_error(L);
    return prefix[0] != '\0';
}

/* Is code a statement too (a call)? */
static bool is_statement(lua_State *L, const char *code, size_t len) {
    bool ok = luaL_loadbufferx(L, code, len, "=", "t") == LUA_OK;
    lua_pop(L, 1);
    return ok;
}

/* Pushes function(loops, clock, mark) that runs the setup, then the statement so many times, and
 * returns the mark and the time. The mark tells a statement that returned by itself. */
static void push_loop(lua_State *L, const char *setup, size_t setup_len, const char *body,
                      size_t body_len) {
    static const char chunkname[] = "=%timeit";
    if (setup_len) {
        compile(L, setup, setup_len, "=%timeit setup", false);
        lua_pop(L, 1);
    }
    bool expression = compile(L, body, body_len, chunkname, false);
    lua_pop(L, 1);
    luaL_Buffer text;
    luaL_buffinit(L, &text);
    luaL_addstring(&text, "local __loops, __clock, __mark = ...; ");
    luaL_addlstring(&text, setup, setup_len);
    luaL_addstring(&text, setup_len ? "\n" : " ");
    luaL_addstring(&text, "local __began = __clock() for __i = 1, __loops do ");
    if (expression && !is_statement(L, body, body_len))
        luaL_addstring(&text, "local _ = ");
    luaL_addlstring(&text, body, body_len);
    luaL_addstring(&text, "\nend return __mark, __clock() - __began");
    luaL_pushresult(&text);
    scope_input input = {lua_tostring(L, -1), lua_rawlen(L, -1), SCOPE_NO_VALUE, false};
    if (scope_load(L, &input, chunkname) != LUA_OK)
        lua_error(L);
    lua_remove(L, -2);
}

/* Seconds that the loop function at idx takes for so many loops, without what is loaded and the
 * first touch of memory, which are added to *loading. */
static double run_loop(lua_State *L, int idx, long loops, double *loading) {
    static const char mark;
    int64_t before = td_loading_ns();
    lua_gc(L, LUA_GCCOLLECT); /* each run begins with the same heap */
    lua_pushvalue(L, idx);
    lua_pushinteger(L, loops);
    lua_pushcfunction(L, clock_seconds);
    lua_pushlightuserdata(L, (void *)&mark);
    lua_call(L, 3, 2);
    if (lua_touserdata(L, -2) != &mark)
        luaL_error(L, "%%timeit: the statement must not return");
    double seconds = lua_tonumber(L, -1);
    lua_pop(L, 2);
    *loading += (double)(td_loading_ns() - before) * 1e-9;
    return seconds;
}

static int result_tostring(lua_State *L) {
    lua_getfield(L, 1, "text");
    return 1;
}

/* Pushes what -o returns. */
static void push_timeit_result(lua_State *L, const tide_summary *sum, const double *times,
                               long loops, const char *text) {
    const struct {
        const char *name;
        double value;
    } fields[] = {
        {"average", sum->mean}, {"stdev", sum->stdev}, {"best", sum->best}, {"worst", sum->worst}};
    lua_createtable(L, 0, 8);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        lua_pushnumber(L, fields[i].value);
        lua_setfield(L, -2, fields[i].name);
    }
    lua_pushinteger(L, loops);
    lua_setfield(L, -2, "loops");
    lua_pushinteger(L, sum->n);
    lua_setfield(L, -2, "runs");
    lua_pushstring(L, text);
    lua_setfield(L, -2, "text");
    lua_createtable(L, sum->n, 0);
    for (int i = 0; i < sum->n; i++) {
        lua_pushnumber(L, times[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "timings");
    lua_createtable(L, 0, 2);
    lua_pushcfunction(L, result_tostring);
    lua_setfield(L, -2, "__tostring");
    lua_pushliteral(L, "TimeitResult");
    lua_setfield(L, -2, "__name");
    lua_setmetatable(L, -2);
}

static int run_timeit(lua_State *L, const magic_call *call, const char *chunkname) {
    (void)chunkname;
    tide_session *s = session_of(L);
    timeit_options o;
    lua_pushlstring(L, call->args, call->args_len);
    const char *args = lua_tostring(L, -1);
    const char *setup = "", *body = read_options(L, args, &o);
    size_t setup_len = 0, body_len = call->args_len - (size_t)(body - args);
    if (call->cell) {
        setup = body;
        setup_len = body_len;
        body = call->body;
        body_len = call->body_len;
    }
    const char *rest = body;
    size_t rest_len = body_len;
    magic_trim(&rest, &rest_len);
    if (rest_len == 0)
        return luaL_error(L, "%%timeit: nothing to time");
    push_loop(L, setup, setup_len, body, body_len);
    int loop = lua_gettop(L);
    double loading = 0;
    tide_watch_until_return(L);
    if (o.loops == 0) {
        o.loops = 1;
        for (long next;
             (next = tide_autorange_next(o.loops, run_loop(L, loop, o.loops, &loading))) != 0;)
            o.loops = next;
    }
    double *times = lua_newuserdatauv(L, (size_t)o.runs * sizeof *times, 0);
    for (int i = 0; i < o.runs; i++)
        times[i] = run_loop(L, loop, o.loops, &loading) / (double)o.loops;
    tide_summary sum = tide_summarize(times, o.runs);
    char text[256];
    if (!o.quiet && tide_summary_spread(&sum)) {
        td_number_print(
            text, sizeof text,
            "The slowest run took %.2f times longer than the fastest. Something was cached, "
            "or the machine was busy.",
            sum.worst / sum.best);
        output_line(s, text);
    }
    if (!o.quiet && loading >= 1e-3) {
        char took[64];
        snprintf(text, sizeof text,
                 "Loading and first touches of memory took %s, which is left out.",
                 tide_format_time(loading, o.digits, took, sizeof took));
        output_line(s, text);
    }
    tide_format_summary(&sum, o.loops, o.digits, text, sizeof text);
    if (!o.quiet && !(o.result && call->shown))
        output_line(s, text);
    if (!o.result)
        return 0;
    push_timeit_result(L, &sum, times, o.loops, text);
    return 1;
}

const magic magic_timeit = {
    "timeit",
    "%timeit [-n loops] [-r runs] [-p digits] [-q] [-o] stmt: run many times, show mean and "
    "deviation; %%timeit [options] [setup] above a cell times the lines below it. -q prints "
    "nothing, -o returns the result",
    run_timeit};

/* ---- %time ---- */

static int run_time(lua_State *L, const magic_call *call, const char *chunkname) {
    tide_session *s = session_of(L);
    luaL_Buffer text;
    luaL_buffinit(L, &text);
    for (int line = call->cell ? 0 : 1; line < call->line; line++)
        luaL_addchar(&text, '\n'); /* so that lines count as in the input */
    luaL_addlstring(&text, call->cell ? call->body : call->args,
                    call->cell ? call->body_len : call->args_len);
    luaL_pushresult(&text);
    if (magic_push_rewritten(L, lua_tostring(L, -1), lua_rawlen(L, -1)))
        lua_remove(L, -2);
    compile(L, lua_tostring(L, -1), lua_rawlen(L, -1), chunkname, true);
    int base = lua_gettop(L) - 1;
    tide_cpu_times cpu = tide_clock_cpu();
    double began = tide_clock_wall();
    lua_call(L, 0, LUA_MULTRET);
    double wall = tide_clock_wall() - began;
    tide_cpu_times after = tide_clock_cpu();
    double user = after.user - cpu.user, sys = after.sys - cpu.sys;
    char texts[4][64];
    lua_pushfstring(L, "CPU times: user %s, sys: %s, total: %s\nWall time: %s",
                    tide_format_time(user, 3, texts[0], sizeof texts[0]),
                    tide_format_time(sys, 3, texts[1], sizeof texts[1]),
                    tide_format_time(user + sys, 3, texts[2], sizeof texts[2]),
                    tide_format_time(wall, 3, texts[3], sizeof texts[3]));
    output_line(s, lua_tostring(L, -1));
    lua_pop(L, 1);
    return lua_gettop(L) - base;
}

const magic magic_time = {
    "time", "%time stmt, or %%time above a cell: run once, show processor and wall time", run_time};
