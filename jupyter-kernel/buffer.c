/* buffer.c: see buffer.h. */
#include "jupyter-kernel/buffer.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

bool tk_buffer_add(tk_buffer *buffer, const void *bytes, size_t len) {
    if (len == 0)
        return true;
    if (len > SIZE_MAX / 2 - buffer->len)
        return false;
    size_t need = buffer->len + len;
    if (need > buffer->capacity) {
        size_t capacity = buffer->capacity ? buffer->capacity : 256;
        while (capacity < need)
            capacity *= 2;
        char *data = realloc(buffer->data, capacity);
        if (!data)
            return false;
        buffer->data = data;
        buffer->capacity = capacity;
    }
    memcpy(buffer->data + buffer->len, bytes, len);
    buffer->len = need;
    return true;
}

void tk_buffer_clear(tk_buffer *buffer) {
    free(buffer->data);
    *buffer = (tk_buffer){0};
}
