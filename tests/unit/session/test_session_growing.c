/* test_session_growing.c: inputs that come line by line: what is said of a text that grows is what
 * is said of it alone; and what is copied from a terminal, prompts and all.
 */
#include "repl/session/transcript.h"
#include "tests/check.h"
#include "tests/unit/session/session_inputs.h"

#include <stdlib.h>
#include <time.h>

static const char *const texts[] = {
    "t = {\n  {name = 'a', list = {1, 2}},\n  {name = 'b'},\n\n  -- a remark, {\n  5,\n  x = "
    "3;\n}\nt",
    "t = {\n  1,\n  2\n  ,3,\n}",
    "t = {\n  1,\n  2 3\n}",
    "t = {\n  1\n  2\n}",
    "t = {\n  1,\n  2\n  3,\n}",
    "t = {\n  f(1,\n  2),\n  function()\n    return 1\n  end,\n}",
    "t = {\n}, {\n  1,\n}",
    "f {\n  1,\n} {\n  2,\n}",
    "t = {\n  [[\n  a,\n  ]],\n  \"a\\\n  b\",\n}",
    "t = {\n  'half\n  1,\n}",
    "t = {\n--[[ {\n 1,\n]]\n 2,\n}",
    "function f(x)\n  local y = x\n  if y then\n    y = 1\n  else\n    y = 2\n  end\n  return "
    "y\nend\nf(1)",
    "function f(x)\n  local y =\n  x\n  y = y +\n  1\nend",
    "function f(x)\n  %time x = 1\n  !true\n  x = x\nend",
    "for i = 1, 2 do\n  break\n  i = 2\nend",
    "for i = 1, 2 do\n  x = = 1\n  y = 1\nend",
    "repeat\n  x = 1\nuntil x\nprint(x)",
    "pcall(function()\n  x = 1\n  y = 2\nend)",
    "print(1,\n2,\n3)",
    "x = 1 +\n2",
    "if x then\n  for k in y:\n  z = 1\nend",
    "do\n  goto done\n  x = 1\n  ::done::\nend",
    "while true do\n  local s = 'a\\\n  b'\n  s = 1\nend",
    "tide> t = {\n....> 1,\n....> 2,\n....> }\ntide> t",
};

static tide_completeness asked(const char *code, size_t len) {
    return tide_session_is_complete(s, code, len, NULL, 0);
}

/* By a session that was asked about something else just before. */
static tide_completeness asked_anew(const char *code, size_t len) {
    asked("x = 1", 5);
    return asked(code, len);
}

TEST(a_text_that_grows_is_judged_as_it_is_alone) {
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *text = texts[i];
        size_t len = strlen(text);
        tide_completeness alone[32];
        int n = 0;
        for (size_t at = 0; at <= len && n < 32; at++)
            if (at == len || text[at] == '\n')
                alone[n++] = asked_anew(text, at);
        asked("x = 1", 5);
        n = 0;
        for (size_t at = 0; at <= len && n < 32; at++)
            if (at == len || text[at] == '\n') {
                tide_completeness grown = asked(text, at);
                if (grown != alone[n])
                    printf("%.*s\n%d, grown %d\n", (int)at, text, alone[n], grown);
                CHECK_INT(grown, alone[n++]);
            }
    }
}

/* Lines that go on from one that was never asked about, and texts that shrink and differ. */
TEST(texts_that_differ_are_judged_by_themselves) {
    CHECK_INT(asked("t = {\n1,", 8), TIDE_INCOMPLETE);
    CHECK_INT(asked("u = {\n1,\n}", 10), TIDE_COMPLETE);
    CHECK_INT(asked("t = {\n1,", 8), TIDE_INCOMPLETE);
    CHECK_INT(asked("t = {", 5), TIDE_INCOMPLETE);
    CHECK_INT(asked("t = {\n1,\n2,\n}", 13), TIDE_COMPLETE);
    CHECK_INT(asked("t = {\n1,", 8), TIDE_INCOMPLETE);
    CHECK_INT(asked("t = {\n1,x y", 11), TIDE_INVALID);
    CHECK_INT(asked("t = {\n1, 2 3\n", 13), TIDE_INVALID);
}

