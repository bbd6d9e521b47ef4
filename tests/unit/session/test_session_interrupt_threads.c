/* test_session_interrupt_threads.c: interrupts that come from another thread, where loops look for
 * them, where C functions of Lua's own run, and where nothing heeds them.
 */
#include "repl/session/session.h"

#include "tests/check.h"

#include <lauxlib.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

static tide_session *s;
static tide_result r;

static void eval(const char *code) {
    tide_result_clear(&r);
    tide_session_eval(s, code, strlen(code), false, &r);
}

/* text/plain of the value of code; the error's text; "" where there is neither. */
static const char *value(const char *code) {
    eval(code);
    if (r.outcome != TIDE_OK)
        return r.evalue;
    return r.value.n ? r.value.entries[0].data : "";
}

static void check_alive(void) {
    CHECK_STR(value("1 + 1"), "2");
}

/* Until this is set code is interrupted again and again: the first may come before it is run. */
static atomic_bool evaluated;

static void *interrupt_soon(void *unused) {
    struct timespec delay = {0, 30 * 1000000L};
    do {
        nanosleep(&delay, NULL);
        tide_session_interrupt(s);
    } while (!atomic_load(&evaluated));
    return unused;
}

/* Evaluates code that would not end, and interrupts it from another thread. */
static void interrupted(const char *code) {
    pthread_t thread;
    atomic_store(&evaluated, false);
    REQUIRE(pthread_create(&thread, NULL, interrupt_soon, NULL) == 0);
    eval(code);
    atomic_store(&evaluated, true);
    pthread_join(thread, NULL);
    if (!CHECK(r.outcome == TIDE_INTERRUPTED))
        fprintf(stderr, "  not interrupted: %s\n", code);
    CHECK_STR(r.evalue, "interrupted");
    check_alive();
}

TEST(interrupt_stops_what_would_take_its_hook_or_catch_it) {
    interrupted("while true do debug.sethook() end");
    interrupted("while true do debug.sethook(print, '', 1 << 30) end");
    interrupted("while true do load(function() for i = 1, 1e5 do end end) end");
    interrupted("setmetatable({}, {__gc = function() while true do local t = {} end end}) "
                "collectgarbage()");
    eval("local n = 0 debug.sethook(function() n = n + 1 end, 'l') function lines() return n end");
    interrupted("while true do end");
    CHECK_STR(value("debug.gethook() ~= nil and lines() > 0"), "true");
    interrupted("coroutine.wrap(function() debug.sethook() while true do end end)()");
    CHECK_STR(value("debug.gethook() ~= nil and lines() > 0"), "true");
    eval("debug.sethook()");
}

TEST(interrupt_stops_what_is_recorded_with_its_functions) {
    interrupted("local function f() end tide.profiler.profile{functions = true, function() "
                "while true do f() end end}");
    CHECK_STR(value("debug.gethook() == nil"), "true");
    eval("prof = tide.profiler.profile{functions = true}");
    interrupted("local function f() end local co = coroutine.wrap(function() while true do f() end "
                "end) co()");
    eval("function after() return tide.ones(1) end after() prof:stop()");
    CHECK_STR(value("prof:table():find('after') ~= nil and debug.gethook() == nil"), "true");
}

TEST(interrupt_stops_functions_of_lua_s_own) {
    eval("text = {} for i = 1, 3e6 do text[i] = i end");
    interrupted("while true do table.concat(text, ',') end");
    interrupted("table.concat(setmetatable({}, {__index = function() return 'x' end}), '', 1, "
                "1e12)");
    interrupted("while true do ('x'):rep(5e8) end");
    interrupted("while true do ('x'):rep(2e8, ',') end");
    interrupted("io.lines('/dev/zero', 'a')()");
    eval("text = nil");
}

TEST(interrupt_stops_loops_over_elements) {
    interrupted("tide.ones(1):expand(1 << 40):tolist()");
    interrupted("tide.ones(1):expand(1 << 30, 0):tolist()");
    interrupted("tide.ones(1):expand(1 << 40):max()");
    interrupted("tide.ones(1):expand(1 << 34, 4):sum(1)");
    interrupted("local x = tide.ones(1, 1, {dtype = 'int64'}):expand(300, 1 << 20) "
                "return x:matmul(x:t())");
    eval("t = {1, 2} for i = 1, 6 do local u = {} for j = 1, 60 do u[j] = t end t = u end");
    interrupted("return tide.tensor(t)");
    eval("t = nil");
}

TEST(rep_is_lua_s_own) {
    CHECK_STR(value("('ab'):rep(3)"), "\"ababab\"");
    CHECK_STR(value("('ab'):rep(3, '-+')"), "\"ab-+ab-+ab\"");
    CHECK_STR(value("('ab'):rep(1, '-')"), "\"ab\"");
    CHECK_STR(value("(''):rep(3, ', ')"), "\", , \"");
    CHECK_STR(value("('ab'):rep(0) .. ('ab'):rep(-1) .. (''):rep(5) .. (''):rep(1 << 40)"), "\"\"");
    CHECK_STR(value("#('abc'):rep(700000, 'de') == 5 * 700000 - 2"), "true");
    CHECK_STR(value("('abc'):rep(700000, 'de'):gsub('abcde', '') == 'abc'"), "true");
    CHECK_CONTAINS(value("('ab'):rep(1 << 61)"), "too large");
    CHECK_CONTAINS(value("('ab'):rep()"), "number expected");
}

