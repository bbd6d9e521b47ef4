/* warn.c: hands warnings to the one who listens. */
#include "engine/core/warn.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

static _Atomic(td_warn_fn) listener;

void td_set_warn(td_warn_fn fn) {
    atomic_store(&listener, fn);
}

void td_warn(const char *format, ...) {
    td_warn_fn fn = atomic_load(&listener);
    char line[400];
    va_list args;
    if (!fn)
        return;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    fn(line);
}
