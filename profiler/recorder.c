/* recorder.c: events go to buffers of their threads and are put in order at the end. */
#include "profiler/recorder.h"

#include "engine/core/memory.h"
#include "engine/ops/op.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

enum { CHUNK = 1024, MAX_DEPTH = 256 };

typedef struct chunk {
    struct chunk *next;
    int n;
    tide_event events[CHUNK];
} chunk;

typedef struct thread_buffer {
    struct thread_buffer *next;
    chunk *first, *last;
    tide_event *open[MAX_DEPTH]; /* NULL: was dropped */
    int depth;
    int16_t number;
    int64_t last_ns, count, dropped;
} thread_buffer;

struct tide_recorder {
    td_observer observer;
    td_observer *before;
    uint64_t generation; /* tells this recorder's buffers from those of an earlier one */
    int64_t origin_ns;
    pthread_mutex_t lock; /* guards the list of buffers */
    thread_buffer *buffers;
    int nbuffers;
};

static atomic_ullong generations;
static tide_recorder *_Atomic running;
static _Thread_local thread_buffer *my_buffer;
static _Thread_local uint64_t my_generation;

static int64_t clock_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Strictly increasing on each thread, so that every event lasts and siblings never overlap. */
static int64_t tick(const tide_recorder *r, thread_buffer *b) {
    int64_t now = clock_ns() - r->origin_ns;
    b->last_ns = now > b->last_ns ? now : b->last_ns + 1;
    return b->last_ns;
}

static thread_buffer *buffer_of(tide_recorder *r) {
    if (TD_LIKELY(my_generation == r->generation))
        return my_buffer;
    thread_buffer *b = td_calloc(1, sizeof *b);
    if (!b)
        return NULL;
    pthread_mutex_lock(&r->lock);
    b->number = (int16_t)++r->nbuffers;
    b->next = r->buffers;
    r->buffers = b;
    pthread_mutex_unlock(&r->lock);
    my_buffer = b;
    my_generation = r->generation;
    return b;
}

static tide_event *event_new(thread_buffer *b) {
    if (!b->last || b->last->n == CHUNK) {
        chunk *c = td_malloc(sizeof *c);
        if (!c) {
            b->dropped++;
            return NULL;
        }
        c->next = NULL;
        c->n = 0;
        if (b->last)
            b->last->next = c;
        else
            b->first = c;
        b->last = c;
    }
    b->count++;
    return &b->last->events[b->last->n++];
}

static void add_input(tide_event *e, const td_tensor *x) {
    if (!x || e->ninputs == TIDE_MAX_INPUTS)
        return;
    tide_input *in = &e->inputs[e->ninputs++];
    in->dtype = x->dtype;
    in->ndim = x->ndim;
    for (int d = 0; d < x->ndim && d < TIDE_MAX_INPUT_DIMS; d++)
        in->sizes[d] = x->sizes[d] < INT32_MAX ? (int32_t)x->sizes[d] : INT32_MAX;
}

static void add_inputs(tide_event *e, const td_event *event) {
    for (int k = 0; k < event->nargs; k++) {
        const td_value *v = &event->args[k];
        if (v->kind == TD_KIND_TENSOR)
            add_input(e, v->tensor);
        else if (v->kind == TD_KIND_TENSORS)
            for (int j = 0; j < v->n; j++)
                add_input(e, v->tensors[j]);
    }
}

static void on_begin(void *ctx, const td_event *event) {
    tide_recorder *r = ctx;
    thread_buffer *b = buffer_of(r);
    if (!b)
        return;
    tide_event *e = event_new(b);
    if (b->depth < MAX_DEPTH)
        b->open[b->depth] = e;
    b->depth++;
    if (!e)
        return;
    e->name = event->name;
    e->kind = (uint8_t)event->kind;
    e->ninputs = 0;
    e->thread = b->number;
    e->sequence = event->sequence;
    e->end_ns = 0;
    add_inputs(e, event);
    e->start_ns = tick(r, b);
}

static void on_end(void *ctx, td_event_kind kind) {
    tide_recorder *r = ctx;
    thread_buffer *b = my_generation == r->generation ? my_buffer : NULL;
    (void)kind;
    if (!b || b->depth == 0) /* began before the recording did */
        return;
    b->depth--;
    tide_event *e = b->depth < MAX_DEPTH ? b->open[b->depth] : NULL;
    if (e)
        e->end_ns = tick(r, b);
}

