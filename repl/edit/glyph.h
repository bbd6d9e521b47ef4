/* glyph.h: UTF-8 as a terminal shows it: code points, the columns they take, and the groups of them
 * that a cursor does not part. Bytes that are no UTF-8 count one by one. Knows no locale.
 */
#ifndef TIDE_EDIT_GLYPH_H
#define TIDE_EDIT_GLYPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One code point, or one byte that belongs to none. */
typedef struct glyph {
    uint32_t code; /* of a bad byte: its value */
    size_t len;    /* bytes, 1 to 4 */
    bool bad;
} glyph;

/* The one at the beginning of text (len > 0). */
glyph glyph_read(const char *text, size_t len);

/* Could the n bytes be the beginning of a longer code point? */
bool glyph_is_begun(const char *text, size_t n);

/* Columns of a code point: 0 for what is put on the one before, 2 for wide ones, otherwise 1. */
int glyph_width(uint32_t code);

/* May a terminal be sent it? Not control characters, and none that change the order of others. */
bool glyph_is_plain(uint32_t code);

/* Where the group behind `at` (< len) ends, and where the one before `at` (> 0) begins: a code
 * point and the marks upon it. */
size_t glyph_next(const char *text, size_t len, size_t at);
size_t glyph_before(const char *text, size_t at);

/* Columns that a whole text takes, control characters counted as 1. */
size_t glyph_columns(const char *text, size_t len);

#endif
