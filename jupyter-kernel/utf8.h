/* utf8.h: UTF-8 at the kernel's edges: cursors in code points, and output cut or broken anywhere.
 *
 * JSON can carry only valid UTF-8, while a program may write any bytes and a pipe may cut a
 * character in two. Knows nothing of JSON or of sockets. */
#ifndef TIDE_KERNEL_UTF8_H
#define TIDE_KERNEL_UTF8_H

#include "jupyter-kernel/buffer.h"

/* Byte offset of code point number `point` (from 0) in valid UTF-8; `len` when it lies beyond. */
size_t tk_utf8_offset(const char *text, size_t len, size_t point);

/* Number of code points that begin in the first `offset` bytes of valid UTF-8. */
size_t tk_utf8_points(const char *text, size_t len, size_t offset);

/* The beginning of a character whose end has not come yet. All zero: none. */
typedef struct tk_utf8_rest {
    unsigned char bytes[4];
    unsigned n;
} tk_utf8_rest;

/* Appends `bytes`, after what `rest` holds, to `out` as valid UTF-8: each maximal broken sequence
 * becomes one U+FFFD, and an unfinished character at the end waits in `rest`. False when memory is
 * out; the bytes not appended are then lost. */
bool tk_utf8_repair(tk_utf8_rest *rest, const char *bytes, size_t len, tk_buffer *out)
    __attribute__((warn_unused_result));

/* No more bytes will come: an unfinished character becomes U+FFFD. */
bool tk_utf8_finish(tk_utf8_rest *rest, tk_buffer *out) __attribute__((warn_unused_result));

#endif
