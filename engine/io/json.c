/* json.c: the reader, and the writer of strings. What the reader undoes is never longer than what
 * it read. */
#include "engine/io/json.h"

#include "engine/core/interrupt.h"
#include "engine/core/number.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static td_status fail_at(const td_json *json, const char *what) {
    return td_fail(TD_EVALUE, "JSON: %s at byte %lld", what,
                   (long long)(json->at - json->start) + 1);
}

void td_json_begin(td_json *json, char *text, size_t len) {
    *json = (td_json){.start = text, .at = text, .end = text + len};
}

static void skip_space(td_json *json) {
    while (json->at < json->end &&
           (*json->at == ' ' || *json->at == '\t' || *json->at == '\n' || *json->at == '\r'))
        json->at++;
}

td_json_kind td_json_peek(td_json *json) {
    skip_space(json);
    char c = json->at < json->end ? *json->at : 0;
    switch (c) {
    case '{':
        return TD_JSON_OBJECT;
    case '[':
        return TD_JSON_ARRAY;
    case '"':
        return TD_JSON_STRING;
    case 't':
        return TD_JSON_TRUE;
    case 'f':
        return TD_JSON_FALSE;
    case 'n':
        return TD_JSON_NULL;
    default:
        return td_is_digit(c) || c == '-' ? TD_JSON_NUMBER : TD_JSON_NONE;
    }
}

/* ---- lists ---- */

td_status td_json_open(td_json *json, td_json_kind kind) {
    if (td_json_peek(json) != kind)
        return fail_at(json, kind == TD_JSON_OBJECT ? "'{' expected" : "'[' expected");
    if (++json->depth > TD_JSON_DEPTH)
        return fail_at(json, "nested too deeply");
    json->at++;
    json->fresh = true;
    return TD_OK;
}

td_status td_json_next(td_json *json, td_json_kind kind, bool *more) {
    char closing = kind == TD_JSON_OBJECT ? '}' : ']';
    bool fresh = json->fresh;
    json->fresh = false;
    *more = false;
    if (td_interrupt_requested())
        return td_interrupted();
    skip_space(json);
    if (json->at < json->end && *json->at == closing) {
        json->at++;
        json->depth--;
        return TD_OK;
    }
    if (!fresh && (json->at == json->end || *json->at != ','))
        return fail_at(json,
                       kind == TD_JSON_OBJECT ? "',' or '}' expected" : "',' or ']' expected");
    json->at += !fresh;
    *more = true;
    return TD_OK;
}

td_status td_json_read_key(td_json *json, const char **text, size_t *len) {
    td_status status = td_json_read_string(json, text, len);
    if (status)
        return status;
    skip_space(json);
    if (json->at == json->end || *json->at != ':')
        return fail_at(json, "':' expected");
    json->at++;
    return TD_OK;
}

/* ---- strings ---- */

size_t td_utf8_length(const char *s, const char *end) {
    const unsigned char *u = (const unsigned char *)s;
    if (s >= end)
        return 0;
    if (u[0] < 0x80)
        return 1;
    size_t n = u[0] >= 0xF0 ? 4 : u[0] >= 0xE0 ? 3 : 2;
    unsigned low = u[0] == 0xE0 ? 0xA0 : u[0] == 0xF0 ? 0x90 : 0x80;  /* no longer than needed */
    unsigned high = u[0] == 0xED ? 0x9F : u[0] == 0xF4 ? 0x8F : 0xBF; /* no surrogates */
    if (u[0] < 0xC2 || u[0] > 0xF4 || (size_t)(end - s) < n || u[1] < low || u[1] > high)
        return 0;
    for (size_t k = 2; k < n; k++)
        if ((u[k] & 0xC0) != 0x80)
            return 0;
    return n;
}