/* Ten thousand lines, by the processor's clock: by their square they would take minutes. */
TEST(long_inputs_take_time_in_proportion_to_their_length) {
    static const char row[] = "\n  {name = 'row', value = 1, list = {1, 2, 3}},";
    enum { LINES = 10000 };
    char *text = malloc(5 + LINES * (sizeof row - 1) + 1);
    REQUIRE(text);
    memcpy(text, "t = {", 5);
    size_t len = 5;
    clock_t began = clock();
    for (int i = 0; i < LINES; i++) {
        memcpy(text + len, row, sizeof row - 1);
        len += sizeof row - 1;
        CHECK_INT(asked(text, len), TIDE_INCOMPLETE);
    }
    CHECK((double)(clock() - began) / CLOCKS_PER_SEC < 30);
    free(text);
}

static const char *plain(const char *text) {
    static char copy[512];
    size_t len = strlen(text);
    char *owned = transcript_plain(&text, &len);
    snprintf(copy, sizeof copy, "%.*s", (int)len, text);
    free(owned);
    return copy;
}

TEST(prompts_and_what_was_printed_are_no_input) {
    static const char *const pairs[][2] = {
        {"x = 1", "x = 1"},
        {"\xEF\xBB\xBFx = 1", "x = 1"},
        {"tide> x = 1", "x = 1"},
        {"\n  tide> x = 1\n1\ntide> y = 2", "\nx = 1\n\ny = 2"},
        {"tide> for i = 1, 2 do\n....>   print(i)\n....> end\n1\n2\ntide>",
         "for i = 1, 2 do\n  print(i)\nend\n\n\n"},
        {"tide> for i = 1, 2 do\n  print(i)\nend\n1\n2", "for i = 1, 2 do\n  print(i)\nend\n\n"},
        {"tide> x = [[\n a\n]]\nb", "x = [[\n a\n]]\n"},
        {"In [12]: x = 1\n    ...: y = 2\nOut[12]: 5\n\nIn [13]: x", "x = 1\ny = 2\n\n\nx"},
        {">>> x = 1\n... y = 2\n5", "x = 1\ny = 2\n"},
        {"> x = 1\n>> y = 2\n5", "x = 1\ny = 2\n"},
        {"tide> x = 1\n> y", "x = 1\n"},
        {"In [x]: 5", "In [x]: 5"},
        {"tides> 5", "tides> 5"},
        {"x = 1\ntide> y", "x = 1\ntide> y"},
        {"tide>x", "tide>x"},
        {"tide> x\n1\ntide> y", "do local _ = x end\n\ny"},
        {"tide> x.y[1] -- z\ntide> 1 + 1, 'a'\ntide> not f()\ntide> y",
         "do local _ = x.y[1] end -- z\ndo local _ = 1 + 1, 'a' end\ndo local _ = not f() end\ny"},
        {"tide> f()\ntide> f 'x'\ntide> x:y{1}\ntide> (a * b):sum():c()\ntide> y",
         "f()\nf 'x'\nx:y{1}\n(a * b):sum():c()\ny"},
        {"tide> (1)\ntide> {f()}\ntide> a = {1}\ntide> local b\ntide> y",
         "do local _ = (1) end\ndo local _ = {f()} end\na = {1}\nlocal b\ny"},
        {"tide> ?x\ntide> x?\ntide> %pwd\ntide> !ls\ntide> y", "?x\nx?\n%pwd\n!ls\ny"},
        {"tide> f(function() a = 1 end)\ntide> {\n....>   1,\n....> }\n{1}\ntide> y",
         "f(function() a = 1 end)\ndo local _ = {\n  1,\n} end\n\ny"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        CHECK_STR(plain(pairs[i][0]), pairs[i][1]);
    CHECK_STR(value("tide> q = 2\ntide> q\n2\ntide> q == 3\nfalse\ntide> q * 2\n4"), "4");
    CHECK_STR(value("tide> kept = 3\ntide> kept + 1\n4"), "4");
    CHECK_STR(value("In[#In - 1]"), "\"kept = 3\\nkept + 1\\n\"");
    CHECK_CONTAINS(value("tide> z = 1\n1\ntide> z.y.x = 2"), ":3: attempt to index a number value");
}

int main(void) {
    tide_frontend frontend = {.write = catch_output};
    s = tide_session_new(&frontend);
    if (!s)
        return 1;
    RUN(a_text_that_grows_is_judged_as_it_is_alone);
    RUN(texts_that_differ_are_judged_by_themselves);
    RUN(long_inputs_take_time_in_proportion_to_their_length);
    RUN(prompts_and_what_was_printed_are_no_input);
    tide_result_clear(&r);
    tide_session_free(s);
    return check_finish();
}
