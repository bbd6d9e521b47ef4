/* answers.c: see answers.h. Nothing of the user's runs for them. */
#include "repl/answers.h"

#include <stdlib.h>
#include <string.h>

static bool is_whole(void *ctx, const char *code, size_t len) {
    return tide_session_is_complete(ctx, code, len, NULL, 0) != TIDE_INCOMPLETE;
}

/* The session's lists become the editor's, string by string. */
static void complete(void *ctx, const char *code, size_t len, size_t cursor, edit_choices *out) {
    tide_completions c;
    tide_session_complete(ctx, code, len, cursor, &c);
    out->items = c.n > 0 ? calloc((size_t)c.n, sizeof *out->items) : NULL;
    out->start = c.start;
    out->end = c.end;
    for (; out->items && out->n < c.n; out->n++) {
        out->items[out->n] = (edit_choice){.text = c.matches[out->n], .kind = c.types[out->n]};
        c.matches[out->n] = c.types[out->n] = NULL;
    }
    tide_completions_clear(&c);
}

static char *note(void *ctx, const char *code, size_t len, size_t cursor) {
    return tide_session_hint(ctx, code, len, cursor, false);
}

static char *signature(void *ctx, const char *code, size_t len, size_t cursor) {
    return tide_session_hint(ctx, code, len, cursor, true);
}

edit_host answers_host(tide_session *s) {
    return (edit_host){s, is_whole, complete, note, signature};
}
