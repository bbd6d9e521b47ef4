/* past.h: the inputs of before, as an editor walks and searches them: whole inputs, the oldest
 * first, and what was made of them since (drafts). Knows no files: who owns the history fills it.
 */
#ifndef TIDE_EDIT_PAST_H
#define TIDE_EDIT_PAST_H

#include "repl/edit/bytes.h"

/* Zeroed it is empty. Place n is that of the input being written. */
typedef struct past {
    bytes *items, *drafts; /* a draft without text is none */
    size_t n, room;
    size_t at; /* the place that is shown */
} past;

/* A new input, unless it is the same as the newest. False: memory is out. */
bool past_add(past *p, const char *text, size_t n);

/* Goes from what is shown, whose text is `text` by now, to another place; what stands there is
 * borrowed until the next call. Without memory for the draft it stays where it is. */
const bytes *past_go(past *p, size_t place, const bytes *text);

/* The next place from `from` (exclusive) backwards or onwards whose text begins with the n bytes
 * and is not that of what is shown now, `text`; p->n + 1: none. */
size_t past_find_prefix(const past *p, size_t from, bool back, const char *prefix, size_t n,
                        const bytes *text);

/* Does the text hold the query? Capitals count where the query has some. `at`: where. */
bool past_holds(const bytes *text, const bytes *query, size_t *at);

/* The newest input that begins with the n bytes and goes on; NULL: none. */
const bytes *past_suggest(const past *p, const char *text, size_t n);

/* The input is done: drafts are dropped, the newest place is shown. */
void past_reset(past *p);
void past_clear(past *p);

#endif
