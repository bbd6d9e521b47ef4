/* csv_file.c: opens a table in text; see csv_file.h. What is not said of it is found in its first
 * rows: what parts the cells, whether the first row is names, and whether fractions stand behind a
 * comma. */
#include "lua-bindings/modules/csv_file.h"

#include "engine/io/json.h"
#include "lua-bindings/modules/bytes.h"
#include "lua-bindings/modules/csv_number.h"
#include "lua-bindings/modules/modules.h"
#include "lua-bindings/state/errors.h"

#include <stdio.h>
#include <string.h>

enum { SAMPLE_ROWS = 32, SAMPLE_CELLS = 256 };

static const char csv_name[] = "tide.csv";

tide_csv_file *tide_csv_check(lua_State *L) {
    return luaL_checkudata(L, TIDE_CSV_AT, csv_name);
}

const char *tide_csv_path(lua_State *L) {
    lua_getiuservalue(L, TIDE_CSV_AT, TIDE_CSV_PATH);
    return lua_tostring(L, -1);
}

int tide_csv_raise(lua_State *L, const tide_csv_file *file) {
    if (td_error_code() == TD_EINTR || td_error_code() == TD_ENOMEM)
        return tide_raise(L);
    return tide_error(L, "%s: '%s', %s", file->fname, tide_csv_path(L), td_error_message());
}

/* ---- bytes ---- */

/* Editors of other systems put a mark in front of UTF-8; UTF-16 is full of NUL. */
static char *skip_mark(lua_State *L, const char *fname, char *at, const char *end) {
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
    size_t held = (size_t)(end - at);
    if (held >= 3 && !memcmp(at, "\xEF\xBB\xBF", 3))
        return at + 3;
    for (size_t k = 0; k < sizeof others / sizeof *others; k++)
        if (held >= strlen(others[k].magic) &&
            !memcmp(at, others[k].magic, strlen(others[k].magic)))
            tide_error(L, "%s: '%s' %s", fname, tide_csv_path(L), others[k].says);
    return at;
}

static bool is_utf8(const char *at, const char *end) {
    while (at < end && (unsigned char)*at < 0x80)
        at++;
    for (size_t n; at < end; at += n)
        if (!(n = td_utf8_length(at, end)))
            return false;
    return true;
}

size_t tide_csv_utf8(const char *at, size_t len, char *to) {
    static const uint16_t others[32] = {
        0x20AC, 0x81,   0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160,
        0x2039, 0x0152, 0x8D,   0x017D, 0x8F,   0x90,   0x2018, 0x2019, 0x201C, 0x201D, 0x2022,
        0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0x9D,   0x017E, 0x0178};
    char *first = to;
    if (is_utf8(at, at + len)) {
        memcpy(to, at, len);
        return len;
    }
    for (size_t k = 0; k < len; k++) {
        unsigned code = (unsigned char)at[k];
        code = code >= 0x80 && code < 0xA0 ? others[code - 0x80] : code;
        if (code >= 0x800)
            *to++ = (char)(0xE0 | code >> 12);
        if (code >= 0x80)
            *to++ = (char)(code >= 0x800 ? 0x80 | (code >> 6 & 0x3F) : 0xC0 | code >> 6);
        *to++ = (char)(code >= 0x80 ? 0x80 | (code & 0x3F) : code);
    }
    return (size_t)(to - first);
}

void tide_csv_push_text(lua_State *L, const char *at, size_t len) {
    luaL_Buffer b;
    if (is_utf8(at, at + len)) {
        lua_pushlstring(L, at, len);
        return;
    }
    char *to = luaL_buffinitsize(L, &b, 3 * len);
    luaL_pushresultsize(&b, tide_csv_utf8(at, len, to));
}

/* ---- what is found in the first rows ---- */

typedef struct sample {
    int64_t rows, columns; /* columns of each row; 0: they differ, or the rows can't be read */
    int numbers, texts;    /* of the cells behind the first row */
    int commas, fractions; /* cells with a comma, and those of them that are numbers with one */
} sample;

