/* terminal.c: prompt, line editing, completion and Ctrl-C; see terminal.h.
 *
 * Readline runs in its callback form under a pselect of ours: SIGINT is blocked but while it waits,
 * so it is seen at once and never in the middle of readline's work. Knows nothing of Lua.
 */
#include "repl/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <unistd.h>

#ifdef TIDE_HAVE_READLINE
#include <readline/history.h>
#include <readline/readline.h>
#else
#include <editline/readline.h>
#endif

enum { HISTORY_SHOWN = 1000, INDENT = 4, READLINE_ROOM = 128 << 10 };

static tide_session *session; /* the one the signal handler and the completer serve */
static pthread_t prompt_thread;
static volatile sig_atomic_t interrupted;

/* What the lines entered so far make, while the input is unfinished. */
static struct {
    char *text;
    size_t len;
} input;

/* ---- signals ---- */

static bool at_prompt; /* not in a script: there is something to lose */

/* A write to a reader that is slow goes on after a signal, as long as it takes: from an interrupt
 * to the end of what it interrupts writes fail instead of waiting. */
static volatile sig_atomic_t writes_fail;

static void let_writes_fail(void) {
    int flags = fcntl(STDOUT_FILENO, F_GETFL);
    if (writes_fail || flags < 0 || (flags & O_NONBLOCK))
        return;
    writes_fail = 1;
    fcntl(STDOUT_FILENO, F_SETFL, flags | O_NONBLOCK);
}

void terminal_block_writes(void) {
    if (!writes_fail)
        return;
    fcntl(STDOUT_FILENO, F_SETFL, fcntl(STDOUT_FILENO, F_GETFL) & ~O_NONBLOCK);
    writes_fail = 0;
    clearerr(stdout); /* what was cut off is no fault of the disk */
}

static void say(const char *line) {
    ssize_t written = write(STDERR_FILENO, line, strlen(line));
    (void)written;
}

void terminal_end_interrupted(void) {
    sigset_t set;
    terminal_block_writes();
    signal(SIGINT, SIG_DFL);
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    raise(SIGINT);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

/* The kernel gives a terminal's signal to any thread that doesn't block it, to one of a pool too:
 * it is handed on to the thread that waits at the prompt. */
static void on_interrupt(int number) {
    if (!pthread_equal(pthread_self(), prompt_thread)) {
        pthread_kill(prompt_thread, number);
        return;
    }
    int saved = errno;
    if (tide_session_program_hears(session))
        return;
    interrupted = 1;
    int times = tide_session_interrupt(session);
    if (times > 0)
        let_writes_fail();
    if (times == 3 && at_prompt)
        say("tide: nothing stops it. Ctrl-C once more ends tide; the history is saved\n");
    else if (times >= 3)
        terminal_end_interrupted();
    errno = saved;
}

void terminal_catch_interrupts(tide_session *s) {
    session = s;
    prompt_thread = pthread_self();
    tide_session_expect(s, true);
    struct sigaction action = {.sa_handler = on_interrupt}, before;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, &before);
    if (before.sa_handler == SIG_IGN) /* a job in the background */
        sigaction(SIGINT, &before, NULL);
}

static void do_nothing(int number) {
    (void)number;
}

/* A pipe that broke is an error of the write, not the end of the session; a handler rather than
 * SIG_IGN, because programs started from here would inherit that. */
static void survive_broken_pipes(void) {
    struct sigaction action = {.sa_handler = do_nothing, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGPIPE, &action, NULL);
}

/* ---- output ---- */

bool terminal_has_color(int fd) {
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    return isatty(fd) && !(no_color && no_color[0]) && term && strcmp(term, "dumb") != 0;
}

