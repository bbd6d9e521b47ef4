/* recorder.c: events go to lanes, one per thread, and are put in order at the end.
 *
 * A thread marks its lane busy before it asks whether a recording runs, and stopping ends the
 * recording before it waits for lanes that are busy: whoever comes second sees the other. Lanes and
 * the recorder itself are never freed, so that a thread which still has the observer in hand, long
 * after the recording, finds them.
 */
#include "profiler/recorder.h"

#include "engine/core/memory.h"
#include "engine/ops/op.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { CHUNK = 512, WORDS = 2048 };

typedef struct record {
    tide_event event;      /* parent and self_ns are found at the end */
    struct record *around; /* the one that was open when it began */
} record;

typedef struct chunk {
    struct chunk *next;
    int n;
    record records[CHUNK];
} chunk;

/* Memory for what events point at; the newest first. */
typedef struct tide_words {
    struct tide_words *next;
    size_t used, size;
    int64_t words[];
} tide_words;

typedef struct lane {
    struct lane *next;
    atomic_bool busy;    /* its thread is at work in here */
    bool owned;          /* by a living thread; guarded by lanes_lock */
    uint64_t generation; /* the recording whose events these are */
    int number;
    chunk *first, *last;
    tide_words *words;
    record *open; /* the innermost that has not ended */
    int64_t lost; /* open inside it, but there was no memory for them */
    int64_t last_ns, count, dropped;
} lane;

struct tide_recorder {
    td_observer *before;
    atomic_ullong generation; /* of the recording that runs; 0: none */
    int64_t origin_ns;
    atomic_int nlanes; /* that take part */
};

static tide_recorder the_recorder;
static atomic_bool taken; /* the_recorder */
static uint64_t generations;

static pthread_mutex_t lanes_lock = PTHREAD_MUTEX_INITIALIZER;
static lane *lanes;
static pthread_key_t lane_key; /* gives a lane back when its thread ends */
static bool lane_key_made;
static _Thread_local lane *my_lane;

static int64_t clock_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Strictly increasing on each thread, so that every event lasts and siblings never overlap. */
static int64_t tick(lane *l) {
    int64_t now = clock_ns() - the_recorder.origin_ns;
    l->last_ns = now > l->last_ns ? now : l->last_ns + 1;
    return l->last_ns;
}

/* ---- lanes ---- */

static void lane_give_back(void *owned) {
    pthread_mutex_lock(&lanes_lock);
    ((lane *)owned)->owned = false;
    pthread_mutex_unlock(&lanes_lock);
}

/* A lane for this thread: one that an ended thread left, unless this recording has events in it. */
static lane *lane_claim(void) {
    pthread_mutex_lock(&lanes_lock);
    if (!lane_key_made)
        lane_key_made = pthread_key_create(&lane_key, lane_give_back) == 0;
    lane *l = lanes;
    while (l && (l->owned || l->generation == atomic_load(&the_recorder.generation)))
        l = l->next;
    if (!l && (l = td_calloc(1, sizeof *l))) {
        l->next = lanes;
        lanes = l;
    }
    if (l) {
        l->owned = true;
        if (lane_key_made)
            pthread_setspecific(lane_key, l);
    }
    pthread_mutex_unlock(&lanes_lock);
    return my_lane = l;
}

static void leave(lane *l) {
    atomic_store_explicit(&l->busy, false, memory_order_release);
}

/* This thread's lane, busy, if it takes part in the recording that runs; with `join` it will. NULL
 * when none runs, or memory is out. */
static lane *enter(bool join) {
    lane *l = my_lane;
    if (TD_UNLIKELY(!l) && (!join || !(l = lane_claim())))
        return NULL;
    atomic_store(&l->busy, true);
    uint64_t now = atomic_load(&the_recorder.generation);
    if (TD_LIKELY(now && l->generation == now))
        return l;
    if (now && join) {
        int number = atomic_fetch_add(&the_recorder.nlanes, 1) + 1;
        if (number <= INT16_MAX) {
            l->generation = now;
            l->number = number;
            l->last_ns = 0;
            return l;
        }
    }
    leave(l);
    return NULL;
}

static void words_free(tide_words *w) {
    for (tide_words *next; w; w = next) {
        next = w->next;
        td_free(w);
    }
}

static void lane_clear(lane *l) {
    for (chunk *c = l->first, *next; c; c = next) {
        next = c->next;
        td_free(c);
    }
    words_free(l->words);
    l->first = l->last = NULL;
    l->words = NULL;
    l->open = NULL;
    l->count = l->dropped = l->lost = 0;
}

