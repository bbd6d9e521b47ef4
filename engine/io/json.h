/* json.h: a strict reader of JSON (RFC 8259), one value after the other, in place: it allocates
 * nothing, and a string's escapes are undone where they stand; and the writer of strings. Knows
 * nothing of what the text means.
 */
#ifndef TD_IO_JSON_H
#define TD_IO_JSON_H

#include "engine/core/status.h"

#include <stdio.h>

enum { TD_JSON_DEPTH = 256 };

typedef enum td_json_kind {
    TD_JSON_OBJECT,
    TD_JSON_ARRAY,
    TD_JSON_STRING,
    TD_JSON_NUMBER,
    TD_JSON_TRUE,
    TD_JSON_FALSE,
    TD_JSON_NULL,
    TD_JSON_NONE /* the end, or what begins no value */
} td_json_kind;

typedef struct td_json {
    char *start, *at, *end;
    int depth;
    bool fresh; /* a list was opened, and nothing of it read */
} td_json;

typedef struct td_json_number {
    bool is_int; /* neither fraction nor exponent */
    int64_t i;
    double d; /* the same, or the float */
} td_json_number;

/* Begin with `len` bytes, which are written to and have a NUL behind them. */
void td_json_begin(td_json *json, char *text, size_t len);
/* What comes next. */
td_json_kind td_json_peek(td_json *json);

/* The functions below fail with EVALUE and the place, counted from 1, in the message.
 *
 * Enter an object or an array; deeper than TD_JSON_DEPTH is refused. */
td_status td_json_open(td_json *json, td_json_kind kind) TD_MUST_CHECK;
/* Is there another entry? False, too, leaves the list. EINTR. */
td_status td_json_next(td_json *json, td_json_kind kind, bool *more) TD_MUST_CHECK;
/* An entry's key, and the colon behind it. */
td_status td_json_read_key(td_json *json, const char **text, size_t *len) TD_MUST_CHECK;
/* A string, valid UTF-8; it may hold NUL. Borrowed from the text. */
td_status td_json_read_string(td_json *json, const char **text, size_t *len) TD_MUST_CHECK;
/* A number; an integer that int64 does not hold is refused. */
td_status td_json_read_number(td_json *json, td_json_number *number) TD_MUST_CHECK;
/* A value of any kind, passed over. */
td_status td_json_skip(td_json *json) TD_MUST_CHECK;
/* true, false or null, whichever td_json_peek said. */
td_status td_json_read_word(td_json *json) TD_MUST_CHECK;
/* Nothing but white space follows. */
td_status td_json_finish(td_json *json) TD_MUST_CHECK;

/* ---- writing ---- */

/* Takes n bytes of what is written; `to` is the caller's. */
typedef void (*td_json_put)(void *to, const char *bytes, size_t n);
/* A string in quotes. Bytes that are no UTF-8 become U+FFFD; "</" and "<!" are written with
 * an escape, so that no text ends a script of HTML that holds the JSON. */
void td_json_quote(td_json_put put, void *to, const char *text, size_t len);
/* The same of a text that ends with NUL, to a file. */
void td_json_print(FILE *file, const char *text);

/* Bytes of the UTF-8 character that begins at `s` and ends before `end`; 0 where none does. */
size_t td_utf8_length(const char *s, const char *end);

#endif
