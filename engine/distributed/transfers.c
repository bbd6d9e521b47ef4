/* transfers.c: what has arrived since somebody began to record: a list behind a lock, of which the
 * oldest go when it is full. */
#include "engine/distributed/transfers.h"

#include "engine/core/activity.h"
#include "engine/core/memory.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

typedef struct transfer {
    char name[TD_WORK_NAME];
    uint64_t number;
    int64_t bytes, posted_ns, started_ns, arrived_ns;
    uint32_t group, thread;
} transfer;

static struct {
    pthread_mutex_t lock;
    bool wanted;
    transfer *list;
    int64_t count, room, most; /* count goes on when the list is full */
    int64_t lost;              /* for want of memory */
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

int64_t td_transfers_clock(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static uint64_t now(void) {
    return (uint64_t)td_transfers_clock();
}

static void forget(void) {
    td_free(kept.list);
    kept.list = NULL;
    kept.count = kept.room = kept.lost = 0;
}

/* The place of the next: a new one, or that of the oldest. NULL: memory is out. */
static transfer *next_place(void) {
    if (kept.count == kept.room && kept.room < kept.most) {
        int64_t room = kept.room ? 2 * kept.room : 256;
        room = room < kept.most ? room : kept.most;
        transfer *list = td_realloc(kept.list, (size_t)room * sizeof *list);
        if (!list)
            return NULL;
        kept.list = list;
        kept.room = room;
    }
    return &kept.list[kept.count++ % kept.room];
}

static int64_t bytes_of(const td_tensor *x) {
    return x ? x->numel * (int64_t)td_tensor_itemsize(x) : 0;
}

void td_transfers_note(const td_work *work) {
    pthread_mutex_lock(&kept.lock);
    transfer *t = kept.wanted ? next_place() : NULL;
    if (t) {
        int64_t sent = bytes_of(work->send), received = bytes_of(work->recv);
        *t = (transfer){.number = work->everywhere,
                        .bytes = sent > received ? sent : received,
                        .posted_ns = work->posted_ns,
                        .started_ns = work->started_ns,
                        .arrived_ns = td_transfers_clock(),
                        .group = work->group_number,
                        .thread = work->thread};
        memcpy(t->name, work->name, sizeof t->name);
    } else if (kept.wanted) {
        kept.lost++;
    }
    pthread_mutex_unlock(&kept.lock);
}

/* ---- the source ----
 *
 * The CPU has one, so that which was there before (what the engine compiles) is handed on by this
 * one. */

static const td_activity_source *other;

static const char *begin(int64_t most) {
    if (other)
        (void)other->begin(most);
    pthread_mutex_lock(&kept.lock);
    forget();
    kept.most = most > 0 ? most : 1;
    kept.wanted = true;
    pthread_mutex_unlock(&kept.lock);
    return NULL;
}

/* What has not arrived is other ranks' business as well, and is left out. */
static void wait_for_none(void) {}

static int64_t collect(td_activity_fn take, void *ctx) {
    int64_t others_lost = other ? other->collect(take, ctx) : 0;
    pthread_mutex_lock(&kept.lock);
    int64_t n = kept.count < kept.room ? kept.count : kept.room;
    int64_t lost = kept.lost + kept.count - n;
    for (int64_t k = 0; k < n; k++) {
        const transfer *t = &kept.list[k];
        take(ctx, &(td_activity){
                      .kind = TD_ACTIVITY_COLLECTIVE,
                      .thread = t->thread,
                      .name = t->name,
                      .track = {.device = TD_DEVICE_CPU, .id = (uint16_t)(TD_COMPILERS + t->group)},
                      .bytes = t->bytes,
                      .number = t->number,
                      .start_ns = (uint64_t)t->started_ns,
                      .end_ns = (uint64_t)t->arrived_ns,
                      .launch_ns = (uint64_t)t->posted_ns});
    }
    forget();
    pthread_mutex_unlock(&kept.lock);
    return lost + others_lost;
}

static void end(void) {
    if (other)
        other->end();
    pthread_mutex_lock(&kept.lock);
    forget();
    kept.wanted = false;
    pthread_mutex_unlock(&kept.lock);
}

static void register_once(void) {
    static const td_activity_source source = {
        .now = now, .begin = begin, .wait = wait_for_none, .collect = collect, .end = end};
    other = td_activity_source_of(TD_CPU);
    td_activity_register(TD_CPU, &source);
}

void td_transfers_register(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_once);
}
