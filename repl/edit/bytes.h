/* bytes.h: text that grows. Running out of memory leaves it as it was. */
#ifndef TIDE_EDIT_BYTES_H
#define TIDE_EDIT_BYTES_H

#include <stdbool.h>
#include <stddef.h>

/* `at` is NULL while nothing was ever put in. There is no NUL behind it. */
typedef struct bytes {
    char *at;
    size_t len, room;
} bytes;

/* Put n bytes in at `place`, or at the end. False: memory is out. */
bool bytes_insert(bytes *b, size_t place, const char *text, size_t n);
bool bytes_add(bytes *b, const char *text, size_t n);
bool bytes_add_text(bytes *b, const char *text);
bool bytes_add_format(bytes *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
void bytes_remove(bytes *b, size_t place, size_t n);
/* Makes it the n bytes of text, which may not be its own; `at` is no NULL then. */
bool bytes_set(bytes *b, const char *text, size_t n);
void bytes_clear(bytes *b);

#endif
