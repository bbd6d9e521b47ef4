/* csv_number.h: a cell of a text file as an element: exactly what it says, or why it can't be.
 * Nothing is rounded to infinity or cut in silence. Knows no files and no Lua. */
#ifndef TIDE_LUA_MODULES_CSV_NUMBER_H
#define TIDE_LUA_MODULES_CSV_NUMBER_H

#include "engine/core/dtype.h"

/* So many bytes behind a cell must be there to be read, whatever they are: digits are read eight at
 * a time. */
enum { TIDE_CSV_BEHIND = 8 };

typedef enum tide_csv_problem {
    TIDE_CSV_OK,
    TIDE_CSV_NO_NUMBER,
    TIDE_CSV_NO_INTEGER,
    TIDE_CSV_BEYOND
} tide_csv_problem;

/* What a cell is as a number of unknown dtype: an integer of int64, a float, or an integer beyond
 * int64, which is a float too. */
typedef enum tide_csv_kind {
    TIDE_CSV_TEXT,
    TIDE_CSV_INT,
    TIDE_CSV_FLOAT,
    TIDE_CSV_WIDE
} tide_csv_kind;

/* Signs, digits, a fraction behind `mark`, an exponent; inf, infinity, nan in letters of either
 * case. The float is the nearest one (infinity where there is none), as Python's float() gives it;
 * it is set for integers too, where -0 keeps its sign. `*end` and a mark are written to meanwhile
 * and put back. */
tide_csv_kind tide_csv_read(char *at, char *end, char mark, int64_t *whole, double *value);

/* Read a cell into an element. `*end` is written to meanwhile and put back. */
tide_csv_problem tide_csv_store(td_dtype dtype, char *at, char *end, void *to);

#endif
