/* later.c: the queue of jobs, and the thread that takes from it. */
#include "engine/script/later.h"

#include "engine/core/observer.h"
#include "engine/core/signals.h"
#include "engine/script/future.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    SMALL = 48,           /* nodes that the passes have done with within half a millisecond */
    TRIPS = 64,           /* that loops are written out for; of more, some at a time */
    SOME = 8,             /* trips */
    MOST = 1 << 20,       /* nodes that are counted */
    STACK_BYTES = 8 << 20 /* of the thread: passes recurse into blocks */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all below */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static td_later_job *waiting, **last = &waiting, *making;
static pthread_t maker;
static bool works, ends;

/* ---- what is worth it ---- */

static atomic_int when; /* 0: not known yet, 1: now, 2: later */

void td_later_set(bool later) {
    atomic_store(&when, later ? 2 : 1);
}

bool td_later_wanted(int work) {
    int is = atomic_load_explicit(&when, memory_order_relaxed);
    if (TD_UNLIKELY(is == 0)) {
        const char *asked = getenv("TIDE_SCRIPT");
        is = asked && strcmp(asked, "now") == 0 ? 1 : 2;
        atomic_store_explicit(&when, is, memory_order_relaxed);
    }
    return is == 2 && work > SMALL;
}

static int64_t trips_of(const td_ir_node *loop) {
    const td_ir_node *most = loop->inputs[0]->node;
    bool known = most && most->kind == TD_IR_CONSTANT && most->constant.kind == TD_KIND_INT;
    int64_t trips = known ? most->constant.i : SOME;
    return trips < 0 ? 0 : trips < TRIPS ? trips : SOME;
}

static int64_t count_nodes(const td_ir_block *block, int depth) {
    int64_t n = 0;
    for (const td_ir_node *node = block->first; node && n < MOST; node = node->next) {
        n += node->kind != TD_IR_CONSTANT;
        for (int b = 0; b < node->nblocks && depth; b++)
            n += (node->kind == TD_IR_LOOP ? trips_of(node) : 1) *
                 count_nodes(node->blocks[b], depth - 1);
        if (node->subgraph && node->subgraph != block->graph && depth)
            n += count_nodes(node->subgraph->block, depth - 1);
    }
    return n < MOST ? n : MOST;
}

int td_later_work(const td_ir_block *block) {
    enum { DEPTH = 8 };
    return (int)count_nodes(block, DEPTH);
}

/* ---- the thread ---- */

static td_later_job *take(void) {
    td_later_job *job = waiting;
    waiting = job->next;
    last = waiting ? last : &waiting;
    return making = job;
}

static void make(td_later_job *job) {
    td_modes before = td_set_modes(job->modes);
    td_observer *observer = td_observer_set(NULL);
    job->make(job);
    td_observer_set(observer);
    td_set_modes(before);
}

static void *work(void *unused) {
    pthread_setname_np(pthread_self(), "tide script");
    pthread_mutex_lock(&lock);
    while (!ends) {
        if (!waiting) {
            pthread_cond_wait(&changed, &lock);
            continue;
        }
        td_later_job *job = take();
        pthread_mutex_unlock(&lock);
        make(job);
        pthread_mutex_lock(&lock);
        job->queued = false;
        job->give(job); /* its owner may be gone when the lock is */
        making = NULL;
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
    return unused;
}

static void before_fork(void) {
    pthread_mutex_lock(&lock);
}

static void after_fork(void) {
    pthread_mutex_unlock(&lock);
}

/* What was being made waits again. */
static void in_child(void) {
    td_later_job *job = making;
    works = ends = false;
    making = NULL;
    if (job) {
        job->next = waiting;
        last = waiting ? last : &job->next;
        waiting = job;
    }
    pthread_cond_init(&changed, NULL);
    pthread_mutex_unlock(&lock);
}

/* What is being made reads what the process holds: at exit it is waited for, and no more is made.
 */
static void end_at_exit(void) {
    pthread_mutex_lock(&lock);
    bool there = works;
    ends = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    if (there)
        (void)pthread_join(maker, NULL);
    pthread_mutex_lock(&lock);
    works = false;
    pthread_mutex_unlock(&lock);
}

/* With the lock held. */
static bool has_maker(void) {
    static bool prepared;
    pthread_attr_t attributes;
    sigset_t before;
    if (works || ends)
        return works && !ends;
    if (!prepared)
        prepared =
            pthread_atfork(before_fork, after_fork, in_child) == 0 && atexit(end_at_exit) == 0;
    if (!prepared || pthread_attr_init(&attributes))
        return false;
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    td_signals_hold(&before);
    works = pthread_create(&maker, &attributes, work, NULL) == 0;
    td_signals_release(&before);
    pthread_attr_destroy(&attributes);
    return works;
}

/* ---- jobs ---- */

bool td_later_begin(td_later_job *job) {
    job->modes = td_fork_modes();
    job->modes.uncached = td_modes_current.uncached; /* what is made asks whether casts are kept */
    job->request = td_compile_request_now();
    job->next = NULL;
    pthread_mutex_lock(&lock);
    bool begun = has_maker();
    if (begun) {
        job->queued = true;
        *last = job;
        last = &job->next;
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
    return begun;
}

/* With the lock held: out of what waits. */
static void withdraw(td_later_job *job) {
    td_later_job **at = &waiting;
    while (*at && *at != job)
        at = &(*at)->next;
    if (!*at)
        return;
    *at = job->next;
    last = job->next ? last : at;
    job->queued = false;
}

void td_later_cancel(td_later_job *job) {
    pthread_mutex_lock(&lock);
    withdraw(job);
    /* A child has what was being made when it was made, and a thread of its own only when it has
     * begun something: then nobody is at it. */
    while (job->queued && works)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

void td_later_finish(void) {
    pthread_mutex_lock(&lock);
    while (works && !ends && (waiting || making))
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}
