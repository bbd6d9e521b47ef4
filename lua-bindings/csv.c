/* csv.c: tide.io's reader of numbers in text: the bytes of a file or a pipe, one pass to count, one
 * to convert. A cell becomes what it says or an error that names its line: integers never go
 * through a double, and nothing is rounded to infinity or cut in silence.
 */
#include "engine/core/interrupt.h"
#include "engine/core/number.h"
#include "lua-bindings/function.h"
#include "lua-bindings/modules.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct csv {
    lua_State *L;
    const char *path;
    char *text, *end; /* the file; `text` is a tensor on the stack, NUL behind it */
    char delimiter;
    td_dtype dtype;
    int64_t rows, columns;
    int64_t first_line; /* number of the first row's line */
} csv;

/* ---- the bytes ---- */

enum { POLL_MS = 50, FIRST_BYTES = 1 << 16, READ_BYTES = 1 << 20 };

typedef struct source {
    lua_State *L;
    tide_handle *handle; /* owns the bytes */
    size_t held;
    int fd;
    bool waits; /* a pipe or a terminal: bytes come when they come */
} source;

static td_status fail_system(void) {
    return td_fail(TD_EIO, "%s", strerror(errno));
}

/* A buffer of `size` bytes with what is held in front. */
static td_status grow(source *s, int64_t size) {
    td_tensor *larger = NULL;
    td_status status = td_tensor_empty(TD_U8, TD_DEVICE_CPU, 1, &size, &larger);
    if (status == TD_ENOMEM) {
        tide_free_memory(s->L, TIDE_STATE(s->L));
        status = td_tensor_empty(TD_U8, TD_DEVICE_CPU, 1, &size, &larger);
    }
    if (status)
        return status;
    if (s->held)
        memcpy(larger->data, s->handle->tensor->data, s->held);
    td_release(s->handle->tensor);
    s->handle->tensor = larger;
    return TD_OK;
}

static td_status make_room(source *s) {
    int64_t size = s->handle->tensor->numel;
    return (int64_t)s->held + 1 < size ? TD_OK : grow(s, size + size / 2);
}

/* A pipe without a writer yet reads as one that has ended; polling tells them apart. */
static td_status wait_for_bytes(const source *s) {
    struct pollfd one = {.fd = s->fd, .events = POLLIN};
    while (s->waits && poll(&one, 1, POLL_MS) <= 0)
        if (td_interrupt_requested())
            return td_interrupted();
    return td_interrupt_check();
}

/* *n: bytes that came, 0 at the end, below 0 for none yet. */
static td_status read_some(source *s, ssize_t *n) {
    td_status status = wait_for_bytes(s);
    if (status)
        return status;
    size_t room = (size_t)s->handle->tensor->numel - s->held - 1;
    *n = read(s->fd, (char *)s->handle->tensor->data + s->held,
              room < READ_BYTES ? room : READ_BYTES);
    return *n < 0 && errno != EINTR && errno != EAGAIN ? fail_system() : TD_OK;
}

static td_status read_open(source *s) {
    struct stat info;
    if (fstat(s->fd, &info))
        return fail_system();
    if (S_ISDIR(info.st_mode))
        return td_fail(TD_EIO, "%s", strerror(EISDIR));
    bool regular = S_ISREG(info.st_mode);
    s->waits = !regular;
    /* Two bytes more: one tells the end of the file, one is the NUL. */
    td_status status =
        grow(s, regular && info.st_size < INT64_MAX - 2 && info.st_size > 0 ? info.st_size + 2
                                                                            : FIRST_BYTES);
    for (ssize_t n = 1; status == TD_OK && n != 0;) {
        status = make_room(s);
        if (status == TD_OK)
            status = read_some(s, &n);
        if (status == TD_OK && n > 0)
            s->held += (size_t)n;
    }
    return status;
}

static td_status read_path(source *s, const char *path) {
    s->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (s->fd < 0)
        return fail_system();
    td_status status = read_open(s);
    close(s->fd);
    return status;
}