#ifndef __SANITIZE_THREAD__
static char said[300]; /* by the process on its standard error */
#endif
static int numbers[3];
static atomic_bool finished;

static int is_finished(lua_State *L) {
    lua_pushboolean(L, atomic_load(&finished));
    return 1;
}

/* Interrupts often enough, and reads what is said at the second time. */
static void *interrupt_thrice(void *unused) {
    struct timespec pause = {0, 300 * 1000000L};
    int ends[2], err = dup(STDERR_FILENO);
    if (!CHECK(pipe(ends) == 0))
        return unused;
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    do
        nanosleep(&pause, NULL);
    while ((numbers[0] = tide_session_interrupt(s)) == 0);
    nanosleep(&pause, NULL);
    numbers[1] = tide_session_interrupt(s);
#ifndef __SANITIZE_THREAD__ /* it holds the signal back that makes the other thread answer */
    ssize_t n = read(ends[0], said, sizeof said - 1);
    said[n > 0 ? n : 0] = '\0';
#endif
    nanosleep(&pause, NULL);
    numbers[2] = tide_session_interrupt(s);
    dup2(err, STDERR_FILENO);
    close(err);
    close(ends[0]);
    atomic_store(&finished, true);
    return unused;
}

TEST(what_holds_an_interrupt_is_said_at_the_second) {
    pthread_t thread;
    lua_State *L = tide_session_lua(s);
    lua_register(L, "is_finished", is_finished);
    atomic_store(&finished, false);
    REQUIRE(pthread_create(&thread, NULL, interrupt_thrice, NULL) == 0);
    eval("setmetatable({}, {__gc = function() while not is_finished() do end end}) "
         "collectgarbage()");
    pthread_join(thread, NULL);
    CHECK_INT(r.outcome, TIDE_INTERRUPTED);
    for (int k = 0; k < 3; k++)
        CHECK_INT(numbers[k], k + 1);
#ifndef __SANITIZE_THREAD__
    CHECK_CONTAINS(said, "tide: the interrupt waits for a finalizer (__gc) (");
#endif
    check_alive();
}

TEST(an_interrupt_before_what_it_is_meant_for) {
    CHECK(!tide_session_expect(s, true));
    tide_session_interrupt(s);
    eval("reached = 1");
    CHECK_INT(r.outcome, TIDE_INTERRUPTED);
    CHECK_STR(value("reached == nil"), "true");
    tide_session_expect(s, true);
    tide_session_interrupt(s);
    CHECK(tide_session_expect(s, false));
    tide_session_interrupt(s);
    check_alive();
}

/* Returns its argument, and is interrupted meanwhile. */
static int interrupted_return(lua_State *L) {
    tide_session_interrupt(s);
    lua_settop(L, 1);
    return 1;
}

TEST(what_a_call_returns_has_an_owner_before_the_interrupt_is_raised) {
    lua_register(tide_session_lua(s), "interrupted_return", interrupted_return);
    eval("closed = 0 context = setmetatable({}, {__close = function() closed = closed + 1 end}) "
         "function made() return interrupted_return(context) end");
    eval("local c <close> = interrupted_return(context) while true do end");
    CHECK_INT(r.outcome, TIDE_INTERRUPTED);
    CHECK_STR(value("closed"), "1");
    eval("local c <close> = made() while true do end");
    CHECK_INT(r.outcome, TIDE_INTERRUPTED);
    CHECK_STR(value("closed"), "2");
    eval("local _ <close> = interrupted_return(tide.no_grad()) while true do end");
    CHECK_STR(value("tide.is_grad_enabled()"), "true");
    eval("local c = interrupted_return(context) local d = 1 reached = 2");
    CHECK_INT(r.outcome, TIDE_INTERRUPTED);
    CHECK_STR(value("reached == nil"), "true");
    check_alive();
}

int main(void) {
    s = tide_session_new(&(tide_frontend){0});
    if (!s)
        return 1;
    RUN(interrupt_stops_what_would_take_its_hook_or_catch_it);
    RUN(interrupt_stops_what_is_recorded_with_its_functions);
    RUN(interrupt_stops_functions_of_lua_s_own);
    RUN(interrupt_stops_loops_over_elements);
    RUN(rep_is_lua_s_own);
    RUN(what_holds_an_interrupt_is_said_at_the_second);
    RUN(an_interrupt_before_what_it_is_meant_for);
    RUN(what_a_call_returns_has_an_owner_before_the_interrupt_is_raised);
    tide_result_clear(&r);
    tide_session_free(s);
    return check_finish();
}
