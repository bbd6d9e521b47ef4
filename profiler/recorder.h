/* recorder.h: records what the engine's observer hook tells: operators, kernels, backward nodes,
 * ranges; and what was recorded, as a list of events. Knows nothing of Lua.
 */
#ifndef TIDE_PROFILER_RECORDER_H
#define TIDE_PROFILER_RECORDER_H

#include "engine/core/observer.h"

enum { TIDE_MAX_INPUTS = 4, TIDE_MAX_INPUT_DIMS = 6 };

/* A tensor argument of an operator. */
typedef struct tide_input {
    uint8_t dtype, ndim;                /* ndim may exceed the sizes kept */
    int32_t sizes[TIDE_MAX_INPUT_DIMS]; /* INT32_MAX: that or more */
} tide_input;

typedef struct tide_event {
    const char *name;         /* lives as long as the process */
    uint8_t kind;             /* td_event_kind */
    uint8_t ninputs;          /* tensor arguments kept */
    int16_t thread;           /* from 1, in the order of first events */
    int32_t parent;           /* index of the event around it on its thread; -1: none */
    uint64_t sequence;        /* autograd's number: the same in forward and backward; 0: none */
    int64_t start_ns, end_ns; /* since the recording began; end > start */
    int64_t self_ns;          /* without the events inside */
    tide_input inputs[TIDE_MAX_INPUTS];
} tide_event;

/* A finished recording. */
typedef struct tide_recording {
    tide_event *events; /* by thread, then by start: an event before those inside it */
    int64_t count;
    int64_t dropped; /* events for which there was no memory */
    int64_t wall_ns;
} tide_recording;

typedef struct tide_recorder tide_recorder;

/* Start to record; one recorder at a time. NULL with a message: EVALUE when one runs already,
 * ENOMEM. */
tide_recorder *tide_recorder_start(void);

/* Stop, hand over what was recorded and free the recorder. Calls that other threads began under it
 * must have ended. ENOMEM leaves nothing. */
td_status tide_recorder_stop(tide_recorder *recorder, tide_recording *out) TD_MUST_CHECK;

void tide_recording_free(tide_recording *recording);

/* A range named by the user around what follows on this thread, while a recorder runs; `name` is
 * copied. Ranges nest. */
void tide_range_begin(const char *name);
void tide_range_end(void);

#endif
