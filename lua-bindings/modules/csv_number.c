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

/* ---- decimals: the first digits and a power of ten ---- */

typedef struct decimal {
    uint64_t digits; /* the first DIGITS of them, leading zeros left out */
    int64_t power;   /* of ten, which they are multiplied with */
    int64_t seen;    /* digits, with leading zeros and those that `digits` has no room for */
    int kept;
    bool negative, cut; /* cut: digits other than 0 were left out */
    bool whole;         /* neither a mark nor an exponent */
} decimal;

enum { DIGITS = 19 }; /* any number of so many digits is one of uint64_t */

static const uint64_t tens[9] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};

/* The number of eight digits, the first in the lowest byte. */
static uint64_t join_digits(uint64_t eight) {
    eight = eight * 10 + (eight >> 8);
    return ((eight & 0x000000FF000000FF) * 0x000F424000000064 +
            (eight >> 16 & 0x000000FF000000FF) * 0x0000271000000001) >>
           32;
}

/* Up to eight digits at once that stand at `at`: how many, behind those of *digits. */
static inline __attribute__((always_inline)) int read_some_digits(const char *at, const char *end,
                                                                  uint64_t *digits) {
    uint64_t eight, high = 0x8080808080808080;
    if (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__)
        return 0;
    memcpy(&eight, at, TIDE_CSV_BEHIND);
    eight ^= 0x3030303030303030;
    uint64_t others = (((eight & ~high) + 0x7676767676767676) | eight) & high;
    int n = others ? __builtin_ctzll(others) / 8 : 8;
    n = end - at < n ? (int)(end - at) : n;
    if (n == 0)
        return 0;
    *digits = *digits * tens[n] + join_digits(eight << (8 * (8 - n)));
    return n;
}

/* [-]DIGITS[.DIGITS], as most numbers are written, where `digits` holds all of it. False: it is
 * something else. */
static inline __attribute__((always_inline)) bool read_usual(const char *at, const char *end,
                                                             char mark, decimal *d) {
    const char *first = at, *point;
    uint64_t digits = 0;
    bool negative = at < end && *at == '-';
    at += negative;
    if (end - at > DIGITS + 1)
        return false;
    int n = read_some_digits(at, end, &digits);
    for (at += n; n == 8; at += n)
        n = read_some_digits(at, end, &digits);
    int64_t whole = at - first - negative;
    point = at;
    if (at < end && *at == mark)
        for (at++, n = 8; n == 8; at += n)
            n = read_some_digits(at, end, &digits);
    int64_t fraction = at > point ? at - point - 1 : 0;
    if (at != end || whole + fraction == 0 || whole + fraction > DIGITS)
        return false;
    *d = (decimal){digits, -fraction, whole + fraction, DIGITS, negative, false, at == point};
    return true;
}

static const char *read_digits(const char *at, const char *end, decimal *d) {
    const char *from = at;
    for (int n = 8; n == 8 && d->kept <= DIGITS - 8; at += n) {
        n = read_some_digits(at, end, &d->digits);
        d->kept += d->digits ? n : 0;
    }
    for (; at < end && td_is_digit(*at); at++) {
        if (d->kept == DIGITS) {
            d->cut |= *at != '0';
            d->power++;
            continue;
        }
        d->digits = d->digits * 10 + (uint64_t)(*at - '0');
        d->kept += d->digits != 0;
    }
    d->seen += at - from;
    return at;
}

/* A whole cell; false: it is no decimal. */
static bool read_digits_and_power(const char *at, const char *end, char mark, decimal *d) {
    int64_t exponent = 0;
    if (read_usual(at, end, mark, d))
        return true;
    *d = (decimal){.negative = at < end && *at == '-', .whole = true};
    at = read_digits(at + (at < end && (*at == '-' || *at == '+')), end, d);
    if (at < end && *at == mark) {
        const char *first = at + 1;
        d->whole = false;
        at = read_digits(first, end, d);
        d->power -= at - first;
    }
    if (d->seen && at < end && (*at == 'e' || *at == 'E')) {
        d->whole = false;
        at = read_exponent(at, end, &exponent);
        d->power += exponent;
    }
    return d->seen && at == end;
}

static bool to_double(const decimal *d, double *value) {
    double above;
    if (!td_number_scale(d->digits, d->power, value) ||
        (d->cut && !(td_number_scale(d->digits + 1, d->power, &above) && above == *value)))
        return false;
    *value = d->negative ? -*value : *value;
    return true;
}

/* By the C library, which knows no delimiters: `end` holds a NUL meanwhile, and a mark is a point.
 */
static bool read_by_library(char *at, char *end, char mark, double *value) {
    char *stop, *first = at + (at < end && (*at == '-' || *at == '+')), behind = *end;
    char *point = mark == '.' ? NULL : memchr(at, mark, (size_t)(end - at));
    if (first == end || td_is_space(*first) || memchr(first, '(', (size_t)(end - first)) ||
        (mark != '.' && memchr(first, '.', (size_t)(end - first))))
        return false;
    if (point)
        *point = '.';
    *end = 0;
    *value = td_number_read(at, &stop);
    *end = behind;
    if (point)
        *point = mark;
    return stop == end;
}

/* nan, inf, infinity: the only other numbers, which begin with a letter. */
static bool may_be_word(const char *at, const char *end) {
    at += at < end && (*at == '-' || *at == '+');
    char letter = at < end ? *at | 0x20 : 0;
    return end - at >= 3 && end - at <= 8 && (letter == 'n' || letter == 'i');
}

tide_csv_kind tide_csv_read(char *at, char *end, char mark, int64_t *whole, double *value) {
    decimal d;
    if (!read_digits_and_power(at, end, mark, &d))
        return may_be_word(at, end) && read_by_library(at, end, mark, value) ? TIDE_CSV_FLOAT
                                                                             : TIDE_CSV_TEXT;
    uint64_t most = (uint64_t)INT64_MAX + d.negative;
    if (d.whole && d.power == 0 && d.digits <= most) {
        *value = d.negative ? -(double)d.digits : (double)d.digits;
        *whole = (int64_t)(d.negative ? -d.digits : d.digits);
        return TIDE_CSV_INT;
    }
    if (!to_double(&d, value) && !read_by_library(at, end, mark, value))
        return TIDE_CSV_TEXT;
    return d.whole ? TIDE_CSV_WIDE : TIDE_CSV_FLOAT;
}

/* Does a double, the nearest to a number, say which float is the nearest? Not where it lies just
 * between two, or they are further apart than usual. */
static bool decides_float(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return value == 0 || ((bits & 0x1FFFFFFF) != 0x10000000 && fabs(value) >= 0x1p-126 &&
                          fabs(value) <= 0x1.fffffep127);
}

/* `end` holds a NUL for as long as the C library reads: it knows no delimiters. */
static tide_csv_problem read_float(td_dtype dtype, char *at, char *end, double *value) {
    char *stop, *first = at + (at < end && (*at == '-' || *at == '+')), behind = *end;
    decimal d;
    if (dtype != TD_F16 && dtype != TD_BF16 && read_digits_and_power(at, end, '.', &d) &&
        to_double(&d, value) && (dtype != TD_F32 || decides_float(*value)))
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
