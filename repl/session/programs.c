/* programs.c: os.execute, whose programs share the terminal's Ctrl-C with us. What a person meant
 * by one is told by what the program does: it dies of it, or ends just then (it may have been about
 * to end anyhow): then the evaluation stops too. A program that goes on has use for Ctrl-C itself.
 */
#include "repl/session/programs.h"

#include "repl/session/state.h"

#include <errno.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* A program that ends so soon after a Ctrl-C is taken to have ended by it. */
#define JUST_THEN_NS INT64_C(100000000)

/* What a program does with a Ctrl-C. */
typedef enum use_of_interrupts { HAS_ENDED, IGNORES_THEM, HEARS_THEM } use_of_interrupts;

/* As /proc tells; in a signal handler. */
static use_of_interrupts look_at(int process) {
    char path[40], text[4096];
    static const char field[] = "\nSigIgn:";
    snprintf(path, sizeof path, "/proc/%d/status", process);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return kill(process, 0) == 0 ? HEARS_THEM : HAS_ENDED;
    ssize_t n = read(file, text, sizeof text - 1);
    close(file);
    text[n > 0 ? n : 0] = '\0';
    const char *mask = strstr(text, field);
    if (strstr(text, "\nState:\tZ"))
        return HAS_ENDED;
    bool ignores = mask && (strtoull(mask + sizeof field - 1, NULL, 16) & 1ull << (SIGINT - 1));
    return ignores ? IGNORES_THEM : HEARS_THEM;
}

/* A program that ignores the first Ctrl-C, as none does that has use for it, is ended by the
 * second, and the evaluation with it. One that has not begun, or has ended, heard nothing. */
bool tide_session_program_hears(tide_session *s) {
    int error = errno, child = atomic_load(&s->child);
    use_of_interrupts use = child > 0 ? look_at(child) : HAS_ENDED;
    if (use != HAS_ENDED) {
        atomic_store(&s->heard_at, control_now_ns());
        if (atomic_fetch_add(&s->heard, 1) > 0 && use == IGNORES_THEM) {
            atomic_store(&s->ended, true);
            kill(child, SIGTERM);
        }
    }
    errno = error;
    return use != HAS_ENDED;
}

/* The program's status as wait() gives it, or -1 with errno. */
static int run_program(tide_session *s, const char *command) {
    char *const arguments[] = {(char *)"sh", (char *)"-c", (char *)command, NULL};
    struct sigaction ignore = {.sa_handler = SIG_IGN}, quit;
    posix_spawnattr_t attributes;
    sigset_t defaults;
    pid_t child, ended;
    int status = -1, error = posix_spawnattr_init(&attributes);
    if (error) {
        errno = error;
        return -1;
    }
    sigemptyset(&ignore.sa_mask);
    sigaction(SIGQUIT, &ignore, &quit); /* the program's alone */
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGQUIT);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    error = posix_spawn(&child, "/bin/sh", NULL, &attributes, arguments, environ);
    posix_spawnattr_destroy(&attributes);
    if (error == 0) {
        atomic_store(&s->child, (int)child);
        if (control_stopping(s) != STOP_NONE) { /* a Ctrl-C that came before the program */
            atomic_fetch_add(&s->heard, 1);
            kill(child, SIGINT);
        }
        do
            ended = waitpid(child, &status, 0);
        while (ended < 0 && errno == EINTR);
        atomic_store(&s->child, 0);
    }
    sigaction(SIGQUIT, &quit, NULL);
    if (error == 0)
        return ended < 0 ? -1 : status;
    errno = error;
    return -1;
}

static lua_CFunction original;

/* os.execute([command]) */
static int execute(lua_State *L) {
    tide_session *s = session_of(L);
    if (lua_isnoneornil(L, 1) || !atomic_load(&s->evaluating))
        return original(L);
    const char *command = luaL_checkstring(L, 1);
    atomic_store(&s->heard_at, 0);
    atomic_store(&s->heard, 0);
    atomic_store(&s->ended, false);
    errno = 0;
    int status = control_stopping(s) == STOP_NONE ? run_program(s, command) : -1, error = errno;
    int64_t heard = atomic_load(&s->heard_at);
    bool died = status != -1 && WIFSIGNALED(status) && WTERMSIG(status) == SIGINT;
    bool just_then = heard && control_now_ns() - heard < JUST_THEN_NS;
    if (control_stopping(s) == STOP_NONE && (died || atomic_load(&s->ended) || just_then))
        tide_session_interrupt(s);
    if (control_stopping(s) != STOP_NONE)
        return luaL_error(L, "interrupted");
    errno = error;
    return luaL_execresult(L, status);
}

void programs_install(lua_State *L) {
    lua_getglobal(L, "os");
    lua_getfield(L, -1, "execute");
    original = lua_tocfunction(L, -1);
    lua_pushcfunction(L, execute);
    lua_setfield(L, -3, "execute");
    lua_pop(L, 2);
}
