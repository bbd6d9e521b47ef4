/* chrome_trace.h: a recording as a Chrome trace, which Perfetto and chrome://tracing open. */
#ifndef TIDE_PROFILER_CHROME_TRACE_H
#define TIDE_PROFILER_CHROME_TRACE_H

#include "profiler/event.h"

/* Write JSON: an X event per recorded event (µs with three decimals), arrows from forward to
 * backward and from launches to devices, a counter of memory, names of process and threads;
 * compressed where the path ends in
 * ".gz". The file appears whole or not at all. EIO names the file and the reason. */
td_status tide_write_chrome_trace(const tide_recording *recording, const char *path) TD_MUST_CHECK;

/* A process among those of a trace. */
typedef struct tide_trace_process {
    int number;       /* in place of the system's: a rank */
    const char *name; /* of the process */
    const char *note; /* beside its name */
    const char *rows; /* before the names of its threads */
    int64_t shift_ns; /* what times are moved by */
    int64_t ids;      /* numbers that join events begin behind it: recording->count of them */
} tide_trace_process;

/* The process's events, one behind another with commas between them, of which "traceEvents" of a
 * trace of several processes consists. For td_free; NULL: ENOMEM, EINTR. */
char *tide_trace_part(const tide_recording *recording, const tide_trace_process *process);

/* What a kind of events is called in a trace. */
const char *tide_event_category(int kind);

#endif
