/* csv.c: the reader of tables in text (lua/io.lua is its face): one pass over the lines to count
 * them, one to convert. A cell becomes what it says or an error that names its line. Cells may
 * stand in quotes, and hold ends of lines there; lines end as any system ends them.
 */
#include "engine/core/interrupt.h"
#include "engine/io/json.h"
#include "lua-bindings/call/args.h"
#include "lua-bindings/modules/bytes.h"
#include "lua-bindings/modules/csv_number.h"
#include "lua-bindings/modules/modules.h"

#include <stdio.h>
#include <string.h>

/* A file that is being read: a userdata whose user values are the handle of the bytes, the path and
 * the list of the columns' names. */
typedef struct csv {
    char *text, *end; /* NUL behind it */
    char delimiter; /* a blank: any run of blanks and tabs, and those around a line part nothing */
    char decimal;   /* in front of a number's fraction */
    bool quotes;    /* a quote may begin a cell */
    bool named;     /* by a header */
    bool missing_given;
    double missing; /* what stands for a cell that is empty */
    td_dtype dtype;
    int64_t rows, columns;
    int64_t first_line; /* number of the first row's line */
} csv;

enum { BYTES = 1, PATH, NAMES };
enum { AT_CSV = 1 }; /* its stack index in all functions here */

static const char csv_name[] = "tide.csv";

static const char *path_of(lua_State *L) {
    lua_getiuservalue(L, AT_CSV, PATH);
    return lua_tostring(L, -1);
}

/* ---- lines and cells ---- */

typedef struct line {
    char *at, *end; /* without what ends it */
    char *next;
    int64_t breaks; /* as an editor counts its lines: the ends of lines in it, its own among them */
} line;

static bool is_blank(char letter) {
    return letter == ' ' || letter == '\t';
}

static char *skip_blanks(const csv *c, char *at, const char *end) {
    while (at < end && is_blank(*at) && (*at != c->delimiter || *at == ' '))
        at++;
    return at;
}

static bool all_blank(const line *l) {
    const char *at = l->at;
    while (at < l->end && is_blank(*at))
        at++;
    return at == l->end;
}

/* Behind the quote that ends what begins at `at`; NULL: none does. */
static char *skip_quoted(char *at, const char *end) {
    for (at++; at < end; at++)
        if (*at == '"') {
            if (at + 1 == end || at[1] != '"')
                return at + 1;
            at++;
        }
    return NULL;
}

/* Where a line ends that `at` is on. */
static char *find_break(char *at, char *end) {
    char *feed = memchr(at, '\n', (size_t)(end - at)), *stop = feed ? feed : end;
    char *back = memchr(at, '\r', (size_t)(stop - at));
    return back ? back : stop;
}

/* Behind what ends a line there. */
static char *skip_break(char *at, const char *end) {
    if (at < end)
        at += at + 1 < end && at[0] == '\r' && at[1] == '\n' ? 2 : 1;
    return at;
}

static char *find_delimiter(const csv *c, char *at, char *end) {
    if (c->delimiter != ' ')
        return memchr(at, c->delimiter, (size_t)(end - at));
    while (at < end && !is_blank(*at))
        at++;
    return at < end ? at : NULL;
}

/* The end of a line with quotes: of the file's lines the first that ends outside of them. A quote
 * that nothing closes reaches to the end of its line, and next_cell refuses it. */
static char *find_end(const csv *c, line *l) {
    char *end = find_break(l->at, c->end);
    for (char *at = l->at, *next; at; at = next ? next + 1 : NULL) {
        char *first = skip_blanks(c, at, end), *stop = first;
        if (first < end && *first == '"' && !(stop = skip_quoted(first, c->end)))
            return end;
        while (stop > end) {
            end = find_break(skip_break(end, c->end), c->end);
            l->breaks++;
        }
        next = find_delimiter(c, stop, end);
    }
    return end;
}

static line find_line(const csv *c, char *at) {
    line l = {.at = at, .end = find_break(at, c->end), .breaks = 1};
    if (c->quotes && memchr(at, '"', (size_t)(l.end - at)))
        l.end = find_end(c, &l);
    l.next = skip_break(l.end, c->end);
    return l;
}

