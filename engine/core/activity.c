/* activity.c: the sources of activities that devices' modules have registered, by kind of device;
 * and the CPU's, a ring of what threads of the engine's own did while somebody records. */
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

/* ---- the CPU's log ---- */

enum { NAME = 200 };

typedef struct entry {
    td_activity activity;
    char name[NAME];
} entry;

static atomic_bool listening;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all below */
static entry *entries;
static int64_t count, room, most; /* count goes on when the ring is full */
static int64_t lost;              /* for want of memory */

int64_t td_clock_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static bool is_listening(void) {
    return atomic_load_explicit(&listening, memory_order_relaxed);
}

/* With the lock held: a new place, or that of the oldest; NULL: memory is out. */
static entry *next_entry(void) {
    if (count == room && room < most) {
        int64_t more = room ? 2 * room : 64;
        more = more < most ? more : most;
        entry *larger = td_realloc(entries, (size_t)more * sizeof *larger);
        if (!larger)
            return NULL;
        entries = larger;
        room = more;
    }
    return &entries[count++ % room];
}

void td_activity_log(const td_activity *activity) {
    if (!is_listening())
        return;
    pthread_mutex_lock(&lock);
    entry *e = atomic_load(&listening) ? next_entry() : NULL;
    if (e) {
        e->activity = *activity;
        snprintf(e->name, sizeof e->name, "%s", activity->name);
    } else {
        lost++;
    }
    pthread_mutex_unlock(&lock);
}

static uint64_t now(void) {
    return (uint64_t)td_clock_ns();
}

/* With the lock held. */
static void forget(void) {
    td_free(entries);
    entries = NULL;
    count = room = lost = 0;
}

static const char *begin(int64_t wanted) {
    pthread_mutex_lock(&lock);
    forget();
    most = wanted > 0 ? wanted : 1;
    atomic_store(&listening, true);
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void (*_Atomic wait_by)(void);

void td_activity_log_wait_by(void (*wait)(void)) {
    atomic_store(&wait_by, wait);
}

/* What is being compiled is no work that the recording's calls asked for, and what nobody waited
 * for and has not arrived is other ranks' business as well: both are left out. */
static void wait_for_log(void) {
    void (*wait)(void) = atomic_load(&wait_by);
    if (wait)
        wait();
}

static int64_t collect(td_activity_fn take, void *ctx) {
    pthread_mutex_lock(&lock);
    int64_t n = count < room ? count : room, gone = lost + count - n;
    for (int64_t k = 0; k < n; k++) {
        entries[k].activity.name = entries[k].name;
        take(ctx, &entries[k].activity);
    }
    forget();
    pthread_mutex_unlock(&lock);
    return gone;
}

static void end(void) {
    pthread_mutex_lock(&lock);
    atomic_store(&listening, false);
    forget();
    pthread_mutex_unlock(&lock);
}

void td_activity_log_announce(void) {
    static const td_activity_source source = {
        .now = now, .begin = begin, .wait = wait_for_log, .collect = collect, .end = end};
    td_activity_register(TD_CPU, &source);
}

/* ---- what the engine compiles ---- */

td_compile_request td_compile_request_now(void) {
    if (!is_listening())
        return (td_compile_request){0, 0};
    return (td_compile_request){(uint32_t)syscall(SYS_gettid), now()};
}

uint64_t td_compile_begin(void) {
    return is_listening() ? now() : 0;
}

void td_compile_end(uint64_t began_ns, td_compiler compiler, td_compile_request request,
                    const char *what, const char *name) {
    char text[NAME];
    if (!began_ns)
        return;
    snprintf(text, sizeof text, "%s %s", what, name);
    td_activity_log(&(td_activity){.kind = TD_ACTIVITY_COMPILE,
                                   .thread = request.thread,
                                   .name = text,
                                   .track = {.device = {.type = TD_CPU}, .id = (uint16_t)compiler},
                                   .start_ns = began_ns,
                                   .end_ns = now(),
                                   .launch_ns = request.at_ns});
}
