/* tty.h: the terminal as a file: its modes, its size, the signals that are about it, and bytes in
 * and out. One terminal, on standard input and output; knows no editor.
 */
#ifndef TIDE_EDIT_TTY_H
#define TIDE_EDIT_TTY_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

/* Can a text be edited here? Both streams are one terminal's, and it is no dumb one. */
bool tty_can_edit(void);

/* From now on each byte is handed out as it comes, and nothing is echoed. Enter still gives \n, so
 * that what is typed ahead serves whoever reads lines next; Ctrl-C is still a signal. */
void tty_begin(void);
/* As it was before. */
void tty_end(void);

/* Blocks what tty_wait alone lets through: interrupts and the signals of the terminal. `old`
 * becomes the mask before. */
void tty_block_signals(sigset_t *old);

typedef enum tty_event {
    TTY_READABLE,
    TTY_QUIET,  /* the time is over */
    TTY_SIGNAL, /* an interrupt, or what tty_took_* tells */
    TTY_CLOSED,
} tty_event;

/* Waits until something can be read from standard input; `seconds` < 0: for ever. */
tty_event tty_wait(const sigset_t *mask, double seconds);
/* Since the last call: has the window another size; has the process been stopped and continued? */
bool tty_took_size(void);
bool tty_took_continue(void);

/* Stops the process and its group as Ctrl-Z does; returns when it goes on. */
void tty_suspend(const sigset_t *mask);

void tty_size(int *columns, int *rows);
/* One byte; false at the end. */
bool tty_read(char *byte);
/* Bytes that could be read at once. */
int tty_waiting(void);
void tty_write(const char *text, size_t n);

#endif
