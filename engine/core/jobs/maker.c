/* maker.c: a queue, the thread that takes from it, and what fork makes of both. */
#include "engine/core/jobs/maker.h"

#include "engine/core/signals.h"

#include <stdatomic.h>

enum { STACK_BYTES = 8 << 20 }; /* compilers and passes recurse */

/* ---- fork ---- */

static _Atomic(td_maker *) known; /* the newest */
static td_maker *held;            /* the newest of those whose locks are held for a fork */

static void before_fork(void) {
    td_maker *newest = atomic_load(&known);
    for (td_maker *m = newest; m; m = m->next)
        pthread_mutex_lock(&m->lock);
    held = newest;
}

static void after_fork(void) {
    for (td_maker *m = held; m; m = m->next)
        pthread_mutex_unlock(&m->lock);
}

static void put_first(td_maker *m, td_maker_job *job) {
    job->next = m->waiting;
    m->last = m->waiting ? m->last : job;
    m->waiting = job;
}

static void in_child(void) {
    for (td_maker *m = held; m; m = m->next) {
        td_maker_job *job = m->making;
        m->works = m->ends = false;
        m->making = NULL;
        if (job && (!m->again || m->again(job)))
            put_first(m, job);
        else if (job)
            job->queued = false;
        pthread_cond_init(&m->changed, NULL);
    }
    after_fork();
}

static bool prepared;

static void prepare(void) {
    prepared = pthread_atfork(before_fork, after_fork, in_child) == 0;
}

/* A fork that has begun goes on with the list as it was: it lets go of what it took. */
static bool prepare_fork(td_maker *m) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (m->known)
        return true;
    pthread_once(&once, prepare);
    if (!prepared)
        return false;
    m->known = true;
    m->next = atomic_load(&known);
    while (!atomic_compare_exchange_weak(&known, &m->next, m))
        ;
    return true;
}

/* ---- the thread ---- */

static td_maker_job *take(td_maker *m) {
    td_maker_job *job = m->waiting;
    m->waiting = job->next;
    return m->making = job;
}

static void *work(void *of) {
    td_maker *m = of;
    pthread_setname_np(pthread_self(), m->name);
    pthread_mutex_lock(&m->lock);
    while (!m->ends) {
        if (!m->waiting) {
            pthread_cond_wait(&m->changed, &m->lock);
            continue;
        }
        td_maker_job *job = take(m);
        pthread_mutex_unlock(&m->lock);
        m->make(job);
        pthread_mutex_lock(&m->lock);
        job->queued = false;
        m->making = NULL;
        if (m->give)
            m->give(job);
        pthread_cond_broadcast(&m->changed);
    }
    pthread_mutex_unlock(&m->lock);
    return NULL;
}

bool td_maker_has_thread(td_maker *m) {
    pthread_attr_t attributes;
    sigset_t before;
    if (m->works || m->ends)
        return m->works && !m->ends;
    if (!prepare_fork(m) || pthread_attr_init(&attributes))
        return false;
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    td_signals_hold(&before);
    m->works = pthread_create(&m->thread, &attributes, work, m) == 0;
    td_signals_release(&before);
    pthread_attr_destroy(&attributes);
    return m->works;
}

void td_maker_stop(td_maker *m, bool for_good) {
    pthread_mutex_lock(&m->lock);
    bool there = m->works;
    m->ends = there || for_good;
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
    if (there)
        (void)pthread_join(m->thread, NULL);
    pthread_mutex_lock(&m->lock);
    m->works = false;
    m->ends = for_good;
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
}

/* ---- jobs ---- */

void td_maker_add(td_maker *m, td_maker_job *job) {
    job->next = NULL;
    job->queued = true;
    if (m->waiting)
        m->last->next = job;
    else
        m->waiting = job;
    m->last = job;
    pthread_cond_broadcast(&m->changed);
}

static void withdraw(td_maker *m, td_maker_job *job) {
    td_maker_job *before = NULL, *at = m->waiting;
    for (; at && at != job; at = at->next)
        before = at;
    if (!at)
        return;
    if (before)
        before->next = job->next;
    else
        m->waiting = job->next;
    m->last = m->last == job ? before : m->last;
    job->queued = false;
}

void td_maker_cancel(td_maker *m, td_maker_job *job) {
    withdraw(m, job);
    /* Without a thread nobody is at it. */
    while (job->queued && m->works)
        pthread_cond_wait(&m->changed, &m->lock);
}

void td_maker_finish(td_maker *m) {
    while (m->works && !m->ends && (m->waiting || m->making))
        pthread_cond_wait(&m->changed, &m->lock);
}
