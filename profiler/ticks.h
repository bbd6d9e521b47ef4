/* ticks.h: the clock of recordings: the processor's counter where it says that it runs evenly
 * (19 ns a read where the system's clock takes 33), the monotonic clock elsewhere.
 *
 * Ticks are of unknown length until a recording ends; then they become nanoseconds by two readings
 * of both clocks, one of the process's first recording and one of now.
 */
#ifndef TIDE_PROFILER_TICKS_H
#define TIDE_PROFILER_TICKS_H

#include "engine/core/status.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

/* The counter is read; set by tide_ticks_begin. */
extern bool tide_ticks_counted;

uint64_t tide_clock_ns(void);

static inline uint64_t tide_ticks(void) {
#if defined(__x86_64__)
    if (TD_LIKELY(tide_ticks_counted))
        return __rdtsc();
#endif
    return tide_clock_ns();
}

/* Ticks that are a nanosecond at least: what lies so far apart differs when it is converted. */
enum { TIDE_TICKS_APART = 8 };

/* Choose the clock and note where both stand, once in a process. */
void tide_ticks_begin(void);
/* The length of a tick, ns: more exact the longer ago the beginning was, and waits until that is
 * two milliseconds. */
double tide_ticks_length(void);
/* The moment by the monotonic clock, ns, that ticks since the beginning of recordings stand for. */
uint64_t tide_ticks_moment(uint64_t ticks, double length);
/* Read the monotonic clock whatever the processor says, or (false) choose again: for tests, while
 * nothing is being recorded. */
void tide_ticks_force_clock(bool force);

#endif
