/* csv.c: a table of numbers in text as a matrix (lua/io.lua is its face). A cell becomes what it
 * says or an error that names its line; columns of texts become numbers of classes.
 */
#include "engine/core/interrupt.h"
#include "engine/io/json.h"
#include "lua-bindings/call/args.h"
#include "lua-bindings/modules/csv_file.h"
#include "lua-bindings/modules/csv_number.h"
#include "lua-bindings/modules/modules.h"

#include <stdio.h>
#include <string.h>

/* What becomes of the cells. */
typedef struct conversion {
    tide_csv_file *file;
    bool missing_given;
    double missing; /* what stands for a cell that is empty */
    td_dtype dtype;
    int64_t first_line; /* number of the first row's line */
} conversion;

/* ---- cells that are refused ---- */

/* A cell as a message shows it: its beginning, on one line. */
static const char *cell_text(tide_csv_cell cell, char text[static 200]) {
    enum { SHOWN = 40 };
    char *to = text;
    const char *at = cell.at, *end = at + cell.len;
    for (; at < end && (at - cell.at < SHOWN || ((unsigned char)*at & 0xC0) == 0x80); at++) {
        unsigned char byte = (unsigned char)*at;
        bool inside = (byte & 0xC0) == 0x80 && to > text && to[-1] & 0x80;
        bool plain = inside || (byte >= ' ' && byte != 127 && td_utf8_length(at, end));
        if (to - text > 4 * SHOWN)
            break;
        to += plain ? snprintf(to, 2, "%c", byte) : snprintf(to, 5, "\\x%02X", byte);
    }
    snprintf(to, 4, "%s", at < end ? "..." : "");
    return text;
}

/* A word in letters of either case. */
static bool is_word(tide_csv_cell cell, const char *word) {
    const char *at = cell.at, *end = at + cell.len;
    for (; at < end && *word; at++, word++)
        if (*at != *word && !(td_is_capital(*at) && *at + ('a' - 'A') == *word))
            return false;
    return at == end && !*word;
}

/* Does a cell say that there is no value? */
static bool is_missing(tide_csv_cell cell) {
    static const char *const words[] = {"",         "na",     "n/a",     "#na",     "#n/a",
                                        "#n/a n/a", "<na>",   "nan",     "-nan",    "null",
                                        "none",     "1.#ind", "-1.#ind", "1.#qnan", "-1.#qnan",
                                        "?",        "-",      "--",      "."};
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        if (is_word(cell, words[k]))
            return true;
    return false;
}

/* Is a cell a number whose fraction stands behind a comma? */
static bool has_comma(tide_csv_cell cell) {
    int64_t whole;
    double value;
    return memchr(cell.at, ',', cell.len) &&
           tide_csv_read(cell.at, cell.at + cell.len, ',', &whole, &value) != TIDE_CSV_TEXT;
}

/* Push what may be done about a cell that is no number. */
static void push_advice(lua_State *L, const conversion *c, int64_t number, int64_t column,
                        tide_csv_cell cell) {
    if (is_missing(cell))
        lua_pushfstring(L, "; {missing = %s} reads such cells",
                        td_dtype_is_float(c->dtype) ? "0/0" : "0");
    else if (c->file->decimal == '.' && has_comma(cell))
        lua_pushliteral(L, "; {decimal = \",\"} reads such numbers");
    else if (!c->file->named && number == c->first_line)
        lua_pushliteral(L, "; {header = true} takes the first line as names");
    else if (lua_getiuservalue(L, TIDE_CSV_AT, TIDE_CSV_NAMES) == LUA_TTABLE) {
        char text[TIDE_QUOTED];
        size_t len;
        lua_rawgeti(L, -1, column);
        const char *name = lua_tolstring(L, -1, &len);
        lua_pushfstring(L, "; {classes = {%s}} reads texts as classes",
                        tide_quote(name, len, text));
    } else {
        lua_pushfstring(L, "; {classes = {%I}} reads texts as classes", (LUAI_UACINT)column);
    }
}

static int fail_cell(lua_State *L, const conversion *c, int64_t number, int64_t column,
                     tide_csv_cell cell, tide_csv_problem problem) {
    char text[200], what[64] = "not a number";
    if (problem != TIDE_CSV_NO_NUMBER)
        snprintf(what, sizeof what,
                 problem == TIDE_CSV_BEYOND ? "beyond the range of %s"
                                            : "not an integer, as %s needs",
                 td_dtype_name(c->dtype));
    if (problem == TIDE_CSV_NO_NUMBER)
        push_advice(L, c, number, column, cell);
    else
        lua_pushliteral(L, "");
    const char *advice = lua_tostring(L, -1);
    return tide_error(L, "read_csv: '%s', line %I, column %I: '%s' is %s%s", tide_csv_path(L),
                      (LUAI_UACINT)number, (LUAI_UACINT)column, cell_text(cell, text), what,
                      advice);
}

