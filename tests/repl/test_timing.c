/* test_timing.c: the arithmetic of %timeit (profiler/timing.h). */
#include "profiler/timing.h"

#include "tests/check.h"

static const char *time_text(double seconds, int digits) {
    static char text[64];
    return tide_format_time(seconds, digits, text, sizeof text);
}

TEST(times_take_the_unit_that_suits_them) {
    CHECK_STR(time_text(322e-6, 3), "322 µs");
    CHECK_STR(time_text(5.64e-6, 3), "5.64 µs");
    CHECK_STR(time_text(1.5, 3), "1.5 s");
    CHECK_STR(time_text(12.3e-9, 3), "12.3 ns");
    CHECK_STR(time_text(0.25e-9, 3), "0.25 ns");
    CHECK_STR(time_text(0, 3), "0 ns");
    CHECK_STR(time_text(59.94, 3), "59.9 s");
}

TEST(times_that_round_up_change_unit) {
    CHECK_STR(time_text(999.7e-6, 3), "1 ms");
    CHECK_STR(time_text(999.4e-6, 3), "999 µs");
    CHECK_STR(time_text(0.9999, 3), "1 s");
    CHECK_STR(time_text(999.7e-6, 5), "999.7 µs");
}

TEST(long_times_are_spelled_out) {
    CHECK_STR(time_text(62, 3), "1min 2s");
    CHECK_STR(time_text(3600, 3), "1h");
    CHECK_STR(time_text(90061, 3), "1d 1h 1min 1s");
}

TEST(autorange_goes_one_two_five_ten) {
    long loops = 1;
    const long wanted[] = {2, 5, 10, 20, 50, 100, 200};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        loops = tide_autorange_next(loops, 0.001);
        CHECK_INT(loops, wanted[i]);
    }
    CHECK_INT(tide_autorange_next(1000, 0.2), 0);
    CHECK_INT(tide_autorange_next(1000, 0.19), 2000);
    CHECK_INT(tide_autorange_next(5000000000000000000, 0), 0);
}

TEST(summary_has_population_deviation) {
    const double times[] = {2, 4, 4, 4, 5, 5, 7, 9};
    tide_summary s = tide_summarize(times, 8);
    CHECK_CLOSE(s.mean, 5, 1e-12);
    CHECK_CLOSE(s.stdev, 2, 1e-12);
    CHECK_CLOSE(s.best, 2, 0);
    CHECK_CLOSE(s.worst, 9, 0);
    CHECK(tide_summary_spread(&s));
    CHECK(!tide_summary_spread(&(tide_summary){.best = 1e-8, .worst = 9e-8}));
    CHECK(!tide_summary_spread(&(tide_summary){.best = 1, .worst = 3}));
}

TEST(summary_reads_as_in_ipython) {
    char text[256];
    tide_summary s = {.mean = 322e-6, .stdev = 5.64e-6, .n = 7};
    CHECK_STR(tide_format_summary(&s, 1000, 3, text, sizeof text),
              "322 µs ± 5.64 µs per loop (mean ± std. dev. of 7 runs, 1,000 loops each)");
    s.n = 1;
    CHECK_STR(tide_format_summary(&s, 1, 3, text, sizeof text),
              "322 µs ± 5.64 µs per loop (mean ± std. dev. of 1 run, 1 loop each)");
    CHECK_CONTAINS(tide_format_summary(&s, 10000000, 3, text, sizeof text), "10,000,000 loops");
}

TEST(clocks_move_forward) {
    double before = tide_clock_wall();
    tide_cpu_times cpu = tide_clock_cpu();
    volatile double x = 1;
    while (tide_clock_wall() - before < 0.02)
        x = x * 1.000001;
    tide_cpu_times after = tide_clock_cpu();
    CHECK(after.user + after.sys > cpu.user + cpu.sys);
}

int main(void) {
    RUN(times_take_the_unit_that_suits_them);
    RUN(times_that_round_up_change_unit);
    RUN(long_times_are_spelled_out);
    RUN(autorange_goes_one_two_five_ten);
    RUN(summary_has_population_deviation);
    RUN(summary_reads_as_in_ipython);
    RUN(clocks_move_forward);
    return check_finish();
}
