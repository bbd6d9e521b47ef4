/* test_session_commands.c: the magics that are written in Lua, and those that users register. */
#include "tests/check.h"
#include "tests/unit/session/session_inputs.h"

#include <stdlib.h>
#include <unistd.h>

TEST(who_and_whos_list_what_was_made) {
    value("files = 5; local lr = 0.5");
    value("weight = tide.ones(2, 3)");
    value("%who");
    CHECK_STR(caught, "files  lr  weight\n");
    value("%whos");
    CHECK_CONTAINS(caught, "weight  tensor   float32 (2, 3) cpu  24 B\n");
    CHECK_CONTAINS(caught, "lr      float    0.5\n");
    value("%reset");
    value("%who");
    CHECK_STR(caught, "no variables\n");
    CHECK_STR(value("lr == nil and weight == nil and _ == nil"), "true");
    CHECK_STR(value("math.max(1, 2)"), "2");
}

TEST(inputs_are_listed_saved_and_run) {
    char code[128];
    int n = tide_session_count(s);
    value("saved_one = 1");
    value("saved_two = saved_one + 1");
    snprintf(code, sizeof code, "%%history %d-%d", n, n + 1);
    value(code);
    CHECK_CONTAINS(caught, "saved_one = 1\n");
    snprintf(code, sizeof code, "%%save saved.lua %d-%d", n, n + 1);
    value(code);
    CHECK_CONTAINS(caught, "2 inputs in saved.lua");
    value("%load saved.lua");
    CHECK_STR(caught, "saved_one = 1\nsaved_two = saved_one + 1\n");
    value("%reset");
    value("%run saved.lua");
    CHECK_STR(value("saved_two"), "2");
    value("%%file with_arguments.lua\nfirst, script = ..., arg[0]\n");
    value("%run with_arguments.lua 'a b' c");
    CHECK_STR(value("first, script, arg == nil"), "\"a b\"\n\"with_arguments.lua\"\ntrue");
    value("%%file failing.lua\nlocal x = nil\nx.y = 1\n");
    CHECK_CONTAINS(value("%run failing.lua"), "failing.lua:2: attempt to index a nil value");
    value("%%file failing.lua\nleft = ...\nos.exit(tonumber(left))\nleft = nil");
    CHECK_STR(value("%run failing.lua 0"), "");
    CHECK_INT(r.outcome, TIDE_OK);
    CHECK_STR(value("%run failing.lua 3"), "failing.lua: exit status 3");
    CHECK_STR(value("left"), "\"3\"");
}

TEST(commands_of_the_shell_run) {
    value("!echo from the shell");
    CHECK_STR(caught, "from the shell\n");
    value("lines = !printf 'a\\nb\\n'");
    CHECK_STR(value("lines"), "{\"a\", \"b\"}");
    value("x = 1\n!echo 'among ]] lines'\nx = x + 1");
    CHECK_STR(caught, "among ]] lines\n");
    CHECK_STR(value("x"), "2");
    value("!exit 3");
    CHECK_STR(caught, "(exit status 3)\n");
    value("%%bash\nfor i in 1 2; do echo $i; done\n");
    CHECK_STR(caught, "1\n2\n");
    value("a = 5\nb = a != 5"); /* no command */
    CHECK_INT(r.outcome, TIDE_ERROR);
}

TEST(capture_keeps_what_is_printed) {
    value("%%capture text\nprint(1, nil)\nio.write('x')\n");
    CHECK_STR(caught, "");
    CHECK_STR(value("text"), "\"1\\tnil\\nx\"");
    CHECK_CONTAINS(value("%%capture text\nprint('before')\nerror('inside')\n"), "inside");
    CHECK_STR(value("text"), "\"before\\n\"");
    value("print('again')");
    CHECK_STR(caught, "again\n");
}

TEST(tide_s_own_numbers_are_shown_and_set) {
    value("x = tide.ones(1000)");
    value("%mem");
    CHECK_CONTAINS(caught, "tensors: ");
    CHECK_STR(value("%threads 1"), "1");
    value("%prof x:sum()");
    CHECK_CONTAINS(caught, "sum");
    value("%trace trace.json x:sum()");
    CHECK_CONTAINS(caught, "written to trace.json");
    CHECK_INT(access("trace.json", R_OK), 0);
}

