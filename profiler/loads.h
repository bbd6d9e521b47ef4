/* loads.h: how much of a recording's time went into what a process does once (TD_EVENT_LOAD), so
 * that sums can leave it out.
 */
#ifndef TIDE_PROFILER_LOADS_H
#define TIDE_PROFILER_LOADS_H

#include "profiler/event.h"

/* A loading that no other is around. */
typedef struct tide_load {
    int64_t start_ns, end_ns;
    int64_t before_ns; /* that the thread had spent so when it began */
    int16_t thread;
} tide_load;

typedef struct tide_loads {
    tide_load *list; /* by thread, then by start */
    int64_t n;
    int64_t total_ns; /* of all threads */
} tide_loads;

/* ENOMEM: *out is empty. */
td_status tide_loads_find(const tide_recording *recording, tide_loads *out) TD_MUST_CHECK;
void tide_loads_clear(tide_loads *loads);

/* A moment of a thread on a clock that stands still while it loads. */
int64_t tide_loads_moment(const tide_loads *loads, int16_t thread, int64_t ns);
/* How long an event took on that clock; one of loading itself, as it is. */
int64_t tide_loads_duration(const tide_loads *loads, const tide_event *event);

#endif
