/* device_log.h: what devices did while something was recorded, by the clocks of their sources
 * (core/activity.h), and how that becomes rows of a recording: one for each stream.
 *
 * Sources keep for all recordings at once; each has a log, and what a source hands over goes into
 * every log that is open. A recording takes of it what its own threads asked for.
 */
#ifndef TIDE_PROFILER_DEVICE_LOG_H
#define TIDE_PROFILER_DEVICE_LOG_H

#include "profiler/event.h"

typedef struct tide_device_log tide_device_log;

/* From here on devices are listened to, also those whose module is loaded later; of more than
 * `most` activities the newest are kept. NULL: memory is out. */
tide_device_log *tide_device_log_open(int64_t most);
/* Wait for devices that were listened to and take what they did; the ticks when all was done. */
uint64_t tide_device_log_close(tide_device_log *log);
void tide_device_log_free(tide_device_log *log); /* closed; NULL is fine */

int64_t tide_device_log_count(const tide_device_log *log);

/* What a recording was, as far as its log wants to know. */
typedef struct tide_log_frame {
    uint64_t origin, end;    /* ticks */
    uint64_t cut;            /* what ended before has gone; 0: nothing */
    double tick_ns;          /* the length of a tick */
    const uint32_t *threads; /* of the lanes, whose numbers begin with 1 */
    int nlanes;
} tide_log_frame;

/* Add a row for each stream behind the lanes' events, which are in place; `out` has room for as
 * many more as the log counts, and has names of rows then. ENOMEM. */
td_status tide_device_log_add(tide_device_log *log, const tide_log_frame *frame,
                              tide_recording *out) TD_MUST_CHECK;

#endif
