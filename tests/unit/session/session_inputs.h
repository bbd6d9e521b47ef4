/* session_inputs.h: inputs to a session, what they give and what they print. Included once by each
 * test program, which makes the session with catch_output as its front end's `write`. */
#ifndef TIDE_TESTS_SESSION_INPUTS_H
#define TIDE_TESTS_SESSION_INPUTS_H

#include "repl/session/session.h"

#include <string.h>

static char caught[16384];

static void catch_output(void *ctx, tide_stream stream, const char *bytes, size_t len) {
    size_t used = strlen(caught);
    (void)ctx, (void)stream;
    if (used + len < sizeof caught) {
        memcpy(caught + used, bytes, len);
        caught[used + len] = '\0';
    }
}

static tide_session *s;
static tide_result r;

/* text/plain of the value of code; the error's text; "" where there is neither. */
static const char *value(const char *code) {
    tide_result_clear(&r);
    caught[0] = '\0';
    tide_session_eval(s, code, strlen(code), false, &r);
    if (r.outcome != TIDE_OK)
        return r.evalue;
    return r.value.n ? r.value.entries[0].data : "";
}

#endif
