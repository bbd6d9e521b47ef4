/* csv_write.c: tables as text (lua/io.lua is the face): numbers in the fewest digits that read back
 * as the same bits, texts in quotes where they need them, the file whole or not at all. What is
 * written is what csv.c reads.
 */
#include "engine/core/draft.h"
#include "engine/core/interrupt.h"
#include "engine/core/number.h"
#include "lua-bindings/call/args.h"
#include "lua-bindings/modules/csv_columns.h"
#include "lua-bindings/modules/csv_number.h"
#include "lua-bindings/modules/modules.h"
#include "lua-bindings/modules/texts.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { BUFFER = 1 << 16, NUMBER = 40 };

typedef struct text {
    const char *at;
    size_t len;
} text;

/* Elements in the CPU's memory, and the texts of a column's classes; none where it holds numbers.
 */
typedef struct column {
    const char *at;
    size_t step; /* bytes from an element to the next */
    td_dtype dtype;
    const text *classes;
    int64_t n;
} column;

typedef struct writer {
    char delimiter;
    const text *names; /* of the columns; NULL: no header */
    column *columns;
    int64_t rows, ncolumns;
    bool table;           /* values may be missing, and booleans are words */
    tide_csv_rules rules; /* of a table: the words that would be read as missing */
    td_draft *draft;
    size_t held;
    char bytes[BUFFER];
} writer;

/* ---- bytes ---- */

static td_status put(writer *w, const char *at, size_t n) {
    while (n > 0) {
        size_t room = BUFFER - w->held, part = n < room ? n : room;
        memcpy(w->bytes + w->held, at, part);
        w->held += part;
        at += part;
        n -= part;
        if (w->held < BUFFER)
            continue;
        td_status status = td_draft_write(w->draft, w->bytes, w->held);
        if (status)
            return status;
        w->held = 0;
    }
    return TD_OK;
}

/* ---- cells ---- */

static bool needs_quotes(const writer *w, text t) {
    if (t.len == 0 || (w->table && tide_csv_is_missing(&w->rules, t.at, t.len)) ||
        memchr(t.at, w->delimiter, t.len) || memchr(t.at, '"', t.len) ||
        memchr(t.at, '\r', t.len) || memchr(t.at, '\n', t.len) || memchr(t.at, '\t', t.len))
        return true;
    char first = t.at[0], last = t.at[t.len - 1];
    if (strchr("\xEF\xFF\xFE", first)) /* at a file's beginning it would be a mark */
        return true;
    return first == ' ' || first == '\t' || last == ' ' || last == '\t';
}

static td_status put_text(writer *w, text t) {
    td_status status = TD_OK;
    if (!needs_quotes(w, t))
        return put(w, t.at, t.len);
    TD_TRY(put(w, "\"", 1));
    for (size_t k = 0; k < t.len; k++)
        TD_TRY(put(w, t.at[k] == '"' ? "\"\"" : t.at + k, t.at[k] == '"' ? 2 : 1));
    TD_TRY(put(w, "\"", 1));
done:
    return status;
}

/* Digits that a value of the dtype may do with, and those that are always enough. */
static void digits_of(td_dtype dtype, int *least, int *most) {
    *least = dtype == TD_F64 ? 15 : dtype == TD_F32 ? 6 : dtype == TD_F16 ? 3 : 2;
    *most = dtype == TD_F64 ? 17 : dtype == TD_F32 ? 9 : dtype == TD_F16 ? 5 : 4;
}

