/* terminal.h: the interactive prompt over a session. Knows the editor; main.c does not. */
#ifndef TIDE_TERMINAL_H
#define TIDE_TERMINAL_H

#include "repl/session/session.h"

/* Reads and evaluates inputs until the end of input or os.exit; the exit code of the program.
 * SIGINT interrupts the session while it evaluates and drops the line at the prompt. */
int terminal_run(tide_session *s);

/* Ctrl-C reaches the session from now on, and the calling thread while it waits at the prompt. */
void terminal_catch_interrupts(tide_session *s);
/* The session is about to end: from now on Ctrl-C ends the process, also while finalizers run. */
void terminal_release_interrupts(void);
/* After every evaluation: an interrupt makes writes to standard output fail that would wait. */
void terminal_block_writes(void);
/* Ends the process as SIGINT does, so that who started it sees that it was interrupted. Safe in a
 * signal handler, where the end comes when that returns. */
void terminal_end_interrupted(void);

/* Print what an evaluation left: values and pager to stdout, the traceback to stderr with `prefix`
 * before its first line. Returns the exit code that it stands for (0, 1, or os.exit's). */
int terminal_show(const tide_result *r, const char *prefix);

/* May colours be used on this file descriptor? (a terminal, no NO_COLOR, no TERM=dumb) */
bool terminal_has_color(int fd);

#endif
