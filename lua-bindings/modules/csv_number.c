/* csv_number.c: numbers of text files; see csv_number.h. Integers never go through a double. */
#include "lua-bindings/modules/csv_number.h"

#include "engine/core/number.h"

#include <math.h>
#include <string.h>

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
static tide_csv_problem read_decimal(const char *at, const char *end, uint64_t *magnitude) {
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
        return TIDE_CSV_NO_NUMBER;
    int64_t power = zeros - places + exponent;
    *magnitude = m;
    if (fits && m && power < 0)
        return TIDE_CSV_NO_INTEGER;
    return fits && scale(magnitude, power) ? TIDE_CSV_OK : TIDE_CSV_BEYOND;
}

static int hex_digit(char c) {
    c |= 0x20;
    return td_is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static tide_csv_problem read_hex(const char *at, const char *end, uint64_t *magnitude) {
    tide_csv_problem problem = at < end ? TIDE_CSV_OK : TIDE_CSV_NO_NUMBER;
    for (*magnitude = 0; at < end; at++) {
        if (hex_digit(*at) < 0)
            return TIDE_CSV_NO_NUMBER;
        if (*magnitude >> 60)
            problem = TIDE_CSV_BEYOND;
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
static tide_csv_problem read_float(td_dtype dtype, char *at, char *end, double *value) {
    char *stop, *first = at + (at < end && (*at == '-' || *at == '+')), behind = *end;
    if (read_small(at, end, value))
        return TIDE_CSV_OK;
    if (first == end || td_is_space(*first) || memchr(first, '(', (size_t)(end - first)))
        return TIDE_CSV_NO_NUMBER;
    *end = 0;
    *value = dtype == TD_F32 ? (double)td_number_read_single(at, &stop) : td_number_read(at, &stop);
    *end = behind;
    if (stop != end)
        return TIDE_CSV_NO_NUMBER;
    return isinf(*value) && (td_is_digit(*first) || *first == '.') ? TIDE_CSV_BEYOND : TIDE_CSV_OK;
}

/* Any number, at most of so many bits: what is no integer, or lies beyond the dtype. */
static tide_csv_problem read_int(td_dtype dtype, char *at, char *end, int64_t *value) {
    bool negative = at < end && *at == '-';
    char *first = at + (negative || (at < end && *at == '+'));
    uint64_t m = 0,
             most = dtype == TD_U8 ? UINT8_MAX : INT64_MAX >> (64 - 8 * td_dtype_size(dtype));
    uint64_t least = dtype == TD_U8 ? 0 : most + 1;
    double ignored;
    tide_csv_problem problem =
        is_hex(first, end) ? read_hex(first + 2, end, &m) : read_decimal(first, end, &m);
    if (problem == TIDE_CSV_NO_NUMBER) /* nan, inf and the fractions of hexadecimals are numbers */
        return read_float(TD_F64, at, end, &ignored) ? TIDE_CSV_NO_NUMBER : TIDE_CSV_NO_INTEGER;
    if (problem == TIDE_CSV_OK && m > (negative ? least : most))
        problem = TIDE_CSV_BEYOND;
    *value = (int64_t)(negative ? -m : m);
    return problem;
}

tide_csv_problem tide_csv_store(td_dtype dtype, char *at, char *end, void *to) {
    tide_csv_problem problem;
    if (td_dtype_is_int(dtype)) {
        int64_t value = 0;
        problem = read_int(dtype, at, end, &value);
        td_store_int(dtype, to, value);
        return problem;
    }
    double value = 0;
    problem = read_float(dtype, at, end, &value);
    td_store_double(dtype, to, value);
    if (problem == TIDE_CSV_OK && isfinite(value) && isinf(td_load_double(dtype, to)))
        problem = TIDE_CSV_BEYOND;
    return problem;
}
