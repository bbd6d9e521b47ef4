/* calls.h: what a script asked for: the calls of operators that no other operator and no backward
 * made, side by side as columns, with what is alike told once. Advice is found in these.
 */
#ifndef TIDE_PROFILER_CALLS_H
#define TIDE_PROFILER_CALLS_H

#include "profiler/event.h"

/* Words that many calls share, by number from 1 in the order of first sight. */
typedef struct tide_shared {
    int32_t number, n;
    int64_t words[];
} tide_shared;

typedef struct tide_shared_list {
    tide_shared **list; /* by number - 1 */
    int32_t count;
} tide_shared_list;

typedef struct tide_call {
    int64_t start_ns, end_ns;
    int64_t cost_ns;     /* with what the script does behind it, but of a pause the beginning */
    int64_t kernel_ns;   /* of it */
    int64_t backward_ns; /* that its nodes ran */
    int64_t first;       /* of its tensors */
    int32_t site;        /* in `sites`: the words are a text, "name\0line" */
    int32_t arguments;   /* in `arguments`; 0: not known */
    int32_t outer;       /* in `spans`, from 1: what it lies in; 0: nothing */
    uint8_t ninputs, nresults;
    bool recorded; /* a graph was */
    bool used;     /* and backward went through it */
} tide_call;

typedef struct tide_seen {
    uint64_t storage; /* 0: not known */
    int64_t offset;
    uint32_t version;
    int32_t layout; /* in `layouts`: the words of an input without storage and version */
    bool requires_grad;
} tide_seen;

/* What lies between or around calls: a range, a step, a copy, a collection, ... */
typedef struct tide_span {
    const tide_event *event;
    int64_t before; /* how many calls began before it */
    int32_t outer;
} tide_span;

typedef struct tide_calls {
    tide_call *calls;
    tide_seen *seen;
    tide_span *spans;
    int64_t ncalls, nseen, nspans;
    tide_shared_list sites, arguments, layouts;
    int64_t wall_ns;
    bool known; /* which tensor is which */
    tide_words *words;
} tide_calls;

/* The recording must outlive it. ENOMEM, EINTR: *out is empty. */
td_status tide_calls_find(const tide_recording *recording, tide_calls *out) TD_MUST_CHECK;
void tide_calls_free(tide_calls *calls);

#endif
