/* test_session_errors.c: what errors tell: where, what was meant, what Lua writes. */
#include "repl/session/session.h"

#include "tests/check.h"

#include <stdlib.h>

static char caught[4096];

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

/* The traceback as one text. */
static const char *traceback(void) {
    static char text[16384];
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < r.n_traceback && used < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s\n", r.traceback[i]);
    return text;
}

TEST(tracebacks_show_the_line_and_the_place) {
    value("local function inner(t)\n  return t.a.b\nend\nlocal n = 'ä' .. inner({})");
    CHECK_CONTAINS(traceback(), "in local 'inner'\n    return t.a.b\n             ^\n");
    CHECK_CONTAINS(traceback(),
                   "in main chunk\n    local n = 'ä' .. inner({})\n                     ^\n");
    value("x = tide.ones(2) + tide.ones(3)");
    CHECK_CONTAINS(traceback(), "in main chunk\n    x = tide.ones(2) + tide.ones(3)\n"
                                "                     ^\n");
    value("inner(inner({a = {}}))"); /* which of the two is not known */
    CHECK_CONTAINS(traceback(), "in main chunk\n    inner(inner({a = {}}))\n");
    CHECK(!strstr(traceback(), "({a = {}}))\n    ^"));
    value("local function deeper(n)\n  return 1 + deeper(n)\nend\ndeeper(1)");
    CHECK_CONTAINS(traceback(), "(skipping ");
}

int main(void) {
    tide_frontend frontend = {.write = catch_output};
    s = tide_session_new(&frontend);
    if (!s)
        return 1;
    RUN(tracebacks_show_the_line_and_the_place);
    tide_result_clear(&r);
    tide_session_free(s);
    return check_finish();
}
