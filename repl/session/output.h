/* output.h: bytes to the front end, and the standard streams of Lua that lead there. */
#ifndef TIDE_SESSION_OUTPUT_H
#define TIDE_SESSION_OUTPUT_H

#include "repl/session/session.h"

/* io and warn of the session's state; 0, or -1 when memory is out. May raise (memory). */
int output_install(tide_session *s);
void output_free(tide_session *s);
/* To the front end, or to the process's own stream. */
void output_write(tide_session *s, tide_stream stream, const char *bytes, size_t len);
/* What io.read left of a line it asked for is nobody's from now on, nor is the end it met. */
void output_forget_input(tide_session *s);
/* A NUL-terminated text and a newline to standard output. */
void output_line(tide_session *s, const char *text);

#endif