static int terminal_width(void) {
    struct winsize size;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

int terminal_show(const tide_result *r, const char *prefix) {
    if (r->pager)
        printf("%s\n", r->pager);
    if (r->value.n > 0) {
        fwrite(r->value.entries[0].data, 1, r->value.entries[0].len, stdout);
        putchar('\n');
    }
    fflush(stdout);
    if (r->outcome == TIDE_EXIT)
        return r->exit_code;
    if (r->outcome == TIDE_OK)
        return 0;
    if (!r->n_traceback) /* there was no memory for what would stand here */
        fprintf(stderr, "%s%s\n", prefix, r->evalue ? r->evalue : "out of memory");
    for (int i = 0; i < r->n_traceback; i++)
        fprintf(stderr, "%s%s\n", i == 0 ? prefix : "", r->traceback[i]);
    return 1;
}

/* ---- completion ---- */

/* The match as it has to stand where readline's own word begins: it cuts words by its rules, the
 * session by Lua's. `word` and `start` are byte offsets into code. */
static char *fit_match(const char *match, const char *code, size_t word, size_t start) {
    if (start <= word) {
        size_t skip = word - start;
        return strlen(match) >= skip ? strdup(match + skip) : NULL;
    }
    size_t lead = start - word;
    size_t len = strlen(match);
    char *fitted = malloc(lead + len + 1);
    if (fitted) {
        memcpy(fitted, code + word, lead);
        memcpy(fitted + lead, match, len + 1);
    }
    return fitted;
}

/* Longest common beginning of list[1], list[2], …: what readline inserts at once. */
static char *common_prefix(char *const *list) {
    size_t n = strlen(list[1]);
    for (int i = 2; list[i]; i++) {
        size_t same = 0;
        while (same < n && list[1][same] == list[i][same])
            same++;
        n = same;
    }
    return strndup(list[1], n);
}

/* Readline's form: list[0] is what replaces the word, the candidates follow. */
static char **readline_matches(const tide_completions *c, const char *code, size_t word) {
    char **list = calloc((size_t)c->n + 2, sizeof *list);
    int n = 0;
    for (int i = 0; list && i < c->n; i++) {
        char *match = fit_match(c->matches[i], code, word, c->start);
        if (match)
            list[++n] = match;
    }
    if (list && n > 0)
        list[0] = common_prefix(list);
    if (list && n == 1) { /* a single match stands in list[0] alone */
        free(list[1]);
        list[1] = NULL;
    }
    if (list && n == 0) {
        free(list);
        list = NULL;
    }
    return list;
}

static char **complete_word(const char *text, int start, int end) {
    (void)text;
    size_t line_len = strlen(rl_line_buffer), before = input.text ? input.len : 0;
    size_t len = before + line_len;
    char *code = malloc(len + 1);
    rl_attempted_completion_over = 1;
    rl_completion_append_character = '\0';
    if (!code)
        return NULL;
    if (before)
        memcpy(code, input.text, before);
    memcpy(code + before, rl_line_buffer, line_len + 1);
    tide_completions c;
    tide_session_complete(session, code, len, before + (size_t)end, &c);
    char **list = readline_matches(&c, code, before + (size_t)start);
    tide_completions_clear(&c);
    free(code);
    return list;
}

/* Tab: indents where nothing stands before the cursor, completes elsewhere. */
static int on_tab(int count, int key) {
    int blank = (int)strspn(rl_line_buffer, " \t");
    if (blank >= rl_point)
        return rl_insert_text("    ");
#ifdef TIDE_HAVE_READLINE
    if (rl_last_func == on_tab)
        rl_last_func = rl_complete; /* the second time it lists */
#endif
    return rl_complete(count, key);
}

/* ---- one line ---- */

static char indent[128]; /* what the next line begins with */
static char *line;       /* what readline handed over; NULL: the end of input */
static bool line_is_there, end_was_asked;

/* Not where lines come from a file: its end is only seen on a line that is empty. */
static int insert_indent(void) {
    if (isatty(STDIN_FILENO))
        rl_insert_text(indent);
    return 0;
}

static void on_line(char *text) {
    if (end_was_asked) {
        free(text);
        text = NULL;
    }
    line = text;
    line_is_there = true;
    rl_callback_handler_remove();
}

/* Does the line begin with a word or bracket that closes a block? */
static bool closes_block(const char *text) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    static const char *const words[] = {"end", "else", "elseif", "until"};
    text += strspn(text, " ");
    size_t len = strspn(text, letters);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == len && memcmp(text, words[i], len) == 0)
            return true;
    return *text && strchr("})]", *text);
}

