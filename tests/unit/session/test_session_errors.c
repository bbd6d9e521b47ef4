/* test_session_errors.c: what errors tell: where, what was meant, what Lua writes. */
#include "tests/check.h"
#include "tests/unit/session/session_inputs.h"

#include <stdlib.h>

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

TEST(scripted_functions_have_a_frame_where_they_failed) {
    value("local function inner_f(x, w)\n  local y = x:exp()\n  return y:matmul(w)\nend\n"
          "local function inner_g(x, w)\n  return x - w\nend\n"
          "product, difference = tide.jit.script(inner_f), tide.jit.script(inner_g)");
    value("local y = product(tide.ones(2, 3), tide.ones(4, 5))");
    CHECK_CONTAINS(traceback(), "]:3: in scripted function 'inner_f'\n    return y:matmul(w)\n"
                                "             ^\n  [C]: in ");
    value("local y = difference(tide.ones(2, 3), tide.ones(4, 5))");
    CHECK_CONTAINS(traceback(), "]:6: in scripted function 'inner_g'\n    return x - w\n"
                                "             ^\n  [C]: in ");
    value("product(tide.ones(2, 3), 1)");
    CHECK(!strstr(traceback(), "in scripted function"));
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

TEST(globals_that_tide_has_are_found_there) {
    CHECK_CONTAINS(value("randn(2)"), "did you mean 'tide.randn'?");
    CHECK_CONTAINS(value("float64"), "did you mean 'tide.float64'?");
    value("y = tide.zeros(2, {dtype = float64})");
    CHECK_CONTAINS(caught, "did you mean 'tide.float64'?");
    value("y = tide.nn.class('A', {})");
    CHECK(!strstr(traceback(), "tide._fail"));
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

/* Is it a syntax error, and is the last line said that of Lua with this text in it? */
static void check_habit(const char *code, const char *text) {
    value(code);
    CHECK_INT(r.outcome, TIDE_ERROR);
    REQUIRE(r.n_traceback > 0);
    const char *last = r.traceback[r.n_traceback - 1];
    CHECK(strncmp(last, "Lua: ", 5) == 0);
    CHECK_CONTAINS(last, text);
}

TEST(habits_of_python_bring_what_lua_writes) {
    check_habit("x:sum(dim=0)", "f(x, {dim = ...}); dims count from 1");
    check_habit("tide.zeros(2, dtype=1)", "f(x, {dtype = ...})");
    check_habit("a != b", "a ~= b");
    check_habit("x += 1", "x = x + 1");
    check_habit("step *= 2", "step = step * 2");
    check_habit("x[1:2]", "x[\"2:2\"]");
    check_habit("x[:, 1]", "x[\":, 2\"]");
    check_habit("x[1, 2]", "x[{1, 2}]");
    check_habit("y = [1,2]", "{1, 2}");
    check_habit("y = (1, 2)", "{1, 2}");
    check_habit("local out, (h, c) = lstm(x)", "h, c = state[1], state[2]");
    check_habit("for i, (x, y) in ipairs(pairs) do end", "local x, y = pair[1], pair[2]");
    check_habit("import torch", "torch is tide");
    check_habit("from torch import nn", "local nn = tide.nn");
    check_habit("f = lambda x: x", "function(x) return x * 2 end");
    check_habit("2 ** 3", "x ^ 2");
    check_habit("a @ b", "x:matmul(y)");
    check_habit("for i in range(3):", "for i = 1, 3 do");
    check_habit("if x > 2:", "then");
    check_habit("def f(x):", "function f(x)");
    check_habit("while True:", "while condition do");
    check_habit("x is None", "x == nil");
    check_habit("with tide.no_grad():", "<close>");
    check_habit("a && b", "a and b");
    check_habit("x = a if b else c", "condition and a or b");
    check_habit("# a comment", "--");
    check_habit("local n = 1; n += 1", "n = n + 1");
    check_habit("do n *= 2 end", "n = n * 2");
    value("x = = 1"); /* nobody's habit */
    CHECK(strncmp(r.traceback[r.n_traceback - 1], "Lua: ", 5) != 0);
}

TEST(habits_that_lua_can_read_are_told_where_they_fail) {
    value("x = tide.ones(2)");
    CHECK_CONTAINS(value("x.sum()"), "a method is called with a colon, x:sum()");
    CHECK_CONTAINS(value("tide.nn.Linear(2, 3).parameters()"), "x:parameters()");
    CHECK(!strstr(value("tide.sum()"), "colon"));
    CHECK_CONTAINS(value("do local y = tide.ones(2); y.sum() end"), "with a colon, x:sum()");
    CHECK_CONTAINS(value("(function(y) return y.mul(2) end)(x)"), "with a colon, x:mul()");
    CHECK(!strstr(value("do local F = tide.nn.functional; F.softmax() end"), "colon"));
    CHECK_CONTAINS(value("do local c = x:chunk(2); c:view(1) end"), "this is a list of 2 tensors");
    CHECK_CONTAINS(value("do local y = x; return y:T() end"), "T is a field: x.T");
    CHECK_CONTAINS(value("x:shape()"), "shape is a field: x.shape");
    CHECK_CONTAINS(value("max(1, 2)"), "Lua writes math.max(a, b)");
    CHECK_CONTAINS(value("print(f\"loss\")"), ":format(loss:item())");
    CHECK_CONTAINS(value("len(x)"), "Lua writes #x");
    CHECK_CONTAINS(value("True"), "Lua writes true");
    CHECK_CONTAINS(value("math.floor(tide.tensor(2))"), "x:item()");
    CHECK_CONTAINS(value("('%.4f'):format(tide.tensor(2))"), "x:item()");
    CHECK_CONTAINS(value("for i = 1, tide.tensor(2) do end"), "x:item()");
}

TEST(unfinished_python_does_not_wait_for_more) {
    char indent[8];
    static const char *const heads[] = {"for i in range(3):", "while True:", "f = lambda x: x"};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        CHECK_INT(tide_session_is_complete(s, heads[i], strlen(heads[i]), indent, sizeof indent),
                  TIDE_INVALID);
    CHECK_INT(tide_session_is_complete(s, "for i = 1, 3 do", 15, indent, sizeof indent),
              TIDE_INCOMPLETE);
}

TEST(warnings_come_once_and_where_they_are_due) {
    value("x, name, limit = tide.ones(2), nil, 3");
    value("if x then y = 1 end");
    CHECK_CONTAINS(caught, "warning: a tensor is true in Lua");
    value("if x:gt(0) then y = 1 end");
    CHECK_STR(caught, "");
    value("y = x == 5");
    CHECK_CONTAINS(caught, "x:eq(5)");
    value("y = x == 5");
    CHECK_STR(caught, "");
    value("y = {dtype = limti}");
    CHECK_CONTAINS(caught, "'limti' is not defined, so it is nil: did you mean 'limit'?");
    value("y = True");
    CHECK_CONTAINS(caught, "Lua writes true");
    value("limits = limits or 3");
    CHECK_STR(caught, "");
    value("if not limitt then y = 1 end");
    CHECK_STR(caught, "");
    value("function f() return limitx == nil end y = f()");
    CHECK_STR(caught, "");
}

static void interrupt_at_a_warning(void *ctx, tide_stream stream, const char *bytes, size_t len) {
    (void)ctx, (void)stream, (void)len;
    if (strstr(bytes, "warning"))
        tide_session_interrupt(s);
}

TEST(an_interrupt_while_advice_is_given_is_not_lost) {
    static const char *const inputs[] = {
        "c = tide.ones(1) if c == 1 then c = 2 end ended = true",
        "c = {dtype = limti} ended = true",
    };
    tide_session *shared = s;
    tide_frontend frontend = {.write = interrupt_at_a_warning};
    for (size_t k = 0; k < sizeof inputs / sizeof *inputs; k++) {
        s = tide_session_new(&frontend);
        REQUIRE(s);
        value("limit, c = 3, tide.ones(1)");
        CHECK_STR(value(inputs[k]), "interrupted");
        CHECK_STR(value("return rawget(_G, 'ended')"), "");
        tide_session_free(s);
    }
    s = shared;
}

TEST(no_warning_where_a_number_or_a_truth_is_asked_for) {
    tide_session *shared = s;
    tide_frontend frontend = {.write = catch_output};
    s = tide_session_new(&frontend);
    REQUIRE(s);
    value("x, n = tide.ones(2), 3");
    value("if x:is_contiguous() then y = 1 end if x:dim() == 1 then y = 2 end");
    CHECK_STR(caught, "");
    value("if x.grad then y = 1 end if n == 3 then y = x[1]:item() == 1 end");
    CHECK_STR(caught, "");
    value("y = #x == 2 and x == 2 * x and #x[1] == 0");
    CHECK_STR(caught, "");
    value("function g(x) if x then return x == 5 end end y = g(4)");
    CHECK_STR(caught, "");
    tide_session_free(s);
    s = shared;
}

TEST(exit_and_quit_leave) {
    value("quit");
    CHECK_INT(r.outcome, TIDE_EXIT);
    value(" exit() ");
    CHECK_INT(r.outcome, TIDE_EXIT);
    value("quit = 7");
    CHECK_STR(value("quit"), "7");
    value("quit = nil");
}

int main(void) {
    tide_frontend frontend = {.write = catch_output};
    s = tide_session_new(&frontend);
    if (!s)
        return 1;
    RUN(tracebacks_show_the_line_and_the_place);
    RUN(scripted_functions_have_a_frame_where_they_failed);
    RUN(misspelt_names_are_errors_that_name_the_nearest);
    RUN(globals_that_tide_has_are_found_there);
    RUN(what_would_do_nothing_can_not_be_assigned);
    RUN(habits_of_python_bring_what_lua_writes);
    RUN(habits_that_lua_can_read_are_told_where_they_fail);
    RUN(unfinished_python_does_not_wait_for_more);
    RUN(warnings_come_once_and_where_they_are_due);
    RUN(an_interrupt_while_advice_is_given_is_not_lost);
    RUN(no_warning_where_a_number_or_a_truth_is_asked_for);
    RUN(exit_and_quit_leave);
    tide_result_clear(&r);
    tide_session_free(s);
    return check_finish();
}
