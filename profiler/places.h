/* places.h: a recording with lines by where the script was: what each line's operators took, and
 * where memory was at its peak.
 */
#ifndef TIDE_PROFILER_PLACES_H
#define TIDE_PROFILER_PLACES_H

#include "profiler/event.h"

/* The calls of one operator from one line, with all that they did within. */
typedef struct tide_place {
    const char *line; /* of the recording; NULL: not known */
    const char *name; /* the operator's, or the backward node's */
    int64_t calls, ns;
    int64_t bytes; /* that they took; what they gave back is not taken off */
} tide_place;

/* The longest first; for td_free. NULL: ENOMEM. */
tide_place *tide_places(const tide_recording *recording, int *count);

/* When tensors held most. {0} where memory was not recorded. */
typedef struct tide_peak {
    int64_t bytes;
    const char *line, *name; /* whose call took it to that; NULL: not known */
} tide_peak;
tide_peak tide_find_peak(const tide_recording *recording);

#endif
