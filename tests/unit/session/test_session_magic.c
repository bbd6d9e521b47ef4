/* test_session_magic.c: what of an input is a magic, and what only looks like one. */
#include "tests/check.h"
#include "tests/unit/session/session_inputs.h"

TEST(a_modulo_at_the_start_of_a_line_inside_brackets_is_no_magic) {
    value("time, timeit = 4, 6");
    CHECK_STR(value("(10\n%time)"), "2");
    CHECK_STR(value("({10\n  %timeit })[1]"), "4");
    CHECK_STR(value("math.max(1, 10\n%time)"), "2");
}

TEST(a_magic_inside_a_long_string_is_text) {
    value("text = [=[ ]]\n%time\n]=]");
    CHECK_STR(value("#text"), "10");
}

TEST(a_magic_at_the_start_of_a_line_is_one) {
    value("y = 1\n%time y = 2\ny = y + 1");
    CHECK_CONTAINS(caught, "Wall time");
    CHECK_STR(value("y"), "3");
    value("%time y = 7");
    CHECK_CONTAINS(caught, "Wall time");
    CHECK_STR(value("y"), "7");
}

TEST(options_of_timeit_are_checked) {
    CHECK_CONTAINS(value("%timeit -r 0 y = 1"), "from 1 to");
    CHECK_CONTAINS(value("%timeit -n 0 y = 1"), "from 1 to");
    CHECK_CONTAINS(value("%timeit -n -3 y = 1"), "from 1 to");
    CHECK_CONTAINS(value("%timeit -r x y = 1"), "from 1 to");
    CHECK_CONTAINS(value("%timeit -z y = 1"), "unknown option -z");
    tide_result_clear(&r);
    tide_session_eval(s, "%timeit -n 1 y = 1 \0 z = 1", 27, false, &r);
    CHECK(r.outcome == TIDE_ERROR); /* what stands behind a NUL is not left out */
    value("n = 0");
    CHECK_STR(value("%timeit -n 3 -r 2 n = n + 1"), "");
    CHECK_CONTAINS(caught, "of 2 runs, 3 loops each");
    CHECK_STR(value("n"), "6");
    value("n = 0");
    value("%timeit -n 1 n = n + 1");
    CHECK_CONTAINS(caught, "of 7 runs, 1 loop each");
    CHECK_STR(value("n"), "7");
}

int main(void) {
    tide_frontend frontend = {.write = catch_output};
    s = tide_session_new(&frontend);
    if (!s)
        return 1;
    RUN(a_modulo_at_the_start_of_a_line_inside_brackets_is_no_magic);
    RUN(a_magic_inside_a_long_string_is_text);
    RUN(a_magic_at_the_start_of_a_line_is_one);
    RUN(options_of_timeit_are_checked);
    tide_result_clear(&r);
    tide_session_free(s);
    return check_finish();
}