/* The line's next cell, without the blanks around it, with its quotes; moves l->at behind it,
 * to NULL behind the last. False where a quote isn't closed, or something follows the one that
 * closes. */
static bool next_cell(const csv *c, line *l, line *cell) {
    char *first = skip_blanks(c, l->at, l->end), *stop = first;
    bool quoted = c->quotes && first < l->end && *first == '"';
    if (quoted) {
        stop = skip_quoted(first, l->end);
        if (!stop)
            return false;
    }
    char *end = find_delimiter(c, stop, l->end);
    *cell = (line){.at = first, .end = end ? end : l->end};
    l->at = end ? end + 1 : NULL;
    if (end && c->delimiter == ' ' && (l->at = skip_blanks(c, end, l->end)) == l->end)
        l->at = NULL;
    while (cell->at < cell->end && is_blank(*cell->at))
        cell->at++;
    while (cell->end > cell->at && is_blank(cell->end[-1]))
        cell->end--;
    return !quoted || cell->end == stop;
}

/* Take a cell's quotes away, in place: once. */
static void unquote(const csv *c, line *cell) {
    if (!c->quotes || cell->at == cell->end || *cell->at != '"')
        return;
    char *to = ++cell->at;
    for (const char *at = to; at < cell->end - 1; at++) {
        *to++ = *at;
        at += *at == '"';
    }
    cell->end = to;
}

static void check_interrupt(lua_State *L) {
    if (td_interrupt_requested())
        TIDE_CHECK(L, td_interrupted());
}

static int fail_quotes(lua_State *L, int64_t number, int64_t column) {
    return tide_error(
        L,
        "read_csv: '%s', line %I, column %I: a quoted cell ends at a quote, with nothing behind it",
        path_of(L), (LUAI_UACINT)number, (LUAI_UACINT)column);
}

static int64_t count_cells(lua_State *L, const csv *c, line l, int64_t number) {
    line cell;
    int64_t n = 0;
    while (l.at) {
        check_interrupt(L);
        n++;
        if (!next_cell(c, &l, &cell))
            fail_quotes(L, number, n);
    }
    return n;
}

static int64_t count_columns(lua_State *L, const csv *c, line l, int64_t number) {
    int64_t n = 1;
    if (c->delimiter == ' ' || (c->quotes && memchr(l.at, '"', (size_t)(l.end - l.at))))
        return count_cells(L, c, l, number);
    for (char *at = l.at; (at = memchr(at, c->delimiter, (size_t)(l.end - at))); at++) {
        check_interrupt(L);
        n++;
    }
    return n;
}

static void measure(lua_State *L, csv *c) {
    line l = {.breaks = c->first_line};
    int64_t number = 0;
    for (char *at = c->text; at < c->end; at = l.next) {
        number += l.breaks;
        l = find_line(c, at);
        check_interrupt(L);
        if (all_blank(&l))
            continue;
        int64_t columns = count_columns(L, c, l, number);
        if (c->columns == 0)
            c->columns = columns;
        if (columns != c->columns)
            tide_error(L, "read_csv: '%s', line %I: %I columns, the %s has %I", path_of(L),
                       (LUAI_UACINT)number, (LUAI_UACINT)columns, c->named ? "header" : "first row",
                       (LUAI_UACINT)c->columns);
        c->rows++;
    }
    if (c->rows == 0)
        tide_error(L, "read_csv: '%s' holds no rows", path_of(L));
}

/* ---- the header ---- */

/* Editors of other systems put a mark in front of UTF-8; UTF-16 is full of NUL. */
static void skip_mark(lua_State *L, csv *c) {
    static const struct {
        const char *magic, *says;
    } others[] = {{"\xFF\xFE", "is UTF-16, UTF-8 expected"},
                  {"\xFE\xFF", "is UTF-16, UTF-8 expected"},
                  {"PK\3\4", "is a zip archive or a spreadsheet: the text in it is expected"},
                  {"PAR1", "is a Parquet file, a table in text expected"},
                  {"BZh", "is packed by bzip2: gzip is what can be unpacked here"},
                  {"\xFD"
                   "7zXZ",
                   "is packed by xz: gzip is what can be unpacked here"},
                  {"\x28\xB5\x2F\xFD", "is packed by zstd: gzip is what can be unpacked here"}};
    size_t held = (size_t)(c->end - c->text);
    if (held >= 3 && !memcmp(c->text, "\xEF\xBB\xBF", 3))
        c->text += 3;
    for (size_t k = 0; k < sizeof others / sizeof *others; k++)
        if (held >= strlen(others[k].magic) &&
            !memcmp(c->text, others[k].magic, strlen(others[k].magic)))
            tide_error(L, "read_csv: '%s' %s", path_of(L), others[k].says);
}

