/* test_session_hint.c: the one line that an editor shows about a call or a name. */
#include "repl/session/session.h"

#include "tests/check.h"

#include <stdlib.h>

static tide_session *s;

/* The hint at the end of code, in a buffer of ours; "" where nothing is known. */
static const char *hint(const char *code, bool of_call) {
    static char copy[512];
    char *line = tide_session_hint(s, code, strlen(code), strlen(code), of_call);
    snprintf(copy, sizeof copy, "%s", line ? line : "");
    free(line);
    return copy;
}

static void run(const char *code) {
    tide_result r;
    tide_session_eval(s, code, strlen(code), true, &r);
    CHECK_INT(r.outcome, TIDE_OK);
    tide_result_clear(&r);
}

TEST(the_signature_of_the_innermost_open_call) {
    run("function twice(x, n) return 2 * x end");
    CHECK_STR(hint("twice(", true), "twice(x, n)");
    CHECK_STR(hint("twice(1, tide.exp(", true), "exp(Tensor x, {Tensor? out=nil}) -> Tensor");
    CHECK_STR(hint("twice(tide.exp(x), ", true), "twice(x, n)");
    CHECK_STR(hint("twice(1)", true), "");
    CHECK_STR(hint("nowhere(", true), "");
    CHECK_STR(hint("", true), "");
}

TEST(what_a_name_is) {
    run("number = 42");
    CHECK_STR(hint("number", false), "42");
    CHECK_STR(hint("twice", false), "twice(x, n)");
    CHECK_STR(hint("tide.acos", false), "Arc cosine in radians.");
    CHECK_CONTAINS(hint("%time", false), "%time stmt");
    CHECK_STR(hint("nowhere", false), "");
    CHECK_STR(hint("1 +", false), "");
    CHECK_STR(hint("", false), "");
}

TEST(hints_run_nothing_of_the_users) {
    run("trap = setmetatable({}, {__index = function() ran = true end, __call = function() ran = "
        "true end})");
    hint("trap.x(", true);
    hint("trap.x", false);
    hint("trap(", true);
    run("assert(not ran)");
}

int main(void) {
    tide_frontend frontend = {0};
    s = tide_session_new(&frontend);
    if (!s)
        return 1;
    RUN(the_signature_of_the_innermost_open_call);
    RUN(what_a_name_is);
    RUN(hints_run_nothing_of_the_users);
    tide_session_free(s);
    return check_finish();
}
