/* state.h: what a session is to its own files, and how a Lua state finds it.
 *
 * The files of this folder stand on floors, one file a floor: each includes and calls only what is
 * below it. Their order stands in tests/style/rules.py (FILE_FLOORS), which is held against
 * includes and calls; session.h, the face that front ends see, is the ground.
 */
#ifndef TIDE_SESSION_STATE_H
#define TIDE_SESSION_STATE_H

#include "repl/session/session.h"

#include <lua.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

struct history;
struct magic;

struct tide_session {
    lua_State *L;
    lua_State *vault; /* a coroutine, whose stack holds what the registry held at first */
    tide_frontend frontend;
    int count; /* number of the next input */
    struct history *history;
    const struct magic *const *magics; /* NULL-terminated; magic.c calls back through it */
    lua_CFunction magic_line;          /* what the lines of an input that are magics call */
    const char *input;                 /* what is being evaluated; borrowed, NULL: nothing */
    size_t input_len;
    struct {               /* text.c: what came by standard input; code is NULL: nothing did */
        char *code, *rest; /* as it came; and the input of now, with newlines before it */
        size_t len, at;    /* at: where the next input begins */
        bool shows;        /* a script's last expression too */
        size_t lines;      /* newlines before that */
    } text;

    /* control.c; `running`, `evaluating` and `stop` are read in a signal handler */
    tide_session *outer; /* the session this thread was evaluating when this one began */
    lua_State *_Atomic running;
    atomic_bool evaluating;
    atomic_bool expecting, awaited; /* an evaluation is about to come; its interrupt came first */
    atomic_int stop;                /* a stop_reason */
    atomic_bool raised;             /* the stop has been raised at least once */
    atomic_bool settling;           /* the next instruction is to run before it is raised */
    atomic_int asked;               /* interrupts that count, since the last one landed */
    atomic_bool to_say;             /* what holds it */
    _Atomic int64_t asked_at;
    atomic_int child;         /* the process of a program that os.execute runs; 0: none */
    _Atomic int64_t heard_at; /* the last Ctrl-C that it heard; 0: none */
    atomic_int heard;         /* how many there were */
    atomic_bool ended;        /* we ended it for them */
    lua_Alloc alloc;          /* behind the one that refuses */
    void *alloc_ud;
    int refusals;           /* in a row */
    _Atomic(lua_Hook) hook; /* what the user set, while it is not in its place */
    atomic_int hook_mask, hook_count;
    atomic_bool hook_given; /* it is, or ours is: the user's code runs */
    bool hook_failed;       /* it raised the error of this evaluation, and was taken away */
    pthread_t thread;
    int depth; /* evaluations begun and not ended */
    int exit_code;
    bool exit_quietly; /* os.exit without `close`: pending __close functions are not run */
    bool traced;       /* errors.c: the error on its way was seen by a handler */

    /* output.c */
    FILE *out, *err, *in; /* streams that lead to the front end; NULL: the process's own */
    int captured[2];      /* how often capture.c has taken standard output and error */
    char *line;           /* what read_line gave and the program has not read yet */
    size_t line_len, line_at;
    char *answer; /* ask.c: a line on its way to Lua */
    struct {
        char *text; /* assist.c: what was found unfinished last; NULL: nothing */
        size_t len, room;
        char open; /* what its end stands in, as lex_innermost says */
        bool item; /* the items of that table are whole */
    } unfinished;
    bool warnings; /* warn("@on") */
    bool silenced; /* warn("@off"): Tide's own too */
    bool warning_continues, warning_shown;
};

/* Makes the state the session's, once, before session_of and before there are coroutines. */
void session_bind(lua_State *L, tide_session *s);
/* The session a state belongs to. */
tide_session *session_of(lua_State *L);
/* Keeps what the registry holds now, for a script can empty it by debug.getregistry, and pushes
 * what must stay on the state's stack. May raise (memory). */
void session_keep_registry(lua_State *L);
/* Gives an emptied registry back what was kept. May raise (memory). */
void session_mend_registry(lua_State *L);

#endif
