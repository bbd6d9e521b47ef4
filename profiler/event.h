/* event.h: what a recording is when it is done: events by thread and start, whoever made it, the
 * recorder or a trace file. Knows nothing of how they were recorded.
 */
#ifndef TIDE_PROFILER_EVENT_H
#define TIDE_PROFILER_EVENT_H

#include "engine/core/observer.h"
#include "engine/io/code_cache.h"

enum { TIDE_MAX_INPUTS = 16 };

/* What events are: the engine's kinds (td_event_kind), and those that it knows nothing of. */
typedef enum tide_event_kind {
    TIDE_EVENT_STEP = TD_EVENT_KINDS, /* from one step() of a profile to the next */
    TIDE_EVENT_FUNCTION,              /* a function of the script */
    TIDE_EVENT_OPTIMIZER,             /* an optimizer's step */
    TIDE_EVENT_DATA,                  /* waiting for a batch */
    TIDE_EVENT_COPY,                  /* elements from one place to another */
    TIDE_EVENT_COLLECT,               /* the script's garbage is collected */
    TIDE_EVENT_RUNTIME,               /* of a trace: a call of a device's library */
    TIDE_EVENT_TRANSFER,              /* a device copies, on a row of its own */
    TIDE_EVENT_SET,                   /* a device sets memory to a byte, likewise */
    TIDE_EVENT_COMPILE,               /* the engine compiles, on a row of its own */
    TIDE_EVENT_COLLECTIVE,            /* a transfer between processes, on a row of its own */
    TIDE_EVENT_WAIT,                  /* the script waits for one */
    TIDE_EVENT_KINDS
} tide_event_kind;

/* "operator", "kernel", "backward", "range", ... */
const char *tide_event_kind_name(int kind);

/* Is it what a device did by itself: TD_EVENT_ACTIVITY, TRANSFER or SET? */
static inline bool tide_is_device_kind(int kind) {
    return kind == TD_EVENT_ACTIVITY || kind == TIDE_EVENT_TRANSFER || kind == TIDE_EVENT_SET;
}

/* And what else is done beside the threads, on rows of its own: it knows who asked for it. */
static inline bool tide_is_apart_kind(int kind) {
    return tide_is_device_kind(kind) || kind == TIDE_EVENT_COLLECTIVE;
}

typedef struct tide_event {
    const char *name; /* lives as long as the recording */
    const char *line; /* "file.lua:12", what it works for; NULL: not known */
    union {
        const int64_t *inputs; /* the tensor arguments, for tide_input_next */
        int64_t total;         /* of memory: bytes in use behind it */
        int64_t launcher;      /* of what is apart: who asked for it, its index + 1; 0: not known */
    };
    union {
        const int64_t *results; /* the tensors it gave, likewise; NULL: not recorded */
        int64_t correlation;    /* of devices and of calls of their libraries: what a trace joins
                                   them by; of transfers: td_collective_number; 0: nothing */
    };
    union {
        uint64_t sequence; /* autograd's number: the same in forward and backward; 0: none */
        int64_t bytes;     /* of memory: taken, or (negative) given back; of what is apart: moved */
    };
    int64_t start_ns, end_ns; /* since the recording began; end > start but of memory */
    int64_t self_ns;          /* without the events inside */
    int32_t parent;           /* index of the event around it on its thread; -1: none */
    int32_t step;             /* of the recording, from 1; 0: none was marked yet */
    int16_t thread;           /* from 1, in the order of first events */
    uint8_t kind;             /* td_event_kind, tide_event_kind */
    uint8_t ninputs;          /* the first TIDE_MAX_INPUTS are kept */
    uint8_t nresults;
} tide_event;

/* A tensor argument or result of an operator; sizes are borrowed from the recording. */
typedef struct tide_input {
    td_dtype dtype; /* TD_DTYPE_NONE: not known */
    int ndim;
    bool dense; /* row-major without gaps */
    bool known; /* storage and version were recorded */
    bool requires_grad;
    uint32_t version; /* of the storage, when the operator began (results: when it ended) */
    uint64_t storage; /* the same number for tensors that share memory, and for no others */
    int64_t offset;   /* of the first element in the storage */
    const int64_t *sizes;
    const int64_t *strides; /* NULL: row-major, or not known */
} tide_input;

/* The tensors one after the other, event->ninputs times: *at starts as event->inputs. */
tide_input tide_input_next(const int64_t **at);
int64_t tide_input_numel(const tide_input *input);
/* The dtype's name; traces of others don't tell it of all tensors. */
#define TIDE_DTYPE_UNKNOWN "unknown"
const char *tide_input_dtype(const tide_input *input);

/* How the words of an input begin; recorder and loader write them. */
enum {
    TIDE_INPUT_DENSE = 1 << 16,
    TIDE_INPUT_KNOWN = 1 << 17,
    TIDE_INPUT_STRIDED = 1 << 18,
    TIDE_INPUT_GRAD = 1 << 19
};

/* All that an operator was called with, where identities were recorded: `count` words, a word
 * `kind (td_kind) | entries << 8` for each argument and behind it what it holds: numbers and dtypes
 * a word, lists their entries, texts their length and characters; tensors are in the inputs. NULL:
 * not recorded. */
const int64_t *tide_event_arguments(const tide_event *event, int64_t *count);

/* A thread, or a stream of a device, and the row that its events have. */
typedef struct tide_track {
    const char *name;
    int64_t process, thread; /* as they are called in a trace; of devices: which, and its stream */
} tide_track;

/* A finished recording. */
typedef struct tide_recording {
    tide_event *events; /* by thread, then by start: an event before those inside it */
    int64_t count;
    int64_t dropped;    /* events for which there was no memory */
    int64_t evicted;    /* old ones that made room for new ones */
    int64_t untimed;    /* kernels too small for the clock (tide_record_options) */
    int32_t steps;      /* that were marked */
    int32_t steps_lost; /* of these, with the old events */
    td_code_tally code; /* what became of machine code meanwhile, in the whole process */
    int64_t wall_ns;
    int64_t began_ns;     /* by the monotonic clock; 0: it was read from a file */
    int64_t kept_from_ns; /* when what was kept begins; 0: nothing old was let go */
    tide_track *tracks;   /* by thread - 1; NULL: they have no names */
    int ntracks;
    const char *note;         /* what is wrong with the times; static, NULL: nothing */
    struct tide_words *words; /* where names of ranges and inputs lie */
} tide_recording;

void tide_recording_free(tide_recording *recording);

/* ---- memory for what events point at ---- */

typedef struct tide_words {
    struct tide_words *next; /* the newest first */
    size_t used, size;
    int64_t words[];
} tide_words;

/* Room for n words; NULL: memory is out. */
int64_t *tide_words_new(tide_words **words, size_t n);
/* A copy of a text; NULL: memory is out. */
const char *tide_words_text(tide_words **words, const char *text, size_t len);
void tide_words_free(tide_words *words);

#endif
