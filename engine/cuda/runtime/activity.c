/* activity.c: what devices did is kept until somebody collects it. What CUPTI says comes in two
 * parts, calls of the host and what they started, in any order; they are joined when they are
 * collected.
 */
#include "engine/cuda/runtime/activity.h"

#include "engine/core/map.h"
#include "engine/core/memory.h"
#include "engine/core/warn.h"
#include "engine/cuda/loaded_libraries/cupti.h"
#include "engine/cuda/pointwise/dense_code.h"
#include "engine/cuda/pointwise/pointwise_code.h"
#include "engine/cuda/runtime/loaded_libraries.h"
#include "engine/ops/language/program.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A call of the host. */
typedef struct call {
    uint32_t number, thread;
    uint64_t at; /* in its middle */
} call;

/* The newest of a kind of things: when there is no more room the oldest goes. */
typedef struct ring {
    void *list;
    size_t size; /* of one */
    int64_t count, room, first, most, lost;
} ring;

/* An activity whose call, by its number, and stream, by CUPTI's, are to be found. */
typedef struct kept {
    td_activity activity;
    uint32_t number, stream;
    bool is_ours; /* it has a thread and a stream already */
} kept;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const td_late_cupti *cupti; /* while it records; NULL: events do, or nothing */
static bool keeping;
static ring activities = {.size = sizeof(kept)}, calls = {.size = sizeof(call)};
static td_map names; /* which activities have, for ever: as many as there are kernels */

uint32_t td_cuda_thread(void) {
    static _Thread_local uint32_t known;
    if (!known)
        known = (uint32_t)syscall(SYS_gettid);
    return known;
}