/* ---- columns ---- */

/* What becomes of a column of the file. */
typedef struct column {
    int64_t place;  /* in a row of the result; -1: nothing */
    int64_t *codes; /* of a column of classes: its numbers, row by row; NULL: it holds numbers */
} column;

/* Stack indices of what _csv_convert is given, and of the table of codes that it makes. */
enum {
    AT_DTYPE = 2,
    AT_PLACES,
    AT_CLASSES,
    AT_OPEN,
    AT_MISSING,
    AT_CODES,
    AT_CELLS,
    AT_COLUMNS,
    AT_MATRIX,
    AT_COPY
};

static int fail_class(lua_State *L, int64_t number, int64_t k, tide_csv_cell cell) {
    char text[200];
    return tide_error(L, "read_csv: '%s', line %I, column %I: '%s' %s", tide_csv_path(L),
                      (LUAI_UACINT)number, (LUAI_UACINT)k, cell_text(cell, text),
                      cell.len == 0 ? "is empty and names no class"
                                    : "is none of the classes that were given");
}

/* The number of the class that a cell names; where the classes are the file's, it gets the next. */
static int64_t find_class(lua_State *L, int64_t number, int64_t k, tide_csv_cell cell) {
    int top = lua_gettop(L);
    lua_rawgeti(L, AT_CLASSES, k);
    tide_csv_push_text(L, cell.at, cell.len);
    lua_pushvalue(L, -1);
    if (lua_rawget(L, top + 1) == LUA_TNIL) {
        if (lua_rawgeti(L, AT_OPEN, k) != LUA_TTABLE || cell.len == 0)
            fail_class(L, number, k, cell);
        lua_Integer n = (lua_Integer)lua_rawlen(L, -1) + 1;
        lua_pushvalue(L, top + 2);
        lua_rawseti(L, -2, n);
        lua_pushvalue(L, top + 2);
        lua_pushinteger(L, n);
        lua_rawset(L, top + 1);
        lua_pushinteger(L, n);
    }
    int64_t found = lua_tointeger(L, -1);
    lua_settop(L, top);
    return found;
}

static void store_number(lua_State *L, const conversion *c, tide_csv_cell cell, int64_t number,
                         int64_t k, char *to) {
    tide_csv_problem problem = TIDE_CSV_NO_NUMBER;
    char decimal = c->file->decimal,
         *mark = decimal == '.' ? NULL : memchr(cell.at, decimal, cell.len);
    if (decimal == '.' || !memchr(cell.at, '.', cell.len)) {
        if (mark)
            *mark = '.';
        problem = tide_csv_store(c->dtype, cell.at, cell.at + cell.len, to);
        if (mark)
            *mark = decimal;
    }
    if (problem == TIDE_CSV_OK)
        return;
    if (problem == TIDE_CSV_BEYOND || !c->missing_given || !is_missing(cell))
        fail_cell(L, c, number, k, cell, problem);
    td_store_double(c->dtype, to, c->missing);
}

/* The text of a cell whose quotes stand there twice is put together behind all columns. */
static tide_csv_cell plain_cell(lua_State *L, tide_csv_cell cell) {
    if (!cell.doubled)
        return cell;
    lua_settop(L, AT_COPY - 1);
    char *copy = lua_newuserdatauv(L, cell.len + TIDE_CSV_BEHIND, 0);
    memset(copy, 0, cell.len + TIDE_CSV_BEHIND);
    cell.len = tide_csv_copy(&cell, copy);
    cell.at = copy;
    cell.doubled = 0;
    return cell;
}

static void convert_row(lua_State *L, const conversion *c, const tide_csv_cell *cells,
                        const column *columns, int64_t number, int64_t row, char *to) {
    for (int64_t k = 1; k <= c->file->columns; k++) {
        const column *col = &columns[k - 1];
        if (!col->codes && col->place < 0)
            continue;
        tide_csv_cell cell = plain_cell(L, cells[k - 1]);
        if (col->codes)
            col->codes[row] = find_class(L, number, k, cell);
        else
            store_number(L, c, cell, number, k, to + col->place * (int64_t)td_dtype_size(c->dtype));
    }
}

/* The next row's cells, which are as many as there are columns; false: there is none. */
static bool next_row(lua_State *L, tide_csv_file *file, tide_csv_reader *r, tide_csv_cell *cells,
                     int64_t *number) {
    int64_t count = 0;
    if (td_interrupt_check() || tide_csv_next(r, cells, cells ? file->columns : 0, &count, number))
        tide_csv_raise(L, file);
    if (count && count != file->columns)
        tide_error(L, "%s: '%s', line %I: %I columns, the %s has %I", file->fname, tide_csv_path(L),
                   (LUAI_UACINT)*number, (LUAI_UACINT)count, file->named ? "header" : "first row",
                   (LUAI_UACINT)file->columns);
    return count > 0;
}

