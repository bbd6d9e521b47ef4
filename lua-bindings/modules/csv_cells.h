/* csv_cells.h: a table in text as rows of cells (RFC 4180, and what else files hold): where each
 * cell lies, not what it says. Knows no Lua.
 *
 * A cell may stand in quotes, holds ends of lines there, and a quote twice for one. Blanks around a
 * cell are no part of it. Lines end as any system ends them (LF, CR LF, CR); lines of blanks alone
 * are passed over.
 */
#ifndef TIDE_LUA_MODULES_CSV_CELLS_H
#define TIDE_LUA_MODULES_CSV_CELLS_H

#include "engine/core/status.h"

typedef struct tide_csv_cell {
    char *at; /* of what stands in quotes, behind the first */
    uint64_t len : 62;
    uint64_t quoted : 1;
    uint64_t doubled : 1; /* quotes in it stand there twice */
} tide_csv_cell;

typedef struct tide_csv_reader {
    char *at, *end;  /* what is still to be read; TIDE_BYTES_BEHIND of NUL behind it */
    int64_t line;    /* number of the line at `at`, as an editor counts */
    char delimiter;  /* ' ': any run of blanks and tabs, and those around a line part nothing */
    char comment;    /* the rest of a line that it begins means nothing; 0: none does */
    bool quotes;     /* a quote may begin a cell */
    bool stops[256]; /* ends a cell without quotes: delimiter, ends of lines, comment, NUL */
} tide_csv_reader;

/* A reader of [at, end), as bytes.h gives them. */
void tide_csv_begin(tide_csv_reader *r, char *at, char *end, char delimiter, char comment);

/* The next row: its first `room` cells, how many it has (0: there are no more rows), and the number
 * of its line. EVALUE where a quote isn't closed or something follows the one that closes, EINTR.
 */
td_status tide_csv_next(tide_csv_reader *r, tide_csv_cell *cells, int64_t room, int64_t *count,
                        int64_t *line) TD_MUST_CHECK;

/* Behind `n` lines, whatever they hold. */
void tide_csv_skip_lines(tide_csv_reader *r, int64_t n);

/* A cell's text without its doubled quotes, into room for `len` bytes; its length. */
size_t tide_csv_copy(const tide_csv_cell *cell, char *to);

#endif
