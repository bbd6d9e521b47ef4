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
    CHECK_STR(hint("twice(", true), "twice(\2x\3, n)");
    CHECK_STR(hint("twice(1, tide.exp(", true), "exp(\2Tensor x\3, {Tensor? out=nil}) -> Tensor");
    CHECK_STR(hint("twice(tide.exp(x), ", true), "twice(x, \2n\3)");
    CHECK_STR(hint("twice(1)", true), "");
    CHECK_STR(hint("nowhere(", true), "");
    CHECK_STR(hint("", true), "");
}

TEST(the_parameter_that_is_written_is_marked) {
    run("x = tide.ones(2) function many(first, ...) end function none() end");
    CHECK_STR(hint("twice({1, 2}, f(3, 4) + ", true), "twice(x, \2n\3)");
    CHECK_STR(hint("twice(1, 2, ", true), "twice(x, n)");
    CHECK_STR(hint("none(", true), "none()");
    CHECK_STR(hint("many(1, 2, 3, ", true), "many(first, \2...\3)");
    CHECK_CONTAINS(hint("x:sum(", true), "sum(Tensor x, \2dim[]? dim=nil\3, {");
    CHECK_CONTAINS(hint("tide.sum(x, {1, 2}, ", true), "\2{bool keepdim=false, ");
    CHECK_CONTAINS(hint("tide.sum(x, {dim = 1, keepdim = tr", true), "{bool \2keepdim\3=false, ");
    CHECK_CONTAINS(hint("tide.sum(x, {dim = {1, 2}, dtype = ", true), "dtype? \2dtype\3=nil");
    CHECK_CONTAINS(hint("tide.nn.Linear(3, ", true),
                   "in_features, \2int(0..) out_features\3, bool");
    CHECK_CONTAINS(hint("tide.pad(x, {1, 1}, ", true), "\2\"constant\"|\"reflect\"");
}

/* Is the name among the completions at the end of code, as a kind? */
static bool offers(const char *code, const char *name, const char *kind) {
    tide_completions c;
    bool found = false;
    tide_session_complete(s, code, strlen(code), strlen(code), &c);
    for (int i = 0; i < c.n; i++)
        found = found || (strcmp(c.matches[i], name) == 0 && strcmp(c.types[i], kind) == 0);
    tide_completions_clear(&c);
    return found;
}

TEST(options_are_offered_within_a_call_s_table) {
    CHECK(offers("x:sum(1, {", "keepdim", "option"));
    CHECK(offers("x:sum{", "keepdim", "option"));
    CHECK(offers("x:sum{dim = {1, 2}, kee", "keepdim", "option"));
    CHECK(offers("tide.nn.Conv2d(3, 8, 3, {pad", "padding", "option"));
    CHECK(offers("tide.optim.Adam(model:parameters(), {l", "lr", "option"));
    CHECK(offers("tide.io.read_csv('f', {\n  header = true, cla", "classes", "option"));
    CHECK(offers("x:sum{", "tide", "global") || offers("x:sum{", "tide", "module"));
    CHECK(!offers("x:sum({1, kee", "keepdim", "global"));
    CHECK(!offers("x:sum{dim = kee", "keepdim", "option"));
    CHECK(!offers("t = {kee", "keepdim", "option"));
    CHECK(!offers("x:sum(kee", "keepdim", "option"));
    CHECK(!offers("{", "keepdim", "option"));
    CHECK(!offers("nowhere({", "keepdim", "option"));
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
    RUN(the_parameter_that_is_written_is_marked);
    RUN(options_are_offered_within_a_call_s_table);
    RUN(what_a_name_is);
    RUN(hints_run_nothing_of_the_users);
    tide_session_free(s);
    return check_finish();
}
