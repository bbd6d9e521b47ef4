/* timing.h: the arithmetic of %timeit: how many loops, what the runs say, how a time is written.
 *
 * Plain numbers in and out: it reads no clock but its own, and knows neither Lua nor the engine.
 * Every time is in seconds.
 */
#ifndef TIDE_TIMING_H
#define TIDE_TIMING_H

#include <stdbool.h>
#include <stddef.h>

/* Monotonic clock, seconds since an arbitrary start. */
double tide_clock_wall(void);

/* Processor time this process has used (all its threads), by itself and in the system for it. */
typedef struct tide_cpu_times {
    double user, sys;
} tide_cpu_times;
tide_cpu_times tide_clock_cpu(void);

/* A run of a measurement is at least this long when the number of loops is chosen for it. */
#define TIDE_AUTORANGE_SECONDS 0.2

/* The next number of loops to try after a run of `loops` that took `seconds`: 1, 2, 5, 10, 20, …
 * Returns 0 when that run was long enough (or the count cannot grow), so `loops` is the number. */
long tide_autorange_next(long loops, double seconds);

/* What n > 0 times say. */
typedef struct tide_summary {
    double mean, stdev; /* stdev of the whole population (over n), as IPython's */
    double best, worst;
    int n;
} tide_summary;
tide_summary tide_summarize(const double *times, int n);

/* True when the worst run took over four times the best and is above a microsecond: something
 * was cached or the machine was busy, and the user should hear of it. */
bool tide_summary_spread(const tide_summary *summary);

/* Writes a time with `digits` significant digits and the unit that suits it: "5.64 µs",
 * "1min 2s" from a minute on. At most size - 1 bytes and a NUL; returns `out`. */
char *tide_format_time(double seconds, int digits, char *out, size_t size);

/* "322 µs ± 5.64 µs per loop (mean ± std. dev. of 7 runs, 1,000 loops each)". */
char *tide_format_summary(const tide_summary *summary, long loops, int digits, char *out,
                          size_t size);

#endif