static int64_t count_rows(lua_State *L, tide_csv_file *file, int64_t *first_line) {
    tide_csv_reader r = file->reader;
    int64_t rows = 0, number;
    for (; next_row(L, file, &r, NULL, &number); rows++)
        *first_line = rows ? *first_line : number;
    return rows;
}

static td_tensor *push_empty(lua_State *L, td_dtype dtype, int ndim, const int64_t *sizes) {
    tide_handle *handle = tide_push_handle(L);
    TIDE_CHECK(L, td_tensor_empty(dtype, TD_DEVICE_CPU, ndim, sizes, &handle->tensor));
    return handle->tensor;
}

/* Push the plan of all columns; the codes' tensors go into the table at AT_CODES. */
static const column *push_columns(lua_State *L, int64_t ncolumns, int64_t rows, int64_t *wanted) {
    column *columns = lua_newuserdatauv(L, (size_t)ncolumns * sizeof *columns, 0);
    *wanted = 0;
    for (int64_t k = 1; k <= ncolumns; k++) {
        column *col = &columns[k - 1];
        *col = (column){.place = -1};
        if (lua_rawgeti(L, AT_PLACES, k) == LUA_TNUMBER) {
            lua_Integer place = lua_tointeger(L, -1);
            luaL_argcheck(L, place > 0, AT_PLACES, "places are 1, 2, ...");
            col->place = place - 1;
            ++*wanted;
        }
        if (lua_rawgeti(L, AT_CLASSES, k) == LUA_TTABLE) {
            col->codes = push_empty(L, TD_I64, 1, &rows)->data;
            lua_rawseti(L, AT_CODES, k);
        }
        lua_pop(L, 2);
    }
    return columns;
}

/* _csv_convert(file, dtype, places, classes, open [, missing]): the matrix, and the codes of
 * columns of classes by column. All tables go by the column's number in the file: its place in a
 * row; the numbers of its classes; the list of classes that is still open. To be called once. */
static int convert_csv(lua_State *L) {
    tide_csv_file *file = tide_csv_check(L);
    int64_t wanted, number, row = 0;
    lua_settop(L, AT_MISSING);
    conversion c = {.file = file,
                    .dtype = tide_to_dtype(L, AT_DTYPE),
                    .missing_given = !lua_isnil(L, AT_MISSING),
                    .missing = lua_tonumber(L, AT_MISSING)};
    luaL_argcheck(L, c.dtype != TD_DTYPE_NONE, AT_DTYPE, "a dtype expected");
    luaL_argcheck(L, file->columns > 0, TIDE_CSV_AT, "the file was converted already");
    for (int k = AT_PLACES; k <= AT_OPEN; k++)
        luaL_checktype(L, k, LUA_TTABLE);
    lua_newtable(L);
    int64_t rows = count_rows(L, file, &c.first_line);
    tide_csv_cell *cells = lua_newuserdatauv(L, (size_t)file->columns * sizeof *cells, 0);
    const column *columns = push_columns(L, file->columns, rows, &wanted);
    td_tensor *matrix = push_empty(L, c.dtype, 2, (int64_t[]){rows, wanted});
    for (int64_t k = 0; k < file->columns; k++)
        luaL_argcheck(L, columns[k].place < wanted, AT_PLACES, "places are 1, 2, ...");
    char *to = matrix->data;
    int64_t row_bytes = wanted * (int64_t)td_dtype_size(c.dtype);
    for (; row < rows && next_row(L, file, &file->reader, cells, &number); row++, to += row_bytes)
        convert_row(L, &c, cells, columns, number, row, to);
    if (row < rows) /* a mapped file may be written meanwhile */
        tide_error(L, "%s: '%s' was changed while it was read", file->fname, tide_csv_path(L));
    file->columns = 0;
    lua_settop(L, AT_MATRIX);
    lua_pushvalue(L, AT_CODES);
    return 2;
}

/* _dtype_holds(dtype, number): may a cell be it? NaN has no integer. */
static int dtype_holds(lua_State *L) {
    td_dtype dtype = tide_to_dtype(L, 1);
    double value = luaL_checknumber(L, 2);
    luaL_argcheck(L, dtype != TD_DTYPE_NONE, 1, "a dtype expected");
    lua_pushboolean(L,
                    td_dtype_is_float(dtype) || (value == value && td_dtype_holds(dtype, value)));
    return 1;
}

void tide_open_csv(lua_State *L) {
    static const luaL_Reg functions[] = {
        {"_dtype_holds", dtype_holds},
        {"_csv_convert", convert_csv},
        {NULL, NULL},
    };
    tide_set_functions(L, functions);
}
