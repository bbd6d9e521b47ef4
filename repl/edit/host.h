/* host.h: what an editor asks about the text it edits. Whoever opens it answers: the session at the
 * prompt, a few lines in a test. Any function may be NULL.
 */
#ifndef TIDE_EDIT_HOST_H
#define TIDE_EDIT_HOST_H

#include <stdbool.h>
#include <stddef.h>

/* What may stand at a place of the text; malloc'ed strings that belong to the choice. */
typedef struct edit_choice {
    char *text, *kind; /* the replacement; "function", "field", ... */
    char *note;        /* one line about it, NULL: not asked for yet */
} edit_choice;

typedef struct edit_choices {
    edit_choice *items;
    int n;
    size_t start, end; /* the bytes that a choice replaces */
} edit_choices;

typedef struct edit_host {
    void *ctx;
    /* Is the text a whole input, or one that no further line can mend? */
    bool (*is_whole)(void *ctx, const char *code, size_t len);
    /* What may stand at byte `cursor`; `out` is empty. */
    void (*complete)(void *ctx, const char *code, size_t len, size_t cursor, edit_choices *out);
    /* One line, malloc'ed, about the name that ends at the cursor; NULL: nothing is known. */
    char *(*note)(void *ctx, const char *code, size_t len, size_t cursor);
    /* The signature of the call that the cursor is within; as note. STX and ETX may stand around
     * the parameter that is being written. */
    char *(*signature)(void *ctx, const char *code, size_t len, size_t cursor);
} edit_host;

#endif
