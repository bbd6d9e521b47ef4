/* lane.h: where a thread's events go while they are recorded: chunks of records in the order of
 * their beginnings, and the stack of those that have not ended. Only the lane's thread touches
 * these, so that nothing is locked; when as many chunks are full as the recording may have, the
 * oldest is used again.
 *
 * A chunk holds all that its records point at, so that it can go as a whole; records in it that
 * have not ended are moved to the lane's `kept` before.
 */
#ifndef TIDE_PROFILER_LANE_H
#define TIDE_PROFILER_LANE_H

#include "engine/core/activity.h"
#include "profiler/event.h"
#include "profiler/ticks.h"

enum { TIDE_CHUNK = 1023, TIDE_RECENT = 128, TIDE_RECENT_TEXTS = 32 };

/* An event while it is recorded: a line of the cache. */
typedef struct tide_record {
    uint64_t start, end; /* ticks; end 0: open */
    const char *name, *line;
    union {
        const int64_t *inputs;
        int64_t total;
    };
    const int64_t *results;
    union {
        uint64_t sequence;
        int64_t bytes;
    };
    uint8_t kind, ninputs, nresults;
} tide_record;

typedef struct tide_chunk {
    struct tide_chunk *next;
    tide_words *words;
    int n;
    tide_record records[TIDE_CHUNK];
} tide_chunk;

/* Memory for one, undefined; NULL: memory is out. From any thread. */
tide_chunk *tide_chunk_new(void);
void tide_chunk_free(tide_chunk *chunk);
/* Have memory for the first ready: the system may take tens of milliseconds to make a large page.
 */
void tide_chunk_warm(void);

/* An event that has not ended. */
typedef struct tide_open {
    tide_record *record;
    uint64_t serial; /* of ranges, by which they are ended; 0 */
} tide_open;

/* The tensors of an operator's last call in this chunk. */
typedef struct tide_recent {
    const char *name;
    const int64_t *words;
    int nwords;
    uint8_t count;
    bool tiny; /* they all have but a few elements */
} tide_recent;

typedef struct tide_lane {
    struct tide_lane *next;   /* of all */
    struct tide_lane *mine;   /* of the thread's */
    atomic_bool busy;         /* its thread is at work in here */
    bool owned;               /* by a living thread; guarded by the lanes' lock */
    atomic_ullong generation; /* the recording whose events these are; 0: none */
    int number;
    uint32_t thread; /* as the system calls it */
    const td_annotations *annotations;
    atomic_int *chunks; /* of all lanes of the recording */
    int most_chunks;    /* that these may be */
    int mine_chunks;
    tide_chunk *first, *last;
    tide_open *open;
    int nopen, open_room;
    int64_t lost; /* begun inside the innermost, but there was no memory for them */
    uint64_t last_ticks, serials;
    int64_t dropped, evicted, untimed, tiny;
    uint64_t cut; /* what ended before is gone */
    tide_record *kept;
    int nkept;
    tide_words *kept_words;
    tide_recent recent[TIDE_RECENT];             /* by name, of the last chunk */
    const char *recent_texts[TIDE_RECENT_TEXTS]; /* names and lines, of the last chunk */
    td_origin recent_origin;
    const char *recent_line; /* of that; NULL: none in the last chunk */
} tide_lane;

/* A record at the end, to be filled in; NULL: memory is out. */
tide_record *tide_lane_grow(tide_lane *l);
static inline tide_record *tide_lane_record(tide_lane *l) {
    tide_chunk *c = l->last;
    if (TD_UNLIKELY(!c || c->n == TIDE_CHUNK))
        return tide_lane_grow(l);
    return &c->records[c->n++];
}

/* Put on the stack of what is open; false: memory is out. */
bool tide_lane_grow_open(tide_lane *l);
static inline bool tide_lane_push(tide_lane *l, tide_record *record) {
    if (TD_UNLIKELY(l->nopen == l->open_room) && !tide_lane_grow_open(l))
        return false;
    l->open[l->nopen++] = (tide_open){record, 0};
    return true;
}

/* A copy of a text that lives as long as the last chunk; NULL: memory is out. */
const char *tide_lane_text(tide_lane *l, const char *text);

/* Strictly increasing in a lane, so that every event lasts and siblings never overlap. */
static inline uint64_t tide_lane_tick(tide_lane *l) {
    uint64_t now = tide_ticks(), least = l->last_ticks + TIDE_TICKS_APART;
    return l->last_ticks = now < least ? least : now;
}

/* How many records it holds. */
int64_t tide_lane_count(const tide_lane *l);

/* Let go of everything that was recorded. */
void tide_lane_clear(tide_lane *l);

#endif
