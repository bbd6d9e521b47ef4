/* recorder.h: records what the engine's observer hook tells: operators, kernels, backward nodes,
 * ranges; and what was recorded, as a list of events. Knows nothing of Lua.
 *
 * A recorder sees the threads that it is the observer of, any number; they may work, and begin and
 * end ranges, while another starts or stops it.
 */
#ifndef TIDE_PROFILER_RECORDER_H
#define TIDE_PROFILER_RECORDER_H

#include "engine/core/observer.h"

enum { TIDE_MAX_INPUTS = 16 };

typedef struct tide_event {
    const char *name;         /* lives as long as the recording */
    const int64_t *inputs;    /* the tensor arguments, for tide_input_next */
    const char *line;         /* "file.lua:12", what it works for; NULL: not known */
    uint64_t sequence;        /* autograd's number: the same in forward and backward; 0: none */
    int64_t start_ns, end_ns; /* since the recording began; end > start */
    int64_t self_ns;          /* without the events inside */
    int32_t parent;           /* index of the event around it on its thread; -1: none */
    int16_t thread;           /* from 1, in the order of first events */
    uint8_t kind;             /* td_event_kind */
    uint8_t ninputs;          /* the first TIDE_MAX_INPUTS are kept */
} tide_event;

/* A tensor argument of an operator; sizes are borrowed from the recording. */
typedef struct tide_input {
    td_dtype dtype;
    int ndim;
    const int64_t *sizes;
} tide_input;

/* The arguments one after the other, event->ninputs times: *at starts as event->inputs. */
tide_input tide_input_next(const int64_t **at);

/* A finished recording. */
typedef struct tide_recording {
    tide_event *events; /* by thread, then by start: an event before those inside it */
    int64_t count;
    int64_t dropped; /* events for which there was no memory */
    int64_t wall_ns;
    struct tide_words *words; /* where names of ranges and inputs lie */
} tide_recording;

typedef struct tide_recorder tide_recorder;

/* Where a script runs on the calling thread; leaves origin->line 0 where it is not known. */
typedef void (*tide_find_line_fn)(void *script, td_origin *origin);

/* Start to record what this thread does, and others whose observer this becomes: any number of
 * recorders, each with threads of its own. With a script, which must last until the stop, operators
 * and backward nodes are recorded with the line that they work for. NULL with a message: EVALUE
 * when this thread's work is being recorded already, ENOMEM. */
tide_recorder *tide_recorder_start(tide_find_line_fn find_line, void *script);

/* What other threads, or a Lua state, put in force (td_observer_set) to take part; valid for ever,
 * though after the stop it may be another recording's. */
td_observer *tide_recorder_observer(tide_recorder *recorder);

/* Stop and hand over what was recorded; the recorder is gone then. Events that are still open end
 * here. ENOMEM leaves nothing. */
td_status tide_recorder_stop(tide_recorder *recorder, tide_recording *out) TD_MUST_CHECK;

void tide_recording_free(tide_recording *recording);

/* A range that was begun; plain data, nothing to release. */
typedef struct tide_range {
    tide_recorder *recorder;
    uint64_t generation; /* of the recording; 0: none ran */
    const void *record;
} tide_range;

/* A range named by the user around what follows on this thread, while its work is recorded; `name`
 * is copied. Ranges nest. */
tide_range tide_range_begin(const char *name);

/* Ends a range on the thread that began it, and what was begun inside and not ended. Does nothing
 * when the range has ended already, or its recording has. A range that is never ended lasts as long
 * as the event around it. */
void tide_range_end(tide_range range);

#endif