static void on_instant(void *ctx, const td_event *event) {
    (void)ctx;
    (void)event;
}

tide_recorder *tide_recorder_start(void) {
    tide_recorder *r = td_calloc(1, sizeof *r), *none = NULL;
    if (!r) {
        td_fail(TD_ENOMEM, "out of memory");
        return NULL;
    }
    if (!atomic_compare_exchange_strong(&running, &none, r)) {
        td_free(r);
        td_fail(TD_EVALUE, "a profile is being recorded already");
        return NULL;
    }
    pthread_mutex_init(&r->lock, NULL);
    r->generation = ++generations;
    r->origin_ns = clock_ns();
    r->observer = (td_observer){.ctx = r,
                                .kinds = 1u << TD_EVENT_OP | 1u << TD_EVENT_KERNEL |
                                         1u << TD_EVENT_BACKWARD | 1u << TD_EVENT_RANGE,
                                .begin = on_begin,
                                .end = on_end,
                                .instant = on_instant};
    r->before = td_observer_set(&r->observer);
    return r;
}

static void buffer_free(thread_buffer *b) {
    for (chunk *c = b->first, *next; c; c = next) {
        next = c->next;
        td_free(c);
    }
    td_free(b);
}

/* Copy a thread's events, find the event around each, and take inner times off outer ones. Events
 * still open end with the recording. */
static void gather(const thread_buffer *b, int64_t end_ns, tide_recording *out) {
    int32_t open[MAX_DEPTH];
    int depth = 0;
    for (const chunk *c = b->first; c; c = c->next)
        for (int k = 0; k < c->n; k++) {
            int32_t at = (int32_t)out->count++;
            tide_event *e = &out->events[at];
            *e = c->events[k];
            if (!e->end_ns)
                e->end_ns = end_ns > e->start_ns ? end_ns : e->start_ns + 1;
            while (depth > 0 && out->events[open[depth - 1]].end_ns <= e->start_ns)
                depth--;
            e->parent = depth ? open[depth - 1] : -1;
            e->self_ns = e->end_ns - e->start_ns;
            if (depth)
                out->events[e->parent].self_ns -= e->end_ns - e->start_ns;
            if (depth < MAX_DEPTH)
                open[depth++] = at;
        }
}

td_status tide_recorder_stop(tide_recorder *r, tide_recording *out) {
    int64_t count = 0;
    td_observer_set(r->before);
    *out = (tide_recording){.wall_ns = clock_ns() - r->origin_ns};
    for (thread_buffer *b = r->buffers; b; b = b->next) {
        count += b->count;
        out->dropped += b->dropped;
    }
    out->events = td_malloc((size_t)(count + 1) * sizeof *out->events);
    for (int number = 1; number <= r->nbuffers && out->events; number++)
        for (thread_buffer *b = r->buffers; b; b = b->next)
            if (b->number == number)
                gather(b, out->wall_ns, out);
    for (thread_buffer *b = r->buffers, *next; b; b = next) {
        next = b->next;
        buffer_free(b);
    }
    atomic_store(&running, NULL);
    pthread_mutex_destroy(&r->lock);
    td_free(r);
    return out->events ? TD_OK : td_fail(TD_ENOMEM, "out of memory");
}

void tide_recording_free(tide_recording *recording) {
    td_free(recording->events);
    *recording = (tide_recording){0};
}

/* ---- ranges ---- */

/* Names of ranges, each kept once for good: events point at them. */
typedef struct interned {
    struct interned *next;
    char name[];
} interned;

static const char *intern(const char *name) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static interned *names;
    pthread_mutex_lock(&lock);
    interned *found = names;
    while (found && strcmp(found->name, name) != 0)
        found = found->next;
    size_t bytes = strlen(name) + 1;
    if (!found && (found = td_malloc(sizeof *found + bytes))) {
        memcpy(found->name, name, bytes);
        found->next = names;
        names = found;
    }
    pthread_mutex_unlock(&lock);
    return found ? found->name : "range";
}

void tide_range_begin(const char *name) {
    td_observer *o = td_observer_get(TD_EVENT_RANGE);
    if (o)
        o->begin(o->ctx, &(td_event){.kind = TD_EVENT_RANGE, .name = intern(name)});
}

void tide_range_end(void) {
    td_observer *o = td_observer_get(TD_EVENT_RANGE);
    if (o)
        o->end(o->ctx, TD_EVENT_RANGE);
}
