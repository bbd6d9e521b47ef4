/* limits.c: the limits as variables, built with -DTIDE_LIMITS=variable alone. */
#include "engine/cpu/limits.h"

#include "engine/core/number.h"

#include <stdio.h>
#include <stdlib.h>

#define VALUE(name, value, ...) value,
#define NAME(name, ...)         #name,
int64_t td_limits[TD_LIMIT_COUNT] = {TD_CPU_LIMITS(VALUE)};
static const char *const names[TD_LIMIT_COUNT] = {TD_CPU_LIMITS(NAME)};

__attribute__((constructor)) static void read_limits(void) {
    for (int k = 0; k < TD_LIMIT_COUNT; k++) {
        char variable[80];
        const char *end, *text;
        snprintf(variable, sizeof variable, "TIDE_LIMIT_%s", names[k]);
        text = getenv(variable);
        int64_t value = text ? td_number_read_int(text, &end) : 0;
        if (text && end != text)
            td_limits[k] = value;
    }
}