static int hex_digit(char c) {
    if (td_is_digit(c))
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Four hexadecimal digits; -1 where they are not. */
static int32_t read_hex(td_json *json) {
    int32_t value = 0;
    if (json->end - json->at < 4)
        return -1;
    for (int k = 0; k < 4; k++) {
        int digit = hex_digit(json->at[k]);
        if (digit < 0)
            return -1;
        value = value << 4 | digit;
    }
    json->at += 4;
    return value;
}

static char *put_utf8(char *to, int32_t code) {
    if (code < 0x80) {
        *to++ = (char)code;
        return to;
    }
    int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const unsigned char first[] = {0, 0xC0, 0xE0, 0xF0};
    *to++ = (char)(first[more] | code >> 6 * more);
    while (more-- > 0)
        *to++ = (char)(0x80 | (code >> 6 * more & 0x3F));
    return to;
}

/* Behind "\u". */
static td_status read_code(td_json *json, char **to) {
    int32_t code = read_hex(json), low = 0;
    if (code >= 0xD800 && code < 0xDC00) {
        bool pair = json->end - json->at > 2 && json->at[0] == '\\' && json->at[1] == 'u';
        json->at += pair ? 2 : 0;
        low = pair ? read_hex(json) : -1;
        code =
            low >= 0xDC00 && low < 0xE000 ? 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00) : -1;
    }
    if (code < 0 || (code >= 0xDC00 && code < 0xE000))
        return fail_at(json, "a wrong \\u escape");
    *to = put_utf8(*to, code);
    return TD_OK;
}

/* Behind a backslash. */
static td_status read_escape(td_json *json, char **to) {
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    char c = json->at < json->end ? *json->at : 0;
    const char *found = c ? strchr(letters, c) : NULL;
    if (c != 'u' && !found)
        return fail_at(json, "a wrong escape");
    json->at++;
    if (c == 'u')
        return read_code(json, to);
    *(*to)++ = meanings[found - letters];
    return TD_OK;
}

td_status td_json_read_string(td_json *json, const char **text, size_t *len) {
    if (td_json_peek(json) != TD_JSON_STRING)
        return fail_at(json, "a string expected");
    char *first = ++json->at, *to = first;
    while (json->at < json->end && *json->at != '"') {
        if (*json->at == '\\') {
            json->at++;
            td_status status = read_escape(json, &to);
            if (status)
                return status;
            continue;
        }
        size_t n = td_utf8_length(json->at, json->end);
        if (n == 0 || (unsigned char)*json->at < 0x20)
            return fail_at(json, n ? "a control character in a string" : "invalid UTF-8");
        memmove(to, json->at, n);
        to += n;
        json->at += n;
    }
    if (json->at == json->end)
        return fail_at(json, "a string without end");
    json->at++;
    *text = first;
    *len = (size_t)(to - first);
    return TD_OK;
}

/* ---- numbers and words ---- */

static bool skip_digits(char **at) {
    char *first = *at;
    while (td_is_digit(**at))
        ++*at;
    return *at > first;
}

/* Behind the number at `at`, as the grammar has it; NULL where none is. The text ends with NUL. */
static char *skip_number(char *at, bool *is_int) {
    at += *at == '-';
    char *first = at;
    if (!skip_digits(&at) || (*first == '0' && at > first + 1))
        return NULL;
    *is_int = *at != '.' && *at != 'e' && *at != 'E';
    if (*at == '.' && (at++, !skip_digits(&at)))
        return NULL;
    if (*at == 'e' || *at == 'E') {
        at++;
        at += *at == '+' || *at == '-';
        return skip_digits(&at) ? at : NULL;
    }
    return at;
}

/* Digits behind the sign, all of them; false where int64 does not hold it. */
static bool read_int(const char *at, const char *end, int64_t *value) {
    bool negative = *at == '-', fits = true;
    *value = 0;
    for (at += negative; at < end && fits; at++)
        fits = !__builtin_mul_overflow(*value, (int64_t)10, value) &&
               !__builtin_add_overflow(*value, (int64_t)(negative ? '0' - *at : *at - '0'), value);
    return fits;
}