static bool is_number(const tide_csv_cell *cell, char mark) {
    int64_t whole;
    double value;
    return tide_csv_read(cell->at, cell->at + cell->len, mark, &whole, &value) != TIDE_CSV_TEXT;
}

static void add_cells(sample *s, const tide_csv_cell *cells, int64_t n, bool first) {
    for (int64_t k = 0; k < n; k++) {
        bool comma = memchr(cells[k].at, ',', cells[k].len), fraction = is_number(&cells[k], ',');
        bool number = fraction || is_number(&cells[k], '.');
        s->commas += comma && !cells[k].quoted;
        s->fractions += comma && !cells[k].quoted && fraction;
        s->numbers += !first && number;
        s->texts += !first && !number && cells[k].len > 0;
    }
}

static sample look_at(tide_csv_reader r) {
    sample s = {0};
    tide_csv_cell cells[SAMPLE_CELLS];
    int64_t count = 1, line;
    while (s.rows < SAMPLE_ROWS) {
        if (tide_csv_next(&r, cells, SAMPLE_CELLS, &count, &line))
            s.columns = 0;
        if (count == 0)
            return s;
        if (s.rows++ == 0)
            s.columns = count;
        else if (count != s.columns)
            s.columns = 0;
        if (s.columns == 0)
            return s;
        add_cells(&s, cells, count < SAMPLE_CELLS ? count : SAMPLE_CELLS, s.rows == 1);
    }
    return s;
}

/* The delimiter that cuts all of the first rows into the most cells. A semicolon comes before a
 * comma where what it leaves of commas stands in fractions, and blanks part numbers alone. */
static char find_delimiter(const tide_csv_reader *r, char comment, char decimal) {
    static const char candidates[] = ",;\t| ";
    char found = ',';
    int64_t most = 1;
    for (const char *at = candidates; *at; at++) {
        tide_csv_reader other;
        tide_csv_begin(&other, r->at, r->end, *at, comment);
        sample s = look_at(other);
        bool fractions = s.commas > 0 && s.commas == s.fractions && found == ',';
        if (s.columns < 2 || *at == decimal || (*at == ' ' && (most > 1 || s.texts > 0)))
            continue;
        if (s.columns > most || (*at != ',' && *at != ' ' && fractions)) {
            found = *at;
            most = s.columns;
        }
    }
    return found;
}

/* Do fractions stand behind a comma? */
static char find_decimal(const tide_csv_reader *r) {
    sample s = look_at(*r);
    return r->delimiter != ',' && s.commas > 0 && s.commas == s.fractions ? ',' : '.';
}

/* Is the first row names: texts, none of them a number? An empty one may be the name of a column of
 * numbers of rows. */
static bool find_header(const tide_csv_file *file) {
    tide_csv_reader r = file->reader;
    tide_csv_cell cells[SAMPLE_CELLS];
    int64_t count, line, texts = 0;
    if (tide_csv_next(&r, cells, SAMPLE_CELLS, &count, &line))
        return false;
    count = count < SAMPLE_CELLS ? count : SAMPLE_CELLS;
    for (int64_t k = 0; k < count; k++) {
        if (cells[k].len > 0 && is_number(&cells[k], file->decimal))
            return false;
        texts += cells[k].len > 0;
    }
    return texts > 0;
}

/* ---- rows ---- */

static void check(lua_State *L, const tide_csv_file *file, td_status status) {
    if (status)
        tide_csv_raise(L, file);
}

/* Push the names in the next row. */
static void push_header(lua_State *L, tide_csv_file *file) {
    int64_t count, line;
    tide_csv_reader ahead = file->reader;
    check(L, file, tide_csv_next(&ahead, NULL, 0, &count, &line));
    tide_csv_cell *cells = lua_newuserdatauv(L, (size_t)(count + 1) * sizeof *cells, 0);
    check(L, file, tide_csv_next(&file->reader, cells, count, &count, &line));
    lua_newtable(L);
    for (int64_t k = 0; k < count; k++) {
        luaL_Buffer b;
        char *to = luaL_buffinitsize(L, &b, cells[k].len);
        luaL_pushresultsize(&b, tide_csv_copy(&cells[k], to));
        size_t len;
        const char *text = lua_tolstring(L, -1, &len);
        tide_csv_push_text(L, text, len);
        lua_rawseti(L, -3, (lua_Integer)k + 1);
        lua_pop(L, 1);
    }
    file->columns = count;
    file->named = true;
    lua_remove(L, -2);
}

