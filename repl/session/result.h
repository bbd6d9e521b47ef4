/* result.h: filling what a session hands out. The structures are session.h's. Knows no Lua. */
#ifndef TIDE_SESSION_RESULT_H
#define TIDE_SESSION_RESULT_H

#include "repl/session/session.h"

/* A malloc'ed, NUL-terminated copy; NULL when memory is out. */
char *copy_bytes(const char *bytes, size_t len);
char *copy_string(const char *text);
/* The same with each NUL written as \0, for what is handed out as a string that a NUL would end. */
char *copy_visible(const char *bytes, size_t len);
/* Appends a representation; leaves the bundle as it is when memory is out. */
void bundle_add(tide_bundle *bundle, const char *type, const char *data, size_t len);
/* Appends a line (or several, cut at newlines) to the traceback. */
void result_add_lines(tide_result *r, const char *text, size_t len);

#endif