/* ---- recording ---- */

static record *record_new(lane *l) {
    if (!l->last || l->last->n == CHUNK) {
        chunk *c = td_malloc(sizeof *c);
        if (!c)
            return NULL;
        c->next = NULL;
        c->n = 0;
        if (l->last)
            l->last->next = c;
        else
            l->first = c;
        l->last = c;
    }
    l->count++;
    return &l->last->records[l->last->n++];
}

static void *words_new(lane *l, size_t n) {
    tide_words *w = l->words;
    if (!w || w->size - w->used < n) {
        size_t size = n > WORDS ? n : WORDS;
        w = td_malloc(sizeof *w + size * sizeof *w->words);
        if (!w)
            return NULL;
        w->next = l->words;
        w->used = 0;
        w->size = size;
        l->words = w;
    }
    w->used += n;
    return &w->words[w->used - n];
}

/* The tensors among an operator's arguments, as tide_input_next reads them: dtype and number of
 * dims in one word, then the sizes. */
typedef struct input_list {
    int count;
    size_t used;
    int64_t words[TIDE_MAX_INPUTS * (1 + TD_MAX_DIMS)];
} input_list;

static void add_input(input_list *list, const td_tensor *x) {
    if (!x || list->count == TIDE_MAX_INPUTS)
        return;
    list->count++;
    list->words[list->used++] = x->dtype | (int64_t)x->ndim << 8;
    for (int d = 0; d < x->ndim; d++)
        list->words[list->used++] = x->sizes[d];
}

static void keep_inputs(lane *l, tide_event *e, const td_event *event) {
    input_list list;
    list.count = 0;
    list.used = 0;
    for (int k = 0; k < event->nargs; k++) {
        const td_value *v = &event->args[k];
        if (v->kind == TD_KIND_TENSOR)
            add_input(&list, v->tensor);
        else if (v->kind == TD_KIND_TENSORS)
            for (int j = 0; j < v->n; j++)
                add_input(&list, v->tensors[j]);
    }
    int64_t *kept = list.count ? words_new(l, list.used) : NULL;
    if (!kept)
        return;
    memcpy(kept, list.words, list.used * sizeof *kept);
    e->inputs = kept;
    e->ninputs = (uint8_t)list.count;
}

tide_input tide_input_next(const int64_t **at) {
    const int64_t *words = *at;
    tide_input in = {
        .dtype = (td_dtype)(words[0] & 0xFF), .ndim = (int)(words[0] >> 8), .sizes = words + 1};
    *at = words + 1 + in.ndim;
    return in;
}

static const char *keep_name(lane *l, const char *name) {
    size_t bytes = strlen(name) + 1;
    char *kept = words_new(l, (bytes + sizeof(int64_t) - 1) / sizeof(int64_t));
    return kept ? memcpy(kept, name, bytes) : "range";
}

static const char *keep_line(lane *l, const td_origin *origin) {
    char text[sizeof origin->source + 16];
    size_t words = (size_t)snprintf(text, sizeof text, "%s:%d", origin->source, origin->line);
    words = words / sizeof(int64_t) + 1;
    char *kept = words_new(l, words);
    return kept ? memcpy(kept, text, strlen(text) + 1) : NULL;
}

/* The record of what begins, NULL when there is no memory for it. */
static const record *begin(lane *l, const td_event *event) {
    record *r = l->lost ? NULL : record_new(l);
    if (!r) {
        l->lost++; /* and so is what begins inside: begin and end stay paired */
        l->dropped++;
        return NULL;
    }
    r->event = (tide_event){.name = event->kind == TD_EVENT_RANGE ? keep_name(l, event->name)
                                                                  : event->name,
                            .sequence = event->sequence,
                            .kind = (uint8_t)event->kind};
    r->around = l->open;
    l->open = r;
    if (event->nargs)
        keep_inputs(l, &r->event, event);
    if (event->origin)
        r->event.line = keep_line(l, event->origin);
    r->event.start_ns = tick(l);
    return r;
}

static void end(lane *l, uint64_t sequence) {
    if (l->lost) {
        l->lost--;
    } else if (l->open) { /* else it began before the recording did */
        if (sequence)
            l->open->event.sequence = sequence;
        l->open->event.end_ns = tick(l);
        l->open = l->open->around;
    }
}

static void on_begin(void *ctx, const td_event *event) {
    lane *l = enter(true);
    (void)ctx;
    if (l) {
        begin(l, event);
        leave(l);
    }
}

