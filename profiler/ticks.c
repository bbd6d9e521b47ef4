/* ticks.c: see ticks.h. */
#include "profiler/ticks.h"

#include <pthread.h>
#include <time.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

bool tide_ticks_counted;

/* Both clocks at one moment. */
typedef struct moment {
    uint64_t ticks, ns;
} moment;

static pthread_mutex_t begin_lock = PTHREAD_MUTEX_INITIALIZER;
static bool begun;
static moment anchor;

uint64_t tide_clock_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static bool counter_runs_evenly(void) {
#if defined(__x86_64__)
    unsigned a, b, c, d;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d >> 8 & 1);
#else
    return false;
#endif
}

/* Of several pairs the one whose readings lie closest together: nothing came between. */
static moment read_both(void) {
    moment best = {0, 0};
    uint64_t least = UINT64_MAX;
    for (int k = 0; k < 8; k++) {
        uint64_t before = tide_ticks(), ns = tide_clock_ns(), after = tide_ticks();
        if (after - before < least) {
            least = after - before;
            best = (moment){before + (after - before) / 2, ns};
        }
    }
    return best;
}

void tide_ticks_begin(void) {
    pthread_mutex_lock(&begin_lock);
    if (!begun) {
        tide_ticks_counted = counter_runs_evenly();
        anchor = read_both();
        begun = true;
    }
    pthread_mutex_unlock(&begin_lock);
}

double tide_ticks_length(void) {
    enum { LONG_ENOUGH_NS = 2000000 };
    if (!tide_ticks_counted)
        return 1;
    while (tide_clock_ns() - anchor.ns < LONG_ENOUGH_NS)
        ;
    moment now = read_both();
    return (double)(now.ns - anchor.ns) / (double)(now.ticks - anchor.ticks);
}

uint64_t tide_ticks_moment(uint64_t ticks, double length) {
    return anchor.ns + (uint64_t)((double)(ticks - anchor.ticks) * length);
}

void tide_ticks_force_clock(bool force) {
    pthread_mutex_lock(&begin_lock);
    tide_ticks_counted = !force && counter_runs_evenly();
    anchor = read_both();
    begun = true;
    pthread_mutex_unlock(&begin_lock);
}