uint64_t td_cuda_clock(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- rings ---- */

static bool has_room(ring *r) {
    if (r->count < r->room)
        return true;
    int64_t room = r->room ? 2 * r->room : 1024;
    room = room < r->most ? room : r->most;
    if (room <= r->room)
        return false;
    void *list = td_realloc(r->list, (size_t)room * r->size);
    if (!list)
        return false;
    r->list = list;
    r->room = room;
    return true;
}

/* A place at the end, with the lock held; NULL: there is none at all. */
static void *ring_add(ring *r) {
    if (!has_room(r)) {
        r->lost++;
        if (!r->room)
            return NULL;
        int64_t at = r->first;
        r->first = (r->first + 1) % r->room;
        return (char *)r->list + (size_t)at * r->size;
    }
    return (char *)r->list + (size_t)r->count++ * r->size;
}

static void ring_clear(ring *r) {
    td_free(r->list);
    r->list = NULL;
    r->count = r->room = r->first = r->lost = 0;
}

/* ---- names ---- */

/* Of C++'s library. */
extern char *__cxa_demangle(const char *name, char *buffer, size_t *size, int *status);

static bool same_text(const void *entry, const void *key) {
    return strcmp(*(char *const *)entry, key) == 0;
}

typedef struct known_name {
    const char *written; /* as it came */
    const char *shown;
} known_name;

/* "_Z..." -> "void (anonymous namespace)::run<float>(args)" -> "run<float>" */
static char *shorten(const char *name) {
    static char *room; /* which the compiler's library makes and grows */
    static size_t size;
    char *plain = NULL;
    int status = -1;
    if (name[0] == '_' && name[1] == 'Z')
        plain = __cxa_demangle(name, room, &size, &status);
    if (!plain)
        return td_strdup(name);
    room = plain;
    char *from = strncmp(plain, "void ", 5) == 0 ? plain + 5 : plain, *end = from;
    static const char anonymous[] = "(anonymous namespace)";
    enum { SKIP = sizeof anonymous - 1 };
    if (strncmp(from, anonymous, SKIP) == 0 && strncmp(from + SKIP, "::", 2) == 0)
        end = from += SKIP + 2;
    for (int depth = 0; *end && (depth || *end != '('); end++) {
        depth += *end == '<' ? 1 : *end == '>' ? -1 : 0;
        if (strncmp(end + 1, anonymous, SKIP) == 0)
            end += SKIP;
    }
    *end = '\0';
    return td_strdup(from);
}

static const char *keep_name(const char *name) {
    uint64_t hash = td_hash_text(name);
    known_name *found = td_map_find(&names, hash, same_text, name);
    if (found)
        return found->shown;
    found = td_malloc(sizeof *found);
    if (!found)
        return "kernel";
    found->written = td_strdup(name);
    found->shown = found->written ? shorten(name) : NULL;
    if (!found->shown || td_map_add(&names, hash, found)) {
        td_free((char *)(uintptr_t)found->written);
        td_free((char *)(uintptr_t)found->shown);
        td_free(found);
        return "kernel";
    }
    return found->shown;
}

/* ---- keeping ---- */

void td_cuda_keep_activity(const td_activity *a) {
    pthread_mutex_lock(&lock);
    kept *k = keeping ? ring_add(&activities) : NULL;
    if (k) {
        *k = (kept){.activity = *a, .is_ours = true};
        k->activity.name = keep_name(a->name);
    }
    pthread_mutex_unlock(&lock);
}

static void take_call(const td_cupti_record *r) {
    call *c = ring_add(&calls);
    if (c)
        *c = (call){r->number, r->thread, r->start + (r->end - r->start) / 2};
}

static void take_work(const td_cupti_record *r) {
    static const td_activity_kind kinds[] = {[TD_CUPTI_CALL] = TD_ACTIVITY_KERNEL,
                                             [TD_CUPTI_KERNEL] = TD_ACTIVITY_KERNEL,
                                             [TD_CUPTI_COPY] = TD_ACTIVITY_COPY,
                                             [TD_CUPTI_SET] = TD_ACTIVITY_SET};
    kept *k = r->device < TD_CUDA_DEVICES && r->end ? ring_add(&activities) : NULL;
    if (!k)
        return;
    *k = (kept){.number = r->number, .stream = r->stream};
    k->activity = (td_activity){.kind = kinds[r->kind],
                                .name = keep_name(r->name),
                                .track = {{TD_CUDA, (uint8_t)r->device}, 0},
                                .bytes = (int64_t)r->bytes,
                                .start_ns = r->start,
                                .end_ns = r->end};
}

static void take(const td_cupti_record *r) {
    pthread_mutex_lock(&lock);
    if (keeping && r->kind == TD_CUPTI_CALL)
        take_call(r);
    else if (keeping)
        take_work(r);
    pthread_mutex_unlock(&lock);
}

/* ---- beginning and ending ---- */

#ifndef TD_CUDA_CUPTI
#define TD_CUDA_CUPTI "" /* the module's file, beside ours: built without it */
#endif
#ifdef TD_CUDA_CUPTI_INSIDE /* the module is a part of this one */
extern const td_late_cupti td_late_cupti_calls;
static td_cuda_late library = {.tried = true, .table = &td_late_cupti_calls};
#else
static td_cuda_late library = {.file = TD_CUDA_CUPTI, .symbol = TD_LATE_CUPTI};
#endif

/* The line that says what the times lack; warns of it once. */
static const char *complain(const char *why) {
    static char note[300];
    if (!*note) {
        snprintf(note, sizeof note,
                 "devices' times are of whole functions, by CUDA's events, and less precise: CUPTI "
                 "can't be used (%s)",
                 why);
        td_warn("profiler: %s", note);
    }
    return note;
}

static bool is_used(int device) {
    bool used = false;
    for (int id = 0; id < TD_CUDA_STREAMS && !used; id++)
        used = td_cuda_known_stream((td_stream){{TD_CUDA, (uint8_t)device}, (uint16_t)id}) != NULL;
    return used;
}

static void wait(void);

/* The first kernel after CUPTI was asked waits for what that makes, some 0.6 ms: one of ours does,
 * before the recording begins, on the devices that are in use. Nothing is kept of it. */
static void warm_up(void) {
    for (int d = 0; d < td_cuda_count(); d++) {
        const td_stream stream = {{TD_CUDA, (uint8_t)d}, 0};
        td_cuda_scratch room = {.data = NULL};
        cudaStream_t s;
        if (!is_used(d) || td_cuda_records_anything() || td_cuda_enter(stream, &s) != TD_OK ||
            td_cuda_scratch_take(&room, stream, sizeof(float)) != TD_OK)
            continue;
        const td_cu_dense zero = {.n = 1,
                                  .out = room.data,
                                  .kinds = {TD_CU_NUMBER},
                                  .primitive = TD_PW_copy,
                                  .memory = TD_F32,
                                  .to = TD_F32};
        if (td_cu_dense_move(&zero, s) != cudaSuccess)
            (void)cudaGetLastError();
        td_cuda_scratch_drop(&room);
    }
    wait();
    cupti->flush();
    pthread_mutex_lock(&lock);
    ring_clear(&activities);
    ring_clear(&calls);
    pthread_mutex_unlock(&lock);
}

static const char *begin(int64_t most) {
    static const td_cupti_host host = {take, td_malloc, td_free};
    pthread_mutex_lock(&lock);
    const td_late_cupti *loaded = td_cuda_late_table(&library);
    activities.most = most;
    calls.most = most < INT64_MAX / 4 ? 4 * most : most;
    keeping = true;
    pthread_mutex_unlock(&lock);
    const char *why = loaded          ? loaded->begin(&host)
                      : *library.file ? "it is not installed"
                                      : "this was built without it";
    cupti = why ? NULL : loaded;
    if (cupti) {
        warm_up();
        return NULL;
    }
    td_cuda_timing_begin();
    return complain(why);
}

static uint64_t now(void) {
    return cupti ? cupti->now() : td_cuda_clock();
}

/* While a graph is recorded nothing may be waited for. */
static void wait(void) {
    cudaStream_t unused;
    for (int d = 0; d < td_cuda_count(); d++)
        if (is_used(d) && !td_cuda_records_anything() &&
            td_cuda_enter((td_stream){{TD_CUDA, (uint8_t)d}, 0}, &unused) == TD_OK) {
            (void)cudaDeviceSynchronize();
            (void)cudaGetLastError(); /* told by whoever waits for the work itself */
        }
    if (!cupti)
        td_cuda_timing_drain(true);
}

static void end(void) {
    if (cupti)
        cupti->end();
    else
        td_cuda_timing_end();
    cupti = NULL;
    pthread_mutex_lock(&lock);
    keeping = false;
    ring_clear(&activities);
    ring_clear(&calls);
    pthread_mutex_unlock(&lock);
}

/* ---- collecting ---- */

static int by_number(const void *a, const void *b) {
    const call *x = a, *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

static const call *find_call(const ring *r, uint32_t number) {
    const call key = {.number = number};
    return r->count ? bsearch(&key, r->list, (size_t)r->count, sizeof key, by_number) : NULL;
}

/* Our number of a stream, by CUPTI's; of a library's own, beyond ours. */
static uint16_t stream_of(int device, uint32_t number) {
    for (int id = 0; id < TD_CUDA_STREAMS; id++) {
        cudaStream_t s =
            td_cuda_known_stream((td_stream){{TD_CUDA, (uint8_t)device}, (uint16_t)id});
        if (s && cupti->stream_number(s) == number)
            return (uint16_t)id;
    }
    uint32_t other = TD_ACTIVITY_OTHERS + number;
    return other < UINT16_MAX ? (uint16_t)other : UINT16_MAX;
}

/* A stream that was asked for: the next activity is mostly of the same. */
typedef struct known_stream {
    int device; /* -1: none */
    uint32_t number;
    uint16_t id;
} known_stream;

static void complete(kept *k, const ring *of, known_stream *last) {
    const call *c = find_call(of, k->number);
    int device = k->activity.track.device.index;
    if (last->device != device || last->number != k->stream)
        *last = (known_stream){device, k->stream, stream_of(device, k->stream)};
    k->activity.track.id = last->id;
    k->activity.thread = c ? c->thread : 0;
    k->activity.launch_ns = c ? c->at : 0;
}

static ring steal(ring *r) {
    ring taken = *r;
    r->list = NULL;
    ring_clear(r);
    return taken;
}

static int64_t collect(td_activity_fn to, void *ctx) {
    if (cupti)
        cupti->flush();
    else
        td_cuda_timing_drain(false);
    pthread_mutex_lock(&lock);
    ring work = steal(&activities), of = steal(&calls);
    pthread_mutex_unlock(&lock);
    known_stream last = {.device = -1};
    if (of.count)
        qsort(of.list, (size_t)of.count, sizeof(call), by_number);
    for (int64_t n = 0; n < work.count; n++) {
        kept *k = (kept *)work.list + n;
        if (!k->is_ours && cupti)
            complete(k, &of, &last);
        to(ctx, &k->activity);
    }
    int64_t lost = work.lost + (cupti ? 0 : td_cuda_timing_lost());
    ring_clear(&work);
    ring_clear(&of);
    return lost;
}

void td_cuda_register_activities(void) {
    static td_activity_source source = {
        .now = now, .begin = begin, .wait = wait, .collect = collect, .end = end};
    source.annotations = td_cuda_annotations;
    td_activity_register(TD_CUDA, &source);
}
