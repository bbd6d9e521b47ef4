/* internal.h: what the files of the session share; nobody outside repl/session includes it.
 *
 * session.c   the state, the private environment, the embedded modules
 * control.c   interrupt, os.exit, the running coroutine
 * output.c    print and the standard streams
 * eval.c      inputs, scripts, expressions
 * errors.c    what a Lua error becomes
 * magic.c     %timeit and its kin
 * display.c   what a value becomes
 * assist.c    complete, inspect, is_complete
 * history.c   inputs in memory and on disk
 * result.c    the structures handed out
 */
#ifndef TIDE_SESSION_INTERNAL_H
#define TIDE_SESSION_INTERNAL_H

#include "repl/session/session.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>

typedef struct history history;

/* Why the evaluation is being unwound. */
typedef enum stop_reason { STOP_NONE, STOP_INTERRUPT, STOP_EXIT } stop_reason;

struct tide_session {
    lua_State *L;
    tide_frontend frontend;
    int count; /* number of the next input */
    history *history;
    const char *input; /* what is being evaluated; borrowed, NULL: nothing */
    size_t input_len;

    /* control.c; `running`, `evaluating` and `stop` are read in a signal handler */
    tide_session *outer; /* the session this thread was evaluating when this one began */
    lua_State *_Atomic running;
    atomic_bool evaluating;
    atomic_int stop;
    atomic_bool raised; /* the stop has been raised at least once */
    pthread_t thread;
    int depth; /* evaluations begun and not ended */
    int exit_code;
    bool exit_quietly; /* os.exit without `close`: pending __close functions are not run */

    FILE *out, *err, *in; /* streams that lead to the front end; NULL: the process's own */
    char *line;           /* what read_line gave and the program has not read yet */
    size_t line_len, line_at;
    bool warnings; /* warn("@on") */
    bool warning_continues;
};

/* ---- session.c ---- */

/* Pushes the table of an embedded module (loaded at its first use). Raises Lua errors. */
void session_push_module(lua_State *L, const char *name);
/* Pushes a function of an embedded module. */
void session_push_function(lua_State *L, const char *module, const char *function);
/* The session a state belongs to. */
tide_session *session_of(lua_State *L);

/* ---- control.c ---- */
void control_install(lua_State *L);
void control_begin(tide_session *s);
void control_end(tide_session *s);
stop_reason control_stopping(const tide_session *s);

/* ---- output.c ---- */
int output_install(tide_session *s); /* 0, or -1 when memory is out */
void output_free(tide_session *s);
/* To the front end, or to the process's own stream. */
void session_write(tide_session *s, tide_stream stream, const char *bytes, size_t len);

/* ---- errors.c ---- */

/* Message handler of every evaluation: keeps the traceback (and a hint) for error_fill. */
int error_handler(lua_State *L);
/* Fills r from the error object on top of the stack, and pops it. May raise (memory). */
void error_fill(tide_session *s, tide_result *r);
/* Raises a syntax error: the compiler's message is on top of the stack, `code` is what the user
 * wrote, `prefix` what was put before it when it was compiled. */
int error_raise_syntax(lua_State *L, const char *code, size_t len, const char *prefix);
/* How far into code the compiler's message on top of the stack points (bytes); len: at its end;
 * ERROR_NOWHERE: can't be told. */
#define ERROR_NOWHERE ((size_t)-1)
size_t error_offset(lua_State *L, const char *code, size_t len, const char *prefix);
/* An error of one line without traceback; never raises. */
void error_plain(tide_result *r, const char *ename, const char *message);

/* ---- eval.c ---- */

/* Compile as an expression, else as statements, and push the function; or push the compiler's
 * message, set *prefix to the form it speaks of, and return a Lua status. */
int eval_compile(lua_State *L, const char *code, size_t len, const char *chunkname,
                 const char **prefix);
/* The text a chunk name stands for: pushes the source of "=In[3]", or returns false. */
bool eval_push_source(lua_State *L, const char *chunkname);

/* ---- magic.c ---- */
typedef struct magic_call {
    const char *name; /* of the magic, in the input */
    size_t name_len;
    const char *args; /* rest of its line */
    size_t args_len;
    const char *body; /* following lines, for %% */
    size_t body_len;
    bool cell;
} magic_call;

/* Is the whole input one magic? */
bool magic_parse(const char *code, size_t len, magic_call *call);
/* Is the input "?name", "name?", with one question mark or two? */
bool magic_parse_question(const char *code, size_t len, size_t *start, size_t *end, int *detail);
/* Pushes code in which the lines that are magics became calls; false: there are none. */
bool magic_push_rewritten(lua_State *L, const char *code, size_t len);
/* Runs one magic; leaves its values on the stack and returns their number. Raises Lua errors. */
int magic_run(lua_State *L, const magic_call *call, const char *chunkname);
/* The names of the magics, NULL-terminated, and the line that explains each. */
extern const char *const magic_names[];
extern const char *const magic_docs[];

/* ---- display.c ---- */

/* Pushes the text of the value at idx. Raises only what must pass (interrupts, memory). */
void display_push_plain(lua_State *L, int idx);
/* The bundle of n values from stack index `first` on. */
void display_bundle(lua_State *L, int first, int n, tide_bundle *bundle);
void display_install(lua_State *L); /* tide.display and its kin; the tide table is on top */

/* ---- history.c ---- */
history *history_new(void);
void history_free(history *h);
void history_add(tide_session *s, int line, const char *input, size_t len);
/* Input n of this session, or NULL. Borrowed. */
const char *history_input(const tide_session *s, int line, size_t *len);

/* ---- assist.c ---- */
void assist_install(lua_State *L, int env); /* functions the embedded modules use */

/* ---- result.c ---- */

/* A malloc'ed, NUL-terminated copy; NULL when memory is out. */
char *copy_bytes(const char *bytes, size_t len);
char *copy_string(const char *text);
void bundle_add(tide_bundle *bundle, const char *type, const char *data, size_t len);
/* Appends a line (or several, cut at newlines) to the traceback. */
void result_add_lines(tide_result *r, const char *text, size_t len);

#endif
