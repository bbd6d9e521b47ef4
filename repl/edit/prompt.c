/* prompt.c: see prompt.h. The loop: bytes become keys, keys go to the editor, and when no more
 * have come for now, the screen is brought up to date.
 */
#include "repl/edit/prompt.h"

#include "repl/edit/screen.h"
#include "repl/edit/tty.h"
#include "repl/edit/view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How long the rest of an escape sequence may take; and how many bytes are taken before the screen
 * is drawn and signals are looked at, when they come without end. */
#define ESCAPE_SECONDS 0.05
enum { BURST = 4096 };

static const char first_prompt[] = "tide> ", next_prompt[] = "....> ";

struct prompt {
    editor editor;
    keys keys;
    screen screen;
    frame next;
    view view;
    bytes out;
    bytes offered; /* what the next input begins with */
    const volatile sig_atomic_t *interrupted;
    sigset_t mask; /* while it waits */
    bool edits;    /* a terminal that can be edited on */
    bool used;     /* something was read already */
    void (*on_idle)(void *ctx, prompt *p);
    void (*on_rest)(void *ctx);
    double rest_seconds;
};

prompt *prompt_new(const edit_host *host, bool color, const volatile sig_atomic_t *interrupted) {
    prompt *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->editor.host = *host;
    p->editor.suggests = color; /* what can't be told from the text is not shown */
    p->editor.menu.chosen = -1;
    p->view = (view){.prompt = first_prompt, .next_prompt = next_prompt, .color = color};
    p->interrupted = interrupted;
    p->edits = tty_can_edit();
    return p;
}

void prompt_free(prompt *p) {
    if (!p)
        return;
    editor_clear(&p->editor);
    bytes_clear(&p->offered);
    keys_clear(&p->keys);
    screen_clear(&p->screen);
    frame_clear(&p->next);
    bytes_clear(&p->out);
    free(p);
}

void prompt_remember(prompt *p, const char *text, size_t n) {
    bool kept = past_add(&p->editor.past, text, n);
    (void)kept; /* without memory it is only forgotten */
}

void prompt_when_idle(prompt *p, void (*on_idle)(void *ctx, prompt *p)) {
    p->on_idle = on_idle;
}

void prompt_when_resting(prompt *p, double seconds, void (*on_rest)(void *ctx)) {
    p->on_rest = on_rest;
    p->rest_seconds = seconds;
}

/* ---- the screen ---- */

static void flush(prompt *p) {
    tty_write(p->out.at, p->out.len);
    p->out.len = 0;
}

static void draw(prompt *p) {
    view_frame(&p->view, &p->editor, &p->next);
    screen_draw(&p->screen, &p->next, &p->out);
    flush(p);
}

/* Where a program's output ended within a line, the prompt begins below it: a mark and blanks fill
 * one whole row, so the cursor is in the next row just then. */
static void begin_row(prompt *p) {
    bytes_add_text(&p->out, p->view.color ? "\x1b[90m⏎\x1b[m" : "⏎");
    for (int i = 1; i < p->view.width; i++)
        bytes_add(&p->out, " ", 1);
    bytes_add_text(&p->out, "\r\x1b[K");
}

static void begin_screen(prompt *p) {
    tty_begin();
    tty_size(&p->view.width, &p->view.height);
    bytes_add_text(&p->out, "\x1b[?2004h");
}

static void end_screen(prompt *p) {
    screen_leave(&p->screen, &p->out);
    bytes_add_text(&p->out, "\x1b[?2004l");
    tty_end(); /* before it is seen: what is typed from now on is for whoever reads next */
    flush(p);
}

/* Leaves all of the input on the screen, with a mark behind it or none. */
static void finish(prompt *p, const char *mark) {
    p->view.mark = mark;
    p->view.done = true;
    view_frame(&p->view, &p->editor, &p->next);
    if (p->next.rows > p->view.height) /* a part of it stands there: all of it is written anew */
        screen_erase(&p->screen, &p->out);
    screen_draw(&p->screen, &p->next, &p->out);
    end_screen(p);
    p->view.mark = NULL;
    p->view.done = false;
}

static void resize(prompt *p) {
    tty_size(&p->view.width, &p->view.height);
    screen_narrow(&p->screen, p->view.width, &p->out);
    draw(p);
}

/* Another program had the terminal. */
static void come_back(prompt *p) {
    screen_forget(&p->screen);
    begin_screen(p);
    bytes_add_text(&p->out, "\r\x1b[J");
    draw(p);
}

static void suspend(prompt *p) {
    end_screen(p);
    tty_suspend(&p->mask);
    come_back(p);
}

static void clear_screen(prompt *p) {
    screen_forget(&p->screen);
    bytes_add_text(&p->out, "\x1b[H\x1b[2J\x1b[3J");
}

/* ---- keys ---- */

static edit_outcome take_key(prompt *p, const key *k) {
    edit_outcome outcome = editor_key(&p->editor, k, &p->keys.paste);
    if (outcome == EDIT_CLEARED)
        clear_screen(p);
    else if (outcome == EDIT_SUSPENDED)
        suspend(p);
    else
        return outcome;
    return EDIT_ON;
}

static edit_outcome take_keys(prompt *p, bool more, bool final) {
    key k;
    edit_outcome outcome = EDIT_ON;
    while (outcome == EDIT_ON && keys_next(&p->keys, &k, final)) {
        p->editor.more = more || keys_wait(&p->keys);
        outcome = take_key(p, &k);
    }
    return outcome;
}

