/* status.c: the thread's last error. */
#include "engine/core/number.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* On the heap, for threads that ever failed: what a library keeps for each thread in its own
 * storage is taken from a small room that all libraries of a process share. */
typedef struct error_text {
    int prefix; /* length of the prefix that the message begins with */
    char message[768];
} error_text;

static _Thread_local td_status error_code;
/* NULL: nothing failed yet, or there is no room for a message. */
static _Thread_local error_text *error;
static pthread_key_t exit_key;
static pthread_once_t exit_once = PTHREAD_ONCE_INIT;
static bool keyed;

static void drop_error(void *unused) {
    (void)unused;
    free(error);
    error = NULL;
}

static void make_exit_key(void) {
    keyed = pthread_key_create(&exit_key, drop_error) == 0;
}

/* malloc itself: a failure that a test asked for is another request's. */
static bool has_text(void) {
    if (error)
        return true;
    pthread_once(&exit_once, make_exit_key);
    error_text *made = keyed ? malloc(sizeof *made) : NULL;
    if (made && pthread_setspecific(exit_key, made)) {
        free(made);
        made = NULL;
    }
    error = made;
    return made != NULL;
}

/* The sign of a NaN means nothing, and is another one on another processor, or in another loop. */
static void drop_signs_of_nan(char *text) {
    for (char *at = text; (at = strstr(at, "-nan")); at++) {
        char before = at > text ? at[-1] : ' ';
        if (!td_is_word(before) && strchr(" ,;:)]}'", at[4])) /* or the end */
            memmove(at, at + 1, strlen(at));
    }
}

td_status td_fail(td_status code, const char *format, ...) {
    if (TD_UNLIKELY(!has_text()))
        return error_code = TD_ENOMEM;
    va_list args;
    va_start(args, format);
    td_number_vprint(error->message, sizeof error->message, format, args);
    va_end(args);
    /* One line, whatever names and texts are in it. */
    for (char *at = error->message; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 127)
            *at = '?';
    drop_signs_of_nan(error->message);
    error->prefix = 0;
    return error_code = code;
}

td_status td_error_code(void) {
    return error_code;
}

const char *td_error_message(void) {
    if (error)
        return error->message;
    return error_code ? td_status_text(error_code) : "";
}

static void put_prefix(const char *prefix, const char *message) {
    char whole[sizeof error->message];
    int n = snprintf(whole, sizeof whole / 2, "%s: ", prefix);
    if (n >= (int)sizeof whole / 2)
        n = (int)sizeof whole / 2 - 1;
    snprintf(whole + n, sizeof whole - (size_t)n, "%s", message);
    memcpy(error->message, whole, sizeof whole);
    error->prefix = n;
}

void td_error_prefix(const char *prefix) {
    if (error && !error->prefix)
        put_prefix(prefix, error->message);
}

void td_error_rename(const char *prefix) {
    char rest[sizeof error->message];
    if (!error)
        return;
    snprintf(rest, sizeof rest, "%s", error->message + error->prefix);
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
