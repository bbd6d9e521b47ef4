/* buffer.h: the text that is edited: bytes and a cursor, what was done to it and can be undone, and
 * the moves over groups of code points, words and lines. Knows no keys and no screen.
 */
#ifndef TIDE_EDIT_BUFFER_H
#define TIDE_EDIT_BUFFER_H

#include "repl/edit/bytes.h"

typedef struct change change;

/* Zeroed it is an empty one. `cursor` is never within a code point or between it and its marks. */
typedef struct buffer {
    bytes text;
    size_t cursor;
    change *changes;
    size_t n_changes, room_changes, done; /* those from `done` on were undone */
    long step;                            /* changes of one step are undone together */
    size_t same; /* bytes at the front that no change has touched since this was last set */
} buffer;

/* Puts the n bytes of text in the place of those from `start` to `end`; the cursor goes behind
 * them. Every change of the text is made here. False: memory is out, nothing happened. */
bool buffer_replace(buffer *b, size_t start, size_t end, const char *text, size_t n);
bool buffer_insert(buffer *b, const char *text, size_t n); /* at the cursor */

/* From now on changes belong to another step. */
void buffer_begin_step(buffer *b);
/* Take back, or make again, the changes of a step. False: there are none. */
bool buffer_undo(buffer *b);
bool buffer_redo(buffer *b);

/* Becomes empty, with nothing to undo. */
void buffer_reset(buffer *b);
void buffer_clear(buffer *b);

/* ---- places; each takes and gives a byte offset ---- */

size_t buffer_next(const buffer *b, size_t at);   /* a group of code points further, or the end */
size_t buffer_before(const buffer *b, size_t at); /* or 0 */
size_t buffer_line_start(const buffer *b, size_t at);
size_t buffer_line_end(const buffer *b, size_t at);
/* Ends and beginnings of words: letters, digits, underscores and all that is no ASCII. */
size_t buffer_word_end(const buffer *b, size_t at);
size_t buffer_word_start(const buffer *b, size_t at);
/* Back over blanks, then over what is none: a shell's word. */
size_t buffer_blank_start(const buffer *b, size_t at);
/* Where the first column of the line's text is that is no blank, or its end. */
size_t buffer_indent_end(const buffer *b, size_t at);
/* The place in the line that `at` is in which lies `columns` columns to the right. */
size_t buffer_at_column(const buffer *b, size_t at, size_t columns);

#endif
