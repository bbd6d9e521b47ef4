/* text.h: a text that came by standard input, cut into the inputs that it is made of. */
#ifndef TIDE_SESSION_TEXT_H
#define TIDE_SESSION_TEXT_H

#include "repl/session/session.h"

#include <lua.h>

/* Sets *len to the length of the next input, and returns it, with as many newlines before it as
 * there are lines: what the compiler says of its places is true of the whole text. Borrowed until
 * the next call; NULL: there is none. The session then stands behind it. */
const char *text_next(tide_session *s, size_t *len);
/* Takes the whole text as one input. */
const char *text_whole(tide_session *s, size_t *len);
/* Frees the text. */
void text_free(tide_session *s);

#endif
