/* lenient.c: see lenient.h. The second text is made in one pass over tokens; what is no JSON in it
 * is left as it is, for the parser to refuse. */
#include "jupyter-kernel/lenient.h"

#include <stdio.h>
#include <string.h>

static const char replacement[] = "\\uFFFD", largest[] = "1.7976931348623157e308";

typedef struct rewriter {
    const char *at, *end;
    tk_buffer out;
    bool no_memory;
} rewriter;

static void add(rewriter *w, const char *bytes, size_t len) {
    w->no_memory |= !tk_buffer_add(&w->out, bytes, len);
}

static bool begins_with(const rewriter *w, const char *word) {
    size_t len = strlen(word);
    return (size_t)(w->end - w->at) >= len && memcmp(w->at, word, len) == 0;
}

/* ---- texts ---- */

static int hex_digit(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* The unit that "\uXXXX" at `at` stands for, -1: there is none. */
static int unit(const char *at, const char *end) {
    int value = 0;
    if (end - at < 6 || at[0] != '\\' || at[1] != 'u')
        return -1;
    for (int i = 2; i < 6; i++) {
        int digit = hex_digit(at[i]);
        if (digit < 0)
            return -1;
        value = value << 4 | digit;
    }
    return value;
}

static bool is_high(int value) {
    return value >= 0xD800 && value <= 0xDBFF;
}

static bool is_low(int value) {
    return value >= 0xDC00 && value <= 0xDFFF;
}

/* Behind the quote that ends the text which begins at `at`; `end` when none does. */
static const char *end_of_text(const char *at, const char *end) {
    for (at++; at < end && *at != '"'; at++)
        if (*at == '\\' && at + 1 < end)
            at++;
    return at < end ? at + 1 : end;
}

static bool is_key(const char *behind, const char *end) {
    while (behind < end && strchr(" \t\r\n", *behind) && *behind)
        behind++;
    return behind < end && *behind == ':';
}

static void add_text(rewriter *w) {
    const char *end = end_of_text(w->at, w->end);
    bool key = is_key(end, w->end);
    while (w->at < end) {
        int first = unit(w->at, end);
        if (first < 0) { /* a byte, or an escape of two */
            size_t len = *w->at == '\\' && end - w->at > 1 ? 2 : 1;
            add(w, w->at, len);
            w->at += len;
            continue;
        }
        bool pair = is_high(first) && is_low(unit(w->at + 6, end));
        bool bad = !pair && (is_high(first) || is_low(first) || (first == 0 && key));
        size_t len = pair ? 12 : 6;
        add(w, bad ? replacement : w->at, len);
        w->at += len;
    }
}

/* ---- numbers ---- */

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool digit_at(const char *at, const char *end) {
    return at < end && is_digit(*at);
}

/* A number taken apart: what decides whether C has one like it. */
typedef struct number {
    bool negative, integral, malformed;
    char digits[20]; /* the first significant ones */
    int n_digits;    /* all significant ones of an integer, capped */
    long exponent;   /* of the first significant digit */
} number;

/* Reads digits; `behind` the point they lower the exponent while all are 0. */
static const char *read_digits(const char *at, const char *end, number *n, bool behind) {
    for (; at < end && is_digit(*at); at++) {
        bool significant = n->n_digits > 0 || *at != '0';
        if (significant && n->n_digits < (int)sizeof n->digits)
            n->digits[n->n_digits] = *at;
        if (significant && n->n_digits < 1000000)
            n->n_digits++;
        if (behind)
            n->exponent -= !significant;
        else
            n->exponent += significant;
    }
    return at;
}

static const char *read_exponent(const char *at, const char *end, number *n) {
    long value = 0;
    bool negative = at < end && *at == '-';
    if (at < end && (*at == '-' || *at == '+'))
        at++;
    n->malformed |= !digit_at(at, end);
    for (; at < end && is_digit(*at); at++)
        if (value < 1000000000)
            value = 10 * value + (*at - '0');
    n->exponent += negative ? -value : value;
    return at;
}

static const char *read_number(const char *at, const char *end, number *n) {
    *n = (number){.negative = *at == '-', .integral = true, .exponent = -1};
    at += n->negative;
    n->malformed = !digit_at(at, end) || (*at == '0' && digit_at(at + 1, end));
    at = read_digits(at, end, n, false);
    if (at < end && *at == '.') {
        n->integral = false;
        n->malformed |= !digit_at(at + 1, end);
        at = read_digits(at + 1, end, n, true);
    }
    if (at < end && (*at == 'e' || *at == 'E')) {
        n->integral = false;
        at = read_exponent(at + 1, end, n);
    }
    return at;
}

static bool beyond_double(const number *n) {
    static const char most[] = "17976931348623157";
    char digits[sizeof most] = "00000000000000000";
    int have = n->n_digits < 17 ? n->n_digits : 17;
    memcpy(digits, n->digits, (size_t)have);
    return n->n_digits > 0 &&
           (n->exponent > 308 || (n->exponent == 308 && memcmp(digits, most, 17) > 0));
}

static bool beyond_integer(const number *n) {
    const char *most = n->negative ? "9223372036854775808" : "9223372036854775807";
    return n->n_digits > 19 || (n->n_digits == 19 && memcmp(n->digits, most, 19) > 0);
}

static void add_number(rewriter *w) {
    number n;
    const char *start = w->at;
    w->at = read_number(start, w->end, &n);
    if (!n.malformed && beyond_double(&n)) {
        add(w, "-", n.negative);
        add(w, largest, sizeof largest - 1);
        return;
    }
    add(w, start, (size_t)(w->at - start));
    if (n.integral && beyond_integer(&n))
        add(w, ".0", 2);
}

/* ---- the whole ---- */

/* Takes a word that is no JSON; false: there is none here. */
static bool skip_no_number(rewriter *w) {
    static const char *const words[] = {"NaN", "Infinity", "-Infinity"};
    for (int i = 0; i < 3; i++)
        if (begins_with(w, words[i])) {
            w->at += strlen(words[i]);
            add(w, "null", 4);
            return true;
        }
    return false;
}

static void rewrite(rewriter *w) {
    while (w->at < w->end && !w->no_memory) {
        if (*w->at == '"')
            add_text(w);
        else if (skip_no_number(w))
            continue;
        else if (*w->at == '-' || is_digit(*w->at))
            add_number(w);
        else
            add(w, w->at++, 1);
    }
}

static json_t *load(const char *text, size_t len, json_error_t *error) {
    return json_loadb(text, len, JSON_ALLOW_NUL, error);
}

json_t *tk_json_read_object(const char *text, size_t len, char problem[TK_PROBLEM_SIZE]) {
    json_error_t error = {0};
    rewriter w = {.at = text, .end = text + len};
    problem[0] = '\0';
    json_t *value = load(text, len, &error);
    if (!value && json_error_code(&error) == json_error_out_of_memory)
        value = load(text, len, &error); /* memory may be there again: whoever asked waits */
    else if (!value) {
        rewrite(&w);
        json_error_t other;
        if (!w.no_memory)
            value = load(w.out.data ? w.out.data : "", w.out.len, &other);
    }
    tk_buffer_clear(&w.out);
    if (json_is_object(value))
        return value;
    if (value)
        snprintf(problem, TK_PROBLEM_SIZE, "it is no object");
    else if (w.no_memory || json_error_code(&error) == json_error_out_of_memory)
        snprintf(problem, TK_PROBLEM_SIZE, "out of memory");
    else
        snprintf(problem, TK_PROBLEM_SIZE, "byte %d: %s", error.position, error.text);
    json_decref(value);
    return NULL;
}
