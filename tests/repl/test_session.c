/* test_session.c: the session through its C interface, with a front end that catches everything. */
#include "repl/session/session.h"

#include "tests/check.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* ---- a front end ---- */

static struct {
    char out[65536], err[65536], shown[4096], id[64];
    size_t out_len, err_len;
    int displays, updates, clears;
    const char *const *lines; /* what read_line hands out */
} caught;

static void catch_write(void *ctx, tide_stream stream, const char *bytes, size_t len) {
    (void)ctx;
    char *text = stream == TIDE_STDOUT ? caught.out : caught.err;
    size_t *used = stream == TIDE_STDOUT ? &caught.out_len : &caught.err_len;
    if (*used + len >= sizeof caught.out)
        return;
    memcpy(text + *used, bytes, len);
    *used += len;
    text[*used] = '\0';
}

static void catch_display(void *ctx, const tide_bundle *bundle, const char *id, bool update) {
    (void)ctx;
    caught.displays++;
    caught.updates += update;
    snprintf(caught.id, sizeof caught.id, "%s", id ? id : "");
    snprintf(caught.shown, sizeof caught.shown, "%s", bundle->entries[0].data);
}

static void catch_clear(void *ctx, bool wait) {
    (void)ctx;
    caught.clears += wait ? 10 : 1;
}

static char *hand_out_line(void *ctx, const char *prompt, bool password, size_t *len) {
    (void)ctx, (void)prompt, (void)password;
    if (!caught.lines || !*caught.lines)
        return NULL;
    *len = strlen(*caught.lines);
    return strdup(*caught.lines++);
}

static tide_session *open_session(void) {
    memset(&caught, 0, sizeof caught);
    tide_frontend frontend = {.write = catch_write,
                              .display = catch_display,
                              .clear_output = catch_clear,
                              .read_line = hand_out_line};
    return tide_session_new(&frontend);
}

/* The session most tests share: what one of them leaves broken, the next ones find. */
static tide_session *s;
static tide_result r;

static void eval(const char *code) {
    tide_result_clear(&r);
    caught.out_len = caught.err_len = 0;
    caught.out[0] = caught.err[0] = '\0';
    tide_session_eval(s, code, strlen(code), false, &r);
}

/* text/plain of the value of code; the error message when it failed; NULL: no value. */
static const char *value(const char *code) {
    eval(code);
    if (r.outcome != TIDE_OK)
        return r.evalue;
    return r.value.n ? r.value.entries[0].data : NULL;
}

