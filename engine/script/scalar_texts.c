/* scalar_texts.c: strings in graphs, which are Lua's: of any bytes, numbers written as Lua does. */
#include "engine/script/scalar_rows.h"

#include "engine/core/memory.h"
#include "engine/core/number.h"
#include "engine/ops/quantized/quantized_tensor.h"

#include <stdio.h>
#include <string.h>

#define ROW(name) td_status td_scalar_##name(int n, const td_value *args, td_value *out)

ROW(concat) {
    int64_t na, nb;
    (void)n;
    const char *a = td_value_text(args[0], &na), *b = td_value_text(args[1], &nb);
    if (na + nb > 1 << 30)
        return td_fail(TD_ENOMEM, "a string of more than %d bytes", 1 << 30);
    char *both = td_malloc((size_t)(na + nb) + 1);
    if (!both)
        return td_fail(TD_ENOMEM, "out of memory for a string");
    memcpy(both, a, (size_t)na);
    memcpy(both + na, b, (size_t)nb);
    td_status status = td_box_string_new(both, na + nb, out);
    td_free(both);
    return status;
}

/* A new string of n bytes, its bytes to be written; NULL: out of memory. */
static char *new_bytes(int64_t n, td_value *out) {
    td_value made = TD_NIL;
    char *bytes = td_calloc((size_t)n + 1, 1);
    if (!bytes || td_box_string_new(bytes, n, &made)) {
        td_free(bytes);
        return NULL;
    }
    td_free(bytes);
    *out = made;
    return ((td_box_string *)(void *)td_value_box(made))->text;
}

/* ---- parts ---- */

/* A place from 1, or from the end where it is negative. */
static int64_t place_of(int64_t i, int64_t length) {
    return i >= 0 ? i : i < -length ? 0 : length + i + 1;
}

ROW(text_part) {
    int64_t length;
    (void)n;
    const char *text = td_value_text(args[0], &length);
    int64_t from = place_of(args[1].i, length), to = place_of(args[2].i, length);
    from = from < 1 ? 1 : from;
    to = to > length ? length : to;
    return td_box_string_new(from > to ? text : text + from - 1, from > to ? 0 : to - from + 1,
                             out);
}

ROW(byte) {
    int64_t length;
    (void)n;
    const char *text = td_value_text(args[0], &length);
    int64_t at = place_of(args[1].i, length);
    *out = at < 1 || at > length ? TD_NIL : TD_I((unsigned char)text[at - 1]);
    return TD_OK;
}

ROW(find_text) {
    int64_t length, wanted;
    (void)n;
    const char *text = td_value_text(args[0], &length), *part = td_value_text(args[1], &wanted);
    int64_t from = place_of(args[2].i, length);
    *out = TD_NIL;
    for (int64_t k = from < 1 ? 0 : from - 1; k <= length - wanted; k++)
        if (!memcmp(text + k, part, (size_t)wanted)) {
            *out = TD_I(k + 1);
            break;
        }
    return TD_OK;
}

ROW(repeat) {
    int64_t length;
    (void)n;
    const char *text = td_value_text(args[0], &length);
    int64_t times = args[1].i < 1 || !length ? 0 : args[1].i;
    char *bytes = times && times > (1 << 30) / length ? NULL : new_bytes(times * length, out);
    if (!bytes)
        return td_fail(TD_ENOMEM, "out of memory for a string");
    for (int64_t k = 0; k < times; k++)
        memcpy(bytes + k * length, text, (size_t)length);
    return TD_OK;
}

/* A copy with each byte as a function has it, or in the other order. */
static td_status map_bytes(td_value v, char (*map)(char), td_value *out) {
    int64_t length;
    const char *text = td_value_text(v, &length);
    char *bytes = new_bytes(length, out);
    if (!bytes)
        return td_fail(TD_ENOMEM, "out of memory for a string");
    for (int64_t k = 0; k < length; k++)
        bytes[k] = map ? map(text[k]) : text[length - 1 - k];
    return TD_OK;
}

