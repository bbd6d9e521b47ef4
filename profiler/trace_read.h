/* trace_read.h: traces in the trace event format, Tide's own and those of others (PyTorch's
 * Kineto), as recordings.
 */
#ifndef TIDE_PROFILER_TRACE_READ_H
#define TIDE_PROFILER_TRACE_READ_H

#include "profiler/event.h"

/* Read a file, packed by gzip or not. Threads and streams become tracks; slices that overlap on one
 * of them, and asynchronous ones, get tracks beside it, so that all nest. EIO (cannot be read),
 * EVALUE (is no trace, or a part of one), ENOMEM, EINTR: the message begins with the path and *out
 * is empty. */
td_status tide_read_trace(const char *path, tide_recording *out) TD_MUST_CHECK;

#endif
