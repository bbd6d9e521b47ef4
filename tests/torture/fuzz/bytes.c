/* bytes.c: see bytes.h. */
#include "tests/torture/fuzz/bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void bytes_broken(const char *file, int line, const char *what) {
    fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, what);
    abort();
}

char *bytes_text(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    HOLDS(text);
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

const char *bytes_file(const uint8_t *data, size_t size) {
    static int file = -1;
    static char path[64];
    if (file < 0)
        file = memfd_create("fuzz", MFD_CLOEXEC);
    HOLDS(file >= 0 && ftruncate(file, 0) == 0);
    HOLDS(pwrite(file, data, size, 0) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    return path;
}

uint8_t bytes_choice(const uint8_t **data, size_t *size) {
    if (*size == 0)
        return 0;
    (*size)--;
    return *(*data)++;
}
