/* session.h: one conversation with a Lua state: evaluate, complete, inspect, magics, history.
 *
 * The session is what the terminal and the Jupyter kernel share. It owns a Lua state with the
 * standard libraries and the global `tide`, and it knows neither terminals nor sockets: whatever
 * leaves it goes through the `tide_frontend` given at creation.
 *
 * Threads: one thread at a time may be inside a session; tide_session_interrupt() alone may be
 * called from any thread and from a signal handler.
 *
 * Ownership: every `char *` in a result belongs to the result and dies with its _clear function.
 */
#ifndef TIDE_SESSION_H
#define TIDE_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lua_State;
typedef struct tide_session tide_session;

typedef enum tide_stream { TIDE_STDOUT, TIDE_STDERR } tide_stream;

/* One representation of a value: MIME type and bytes (UTF-8 text, or base64 for binary types).
 * For "application/json" and types ending in "+json", `data` is JSON text. */
typedef struct tide_mime {
    char *type;
    char *data;
    size_t len;
} tide_mime;

/* A MIME bundle. `n` entries; text/plain comes first and is always there when n > 0. */
typedef struct tide_bundle {
    tide_mime *entries;
    int n;
    char *metadata; /* JSON text: an object of what front ends are told by type; NULL: nothing */
} tide_bundle;

/* A message of a comm: JSON texts, and bytes that JSON can't carry. All of it is borrowed. */
typedef struct tide_bytes {
    const char *data;
    size_t len;
} tide_bytes;
typedef struct tide_comm_message {
    const char *type; /* "comm_open", "comm_msg" or "comm_close" */
    tide_bytes content, metadata;
    const tide_bytes *buffers;
    size_t n_buffers;
} tide_comm_message;

/* What a session needs of its front end. Any function may be NULL: writes then go to the
 * process's own streams, displays are written as their text/plain, reading answers end of file. */
typedef struct tide_frontend {
    void *ctx;
    /* print, io.write, io.stderr:write. Bytes are borrowed; they may be cut anywhere. */
    void (*write)(void *ctx, tide_stream stream, const char *bytes, size_t len);
    /* tide.display(x). `display_id` may be NULL; `update` replaces the display of that id. */
    void (*display)(void *ctx, const tide_bundle *bundle, const char *display_id, bool update);
    void (*clear_output)(void *ctx, bool wait);
    /* io.read(), tide.input(): one line of *len bytes without its newline, malloc'ed with one byte
     * more than that, or NULL at the end. */
    char *(*read_line)(void *ctx, const char *prompt, bool password, size_t *len);
    /* %flood: is the middle of a flood of output left out? */
    void (*limit_output)(void *ctx, bool on);
    /* tide.set_next_input(): what the person finds in the next input, or in this one's place. */
    void (*next_input)(void *ctx, const char *text, size_t len, bool replace);
    /* Sends a message of a comm; NULL: the front end has none. */
    void (*send_comm)(void *ctx, const tide_comm_message *message);
    /* The request that output belongs to, as the JSON text of its header (malloc'ed); NULL: none.
     */
    char *(*output_parent)(void *ctx);
    /* Output belongs to that request now, until the one that is served ends; NULL: to that one. */
    void (*set_output_parent)(void *ctx, const char *parent);
    /* Output goes into the widget of that comm from now on, behind the outputs that it has (JSON
     * text), which gives NULL; without one the innermost ends and gives its outputs as JSON text
     * (malloc'ed; NULL: there was none). */
    char *(*gather_output)(void *ctx, const char *comm, const char *outputs);
    bool interactive; /* a person watches: progress bars may redraw their line */
    bool color;       /* ANSI colours in tracebacks and tables */
    bool notebook;    /* updates of a display work (display_id) */
    int width;        /* columns, 0 = 80 */
} tide_frontend;

/* New session. NULL (message on stderr) only when memory is out. */
tide_session *tide_session_new(const tide_frontend *frontend);
void tide_session_free(tide_session *s);
struct lua_State *tide_session_lua(tide_session *s);   /* borrowed */
tide_frontend *tide_session_frontend(tide_session *s); /* borrowed, may be changed (width) */

/* "MAJOR.MINOR.PATCH" of Tide. */
const char *tide_session_version(void);

/* Pushes the tide table, whatever a script made of its own `tide` and `package`; false: another
 * value. May raise (memory). */
bool tide_session_push_tide(struct lua_State *L);

typedef enum tide_outcome {
    TIDE_OK,
    TIDE_ERROR,       /* Lua error: ename, evalue, traceback are set */
    TIDE_INTERRUPTED, /* stopped by tide_session_interrupt: as TIDE_ERROR, ename "Interrupt" */
    TIDE_EXIT         /* the code called os.exit: exit_code is set; the state is still whole */
} tide_outcome;

typedef struct tide_result {
    tide_outcome outcome;
    tide_bundle value; /* display of the values of an expression; n = 0: nothing to show */
    char *ename;       /* "SyntaxError", "Error", "Interrupt", or the __name of an error object */
    char *evalue;      /* one line or more, without traceback; NULL: tide_result_message */
    char **traceback;  /* lines ready to print (ANSI-coloured if frontend.color), the message among
                          them */
    int n_traceback;
    int exit_code;
    double seconds; /* wall time of the evaluation */
    char *pager;    /* text/plain for a pager (?name), or NULL; terminals print it */
} tide_result;

/* Evaluate one input (a cell, a line, several lines): magics, then expression, then statements.
 * `silent`: no history, value not stored in `_`. Always fills *r; free with _clear. */
void tide_session_eval(tide_session *s, const char *code, size_t len, bool silent, tide_result *r);

/* Run a script with `arg` set as lua5.4 does (argv[0] is the script's path). */
void tide_session_run_file(tide_session *s, const char *path, int argc, char *const *argv,
                           tide_result *r);