static void on_end(void *ctx, const td_event *event) {
    lane *l = enter(false);
    (void)ctx;
    if (l) {
        end(l, event->sequence);
        leave(l);
    }
}

tide_range tide_range_begin(const char *name) {
    tide_range range = {0};
    lane *l = td_observer_get(TD_EVENT_RANGE) ? enter(true) : NULL;
    if (l) {
        range.generation = l->generation;
        range.record = begin(l, &(td_event){.kind = TD_EVENT_RANGE, .name = name});
        leave(l);
    }
    return range;
}

void tide_range_end(tide_range range) {
    lane *l = range.generation ? enter(false) : NULL;
    if (!l)
        return;
    bool ours = l->generation == range.generation;
    const record *r = ours ? l->open : NULL;
    while (r && r != range.record)
        r = r->around;
    if (r)
        l->lost = 0;
    else if (ours && !range.record && l->lost)
        l->lost--;
    while (r && l->open != r->around)
        end(l, 0);
    leave(l);
}

/* ---- start and stop ---- */

enum {
    KINDS =
        1u << TD_EVENT_OP | 1u << TD_EVENT_KERNEL | 1u << TD_EVENT_BACKWARD | 1u << TD_EVENT_RANGE
};

/* Without and with lines. Never written: threads read them whenever they like. */
static td_observer observers[2] = {
    {.kinds = KINDS, .begin = on_begin, .end = on_end},
    {.kinds = KINDS, .origins = true, .begin = on_begin, .end = on_end},
};

tide_recorder *tide_recorder_start(bool lines) {
    tide_recorder *r = &the_recorder;
    if (atomic_exchange(&taken, true)) {
        td_fail(TD_EVALUE, "a profile is being recorded already");
        return NULL;
    }
    r->origin_ns = clock_ns();
    atomic_store(&r->nlanes, 0);
    atomic_store(&r->generation, ++generations);
    r->before = td_observer_set(&observers[lines]);
    return r;
}

/* Copy a thread's events, find the event around each, and take inner times off outer ones. Events
 * still open end with the recording. */
static void gather(lane *l, int64_t end_ns, tide_recording *out) {
    int32_t outer = -1;
    for (const chunk *c = l->first; c; c = c->next)
        for (int k = 0; k < c->n; k++) {
            int32_t at = (int32_t)out->count++;
            tide_event *e = &out->events[at];
            *e = c->records[k].event;
            e->thread = (int16_t)l->number;
            if (!e->end_ns)
                e->end_ns = end_ns > l->last_ns ? end_ns : l->last_ns + 1;
            while (outer >= 0 && out->events[outer].end_ns <= e->start_ns)
                outer = out->events[outer].parent;
            e->parent = outer;
            e->self_ns = e->end_ns - e->start_ns;
            if (outer >= 0)
                out->events[outer].self_ns -= e->self_ns;
            outer = at;
        }
    tide_words **tail = &out->words;
    while (*tail)
        tail = &(*tail)->next;
    *tail = l->words;
    l->words = NULL;
}

/* The lanes of a recording that has ended, once their threads have left them: the number-th. */
static lane *find_lane(uint64_t generation, int number) {
    pthread_mutex_lock(&lanes_lock);
    lane *l = lanes;
    for (; l; l = l->next) {
        while (atomic_load(&l->busy))
            sched_yield();
        if (l->generation == generation && l->number == number)
            break;
    }
    pthread_mutex_unlock(&lanes_lock);
    return l;
}

td_status tide_recorder_stop(tide_recorder *r, tide_recording *out) {
    int64_t count = 0;
    uint64_t generation = atomic_exchange(&r->generation, 0);
    td_observer_set(r->before);
    *out = (tide_recording){.wall_ns = clock_ns() - r->origin_ns};
    lane *l;
    for (int number = 1; (l = find_lane(generation, number)); number++) {
        count += l->count;
        out->dropped += l->dropped;
    }
    out->events = count < INT32_MAX ? td_malloc((size_t)(count + 1) * sizeof *out->events) : NULL;
    for (int number = 1; (l = find_lane(generation, number)); number++) {
        if (out->events)
            gather(l, out->wall_ns, out);
        lane_clear(l);
    }
    atomic_store(&taken, false);
    return out->events ? TD_OK : td_fail(TD_ENOMEM, "out of memory");
}

void tide_recording_free(tide_recording *recording) {
    td_free(recording->events);
    words_free(recording->words);
    *recording = (tide_recording){0};
}
