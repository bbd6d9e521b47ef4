/* recorder.c: events go to lanes, one per thread, and are put in order at the end.
 *
 * A thread marks its lane busy before it asks whether its recording runs, and stopping ends the
 * recording before it waits for lanes that are busy: whoever comes second sees the other. Lanes and
 * recorders are never freed, only used again, so that a thread which still has the observer in
 * hand, long after the recording, finds them. A thread that takes part in several recordings in
 * turn (Lua states that share it) has a lane in each.
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
    struct lane *next;        /* of all */
    struct lane *mine;        /* of the thread's */
    atomic_bool busy;         /* its thread is at work in here */
    bool owned;               /* by a living thread; guarded by lanes_lock */
    atomic_ullong generation; /* the recording whose events these are; 0: none */
    int64_t origin_ns;        /* when that began */
    int number;
    chunk *first, *last;
    tide_words *words;
    record *open; /* the innermost that has not ended */
    int64_t lost; /* open inside it, but there was no memory for them */
    int64_t last_ns, count, dropped;
} lane;

struct tide_recorder {
    struct tide_recorder *next;
    td_observer observers[2]; /* without and with lines: never written once given out */
    _Atomic(tide_find_line_fn) find_line;
    void *_Atomic script; /* what it is asked about; NULL: nothing */
    td_observer *before;
    bool taken;               /* guarded by lanes_lock */
    atomic_ullong generation; /* of the recording that runs; 0: none */
    int64_t origin_ns;
    atomic_int nlanes; /* that take part */
};

static pthread_mutex_t lanes_lock = PTHREAD_MUTEX_INITIALIZER;
static lane *lanes;
static tide_recorder *recorders;
static uint64_t generations;   /* so far; guarded by lanes_lock */
static pthread_key_t lane_key; /* gives lanes back when their thread ends */
static bool lane_key_made;
static _Thread_local lane *my_lanes;

static int64_t clock_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Strictly increasing on each thread, so that every event lasts and siblings never overlap. */
static int64_t tick(lane *l) {
    int64_t now = clock_ns() - l->origin_ns;
    l->last_ns = now > l->last_ns ? now : l->last_ns + 1;
    return l->last_ns;
}

/* ---- lanes ---- */

static void lanes_give_back(void *first) {
    pthread_mutex_lock(&lanes_lock);
    for (lane *l = first; l; l = l->mine)
        l->owned = false;
    pthread_mutex_unlock(&lanes_lock);
}

static bool is_free(lane *l) {
    return atomic_load(&l->generation) == 0;
}

/* Another lane for this thread: one that an ended thread left, unless there are events in it. */
static lane *lane_claim(void) {
    pthread_mutex_lock(&lanes_lock);
    if (!lane_key_made)
        lane_key_made = pthread_key_create(&lane_key, lanes_give_back) == 0;
    lane *l = lanes;
    while (l && (l->owned || !is_free(l)))
        l = l->next;
    if (!l && (l = td_calloc(1, sizeof *l))) {
        l->next = lanes;
        lanes = l;
    }
    if (l) {
        l->owned = true;
        l->mine = my_lanes;
        my_lanes = l;
        if (lane_key_made)
            pthread_setspecific(lane_key, l);
    }
    pthread_mutex_unlock(&lanes_lock);
    return l;
}

static void leave(lane *l) {
    atomic_store_explicit(&l->busy, false, memory_order_release);
}

/* A lane of this thread for the recording, busy; NULL when it has ended, or memory is out. */
static lane *join(tide_recorder *r) {
    lane *l = my_lanes;
    while (l && !is_free(l))
        l = l->mine;
    if (!l && !(l = lane_claim()))
        return NULL;
    atomic_store(&l->busy, true);
    uint64_t now = atomic_load(&r->generation);
    int number = now ? atomic_fetch_add(&r->nlanes, 1) + 1 : 0;
    if (now && number <= INT16_MAX) {
        atomic_store(&l->generation, now);
        l->number = number;
        l->origin_ns = r->origin_ns;
        l->last_ns = 0;
        return l;
    }
    leave(l);
    return NULL;
}

/* This thread's lane, busy, if it takes part in the recording and that runs; NULL otherwise. */
static lane *find_mine(tide_recorder *r) {
    for (lane *l = my_lanes; l; l = l->mine) {
        atomic_store(&l->busy, true);
        uint64_t now = atomic_load(&r->generation);
        if (TD_LIKELY(now && atomic_load_explicit(&l->generation, memory_order_relaxed) == now))
            return l;
        leave(l);
    }
    return NULL;
}