static const char *error(const char *code) {
    eval(code);
    CHECK_INT(r.outcome, TIDE_ERROR);
    return r.evalue;
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

static void check_alive(void) {
    CHECK_STR(value("1 + 1"), "2");
}

/* ---- evaluation ---- */

TEST(expressions_give_their_values) {
    CHECK_STR(value("1 + 1"), "2");
    CHECK_STR(value("10 / 4"), "2.5");
    CHECK_STR(value("1, nil, 'x'"), "1\nnil\n\"x\"");
    CHECK_STR(value("nil"), NULL);
    CHECK_STR(value("(function() return nil end)()"), NULL);
    CHECK_STR(value("nil, nil"), NULL);
    CHECK_STR(value("(function() end)()"), NULL);
    CHECK_STR(value("x = 5"), NULL);
    CHECK_STR(value("x"), "5");
    CHECK_STR(value("  \n\t "), NULL);
    CHECK_STR(value("-- only a comment"), NULL);
    CHECK_INT(r.outcome, TIDE_OK);
}

TEST(an_expression_may_end_an_input) {
    CHECK_STR(value("local a = 5\na * 2"), "10");
    CHECK_STR(value("local a = 5; a, a + 1"), "5\n6");
    CHECK_STR(value("local t = {1,\n2}\n#t +\n  1 -- three"), "3");
    CHECK_STR(value("local a = 5\na * 2;"), NULL);
    value("do local a = 5\na end");
    CHECK_INT(r.outcome, TIDE_ERROR);
    value("x = = 1");
    CHECK_INT(r.outcome, TIDE_ERROR);
}

TEST(semicolon_silences_and_underscore_remembers) {
    CHECK_STR(value("41"), "41");
    CHECK_STR(value("_ + 1"), "42");
    CHECK_STR(value("7;"), NULL);
    CHECK_STR(value("7 -- a comment;"), "7");
    CHECK_STR(value("nil"), NULL);
    CHECK_STR(value("_"), "7");
    tide_result silent;
    tide_session_eval(s, "99", 2, true, &silent);
    CHECK_STR(silent.value.entries[0].data, "99");
    tide_result_clear(&silent);
    CHECK_STR(value("_"), "7");
}

TEST(inputs_are_counted_unless_silent_or_empty) {
    int before = tide_session_count(s);
    eval("1");
    eval("");
    eval("error('counts too')");
    tide_result silent;
    tide_session_eval(s, "1", 1, true, &silent);
    tide_result_clear(&silent);
    CHECK_INT(tide_session_count(s), before + 2);
}

TEST(variables_to_be_closed_end_with_their_input) {
    eval("local c <close> = setmetatable({}, {__close = function() closed = true end})");
    CHECK_STR(value("c == nil"), "true");
    CHECK_STR(value("closed"), "true");
}

TEST(binary_chunks_are_refused) {
    eval("dumped = string.dump(function() end)");
    CHECK_CONTAINS(error("\033Lua"), "attempt to load a binary chunk");
    check_alive();
}

TEST(bytes_of_all_kinds_pass) {
    tide_result_clear(&r);
    tide_session_eval(s, "#'a\0b'", 6, false, &r);
    CHECK_STR(r.value.entries[0].data, "3");
    CHECK_STR(value("'\xff\xfe'"), "\"\\xFF\\xFE\"");
    char *big = malloc(1 << 20);
    REQUIRE(big);
    memset(big, ' ', (1 << 20) - 1);
    memcpy(big, "return #'", 9);
    big[(1 << 20) - 2] = '\'';
    big[(1 << 20) - 1] = '\0';
    CHECK_STR(value(big), "1048565");
    memset(big, '(', (1 << 20) - 1);
    CHECK_CONTAINS(error(big), "C stack overflow");
    free(big);
    check_alive();
}

TEST(expression_gives_a_bundle_and_takes_no_statement) {
    tide_result e;
    tide_session_expression(s, "2 * 21", 6, &e);
    CHECK_INT(e.outcome, TIDE_OK);
    CHECK_STR(e.value.entries[0].type, "text/plain");
    CHECK_STR(e.value.entries[0].data, "42");
    tide_result_clear(&e);
    tide_session_expression(s, "y = 2", 5, &e);
    CHECK_INT(e.outcome, TIDE_ERROR);
    CHECK_STR(e.ename, "SyntaxError");
    tide_result_clear(&e);
}

/* ---- display ---- */

TEST(strings_are_quoted) {
    CHECK_STR(value("'a\\nb\\t\\0c'"), "\"a\\nb\\t\\0c\"");
    CHECK_STR(value("'\\0' .. '1'"), "\"\\x001\"");
    CHECK_STR(value("[[\\0]] .. '03'"), "\"\\\\003\"");
    CHECK_STR(value("setmetatable({}, {__name = 'a\\n\\xFF'})"), "a\\n\\xFF {}");
    CHECK_STR(value("'say \"hi\"'"), "'say \"hi\"'");
    CHECK_STR(value("[[it's \"x\"]]"), "\"it's \\\"x\\\"\"");
    CHECK_STR(value("'grün'"), "\"grün\"");
}

TEST(tables_are_shown_sorted_and_compact) {
    CHECK_STR(value("{}"), "{}");
    CHECK_STR(value("{3, 1, 2}"), "{3, 1, 2}");
    CHECK_STR(value("{b = 2, a = {x = 'y'}, 1}"), "{1, a = {x = \"y\"}, b = 2}");
    CHECK_STR(value("{['not a name'] = 1, ['end'] = 2, [10] = 3}"),
              "{[10] = 3, [\"end\"] = 2, [\"not a name\"] = 1}");
    CHECK_STR(value("setmetatable({1}, {__name = 'Point'})"), "Point {1}");
    CHECK_CONTAINS(value("(function() local t = {} for i = 1, 60 do t[i] = i end return t end)()"),
                   "{\n  1, 2, 3,");
}

TEST(tables_know_limits) {
    CHECK_STR(value("(function() local t = {} t.me = t t.list = {t} return t end)()"),
              "{list = {<cycle>}, me = <cycle>}");
    CHECK_CONTAINS(value("(function() local t = {} for i = 1, 1e5 do t[i] = i end return t end)()"),
                   "… 99900 more");
    CHECK_CONTAINS(
        value("(function() local t = {} for i = 1, 1e5 do t['k' .. i] = i end return t end)()"),
        "… 99900 more");
    CHECK_CONTAINS(value("(function() local t = {} for i = 1, 1e5 do t = {t} end return t end)()"),
                   "{…}");
    CHECK(strlen(value("_G")) < 20000);
}

TEST(functions_show_where_they_are_from) {
    CHECK_STR(value("print"), "function print  -- built in");
    CHECK_STR(value("math.sin"), "function math.sin  -- built in");
    eval("function area(w, h, ...) return w * h end");
    CHECK_CONTAINS(value("area"), "function area(w, h, ...)  -- In[");
}

TEST(display_survives_what_values_do) {
    CHECK_CONTAINS(value("setmetatable({}, {__tostring = function() error('bad') end})"), "bad");
    CHECK_CONTAINS(value("setmetatable({}, {__tostring = function() return {} end})"),
                   "must return a string");
    CHECK_CONTAINS(value("(function() local t = setmetatable({}, {}) getmetatable(t).__tostring = "
                         "function() return tostring(t) end return t end)()"),
                   "overflow");
    CHECK_STR(
        value("setmetatable({}, {__index = function() error('index') end, "
              "__pairs = function() error('pairs') end, __len = function() error('len') end})"),
        "{}");
    CHECK_CONTAINS(value("setmetatable({}, {__display = function() error('no') end})"), "no");
    check_alive();
}

TEST(display_hook_gives_a_bundle) {
    eval("setmetatable({}, {__display = function() return {['text/html'] = '<b>x</b>', "
         "['text/plain'] = 'x', junk = 1} end})");
    CHECK_INT(r.value.n, 2);
    CHECK_STR(r.value.entries[0].type, "text/plain");
    CHECK_STR(r.value.entries[0].data, "x");
    CHECK_STR(r.value.entries[1].type, "text/html");
    CHECK_STR(r.value.entries[1].data, "<b>x</b>");
}

TEST(tide_display_reaches_the_front_end) {
    eval("tide.display({1, 2})");
    CHECK_STR(caught.shown, "{1, 2}");
    eval("tide.display(3, {id = 'bar', update = true})");
    CHECK_STR(caught.id, "bar");
    CHECK_INT(caught.updates, 1);
    CHECK_CONTAINS(error("tide.display(1, {update = true})"), "needs the id");
    CHECK_CONTAINS(error("tide.display()"), "bad argument #1 to 'display'");
    CHECK_CONTAINS(error("tide.display.html(1)"), "html: argument 1 (html): expected a string");
    CHECK_CONTAINS(error("tide.display(1, {id = {}})"),
                   "bad argument #2 to 'display' (id is a table, expected a string)");
    eval("tide.clear_output(true)");
    CHECK_INT(caught.clears, 10);
}

/* ---- errors ---- */

TEST(errors_have_message_first_and_no_frames_of_ours) {
    CHECK_CONTAINS(error("local function f() error('boom') end f()"), ":1: boom");
    CHECK_STR(r.ename, "Error");
    CHECK_CONTAINS(r.traceback[0], "boom");
    CHECK_CONTAINS(traceback(), "stack traceback:");
    CHECK_CONTAINS(traceback(), "in main chunk");
    CHECK(!strstr(traceback(), "[C]: in ?"));
    error("%timeit -n 1 error('boom')");
    CHECK_CONTAINS(traceback(), "%timeit:1: in main chunk");
    CHECK(!strstr(traceback(), "[C]: in ?"));
}

TEST(syntax_errors_show_line_and_caret) {
    eval("x = 1\ny = = 2");
    CHECK_STR(r.ename, "SyntaxError");
    CHECK_CONTAINS(r.evalue, ":2: unexpected symbol near '='");
    CHECK_CONTAINS(traceback(), "    y = = 2\n        ^\n");
    eval("1 + + 2");
    CHECK_CONTAINS(traceback(), "    1 + + 2\n        ^\n");
    eval("f(1, ");
    CHECK_CONTAINS(traceback(), "    f(1,\n        ^\n");
    eval("s = 'äö' s = = 1");
    CHECK_CONTAINS(traceback(), "\n                 ^\n");
    eval("x = 'unfinished\ny = 1");
    CHECK_CONTAINS(traceback(), "\n        ^\n");
    eval("x = 3 ° 4");
    CHECK_CONTAINS(traceback(), "\n          ^\n");
}

TEST(error_objects_of_every_kind_survive) {
    CHECK_STR(error("error({code = 5})"), "(error object is a table value) {code = 5}");
    CHECK_STR(error("error(setmetatable({}, {__name = 'Mine', __tostring = function() return 'msg' "
                    "end}))"),
              "msg");
    CHECK_STR(r.ename, "Mine");
    CHECK_STR(r.traceback[0], "Mine: msg");
    CHECK_CONTAINS(error("error(setmetatable({}, {__tostring = function() error('worse') end}))"),
                   "worse");
    CHECK_STR(error("error()"), "(error object is a nil value)");
    CHECK_STR(error("error(true)"), "(error object is a boolean value)");
    CHECK_STR(error("error(42)"), "42");
    CHECK_STR(error("error('two\\nlines', 0)"), "two\nlines");
    CHECK_STR(r.traceback[1], "lines");
    check_alive();
}

TEST(the_session_outlives_its_errors) {
    CHECK_CONTAINS(error("local function f() return 1 + f() end f()"), "stack overflow");
    CHECK_CONTAINS(error("string.rep('x', 1 << 62)"), "too large");
    CHECK_CONTAINS(error("coroutine.wrap(function() error('inside') end)()"), "inside");
    eval("setmetatable({}, {__gc = function() error('gc') end}) collectgarbage()");
    CHECK_CONTAINS(error("xpcall(error, function() error('again') end) error('last')"), "last");
    CHECK_CONTAINS(
        error("local x <close> = setmetatable({}, {__close = function() error('closing') "
              "end}) error('first')"),
        "closing");
    check_alive();
}

TEST(the_library_may_be_broken_by_its_user) {
    tide_session *mine = s;
    s = open_session();
    eval("string = nil table = nil tostring = nil pairs = nil require = nil math = nil");
    CHECK_STR(value("{1, 'x', {y = 2}}"), "{1, \"x\", {y = 2}}");
    CHECK_CONTAINS(error("prnt()"), "did you mean 'print'?");
    tide_completions c;
    tide_session_complete(s, "pri", 3, 3, &c);
    CHECK_INT(c.n, 1);
    tide_completions_clear(&c);
    eval("tide = nil setmetatable(_G, {__index = function(_, k) error('no ' .. k) end, "
         "__newindex = function() error('sealed') end})");
    CHECK_STR(value("5"), "5");
    CHECK_STR(value("_"), "5");
    tide_session_free(s);
    s = mine;
}

TEST(names_that_are_nil_bring_a_suggestion) {
    CHECK_CONTAINS(error("pritn('x')"), "did you mean 'print'?");
    CHECK_CONTAINS(error("string.fromat('x')"), "did you mean 'format'?");
    CHECK_CONTAINS(error("local lib = string\nlib.uper('x')"), "did you mean 'upper'?");
    CHECK_CONTAINS(error("('x'):uper()"), "did you mean 'upper'?");
    CHECK_CONTAINS(error("tide.displya(1)"), "did you mean 'display'?");
    CHECK_CONTAINS(error("Math.sin(1)"), "did you mean 'math'?");
    CHECK(!strstr(error("completely_unknown_name()"), "did you mean"));
}

/* ---- streams ---- */

TEST(output_of_every_kind_is_caught_in_order) {
    eval("print('a', nil, 1) io.write('b', 2, '\\n') io.stdout:write('c\\n') "
         "print(setmetatable({}, {__tostring = function() return 'd' end}))");
    CHECK_STR(caught.out, "a\tnil\t1\nb2\nc\nd\n");
    eval("io.stderr:write('e\\n')");
    CHECK_STR(caught.err, "e\n");
    CHECK_STR(value("io.type(io.stdout)"), "\"file\"");
    CHECK_CONTAINS(error("assert(io.stdout:close())"), "cannot close standard file");
    eval("io.stdout:write('still ', 1.5):write('!')");
    CHECK_STR(caught.out, "still 1.5!");
    eval("io.stdout:setvbuf('full') io.write('buffered') io.flush() io.stdout:setvbuf('no')");
    CHECK_STR(caught.out, "buffered");
    eval("warn('@on') warn('a', 'b') warn('@off') warn('c')");
    CHECK_STR(caught.err, "Lua warning: ab\n");
}

TEST(reading_asks_the_front_end) {
    static const char *const lines[] = {"first", "12 13", "", "rest", NULL};
    caught.lines = lines;
    CHECK_STR(value("io.read()"), "\"first\"");
    CHECK_STR(value("io.read('n', 'n', 'l')"), "12\n13\n\"\"");
    CHECK_STR(value("io.read('L')"), "\"\\n\"");
    CHECK_STR(value("io.read('a')"), "\"rest\\n\"");
    CHECK_STR(value("io.read() == nil"), "true");
    static const char *const more[] = {"later", NULL};
    caught.lines = more;
    CHECK_STR(value("io.stdin:read()"), "\"later\"");
}

TEST(what_is_left_of_a_line_ends_with_the_evaluation) {
    static const char *const lines[] = {"12 secret", "-7x", "new", NULL};
    caught.lines = lines;
    CHECK_STR(value("io.read(3)"), "\"12 \"");
    CHECK_STR(value("io.read('n')"), "-7");
    CHECK_STR(value("io.read('a')"), "\"new\\n\"");
}

/* ---- leaving ---- */

TEST(exit_unwinds_and_leaves_the_state_whole) {
    eval("os.exit(3)");
    CHECK_INT(r.outcome, TIDE_EXIT);
    CHECK_INT(r.exit_code, 3);
    eval("os.exit()");
    CHECK_INT(r.exit_code, 0);
    eval("os.exit(false)");
    CHECK_INT(r.exit_code, 1);
    eval("while true do pcall(os.exit, 4) end");
    CHECK_INT(r.outcome, TIDE_EXIT);
    CHECK_INT(r.exit_code, 4);
    eval("reached = false; coroutine.wrap(function() pcall(function() os.exit(5) end) reached = "
         "true "
         "end)() reached = true");
    CHECK_INT(r.exit_code, 5);
    CHECK_STR(value("reached"), "false");
    CHECK_CONTAINS(error("os.exit('text')"), "number expected");
    check_alive();
}

TEST(exit_closes_only_when_asked) {
    eval("closed = 0; local c <close> = setmetatable({}, {__close = function() closed = closed + 1 "
         "end}) "
         "os.exit(0)");
    CHECK_INT(r.outcome, TIDE_EXIT);
    CHECK_STR(value("closed"), "0");
    eval("local c <close> = setmetatable({}, {__close = function() closed = closed + 1 end}) "
         "os.exit(0, true)");
    CHECK_INT(r.outcome, TIDE_EXIT);
    CHECK_STR(value("closed"), "1");
}

/* ---- interrupts ---- */

static atomic_bool evaluated;

/* Interrupts after a while, and again until it is heard: the first may come before the evaluation.
 */
static void *interrupt_soon(void *delay_ms) {
    struct timespec delay = {0, *(int *)delay_ms * 1000000L};
    do {
        nanosleep(&delay, NULL);
        tide_session_interrupt(s);
    } while (!atomic_load(&evaluated));
    return NULL;
}

/* Evaluates code that would not end, and interrupts it from another thread. */
static void interrupted_after(const char *code, int delay_ms) {
    pthread_t thread;
    atomic_store(&evaluated, false);
    REQUIRE(pthread_create(&thread, NULL, interrupt_soon, &delay_ms) == 0);
    eval(code);
    atomic_store(&evaluated, true);
    pthread_join(thread, NULL);
    if (!CHECK(r.outcome == TIDE_INTERRUPTED && r.seconds < 30))
        fprintf(stderr, "  not interrupted in time: %s (%g s)\n", code, r.seconds);
    CHECK_STR(r.ename, "Interrupt");
    CHECK_STR(r.evalue, "interrupted");
}

static void interrupted(const char *code) {
    interrupted_after(code, 30);
    check_alive();
}

TEST(interrupt_stops_loops_of_every_kind) {
    interrupted("while true do end");
    interrupted("while true do pcall(error) end");
    interrupted("while true do pcall(function() while true do end end) end");
    interrupted(
        "while true do xpcall(function() while true do end end, function(m) return m end) end");
    interrupted("local function f() return f() end f()");
    interrupted("local t = {} while true do t[1] = ('x'):rep(100) .. #t end");
    interrupted("('x'):rep(2e7):gsub('x', string.upper)");
    interrupted("repeat local ok = pcall(string.rep, 'x', -1) until not ok");
    interrupted("return setmetatable({}, {__tostring = function() while true do end end})");
    interrupted("return {setmetatable({}, {__tostring = function() while true do end end})}");
    interrupted("load(function() while true do end end) while true do end");
}

TEST(interrupt_stops_message_handlers) {
    interrupted("xpcall(function() while true do end end, function() while true do end end)");
    interrupted("xpcall(error, function() while true do end end)");
    interrupted("coroutine.wrap(function() xpcall(error, function() while true do end end) end)()");
    interrupted("local function nest(n) while true do xpcall(nest, function() while true do end "
                "end, n + 1) end end nest(1)");
    CHECK_STR(value("(select(2, xpcall(error, function(m) return m .. '!' end, 'x', 0)))"),
              "\"x!\"");
}

TEST(interrupt_stops_coroutines) {
    interrupted("coroutine.wrap(function() while true do end end)()");
    interrupted(
        "while true do coroutine.resume(coroutine.create(function() while true do end end)) end");
    interrupted("local co = coroutine.wrap(function() while true do coroutine.yield() end end) "
                "while true do co() end");
    interrupted(
        "coroutine.wrap(function() coroutine.wrap(function() pcall(function() while true do end "
        "end) while true do end end)() end)()");
    interrupted(
        "local co = coroutine.create(function() local c <close> = setmetatable({}, {__close = "
        "function() while true do end end}) coroutine.yield() end) coroutine.resume(co) "
        "coroutine.close(co)");
}

TEST(interrupt_runs_what_must_be_closed) {
    interrupted(
        "closed = 0; local c <close> = setmetatable({}, {__close = function() local n = 0 for i = "
        "1, 100 do n = n + 1 end closed = closed + 1 end}) while true do end");
    CHECK_STR(value("closed"), "1");
    interrupted(
        "local c <close> = setmetatable({}, {__close = function() pcall(type, 1) closed = closed + "
        "1 end}) pcall(function() while true do end end)");
    CHECK_STR(value("closed"), "2");
}

TEST(interrupt_while_nothing_runs_does_nothing) {
    tide_session_interrupt(s);
    check_alive();
    CHECK_STR(value("(function() for i = 1, 1e6 do end return 'done' end)()"), "\"done\"");
}

TEST(interrupt_hundred_times_in_a_row) {
    for (int i = 0; i < 100; i++)
        interrupted_after(
            i % 2 ? "while true do coroutine.wrap(function() for i = 1, 10 do end end)() end"
                  : "while true do pcall(pcall, error) end",
            1);
    check_alive();
}

TEST(coroutines_and_pcall_behave_as_lua_s_own) {
    CHECK_STR(value("select('#', pcall(function() return 1, nil, 3 end))"), "4");
    CHECK_STR(value("pcall(error, 'x')"), "false\n\"x\"");
    CHECK_CONTAINS(error("pcall()"), "bad argument #1 to 'pcall' (value expected)");
    CHECK_STR(value("xpcall(error, function(m) return m .. '!' end, 'x')"), "false\n\"x!\"");
    CHECK_STR(value("xpcall(function(...) return select('#', ...), ... end, print, nil, 2)"),
              "true\n2\nnil\n2");
    CHECK_STR(value("coroutine.wrap(function(a) local ok, b = pcall(coroutine.yield, a + 1) return "
                    "b end)(1)"),
              "2");
    eval("co = coroutine.wrap(function(a) local ok, b = pcall(coroutine.yield, a) return ok, b "
         "end) co(1)");
    CHECK_STR(value("co(7)"), "true\n7");
    CHECK_STR(value("coroutine.resume(coroutine.create(function(...) return ... end), 1, 2)"),
              "true\n1\n2");
    CHECK_STR(value("coroutine.resume(coroutine.create(error), 'e')"), "false\n\"e\"");
    CHECK_CONTAINS(error("co()"), "cannot resume dead coroutine");
    CHECK_STR(value("coroutine.isyieldable()"), "false");
}

/* ---- magics ---- */

TEST(timeit_prints_the_summary) {
    eval("%timeit -n 100 -r 3 math.sin(1)");
    CHECK_CONTAINS(caught.out, " per loop (mean ± std. dev. of 3 runs, 100 loops each)\n");
    CHECK_INT(r.value.n, 0);
    eval("%timeit -n10 -r2 -q -o 1 + 1");
    CHECK_STR(caught.out, "");
    CHECK_CONTAINS(r.value.entries[0].data, "of 2 runs, 10 loops each");
    CHECK_STR(value("#_.timings"), "2");
    eval("calls = 0 setups = 0");
    eval("%%timeit -n 5 -r 2 setups = setups + 1; local step = 1\ncalls = calls + step");
    CHECK_INT(r.outcome, TIDE_OK);
    CHECK_STR(value("calls, setups"), "10\n2");
}

TEST(timeit_refuses_nonsense) {
    CHECK_CONTAINS(error("%timeit"), "nothing to time");
    CHECK_CONTAINS(error("%timeit -n x f()"), "-n takes a whole number");
    CHECK_CONTAINS(error("%timeit -z f()"), "unknown option -z");
    CHECK_CONTAINS(error("%timeit -n 1 return 5"), "must not return");
    CHECK_CONTAINS(error("%timeit 1 +"), "unexpected symbol near <eof>");
    CHECK_STR(r.ename, "SyntaxError");
    CHECK_CONTAINS(error("%timeit -n 1 error('inside')"), "inside");
    CHECK_CONTAINS(error("%timeit -n 1 end while true do"), "near 'end'");
    CHECK_CONTAINS(error("%nosuch 1"), "no magic %nosuch");
    check_alive();
}

TEST(time_shows_both_clocks_and_the_value) {
    CHECK_STR(value("%time 6 * 7"), "42");
    CHECK_CONTAINS(caught.out, "CPU times: user ");
    CHECK_CONTAINS(caught.out, "\nWall time: ");
    eval("%%time\nz = 1\nerror('third line')");
    CHECK_CONTAINS(r.evalue, ":3: third line");
    CHECK_STR(value("z"), "1");
    interrupted("%time while true do end");
    interrupted("%timeit while true do end");
}

TEST(magics_may_stand_among_other_lines) {
    eval("w = 1\n%timeit -n 1 -r 1 w = w + 1\n  %time w = w * 10\nprint('w', w)");
    CHECK_CONTAINS(caught.out, "1 loop each)\n");
    CHECK_CONTAINS(caught.out, "w\t20\n");
    CHECK_STR(value("7\n% 4"), "3");
    CHECK_STR(value("[[\n%time x]]"), "\"%time x\"");
    eval("%lsmagic");
    CHECK_CONTAINS(caught.out, "%timeit");
}

TEST(questions_fill_the_pager) {
    eval("-- Twice as much.\nfunction double(x)\n  return 2 * x\nend");
    eval("?double");
    CHECK_CONTAINS(r.pager, "double(x)");
    CHECK_CONTAINS(r.pager, "Twice as much.");
    CHECK(!strstr(r.pager, "return 2"));
    eval("double??");
    CHECK_CONTAINS(r.pager, "return 2 * x");
    eval("?string.rep");
    CHECK_CONTAINS(r.pager, "string.rep");
    CHECK_CONTAINS(error("?no_such_thing"), "nothing is known of 'no_such_thing'");
    eval("?%timeit");
    CHECK_CONTAINS(r.pager, "loops");
}

/* ---- editor's questions ---- */

/* The matches for code (the cursor at its end), joined by blanks. */
static const char *matches(const char *code) {
    static char text[8192];
    tide_completions c;
    size_t len = strlen(code), used = 0;
    tide_session_complete(s, code, len, len, &c);
    text[0] = '\0';
    for (int i = 0; i < c.n && used < sizeof text; i++)
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "%s%s", i ? " " : "", c.matches[i]);
    tide_completions_clear(&c);
    return text;
}

