/* object.h: an object file as bytes that run wherever they lie, and memory that runs. */
#ifndef TD_CPU_CODE_OBJECT_H
#define TD_CPU_CODE_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What an object file of one function and its constants holds, joined: no address is left to be
 * filled in. */
typedef struct td_object_image {
    unsigned char *bytes; /* td_free gives it back */
    size_t n, entry;      /* where the function begins */
} td_object_image;

/* NULL, or why the file (ELF, 64 bits) can't be joined: it calls others, or isn't whole. */
const char *td_object_join(const unsigned char *file, size_t n, const char *function,
                           td_object_image *image);

/* Pages that hold the bytes and can be run but not written; NULL: the system gives none. They stay
 * until the process ends. */
const unsigned char *td_object_map(const unsigned char *bytes, size_t n);

#endif
