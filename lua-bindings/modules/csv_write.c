/* csv_write.c: tables as text (lua/io.lua is the face): numbers in the fewest digits that read back
 * as the same bits, texts in quotes where they need them, the file whole or not at all. What is
 * written is what csv.c reads.
 */
#include "engine/core/draft.h"
#include "engine/core/interrupt.h"
#include "engine/core/number.h"
#include "lua-bindings/call/args.h"
#include "lua-bindings/modules/csv_number.h"
#include "lua-bindings/modules/modules.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BUFFER = 1 << 16, NUMBER = 40 };

typedef struct text {
    const char *at;
    size_t len;
} text;

/* The texts of a column's classes; none where it holds numbers. */
typedef struct column {
    const text *classes;
    int64_t n;
} column;

typedef struct writer {
    const td_tensor *x; /* contiguous, two dims, on the CPU */
    char delimiter;
    const text *names; /* of the columns; NULL: no header */
    const column *columns;
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
    if (t.len == 0 || memchr(t.at, w->delimiter, t.len) || memchr(t.at, '"', t.len) ||
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
static int number_text(td_dtype dtype, const char *element, char out[static NUMBER]) {
    int least, most, n;
    double back, value = td_load_double(dtype, element);
    if (!td_dtype_is_float(dtype))
        return snprintf(out, NUMBER, "%lld", (long long)td_load_int(dtype, element));
    if (!isfinite(value))
        return snprintf(out, NUMBER, "%s", isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
    digits_of(dtype, &least, &most);
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
    double value = td_load_double(w->x->dtype, element);
    if (!(value >= 1 && value <= (double)c->n) || value != floor(value))
        return td_fail(TD_EVALUE, "row %lld, column %lld: %g is no number of its %lld classes",
                       (long long)row + 1, (long long)k + 1, isnan(value) ? NAN : value,
                       (long long)c->n);
    return put_text(w, c->classes[(int64_t)value - 1]);
}

static td_status put_cell(writer *w, int64_t row, int64_t k) {
    char out[NUMBER];
    const column *c = &w->columns[k];
    const char *element =
        (const char *)w->x->data + (size_t)(row * w->x->sizes[1] + k) * td_dtype_size(w->x->dtype);
    if (c->classes)
        return put_class(w, c, element, row, k);
    return put(w, out, (size_t)number_text(w->x->dtype, element, out));
}

/* ---- lines ---- */

static td_status put_header(writer *w) {
    td_status status = TD_OK;
    for (int64_t k = 0; w->names && k < w->x->sizes[1]; k++) {
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
    for (int64_t row = 0; row < w->x->sizes[0]; row++) {
        for (int64_t k = 0; k < w->x->sizes[1]; k++) {
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

/* The columns' classes; those of each stay alive in the table at `kept`. */
static const column *push_columns(lua_State *L, int classes, int64_t n, int kept) {
    column *columns = lua_newuserdatauv(L, (size_t)(n + 1) * sizeof *columns, 0);
    for (int64_t k = 0; k < n; k++) {
        columns[k] = (column){.classes = NULL};
        if (lua_rawgeti(L, classes, k + 1) == LUA_TTABLE) {
            columns[k].classes = push_texts(L, &columns[k].n);
            lua_rawseti(L, kept, k + 1);
        }
        lua_pop(L, 1);
    }
    return columns;
}

static bool is_plain(const td_tensor *x) {
    return x->layout == TD_STRIDED && x->ndim == 2 && x->contiguous &&
           td_tensor_device(x).type == TD_CPU;
}

/* _csv_write(path, x, delimiter, names or nil, {column = list of its classes}) */
static int write_csv(lua_State *L) {
    const char *path = luaL_checkstring(L, 1);
    char delimiter = *luaL_checkstring(L, 3);
    int64_t nnames = 0;
    luaL_checktype(L, 5, LUA_TTABLE);
    lua_settop(L, 5);
    const td_tensor *x = tide_hold_tensor(L, 2, "write_csv");
    luaL_argcheck(L, is_plain(x), 2, "a row-major matrix on the CPU expected");
    lua_newtable(L);
    const column *columns = push_columns(L, 5, x->sizes[1], lua_gettop(L));
    writer *w = lua_newuserdatauv(L, sizeof *w, 0);
    lua_pushvalue(L, 4);
    w->names = lua_isnil(L, 4) ? NULL : push_texts(L, &nnames);
    w->columns = columns;
    w->delimiter = delimiter;
    w->draft = NULL;
    w->held = 0;
    w->x = x;
    luaL_argcheck(L, !w->names || nnames == x->sizes[1], 4, "a name for each column expected");
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

void tide_open_csv_write(lua_State *L) {
    static const luaL_Reg functions[] = {{"_csv_write", write_csv}, {NULL, NULL}};
    tide_set_functions(L, functions);
}
