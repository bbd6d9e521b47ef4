/* csv_file.h: a table in text that is open: its bytes, how they are cut into cells, and the names
 * of its columns. */
#ifndef TIDE_LUA_MODULES_CSV_FILE_H
#define TIDE_LUA_MODULES_CSV_FILE_H

#include "lua-bindings/modules/csv_cells.h"
#include "lua-bindings/state/state.h"

/* A userdata whose user values are the handle of the bytes, the path and the list of the columns'
 * names. */
typedef struct tide_csv_file {
    tide_csv_reader reader; /* at the first row, or at the next */
    char decimal;           /* in front of a number's fraction */
    bool named;             /* by a header */
    int64_t columns;
    char fname[16]; /* of the function that messages name */
} tide_csv_file;

enum { TIDE_CSV_BYTES = 1, TIDE_CSV_PATH, TIDE_CSV_NAMES };
enum { TIDE_CSV_AT = 1 }; /* its stack index in all functions that take it */

tide_csv_file *tide_csv_check(lua_State *L);
const char *tide_csv_path(lua_State *L);

/* A cell's text as UTF-8 into room for three times its bytes, and its length there. What is none is
 * taken for Windows-1252, which is Latin-1 and letters in place of its second range of controls. */
size_t tide_csv_utf8(const char *at, size_t len, char *to);
void tide_csv_push_text(lua_State *L, const char *at, size_t len);

/* Raise the engine's error with the function and the path in front, or the interrupt. */
int tide_csv_raise(lua_State *L, const tide_csv_file *file);

#endif
