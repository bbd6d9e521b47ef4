/* test_aborting.c: which cells are not run since one failed, by a clock that the test moves. */
#include "jupyter-kernel/aborting.h"
#include "tests/check.h"

#define MS 1000

/* A header of a session, sent at this time by its own clock; NULL: it has no date. */
static json_t *header(const char *session, const char *date) {
    return json_pack("{s:s, s:s*}", "session", session, "date", date);
}

/* "2026-01-01THH:MM:SS.mmmmmm" */
static const char *date_of(double ms) {
    static char text[64];
    long us = (long)(ms * MS), s = us / 1000000;
    snprintf(text, sizeof text, "2026-01-01T%02ld:%02ld:%02ld.%06ldZ", s / 3600, s / 60 % 60,
             s % 60, us % 1000000);
    return text;
}

/* The moment `ms` after the test's beginning, in the middle of a day; the clock that only runs
 * forward counts from elsewhere. */
static tk_moment at(double ms) {
    int64_t us = (int64_t)(ms * MS), midnight = 0;
    tk_aborting_date("2026-01-01T00:00:00Z", &midnight);
    return (tk_moment){7000 * MS + us, midnight + us};
}

/* Is a cell that was sent and received at these times (ms; sent < 0: no date) aborted? It is
 * answered at once. */
static bool aborted_of(tk_aborting *a, const char *session, bool notebook, double sent,
                       double received) {
    json_t *h = header(session, sent < 0 ? NULL : date_of(sent));
    tk_aborting_hear(a, h, at(received));
    bool covers = tk_aborting_covers(a, h, notebook, at(received));
    tk_aborting_answered(a, h, at(received));
    json_decref(h);
    return covers;
}

static bool aborted(tk_aborting *a, const char *session, double sent, double received) {
    return aborted_of(a, session, false, sent, received);
}

/* A cell that was sent at this time by its own clock arrives a tenth of a millisecond later by ours
 * (`off` ms ahead of it), fails, and is answered at `answered`. */
static void fail_off(tk_aborting *a, const char *session, double sent, double off,
                     double answered) {
    json_t *h = header(session, date_of(sent));
    tk_aborting_hear(a, h, at(sent + off + 0.1));
    tk_aborting_begin(a, h);
    tk_aborting_answered(a, h, at(answered));
    json_decref(h);
}

static void fail(tk_aborting *a, const char *session, double sent, double answered) {
    fail_off(a, session, sent, 0, answered);
}

TEST(a_browser_is_slow_from_cell_to_cell_of_a_row) {
    tk_aborting a = {0};
    fail(&a, "browser", 1000, 1001);
    for (int k = 1; k <= 40; k++) /* dated long after the answer to the failed one */
        CHECK(aborted_of(&a, "browser", true, 1001 + 40 * k, 1001.5 + 40 * k));
    CHECK(!aborted_of(&a, "browser", true, 1001 + 40 * 40 + 252, 1001 + 40 * 40 + 253));
    fail(&a, "browser", 9000, 9001);
    CHECK(!aborted_of(&a, "browser", true, 9252, 9253)); /* a person */
    fail(&a, "script", 9000, 9001);
    CHECK(!aborted_of(&a, "script", false, 9001.4, 9001.5)); /* names no cell, and had the answer */
}

