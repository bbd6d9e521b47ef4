/* csv_cells.c: rows of cells; see csv_cells.h. One look at each byte: cells without quotes end at a
 * byte that `stops` marks, those in quotes at a quote that stands alone. */
#include "lua-bindings/modules/csv_cells.h"

#include "engine/core/interrupt.h"

#include <string.h>

static bool is_blank(char letter) {
    return letter == ' ' || letter == '\t';
}

/* Blanks that part nothing. */
static char *skip_blanks(const tide_csv_reader *r, char *at) {
    while (at < r->end && is_blank(*at) && (*at != r->delimiter || *at == ' '))
        at++;
    return at;
}

static bool ends_line(const tide_csv_reader *r, const char *at) {
    return at >= r->end || *at == '\n' || *at == '\r';
}

/* Behind what ends a line at `at`. */
static char *skip_break(const tide_csv_reader *r, char *at) {
    if (at < r->end)
        at += at[0] == '\r' && at[1] == '\n' ? 2 : 1;
    return at;
}

static char *find_break(const tide_csv_reader *r, char *at) {
    while (!ends_line(r, at))
        at++;
    return at;
}

void tide_csv_begin(tide_csv_reader *r, char *at, char *end, char delimiter, char comment) {
    *r = (tide_csv_reader){.at = at,
                           .end = end,
                           .line = 1,
                           .delimiter = delimiter,
                           .comment = comment,
                           .quotes = delimiter != '"'};
    r->stops[0] = r->stops['\n'] = r->stops['\r'] = r->stops[(unsigned char)delimiter] = true;
    if (delimiter == ' ')
        r->stops['\t'] = true;
    if (comment)
        r->stops[(unsigned char)comment] = true;
}

void tide_csv_skip_lines(tide_csv_reader *r, int64_t n) {
    for (; n > 0 && r->at < r->end; n--) {
        r->at = skip_break(r, find_break(r, r->at));
        r->line++;
    }
}

/* ---- cells ---- */

static bool begins_comment(const tide_csv_reader *r, const char *at) {
    return r->comment && at < r->end && *at == r->comment;
}

static bool ends_cell(const tide_csv_reader *r, const char *at) {
    bool parts = at < r->end && (*at == r->delimiter || (r->delimiter == ' ' && is_blank(*at)));
    return parts || ends_line(r, at) || begins_comment(r, at);
}

/* What stands in the quotes that `at` begins; behind them and the blanks that follow. NULL: they
 * are not closed, or something else follows. */
static char *read_quoted(tide_csv_reader *r, char *at, tide_csv_cell *cell, int64_t *breaks) {
    char *first = at + 1, *stop = first;
    bool doubled = false;
    while ((stop = memchr(stop, '"', (size_t)(r->end - stop))) && stop[1] == '"') {
        stop += 2;
        doubled = true;
    }
    if (!stop)
        return NULL;
    *cell = (tide_csv_cell){first, (uint64_t)(stop - first), true, doubled};
    for (const char *p = first; p < stop; p++)
        *breaks += *p == '\n' || (*p == '\r' && p[1] != '\n');
    stop = skip_blanks(r, stop + 1);
    return ends_cell(r, r->delimiter == ' ' && is_blank(stop[-1]) ? stop - 1 : stop) ? stop : NULL;
}

enum { CONTROLS = 14 }; /* ends of lines, NUL and the tab are letters below */

/* Every byte is `letter`. */
static uint64_t eight_of(unsigned char letter) {
    return (uint64_t)0x0101010101010101 * letter;
}

/* Marks the first byte that is 0, and perhaps others behind it. */
static uint64_t mark_zero(uint64_t eight) {
    return (eight - eight_of(1)) & ~eight & eight_of(0x80);
}

/* The first letter that may end a cell, eight at a time; what stands behind the end is one. */
static char *find_stop(const tide_csv_reader *r, char *at) {
    uint64_t eight, marks = 0, delimiter = eight_of((unsigned char)r->delimiter);
    uint64_t comment = r->comment ? eight_of((unsigned char)r->comment) : delimiter;
    if (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__)
        return at;
    for (;; at += 8) {
        memcpy(&eight, at, 8);
        marks = mark_zero(eight ^ delimiter) | mark_zero(eight ^ comment) |
                ((eight - eight_of(CONTROLS)) & ~eight & eight_of(0x80));
        if (marks)
            return at + __builtin_ctzll(marks) / 8;
    }
}

static char *read_plain(const tide_csv_reader *r, char *at, tide_csv_cell *cell) {
    char *stop = at;
    for (;; stop++) {
        stop = find_stop(r, stop);
        while (!r->stops[(unsigned char)*stop])
            stop++;
        if (*stop || stop >= r->end || r->delimiter == 0) /* any other NUL is a letter */
            break;
    }
    char *end = stop;
    while (end > at && is_blank(end[-1]))
        end--;
    *cell = (tide_csv_cell){at, (uint64_t)(end - at), false, false};
    return stop;
}

/* From the end of a cell to where the next begins; NULL: the row ends there. */
static char *next_cell(const tide_csv_reader *r, char *at) {
    if (r->delimiter == ' ') {
        at = skip_blanks(r, at);
        return ends_line(r, at) || begins_comment(r, at) ? NULL : at;
    }
    return at < r->end && *at == r->delimiter ? at + 1 : NULL;
}

/* ---- rows ---- */

/* To the first cell of the next row; false: there is none. */
static bool find_row(tide_csv_reader *r) {
    while (r->at < r->end) {
        char *at = skip_blanks(r, r->at);
        if (begins_comment(r, at))
            at = find_break(r, at);
        else if (!ends_line(r, at))
            return true;
        r->at = skip_break(r, at);
        r->line++;
    }
    return false;
}

td_status tide_csv_next(tide_csv_reader *r, tide_csv_cell *cells, int64_t room, int64_t *count,
                        int64_t *line) {
    int64_t n = 0, breaks = 1;
    tide_csv_cell beyond;
    *count = 0;
    if (!find_row(r))
        return TD_OK;
    char *stop = NULL;
    for (char *at = r->at; at; at = next_cell(r, stop)) {
        tide_csv_cell *cell = n < room ? &cells[n] : &beyond;
        char *first = skip_blanks(r, at);
        n++;
        if ((n & 1023) == 0 && td_interrupt_requested())
            return td_interrupted();
        stop = r->quotes && first < r->end && *first == '"' ? read_quoted(r, first, cell, &breaks)
                                                            : read_plain(r, first, cell);
        if (!stop)
            return td_fail(TD_EVALUE,
                           "line %lld, column %lld: a quoted cell ends at a quote, with nothing "
                           "behind it",
                           (long long)r->line, (long long)n);
    }
    if (begins_comment(r, stop))
        stop = find_break(r, stop);
    *line = r->line;
    *count = n;
    r->line += breaks;
    r->at = skip_break(r, stop);
    return TD_OK;
}

size_t tide_csv_copy(const tide_csv_cell *cell, char *to) {
    size_t n = 0;
    for (size_t k = 0; k < cell->len; k++) {
        to[n++] = cell->at[k];
        k += cell->doubled && cell->at[k] == '"';
    }
    return n;
}