/* What is known of the name at the end of the code; the bundle's text. */
static bool knows(const char *code, const char *part) {
    tide_bundle bundle;
    bool found = tide_session_inspect(s, code, strlen(code), strlen(code), 0, &bundle);
    bool says = found && strstr(bundle.entries[0].data, part);
    if (found)
        tide_bundle_clear(&bundle);
    return says;
}

TEST(a_member_that_is_a_keyword_is_known_but_not_offered) {
    eval("word = {rep = 1, ['repeat'] = function() end}");
    CHECK_STR(matches("word.re"), "rep");
    CHECK_STR(matches("rep"), "repeat");
    CHECK(knows("word.repeat", "function"));
    CHECK(knows("tide.repeat", "x:rep(2, 3) is the same"));
}

TEST(complete_finds_names_fields_and_methods) {
    eval("alpha_one = 1 alpha_two = {beta = {gamma_x = print, gamma_y = 1}}");
    CHECK_STR(matches("alpha_"), "alpha_one alpha_two");
    CHECK_STR(matches("print(alpha_t"), "alpha_two");
    CHECK_STR(matches("alpha_two.be"), "beta");
    CHECK_STR(matches("alpha_two.beta.gam"), "gamma_x gamma_y");
    CHECK_STR(matches("alpha_two['beta'].gam"), "gamma_x gamma_y");
    CHECK_STR(matches("alpha_two.beta:gam"), "gamma_x");
    CHECK_STR(matches("x = string.rep"), "rep");
    CHECK_STR(matches("('x'):upp"), "upper");
    CHECK_STR(matches("whi"), "while");
    CHECK_STR(matches("alpha_two.nothing.x"), "");
    CHECK_STR(matches("local somewhere = 1\nprint(somew"), "somewhere");
    CHECK_STR(matches("-- alpha_"), "");
    CHECK_STR(matches("12"), "");
    CHECK_STR(matches("%ti"), "%time %timeit");
    CHECK_STR(matches("%%timei"), "%%timeit");
    CHECK_STR(matches("%timeit alpha_t"), "alpha_two");
}

