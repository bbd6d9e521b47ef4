/* driver.c: a queue, a list of what is under way, and the loop between them. */
#include "engine/distributed/driver.h"

#include "engine/core/activity.h"
#include "engine/core/interrupt.h"
#include "engine/core/signals.h"
#include "engine/distributed/elements.h"
#include "engine/distributed/flight.h"
#include "engine/distributed/transfers.h"
#include "engine/distributed/watch.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <time.h>

/* A question to the transport that the asking thread waits for. */
typedef struct question {
    enum { ENTER, GROUP, LEAVE } kind;
    int n, tag, rank, size;
    const int *ranks;
    void *groups[2];
    bool answered, ok;
    char why[TD_WHY];
} question;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t wanted, arrived; /* work for the driver; answers for others */
    pthread_t thread;
    bool running;
    const td_transport *transport, *devices; /* the second may be NULL */
    int on_devices, awaited;                 /* transfers of it that have not ended */
    td_work *first, *last;                   /* handed over, not started */
    question *asked;
    td_work *under_way; /* the driver's own */
} driver = {.lock = PTHREAD_MUTEX_INITIALIZER,
            .wanted = PTHREAD_COND_INITIALIZER,
            .arrived = PTHREAD_COND_INITIALIZER};

/* ---- on the driver's thread ---- */

/* Under the lock. */
static void publish(td_work *work, td_progress progress) {
    atomic_store_explicit(&work->progress, (int)progress, memory_order_release);
    pthread_cond_broadcast(&driver.arrived);
}

/* The script may wait for its device, which waits for what broke: it is told after the job was, and
 * goes on with what it has only where nobody ends the process. */
static void give_up(td_work *work) {
    td_watch_trouble(work->why);
    work->transport->call_off(work->group);
}

static void finish(td_work *work, td_progress progress) {
    if (progress == TD_ARRIVED && work->divisor != 0) {
        const td_transfer *t = &work->transfer;
        td_elements_divide(t->dtype, t->recv, work->divisor, t->count);
    }
    if (progress == TD_ARRIVED) {
        td_flight_end(work->transfer.number);
        td_transfers_note(work);
    }
    if (progress == TD_BROKEN && work->transport->call_off)
        give_up(work);
    pthread_mutex_lock(&driver.lock);
    driver.on_devices -= work->transport == driver.devices;
    driver.awaited -= work->transport == driver.devices && atomic_load(&work->awaited);
    publish(work, progress);
    pthread_mutex_unlock(&driver.lock);
    td_work_release(work);
}

static void start(td_work *work) {
    work->started_ns = td_clock_ns();
    if (!work->transport->start(work->group, &work->transfer, &work->token, work->why)) {
        finish(work, TD_BROKEN);
        return;
    }
    td_work **end = &driver.under_way;
    while (*end)
        end = &(*end)->next;
    *end = work;
}

/* Look at all that is under way; has anything come on? */
static bool look(void) {
    bool any = false;
    for (td_work **at = &driver.under_way; *at;) {
        td_work *work = *at;
        if (work->transport->waits && !work->told && atomic_load(&work->awaited)) {
            work->told = true;
            work->transport->waits(work->token);
        }
        td_progress progress = work->transport->test(work->token, work->why);
        if (progress == TD_QUEUED && atomic_load(&work->progress) == TD_PENDING) {
            pthread_mutex_lock(&driver.lock);
            publish(work, progress);
            pthread_mutex_unlock(&driver.lock);
            any = true;
        }
        if (progress == TD_PENDING || progress == TD_MOVING || progress == TD_QUEUED) {
            any |= progress == TD_MOVING;
            at = &work->next;
            continue;
        }
        *at = work->next;
        work->next = NULL;
        finish(work, progress);
        any = true;
    }
    return any;
}

static bool ask_transport(const td_transport *transport, question *q) {
    static td_transport_host host = {td_elements_reduce, td_dtypes, NULL};
    host.messages = driver.transport;
    if (q->kind == ENTER)
        return transport->open(&host, &q->rank, &q->size, q->why);
    if (q->kind == GROUP)
        return transport->group(q->n, q->ranks, q->tag, &q->groups[transport == driver.devices],
                                q->why);
    transport->close();
    return true;
}

static void answer(question *q) {
    const td_transport *first = driver.transport, *second = driver.devices;
    if (q->kind == LEAVE) { /* in the reverse order */
        q->ok = !second || ask_transport(second, q);
        q->ok = ask_transport(first, q);
    } else {
        q->ok = ask_transport(first, q) && (!second || ask_transport(second, q));
    }
    pthread_mutex_lock(&driver.lock);
    q->answered = true;
    pthread_cond_broadcast(&driver.arrived);
    pthread_mutex_unlock(&driver.lock);
}

/* For pthread_cond_timedwait: so many nanoseconds, of a second at most, from now. */
static struct timespec after(int64_t ns) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += (long)ns;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    return until;
}

