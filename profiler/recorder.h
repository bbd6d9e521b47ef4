/* recorder.h: records what the engine's observer hook tells: operators, kernels, backward nodes,
 * memory; and what front ends tell: ranges, steps. Knows nothing of Lua.
 *
 * A recorder sees the threads that it is the observer of, any number; they may work, and begin and
 * end ranges, while another starts or stops it.
 */
#ifndef TIDE_PROFILER_RECORDER_H
#define TIDE_PROFILER_RECORDER_H

#include "engine/core/activity.h"
#include "profiler/event.h"

typedef struct tide_recorder tide_recorder;

/* Where a script runs on the calling thread; leaves origin->line 0 where it is not known. */
typedef void (*tide_find_line_fn)(void *script, td_origin *origin);

typedef struct tide_record_options {
    /* With a script, which must last until the stop, operators and backward nodes are recorded with
     * the line that they work for. */
    tide_find_line_fn find_line;
    void *script;
    bool shapes;  /* of the tensors that operators are given */
    bool results; /* and of those that they give */
    /* And which storage in which version each was, where in it and in which strides, and all other
     * arguments; ranges have lines too. Costs most. */
    bool identity;
    bool memory; /* what tensors take and give back */
    /* The kernels of all calls; otherwise, of calls whose tensors have at most 64 elements, those
     * of the first 1,000 and of every 64th: where two readings of the clock take longer than the
     * kernel. */
    bool all_kernels;
    /* Operators, backward nodes and ranges, but not steps, are told to a tool beside as well; NULL:
     * nobody. Valid for ever. */
    const td_annotations *annotations;
    int64_t max_events; /* when so many are kept the oldest steps go; 0: TIDE_MAX_EVENTS */
} tide_record_options;

enum { TIDE_MAX_EVENTS = 4000000 };

/* Start to record what this thread does, and others whose observer this becomes: any number of
 * recorders, each with threads of its own. NULL with a message: EVALUE when this thread's work is
 * being recorded already, ENOMEM. */
tide_recorder *tide_recorder_start(const tide_record_options *options);

/* What other threads, or a Lua state, put in force (td_observer_set) to take part; valid for ever,
 * though after the stop it may be another recording's. */
td_observer *tide_recorder_observer(tide_recorder *recorder);

/* A step begins here, on the thread that started the recording: the next range "ProfilerStep#N",
 * unless ranges are open that began in the last one (then that has no range). ENOMEM: not noted. */
td_status tide_recorder_step(tide_recorder *recorder) TD_MUST_CHECK;

/* What was recorded, as it was recorded; making a recording of it takes time. */
typedef struct tide_raw tide_raw;

/* Stop; the recorder is gone then. Events that are still open end here. NULL: ENOMEM, and nothing
 * is left. */
tide_raw *tide_recorder_halt(tide_recorder *recorder);
/* The recording; raw is stolen. ENOMEM leaves nothing. */
td_status tide_raw_gather(tide_raw *raw, tide_recording *out) TD_MUST_CHECK;
void tide_raw_free(tide_raw *raw); /* NULL is fine */

/* Both: stop and hand over what was recorded; the recorder is gone then. Events that are still open
 * end here. ENOMEM leaves nothing. */
td_status tide_recorder_stop(tide_recorder *recorder, tide_recording *out) TD_MUST_CHECK;

/* A range that was begun; plain data, nothing to release. */
typedef struct tide_range {
    tide_recorder *recorder;
    uint64_t generation; /* of the recording; 0: none ran */
    uint64_t serial;     /* 0: there was no memory for it */
} tide_range;

/* A range around what follows on this thread, while its work is recorded; `name` is copied. Ranges
 * nest. The kind is TD_EVENT_RANGE or one of tide_event_kind. */
tide_range tide_range_begin(int kind, const char *name);

/* Ends a range on the thread that began it, and what was begun inside and not ended. Does nothing
 * when the range has ended already, or its recording has. A range that is never ended lasts as long
 * as the event around it. */
void tide_range_end(tide_range range);

#endif
