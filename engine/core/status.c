/* status.c: the thread's last error. */
#include "engine/core/number.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct error_state {
    td_status code;
    int prefix; /* length of the prefix that the message begins with */
    char message[768];
} error_state;

static _Thread_local error_state error;

td_status td_fail(td_status code, const char *format, ...) {
    va_list args;
    va_start(args, format);
    td_number_vprint(error.message, sizeof error.message, format, args);
    va_end(args);
    /* One line, whatever names and texts are in it. */
    for (char *at = error.message; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 127)
            *at = '?';
    error.code = code;
    error.prefix = 0;
    return code;
}

td_status td_error_code(void) {
    return error.code;
}

const char *td_error_message(void) {
    return error.message;
}

static void put_prefix(const char *prefix, const char *message) {
    char whole[sizeof error.message];
    int n = snprintf(whole, sizeof whole / 2, "%s: ", prefix);
    if (n >= (int)sizeof whole / 2)
        n = (int)sizeof whole / 2 - 1;
    snprintf(whole + n, sizeof whole - (size_t)n, "%s", message);
    memcpy(error.message, whole, sizeof whole);
    error.prefix = n;
}

void td_error_prefix(const char *prefix) {
    if (!error.prefix)
        put_prefix(prefix, error.message);
}

void td_error_rename(const char *prefix) {
    char rest[sizeof error.message];
    snprintf(rest, sizeof rest, "%s", error.message + error.prefix);
    put_prefix(prefix, rest);
}

const char *td_status_text(td_status code) {
    static const char *const texts[] = {
#define TEXT(name, text) [TD_##name] = text,
        TD_STATUS_TABLE(TEXT)
#undef TEXT
    };
    return (size_t)code < sizeof texts / sizeof *texts ? texts[code] : "unknown status";
}
