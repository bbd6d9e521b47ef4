/* buffer.h: bytes that grow at their end. Knows nothing of what they mean. */
#ifndef TIDE_KERNEL_BUFFER_H
#define TIDE_KERNEL_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

/* All zero is an empty buffer; `data` is owned, NULL while nothing was ever added. */
typedef struct tk_buffer {
    char *data;
    size_t len, capacity;
} tk_buffer;

/* Appends. False when memory is out; the buffer is then as it was. */
bool tk_buffer_add(tk_buffer *buffer, const void *bytes, size_t len)
    __attribute__((warn_unused_result));

/* Frees the bytes and leaves an empty buffer. */
void tk_buffer_clear(tk_buffer *buffer);

#endif
