/* activity.c: the sources of activities that devices' modules have registered, by kind of device;
 * and the CPU's, a list of what was compiled while somebody records. */
#include "engine/core/activity.h"

#include "engine/core/memory.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const td_activity_source *_Atomic sources[TD_DEVICE_TYPES];
static void (*_Atomic listener)(td_device_type type);

const td_activity_source *td_activity_source_of(td_device_type type) {
    return atomic_load(&sources[type]);
}

void td_activity_register(td_device_type type, const td_activity_source *source) {
    atomic_store(&sources[type], source);
    void (*appeared)(td_device_type) = atomic_load(&listener);
    if (appeared)
        appeared(type);
}

void td_activity_listen(void (*appeared)(td_device_type type)) {
    atomic_store(&listener, appeared);
}

/* ---- what the engine compiles ---- */

enum { MOST = 65536, NAME = 200 };

typedef struct entry {
    td_activity activity;
    char name[NAME];
} entry;

static atomic_bool listening;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all below */
static entry *entries;
static int64_t nentries, room, most, lost;

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

td_compile_request td_compile_request_now(void) {
    if (!atomic_load_explicit(&listening, memory_order_relaxed))
        return (td_compile_request){0, 0};
    return (td_compile_request){(uint32_t)syscall(SYS_gettid), now()};
}

uint64_t td_compile_begin(void) {
    return atomic_load_explicit(&listening, memory_order_relaxed) ? now() : 0;
}

/* With the lock held; NULL: there is no room. */
static entry *add_entry(void) {
    if (nentries == room && room < most) {
        int64_t more = room ? 2 * room : 64;
        more = more < most ? more : most;
        entry *larger = td_realloc(entries, (size_t)more * sizeof *larger);
        entries = larger ? larger : entries;
        room = larger ? more : room;
    }
    return nentries < room ? &entries[nentries++] : NULL;
}

void td_compile_end(uint64_t began_ns, td_compiler compiler, td_compile_request request,
                    const char *what, const char *name) {
    if (!began_ns)
        return;
    pthread_mutex_lock(&lock);
    entry *e = atomic_load(&listening) ? add_entry() : NULL;
    if (e) {
        snprintf(e->name, sizeof e->name, "%s %s", what, name);
        e->activity = (td_activity){.kind = TD_ACTIVITY_COMPILE,
                                    .thread = request.thread,
                                    .track = {.device = {.type = TD_CPU}, .id = (uint16_t)compiler},
                                    .start_ns = began_ns,
                                    .end_ns = now(),
                                    .launch_ns = request.at_ns};
    } else {
        lost++;
    }
    pthread_mutex_unlock(&lock);
}

/* ---- the source ---- */

static const char *begin(int64_t wanted) {
    pthread_mutex_lock(&lock);
    most = wanted < MOST ? wanted : MOST;
    nentries = lost = 0;
    atomic_store(&listening, true);
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* What is being compiled is not waited for: it is no work that the recording's calls asked for. */
static void wait_for_nothing(void) {}

static int64_t collect(td_activity_fn take, void *ctx) {
    pthread_mutex_lock(&lock);
    for (int64_t k = 0; k < nentries; k++) {
        entries[k].activity.name = entries[k].name;
        take(ctx, &entries[k].activity);
    }
    int64_t gone = lost;
    nentries = lost = 0;
    pthread_mutex_unlock(&lock);
    return gone;
}

static void end(void) {
    pthread_mutex_lock(&lock);
    atomic_store(&listening, false);
    td_free(entries);
    entries = NULL;
    nentries = room = 0;
    pthread_mutex_unlock(&lock);
}

void td_compile_log_announce(void) {
    static const td_activity_source source = {
        .now = now, .begin = begin, .wait = wait_for_nothing, .collect = collect, .end = end};
    td_activity_register(TD_CPU, &source);
}