td_status td_json_read_number(td_json *json, td_json_number *number) {
    if (td_json_peek(json) != TD_JSON_NUMBER)
        return fail_at(json, "a number expected");
    char *end = skip_number(json->at, &number->is_int), *stop, behind;
    if (!end)
        return fail_at(json, "a wrong number");
    behind = *end;
    *end = 0; /* the C library would read on: it knows hexadecimals */
    number->d = td_number_read(json->at, &stop);
    *end = behind;
    if (number->is_int && !read_int(json->at, end, &number->i))
        return fail_at(json, "an integer beyond 64 bits");
    if (!isfinite(number->d))
        return fail_at(json, "a number beyond the range of floats");
    json->at = end;
    return TD_OK;
}

td_status td_json_read_word(td_json *json) {
    td_json_kind kind = td_json_peek(json);
    const char *word = kind == TD_JSON_TRUE    ? "true"
                       : kind == TD_JSON_FALSE ? "false"
                       : kind == TD_JSON_NULL  ? "null"
                                               : "";
    size_t len = strlen(word);
    if (len == 0 || (size_t)(json->end - json->at) < len || memcmp(json->at, word, len) != 0)
        return fail_at(json, "a value expected");
    json->at += len;
    return TD_OK;
}

static td_status skip_list(td_json *json, td_json_kind kind) {
    const char *key;
    size_t len;
    bool more;
    td_status status = TD_OK;
    TD_TRY(td_json_open(json, kind));
    for (;;) {
        TD_TRY(td_json_next(json, kind, &more));
        if (!more)
            break;
        if (kind == TD_JSON_OBJECT)
            TD_TRY(td_json_read_key(json, &key, &len));
        TD_TRY(td_json_skip(json));
    }
done:
    return status;
}

td_status td_json_skip(td_json *json) {
    td_json_kind kind = td_json_peek(json);
    td_json_number number;
    const char *text;
    size_t len;
    if (kind == TD_JSON_OBJECT || kind == TD_JSON_ARRAY)
        return skip_list(json, kind);
    if (kind == TD_JSON_STRING)
        return td_json_read_string(json, &text, &len);
    return kind == TD_JSON_NUMBER ? td_json_read_number(json, &number) : td_json_read_word(json);
}

td_status td_json_finish(td_json *json) {
    skip_space(json);
    return json->at == json->end ? TD_OK : fail_at(json, "something behind the end");
}

/* ---- writing ---- */

/* What stands for the character of n bytes (0: one byte that is no UTF-8); NULL: itself. */
static const char *escape_of(const char *s, size_t n, const char *end, char buffer[8]) {
    unsigned char c = (unsigned char)*s;
    if (n == 0)
        return "\\ufffd";
    if (c == '"' || c == '\\' || c == '\n' || c == '\r' || c == '\t') {
        buffer[0] = '\\';
        buffer[1] = c == '\n' ? 'n' : c == '\r' ? 'r' : c == '\t' ? 't' : (char)c;
        buffer[2] = 0;
        return buffer;
    }
    if (c == '<' && end - s > 1 && s[1] == '/')
        return "<\\"; /* and the slash, which may be escaped */
    if (c >= ' ' && c != 0x7F && !(c == '<' && end - s > 1 && s[1] == '!'))
        return NULL;
    snprintf(buffer, 8, "\\u%04x", c);
    return buffer;
}

void td_json_quote(td_json_put put, void *to, const char *text, size_t len) {
    const char *end = text + len, *from = text;
    char buffer[8];
    put(to, "\"", 1);
    for (size_t n; text < end; text += n ? n : 1) {
        n = td_utf8_length(text, end);
        const char *escape = escape_of(text, n, end, buffer);
        if (!escape)
            continue;
        put(to, from, (size_t)(text - from));
        put(to, escape, strlen(escape));
        from = text + 1;
    }
    put(to, from, (size_t)(end - from));
    put(to, "\"", 1);
}

static void put_file(void *to, const char *bytes, size_t n) {
    fwrite(bytes, 1, n, to);
}

void td_json_print(FILE *file, const char *text) {
    td_json_quote(put_file, file, text, strlen(text));
}
