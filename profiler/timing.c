/* timing.c: see timing.h. */
#include "profiler/timing.h"

#include "engine/core/number.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

double tide_clock_wall(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double seconds_of(struct timeval t) {
    return (double)t.tv_sec + 1e-6 * (double)t.tv_usec;
}

tide_cpu_times tide_clock_cpu(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (tide_cpu_times){seconds_of(usage.ru_utime), seconds_of(usage.ru_stime)};
}

long tide_autorange_next(long loops, double seconds) {
    if (seconds >= TIDE_AUTORANGE_SECONDS || loops > LONG_MAX / 10)
        return 0;
    long decade = 1;
    while (decade <= loops / 10)
        decade *= 10;
    long lead = loops / decade;
    return lead < 2 ? 2 * decade : lead < 5 ? 5 * decade : 10 * decade;
}

tide_summary tide_summarize(const double *times, int n) {
    tide_summary s = {.best = times[0], .worst = times[0], .n = n};
    for (int i = 0; i < n; i++) {
        s.mean += times[i] / n;
        s.best = fmin(s.best, times[i]);
        s.worst = fmax(s.worst, times[i]);
    }
    double squares = 0;
    for (int i = 0; i < n; i++)
        squares += (times[i] - s.mean) * (times[i] - s.mean);
    s.stdev = sqrt(squares / n);
    return s;
}

bool tide_summary_spread(const tide_summary *s) {
    return s->best > 0 && s->worst > 4 * s->best && s->worst > 1e-6;
}

/* From a minute on: whole days, hours, minutes and seconds, those that are not zero. */
static void format_long_time(double seconds, char *out, size_t size) {
    static const struct {
        const char *suffix;
        double length;
    } parts[] = {{"d", 86400}, {"h", 3600}, {"min", 60}, {"s", 1}};
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < sizeof parts / sizeof *parts && used < size; i++) {
        double value = floor(seconds / parts[i].length);
        if (value < 1)
            continue;
        seconds -= value * parts[i].length;
        used += (size_t)snprintf(out + used, size - used, "%s%.0f%s", used ? " " : "", value,
                                 parts[i].suffix);
    }
}

char *tide_format_time(double seconds, int digits, char *out, size_t size) {
    static const char *const units[] = {"s", "ms", "µs", "ns"};
    if (!(seconds < 1e15)) { /* nor is it a count of days that anybody reads */
        td_number_print(out, size, "%g s", seconds);
        return out;
    }
    if (seconds >= 60) {
        format_long_time(seconds, out, size);
        return out;
    }
    int order = 3;
    if (seconds > 0) {
        order = -(int)floor(floor(log10(seconds)) / 3);
        order = order < 0 ? 0 : order > 3 ? 3 : order;
    }
    double scaled = seconds * pow(1e3, order);
    /* %g would write 999.7 with three digits as 1e+03: such a value belongs to the next unit. */
    double limit = 1e3 * (1 - 0.5 * pow(10, -digits));
    if (order > 0 && scaled >= limit) {
        order--;
        scaled /= 1e3;
    }
    char number[64];
    td_number_print(number, sizeof number, "%.*g", digits, scaled);
    snprintf(out, size, "%s %s", number, units[order]);
    return out;
}

/* 1000000 -> "1,000,000". */
static void format_count(long count, char *out, size_t size) {
    char digits[32];
    int n = snprintf(digits, sizeof digits, "%ld", count);
    size_t used = 0;
    for (int i = 0; i < n && used + 2 < size; i++) {
        if (i > 0 && (n - i) % 3 == 0)
            out[used++] = ',';
        out[used++] = digits[i];
    }
    out[used] = '\0';
}

char *tide_format_summary(const tide_summary *s, long loops, int digits, char *out, size_t size) {
    char mean[64], stdev[64], count[48];
    tide_format_time(s->mean, digits, mean, sizeof mean);
    tide_format_time(s->stdev, digits, stdev, sizeof stdev);
    format_count(loops, count, sizeof count);
    snprintf(out, size, "%s ± %s per loop (mean ± std. dev. of %d run%s, %s loop%s each)", mean,
             stdev, s->n, s->n == 1 ? "" : "s", count, loops == 1 ? "" : "s");
    return out;
}