/* A line that closes a block stands one step further left than what it closes: the bytes to take
 * off its front, unless a person did. */
static size_t excess_indent(const char *text) {
    size_t given = strlen(indent);
    return given >= INDENT && strncmp(text, indent, given) == 0 && closes_block(text) ? INDENT : 0;
}

#ifdef TIDE_HAVE_READLINE
static int on_enter(int count, int key) {
    size_t excess = excess_indent(rl_line_buffer);
    if (excess) {
        rl_delete_text(0, (int)excess);
        rl_point = rl_end;
        rl_redisplay();
    }
    return rl_newline(count, key);
}

/* Ctrl-D: the end of input also where nothing but our indent stands on the line. */
static int on_end_key(int count, int key) {
    if ((int)strspn(rl_line_buffer, " ") < rl_end)
        return rl_delete(count, key);
    end_was_asked = true;
    rl_done = 1;
    return 0;
}
#endif

static void drop_line(void) {
#ifdef TIDE_HAVE_READLINE
    rl_free_line_state();
    rl_callback_sigcleanup();
    rl_cleanup_after_signal();
#endif
    rl_callback_handler_remove();
    fputs("^C\n", stdout);
    fflush(stdout);
}

typedef enum line_event { LINE_READ, LINE_END, LINE_INTERRUPTED } line_event;

/* Reads one line into `line` (malloc'ed). */
static line_event read_line(const char *prompt) {
    sigset_t block, old, waiting;
    sigemptyset(&block);
    sigaddset(&block, SIGINT);
    sigprocmask(SIG_BLOCK, &block, &old);
    waiting = old;
    sigdelset(&waiting, SIGINT);
    interrupted = tide_session_expect(session, false); /* since the last line, which was no end */
    line_is_there = end_was_asked = false;
    rl_callback_handler_install(prompt, on_line);
    line_event event = interrupted ? LINE_INTERRUPTED : LINE_READ;
    while (!line_is_there && event == LINE_READ) {
        fd_set readable;
        FD_ZERO(&readable);
        FD_SET(STDIN_FILENO, &readable);
        int n = pselect(STDIN_FILENO + 1, &readable, NULL, NULL, NULL, &waiting);
        if (interrupted)
            event = LINE_INTERRUPTED;
        else if (n > 0)
            rl_callback_read_char();
        else if (n < 0 && errno != EINTR)
            event = LINE_END;
    }
    if (event == LINE_INTERRUPTED)
        drop_line();
    else if (event == LINE_END)
        rl_callback_handler_remove();
    else if (!line)
        event = LINE_END;
    interrupted = 0;
    tide_session_expect(session, event == LINE_READ);
    sigprocmask(SIG_SETMASK, &old, NULL);
    return event;
}

/* ---- inputs ---- */

static void forget_input(void) {
    free(input.text);
    input.text = NULL;
    input.len = 0;
    indent[0] = '\0';
}

/* Appends text to the input; false when memory is out. */
static bool grow_input(const char *text) {
    size_t n = strlen(text);
    char *grown = realloc(input.text, input.len + n + 1);
    if (!grown)
        return false;
    memcpy(grown + input.len, text, n + 1);
    input.text = grown;
    input.len += n;
    return true;
}

static void remember(const char *text) {
    const HIST_ENTRY *last =
        history_length > 0 ? history_get(history_base + history_length - 1) : NULL;
    if (text[0] && !(last && strcmp(last->line, text) == 0))
        add_history(text);
}

