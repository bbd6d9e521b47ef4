/* future.c: a queue of work, threads that take from it, and waiting.
 *
 * Who waits for work that no thread has taken does it itself. Work that is being done only waits
 * for work that was begun, never for itself, as a future is known to what was begun after it alone;
 * so somebody can always go on. Threads come when there is work and go when there was none for a
 * while.
 */
#include "engine/script/future.h"

#include "engine/core/interrupt.h"
#include "engine/core/memory.h"
#include "engine/core/modes.h"
#include "engine/core/observer.h"
#include "engine/core/processors.h"
#include "engine/core/signals.h"
#include "engine/core/worker.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

enum {
    MOST_THREADS = 64,
    FEW_WITHIN = 24,   /* pieces of work that one thread does within one another where others can */
    MOST_WITHIN = 100, /* and where they can't */
    IDLE_MS = 500,     /* after which a thread goes */
    POLL_MS = 20,      /* between looks for an interrupt */
    STACK_BYTES = 8 << 20
};

typedef enum state { QUEUED, TAKEN, DONE } state;

typedef struct future {
    td_box_future head;
    state state;
    struct future *next; /* in the queue, which holds a reference */
    td_future_work work;
    td_modes modes;
    td_worker *worker; /* a reference, or NULL */
    td_status status;
    char *message; /* of a failure; NULL: there was no memory for it */
    td_value value;
} future;

/* Guards the queue, the numbers of threads and the states of all futures. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t came = PTHREAD_COND_INITIALIZER;  /* work */
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER; /* some work */
static future *first, *last;
static int nthreads, nidle;
static unsigned nended; /* pieces of work, modulo 2^32 */

static _Thread_local int within; /* pieces of work that this thread is doing */

static future *future_of(td_value v) {
    return v.kind == TD_BOX_FUTURE ? (future *)(void *)td_value_box(v) : NULL;
}

static void release(future *f) {
    td_value box = TD_BOX(TD_BOX_FUTURE, f);
    td_value_drop(&box);
}

static void destroy(td_box_future *head) {
    future *f = (future *)(void *)head;
    td_value_drop(&f->value);
    if (f->worker)
        td_worker_release(f->worker);
    td_free(f->message);
    td_free(f);
}

/* ---- work ---- */

/* Under `lock`. Out of the queue, whose reference becomes the caller's. */
static future *take(future *wanted) {
    future *before = NULL;
    for (future *f = first; f; before = f, f = f->next) {
        if (wanted && f != wanted)
            continue;
        *(before ? &before->next : &first) = f->next;
        if (last == f)
            last = before;
        f->state = TAKEN;
        return f;
    }
    return NULL;
}

/* Do what was taken, and let go of it. */
static void work_on(future *f) {
    td_modes before = td_set_modes(f->modes);
    td_worker *own = td_worker_enter(f->worker);
    td_observer *observer = td_observer_set(NULL);
    td_value value = TD_NIL;
    within++;
    td_status status = f->work.run(f->work.ctx, &value);
    char *message = status ? td_strdup(td_error_message()) : NULL;
    within--;
    f->work.free(f->work.ctx);
    td_observer_set(observer);
    td_worker_enter(own);
    td_set_modes(before);
    pthread_mutex_lock(&lock);
    f->status = status;
    f->message = message;
    f->value = value;
    f->state = DONE;
    nended++;
    pthread_cond_broadcast(&ended);
    pthread_mutex_unlock(&lock);
    release(f);
}

static struct timespec later(int ms) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_nsec += (long)ms * 1000000;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}