static bool is_utf8(line cell) {
    while (cell.at < cell.end && (unsigned char)*cell.at < 0x80)
        cell.at++;
    for (size_t n; cell.at < cell.end; cell.at += n)
        if (!(n = td_utf8_length(cell.at, cell.end)))
            return false;
    return true;
}

/* Push a name or a class as UTF-8. What is none is taken for Windows-1252, which is Latin-1 and
 * letters in place of its second range of controls. */
static void push_text(lua_State *L, line cell) {
    static const uint16_t others[32] = {
        0x20AC, 0x81,   0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160,
        0x2039, 0x0152, 0x8D,   0x017D, 0x8F,   0x90,   0x2018, 0x2019, 0x201C, 0x201D, 0x2022,
        0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0x9D,   0x017E, 0x0178};
    if (is_utf8(cell)) {
        lua_pushlstring(L, cell.at, (size_t)(cell.end - cell.at));
        return;
    }
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    for (; cell.at < cell.end; cell.at++) {
        unsigned code = (unsigned char)*cell.at;
        code = code >= 0x80 && code < 0xA0 ? others[code - 0x80] : code;
        if (code >= 0x800)
            luaL_addchar(&b, (char)(0xE0 | code >> 12));
        if (code >= 0x80)
            luaL_addchar(&b, (char)(code >= 0x800 ? 0x80 | (code >> 6 & 0x3F) : 0xC0 | code >> 6));
        luaL_addchar(&b, (char)(code >= 0x80 ? 0x80 | (code & 0x3F) : code));
    }
    luaL_pushresult(&b);
}

/* Push the names in the first line that is not blank. */
static void push_header(lua_State *L, csv *c) {
    line l, cell;
    lua_newtable(L);
    do {
        l = find_line(c, c->text);
        c->text = l.next;
        c->first_line += l.breaks;
    } while (c->text < c->end && all_blank(&l));
    int64_t number = c->first_line - l.breaks;
    c->columns = count_columns(L, c, l, number);
    for (int64_t k = 1; k <= c->columns; k++) {
        if (!next_cell(c, &l, &cell))
            fail_quotes(L, number, k);
        unquote(c, &cell);
        push_text(L, cell);
        lua_rawseti(L, -2, k);
    }
}

/* _csv_open(path, delimiter, header, decimal): the file, how many columns, and their names if it
 * has a header. */
static int open_csv(lua_State *L) {
    const char *path = luaL_checkstring(L, 1);
    char delimiter = *luaL_checkstring(L, 2), decimal = *luaL_checkstring(L, 4);
    bool header = lua_toboolean(L, 3);
    csv *c = lua_newuserdatauv(L, sizeof *c, 3);
    *c = (csv){
        .delimiter = delimiter, .decimal = decimal, .quotes = delimiter != '"', .first_line = 1};
    luaL_setmetatable(L, csv_name);
    lua_insert(L, AT_CSV);
    lua_pushvalue(L, 2);
    lua_setiuservalue(L, AT_CSV, PATH);
    size_t held;
    c->text = tide_read_bytes(L, path, "read_csv", &held);
    c->end = c->text + held;
    lua_setiuservalue(L, AT_CSV, BYTES);
    skip_mark(L, c);
    if (header) {
        push_header(L, c);
        c->named = true;
        lua_setiuservalue(L, AT_CSV, NAMES);
    }
    measure(L, c);
    lua_pushvalue(L, AT_CSV);
    lua_pushinteger(L, (lua_Integer)c->columns);
    lua_getiuservalue(L, AT_CSV, NAMES);
    return 3;
}

/* ---- cells that are refused ---- */