/* Takes what has come, but no byte behind the end of an input: it may be meant for a program. */
static edit_outcome take_bytes(prompt *p) {
    edit_outcome outcome = EDIT_ON;
    int left = tty_waiting();
    for (int n = 0; n < BURST && outcome == EDIT_ON && (left > 0 || n == 0); n++) {
        char byte;
        if (!tty_read(&byte))
            return EDIT_ENDED;
        left = left > 1 ? left - 1 : tty_waiting();
        if (keys_feed(&p->keys, byte))
            outcome = take_keys(p, left > 0, false);
    }
    return outcome;
}

static prompt_event read_keys(prompt *p) {
    bool rested = !p->on_rest;
    for (;;) {
        if (tty_took_continue())
            come_back(p);
        if (tty_took_size())
            resize(p);
        bool unfinished = keys_wait(&p->keys);
        double patience = unfinished ? ESCAPE_SECONDS : rested ? -1 : p->rest_seconds;
        tty_event event = tty_wait(&p->mask, patience);
        edit_outcome outcome = EDIT_ON;
        if (*p->interrupted)
            return PROMPT_INTERRUPTED;
        if (event == TTY_CLOSED)
            return PROMPT_END;
        if (event == TTY_READABLE)
            outcome = take_bytes(p);
        else if (event == TTY_QUIET && unfinished)
            outcome = take_keys(p, false, true);
        else if (event == TTY_QUIET) {
            rested = true;
            p->on_rest(p->editor.host.ctx);
            continue;
        }
        if (outcome == EDIT_ENDED)
            return PROMPT_END;
        if (outcome == EDIT_ACCEPTED)
            return PROMPT_READ;
        if (event != TTY_SIGNAL)
            draw(p);
    }
}

static prompt_event edit(prompt *p, bytes *text) {
    editor_reset(&p->editor);
    if (p->offered.len > 0)
        buffer_replace(&p->editor.buf, 0, 0, p->offered.at, p->offered.len);
    bytes_clear(&p->offered);
    begin_screen(p);
    if (p->used)
        begin_row(p);
    p->used = true;
    draw(p);
    if (p->on_idle)
        p->on_idle(p->editor.host.ctx, p);
    p->on_idle = NULL;
    prompt_event event = *p->interrupted ? PROMPT_INTERRUPTED : read_keys(p);
    menu_close(&p->editor.menu);
    finish(p, event == PROMPT_INTERRUPTED ? "^C" : NULL);
    if (event == PROMPT_INTERRUPTED)
        keys_drop(&p->keys);
    else if (!bytes_set(text, p->editor.buf.text.at, p->editor.buf.text.len))
        fputs("tide: out of memory\n", stderr);
    return event;
}

/* ---- without an editor ---- */

/* Reads a line, with its newline if there is one. */
static prompt_event read_line(prompt *p, bytes *text) {
    size_t start = text->len;
    for (char byte = '\0'; byte != '\n';) {
        tty_event event = tty_wait(&p->mask, -1);
        if (*p->interrupted)
            return PROMPT_INTERRUPTED;
        if (event == TTY_SIGNAL)
            continue;
        if (event == TTY_CLOSED || !tty_read(&byte))
            return text->len > start ? PROMPT_READ : PROMPT_END;
        if (!bytes_add(text, &byte, 1)) {
            fputs("tide: out of memory\n", stderr);
            return PROMPT_END;
        }
    }
    return PROMPT_READ;
}

/* Who doesn't see what he types is shown it. */
static void echo_line(const bytes *text, size_t start) {
    fwrite(text->at + start, 1, text->len - start, stdout);
    if (text->len > start && text->at[text->len - 1] != '\n')
        fputs("\n", stdout);
}

static bool is_blank(const bytes *text) {
    for (size_t i = 0; i < text->len; i++)
        if (text->at[i] == '\0' || !strchr(" \t\n", text->at[i]))
            return false;
    return true;
}

/* The newline at the end only matters to what a blank line ends. */
static bool is_whole(const prompt *p, const bytes *text) {
    const edit_host *host = &p->editor.host;
    size_t len = text->len;
    if (is_blank(text))
        return true;
    if (len >= 2 && text->at[len - 1] == '\n' && text->at[len - 2] != '\n')
        len--;
    return !host->is_whole || host->is_whole(host->ctx, text->at, len);
}

static prompt_event read_lines(prompt *p, bytes *text) {
    bool echo = !isatty(STDIN_FILENO);
    text->len = 0;
    for (;;) {
        fputs(text->len > 0 ? next_prompt : first_prompt, stdout);
        fflush(stdout);
        size_t start = text->len;
        prompt_event event = read_line(p, text);
        if (event == PROMPT_READ && echo)
            echo_line(text, start);
        if (event == PROMPT_READ && !is_whole(p, text))
            continue;
        if (event != PROMPT_READ)
            fputs("\n", stdout);
        fflush(stdout);
        return event;
    }
}

bool prompt_offer(prompt *p, const char *text, size_t len) {
    return p->edits && bytes_set(&p->offered, text, len);
}

prompt_event prompt_read(prompt *p, bytes *text) {
    tty_block_signals(&p->mask);
    sigset_t old = p->mask;
    sigdelset(&p->mask, SIGINT);
    sigdelset(&p->mask, SIGWINCH);
    sigdelset(&p->mask, SIGCONT);
    fflush(stdout);
    prompt_event event = p->edits ? edit(p, text) : read_lines(p, text);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return event;
}