TEST(complete_says_what_it_replaces) {
    tide_completions c;
    const char *code = "print(alpha_t, 1)";
    tide_session_complete(s, code, strlen(code), 13, &c);
    REQUIRE(c.n == 1);
    CHECK_INT(c.start, 6);
    CHECK_INT(c.end, 13);
    CHECK_STR(c.types[0], "global");
    tide_completions_clear(&c);
    tide_session_complete(s, "string.re", 9, 999, &c);
    REQUIRE(c.n == 2);
    CHECK_INT(c.start, 7);
    CHECK_STR(c.matches[0], "rep");
    CHECK_STR(c.types[0], "function");
    tide_completions_clear(&c);
}

TEST(complete_follows_index_tables_and_runs_nothing) {
    eval("Base = {go = function() end} Base.__index = Base obj = setmetatable({}, Base)");
    CHECK_STR(matches("obj:g"), "go");
    eval("ran = false trap = setmetatable({}, {__index = function() ran = true end, "
         "__pairs = function() ran = true end, __eq = function() ran = true end, "
         "__tostring = function() ran = true return '' end})");
    CHECK_STR(matches("trap.x.y"), "");
    CHECK_STR(matches("trap."), "");
    tide_bundle bundle;
    if (tide_session_inspect(s, "trap", 4, 4, 1, &bundle))
        tide_bundle_clear(&bundle);
    CHECK_STR(value("ran"), "false");
    eval("loop = setmetatable({}, {}) getmetatable(loop).__index = loop");
    CHECK_STR(matches("loop.x"), "");
}

