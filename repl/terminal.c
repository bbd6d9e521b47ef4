/* terminal.c: the loop of the prompt, Ctrl-C, and what is printed; see terminal.h.
 *
 * SIGINT is blocked but while the prompt waits for a key, so it is seen at once and never in the
 * middle of the editor's work. Knows nothing of Lua.
 */
#include "repl/terminal.h"
#include "repl/answers.h"
#include "repl/edit/prompt.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { HISTORY_SHOWN = 1000, ROOM = 128 << 10 };

static tide_session *session; /* the one the signal handler serves */
static pthread_t prompt_thread;
static volatile sig_atomic_t interrupted;

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

void terminal_release_interrupts(void) {
    struct sigaction action;
    sigaction(SIGINT, NULL, &action);
    if (action.sa_handler == on_interrupt)
        signal(SIGINT, SIG_DFL);
    session = NULL;
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
        fprintf(stderr, "%s%s\n", prefix, tide_result_message(r));
    for (int i = 0; i < r->n_traceback; i++)
        fprintf(stderr, "%s%s\n", i == 0 ? prefix : "", r->traceback[i]);
    return 1;
}

/* ---- inputs ---- */

/* Where an input has failed and %pdb is on, the debugger looks at it. */
static void look_at_failure(void) {
    static const char look[] = "%pdb failed";
    tide_result r;
    tide_session_eval(session, look, sizeof look - 1, true, &r);
    terminal_show(&r, "");
    tide_result_clear(&r);
}

/* Evaluates an input; true when it asked to leave, with the code. */
static bool evaluate(const bytes *input, int *code) {
    tide_result r;
    tide_session_frontend(session)->width = terminal_width();
    tide_session_eval(session, input->at, input->len, false, &r);
    terminal_block_writes();
    *code = terminal_show(&r, "");
    bool leave = r.outcome == TIDE_EXIT, failed = r.outcome == TIDE_ERROR;
    tide_result_clear(&r);
    if (failed)
        look_at_failure();
    return leave;
}

/* tide.set_next_input(): ctx is the prompt. What replaces an input here follows it. */
static void offer_input(void *ctx, const char *text, size_t len, bool replace) {
    (void)replace;
    prompt_offer(ctx, text, len);
}

/* What a person entered, without the lines at its end that are blank; false: nothing at all. */
static bool trim(bytes *input) {
    size_t end = input->len;
    while (end > 0 && input->at[end - 1] && strchr(" \t\n", input->at[end - 1]))
        end--;
    if (end == 0)
        return false;
    const char *newline = memchr(input->at + end, '\n', input->len - end);
    input->len = newline ? (size_t)(newline - input->at) : input->len;
    return true;
}

static prompt_event read_input(prompt *p, bytes *input) {
    interrupted = tide_session_expect(session, false); /* since the last line, which was no end */
    prompt_event event = prompt_read(p, input);
    tide_session_expect(session, event == PROMPT_READ);
    if (interrupted && event == PROMPT_READ) /* behind the line's end, while it was drawn */
        tide_session_interrupt(session);
    interrupted = 0;
    return event;
}

static void load_history(void *ctx, prompt *p) {
    tide_history_list list;
    tide_session_history_tail(ctx, HISTORY_SHOWN, &list);
    for (int i = 0; i < list.n; i++)
        prompt_remember(p, list.entries[i].input, strlen(list.entries[i].input));
    tide_history_list_clear(&list);
}

/* Finalizers would print into the line that is being edited. */
static void rest(void *ctx) {
    tide_session_rest(ctx, false);
}

static bool has_room(void) {
    void *block = malloc(ROOM);
    free(block);
    return block != NULL;
}

/* Without memory no key would have an effect: is there some, perhaps after a collection? */
static bool make_room(void) {
    if (has_room())
        return true;
    tide_session_rest(session, true);
    return has_room();
}

static int run_inputs(prompt *p, bytes *input) {
    int code = 0;
    for (;;) {
        if (!make_room())
            break;
        input->len = 0;
        prompt_event event = read_input(p, input);
        bool any = trim(input);
        if (event == PROMPT_INTERRUPTED || (event == PROMPT_READ && !any))
            continue;
        if (any)
            prompt_remember(p, input->at, input->len);
        code = 0;
        if (any && evaluate(input, &code))
            return code;
        if (event == PROMPT_END) /* what was unfinished is an error */
            return code;
    }
    fputs("tide: out of memory\n", stderr);
    return 1;
}

int terminal_run(tide_session *s) {
    session = s;
    at_prompt = true;
    survive_broken_pipes();
    edit_host host = answers_host(s);
    prompt *p = prompt_new(&host, tide_session_frontend(s)->color, &interrupted);
    bytes input = {0};
    if (p && prompt_offer(p, "", 0)) {
        tide_session_frontend(s)->next_input = offer_input;
        tide_session_frontend(s)->ctx = p;
    }
    if (p) {
        prompt_when_idle(p, load_history);
        prompt_when_resting(p, TIDE_REST_MS / 1e3, rest);
    } else {
        fputs("tide: out of memory\n", stderr);
    }
    int code = p ? run_inputs(p, &input) : 1;
    bytes_clear(&input);
    prompt_free(p);
    return code;
}
