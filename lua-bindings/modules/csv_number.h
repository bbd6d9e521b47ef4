/* csv_number.h: a cell of a text file as an element: exactly what it says, or why it can't be.
 * Nothing is rounded to infinity or cut in silence. Knows no files and no Lua. */
#ifndef TIDE_LUA_MODULES_CSV_NUMBER_H
#define TIDE_LUA_MODULES_CSV_NUMBER_H

#include "engine/core/dtype.h"

typedef enum tide_csv_problem {
    TIDE_CSV_OK,
    TIDE_CSV_NO_NUMBER,
    TIDE_CSV_NO_INTEGER,
    TIDE_CSV_BEYOND
} tide_csv_problem;

/* Read a cell into an element. `*end` is written to meanwhile and put back. */
tide_csv_problem tide_csv_store(td_dtype dtype, char *at, char *end, void *to);

#endif
