/* test_aborting.c: which cells are not run since one failed, by a clock that the test moves. */
#include "jupyter-kernel/aborting.h"
#include "tests/check.h"

#define MS 1000

/* A header of a session, sent at this time by its own clock; NULL: it has no date. */
static json_t *header(const char *session, const char *date) {
    return json_pack("{s:s, s:s*}", "session", session, "date", date);
}

/* "2026-01-01T00:00:SS.mmm" */
static const char *date_of(int ms) {
    static char text[64];
    snprintf(text, sizeof text, "2026-01-01T00:%02d:%02d.%03dZ", ms / 60000, ms / 1000 % 60,
             ms % 1000);
    return text;
}

/* Is a cell that was sent and received at these times (ms; sent < 0: no date) aborted? */
static bool aborted(tk_aborting *a, const char *session, int sent, int received) {
    json_t *h = header(session, sent < 0 ? NULL : date_of(sent));
    tk_aborting_hear(a, h, received * MS);
    bool covers = tk_aborting_covers(a, h, received * MS);
    json_decref(h);
    return covers;
}

static void fail(tk_aborting *a, const char *session, int at) {
    json_t *h = header(session, date_of(at));
    tk_aborting_hear(a, h, at * MS);
    tk_aborting_begin(a, h, at * MS);
    json_decref(h);
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

TEST(for_a_tenth_of_a_second) {
    tk_aborting a = {0};
    fail(&a, "s", 1000);
    CHECK(aborted(&a, "s", 1001, 1001));
    CHECK(aborted(&a, "s", 1099, 1099));
    CHECK(!aborted(&a, "s", 1351, 1351));
    CHECK(!aborted(&a, "other", 1001, 1001));
    CHECK(!aborted(&a, "s", 2000, 2000));
}

TEST(a_row_of_cells_to_its_end_but_not_for_ever) {
    tk_aborting a = {0};
    fail(&a, "s", 1000);
    int at = 1090;
    for (; aborted(&a, "s", at, at); at += 240)
        CHECK(at < 6000);
    CHECK(at > 5700);
    fail(&a, "s", 10000);
    CHECK(aborted(&a, "s", 10090, 10090) && aborted(&a, "s", 10180, 10180));
    CHECK(!aborted(&a, "s", 10440, 10440));
}

TEST(what_was_sent_before_and_comes_late) {
    tk_aborting a = {0};
    fail(&a, "s", 1000);
    CHECK(aborted(&a, "s", 999, 3000));
    CHECK(!aborted(&a, "s", 2900, 3000));
}

TEST(by_a_clock_that_is_wrong) {
    for (int off = -500; off <= 50000; off += 50500) {
        tk_aborting a = {0};
        json_t *h = header("s", date_of(1000 + off));
        tk_aborting_hear(&a, h, 1000 * MS);
        tk_aborting_begin(&a, h, 1001 * MS);
        json_decref(h);
        CHECK(aborted(&a, "s", 1000 + off, 1300));
        CHECK(!aborted(&a, "s", 1250 + off, 1300));
    }
}

TEST(a_clock_that_is_set_back_aborts_nothing_for_long) {
    tk_aborting a = {0};
    fail(&a, "s", 100000);
    tk_aborting_rest(&a, 104000 * MS);
    CHECK(aborted(&a, "s", 0, 104000));
    tk_aborting_rest(&a, 106000 * MS);
    CHECK(!aborted(&a, "s", 0, 106000));
}

TEST(without_dates_what_waited_in_the_socket) {
    tk_aborting a = {0};
    fail(&a, "s", 1000);
    CHECK(aborted(&a, "s", -1, 1050));
    CHECK(aborted(&a, "s", -1, 3000)); /* served since then without a rest */
    tk_aborting_rest(&a, 3001 * MS);
    CHECK(!aborted(&a, "s", -1, 3001));
}

TEST(as_many_front_ends_as_are_remembered) {
    tk_aborting a = {0};
    char name[32];
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "s%d", i);
        fail(&a, name, 1000);
    }
    CHECK(aborted(&a, "s99", 1001, 1001) && aborted(&a, "s90", 1001, 1001));
    CHECK(!aborted(&a, "s0", 1001, 1001));
}

int main(void) {
    RUN(dates_in_the_forms_that_front_ends_write);
    RUN(nothing_is_aborted_before_a_failure);
    RUN(for_a_tenth_of_a_second);
    RUN(a_row_of_cells_to_its_end_but_not_for_ever);
    RUN(what_was_sent_before_and_comes_late);
    RUN(by_a_clock_that_is_wrong);
    RUN(a_clock_that_is_set_back_aborts_nothing_for_long);
    RUN(without_dates_what_waited_in_the_socket);
    RUN(as_many_front_ends_as_are_remembered);
    return check_finish();
}
