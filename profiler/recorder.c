/* recorder.c: events go to lanes, one per thread, and are put in order at the end (gather.c).
 *
 * A thread marks its lane busy before it asks whether its recording runs, and stopping ends the
 * recording before it waits for lanes that are busy: whoever comes second sees the other. That
 * takes a barrier on both sides; threads at work leave theirs to the one that stops, which has the
 * system put one into all of them (membarrier). Lanes and recorders are never freed, only used
 * again, so that a thread which still has the observer in hand, long after the recording, finds
 * them. A thread that takes part in several recordings in turn (Lua states that share it) has a
 * lane in each.
 */
#include "profiler/recorder.h"

#include "engine/core/map.h"
#include "engine/core/memory.h"
#include "engine/ops/op.h"
#include "profiler/arguments.h"
#include "profiler/device_log.h"
#include "profiler/gather.h"
#include "profiler/lane.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { TINY = 64, TINY_TIMED = 1000, TINY_EVERY = 64 };

struct tide_recorder {
    struct tide_recorder *next;
    td_observer observers[8]; /* with lines, with memory, without kernels: never written once given
                                 out */
    td_observer *_Atomic loud, *_Atomic hushed; /* in force: with kernels and without */
    _Atomic(tide_find_line_fn) find_line;
    void *_Atomic script; /* what it is asked about; NULL: nothing */
    tide_record_options options;
    td_observer *before;
    bool taken;               /* guarded by lanes_lock */
    atomic_ullong generation; /* of the recording that runs; 0: none */
    uint64_t origin;          /* ticks */
    tide_device_log *log;     /* what devices do meanwhile */
    atomic_int nlanes;        /* that take part */
    atomic_int chunks;        /* that they have */
    uint64_t *steps;          /* when each began */
    int nsteps, steps_room;
    tide_range step; /* the one that is open */
};

static pthread_mutex_t lanes_lock = PTHREAD_MUTEX_INITIALIZER;
static tide_lane *lanes;
static tide_recorder *recorders;
static uint64_t generations;   /* so far; guarded by lanes_lock */
static pthread_key_t lane_key; /* gives lanes back when their thread ends */
static bool lane_key_made;
static bool barriers_everywhere; /* the system puts none into other threads */
static TD_THREAD_STATE tide_lane *my_lanes;

/* ---- lanes ---- */

static void lanes_give_back(void *first) {
    pthread_mutex_lock(&lanes_lock);
    for (tide_lane *l = first; l; l = l->mine)
        l->owned = false;
    pthread_mutex_unlock(&lanes_lock);
}

static bool is_free(tide_lane *l) {
    return atomic_load(&l->generation) == 0;
}