/* Evaluates the finished input; true when it asked to leave, with the code. */
static bool evaluate(int *code) {
    tide_result r;
    while (input.len > 0 && input.text[input.len - 1] == '\n')
        input.text[--input.len] = '\0';
    remember(input.text);
    tide_session_frontend(session)->width = terminal_width();
    tide_session_eval(session, input.text, input.len, false, &r);
    terminal_block_writes();
    *code = terminal_show(&r, "");
    bool leave = r.outcome == TIDE_EXIT;
    tide_result_clear(&r);
    forget_input();
    return leave;
}

/* Takes `line` in; true when the input is a whole one now. */
static bool take_line(void) {
    bool grown = grow_input(line + excess_indent(line)) && grow_input("\n");
    free(line);
    line = NULL;
    if (!grown) {
        fputs("tide: out of memory\n", stderr);
        forget_input();
        return false;
    }
    bool blank = strspn(input.text, " \t\n") == input.len;
    if (blank) {
        forget_input();
        return false;
    }
    /* The newline at the end only matters to what a blank line ends. */
    size_t len = input.len;
    if (len >= 2 && input.text[len - 2] != '\n')
        len--;
    return tide_session_is_complete(session, input.text, len, indent, sizeof indent) !=
           TIDE_INCOMPLETE;
}

/* No more lines: what is unfinished now is an error. Returns the exit code. */
static int end_input(void) {
    int code = 0;
    putchar('\n');
    if (input.len)
        evaluate(&code);
    return code;
}

static void load_history(void) {
    tide_history_list list;
    tide_session_history_tail(session, HISTORY_SHOWN, &list);
    for (int i = 0; i < list.n; i++)
        remember(list.entries[i].input);
    tide_history_list_clear(&list);
}

static void prepare_readline(void) {
    rl_readline_name = "tide";
    rl_catch_signals = 0;
    rl_attempted_completion_function = complete_word;
    rl_basic_word_break_characters = " \t\n\"'`~!@#$%^&*()-+=[]{}\\|;:,.<>/?";
    rl_completer_quote_characters = "";
    rl_startup_hook = insert_indent;
    rl_bind_key('\t', on_tab);
#ifdef TIDE_HAVE_READLINE
    rl_initialize();
    rl_variable_bind("enable-bracketed-paste", "on");
    rl_bind_key('\t', on_tab); /* an inputrc doesn't know our keys */
    rl_bind_key('\r', on_enter);
    rl_bind_key('\n', on_enter);
    rl_bind_key('D' & 0x1f, on_end_key);
#endif
}

static bool has_room(void) {
    void *block = malloc(READLINE_ROOM);
    free(block);
    return block != NULL;
}

/* Readline ends the process where it gets no memory: is there some, perhaps after a collection? */
static bool make_room(void) {
    static const char collect[] = "collectgarbage() if tide then tide.empty_cache() end";
    if (has_room())
        return true;
    tide_result r;
    tide_session_eval(session, collect, sizeof collect - 1, true, &r);
    tide_result_clear(&r);
    return has_room();
}

int terminal_run(tide_session *s) {
    session = s;
    at_prompt = true;
    setlocale(LC_CTYPE, "");
    survive_broken_pipes();
    prepare_readline();
    load_history();
    bool color = tide_session_frontend(s)->color;
    const char *first = color ? "\001\033[1;34m\002tide>\001\033[0m\002 " : "tide> ";
    const char *next = color ? "\001\033[34m\002....>\001\033[0m\002 " : "....> ";
    int code = 0;
    for (;;) {
        if (!make_room()) {
            fputs("tide: out of memory\n", stderr);
            return 1;
        }
        line_event event = read_line(input.len ? next : first);
        if (event == LINE_END)
            return end_input();
        if (event == LINE_INTERRUPTED)
            forget_input();
        else if (take_line() && evaluate(&code))
            return code;
    }
}
