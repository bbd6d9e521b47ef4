/* csv_columns.h: the columns of a table in text, each of the type that its cells have: integers
 * (int64), numbers (float64), true and false (bool), texts (numbers of the distinct ones). Knows no
 * Lua.
 *
 * A column is read as the narrowest type that all of its cells are of. A cell that says that there
 * is no value makes a column of integers or booleans one of float64, where it is NaN; in a column
 * of texts it is number 0.
 */
#ifndef TIDE_LUA_MODULES_CSV_COLUMNS_H
#define TIDE_LUA_MODULES_CSV_COLUMNS_H

#include "engine/core/tensor.h"
#include "lua-bindings/modules/csv_cells.h"

typedef enum tide_csv_type {
    TIDE_CSV_SKIPPED, /* not wanted */
    TIDE_CSV_UNKNOWN, /* to be found out; then: no cell has a value */
    TIDE_CSV_BOOLS,
    TIDE_CSV_INTS,
    TIDE_CSV_FLOATS,
    TIDE_CSV_TEXTS
} tide_csv_type;

/* Text that the columns own or the file has; a distinct one of a column. */
typedef struct tide_csv_text {
    const char *at;
    size_t len;
    uint64_t hash;
} tide_csv_text;

typedef struct tide_csv_column {
    tide_csv_type type;
    bool fixed;        /* the type was given: a cell of another is an error */
    td_tensor *values; /* int64 or float64, bool at the end; of texts their numbers from 1; owned */
    /* texts: the distinct ones in the order in which they come */
    tide_csv_text *texts;
    int64_t ntexts, room;
    uint64_t *slots; /* by the hash: a number, and the hash's highest bits above it; a power of two
                        of them */
    int64_t nslots;
    char *own; /* blocks of texts whose quotes stood there twice, each beginning with its next */
    /* what was seen */
    bool gaps, wide, fraction, quoted_gap, minus_zero, stale;
} tide_csv_column;

/* What the cells are read by. */
typedef struct tide_csv_rules {
    char decimal, thousands; /* in front of a fraction; between digits, 0: nothing stands there */
    const tide_csv_text *missing;
    int nmissing;
    uint64_t lengths[256]; /* of the words for missing values, by their first byte */
} tide_csv_rules;

void tide_csv_set_missing(tide_csv_rules *rules, const tide_csv_text *words, int n);
bool tide_csv_is_missing(const tide_csv_rules *rules, const char *at, size_t len);

/* Read at most `most` rows into n columns, whose values are made here; *rows: how many there were.
 * With `most` 0 all rows are looked at and nothing is kept but the types. EVALUE (what
 * tide_csv_next refuses, a row of another length, a cell that is not of the type that was given),
 * ENOMEM, EINTR. */
td_status tide_csv_read_columns(tide_csv_reader *r, const tide_csv_rules *rules,
                                tide_csv_column *columns, int64_t n, int64_t most,
                                int64_t *rows) TD_MUST_CHECK;

/* Free what columns hold, so that they can be read into again; their types stay. */
void tide_csv_clear_column(tide_csv_column *column);

#endif
