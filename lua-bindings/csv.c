/* csv.c: tide.io's reader of numbers in text: one pass to count, one to convert. */
#include "lua-bindings/function.h"
#include "lua-bindings/modules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct csv {
    lua_State *L;
    const char *path;
    char *text, *end; /* the file; `text` is a userdata on the stack, NUL behind it */
    char delimiter;
    int64_t rows, columns;
    int64_t first_line; /* number of the first row's line */
} csv;

static void read_file(csv *c) {
    tide_handle *handle = tide_push_handle(c->L); /* will own the text */
    FILE *f = fopen(c->path, "rb");
    long size = -1;
    if (!f)
        tide_error(c->L, "read_csv: cannot open '%s': %s", c->path, strerror(errno));
    if (fseek(f, 0, SEEK_END) == 0)
        size = ftell(f);
    if (size < 0 || fseek(f, 0, SEEK_SET)) {
        int reason = errno;
        fclose(f);
        tide_error(c->L, "read_csv: cannot read '%s': %s", c->path, strerror(reason));
    }
    td_tensor *buffer = NULL;
    if (td_tensor_empty(TD_U8, TD_DEVICE_CPU, 1, (int64_t[]){size + 1}, &buffer)) {
        fclose(f);
        tide_raise(c->L);
    }
    handle->tensor = buffer;
    c->text = buffer->data;
    size_t got = fread(c->text, 1, (size_t)size, f);
    bool failed = ferror(f);
    fclose(f);
    if (failed)
        tide_error(c->L, "read_csv: cannot read '%s'", c->path);
    c->end = c->text + got;
    *c->end = 0;
}

static char *line_end(const csv *c, char *at) {
    char *end = memchr(at, '\n', (size_t)(c->end - at));
    return end ? end : c->end;
}

static bool is_blank(const char *at, const char *end) {
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\r'))
        at++;
    return at == end;
}

static int64_t count_columns(const csv *c, const char *at, const char *end) {
    int64_t n = 1;
    for (; at < end; at++)
        n += *at == c->delimiter;
    return n;
}

static void measure(csv *c) {
    int64_t line = c->first_line;
    for (char *at = c->text; at < c->end; line++) {
        char *end = line_end(c, at);
        if (!is_blank(at, end)) {
            int64_t columns = count_columns(c, at, end);
            if (c->rows == 0)
                c->columns = columns;
            if (columns != c->columns)
                tide_error(c->L, "read_csv: '%s', line %I: %I columns, the first row has %I",
                           c->path, (LUAI_UACINT)line, (LUAI_UACINT)columns,
                           (LUAI_UACINT)c->columns);
            c->rows++;
        }
        at = end + 1;
    }
    if (c->rows == 0)
        tide_error(c->L, "read_csv: '%s' holds no rows", c->path);
}

static void fail_number(const csv *c, int64_t line, int64_t column, const char *at,
                        const char *end) {
    char text[41];
    int n = (int)(end - at);
    while (n > 0 && (at[n - 1] == '\r' || at[n - 1] == ' '))
        n--;
    snprintf(text, sizeof text, "%.*s", n, at);
    tide_error(c->L, "read_csv: '%s', line %I, column %I: '%s' is not a number", c->path,
               (LUAI_UACINT)line, (LUAI_UACINT)column, text);
}

/* Small integers, which most files hold, without strtod. */
static double parse_number(const char *at, const char *end, char **stop) {
    const char *p = at;
    int64_t value = 0;
    while (p < end && *p == ' ')
        p++;
    bool negative = p < end && *p == '-';
    p += negative;
    const char *digits = p;
    while (p < end && *p >= '0' && *p <= '9' && p - digits < 15)
        value = value * 10 + (*p++ - '0');
    while (p > digits && p < end && (*p == ' ' || *p == '\r'))
        p++;
    if (p > digits && p == end) {
        *stop = (char *)end;
        return (double)(negative ? -value : value);
    }
    double v = strtod(at, stop);
    while (*stop < end && (**stop == ' ' || **stop == '\r'))
        (*stop)++;
    return v;
}

static void convert(const csv *c, td_dtype dtype, char *to) {
    int64_t line = c->first_line;
    for (char *at = c->text; at < c->end; line++) {
        char *end = line_end(c, at), *next = end + 1;
        if (is_blank(at, end)) {
            at = next;
            continue;
        }
        for (int64_t column = 1; column <= c->columns; column++) {
            char *stop, *cell_end = memchr(at, c->delimiter, (size_t)(end - at));
            if (!cell_end)
                cell_end = end;
            double v = parse_number(at, cell_end, &stop);
            if (stop != cell_end || is_blank(at, cell_end))
                fail_number(c, line, column, at, cell_end);
            td_store_double(dtype, to, v);
            to += td_dtype_size(dtype);
            at = cell_end + 1;
        }
        at = next;
    }
}

enum { PATH, HEADER, DELIMITER, DTYPE };

/* io.read_csv(path [, {header, delimiter, dtype}]): a (rows, columns) tensor. */
static int read_csv(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    csv c = {.L = L, .path = f.args[PATH].string, .first_line = 1};
    const char *delimiter = f.args[DELIMITER].string;
    if (strlen(delimiter) != 1)
        return tide_error(L, "read_csv: option delimiter: one character expected, got \"%s\"",
                          delimiter);
    c.delimiter = delimiter[0];
    td_dtype dtype = td_is_nil(f.args[DTYPE]) ? td_default_dtype() : f.args[DTYPE].dtype;
    read_file(&c);
    if (f.args[HEADER].b) {
        char *end = line_end(&c, c.text);
        c.text = end < c.end ? end + 1 : c.end;
        c.first_line = 2;
    }
    measure(&c);
    tide_handle *handle = tide_push_handle(L);
    TIDE_CHECK(L, td_tensor_empty(dtype, TD_DEVICE_CPU, 2, (int64_t[]){c.rows, c.columns},
                                  &handle->tensor));
    convert(&c, dtype, handle->tensor->data);
    return 1;
}

void tide_open_io(lua_State *L) {
    static const tide_function functions[] = {
        {"read_csv(str path, *, bool header=false, str delimiter=\",\", dtype? dtype=nil) -> "
         "Tensor",
         "A file of numbers as a matrix.", read_csv},
        {NULL, NULL, NULL},
    };
    lua_newtable(L);
    tide_declare(L, functions);
    tide_document(L, -1, "io", "tide.io", "read_csv.");
    lua_setfield(L, -2, "io");
}
