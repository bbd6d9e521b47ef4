/* transcript.h: what a person copied from a terminal, as the input it was. Knows no Lua state. */
#ifndef TIDE_TRANSCRIPT_H
#define TIDE_TRANSCRIPT_H

#include <stddef.h>

/* The code without what is no part of it: a byte order mark; and where its first line begins with a
 * prompt ("tide> ", "In [3]: ", ">>> ", "> "), the prompts, and the lines between them that were
 * printed, whose places stay as empty lines. A value that is not the last input is a statement
 * then, "do local _ = x end", and is worked out without being shown. Changes *code and *len where
 * there is something to leave out; a malloc'ed string that they lie in, or NULL. Without memory
 * they stay as they are. */
char *transcript_plain(const char **code, size_t *len);

#endif