static void *serve(void *unused) {
    (void)unused;
    pthread_mutex_lock(&lock);
    for (bool waited = false;;) {
        future *f = take(NULL);
        if (!f && waited)
            break;
        if (f) {
            pthread_mutex_unlock(&lock);
            work_on(f);
            pthread_mutex_lock(&lock);
            waited = false;
            continue;
        }
        struct timespec until = later(IDLE_MS);
        nidle++;
        waited = pthread_cond_timedwait(&came, &lock, &until) != 0;
        nidle--;
    }
    nthreads--;
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* Under `lock`: call a thread to the queue, an idle or a new one; false: there is none. `more`:
 * also where there are as many as processors, since they may be waiting. */
static bool call_thread(bool more) {
    static int most;
    if (!most) {
        most = td_processors_allowed();
        most = most < 2 ? 2 : most > MOST_THREADS ? MOST_THREADS : most;
    }
    if (nidle) {
        pthread_cond_signal(&came);
        return true;
    }
    pthread_attr_t attributes;
    pthread_t thread;
    if (nthreads >= (more ? MOST_THREADS : most) || pthread_attr_init(&attributes))
        return false;
    sigset_t before;
    td_signals_hold(&before);
    bool made = !pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) &&
                !pthread_attr_setstacksize(&attributes, STACK_BYTES) &&
                !pthread_create(&thread, &attributes, serve, NULL);
    td_signals_release(&before);
    pthread_attr_destroy(&attributes);
    nthreads += made;
    return made;
}

/* ---- begin and wait ---- */

td_modes td_fork_modes(void) {
    td_modes modes = td_get_modes();
    modes.uncached = true;
    modes.region = 0;
    modes.keeper = NULL;
    modes.dispatcher = NULL;
    return modes;
}

td_status td_future_begin(const td_future_work *work, td_value *out) {
    future *f = td_malloc(sizeof *f);
    if (!f) {
        work->free(work->ctx);
        return td_fail(TD_ENOMEM, "out of memory for a future");
    }
    *f = (future){.head.destroy = destroy,
                  .work = *work,
                  .modes = td_fork_modes(),
                  .worker = td_worker_current};
    atomic_init(&f->head.box.refs, 2); /* the caller's and the queue's */
    if (f->worker)
        atomic_fetch_add_explicit(&f->worker->refs, 1, memory_order_relaxed);
    pthread_mutex_lock(&lock);
    *(last ? &last->next : &first) = f;
    last = f;
    bool served = call_thread(false) || nthreads > 0;
    future *mine = served ? NULL : take(f);
    pthread_mutex_unlock(&lock);
    if (mine)
        work_on(mine);
    *out = TD_BOX(TD_BOX_FUTURE, f);
    return TD_OK;
}

/* Under `lock`. Until something ends, for a short while at most; did nothing? */
static bool nothing_ends(void) {
    struct timespec until = later(POLL_MS);
    unsigned before = nended;
    pthread_cond_timedwait(&ended, &lock, &until);
    return nended == before;
}

/* Under `lock`: wait for f to end, or do it here where nobody has begun it. What waits for it on
 * this thread already lies below on the stack, so from some depth on it is left to others as long
 * as these get on. */
static td_status wait_once(future *f) {
    bool queued = f->state == QUEUED;
    if (queued && within >= FEW_WITHIN) {
        (void)call_thread(true);
        queued = nothing_ends() && f->state == QUEUED;
        if (queued && within >= MOST_WITHIN)
            return td_fail(TD_EVALUE, "wait: forks wait for one another too deep");
    }
    if (queued) {
        future *mine = take(f);
        pthread_mutex_unlock(&lock);
        work_on(mine);
        pthread_mutex_lock(&lock);
    } else if (f->state != DONE)
        (void)nothing_ends();
    return f->state != DONE ? td_interrupt_check() : TD_OK;
}

td_status td_future_wait(td_value v, td_value *out) {
    future *f = future_of(v);
    if (!f)
        return td_fail(TD_ETYPE, "wait: a future is expected");
    td_status status = TD_OK;
    pthread_mutex_lock(&lock);
    while (f->state != DONE && status == TD_OK)
        status = wait_once(f);
    pthread_mutex_unlock(&lock);
    if (status)
        return status;
    if (f->status)
        return td_fail(f->status, "%s", f->message ? f->message : td_status_text(f->status));
    return td_value_copy(f->value, out);
}
