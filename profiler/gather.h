/* gather.h: from lanes to a recording: ticks become nanoseconds, events learn which lies around
 * them and in which step, and what is older than the oldest whole step goes.
 */
#ifndef TIDE_PROFILER_GATHER_H
#define TIDE_PROFILER_GATHER_H

#include "profiler/device_log.h"
#include "profiler/lane.h"
#include "profiler/recorder.h"

/* A record that was taken back. */
enum { TIDE_RECORD_GONE = UINT8_MAX };

/* Of a recording from `origin` to `end` (ticks), the ticks at which its steps began and what
 * devices did (both stolen). NULL: memory is out. */
tide_raw *tide_raw_new(uint64_t origin, uint64_t end, uint64_t *steps, int nsteps, int64_t most,
                       tide_device_log *log);
/* Take over what a lane holds, which is left empty. Memory that is out frees all, and *raw is NULL.
 */
void tide_raw_take(tide_raw **raw, tide_lane *lane);

#endif
