/* whole.h: files that appear whole or not at all. */
#ifndef TIDE_PROFILER_WHOLE_H
#define TIDE_PROFILER_WHOLE_H

#include "engine/core/status.h"

#include <stdio.h>

/* Have `write` write the file: to a draft beside it that takes its place, so that what was there
 * stays when writing fails or is interrupted; through zlib where the path ends in ".gz". A pipe or
 * a device is written to itself. EIO names the file and the reason; EINTR. */
td_status tide_write_whole(const char *path, void (*write)(FILE *file, const void *ctx),
                           const void *ctx) TD_MUST_CHECK;

#endif