/* What came by standard input (malloc'ed, stolen), for tide_session_run_text; `shows`: the last
 * expression of a script is its value. False: no memory. */
bool tide_session_set_text(tide_session *s, char *text, size_t len, bool shows);
/* Run it: a text that is one chunk of Lua as a script (an expression has its value), any other
 * input by input, as the prompt takes them, one with each call. False: nothing is left to run. */
bool tide_session_run_text(tide_session *s, tide_result *r);
void tide_result_clear(tide_result *r);
/* evalue of an error, or "out of memory": evalue is NULL where there was no memory to keep it. */
const char *tide_result_message(const tide_result *r);

/* Runs $XDG_CONFIG_HOME/tide/init.lua (~/.config by default) as a script; false, and *r is empty,
 * where there is none. */
bool tide_session_run_init(tide_session *s, tide_result *r);

/* For a front end that nobody has asked for anything for TIDE_REST_MS: gives the host memory that
 * is kept for the next results back to the system. `collects`: garbage too, unless the collector
 * was stopped; what finalizers print and raise then is treated as in an input. */
enum { TIDE_REST_MS = 10000 };
void tide_session_rest(tide_session *s, bool collects);

/* Evaluate one expression and give its display bundle (Jupyter's user_expressions). */
void tide_session_expression(tide_session *s, const char *code, size_t len, tide_result *r);

/* A comm message of the front end, handed to tide.comm; what its callbacks raise is the result. */
void tide_session_comm(tide_session *s, const tide_comm_message *message, tide_result *r);
/* The open comms as JSON text {id: {"target_name": name}}, those of one target alone unless that is
 * NULL: a malloc'ed string, NULL when there are none. */
char *tide_session_comms(tide_session *s, const char *target);

typedef enum tide_completeness { TIDE_COMPLETE, TIDE_INCOMPLETE, TIDE_INVALID } tide_completeness;

/* Is this input a whole one? For TIDE_INCOMPLETE writes spaces for the next line to indent
 * (at most size - 1, NUL-terminated; may be NULL). Evaluates nothing. */
tide_completeness tide_session_is_complete(tide_session *s, const char *code, size_t len,
                                           char *indent, size_t size);

typedef struct tide_completions {
    char **matches; /* whole replacements of code[start, end), sorted */
    char **types; /* per match: "function", "field", "method", "keyword", "global", "magic", "path",
                     ... */
    int n;
    size_t start, end; /* bytes */
} tide_completions;

/* Complete at byte `cursor`. Runs no user code (no metamethods but tide's own). */
void tide_session_complete(tide_session *s, const char *code, size_t len, size_t cursor,
                           tide_completions *c);
void tide_completions_clear(tide_completions *c);

/* Inspect the name around byte `cursor`: signature, doc, source. detail 1 adds the source text.
 * Returns false when there is nothing to say; *bundle is then empty. */
bool tide_session_inspect(tide_session *s, const char *code, size_t len, size_t cursor, int detail,
                          tide_bundle *bundle);
void tide_bundle_clear(tide_bundle *bundle);

/* One line, malloc'ed, for an editor: the signature of the innermost call that byte `cursor` is
 * within, with STX and ETX around the parameter that is being written, or (`of_call` false) what
 * the name is which ends there: the first sentence of its doc, or else its signature or value. NULL
 * when nothing is known. */
char *tide_session_hint(tide_session *s, const char *code, size_t len, size_t cursor, bool of_call);

/* Number of the next input (from 1); counts evals that were not silent and not empty. */
int tide_session_count(const tide_session *s);

/* Stop what runs: Lua at the next instruction, kernels at their next chunk, C functions of Lua's
 * own when they next allocate. Signal-safe. Where an earlier interrupt has not ended the evaluation
 * after a while, the second says on the process's standard error what holds it.
 *
 * Returns how many there were: 1, 2, ...; 0: nothing runs, or the last one is so recent that this
 * one counts for nothing. From the third on nothing but the end of the process will help. */
int tide_session_interrupt(tide_session *s);

/* A Ctrl-C of the terminal came: true where a program that the evaluation waits for, and that has
 * not ended, got it too, and what becomes of that says what was meant. Signal-safe. */
bool tide_session_program_hears(tide_session *s);

/* From now on an interrupt is meant for the evaluation that is about to come, and ends it as it
 * begins; or, with false, for none. Returns whether there was one since. */
bool tide_session_expect(tide_session *s, bool coming);

/* ---- history: whole inputs, those of this session and those on disk ---- */

typedef struct tide_history_entry {
    long session; /* 0: this session; -1: the one before, ... */
    int line;     /* from 1 */
    char *input;
    size_t len;   /* of the input, which may hold NUL */
    char *output; /* what was shown as its value; NULL: nothing, or it is another session's */
} tide_history_entry;

typedef struct tide_history_list {
    tide_history_entry *entries;
    int n;
} tide_history_list;

/* Where inputs are kept on disk ($XDG_STATE_HOME/tide/history by default); NULL: not at all.
 * Called before the first eval; an unreadable file is an empty one. */
void tide_session_history_open(tide_session *s, const char *path);
const char *tide_session_history_default_path(void); /* borrowed, NULL without a home */
void tide_session_history_tail(tide_session *s, int n, tide_history_list *list);
/* Lines start <= line < stop of one session. */
void tide_session_history_range(tide_session *s, long session, int start, int stop,
                                tide_history_list *list);
/* `pattern` is a glob (*, ?); `unique` keeps the newest of equal inputs; n = 0: all. */
void tide_session_history_search(tide_session *s, const char *pattern, int n, bool unique,
                                 tide_history_list *list);
void tide_history_list_clear(tide_history_list *list);

#endif
