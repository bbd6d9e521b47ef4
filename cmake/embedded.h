/* embedded.h: a text file carried inside a binary (see cmake/embed.cmake). */
#ifndef TIDE_EMBEDDED_H
#define TIDE_EMBEDDED_H

#include <stddef.h>

typedef struct tide_embedded {
    const char *name;  /* as tide_embed says; NULL ends a table */
    const char *bytes; /* NUL-terminated */
    size_t len;
} tide_embedded;

#endif