TEST(dates_in_the_forms_that_front_ends_write) {
    int64_t us = 0;
    CHECK(tk_aborting_date("1970-01-01T00:00:01Z", &us));
    CHECK_INT(us, 1000000);
    CHECK(tk_aborting_date("2026-11-22T06:36:37.123456Z", &us));
    CHECK_INT(us, 1795329397123456);
    CHECK(tk_aborting_date("2026-11-22T08:36:37.123456+02:00", &us));
    CHECK_INT(us, 1795329397123456);
    CHECK(tk_aborting_date("2026-11-22T01:06:37.123456789-0530", &us));
    CHECK_INT(us, 1795329397123456);
    CHECK(tk_aborting_date("2026-11-22T06:36:37.5", &us));
    CHECK_INT(us, 1795329397500000);
    const char *bad[] = {"",
                         "today",
                         "2026-11-22",
                         "2026-11-22 06:36:37Z",
                         "2026-11-22T06:36",
                         "2026-11-22T06:36:37.1X",
                         "2026-11-22T06:36:37+2",
                         "2026-11-22T06:36:37+02:0x"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(!tk_aborting_date(bad[i], &us));
}

TEST(nothing_is_aborted_before_a_failure) {
    tk_aborting a = {0};
    CHECK(!aborted(&a, "s", 0, 0));
    CHECK(!aborted(&a, "s", -1, 5));
}

TEST(what_is_dated_before_the_answer_left_and_nothing_after_it) {
    tk_aborting a = {0};
    fail(&a, "s", 1000, 1050);
    CHECK(!aborted(&a, "s", 1050.001, 1050.2));
    CHECK(!aborted(&a, "s", 1051, 1051.2));
    CHECK(aborted(&a, "s", 1049.9, 1051.3));
    CHECK(!aborted(&a, "other", 1001, 1051.4));
    CHECK(!aborted(&a, "s", 2000, 2000.1));
}

TEST(a_client_that_waits_for_every_answer_loses_nothing) {
    for (double reaction = 0.01; reaction < 100; reaction *= 3) {
        tk_aborting a = {0};
        fail(&a, "s", 1000, 1001);
        for (double now = 1001 + reaction; now < 1000 + 24 * reaction; now += reaction)
            CHECK(!aborted(&a, "s", now, now + reaction / 2));
    }
}

TEST(what_was_on_its_way_and_comes_late) {
    tk_aborting a = {0};
    fail(&a, "s", 1000, 1001);
    CHECK(aborted(&a, "s", 1000.5, 3000));
    CHECK(!aborted(&a, "s", 3001, 3001.1));
}

/* Each is sent while the one before it is on its way. */
TEST(a_row_to_its_end_but_not_for_ever) {
    tk_aborting a = {0};
    fail(&a, "s", 1000, 1006);
    double sent = 1001;
    for (; aborted(&a, "s", sent, sent + 5); sent += 4)
        CHECK(sent < 7000);
    CHECK(sent > 5900);
    CHECK(!aborted(&a, "s", sent + 1, sent + 1.1));
    fail(&a, "s", 10000, 10001);
    CHECK(aborted(&a, "s", 10000.5, 10002));
    CHECK(!aborted(&a, "s", 10003, 10003.1)); /* it has had all answers */
}

TEST(by_a_clock_that_is_wrong) {
    static const double offs[] = {-7200000, -3000, -20, -1, 12, 3000, 7200000};
    for (size_t i = 0; i < sizeof offs / sizeof *offs; i++) {
        const double off = offs[i], sent = 8000000 - off; /* by its own clock */
        tk_aborting a = {0};
        fail_off(&a, "s", sent, off, 8000050);
        CHECK(aborted(&a, "s", sent + 1, 8000051));
        CHECK(aborted(&a, "s", sent + 49, 8000052));
        for (double now = 56; now < 100; now += 1.5) /* it waits for all answers */
            CHECK(!aborted(&a, "s", sent + now, 8000000 + now + 1));
    }
}

TEST(a_clock_that_is_set_back_aborts_nothing_for_long) {
    tk_aborting a = {0};
    fail(&a, "s", 100000, 100001);
    tk_aborting_rest(&a, at(104000));
    CHECK(aborted(&a, "s", 0, 104000));
    tk_aborting_rest(&a, at(106000));
    CHECK(!aborted(&a, "s", 0, 106000));
}

TEST(without_dates_what_waited_in_the_socket) {
    tk_aborting a = {0};
    fail(&a, "s", 1000, 1001);
    CHECK(!aborted(&a, "t", -1, 1050));
    CHECK(aborted(&a, "s", -1, 3000)); /* served since then without a rest */
    tk_aborting_rest(&a, at(3001));
    CHECK(!aborted(&a, "s", -1, 3001));
    fail(&a, "s", 4000, 4001);
    tk_aborting_rest(&a, at(4002));
    CHECK(aborted(&a, "s", -1, 4004)); /* in doubt */
    CHECK(!aborted(&a, "s", -1, 4010));
}

TEST(as_many_front_ends_as_are_remembered) {
    tk_aborting a = {0};
    char name[32];
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "s%d", i);
        fail(&a, name, 1000, 1010);
    }
    CHECK(aborted(&a, "s99", 1001, 1011) && aborted(&a, "s90", 1001, 1011));
    CHECK(!aborted(&a, "s0", 1001, 1011));
}

int main(void) {
    RUN(dates_in_the_forms_that_front_ends_write);
    RUN(nothing_is_aborted_before_a_failure);
    RUN(what_is_dated_before_the_answer_left_and_nothing_after_it);
    RUN(a_client_that_waits_for_every_answer_loses_nothing);
    RUN(what_was_on_its_way_and_comes_late);
    RUN(a_row_to_its_end_but_not_for_ever);
    RUN(a_browser_is_slow_from_cell_to_cell_of_a_row);
    RUN(by_a_clock_that_is_wrong);
    RUN(a_clock_that_is_set_back_aborts_nothing_for_long);
    RUN(without_dates_what_waited_in_the_socket);
    RUN(as_many_front_ends_as_are_remembered);
    return check_finish();
}
