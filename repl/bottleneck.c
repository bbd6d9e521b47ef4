/* bottleneck.c: see bottleneck.h. What is recorded and what the page says is Lua
 * (lua-bindings/lua/profiler/bottleneck.lua); here are the processes.
 */
#include "repl/bottleneck.h"
#include "repl/protected.h"
#include "repl/session/eval.h"

#include "lua-bindings/tide_lua.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { PARTS = 3 };
static const char *const parts[PARTS] = {"operators", "functions", "memory"}; /* in this order */

typedef struct run {
    char path[64]; /* of what it saw */
    int code;
    bool interrupted;
} run;

/* ---- Lua's side ---- */

/* (name, ...): a function of tide._require("profiler.bottleneck"). Returns its value. */
static int call_bottleneck(lua_State *L) {
    tide_session_push_tide(L);
    tide_push_part(L, "profiler.bottleneck");
    lua_getfield(L, -1, lua_tostring(L, 1));
    lua_replace(L, 1);
    lua_pop(L, 2);
    lua_call(L, lua_gettop(L) - 1, 1);
    return 1;
}

typedef struct part_call {
    const char *name, *part, *path;
} part_call;

static int call_part(lua_State *L) {
    const part_call *c = lua_touserdata(L, 1);
    lua_settop(L, 0);
    lua_pushcfunction(L, call_bottleneck);
    lua_pushstring(L, c->name);
    lua_pushstring(L, c->part);
    lua_pushstring(L, c->path);
    lua_call(L, 3, 0);
    return 0;
}

/* As an input: a hook that it sets or takes away is the script's. */
static bool call(tide_session *s, part_call c) {
    tide_result r;
    eval_call(s, call_part, &c, &r);
    bool ok = r.outcome == TIDE_OK;
    if (!ok)
        fprintf(stderr, "tide: --bottleneck: %s\n", tide_result_message(&r));
    tide_result_clear(&r);
    return ok;
}

bool bottleneck_begin(tide_session *s, const char *part) {
    return call(s, (part_call){"begin", part, NULL});
}

bool bottleneck_finish(tide_session *s, const char *part, const char *path) {
    return call(s, (part_call){"finish", part, path});
}

/* (script, path, code, path, code, ...): the page, or nil. */
static int make_page(lua_State *L) {
    lua_pushcfunction(L, call_bottleneck);
    lua_pushliteral(L, "page");
    lua_pushvalue(L, 1);
    lua_createtable(L, 0, PARTS);
    lua_createtable(L, 0, PARTS);
    for (int k = 0; k < PARTS; k++) {
        lua_pushvalue(L, 2 + 2 * k);
        lua_setfield(L, -3, parts[k]);
        lua_pushinteger(L, lua_tointeger(L, 3 + 2 * k));
        lua_setfield(L, -2, parts[k]);
    }
    lua_call(L, 4, 1);
    return 1;
}

static void print_page(tide_session *s, const char *script, run *runs) {
    lua_State *L = tide_session_lua(s);
    const char *texts[1 + 2 * PARTS] = {script};
    char codes[PARTS][16];
    for (int k = 0; k < PARTS; k++) {
        snprintf(codes[k], sizeof codes[k], "%d", runs[k].code);
        texts[1 + 2 * k] = runs[k].path;
        texts[2 + 2 * k] = codes[k];
    }
    const char *problem = protected_call(L, make_page, 1 + 2 * PARTS, texts);
    if (problem)
        fprintf(stderr, "tide: --bottleneck: %s\n", problem);
    else if (lua_isstring(L, -1))
        fputs(lua_tostring(L, -1), stdout);
    else
        fputs("tide: --bottleneck: the script left nothing to look at\n", stderr);
    lua_pop(L, 1);
}

/* ---- processes ---- */

/* Only the first run is seen, heard and asked. */
static int start(pid_t *child, char **arguments, bool silent) {
    posix_spawn_file_actions_t actions;
    int error = posix_spawn_file_actions_init(&actions);
    if (error)
        return error;
    for (int fd = 0; fd <= 2 && silent && !error; fd++)
        error = posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
    if (!error)
        error = posix_spawn(child, "/proc/self/exe", &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* Waits; an interrupt is the run's to take. */
static void await(pid_t child, run *r) {
    int status;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    r->interrupted = WIFSIGNALED(status) && WTERMSIG(status) == SIGINT;
    r->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* tide --bottleneck-part PART PATH script arguments. False, with a line on stderr: it did not run.
 */
static bool run_part(char **argv, int script, int part, run *r) {
    int given = 0;
    while (argv[script + given])
        given++;
    char **arguments = calloc((size_t)given + 6, sizeof *arguments);
    char option[] = BOTTLENECK_PART, end[] = "--", name[16];
    pid_t child;
    if (!arguments) {
        fputs("tide: out of memory\n", stderr);
        return false;
    }
    snprintf(name, sizeof name, "%s", parts[part]);
    memcpy(arguments, (char *[]){argv[0], option, name, r->path, end}, 5 * sizeof *arguments);
    memcpy(arguments + 5, argv + script, (size_t)given * sizeof *arguments);
    fflush(stdout);
    int error = start(&child, arguments, part > 0);
    free(arguments);
    if (error) {
        fprintf(stderr, "tide: --bottleneck: %s\n", strerror(error));
        return false;
    }
    await(child, r);
    return true;
}

static bool make_file(run *r) {
    snprintf(r->path, sizeof r->path, "/tmp/tide-bottleneck.XXXXXX");
    int fd = mkstemp(r->path);
    if (fd < 0) {
        fprintf(stderr, "tide: --bottleneck: /tmp: %s\n", strerror(errno));
        *r->path = '\0';
        return false;
    }
    close(fd);
    return true;
}

int bottleneck_run(tide_session *s, char **argv, int script, bool *interrupted) {
    run runs[PARTS] = {0};
    bool ok = true;
    for (int k = 0; k < PARTS && ok && !*interrupted; k++) {
        ok = make_file(&runs[k]) && run_part(argv, script, k, &runs[k]);
        *interrupted = runs[k].interrupted;
    }
    if (ok && !*interrupted)
        print_page(s, argv[script], runs);
    for (int k = 0; k < PARTS; k++)
        if (*runs[k].path)
            unlink(runs[k].path);
    return ok ? runs[0].code : 1;
}