/* A cell as a message shows it: its beginning, on one line. */
static const char *cell_text(line cell, char text[static 200]) {
    enum { SHOWN = 40 };
    char *to = text;
    const char *at = cell.at;
    for (; at < cell.end && (at - cell.at < SHOWN || ((unsigned char)*at & 0xC0) == 0x80); at++) {
        unsigned char byte = (unsigned char)*at;
        bool inside = (byte & 0xC0) == 0x80 && to > text && to[-1] & 0x80;
        bool plain = inside || (byte >= ' ' && byte != 127 && td_utf8_length(at, cell.end));
        if (to - text > 4 * SHOWN)
            break;
        to += plain ? snprintf(to, 2, "%c", byte) : snprintf(to, 5, "\\x%02X", byte);
    }
    snprintf(to, 4, "%s", at < cell.end ? "..." : "");
    return text;
}

/* A word in letters of either case. */
static bool is_word(line cell, const char *word) {
    for (; cell.at < cell.end && *word; cell.at++, word++) {
        char letter = *cell.at;
        bool capital = letter >= 'A' && letter <= 'Z';
        if (letter != *word && !(capital && letter + ('a' - 'A') == *word))
            return false;
    }
    return cell.at == cell.end && !*word;
}

/* Does a cell say that there is no value? */
static bool is_missing(line cell) {
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
static bool has_comma(line cell) {
    char *comma = memchr(cell.at, ',', (size_t)(cell.end - cell.at));
    double ignored;
    if (!comma)
        return false;
    *comma = '.';
    bool is = tide_csv_store(TD_F64, cell.at, cell.end, &ignored) == TIDE_CSV_OK;
    *comma = ',';
    return is;
}

/* Push what may be done about a cell that is no number. */
static void push_advice(lua_State *L, const csv *c, int64_t number, int64_t column, line cell) {
    if (is_missing(cell))
        lua_pushfstring(L, "; {missing = %s} reads such cells",
                        td_dtype_is_float(c->dtype) ? "0/0" : "0");
    else if (c->decimal == '.' && has_comma(cell))
        lua_pushliteral(L, "; {decimal = \",\"} reads such numbers");
    else if (!c->named && number == 1)
        lua_pushliteral(L, "; {header = true} takes the first line as names");
    else if (lua_getiuservalue(L, AT_CSV, NAMES) == LUA_TTABLE) {
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

static int fail_cell(lua_State *L, const csv *c, int64_t number, int64_t column, line cell,
                     tide_csv_problem problem) {
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
    return tide_error(L, "read_csv: '%s', line %I, column %I: '%s' is %s%s", path_of(L),
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
enum { AT_DTYPE = 2, AT_PLACES, AT_CLASSES, AT_OPEN, AT_MISSING, AT_CODES };

static int fail_class(lua_State *L, int64_t number, int64_t k, line cell) {
    char text[200];
    return tide_error(L, "read_csv: '%s', line %I, column %I: '%s' %s", path_of(L),
                      (LUAI_UACINT)number, (LUAI_UACINT)k, cell_text(cell, text),
                      cell.at == cell.end ? "is empty and names no class"
                                          : "is none of the classes that were given");
}

/* The number of the class that a cell names; where the classes are the file's, it gets the next. */
static int64_t find_class(lua_State *L, int64_t number, int64_t k, line cell) {
    int top = lua_gettop(L);
    lua_rawgeti(L, AT_CLASSES, k);
    push_text(L, cell);
    lua_pushvalue(L, -1);
    if (lua_rawget(L, top + 1) == LUA_TNIL) {
        if (lua_rawgeti(L, AT_OPEN, k) != LUA_TTABLE || cell.at == cell.end)
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

static void store_number(lua_State *L, const csv *c, line cell, int64_t number, int64_t k,
                         char *to) {
    tide_csv_problem problem = TIDE_CSV_NO_NUMBER;
    size_t len = (size_t)(cell.end - cell.at);
    char *mark = c->decimal == '.' ? NULL : memchr(cell.at, c->decimal, len);
    if (c->decimal == '.' || !memchr(cell.at, '.', len)) {
        if (mark)
            *mark = '.';
        problem = tide_csv_store(c->dtype, cell.at, cell.end, to);
        if (mark)
            *mark = c->decimal;
    }
    if (problem == TIDE_CSV_OK)
        return;
    if (problem == TIDE_CSV_BEYOND || !c->missing_given || !is_missing(cell))
        fail_cell(L, c, number, k, cell, problem);
    td_store_double(c->dtype, to, c->missing);
}

static void convert_line(lua_State *L, const csv *c, line l, int64_t number, const column *columns,
                         int64_t row, char *to) {
    for (int64_t k = 1; k <= c->columns; k++) {
        const column *col = &columns[k - 1];
        line cell;
        check_interrupt(L);
        if (!l.at || !next_cell(c, &l, &cell))
            fail_quotes(L, number, k);
        if (!col->codes && col->place < 0)
            continue;
        unquote(c, &cell);
        if (col->codes)
            col->codes[row] = find_class(L, number, k, cell);
        else
            store_number(L, c, cell, number, k, to + col->place * (int64_t)td_dtype_size(c->dtype));
    }
}

static void convert(lua_State *L, const csv *c, const column *columns, td_tensor *matrix) {
    line l = {.breaks = c->first_line};
    int64_t number = 0, row = 0, row_bytes = matrix->sizes[1] * (int64_t)td_dtype_size(c->dtype);
    for (char *at = c->text; at < c->end; at = l.next) {
        number += l.breaks;
        l = find_line(c, at);
        if (all_blank(&l))
            continue;
        convert_line(L, c, l, number, columns, row, (char *)matrix->data + row * row_bytes);
        row++;
    }
}

static td_tensor *push_empty(lua_State *L, td_dtype dtype, int ndim, const int64_t *sizes) {
    tide_handle *handle = tide_push_handle(L);
    TIDE_CHECK(L, td_tensor_empty(dtype, TD_DEVICE_CPU, ndim, sizes, &handle->tensor));
    return handle->tensor;
}

/* Push the plan of all columns; the codes' tensors go into the table at AT_CODES. */
static const column *push_columns(lua_State *L, const csv *c, int64_t *wanted) {
    column *columns = lua_newuserdatauv(L, (size_t)c->columns * sizeof *columns, 0);
    *wanted = 0;
    for (int64_t k = 1; k <= c->columns; k++) {
        column *col = &columns[k - 1];
        *col = (column){.place = -1};
        if (lua_rawgeti(L, AT_PLACES, k) == LUA_TNUMBER) {
            lua_Integer place = lua_tointeger(L, -1);
            luaL_argcheck(L, place > 0, AT_PLACES, "places are 1, 2, ...");
            col->place = place - 1;
            ++*wanted;
        }
        if (lua_rawgeti(L, AT_CLASSES, k) == LUA_TTABLE) {
            col->codes = push_empty(L, TD_I64, 1, &c->rows)->data;
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
    csv *c = luaL_checkudata(L, AT_CSV, csv_name);
    int64_t wanted;
    lua_settop(L, AT_MISSING);
    c->dtype = tide_to_dtype(L, AT_DTYPE);
    c->missing_given = !lua_isnil(L, AT_MISSING);
    c->missing = lua_tonumber(L, AT_MISSING);
    luaL_argcheck(L, c->dtype != TD_DTYPE_NONE, AT_DTYPE, "a dtype expected");
    luaL_argcheck(L, c->columns > 0, AT_CSV, "the file was converted already");
    for (int k = AT_PLACES; k <= AT_OPEN; k++)
        luaL_checktype(L, k, LUA_TTABLE);
    lua_newtable(L);
    const column *columns = push_columns(L, c, &wanted);
    td_tensor *matrix = push_empty(L, c->dtype, 2, (int64_t[]){c->rows, wanted});
    for (int64_t k = 0; k < c->columns; k++)
        luaL_argcheck(L, columns[k].place < wanted, AT_PLACES, "places are 1, 2, ...");
    convert(L, c, columns, matrix);
    c->columns = 0;
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
        {"_csv_open", open_csv},
        {"_csv_convert", convert_csv},
        {NULL, NULL},
    };
    luaL_newmetatable(L, csv_name);
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 1);
    tide_set_functions(L, functions);
}
