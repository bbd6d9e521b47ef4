/* bytes.c: see bytes.h. */
#include "repl/edit/bytes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool reserve(bytes *b, size_t more) {
    if (b->room - b->len >= more)
        return true;
    size_t room = b->room * 2 > b->len + more ? b->room * 2 : b->len + more + 64;
    char *grown = realloc(b->at, room);
    if (!grown)
        return false;
    b->at = grown;
    b->room = room;
    return true;
}

bool bytes_insert(bytes *b, size_t place, const char *text, size_t n) {
    if (n == 0)
        return true;
    if (!reserve(b, n))
        return false;
    memmove(b->at + place + n, b->at + place, b->len - place);
    memcpy(b->at + place, text, n);
    b->len += n;
    return true;
}

bool bytes_add(bytes *b, const char *text, size_t n) {
    return bytes_insert(b, b->len, text, n);
}

bool bytes_add_text(bytes *b, const char *text) {
    return bytes_add(b, text, strlen(text));
}

bool bytes_add_format(bytes *b, const char *format, ...) {
    char text[256];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    size_t len = n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;
    return bytes_add(b, text, len);
}

void bytes_remove(bytes *b, size_t place, size_t n) {
    if (n == 0)
        return;
    memmove(b->at + place, b->at + place + n, b->len - place - n);
    b->len -= n;
}

bool bytes_set(bytes *b, const char *text, size_t n) {
    if ((n > b->len || !b->at) && !reserve(b, n > b->len ? n - b->len : 1))
        return false;
    if (n > 0)
        memcpy(b->at, text, n);
    b->len = n;
    return true;
}

void bytes_clear(bytes *b) {
    free(b->at);
    *b = (bytes){0};
}
