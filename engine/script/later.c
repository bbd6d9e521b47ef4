/* later.c: what is worth a thread, and that thread's jobs. */
#include "engine/script/later.h"

#include "engine/core/jobs/maker.h"
#include "engine/core/observer.h"
#include "engine/script/future.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum {
    SMALL = 48,    /* nodes that the passes have done with within half a millisecond */
    TRIPS = 64,    /* that loops are written out for; of more, some at a time */
    SOME = 8,      /* trips */
    MOST = 1 << 20 /* nodes that are counted */
};

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

/* ---- jobs ---- */

static td_later_job *job_of(td_maker_job *queued) {
    return (td_later_job *)((char *)queued - offsetof(td_later_job, place));
}

static void make(td_maker_job *queued) {
    td_later_job *job = job_of(queued);
    td_modes before = td_set_modes(job->modes);
    td_observer *observer = td_observer_set(NULL);
    job->make(job);
    td_observer_set(observer);
    td_set_modes(before);
}

static void give(td_maker_job *queued) {
    td_later_job *job = job_of(queued);
    job->give(job);
}

static td_maker maker = {.name = "tide script", .make = make, .give = give, TD_MAKER_LOCK};

/* What is being made reads what the process holds: at exit it is waited for, and no more is made.
 */
static void end_at_exit(void) {
    td_maker_stop(&maker, true);
}

/* With the lock held. */
static bool has_thread(void) {
    static bool prepared;
    prepared = prepared || atexit(end_at_exit) == 0;
    return prepared && td_maker_has_thread(&maker);
}

bool td_later_begin(td_later_job *job) {
    job->modes = td_fork_modes();
    job->modes.uncached = td_modes_current.uncached; /* what is made asks whether casts are kept */
    job->request = td_compile_request_now();
    pthread_mutex_lock(&maker.lock);
    bool begun = has_thread();
    if (begun)
        td_maker_add(&maker, &job->place);
    pthread_mutex_unlock(&maker.lock);
    return begun;
}

void td_later_cancel(td_later_job *job) {
    pthread_mutex_lock(&maker.lock);
    td_maker_cancel(&maker, &job->place);
    pthread_mutex_unlock(&maker.lock);
}

void td_later_finish(void) {
    pthread_mutex_lock(&maker.lock);
    td_maker_finish(&maker);
    pthread_mutex_unlock(&maker.lock);
}