/* What is handed over meanwhile ends it. */
static void nap(int64_t waited) {
    int64_t ns = waited / 16;
    struct timespec until = after(ns < 5000 ? 5000 : ns > 1000000 ? 1000000 : ns);
    pthread_mutex_lock(&driver.lock);
    if (!driver.first && !driver.asked)
        pthread_cond_timedwait(&driver.wanted, &driver.lock, &until);
    pthread_mutex_unlock(&driver.lock);
}

static void *drive(void *unused) {
    (void)unused;
    int64_t since = 0;
    prctl(PR_SET_TIMERSLACK, 1000ul); /* naps of microseconds, not of the usual 50 more */
    for (bool leaving = false; !leaving;) {
        pthread_mutex_lock(&driver.lock);
        while (!driver.first && !driver.asked && !driver.under_way)
            pthread_cond_wait(&driver.wanted, &driver.lock);
        td_work *work = driver.first;
        if (work && !(driver.first = work->next))
            driver.last = NULL;
        question *q = work ? NULL : driver.asked;
        if (q)
            driver.asked = NULL;
        pthread_mutex_unlock(&driver.lock);
        if (work) {
            work->next = NULL;
            start(work);
        }
        if (q) {
            leaving = q->kind == LEAVE; /* q is gone once it is answered */
            answer(q);
        }
        if (work || q || look())
            since = td_clock_ns();
        else if (driver.under_way)
            nap(td_clock_ns() - since);
    }
    return NULL;
}

/* ---- on other threads ---- */

static bool ask(question *q) {
    pthread_mutex_lock(&driver.lock);
    while (driver.asked)
        pthread_cond_wait(&driver.arrived, &driver.lock);
    driver.asked = q;
    pthread_cond_signal(&driver.wanted);
    while (!q->answered)
        pthread_cond_wait(&driver.arrived, &driver.lock);
    pthread_mutex_unlock(&driver.lock);
    return q->ok;
}

static void end_thread(void) {
    question q = {.kind = LEAVE};
    ask(&q);
    pthread_join(driver.thread, NULL);
    driver.running = false;
}

td_status td_driver_open(const td_transport *transport, const td_transport *devices, int *rank,
                         int *size) {
    if (driver.running)
        return td_fail(TD_EVALUE, "the job was entered already");
    sigset_t before;
    driver.transport = transport;
    driver.devices = devices;
    td_signals_hold(&before);
    int code = pthread_create(&driver.thread, NULL, drive, NULL);
    td_signals_release(&before);
    if (code)
        return td_fail(TD_ENOMEM, "no thread to be had");
    driver.running = true;
    question q = {.kind = ENTER};
    if (!ask(&q)) {
        end_thread();
        return td_fail(TD_EIO, "%s", q.why);
    }
    *rank = q.rank;
    *size = q.size;
    return TD_OK;
}

td_status td_driver_group(int n, const int *ranks, int tag, void *groups[2]) {
    question q = {.kind = GROUP, .n = n, .ranks = ranks, .tag = tag};
    if (!ask(&q))
        return td_fail(TD_EIO, "%s", q.why);
    groups[0] = q.groups[0];
    groups[1] = q.groups[1];
    return TD_OK;
}

void td_driver_start(td_work *work) {
    td_work_retain(work);
    pthread_mutex_lock(&driver.lock);
    work->next = NULL;
    if (driver.last)
        driver.last->next = work;
    else
        driver.first = work;
    driver.last = work;
    driver.on_devices += work->transport == driver.devices;
    pthread_cond_signal(&driver.wanted);
    pthread_mutex_unlock(&driver.lock);
}

/* An interrupt wakes nobody: look for one from time to time. */
enum { LOOK_MS = 50 };

/* Under the lock. EINTR. */
static td_status wait_a_little(void) {
    struct timespec until = after(LOOK_MS * 1000000);
    pthread_cond_timedwait(&driver.arrived, &driver.lock, &until);
    return td_interrupt_requested() ? td_interrupted() : TD_OK;
}

td_status td_driver_wait(td_work *work) {
    td_status status = TD_OK;
    pthread_mutex_lock(&driver.lock);
    bool first = !atomic_exchange(&work->awaited, true), ended = td_work_has_ended(work);
    driver.awaited += first && !ended && work->transport == driver.devices;
    while (atomic_load_explicit(&work->progress, memory_order_acquire) == TD_PENDING && !status)
        status = wait_a_little();
    pthread_mutex_unlock(&driver.lock);
    if (!status && atomic_load_explicit(&work->progress, memory_order_acquire) == TD_BROKEN)
        status = td_fail(TD_EIO, "%s", work->why);
    return status;
}

td_status td_driver_settle(bool awaited) {
    td_status status = TD_OK;
    pthread_mutex_lock(&driver.lock);
    while ((awaited ? driver.awaited : driver.on_devices) && !status)
        status = wait_a_little();
    pthread_mutex_unlock(&driver.lock);
    return status;
}

void td_driver_close(void) {
    if (driver.running)
        end_thread();
}