/* Pushes the handle that owns the text. */
static void read_file(csv *c) {
    source s = {.L = c->L, .handle = tide_push_handle(c->L)};
    td_status status = read_path(&s, c->path);
    if (status == TD_EINTR)
        tide_raise(c->L);
    if (status)
        tide_error(c->L, "read_csv: cannot read '%s': %s", c->path, td_error_message());
    c->text = s.handle->tensor->data;
    c->end = c->text + s.held;
    *c->end = 0;
}

/* ---- lines and cells ---- */

typedef struct line {
    char *at, *end; /* without what ends it */
    char *next;
} line;

static line find_line(const csv *c, char *at) {
    char *end = memchr(at, '\n', (size_t)(c->end - at));
    line l = {.at = at, .end = end ? end : c->end, .next = end ? end + 1 : c->end};
    if (l.end > l.at && l.end[-1] == '\r')
        l.end--;
    return l;
}

static bool is_blank(char letter) {
    return letter == ' ' || letter == '\t';
}

static bool all_blank(const line *l) {
    const char *at = l->at;
    while (at < l->end && is_blank(*at))
        at++;
    return at == l->end;
}

/* The line's next cell, without the blanks around it; moves l->at behind it. */
static line next_cell(const csv *c, line *l) {
    char *end = memchr(l->at, c->delimiter, (size_t)(l->end - l->at));
    line cell = {.at = l->at, .end = end ? end : l->end};
    l->at = end ? end + 1 : l->end;
    while (cell.at < cell.end && is_blank(*cell.at))
        cell.at++;
    while (cell.end > cell.at && is_blank(cell.end[-1]))
        cell.end--;
    return cell;
}

static void check_interrupt(const csv *c) {
    if (td_interrupt_requested())
        TIDE_CHECK(c->L, td_interrupted());
}

static int64_t count_columns(const csv *c, const line *l) {
    int64_t n = 1;
    for (const char *at = l->at; (at = memchr(at, c->delimiter, (size_t)(l->end - at))); at++) {
        check_interrupt(c);
        n++;
    }
    return n;
}

static void measure(csv *c) {
    int64_t number = c->first_line;
    for (char *at = c->text; at < c->end; number++) {
        line l = find_line(c, at);
        at = l.next;
        check_interrupt(c);
        if (all_blank(&l))
            continue;
        int64_t columns = count_columns(c, &l);
        if (c->rows == 0)
            c->columns = columns;
        if (columns != c->columns)
            tide_error(c->L, "read_csv: '%s', line %I: %I columns, the first row has %I", c->path,
                       (LUAI_UACINT)number, (LUAI_UACINT)columns, (LUAI_UACINT)c->columns);
        c->rows++;
    }
    if (c->rows == 0)
        tide_error(c->L, "read_csv: '%s' holds no rows", c->path);
}

/* ---- numbers ---- */

typedef enum cell_problem { CELL_OK, CELL_NO_NUMBER, CELL_NO_INTEGER, CELL_BEYOND } cell_problem;

/* m * 10^power as long as it fits. */
static bool scale(uint64_t *m, int64_t power) {
    bool fits = true;
    for (; *m && fits && power > 0; power--)
        fits = !__builtin_mul_overflow(*m, (uint64_t)10, m);
    return fits;
}

/* Behind an exponent that stands at `at`; one beyond any integer's is cut. */
static const char *read_exponent(const char *at, const char *end, int64_t *exponent) {
    int64_t value = 0;
    bool negative = at + 1 < end && at[1] == '-';
    const char *digits = at + 1 + (negative || (at + 1 < end && at[1] == '+')), *p = digits;
    for (; p < end && td_is_digit(*p); p++)
        value = value < INT32_MAX ? value * 10 + (*p - '0') : value;
    *exponent = negative ? -value : value;
    return p > digits ? p : at;
}

