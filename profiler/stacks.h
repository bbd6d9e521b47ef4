/* stacks.h: a recording as folded stacks, which flame graphs are drawn from. */
#ifndef TIDE_PROFILER_STACKS_H
#define TIDE_PROFILER_STACKS_H

#include "profiler/event.h"

/* Write a line per way from the outermost event to an innermost one, "step 1;linear;addmm 125": its
 * own time in µs; with the script's line first where it is known. The file appears whole or not at
 * all. EIO, ENOMEM, EINTR. */
td_status tide_write_stacks(const tide_recording *recording, const char *path) TD_MUST_CHECK;

#endif