TEST(wrong_uses_are_told_without_a_traceback) {
    static const char *const wrong[][2] = {
        {"%run", "%run: a file expected"},
        {"%run nosuch.lua", "%run: cannot read nosuch.lua"},
        {"%cd /nosuch/folder", "%cd: /nosuch/folder: No such file"},
        {"%threads many", "%threads: a number from 1 on expected, got many"},
        {"%history x", "%history: a number or a range such as 2-5 expected, got x"},
        {"%capture", "%%capture stands above the lines"},
        {"%save /nosuch/folder/file 1", "%save: cannot write"},
        {"%load 'half", "a quote is not closed"},
        {"%nosuch", "no magic %nosuch"},
        {"%timeit -z x = 1", "unknown option -z"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK_CONTAINS(value(wrong[i][0]), wrong[i][1]);
        CHECK_INT(r.n_traceback, 1);
    }
}

TEST(users_register_magics_of_their_own) {
    value("tide.magic.register('twice', function(line, body) return line .. (body or line) end, "
          "'%twice text: two of it')");
    CHECK_STR(value("%twice ab"), "\"abab\"");
    CHECK_STR(value("%%twice ab\ncd"), "\"abcd\"");
    CHECK_STR(value("x = 1\n%twice ab"), "\"abab\"");
    value("%lsmagic");
    CHECK_CONTAINS(caught, "%twice text: two of it\n");
    CHECK_CONTAINS(value("tide.magic.register('x y', print)"), "letters, digits and _");
    CHECK_CONTAINS(value("tide.magic.register(tide.ones(2, 2), print)"), "_, got a tensor");
    CHECK_CONTAINS(value("tide.magic.register('x', 5)"), "a function (arguments, body) expected");
    tide_completions c;
    tide_session_complete(s, "%twi", 4, 4, &c);
    CHECK_INT(c.n, 1);
    tide_completions_clear(&c);
}

static const char *const *typed; /* what read_line hands out */

static char *hand_out_line(void *ctx, const char *prompt, bool password, size_t *len) {
    (void)ctx, (void)prompt, (void)password;
    if (!typed || !*typed)
        return NULL;
    *len = strlen(*typed);
    return strdup(*typed++);
}

TEST(a_breakpoint_shows_frames_and_goes_on) {
    static const char *const lines[] = {
        "n", "n * 2",     "nosuch.field", "x = =",          "up", "limit", "d",
        "l", "limit = 9", "bt",           "global_one = n", "c",  NULL};
    typed = lines;
    value("local limit = 5\nlocal function inner(n)\n  tide.breakpoint()\n  return n + limit\nend\n"
          "local function outer()\n  local z = inner(3)\n  return z\nend\nresult = outer()");
    CHECK_INT(r.outcome, TIDE_OK);
    CHECK_CONTAINS(caught, ":3: in upvalue 'inner'\n    tide.breakpoint()\n");
    CHECK_CONTAINS(caught, "debug> 3\ndebug> 6\n");
    CHECK_CONTAINS(caught, "attempt to index a nil value");
    CHECK_CONTAINS(caught, "unexpected symbol near '='");
    CHECK_CONTAINS(caught, ":7: in local 'outer'\n    local z = inner(3)\n");
    CHECK_CONTAINS(caught, "  n = 3\n");
    CHECK_CONTAINS(caught, "  limit = 5\n");
    CHECK_STR(value("result, limit, global_one"), "12\n9\n3");
}

TEST(a_breakpoint_ends_the_input_or_passes_at_the_end_of_input) {
    static const char *const quit[] = {"q", NULL}, *const none[] = {NULL};
    typed = quit;
    CHECK_CONTAINS(value("tide.breakpoint() after = 1"), "ended at a breakpoint");
    CHECK_STR(value("after == nil"), "true");
    typed = none;
    value("tide.breakpoint() after = 2");
    CHECK_STR(value("after"), "2");
}

TEST(debug_looks_into_what_has_failed) {
    static const char *const lines[] = {"x",     "#list + x", "limit = 9", "u", "u", "list[2]",
                                        "x = 1", "limit",     "bt",        "c", NULL};
    value("%reset");
    CHECK_CONTAINS(value("%debug"), "no input has failed yet");
    value("local limit = 5\nlocal function inner(x)\n  local list = {x, limit}\n"
          "  return list.missing.field\nend\nfunction outer() local y = inner(3) return y end\n"
          "outer()");
    CHECK_INT(r.outcome, TIDE_ERROR);
    value("fine = 1");
    value("%nosuch");
    value("x = = 1");
    typed = lines;
    value("%debug");
    CHECK_INT(r.outcome, TIDE_OK);
    CHECK_CONTAINS(caught,
                   "attempt to index a nil value (field 'missing')\npost mortem (h: help)\n");
    CHECK_CONTAINS(caught, ":4: in upvalue 'inner'\n    return list.missing.field\n");
    CHECK_CONTAINS(caught, "debug> 3\ndebug> 5\n");
    CHECK_CONTAINS(caught, ":6: in global 'outer'");
    CHECK_CONTAINS(caught, "attempt to index a nil value (global 'list')");
    CHECK_CONTAINS(caught, "debug> debug> 5\ndebug>   In");
    CHECK_CONTAINS(value("%debug 3"), "%debug takes no arguments");
    static const char *const again[] = {"l", "x = 4", "q", NULL};
    typed = again;
    value("%debug");
    CHECK_INT(r.outcome, TIDE_OK);
    CHECK_CONTAINS(caught, "  limit = 9\n  x = 3\n  list = {3, 5}\n");
    CHECK_CONTAINS(caught, "'x' is a local of a function that waits or has ended: it can't be set");
    value("%reset");
    CHECK_CONTAINS(value("%debug"), "no input has failed yet");
}

TEST(debug_takes_any_error_and_any_depth) {
    static const char *const lines[] = {"n", "bt", "d", "nosuch()", "error({})", "h", NULL};
    value("function deep(n) if n == 0 then error({code = 7}) end return 1 + deep(n - 1) end "
          "deep(500)");
    typed = lines;
    value("%debug");
    CHECK_CONTAINS(caught, "code = 7");
    CHECK_CONTAINS(caught, "debug> 0\n");
    CHECK_CONTAINS(caught, "this is the innermost frame");
    CHECK_CONTAINS(caught, "attempt to call a nil value (global 'nosuch')");
    CHECK_CONTAINS(caught, "q  leaves, too");
    CHECK_CONTAINS(value("function endless() return 1 + endless() end endless()"),
                   "stack overflow");
    value("%debug");
    CHECK_INT(r.outcome, TIDE_OK);
    value("co = coroutine.wrap(function() local inside = 1 error('within') end) co()");
    value("%debug");
    CHECK_CONTAINS(caught, "within");
}

int main(void) {
    char folder[] = "/tmp/tide-commands-XXXXXX";
    if (!mkdtemp(folder) || chdir(folder) != 0)
        return 1;
    tide_frontend frontend = {.write = catch_output, .read_line = hand_out_line};
    s = tide_session_new(&frontend);
    if (!s)
        return 1;
    RUN(who_and_whos_list_what_was_made);
    RUN(inputs_are_listed_saved_and_run);
    RUN(commands_of_the_shell_run);
    RUN(capture_keeps_what_is_printed);
    RUN(tide_s_own_numbers_are_shown_and_set);
    RUN(wrong_uses_are_told_without_a_traceback);
    RUN(users_register_magics_of_their_own);
    RUN(a_breakpoint_shows_frames_and_goes_on);
    RUN(a_breakpoint_ends_the_input_or_passes_at_the_end_of_input);
    RUN(debug_looks_into_what_has_failed);
    RUN(debug_takes_any_error_and_any_depth);
    value("!rm -f saved.lua with_arguments.lua failing.lua trace.json");
    CHECK_INT(rmdir(folder), 0);
    tide_result_clear(&r);
    tide_session_free(s);
    return check_finish();
}
