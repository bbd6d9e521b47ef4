/* test_session_scope.c: the value of an input, and what of an input the next ones still see. */
#include "tests/check.h"
#include "tests/unit/session/session_inputs.h"

#include <stdlib.h>

TEST(a_call_at_the_end_gives_the_value) {
    CHECK_STR(value("n = 2; math.max(n, 1)"), "2");
    CHECK_STR(value("n = 3\nmath.max(n, 1)"), "3");
    CHECK_STR(value("n = 4 math.max(n, 1)"), "4");
    CHECK_STR(value("for i = 1, 2 do n = n + i end string.rep('x', n)"), "\"xxxxxxx\"");
    CHECK_STR(value("local t = {}\n(math.max)(1, 5)"), "5");
    CHECK_STR(value("repeat n = n - 1 until n < 1 tostring(n)"), "\"0\"");
    CHECK_STR(value("::top:: n = n + 1 if n < 5 then goto top end math.max(n)"), "5");
    CHECK_STR(value("local function f() return 'f' end f()"), "\"f\"");
    CHECK_STR(value("x = 1; math.max(1, 5);"), "");
    CHECK_STR(value("x = math.max(1, 5)"), "");
    CHECK_STR(value("if true then math.max(1, 5) end"), "");
    CHECK_STR(value("x = math.max\n(1, 5)"), ""); /* Lua reads one call */
    CHECK_STR(value("x"), "5");
}

TEST(nothing_and_standard_files_are_not_shown) {
    CHECK_STR(value("io.write('hi')"), "");
    CHECK_STR(caught, "hi");
    CHECK_STR(value("x = 1; io.stderr:write('x')"), "");
    CHECK_STR(value("nil"), "");
    CHECK_STR(value("nil, 1"), "nil\n1");
}

TEST(locals_stay_in_sight) {
    CHECK_STR(value("local a = 5"), "");
    CHECK_STR(value("a"), "5");
    CHECK_STR(value("a = a + 1; a"), "6");
    CHECK_STR(value("rawget(_G, 'a') == nil"), "true");
    CHECK_STR(value("local p, q = 1 -- local q = 7"), "");
    CHECK_STR(value("p, q"), "1\nnil");
    CHECK_STR(value("local text = [[\nlocal hidden = 1\n]]"), "");
    CHECK_STR(value("hidden == nil"), "true");
    CHECK_STR(value("do local inner = 1 end; inner == nil"), "true");
    value("local before = 1; error('boom')");
    CHECK_STR(value("before"), "1");
    value("local stays = 1; if stays then return end; local never = 2");
    CHECK_STR(value("stays, never == nil"), "1\ntrue");
    CHECK_STR(value("%time local timed = 7"), "");
    CHECK_STR(value("timed"), "7");
    CHECK_STR(value("local __tide_keep = 6; __tide_keep"), "6"); /* our name in their text */
    CHECK_STR(value("local _, i = 7, 8; i"), "8");
    CHECK_STR(value("_, i"), "8\n8"); /* the last value, as ever */
    CHECK_STR(value("local _ENV = {}"), "");
    CHECK_STR(value("math.max(1, 2)"), "2");
}

TEST(functions_of_inputs_become_graphs) {
    value("local k = 3\nlocal function scaled(n) --: int\n    return n * k\nend");
    CHECK_STR(value("tide.jit.script(scaled)(5)"), "15");
    CHECK_STR(value("tide.jit.script(function(n) return n + 1 end, {types = 'int'})(5)"), "6");
}

TEST(closures_and_later_inputs_share_a_local) {
    value("local n = 1\nlocal function step() n = n + 1 return n end");
    CHECK_STR(value("step(), n"), "2\n2");
    CHECK_STR(value("n = 10; step()"), "11");
    value("function read() return n end");
    CHECK_STR(value("step(); read()"), "12");
    value("local n = 'another'"); /* two variables, as within one chunk */
    CHECK_STR(value("n, read()"), "\"another\"\n12");
    value("local n = n .. '!'");
    CHECK_STR(value("n"), "\"another!\"");
    value("local first = function() return m end local m = 1 "
          "local second = function() return m end local m = 2");
    CHECK_STR(value("first() == nil, second(), m"), "true\n1\n2");
    value("local co = coroutine.wrap(function() while true do coroutine.yield(m) end end)");
    CHECK_STR(value("m = 5; co()"), "5");
    value("local function fact(k) return k < 2 and 1 or k * fact(k - 1) end");
    CHECK_STR(value("fact(5)"), "120");
}

TEST(constants_stay_constant) {
    value("local c <const>, t <const> = 3, {1}\nlocal folded <const> = 8");
    CHECK_STR(value("c, folded"), "3\n8");
    CHECK_CONTAINS(value("c = 4"), "attempt to assign to const variable 'c'");
    CHECK_CONTAINS(value("folded = 4"), "attempt to assign to const variable 'folded'");
    CHECK_STR(value("t[1] = 2; t[1]"), "2");
    CHECK_STR(value("local c = 1; c = c + 1; c"), "2");
    CHECK_STR(value("c"), "2");
}