/* The shortest text that reads back as the element; its length. */
static int number_text(td_dtype dtype, const char *element,
                       char out[static NUMBER + TIDE_CSV_BEHIND]) {
    int least, most, n;
    double back, value = td_load_double(dtype, element);
    if (!td_dtype_is_float(dtype))
        return snprintf(out, NUMBER, "%lld", (long long)td_load_int(dtype, element));
    if (!isfinite(value))
        return snprintf(out, NUMBER, "%s", isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
    digits_of(dtype, &least, &most);
    memset(out, 0, NUMBER + TIDE_CSV_BEHIND);
    do {
        n = td_number_print(out, NUMBER, "%.*g", least, value);
        if (tide_csv_store(dtype, out, out + n, &back) == TIDE_CSV_OK &&
            !memcmp(&back, element, td_dtype_size(dtype)))
            break;
    } while (++least <= most);
    return n;
}

static td_status put_class(writer *w, const column *c, const char *element, int64_t row,
                           int64_t k) {
    double value = td_load_double(c->dtype, element);
    if (!(value >= 1 && value <= (double)c->n) || value != floor(value))
        return td_fail(TD_EVALUE, "row %lld, column %lld: %g is no number of its %lld classes",
                       (long long)row + 1, (long long)k + 1, isnan(value) ? NAN : value,
                       (long long)c->n);
    return put_text(w, c->classes[(int64_t)value - 1]);
}

/* A value that is missing is an empty cell; a line must not be empty. */
static bool is_gap(const writer *w, const column *c, const char *element) {
    double value = td_load_double(c->dtype, element);
    return w->table && (c->classes ? value == 0 : isnan(value));
}

static td_status put_cell(writer *w, int64_t row, int64_t k) {
    char out[NUMBER + TIDE_CSV_BEHIND];
    const column *c = &w->columns[k];
    const char *element = c->at + (size_t)row * c->step;
    if (is_gap(w, c, element))
        return w->ncolumns == 1 ? put(w, "NA", 2) : TD_OK;
    if (c->classes)
        return put_class(w, c, element, row, k);
    if (w->table && c->dtype == TD_BOOL)
        return *element ? put(w, "true", 4) : put(w, "false", 5);
    return put(w, out, (size_t)number_text(c->dtype, element, out));
}

/* ---- lines ---- */

static td_status put_header(writer *w) {
    td_status status = TD_OK;
    for (int64_t k = 0; w->names && k < w->ncolumns; k++) {
        if (k)
            TD_TRY(put(w, &w->delimiter, 1));
        TD_TRY(put_text(w, w->names[k]));
    }
    if (w->names)
        TD_TRY(put(w, "\n", 1));
done:
    return status;
}

static td_status put_rows(writer *w) {
    td_status status = TD_OK;
    for (int64_t row = 0; row < w->rows; row++) {
        for (int64_t k = 0; k < w->ncolumns; k++) {
            if (k)
                TD_TRY(put(w, &w->delimiter, 1));
            TD_TRY(put_cell(w, row, k));
        }
        TD_TRY(put(w, "\n", 1));
        if (td_interrupt_requested())
            return td_interrupted();
    }
done:
    return status;
}

static td_status write_file(writer *w, const char *path) {
    td_status status = TD_OK;
    TD_TRY(td_draft_open(path, &w->draft));
    TD_TRY(put_header(w));
    TD_TRY(put_rows(w));
    TD_TRY(td_draft_write(w->draft, w->bytes, w->held));
    TD_TRY(td_draft_commit(w->draft));
done:
    td_draft_close(w->draft);
    return status;
}

/* ---- what Lua gives ---- */

/* The strings of the list at the top, which stays there for as long as they are used. */
static const text *push_texts(lua_State *L, int64_t *n) {
    int list = lua_gettop(L);
    *n = (int64_t)lua_rawlen(L, list);
    text *texts = lua_newuserdatauv(L, (size_t)(*n + 1) * sizeof *texts, 1);
    for (int64_t k = 0; k < *n; k++) {
        tide_poll(L, k);
        lua_rawgeti(L, list, k + 1);
        texts[k].at = luaL_checklstring(L, -1, &texts[k].len);
        lua_pop(L, 1);
    }
    lua_pushvalue(L, list);
    lua_setiuservalue(L, -2, 1);
    return texts;
}

/* The texts of the list at the top, or of the tensors {bytes, offsets} that it holds; replaced by
 * what keeps them. */
static const text *push_classes(lua_State *L, int64_t *n) {
    int list = lua_gettop(L);
    if (lua_rawgeti(L, list, 1) != LUA_TUSERDATA) {
        lua_settop(L, list);
        return push_texts(L, n);
    }
    lua_rawgeti(L, list, 2);
    tide_texts t = tide_check_texts(L, list + 1, list + 2);
    text *texts = lua_newuserdatauv(L, (size_t)(t.n + 1) * sizeof *texts, 2);
    for (int64_t k = 0; k < t.n; k++)
        texts[k] = (text){t.bytes + t.offsets[k], (size_t)(t.offsets[k + 1] - t.offsets[k])};
    lua_pushvalue(L, -3);
    lua_setiuservalue(L, -2, 1);
    lua_pushvalue(L, -2);
    lua_setiuservalue(L, -2, 2);
    lua_replace(L, list + 1);
    lua_settop(L, list + 1);
    *n = t.n;
    return texts;
}

/* n columns without elements; the classes of each, in the table at `classes`, stay alive in that at
 * `kept`. */
static column *push_columns(lua_State *L, int classes, int64_t n, int kept) {
    column *columns = lua_newuserdatauv(L, (size_t)(n + 1) * sizeof *columns, 0);
    for (int64_t k = 0; k < n; k++) {
        columns[k] = (column){.classes = NULL};
        if (lua_rawgeti(L, classes, k + 1) == LUA_TTABLE) {
            columns[k].classes = push_classes(L, &columns[k].n);
            lua_rawseti(L, kept, k + 1);
        }
        lua_pop(L, 1);
    }
    return columns;
}

static bool is_plain(const td_tensor *x, int ndim) {
    return x->layout == TD_STRIDED && x->ndim == ndim && x->contiguous &&
           td_tensor_device(x).type == TD_CPU;
}

/* Arguments of both functions. */
enum { AT_PATH = 1, AT_ELEMENTS, AT_DELIMITER, AT_NAMES, AT_CLASSES, AT_MISSING, AT_KEPT };

/* Push a writer of n columns, whose elements are still to be said. */
static writer *push_writer(lua_State *L, int64_t n) {
    int64_t nnames = 0;
    column *columns = push_columns(L, AT_CLASSES, n, AT_KEPT);
    writer *w = lua_newuserdatauv(L, sizeof *w, 0);
    memset(w, 0, offsetof(writer, bytes));
    lua_pushvalue(L, AT_NAMES);
    w->names = lua_isnil(L, AT_NAMES) ? NULL : push_texts(L, &nnames);
    w->columns = columns;
    w->ncolumns = n;
    w->delimiter = *luaL_checkstring(L, AT_DELIMITER);
    luaL_argcheck(L, !w->names || nnames == n, AT_NAMES, "a name for each column expected");
    return w;
}

static int write_whole(lua_State *L, writer *w) {
    const char *path = luaL_checkstring(L, AT_PATH);
    tide_enter_engine(TIDE_STATE(L));
    td_status status = write_file(w, path);
    if (status == TD_EINTR)
        tide_raise(L);
    if (status == TD_EVALUE)
        return tide_error(L, "write_csv: '%s': %s", path, td_error_message());
    if (status) /* says the path itself */
        return tide_error(L, "write_csv: %s", td_error_message());
    return 0;
}

/* _csv_write(path, x, delimiter, names or nil, {column = list of its classes}) */
static int write_csv(lua_State *L) {
    luaL_checktype(L, AT_CLASSES, LUA_TTABLE);
    lua_settop(L, AT_MISSING);
    lua_newtable(L);
    const td_tensor *x = tide_hold_tensor(L, AT_ELEMENTS, "write_csv");
    luaL_argcheck(L, is_plain(x, 2), AT_ELEMENTS, "a row-major matrix on the CPU expected");
    writer *w = push_writer(L, x->sizes[1]);
    size_t size = td_dtype_size(x->dtype);
    w->rows = x->sizes[0];
    for (int64_t k = 0; k < w->ncolumns; k++) {
        w->columns[k].at = (const char *)x->data + (size_t)k * size;
        w->columns[k].step = (size_t)w->ncolumns * size;
        w->columns[k].dtype = x->dtype;
    }
    return write_whole(L, w);
}

/* The words that are read as missing, whose list stays on the stack. */
static void set_missing(lua_State *L, writer *w) {
    int64_t n;
    lua_pushvalue(L, AT_MISSING);
    const text *words = push_texts(L, &n);
    tide_csv_text *known = lua_newuserdatauv(L, (size_t)(n + 1) * sizeof *known, 0);
    for (int64_t k = 0; k < n; k++)
        known[k] = (tide_csv_text){words[k].at, words[k].len, 0};
    tide_csv_set_missing(&w->rules, known, (int)n);
    w->table = true;
}

/* _csv_write_columns(path, {tensor of each column}, delimiter, names or nil, {column = list of its
 * texts}, words that are read as missing) */
static int write_columns(lua_State *L) {
    luaL_checktype(L, AT_ELEMENTS, LUA_TTABLE);
    luaL_checktype(L, AT_CLASSES, LUA_TTABLE);
    luaL_checktype(L, AT_MISSING, LUA_TTABLE);
    lua_settop(L, AT_MISSING);
    lua_newtable(L);
    int64_t n = (int64_t)lua_rawlen(L, AT_ELEMENTS);
    writer *w = push_writer(L, n);
    set_missing(L, w);
    for (int64_t k = 0; k < n; k++) {
        luaL_checkstack(L, 4, NULL);
        lua_rawgeti(L, AT_ELEMENTS, (lua_Integer)k + 1);
        const td_tensor *x = tide_hold_elements(L, lua_gettop(L), "write_csv");
        luaL_argcheck(L, is_plain(x, 1) && (k == 0 || x->sizes[0] == w->rows), AT_ELEMENTS,
                      "tensors of one dim and one length on the CPU expected");
        w->rows = x->sizes[0];
        w->columns[k].at = x->data;
        w->columns[k].step = td_dtype_size(x->dtype);
        w->columns[k].dtype = x->dtype;
        lua_rawsetp(L, AT_KEPT, x);
        lua_pop(L, 1);
    }
    return write_whole(L, w);
}

void tide_open_csv_write(lua_State *L) {
    static const luaL_Reg functions[] = {
        {"_csv_write", write_csv}, {"_csv_write_columns", write_columns}, {NULL, NULL}};
    tide_set_functions(L, functions);
}
