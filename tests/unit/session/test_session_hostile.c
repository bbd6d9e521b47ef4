/* test_session_hostile.c: what a script can do to the state that it runs in, and a string to the
 * terminal that it is shown in.
 */
#include "tests/check.h"
#include "tests/unit/session/session_inputs.h"

#include <stdlib.h>
#include <unistd.h>

TEST(a_hook_that_raises_is_told_once_and_taken_away) {
    static const char *const events[] = {"l", "c", "r", "lcr"};
    for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
        char code[64];
        snprintf(code, sizeof code, "debug.sethook(error, '%s')", events[i]);
        value(code);
        bool told = r.outcome == TIDE_ERROR;
        if (!told)
            value("local a = tostring(1)\nlocal b = a");
        CHECK_INT(r.outcome, TIDE_ERROR);
        CHECK_STR(r.traceback[r.n_traceback - 1],
                  "This was raised by the hook of debug.sethook, which has been taken away.");
        CHECK_STR(value("1 + 1"), "2");
        CHECK_STR(value("debug.gethook()"), "");
    }
}

TEST(a_hook_stays_from_input_to_input_and_sees_only_the_user_s_lines) {
    value("lines, places = 0, {}");
    value("debug.sethook(function(_, line) lines = lines + 1 "
          "places[debug.getinfo(2, 'S').source] = true end, 'l')");
    value("local x = 1\nx = x + 1\n{x}");
    value("nosuch_name_here.x = 1");
    CHECK_INT(r.outcome, TIDE_ERROR);
    tide_completions c;
    tide_session_complete(s, "pri", 3, 3, &c);
    CHECK(c.n > 0);
    tide_completions_clear(&c);
    value("debug.sethook()");
    CHECK_STR(value("lines >= 4"), "true");
    CHECK_STR(value("(function() for place in pairs(places) do if place:find('tide', 1, true) then "
                    "return place end end return 'none' end)()"),
              "\"none\"");
}

TEST(a_registry_that_was_emptied_is_whole_again) {
    static const char empty[] =
        "for k in pairs(debug.getregistry()) do debug.getregistry()[k] = nil end\n";
    static const char *const next[][2] = {{"x = = 1", "unexpected symbol near '='"},
                                          {"1 + 1", "2"},
                                          {"nosuch", "'nosuch' is not defined"},
                                          {"error('told')", "told"},
                                          {"local a = 5\na", "5"},
                                          {"a", "5"},
                                          {"tide.ones(2):sum():item()", "2.0"},
                                          {"?print", ""},
                                          {"%who", ""},
                                          {"!true", ""},
                                          {"{1, {2}}", "{1, {2}}"},
                                          {"io.type(io.stdout)", "\"file\""},
                                          {"nothing.x = 1", "nil value"},
                                          {"pcall(error)", "false"}};
    char code[256];
    for (size_t i = 0; i < sizeof next / sizeof *next; i++) {
        value(empty);
        CHECK_CONTAINS(value(next[i][0]), next[i][1]);
    }
    for (size_t i = 0; i < sizeof next / sizeof *next; i++) {
        if (strchr("x?%t", next[i][0][0]) || strncmp(next[i][0], "io", 2) == 0)
            continue; /* whole inputs; what Lua's own library and handles look up in it */
        snprintf(code, sizeof code, "%s%s", empty, next[i][0]);
        CHECK(*value(code) || r.outcome == TIDE_OK);
        CHECK_STR(value("1 + 1"), "2");
    }
    value(empty);
    CHECK_INT(tide_session_is_complete(s, "for i = 1, 2 do", 15, NULL, 0), TIDE_INCOMPLETE);
    value(empty);
    tide_completions c;
    tide_session_complete(s, "pri", 3, 3, &c);
    CHECK(c.n > 0);
    tide_completions_clear(&c);
}

/* C1 controls, which a terminal obeys as it does ESC [, and what turns the order of writing. */
TEST(strings_show_what_a_terminal_would_obey) {
    char code[64], want[64];
    for (unsigned c = 0x80; c < 0x10000; c++) {
        bool unseen = c <= 0x9F || c == 0x61C || c == 0x200E || c == 0x200F ||
                      (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069) || c == 0xFEFF;
        if (!unseen && c % 251 != 0 && c != 0xA0 && c != 0x2027 && c != 0x202F && c != 0x2065)
            continue;
        if (c >= 0xD800 && c <= 0xDFFF)
            continue;
        snprintf(code, sizeof code, "utf8.char(0x%X) .. 'x'", c);
        snprintf(want, sizeof want, "\"\\u{%X}x\"", c);
        CHECK((strcmp(value(code), want) == 0) == unseen);
    }
    CHECK_STR(value("{['\\u{9B}1m'] = '\\u{202E}é'}"), "{[\"\\u{9B}1m\"] = \"\\u{202E}é\"}");
    CHECK_STR(value("setmetatable({}, {__name = '\\u{9B}'})"), "\\u{9B} {}");
    CHECK_STR(value("load('return ' .. [['\\u{85}\\xC2\\xC2']])()"), "\"\\u{85}\\xC2\\xC2\"");
}

TEST(the_working_directory_may_be_gone) {
    char folder[] = "/tmp/tide-gone-XXXXXX", back[4096], code[64];
    REQUIRE(getcwd(back, sizeof back) && mkdtemp(folder));
    snprintf(code, sizeof code, "%%cd %s", folder);
    value(code);
    CHECK_INT(rmdir(folder), 0);
    CHECK_CONTAINS(value("%pwd"), "%pwd: the working directory is not known: No such file");
    CHECK_INT(r.n_traceback, 1);
    CHECK_CONTAINS(value("x = %pwd"), "%pwd: the working directory is not known");
    CHECK_STR(value("%cd /"), "\"/\"");
    CHECK_CONTAINS(value("%cd -"), "no folder before this one");
    CHECK_INT(chdir(back), 0);
}

int main(void) {
    tide_frontend frontend = {.write = catch_output};
    s = tide_session_new(&frontend);
    if (!s)
        return 1;
    RUN(a_hook_that_raises_is_told_once_and_taken_away);
    RUN(a_hook_stays_from_input_to_input_and_sees_only_the_user_s_lines);
    RUN(a_registry_that_was_emptied_is_whole_again);
    RUN(strings_show_what_a_terminal_would_obey);
    RUN(the_working_directory_may_be_gone);
    tide_result_clear(&r);
    tide_session_free(s);
    return check_finish();
}
