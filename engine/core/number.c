/* number.c: see number.h. The calling thread is in the "C" locale for as long as one call lasts. */
#include "engine/core/number.h"

#include <locale.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static _Atomic(locale_t) made;

/* Makes "C" this thread's locale; what it was before. glibc has this locale ready: nothing is
 * allocated. */
static locale_t enter(void) {
    locale_t plain = atomic_load_explicit(&made, memory_order_acquire);
    if (!plain) {
        plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
        atomic_store_explicit(&made, plain, memory_order_release);
    }
    return uselocale(plain);
}

double td_number_read(const char *text, char **end) {
    locale_t before = enter();
    double value = strtod(text, end);
    uselocale(before);
    return value;
}

float td_number_read_single(const char *text, char **end) {
    locale_t before = enter();
    float value = strtof(text, end);
    uselocale(before);
    return value;
}

int64_t td_number_read_int(const char *text, const char **end) {
    const char *at = text;
    bool negative = *at == '-';
    int64_t value = 0;
    at += negative || *at == '+';
    *end = td_is_digit(*at) ? at : text;
    for (; td_is_digit(*at); *end = ++at) {
        int digit = *at - '0';
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_sub_overflow(value, digit, &value))
            value = INT64_MIN; /* built up as a negative number, of which there is one more */
    }
    return negative ? value : value == INT64_MIN ? INT64_MAX : -value;
}

int td_number_vprint(char *buffer, size_t size, const char *format, va_list args) {
    locale_t before = enter();
    int n = vsnprintf(buffer, size, format, args);
    uselocale(before);
    return n;
}

int td_number_print(char *buffer, size_t size, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = td_number_vprint(buffer, size, format, args);
    va_end(args);
    return n;
}