TEST(lines_and_names_in_errors_stay_true) {
    value("local t = nil\nlocal u = 1");
    CHECK_CONTAINS(value("local v = 1\nlocal w = 2\nt.x = v"),
                   "]:3: attempt to index a nil value (upvalue 't')");
    CHECK_CONTAINS(value("local v = nil local w = 2 v.x = 1"), "(local 'v')");
    CHECK_CONTAINS(value("local v = 1 -- (\nv = = 2"), "]:2: unexpected symbol near '='");
}

TEST(many_inputs_and_locals_are_no_trouble) {
    char code[64];
    for (int i = 1; i <= 600; i++) {
        snprintf(code, sizeof code, "local many%d = %d", i, i);
        CHECK_STR(value(code), "");
    }
    CHECK_STR(value("many1 + many600"), "601");
    char wide[8192] = "local sum = 0";
    for (int i = 1; i <= 250; i++)
        snprintf(wide + strlen(wide), sizeof wide - strlen(wide), " sum = sum + many%d", i);
    CHECK_CONTAINS(value(wide), "250 locals of earlier inputs in one input, at most 198");
    CHECK_STR(value("sum == nil"), "true");
}

TEST(keys_are_sorted_as_a_reader_counts) {
    CHECK_STR(value("{x10 = 1, x9 = 2, y = 3, x = 4}"), "{x = 4, x9 = 2, x10 = 1, y = 3}");
    CHECK_STR(value("{a1b10 = 1, a1b9 = 2, a01 = 3, [''] = 4}"),
              "{[\"\"] = 4, a01 = 3, a1b9 = 2, a1b10 = 1}");
}

TEST(tensors_print_as_wide_as_the_front_end) {
    tide_session_frontend(s)->width = 20;
    CHECK_STR(value("tide.arange(8)"), "[0, 1, 2, 3, 4, 5,\n 6, 7]\nint64 (8) cpu");
    tide_session_frontend(s)->width = 0;
    CHECK_STR(value("tide.arange(8)"), "[0, 1, 2, 3, 4, 5, 6, 7]\nint64 (8) cpu");
}

TEST(inputs_and_values_are_remembered) {
    int n = tide_session_count(s);
    char code[128];
    value("111");
    value("222");
    snprintf(code, sizeof code, "_, __, Out[%d], In[%d]", n, n + 1);
    CHECK_STR(value(code), "222\n111\n111\n\"222\"");
    value("In = 5");
    CHECK_STR(value("In"), "5");
}

TEST(what_is_not_defined_is_an_error) {
    value("losses = {}");
    CHECK_CONTAINS(value("lossse"), "'lossse' is not defined: did you mean 'losses'?");
    CHECK_STR(value("zqxj"), "'zqxj' is not defined");
    CHECK_INT(r.outcome, TIDE_ERROR);
    value("local declared");
    CHECK_STR(value("declared"), "");
    CHECK_INT(r.outcome, TIDE_OK);
}

TEST(locals_are_completed_and_explained) {
    tide_completions c;
    tide_bundle bundle;
    value("local training_rate = {first_step = 0.5}");
    tide_session_complete(s, "training_r", 10, 10, &c);
    REQUIRE(c.n == 1);
    CHECK_STR(c.matches[0], "training_rate");
    tide_completions_clear(&c);
    tide_session_complete(s, "training_rate.f", 15, 15, &c);
    REQUIRE(c.n == 1);
    CHECK_STR(c.matches[0], "first_step");
    tide_completions_clear(&c);
    CHECK(tide_session_inspect(s, "training_rate", 13, 13, 0, &bundle));
    tide_bundle_clear(&bundle);
}

int main(void) {
    tide_frontend frontend = {.write = catch_output};
    s = tide_session_new(&frontend);
    if (!s)
        return 1;
    RUN(a_call_at_the_end_gives_the_value);
    RUN(nothing_and_standard_files_are_not_shown);
    RUN(locals_stay_in_sight);
    RUN(functions_of_inputs_become_graphs);
    RUN(closures_and_later_inputs_share_a_local);
    RUN(constants_stay_constant);
    RUN(lines_and_names_in_errors_stay_true);
    RUN(many_inputs_and_locals_are_no_trouble);
    RUN(keys_are_sorted_as_a_reader_counts);
    RUN(tensors_print_as_wide_as_the_front_end);
    RUN(inputs_and_values_are_remembered);
    RUN(what_is_not_defined_is_an_error);
    RUN(locals_are_completed_and_explained);
    tide_result_clear(&r);
    tide_session_free(s);
    return check_finish();
}