TEST(complete_names_files_in_strings) {
    char folder[] = "/tmp/tide_complete_XXXXXX", path[64], code[128];
    REQUIRE(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/some-data.csv", folder);
    FILE *file = fopen(path, "w");
    REQUIRE(file);
    fclose(file);
    snprintf(code, sizeof code, "read('%s/some", folder);
    CHECK_STR(matches(code), path);
    snprintf(code, sizeof code, "read('%s/none", folder);
    CHECK_STR(matches(code), "");
    unlink(path);
    rmdir(folder);
    CHECK_STR(matches("read('/no/such/folder/x"), "");
}

static const char *completeness(const char *code, char *indent, size_t size) {
    static const char *const names[] = {"complete", "incomplete", "invalid"};
    return names[tide_session_is_complete(s, code, strlen(code), indent, size)];
}

TEST(is_complete_tells_and_indents) {
    char indent[32];
    CHECK_STR(completeness("1 + 1", indent, sizeof indent), "complete");
    CHECK_STR(completeness("x = 1", indent, sizeof indent), "complete");
    CHECK_STR(completeness("", indent, sizeof indent), "complete");
    CHECK_STR(completeness("for i = 1, 2 do", indent, sizeof indent), "incomplete");
    CHECK_STR(indent, "    ");
    CHECK_STR(completeness("for i = 1, 2 do\n    if x then", indent, sizeof indent), "incomplete");
    CHECK_STR(indent, "        ");
    CHECK_STR(completeness("if x then\n    y()\nelse", indent, sizeof indent), "incomplete");
    CHECK_STR(indent, "    ");
    CHECK_STR(completeness("f(function()", indent, sizeof indent), "incomplete");
    CHECK_STR(indent, "    ");
    CHECK_STR(completeness("x = [[long", indent, sizeof indent), "incomplete");
    CHECK_STR(completeness("1 +", indent, sizeof indent), "incomplete");
    CHECK_STR(indent, "");
    CHECK_STR(completeness("end", indent, sizeof indent), "invalid");
    CHECK_STR(completeness("x = = 1", NULL, 0), "invalid");
    CHECK_STR(completeness("for i = 1, 2 do", indent, 3), "incomplete");
    CHECK_STR(indent, "  ");
}

TEST(is_complete_knows_when_a_quoted_string_cannot_go_on) {
    CHECK_STR(completeness("x = 'abc", NULL, 0), "invalid");
    CHECK_STR(completeness("x = \"abc", NULL, 0), "invalid");
    CHECK_STR(completeness("x = 'abc\\", NULL, 0), "incomplete");
    CHECK_STR(completeness("x = 'abc\\\n", NULL, 0), "incomplete");
    CHECK_STR(completeness("x = 'abc\\\\", NULL, 0), "invalid");
    CHECK_STR(completeness("x = 'abc\\\nd", NULL, 0), "invalid");
    CHECK_STR(completeness("x = 'abc\\z", NULL, 0), "incomplete");
    CHECK_STR(completeness("x = 'abc\\z \n ", NULL, 0), "incomplete");
    CHECK_STR(completeness("x = 'abc\\z \n d", NULL, 0), "invalid");
    CHECK_STR(completeness("f('abc', [[x", NULL, 0), "incomplete");
}

TEST(is_complete_knows_magics) {
    char indent[32];
    CHECK_STR(completeness("%timeit f()", indent, sizeof indent), "complete");
    CHECK_STR(completeness("?print", indent, sizeof indent), "complete");
    CHECK_STR(completeness("print?", indent, sizeof indent), "complete");
    CHECK_STR(completeness("%%timeit", indent, sizeof indent), "incomplete");
    CHECK_STR(completeness("%%timeit\nf()", indent, sizeof indent), "incomplete");
    CHECK_STR(completeness("%%timeit\nf()\n", indent, sizeof indent), "complete");
    CHECK_STR(completeness("x = 1\n%timeit f(x)", indent, sizeof indent), "complete");
}

TEST(inspect_finds_the_name_or_what_is_called) {
    tide_bundle b;
    eval("-- Adds.\nfunction plus(a, b) return a + b end\nlibrary = {plus = plus, size = 3}");
    REQUIRE(tide_session_inspect(s, "x = plus(1, 2)", 14, 5, 0, &b));
    CHECK_CONTAINS(b.entries[0].data, "plus(a, b)");
    CHECK_CONTAINS(b.entries[0].data, "Adds.");
    tide_bundle_clear(&b);
    REQUIRE(tide_session_inspect(s, "library.plus(1, ", 16, 16, 1, &b));
    CHECK_CONTAINS(b.entries[0].data, "return a + b");
    tide_bundle_clear(&b);
    REQUIRE(tide_session_inspect(s, "library.size", 12, 12, 0, &b));
    CHECK_CONTAINS(b.entries[0].data, "number (integer)");
    tide_bundle_clear(&b);
    CHECK(!tide_session_inspect(s, "nowhere", 7, 7, 0, &b));
    CHECK_INT(b.n, 0);
    CHECK(!tide_session_inspect(s, "", 0, 0, 0, &b));
    CHECK(!tide_session_inspect(s, "1 + ", 4, 4, 0, &b));
}

/* ---- history ---- */

TEST(history_lasts_and_numbers_sessions) {
    char path[] = "/tmp/tide_history_XXXXXX";
    int file = mkstemp(path);
    REQUIRE(file >= 0);
    /* junk, a torn entry, and no newline at the end */
    static const char junk[] = "no tabs\n1.1\tx\ty\n1.1\t3\tbad \\q\n\t\t\n1.1\t4\tto";
    REQUIRE(write(file, junk, sizeof junk - 1) == sizeof junk - 1);
    close(file);
    tide_session *mine = s;
    for (int round = 0; round < 2; round++) {
        s = open_session();
        tide_session_history_open(s, path);
        eval(round ? "second = 1" : "first = [[a\tb\\c\nd]]");
        eval("common = 1");
        if (round == 0)
            tide_session_free(s);
    }
    tide_history_list list;
    tide_session_history_tail(s, 3, &list);
    REQUIRE(list.n == 3);
    CHECK_STR(list.entries[0].input, "common = 1");
    CHECK_INT(list.entries[0].session, -1);
    CHECK_INT(list.entries[2].session, 0);
    CHECK_INT(list.entries[2].line, 2);
    tide_history_list_clear(&list);
    tide_session_history_range(s, -1, 1, 2, &list);
    REQUIRE(list.n == 1);
    CHECK_STR(list.entries[0].input, "first = [[a\tb\\c\nd]]");
    tide_history_list_clear(&list);
    tide_session_history_search(s, "*common*", 0, true, &list);
    CHECK_INT(list.n, 1);
    tide_history_list_clear(&list);
    tide_session_history_search(s, "?econd = *", 5, false, &list);
    CHECK_INT(list.n, 1);
    tide_history_list_clear(&list);
    tide_session_free(s);
    s = mine;
    unlink(path);
}

TEST(history_that_cannot_be_written_says_so_once) {
    tide_session *mine = s;
    s = open_session();
    tide_session_history_open(s, "/proc/no/such/history");
    eval("1");
    CHECK_CONTAINS(caught.err, "history is not saved");
    eval("2");
    CHECK_STR(caught.err, "");
    tide_history_list list;
    tide_session_history_tail(s, 10, &list);
    CHECK_INT(list.n, 2);
    tide_history_list_clear(&list);
    tide_session_free(s);
    s = mine;
}

/* ---- with tide ---- */

TEST(tensors_are_displayed_completed_and_explained) {
    eval("x = tide.ones(2, 3)");
    CHECK_CONTAINS(value("x"), "1");
    CHECK_CONTAINS(value("{x}"), "<tensor 2x3>");
    CHECK_CONTAINS(matches("tide.on"), "ones");
    CHECK_CONTAINS(matches("x:su"), "sum");
    CHECK_STR(matches("x.sha"), "shape");
    CHECK_CONTAINS(matches("tide.ones(2, 3):su"), "sum");
    CHECK_CONTAINS(matches("tide.ones(2, 3):exp():su"), "sum");
    CHECK_CONTAINS(error("tide.onse(2)"), "did you mean 'ones'?");
    eval("?tide.matmul");
    CHECK_CONTAINS(r.pager, "matmul(");
    eval("x:sum?");
    CHECK_CONTAINS(r.pager, "sum(");
    CHECK_CONTAINS(value("tide.matmul"), "matmul(");
    CHECK_STR(value("require 'tide' == tide"), "true");
}

TEST(tracebacks_hide_the_calls_within_tide) {
    eval("net = tide.nn.Sequential(tide.nn.Linear(3, 4), tide.nn.ReLU())");
    error("local function forward(x)\n  local y = net(x)\n  return y\nend\n"
          "local z = forward(tide.ones(2, 5))");
    CHECK_CONTAINS(r.evalue, ":2: ");
    CHECK_CONTAINS(traceback(), "]:2: in local 'forward'");
    CHECK_CONTAINS(traceback(), "]:5: in main chunk");
    CHECK(!strstr(traceback(), "tide.nn"));
    CHECK(!strstr(traceback(), "tail calls"));
    error("local function f(x) return x:nothing() end return (function(x) return f(x) end)(1)");
    CHECK_CONTAINS(traceback(), "(...tail calls...)"); /* the user's own */
}

TEST(modules_show_no_private_names) {
    CHECK_CONTAINS(value("tide.optim"), "<module tide.optim: Optimizers: SGD");
    CHECK_CONTAINS(value("{tide.nn.utils}"), "<module tide.nn.utils");
    CHECK(!strstr(value("tide"), "_doc"));
    CHECK_CONTAINS(value("_private_name = 1 return _G"), "_private_name = 1");
    eval("_private_name = nil");
}

TEST(interrupt_stops_kernels_and_restores_contexts) {
    interrupted("local a = tide.randn(1000, 1000) while true do a:matmul(a) end");
    interrupted("local a = tide.randn(2000000) while true do pcall(a.exp, a) end");
    interrupted("local g <close> = tide.no_grad() while true do tide.randn(100000):exp() end");
    CHECK_STR(value("tide.is_grad_enabled()"), "true");
    interrupted("tide.no_grad(function() while true do tide.randn(100000):exp() end end)");
    CHECK_STR(value("tide.is_grad_enabled()"), "true");
}

/* ---- scripts ---- */

TEST(scripts_get_arguments_and_give_errors) {
    char path[] = "/tmp/tide_script_XXXXXX";
    int file = mkstemp(path);
    REQUIRE(file >= 0);
    static const char code[] =
        "#!/usr/bin/env tide\nprint(#arg, arg[1], ...)\nerror('in script')\n";
    REQUIRE(write(file, code, sizeof code - 1) == sizeof code - 1);
    char *argv[] = {path, (char[]){"one"}};
    tide_result_clear(&r);
    caught.out_len = 0;
    tide_session_run_file(s, path, 2, argv, &r);
    CHECK_STR(caught.out, "1\tone\tone\n");
    CHECK_INT(r.outcome, TIDE_ERROR);
    CHECK_CONTAINS(r.evalue, ":3: in script");
    REQUIRE(ftruncate(file, 20) == 0 && pwrite(file, "x = = 1\n", 8, 20) == 8);
    tide_result_clear(&r);
    tide_session_run_file(s, path, 1, argv, &r);
    CHECK_STR(r.ename, "SyntaxError");
    CHECK_CONTAINS(traceback(), "    x = = 1\n        ^\n");
    close(file);
    unlink(path);
    tide_result_clear(&r);
    tide_session_run_file(s, path, 1, argv, &r);
    CHECK_INT(r.outcome, TIDE_ERROR);
    CHECK_CONTAINS(r.evalue, "cannot open");
    CHECK_INT(r.n_traceback, 1);
}

int main(void) {
    s = open_session();
    if (!s)
        return 1;
    RUN(expressions_give_their_values);
    RUN(an_expression_may_end_an_input);
    RUN(semicolon_silences_and_underscore_remembers);
    RUN(inputs_are_counted_unless_silent_or_empty);
    RUN(variables_to_be_closed_end_with_their_input);
    RUN(binary_chunks_are_refused);
    RUN(bytes_of_all_kinds_pass);
    RUN(expression_gives_a_bundle_and_takes_no_statement);
    RUN(strings_are_quoted);
    RUN(tables_are_shown_sorted_and_compact);
    RUN(tables_know_limits);
    RUN(functions_show_where_they_are_from);
    RUN(display_survives_what_values_do);
    RUN(display_hook_gives_a_bundle);
    RUN(tide_display_reaches_the_front_end);
    RUN(errors_have_message_first_and_no_frames_of_ours);
    RUN(syntax_errors_show_line_and_caret);
    RUN(error_objects_of_every_kind_survive);
    RUN(the_session_outlives_its_errors);
    RUN(the_library_may_be_broken_by_its_user);
    RUN(names_that_are_nil_bring_a_suggestion);
    RUN(output_of_every_kind_is_caught_in_order);
    RUN(reading_asks_the_front_end);
    RUN(what_is_left_of_a_line_ends_with_the_evaluation);
    RUN(exit_unwinds_and_leaves_the_state_whole);
    RUN(exit_closes_only_when_asked);
    RUN(interrupt_stops_loops_of_every_kind);
    RUN(interrupt_stops_message_handlers);
    RUN(interrupt_stops_coroutines);
    RUN(interrupt_runs_what_must_be_closed);
    RUN(interrupt_while_nothing_runs_does_nothing);
    RUN(interrupt_hundred_times_in_a_row);
    RUN(coroutines_and_pcall_behave_as_lua_s_own);
    RUN(timeit_prints_the_summary);
    RUN(timeit_refuses_nonsense);
    RUN(time_shows_both_clocks_and_the_value);
    RUN(magics_may_stand_among_other_lines);
    RUN(questions_fill_the_pager);
    RUN(a_member_that_is_a_keyword_is_known_but_not_offered);
    RUN(complete_finds_names_fields_and_methods);
    RUN(complete_says_what_it_replaces);
    RUN(complete_follows_index_tables_and_runs_nothing);
    RUN(complete_names_files_in_strings);
    RUN(is_complete_tells_and_indents);
    RUN(is_complete_knows_when_a_quoted_string_cannot_go_on);
    RUN(is_complete_knows_magics);
    RUN(inspect_finds_the_name_or_what_is_called);
    RUN(history_lasts_and_numbers_sessions);
    RUN(history_that_cannot_be_written_says_so_once);
    RUN(tensors_are_displayed_completed_and_explained);
    RUN(tracebacks_hide_the_calls_within_tide);
    RUN(modules_show_no_private_names);
    RUN(interrupt_stops_kernels_and_restores_contexts);
    RUN(scripts_get_arguments_and_give_errors);
    tide_result_clear(&r);
    tide_session_free(s);
    return check_finish();
}