/* How many columns the first row has. */
static void measure(lua_State *L, tide_csv_file *file) {
    tide_csv_reader ahead = file->reader;
    int64_t count, line;
    check(L, file, tide_csv_next(&ahead, NULL, 0, &count, &line));
    if (count == 0)
        tide_error(L, "%s: '%s' holds no rows", file->fname, tide_csv_path(L));
    if (!file->named)
        file->columns = count;
}

static char letter_field(lua_State *L, int table, const char *name) {
    char letter = 0;
    if (lua_getfield(L, table, name) == LUA_TSTRING)
        letter = *lua_tostring(L, -1);
    lua_pop(L, 1);
    return letter;
}

/* Push the userdata of a file whose bytes are read. */
static tide_csv_file *push_file(lua_State *L, const char *fname) {
    tide_csv_file *file = lua_newuserdatauv(L, sizeof *file, 3);
    *file = (tide_csv_file){.decimal = '.'};
    snprintf(file->fname, sizeof file->fname, "%s", fname);
    luaL_setmetatable(L, csv_name);
    lua_insert(L, TIDE_CSV_AT);
    lua_pushvalue(L, TIDE_CSV_AT + 1);
    lua_setiuservalue(L, TIDE_CSV_AT, TIDE_CSV_PATH);
    return file;
}

/* _csv_open(path, {delimiter, decimal, comment: letters; header: true, false; nil: what stands
 * there is found out; skip: lines}, fname): the file, how many columns, their names if it has a
 * header, its delimiter, its decimal mark. */
static int open_csv(lua_State *L) {
    enum { PATH = TIDE_CSV_AT + 1, OPTIONS };
    const char *path = luaL_checkstring(L, 1), *fname = luaL_checkstring(L, 3);
    luaL_checktype(L, 2, LUA_TTABLE);
    tide_csv_file *file = push_file(L, fname);
    size_t held;
    char *at = tide_map_bytes(L, path, fname, &held), *end = at + held;
    lua_setiuservalue(L, TIDE_CSV_AT, TIDE_CSV_BYTES);
    at = skip_mark(L, fname, at, end);
    char delimiter = letter_field(L, OPTIONS, "delimiter"),
         decimal = letter_field(L, OPTIONS, "decimal");
    char comment = letter_field(L, OPTIONS, "comment");
    bool given = lua_getfield(L, OPTIONS, "delimiter") != LUA_TNIL;
    lua_getfield(L, OPTIONS, "skip");
    tide_csv_begin(&file->reader, at, end, delimiter, comment);
    tide_csv_skip_lines(&file->reader, (int64_t)lua_tointeger(L, -1));
    if (!given)
        delimiter = find_delimiter(&file->reader, comment, decimal);
    int64_t line = file->reader.line;
    tide_csv_begin(&file->reader, file->reader.at, end, delimiter, comment);
    file->reader.line = line;
    file->decimal = decimal ? decimal : find_decimal(&file->reader);
    bool found = lua_getfield(L, OPTIONS, "header") == LUA_TNIL;
    if (found ? find_header(file) : lua_toboolean(L, -1)) {
        push_header(L, file);
        lua_setiuservalue(L, TIDE_CSV_AT, TIDE_CSV_NAMES);
    }
    measure(L, file);
    lua_pushvalue(L, TIDE_CSV_AT);
    lua_pushinteger(L, (lua_Integer)file->columns);
    lua_getiuservalue(L, TIDE_CSV_AT, TIDE_CSV_NAMES);
    lua_pushlstring(L, &file->reader.delimiter, 1);
    lua_pushlstring(L, &file->decimal, 1);
    return 5;
}

void tide_open_csv_file(lua_State *L) {
    static const luaL_Reg functions[] = {{"_csv_open", open_csv}, {NULL, NULL}};
    luaL_newmetatable(L, csv_name);
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 1);
    tide_set_functions(L, functions);
}