/* DIGITS[.DIGITS][eN], exactly. */
static cell_problem read_decimal(const char *at, const char *end, uint64_t *magnitude) {
    uint64_t m = 0;
    int64_t zeros = 0, places = 0, exponent = 0; /* zeros: seen, and not yet in m */
    bool any = false, point = false, fits = true;
    for (; at < end && (td_is_digit(*at) || (*at == '.' && !point)); at++) {
        if (*at == '.') {
            point = true;
            continue;
        }
        any = true;
        places += point;
        zeros++;
        if (*at == '0')
            continue;
        fits = fits && scale(&m, zeros) && !__builtin_add_overflow(m, (uint64_t)(*at - '0'), &m);
        zeros = 0;
    }
    if (any && at < end && (*at == 'e' || *at == 'E'))
        at = read_exponent(at, end, &exponent);
    if (!any || at < end)
        return CELL_NO_NUMBER;
    int64_t power = zeros - places + exponent;
    *magnitude = m;
    if (fits && m && power < 0)
        return CELL_NO_INTEGER;
    return fits && scale(magnitude, power) ? CELL_OK : CELL_BEYOND;
}

static int hex_digit(char c) {
    c |= 0x20;
    return td_is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static cell_problem read_hex(const char *at, const char *end, uint64_t *magnitude) {
    cell_problem problem = at < end ? CELL_OK : CELL_NO_NUMBER;
    for (*magnitude = 0; at < end; at++) {
        if (hex_digit(*at) < 0)
            return CELL_NO_NUMBER;
        if (*magnitude >> 60)
            problem = CELL_BEYOND;
        *magnitude = *magnitude << 4 | (uint64_t)hex_digit(*at);
    }
    return problem;
}

static bool is_hex(const char *at, const char *end) {
    return end - at > 1 && at[0] == '0' && (at[1] | 0x20) == 'x';
}

/* Small integers, which most files hold, without strtod. */
static bool read_small(const char *at, const char *end, double *value) {
    bool negative = at < end && *at == '-';
    int64_t n = 0;
    at += negative;
    if (at == end || end - at > 15)
        return false;
    for (; at < end && td_is_digit(*at); at++)
        n = n * 10 + (*at - '0');
    *value = negative ? -(double)n : (double)n;
    return at == end;
}

/* `end` holds a NUL for as long as the C library reads: it knows no delimiters. */
static cell_problem read_float(td_dtype dtype, char *at, char *end, double *value) {
    char *stop, *first = at + (at < end && (*at == '-' || *at == '+')), behind = *end;
    if (read_small(at, end, value))
        return CELL_OK;
    if (first == end || td_is_space(*first) || memchr(first, '(', (size_t)(end - first)))
        return CELL_NO_NUMBER;
    *end = 0;
    *value = dtype == TD_F32 ? (double)td_number_read_single(at, &stop) : td_number_read(at, &stop);
    *end = behind;
    if (stop != end)
        return CELL_NO_NUMBER;
    return isinf(*value) && (td_is_digit(*first) || *first == '.') ? CELL_BEYOND : CELL_OK;
}

/* Any number, at most of so many bits: what is no integer, or lies beyond the dtype. */
static cell_problem read_int(td_dtype dtype, char *at, char *end, int64_t *value) {
    bool negative = at < end && *at == '-';
    char *first = at + (negative || (at < end && *at == '+'));
    uint64_t m = 0,
             most = dtype == TD_U8 ? UINT8_MAX : INT64_MAX >> (64 - 8 * td_dtype_size(dtype));
    uint64_t least = dtype == TD_U8 ? 0 : most + 1;
    double ignored;
    cell_problem problem =
        is_hex(first, end) ? read_hex(first + 2, end, &m) : read_decimal(first, end, &m);
    if (problem == CELL_NO_NUMBER) /* nan, inf and the fractions of hexadecimals are numbers */
        return read_float(TD_F64, at, end, &ignored) ? CELL_NO_NUMBER : CELL_NO_INTEGER;
    if (problem == CELL_OK && m > (negative ? least : most))
        problem = CELL_BEYOND;
    *value = (int64_t)(negative ? -m : m);
    return problem;
}

static cell_problem store_cell(td_dtype dtype, line cell, char *to) {
    cell_problem problem;
    if (td_dtype_is_int(dtype)) {
        int64_t value = 0;
        problem = read_int(dtype, cell.at, cell.end, &value);
        td_store_int(dtype, to, value);
        return problem;
    }
    double value = 0;
    problem = read_float(dtype, cell.at, cell.end, &value);
    td_store_double(dtype, to, value);
    if (problem == CELL_OK && isfinite(value) && isinf(td_load_double(dtype, to)))
        problem = CELL_BEYOND;
    return problem;
}

/* A cell as a message shows it: its beginning, on one line. */
static const char *cell_text(line cell, char text[static 200]) {
    enum { SHOWN = 40 };
    char *to = text;
    const char *at = cell.at;
    for (; at < cell.end && (at - cell.at < SHOWN || ((unsigned char)*at & 0xC0) == 0x80); at++) {
        unsigned char byte = (unsigned char)*at;
        if (to - text > 4 * SHOWN)
            break;
        to += byte < ' ' || byte == 127 ? snprintf(to, 5, "\\x%02X", byte)
                                        : snprintf(to, 2, "%c", byte);
    }
    snprintf(to, 4, "%s", at < cell.end ? "..." : "");
    return text;
}

static void fail_cell(const csv *c, int64_t number, int64_t column, line cell,
                      cell_problem problem) {
    char text[200], what[64] = "not a number";
    if (problem != CELL_NO_NUMBER)
        snprintf(what, sizeof what,
                 problem == CELL_BEYOND ? "beyond the range of %s" : "not an integer, as %s needs",
                 td_dtype_name(c->dtype));
    tide_error(c->L, "read_csv: '%s', line %I, column %I: '%s' is %s", c->path, (LUAI_UACINT)number,
               (LUAI_UACINT)column, cell_text(cell, text), what);
}

static void convert_line(const csv *c, line l, int64_t number, char *to) {
    for (int64_t column = 1; column <= c->columns; column++) {
        check_interrupt(c);
        line cell = next_cell(c, &l);
        cell_problem problem = store_cell(c->dtype, cell, to);
        if (problem)
            fail_cell(c, number, column, cell, problem);
        to += td_dtype_size(c->dtype);
    }
}

static void convert(const csv *c, char *to) {
    int64_t number = c->first_line, row_bytes = c->columns * (int64_t)td_dtype_size(c->dtype);
    for (char *at = c->text; at < c->end; number++) {
        line l = find_line(c, at);
        at = l.next;
        if (all_blank(&l))
            continue;
        convert_line(c, l, number, to);
        to += row_bytes;
    }
}

/* ---- the whole ---- */

/* Editors of other systems put a mark in front of UTF-8; UTF-16 is full of NUL. */
static void skip_mark(csv *c) {
    size_t held = (size_t)(c->end - c->text);
    if (held >= 3 && !memcmp(c->text, "\xEF\xBB\xBF", 3))
        c->text += 3;
    if (held >= 2 && (!memcmp(c->text, "\xFF\xFE", 2) || !memcmp(c->text, "\xFE\xFF", 2)))
        tide_error(c->L, "read_csv: '%s' is UTF-16, UTF-8 expected", c->path);
}

static void push_matrix(csv *c, bool header) {
    lua_State *L = c->L;
    c->first_line = 1;
    skip_mark(c);
    if (header) {
        c->text = find_line(c, c->text).next;
        c->first_line = 2;
    }
    measure(c);
    tide_handle *handle = tide_push_handle(L);
    TIDE_CHECK(L, td_tensor_empty(c->dtype, TD_DEVICE_CPU, 2, (int64_t[]){c->rows, c->columns},
                                  &handle->tensor));
    convert(c, handle->tensor->data);
}

enum { PATH, HEADER, DELIMITER, DTYPE };

/* io.read_csv(path [, {header, delimiter, dtype}]): a (rows, columns) tensor. */
static int read_csv(lua_State *L) {
    tide_frame f;
    tide_read_call(L, &f);
    csv c = {.L = L, .path = f.args[PATH].string};
    const char *delimiter = f.args[DELIMITER].string;
    if (strlen(delimiter) != 1 || *delimiter == '\n' || *delimiter == '\r')
        return tide_error(L, "read_csv: option delimiter: one character expected, got \"%s\"",
                          delimiter);
    c.delimiter = delimiter[0];
    c.dtype = td_is_nil(f.args[DTYPE]) ? td_default_dtype() : f.args[DTYPE].dtype;
    read_file(&c);
    push_matrix(&c, f.args[HEADER].b);
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
