/* chrome_trace.h: a recording as a Chrome trace, which Perfetto and chrome://tracing open. */
#ifndef TIDE_PROFILER_CHROME_TRACE_H
#define TIDE_PROFILER_CHROME_TRACE_H

#include "profiler/event.h"

/* Write JSON: an X event per recorded event (µs with three decimals), arrows from forward to
 * backward and from launches to devices, a counter of memory, names of process and threads;
 * compressed where the path ends in
 * ".gz". The file appears whole or not at all. EIO names the file and the reason. */
td_status tide_write_chrome_trace(const tide_recording *recording, const char *path) TD_MUST_CHECK;

/* What a kind of events is called in a trace. */
const char *tide_event_category(int kind);

#endif