/* Another lane for this thread: one that an ended thread left, unless there are events in it. */
static tide_lane *lane_claim(void) {
    pthread_mutex_lock(&lanes_lock);
    if (!lane_key_made)
        lane_key_made = pthread_key_create(&lane_key, lanes_give_back) == 0;
    tide_lane *l = lanes;
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

/* The number of the system's call for barriers in other threads. */
enum { BARRIER = 1 << 3, REGISTER = 1 << 4 };

static bool system_barrier(int what) {
#ifdef SYS_membarrier
    return syscall(SYS_membarrier, what, 0, 0) == 0;
#else
    (void)what;
    return false;
#endif
}

static inline void enter(tide_lane *l) {
    if (TD_UNLIKELY(barriers_everywhere)) {
        atomic_store(&l->busy, true);
        return;
    }
    atomic_store_explicit(&l->busy, true, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
}

static inline void leave(tide_lane *l) {
    atomic_store_explicit(&l->busy, false, memory_order_release);
}

static int64_t most_events(const tide_record_options *options) {
    return options->max_events ? options->max_events : TIDE_MAX_EVENTS;
}

/* A lane of this thread for the recording, busy; NULL when it has ended, or memory is out. */
static tide_lane *join(tide_recorder *r) {
    tide_lane *l = my_lanes;
    while (l && !is_free(l))
        l = l->mine;
    if (!l && !(l = lane_claim()))
        return NULL;
    enter(l);
    uint64_t now = atomic_load(&r->generation);
    int number = now ? atomic_fetch_add(&r->nlanes, 1) + 1 : 0;
    if (now && number <= INT16_MAX) {
        int64_t most = most_events(&r->options);
        int64_t chunks = (most + TIDE_CHUNK - 1) / TIDE_CHUNK;
        l->number = number;
        l->thread = (uint32_t)syscall(SYS_gettid);
        l->annotations = r->options.annotations;
        l->chunks = &r->chunks;
        l->most_chunks = chunks < INT32_MAX ? (int)chunks : INT32_MAX;
        atomic_store(&l->generation, now);
        return l;
    }
    leave(l);
    return NULL;
}

/* This thread's lane, busy, if it takes part in the recording and that runs; NULL otherwise. */
static inline tide_lane *find_mine(tide_recorder *r) {
    for (tide_lane *l = my_lanes; l; l = l->mine) {
        enter(l);
        uint64_t now = atomic_load(&r->generation); /* behind `busy`, for all to see */
        if (TD_LIKELY(now && atomic_load_explicit(&l->generation, memory_order_relaxed) == now))
            return l;
        leave(l);
    }
    return NULL;
}

static inline tide_lane *find_or_join(tide_recorder *r) {
    tide_lane *l = find_mine(r);
    return TD_LIKELY(l != NULL) ? l : join(r);
}

/* ---- tensors ---- */

/* As tide_input_next reads them: a word of what it is, which storage, then the sizes. */
typedef struct tensor_list {
    int count;
    bool identity;
    size_t used;
    int64_t words[TIDE_MAX_INPUTS * (3 + 2 * TD_MAX_DIMS)];
} tensor_list;

static inline int64_t head_of(const td_tensor *x) {
    return x->dtype | (int64_t)x->ndim << 8 | (x->contiguous ? TIDE_INPUT_DENSE : 0);
}

static int64_t offset_of(const td_tensor *x) {
    const char *first = x->storage->data, *mine = x->data;
    return first && mine ? (mine - first) / (int64_t)td_tensor_itemsize(x) : 0;
}

static void add_tensor(tensor_list *list, const td_tensor *x) {
    if (!x || list->count == TIDE_MAX_INPUTS)
        return;
    list->count++;
    int64_t head = head_of(x);
    bool strided = list->identity && !x->contiguous && x->layout == TD_STRIDED;
    if (list->identity)
        head |= TIDE_INPUT_KNOWN | (strided ? TIDE_INPUT_STRIDED : 0) |
                (x->requires_grad ? TIDE_INPUT_GRAD : 0) |
                (int64_t)((uint64_t)td_tensor_version(x) << 32);
    list->words[list->used++] = head;
    if (list->identity) {
        list->words[list->used++] = (int64_t)td_storage_serial(x->storage);
        list->words[list->used++] = offset_of(x);
    }
    for (int d = 0; d < x->ndim; d++)
        list->words[list->used++] = x->sizes[d];
    for (int d = 0; strided && d < x->ndim; d++)
        list->words[list->used++] = x->strides[d];
}

static const int64_t *keep_tensors(tide_lane *l, const tensor_list *list, uint8_t *count) {
    int64_t *kept = list->count ? tide_words_new(&l->last->words, list->used) : NULL;
    *count = kept ? (uint8_t)list->count : 0;
    return kept ? memcpy(kept, list->words, list->used * sizeof *kept) : NULL;
}

static void list_arguments(tensor_list *list, const td_event *event) {
    for (int k = 0; k < event->nargs; k++) {
        const td_value *v = &event->args[k];
        if (v->kind == TD_KIND_TENSOR)
            add_tensor(list, v->tensor);
        else if (v->kind == TD_KIND_TENSORS)
            for (int j = 0; j < v->n; j++)
                add_tensor(list, v->tensors[j]);
    }
}

/* The tensors and behind them the other arguments; NULL: memory is out. */
static const int64_t *keep_call(tide_lane *l, const tensor_list *list, const td_event *event) {
    int64_t others[TIDE_ARGUMENT_WORDS];
    size_t n = tide_arguments_write(event, others);
    int64_t *kept = tide_words_new(&l->last->words, list->used + n);
    if (!kept)
        return NULL;
    memcpy(kept, list->words, list->used * sizeof *kept);
    memcpy(kept + list->used, others, n * sizeof *kept);
    return kept;
}

/* Are these the tensors of the operator's last call, by shape and dtype? */
static bool are_recent(const tide_recent *recent, const td_event *event) {
    const int64_t *at = recent->words, *end = at + recent->nwords;
    const td_value *v = event->args;
    for (int k = event->nargs; k > 0; k--, v++) {
        if (v->kind == TD_KIND_TENSORS)
            return false;
        if (v->kind != TD_KIND_TENSOR)
            continue;
        const td_tensor *x = v->tensor;
        if (at == end || *at++ != head_of(x))
            return false;
        const int64_t *sizes = x->sizes;
        for (int d = x->ndim; d > 0; d--)
            if (*at++ != *sizes++)
                return false;
    }
    return at == end;
}

/* An operator over tensors that all have a few elements. */
static bool is_tiny(const td_event *event) {
    int tensors = 0;
    for (int k = 0; k < event->nargs; k++) {
        const td_value *v = &event->args[k];
        if (v->kind == TD_KIND_TENSORS || (v->kind == TD_KIND_TENSOR && v->tensor->numel > TINY))
            return false;
        tensors += v->kind == TD_KIND_TENSOR;
    }
    return tensors > 0;
}

static __attribute__((noinline)) void keep_new_inputs(tide_lane *l, const tide_record_options *o,
                                                      tide_record *r, const td_event *event) {
    tensor_list list;
    list.count = 0;
    list.used = 0;
    list.identity = o->identity;
    list_arguments(&list, event);
    if (o->identity) {
        r->inputs = keep_call(l, &list, event);
        r->ninputs = r->inputs ? (uint8_t)list.count : 0;
        return;
    }
    r->inputs = keep_tensors(l, &list, &r->ninputs);
    if (r->inputs)
        l->recent[td_hash_address(event->name) % TIDE_RECENT] =
            (tide_recent){event->name, r->inputs, (int)list.used, r->ninputs, is_tiny(event)};
}

/* Keep the tensors; were they tiny? */
static inline bool keep_inputs(tide_lane *l, const tide_record_options *o, tide_record *r,
                               const td_event *event) {
    const tide_recent *recent = &l->recent[td_hash_address(event->name) % TIDE_RECENT];
    if (TD_LIKELY(recent->name == event->name) && !o->identity && are_recent(recent, event)) {
        r->inputs = recent->words;
        r->ninputs = recent->count;
        return recent->tiny;
    }
    keep_new_inputs(l, o, r, event);
    return is_tiny(event);
}

static void keep_results(tide_lane *l, const tide_record_options *o, tide_record *r,
                         const td_event *event) {
    tensor_list list = {.count = 0, .used = 0};
    list.identity = o->identity;
    for (int k = 0; k < event->nresults; k++)
        add_tensor(&list, event->results[k]);
    r->results = keep_tensors(l, &list, &r->nresults);
}

/* ---- recording ---- */

static bool is_origin(const td_origin *a, const td_origin *b) {
    return a->line == b->line && strcmp(a->source, b->source) == 0;
}

/* In loops the line is mostly the last one. */
static __attribute__((noinline)) const char *keep_line(tide_lane *l, const td_origin *origin) {
    char text[sizeof origin->source + 16];
    if (l->recent_line && is_origin(&l->recent_origin, origin))
        return l->recent_line;
    snprintf(text, sizeof text, "%s:%d", origin->source, origin->line);
    l->recent_origin = *origin;
    return l->recent_line = tide_lane_text(l, text);
}

/* Does a tool beside hear of it? A step may end within others. */
static inline bool is_annotated(const tide_lane *l, const tide_record *r) {
    return TD_UNLIKELY(l->annotations != NULL) && r->kind != TD_EVENT_KERNEL &&
           r->kind != TIDE_EVENT_STEP;
}

/* A record on the stack; NULL when there is no memory for it: then what begins inside isn't
 * recorded either, and begin and end stay paired. */
static inline tide_record *open_record(tide_lane *l) {
    tide_record *r = TD_LIKELY(!l->lost) ? tide_lane_record(l) : NULL;
    if (r && TD_UNLIKELY(!tide_lane_push(l, r))) {
        l->last->n--;
        r = NULL;
    }
    if (TD_UNLIKELY(!r)) {
        l->lost++;
        l->dropped++;
    }
    return r;
}

/* Let the engine not tell of the kernels of this call, which has just been opened. */
static inline void hush(tide_recorder *r, tide_lane *l) {
    if (++l->tiny <= TINY_TIMED || l->tiny % TINY_EVERY == 0)
        return;
    l->untimed++;
    td_observer_current = r->hushed;
}

static inline void begin(tide_recorder *recorder, tide_lane *l, const td_event *event) {
    const tide_record_options *o = &recorder->options;
    tide_record *r = open_record(l);
    if (TD_UNLIKELY(!r))
        return;
    *r = (tide_record){
        .name = event->name, .sequence = event->sequence, .kind = (uint8_t)event->kind};
    if (event->kind == TD_EVENT_OP) {
        bool tiny = o->shapes ? keep_inputs(l, o, r, event) : is_tiny(event);
        if (tiny && !o->all_kernels)
            hush(recorder, l);
    }
    if (event->origin)
        r->line = keep_line(l, event->origin);
    if (is_annotated(l, r))
        (void)l->annotations->push(r->name);
    r->start = tide_lane_tick(l);
}

static inline void end(tide_lane *l, uint64_t sequence) {
    if (TD_UNLIKELY(l->lost)) {
        l->lost--;
    } else if (l->nopen) { /* else it began before the recording did */
        tide_record *r = l->open[--l->nopen].record;
        if (sequence)
            r->sequence = sequence;
        r->end = tide_lane_tick(l);
        if (is_annotated(l, r))
            (void)l->annotations->pop();
    }
}

static void on_begin(void *ctx, const td_event *event) {
    tide_recorder *r = ctx;
    tide_lane *l = find_or_join(r);
    if (l) {
        begin(r, l, event);
        leave(l);
    }
}

static void on_end(void *ctx, const td_event *event) {
    tide_recorder *r = ctx;
    tide_lane *l = find_mine(r);
    if (td_observer_current == r->hushed)
        td_observer_current = r->loud;
    if (TD_UNLIKELY(!l))
        return;
    tide_record *record = l->nopen && !l->lost ? l->open[l->nopen - 1].record : NULL;
    end(l, event->sequence);
    if (r->options.results && record && event->nresults && !event->status)
        keep_results(l, &r->options, record, event);
    leave(l);
}

static void on_instant(void *ctx, const td_event *event) {
    tide_lane *l = find_or_join(ctx);
    tide_record *r = l && !l->lost ? tide_lane_record(l) : NULL;
    if (r) {
        uint64_t now = tide_lane_tick(l);
        *r = (tide_record){.start = now,
                           .end = now,
                           .name = event->name,
                           .total = event->total,
                           .bytes = event->bytes,
                           .kind = (uint8_t)event->kind};
    } else if (l) {
        l->dropped++;
    }
    if (l)
        leave(l);
}

/* The recorder that is told of this thread's work; it may have stopped. */
static tide_recorder *mine(void) {
    td_observer *o = td_observer_current;
    return o && o->begin == on_begin ? o->ctx : NULL;
}

/* ---- ranges ---- */

static void on_origin(void *ctx, td_origin *origin) {
    tide_recorder *r = ctx;
    tide_find_line_fn find_line = atomic_load(&r->find_line);
    void *script = atomic_load(&r->script);
    if (find_line && script)
        find_line(script, origin);
}

static uint64_t begin_range(tide_recorder *recorder, tide_lane *l, int kind, const char *name) {
    const tide_record_options *o = &recorder->options;
    tide_record *r = open_record(l);
    if (!r)
        return 0;
    const char *kept = tide_lane_text(l, name);
    *r = (tide_record){.name = kept ? kept : "range", .kind = (uint8_t)kind};
    l->open[l->nopen - 1].serial = ++l->serials;
    if (o->identity && atomic_load(&recorder->script)) {
        td_origin origin = {.line = 0};
        on_origin(recorder, &origin);
        r->line = origin.line ? keep_line(l, &origin) : NULL;
    }
    if (is_annotated(l, r))
        (void)l->annotations->push(r->name);
    r->start = tide_lane_tick(l);
    return l->serials;
}

tide_range tide_range_begin(int kind, const char *name) {
    tide_range range = {.recorder = mine()};
    tide_lane *l = range.recorder ? find_or_join(range.recorder) : NULL;
    if (l) {
        range.generation = atomic_load_explicit(&l->generation, memory_order_relaxed);
        range.serial = begin_range(range.recorder, l, kind, name);
        leave(l);
    }
    return range;
}

/* How deep the range lies on the stack; -1: it has ended. */
static int depth_of(const tide_lane *l, tide_range range) {
    bool ours = atomic_load_explicit(&l->generation, memory_order_relaxed) == range.generation;
    int at = ours && range.serial ? l->nopen - 1 : -1;
    while (at >= 0 && l->open[at].serial != range.serial)
        at--;
    return at;
}

void tide_range_end(tide_range range) {
    tide_lane *l = range.generation ? find_mine(range.recorder) : NULL;
    if (!l)
        return;
    int at = depth_of(l, range);
    if (at >= 0)
        l->lost = 0;
    else if (!range.serial && l->lost)
        l->lost--;
    while (at >= 0 && l->nopen > at)
        end(l, 0);
    leave(l);
}

/* ---- steps ---- */

/* What was open when a step ended has gone on since: the step's own range would cut through it. */
static void give_up_range(tide_lane *l, int at) {
    l->open[at].record->kind = TIDE_RECORD_GONE;
    memmove(&l->open[at], &l->open[at + 1], (size_t)(l->nopen - at - 1) * sizeof *l->open);
    l->nopen--;
}

static void end_step(tide_recorder *r, tide_lane *l) {
    int at = l->lost ? -1 : depth_of(l, r->step);
    if (at >= 0 && at == l->nopen - 1)
        end(l, 0);
    else if (at >= 0)
        give_up_range(l, at);
}

static bool note_step(tide_recorder *r) {
    if (r->nsteps == r->steps_room) {
        int room = r->steps_room ? 2 * r->steps_room : 64;
        uint64_t *steps = td_realloc(r->steps, (size_t)room * sizeof *steps);
        if (!steps)
            return false;
        r->steps = steps;
        r->steps_room = room;
    }
    return true;
}

td_status tide_recorder_step(tide_recorder *r) {
    char name[32];
    tide_lane *l = find_or_join(r);
    if (!l || !note_step(r)) {
        if (l)
            leave(l);
        return td_fail(TD_ENOMEM, "out of memory");
    }
    end_step(r, l);
    snprintf(name, sizeof name, "ProfilerStep#%d", r->nsteps + 1);
    r->step.generation = atomic_load_explicit(&l->generation, memory_order_relaxed);
    r->step.serial = begin_range(r, l, TIDE_EVENT_STEP, name);
    r->steps[r->nsteps++] = l->last_ticks;
    leave(l);
    return TD_OK;
}

/* ---- start and stop ---- */

/* Which of its observers: they differ in what the engine is asked for. */
enum { WITH_LINES = 1, WITH_MEMORY = 2, WITHOUT_KERNELS = 4 };

static tide_recorder *recorder_new(void) {
    tide_recorder *r = td_calloc(1, sizeof *r);
    if (!r)
        return NULL;
    uint32_t kinds = 1u << TD_EVENT_OP | 1u << TD_EVENT_BACKWARD | 1u << TD_EVENT_LOAD;
    for (int k = 0; k < 8; k++)
        r->observers[k] =
            (td_observer){.ctx = r,
                          .kinds = kinds | (k & WITHOUT_KERNELS ? 0 : 1u << TD_EVENT_KERNEL) |
                                   (k & WITH_MEMORY ? 1u << TD_EVENT_ALLOC : 0),
                          .origin = k & WITH_LINES ? on_origin : NULL,
                          .begin = on_begin,
                          .end = on_end,
                          .instant = on_instant};
    r->next = recorders;
    return recorders = r;
}

static void begin_recording(tide_recorder *r, const tide_record_options *options) {
    r->options = *options;
    r->options.results |= options->identity;
    r->options.shapes |= r->options.results;
    atomic_store(&r->find_line, options->find_line);
    atomic_store(&r->script, options->script);
    atomic_store(&r->nlanes, 0);
    atomic_store(&r->chunks, 0);
    int which = (options->script ? WITH_LINES : 0) | (options->memory ? WITH_MEMORY : 0);
    atomic_store(&r->loud, &r->observers[which]);
    atomic_store(&r->hushed, &r->observers[which | WITHOUT_KERNELS]);
    r->nsteps = 0;
    r->step = (tide_range){.recorder = r};
    r->origin = tide_ticks();
    atomic_store(&r->generation, ++generations);
}

tide_recorder *tide_recorder_start(const tide_record_options *options) {
    static const tide_record_options usual = {.shapes = true};
    tide_recorder *r = mine();
    if (r && atomic_load(&r->generation)) {
        td_fail(TD_EVALUE, "a profile is being recorded already");
        return NULL;
    }
    tide_ticks_begin();
    tide_chunk_warm();
    options = options ? options : &usual;
    tide_device_log *log = tide_device_log_open(most_events(options));
    pthread_mutex_lock(&lanes_lock);
    if (!system_barrier(REGISTER))
        barriers_everywhere = true;
    for (r = log ? recorders : NULL; r && r->taken;)
        r = r->next;
    if (r || (log && (r = recorder_new()))) {
        r->taken = true;
        begin_recording(r, options);
        r->log = log;
    }
    pthread_mutex_unlock(&lanes_lock);
    if (!r) {
        if (log)
            (void)tide_device_log_close(log);
        tide_device_log_free(log);
        td_fail(TD_ENOMEM, "out of memory");
        return NULL;
    }
    r->before = td_observer_set(tide_recorder_observer(r));
    return r;
}

td_observer *tide_recorder_observer(tide_recorder *r) {
    return atomic_load(&r->loud);
}

/* The lanes of a recording that has ended, once their threads have left them: the number-th. */
static tide_lane *find_lane(uint64_t generation, int number) {
    pthread_mutex_lock(&lanes_lock);
    tide_lane *l = lanes;
    for (; l; l = l->next) {
        while (atomic_load(&l->busy))
            sched_yield();
        if (atomic_load(&l->generation) == generation && l->number == number)
            break;
    }
    pthread_mutex_unlock(&lanes_lock);
    return l;
}

/* What this thread has open ends for the tool beside as well. */
static void end_annotations(tide_recorder *r) {
    tide_lane *l = find_mine(r);
    if (!l)
        return;
    for (int k = l->nopen; k > 0; k--)
        if (is_annotated(l, l->open[k - 1].record))
            (void)l->annotations->pop();
    l->annotations = NULL;
    leave(l);
}

tide_raw *tide_recorder_halt(tide_recorder *r) {
    end_annotations(r);
    uint64_t generation = atomic_exchange(&r->generation, 0);
    td_observer *now = td_observer_current;
    if (!barriers_everywhere)
        (void)system_barrier(BARRIER);
    atomic_store(&r->script, NULL);
    if (now && now->ctx == r && now->begin == on_begin)
        td_observer_set(r->before);
    uint64_t end = tide_device_log_close(r->log);
    tide_raw *raw =
        tide_raw_new(r->origin, end, r->steps, r->nsteps, most_events(&r->options), r->log);
    r->log = NULL;
    r->steps = NULL;
    r->steps_room = 0;
    tide_lane *l;
    for (int number = 1; (l = find_lane(generation, number)); number++) {
        if (raw)
            tide_raw_take(&raw, l);
        tide_lane_clear(l);
    }
    pthread_mutex_lock(&lanes_lock);
    r->taken = false;
    pthread_mutex_unlock(&lanes_lock);
    if (!raw)
        td_fail(TD_ENOMEM, "out of memory");
    return raw;
}

td_status tide_recorder_stop(tide_recorder *r, tide_recording *out) {
    tide_raw *raw = tide_recorder_halt(r);
    *out = (tide_recording){0};
    return raw ? tide_raw_gather(raw, out) : TD_ENOMEM;
}
