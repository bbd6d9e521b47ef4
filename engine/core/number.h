/* number.h: numbers as text and back, and kinds of letters, the same in every locale: a program may
 * call setlocale at any time, and a comma is no point. Nothing else of the house may ask the C
 * library to read or write a fraction. */
#ifndef TD_CORE_NUMBER_H
#define TD_CORE_NUMBER_H

#include "engine/core/status.h"

#include <stdarg.h>

/* strtod and strtof with a point. */
double td_number_read(const char *text, char **end);
float td_number_read_single(const char *text, char **end);

/* The double nearest to m * 10^power, ties to even; false where the power is beyond those that it
 * knows, or the result no normal number: td_number_read knows then. */
bool td_number_scale(uint64_t m, int64_t power, double *value);

/* The integer that decimal digits write (a sign may stand before them); where it goes on beyond
 * int64, the nearest one. *end is behind the last digit, `text` itself when there is none. */
int64_t td_number_read_int(const char *text, const char **end);

/* snprintf and vsnprintf with a point. */
int td_number_print(char *buffer, size_t size, const char *format, ...) TD_PRINTF(3, 4);
int td_number_vprint(char *buffer, size_t size, const char *format, va_list args) TD_PRINTF(3, 0);

static inline bool td_is_digit(char c) {
    return c >= '0' && c <= '9';
}
static inline bool td_is_capital(char c) {
    return c >= 'A' && c <= 'Z';
}
/* Of a name: an ASCII letter, a digit or _. */
static inline bool td_is_word(char c) {
    return td_is_digit(c) || td_is_capital(c) || (c >= 'a' && c <= 'z') || c == '_';
}
static inline bool td_is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

#endif