static char lower_of(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static char upper_of(char c) {
    return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

ROW(lower) {
    (void)n;
    return map_bytes(args[0], lower_of, out);
}

ROW(upper) {
    (void)n;
    return map_bytes(args[0], upper_of, out);
}

ROW(reversed) {
    (void)n;
    return map_bytes(args[0], NULL, out);
}

/* ---- numbers as texts ---- */

/* As Lua's tostring: 14 digits, and a float that looks like an int gets its point. */
static void print_float(char *text, size_t size, double value) {
    td_number_print(text, size, "%.14g", value);
    if (!text[strspn(text, "-0123456789")])
        strncat(text, ".0", size - strlen(text) - 1);
}

static td_status text_of(td_value v, char *room, size_t size, const char **text, int64_t *length) {
    *text = td_value_text(v, length);
    if (*text)
        return TD_OK;
    if (v.kind == TD_KIND_INT)
        snprintf(room, size, "%lld", (long long)v.i);
    else if (v.kind == TD_KIND_FLOAT)
        print_float(room, size, v.f);
    else if (v.kind == TD_KIND_BOOL || v.kind == TD_KIND_NIL)
        snprintf(room, size, "%s", v.kind == TD_KIND_NIL ? "nil" : v.b ? "true" : "false");
    else if (v.kind == TD_VALUE_QUANTIZED_DTYPE)
        snprintf(room, size, "%s", td_quantized_name(v.dtype));
    else if (v.kind == TD_KIND_DTYPE || v.kind == TD_KIND_DEVICE)
        snprintf(room, size, "%s",
                 v.kind == TD_KIND_DTYPE ? td_dtype_name(v.dtype) : td_device_name(v.device));
    else
        return td_fail(TD_ETYPE, "numbers, bools, strings and nil have a text, other values none");
    *text = room;
    *length = (int64_t)strlen(room);
    return TD_OK;
}

ROW(to_text) {
    char room[64];
    const char *text;
    int64_t length;
    (void)n;
    td_status status = text_of(args[0], room, sizeof room, &text, &length);
    return status ? status : td_box_string_new(text, length, out);
}

/* ---- texts as numbers ---- */

static td_status fail_text(td_value v, const char *noun) {
    return td_fail(TD_EVALUE, "'%.60s' is no %s", td_value_text(v, NULL), noun);
}

/* Behind the spaces at the end there is nothing more. */
static bool ends(const char *text, const char *at, int64_t length) {
    while (td_is_space(*at))
        at++;
    return at == text + length;
}

ROW(text_to_float) {
    char *end;
    int64_t length;
    (void)n;
    const char *text = td_value_text(args[0], &length), *start = text;
    while (td_is_space(*start))
        start++;
    bool named = *start == 'i' || *start == 'I' || *start == 'n' || *start == 'N'; /* inf, nan */
    double value = td_number_read(start, &end);
    if (named || end == start || !ends(text, end, length))
        return fail_text(args[0], "number");
    *out = TD_F(value);
    return TD_OK;
}

ROW(text_to_int) {
    const char *end;
    int64_t length;
    (void)n;
    const char *text = td_value_text(args[0], &length), *start = text;
    while (td_is_space(*start))
        start++;
    int64_t value = td_number_read_int(start, &end);
    if (end == start || !ends(text, end, length))
        return fail_text(args[0], "integer");
    *out = TD_I(value);
    return TD_OK;
}

/* ---- texts that grow ---- */

/* A text that grows. */
typedef struct builder {
    char *text;
    size_t used, room;
    td_status status;
} builder;

static void add(builder *b, const char *bytes, size_t n) {
    if (b->status || !n)
        return;
    if (b->used + n > b->room) {
        size_t room = 2 * (b->used + n) + 64;
        char *text = room > (size_t)1 << 30 ? NULL : td_realloc(b->text, room);
        if (!text) {
            b->status = td_fail(TD_ENOMEM, "out of memory for a string");
            return;
        }
        b->text = text;
        b->room = room;
    }
    memcpy(b->text + b->used, bytes, n);
    b->used += n;
}

static td_status finish(builder *b, td_value *out) {
    if (b->status == TD_OK)
        b->status = td_box_string_new(b->text ? b->text : "", (int64_t)b->used, out);
    td_free(b->text);
    return b->status;
}

ROW(concat_list) {
    builder b = {.text = NULL};
    char room[64];
    int64_t length, gap;
    (void)n;
    const char *between = td_value_text(args[1], &gap), *text;
    for (int k = 0; k < td_value_length(args[0]) && b.status == TD_OK; k++) {
        td_value entry = td_value_entry(args[0], k);
        bool fits =
            entry.kind == TD_KIND_INT || entry.kind == TD_KIND_FLOAT || td_value_text(entry, NULL);
        if (!fits)
            b.status = td_fail(TD_ETYPE, "concat: entry %d is no string and no number", k + 1);
        else
            b.status = text_of(entry, room, sizeof room, &text, &length);
        if (b.status)
            break;
        add(&b, between, k ? (size_t)gap : 0);
        add(&b, text, (size_t)length);
    }
    return finish(&b, out);
}

/* ---- format ---- */

/* One conversion: `spec` is "%5.2" and so on, without its letter. */
static void add_converted(builder *b, const char *spec, char letter, td_value v) {
    char format[32], room[512], number[64];
    const char *text = NULL;
    int64_t length = 0;
    bool integer = strchr("diucxX", letter) != NULL;
    if (letter == 's') {
        b->status = text_of(v, number, sizeof number, &text, &length);
        if (b->status)
            return;
        if (!spec[1] || (length >= 100 && !strchr(spec, '.'))) { /* no width reaches that far */
            add(b, text, (size_t)length);
            return;
        }
        snprintf(format, sizeof format, "%ss", spec);
        td_number_print(room, sizeof room, format, text);
    } else if (integer || letter == 'o') {
        b->status = v.kind == TD_KIND_FLOAT || v.kind == TD_KIND_INT
                        ? td_scalar_to_int(1, &v, &v)
                        : td_fail(TD_ETYPE, "%%%c: an integer is expected", letter);
        if (b->status)
            return;
        if (letter == 'c') {
            char byte = (char)v.i;
            add(b, &byte, 1);
            return;
        }
        snprintf(format, sizeof format, "%sll%c", spec, letter);
        td_number_print(room, sizeof room, format, (long long)v.i);
    } else {
        if (v.kind != TD_KIND_FLOAT && v.kind != TD_KIND_INT) {
            b->status = td_fail(TD_ETYPE, "%%%c: a number is expected", letter);
            return;
        }
        snprintf(format, sizeof format, "%s%c", spec, letter);
        td_number_print(room, sizeof room, format, td_arg_double(v));
    }
    add(b, room, strlen(room));
}

/* Flags, two digits of width and two of precision at most, as Lua allows. NULL: it is longer. */
static const char *read_spec(const char *at, char spec[16]) {
    size_t flags = strspn(at, "-+ #0"), n = flags;
    for (int k = 0; k < 2 && td_is_digit(at[n]); k++)
        n++;
    if (at[n] == '.') {
        n++;
        for (int k = 0; k < 2 && td_is_digit(at[n]); k++)
            n++;
    }
    if (flags > 5 || n > 12)
        return NULL;
    spec[0] = '%';
    memcpy(spec + 1, at, n);
    spec[n + 1] = 0;
    return at + n;
}

ROW(format) {
    int64_t length;
    int next = 1;
    builder b = {.text = NULL};
    const char *at = td_value_text(args[0], &length), *end = at + length;
    while (at < end && b.status == TD_OK) {
        char spec[16];
        if (*at != '%') {
            add(&b, at++, 1);
            continue;
        }
        if (at[1] == '%') {
            add(&b, "%", 1);
            at += 2;
            continue;
        }
        const char *letter = read_spec(at + 1, spec);
        if (!letter || !*letter || !strchr("diucxXoeEfFgGaAs", *letter))
            b.status = td_fail(TD_EVALUE, "format: '%.12s' is no conversion", at);
        else if (next == n)
            b.status = td_fail(TD_EVALUE, "format: argument %d is missing", next + 1);
        else {
            add_converted(&b, spec, *letter, args[next++]);
            at = letter + 1;
        }
    }
    return finish(&b, out);
}