static lane *find_or_join(tide_recorder *r) {
    lane *l = find_mine(r);
    return l ? l : join(r);
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
    atomic_store(&l->generation, 0);
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
    lane *l = find_or_join(ctx);
    if (l) {
        begin(l, event);
        leave(l);
    }
}

static void on_end(void *ctx, const td_event *event) {
    lane *l = find_mine(ctx);
    if (l) {
        end(l, event->sequence);
        leave(l);
    }
}

/* The recorder that is told of this thread's work; it may have stopped. */
static tide_recorder *mine(void) {
    td_observer *o = td_observer_current;
    return o && o->begin == on_begin ? o->ctx : NULL;
}

tide_range tide_range_begin(const char *name) {
    tide_range range = {.recorder = mine()};
    lane *l = range.recorder ? find_or_join(range.recorder) : NULL;
    if (l) {
        range.generation = atomic_load_explicit(&l->generation, memory_order_relaxed);
        range.record = begin(l, &(td_event){.kind = TD_EVENT_RANGE, .name = name});
        leave(l);
    }
    return range;
}

void tide_range_end(tide_range range) {
    lane *l = range.generation ? find_mine(range.recorder) : NULL;
    if (!l)
        return;
    bool ours = atomic_load_explicit(&l->generation, memory_order_relaxed) == range.generation;
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

static void on_origin(void *ctx, td_origin *origin) {
    tide_recorder *r = ctx;
    tide_find_line_fn find_line = atomic_load_explicit(&r->find_line, memory_order_acquire);
    void *script = atomic_load_explicit(&r->script, memory_order_acquire);
    if (script)
        find_line(script, origin);
}

static tide_recorder *recorder_new(void) {
    tide_recorder *r = td_calloc(1, sizeof *r);
    if (!r)
        return NULL;
    for (int lines = 0; lines < 2; lines++)
        r->observers[lines] = (td_observer){.ctx = r,
                                            .kinds = 1u << TD_EVENT_OP | 1u << TD_EVENT_KERNEL |
                                                     1u << TD_EVENT_BACKWARD | 1u << TD_EVENT_RANGE,
                                            .origin = lines ? on_origin : NULL,
                                            .begin = on_begin,
                                            .end = on_end};
    r->next = recorders;
    return recorders = r;
}

tide_recorder *tide_recorder_start(tide_find_line_fn find_line, void *script) {
    tide_recorder *r = mine();
    if (r && atomic_load(&r->generation)) {
        td_fail(TD_EVALUE, "a profile is being recorded already");
        return NULL;
    }
    pthread_mutex_lock(&lanes_lock);
    for (r = recorders; r && r->taken;)
        r = r->next;
    if (r || (r = recorder_new())) {
        r->taken = true;
        atomic_store(&r->find_line, find_line);
        atomic_store(&r->script, script);
        r->origin_ns = clock_ns();
        atomic_store(&r->nlanes, 0);
        atomic_store(&r->generation, ++generations);
    }
    pthread_mutex_unlock(&lanes_lock);
    if (r)
        r->before = td_observer_set(&r->observers[script != NULL]);
    else
        td_fail(TD_ENOMEM, "out of memory");
    return r;
}

td_observer *tide_recorder_observer(tide_recorder *r) {
    return &r->observers[atomic_load(&r->script) != NULL];
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
        if (atomic_load(&l->generation) == generation && l->number == number)
            break;
    }
    pthread_mutex_unlock(&lanes_lock);
    return l;
}

td_status tide_recorder_stop(tide_recorder *r, tide_recording *out) {
    int64_t count = 0;
    uint64_t generation = atomic_exchange(&r->generation, 0);
    td_observer *now = td_observer_current;
    atomic_store(&r->script, NULL);
    if (now == &r->observers[0] || now == &r->observers[1])
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
    pthread_mutex_lock(&lanes_lock);
    r->taken = false;
    pthread_mutex_unlock(&lanes_lock);
    return out->events ? TD_OK : td_fail(TD_ENOMEM, "out of memory");
}

void tide_recording_free(tide_recording *recording) {
    td_free(recording->events);
    words_free(recording->words);
    *recording = (tide_recording){0};
}
