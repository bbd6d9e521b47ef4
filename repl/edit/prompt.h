/* prompt.h: reads inputs from a terminal through the editor; where there is none to edit on (a
 * pipe, a file, a dumb terminal), line by line as they come.
 */
#ifndef TIDE_EDIT_PROMPT_H
#define TIDE_EDIT_PROMPT_H

#include "repl/edit/bytes.h"
#include "repl/edit/host.h"

#include <signal.h>

typedef struct prompt prompt;

typedef enum prompt_event {
    PROMPT_READ,
    PROMPT_END,         /* no more input; what is unfinished is given */
    PROMPT_INTERRUPTED, /* Ctrl-C */
} prompt_event;

/* `interrupted` becomes true when SIGINT comes, whose handler is the caller's; the signal is let
 * through only while an input is waited for. NULL: memory is out. */
prompt *prompt_new(const edit_host *host, bool color, const volatile sig_atomic_t *interrupted);
void prompt_free(prompt *p);

/* An input of before; the newest comes last. May be called within on_idle. */
void prompt_remember(prompt *p, const char *text, size_t n);
/* `on_idle` is called once, with the host's ctx, when the first prompt stands on the screen: what
 * takes time at the start is done there. */
void prompt_when_idle(prompt *p, void (*on_idle)(void *ctx, prompt *p));
/* `on_rest` is called, with the host's ctx, when the editor has waited for a key for so many
 * seconds, once in each reading. It must not write to the terminal. */
void prompt_when_resting(prompt *p, double seconds, void (*on_rest)(void *ctx));

/* The next reading begins with this text, where there is an editor; false: there is none. */
bool prompt_offer(prompt *p, const char *text, size_t len);

/* Reads an input into `text`, without the newline at its end. */
prompt_event prompt_read(prompt *p, bytes *text);

#endif
