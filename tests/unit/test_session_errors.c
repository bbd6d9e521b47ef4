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

TEST(misspelt_names_are_errors_that_name_the_nearest) {
    CHECK_CONTAINS(value("tide.zeros(2, {dtype = tide.flaot64})"),
                   "]:1: tide has no 'flaot64': did you mean 'float64'?");
    CHECK_CONTAINS(traceback(),
                   "tide.zeros(2, {dtype = tide.flaot64})\n                                ^\n");
    CHECK_CONTAINS(value("x = tide.nn.Linaer"), "tide.nn has no 'Linaer': did you mean 'Linear'?");
    CHECK_CONTAINS(value("x = tide.nn.functional.sofmax"), "did you mean 'softmax'?");
    CHECK_CONTAINS(value("x = tide.optim.lr_scheduler.StepRL"), "did you mean 'StepLR'?");
    CHECK_CONTAINS(value("x = tide.autograd.functional.jacobin"),
                   "tide.autograd.functional has no 'jacobin': did you mean 'jacobian'?");
    CHECK_CONTAINS(value("x = tide.Linear"), "tide has no 'Linear': there is tide.nn.Linear");
    CHECK_STR(strstr(value("x = tide.ones(2):einsum()"), "did you mean"), NULL);
    CHECK_STR(strstr(value("x = tide.cuda"), "did you mean"), NULL);
    CHECK_STR(value("tide._private == nil"), "true");
}

TEST(what_would_do_nothing_can_not_be_assigned) {
    CHECK_CONTAINS(value("tide.default_dtype = tide.float64"),
                   "tide.default_dtype can't be assigned");
    CHECK_CONTAINS(value("tide.num_threads = 4"), "tide has no setting \"num_threads\"");
    CHECK_CONTAINS(value("tide.optim.lr = 4"), "tide.optim has no setting \"lr\"");
    CHECK_STR(value("tide.default_dtype == tide.float32"), "true");
    CHECK_STR(value("tide.own = function() return 'own' end; tide.own()"), "\"own\"");
    CHECK_STR(value("tide.nn.Own = {}; tide.nn.Own"), "{}");
}

int main(void) {
    tide_frontend frontend = {.write = catch_output};
    s = tide_session_new(&frontend);
    if (!s)
        return 1;
    RUN(tracebacks_show_the_line_and_the_place);
    RUN(misspelt_names_are_errors_that_name_the_nearest);
    RUN(what_would_do_nothing_can_not_be_assigned);
    tide_result_clear(&r);
    tide_session_free(s);
    return check_finish();
}
