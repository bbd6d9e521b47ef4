/* history.h: the inputs of a session, in memory and on disk. Front ends ask through session.h. */
#ifndef TIDE_SESSION_HISTORY_H
#define TIDE_SESSION_HISTORY_H

#include "repl/session/session.h"

typedef struct history history;

history *history_new(void); /* new; NULL when memory is out */
void history_free(history *h);
void history_add(tide_session *s, int line, const char *input, size_t len);
/* The value of an input of this session was shown as this text; of a long one the beginning is
 * kept.
 */
void history_add_output(tide_session *s, int line, const char *text, size_t len);
/* Input n of this session, or NULL. Borrowed. */
const char *history_input(const tide_session *s, int line, size_t *len);

#endif
