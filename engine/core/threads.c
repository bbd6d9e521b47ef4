/* threads.c: parallel loops on the pool.
 *
 * Each thread has a share of a loop, which it takes chunk by chunk, and then takes from those of
 * the others: a thread that gets no processor leaves its share to them.
 */
#include "engine/core/threads.h"

#include "engine/core/denormals.h"
#include "engine/core/interrupt.h"
#include "engine/core/observer.h"
#include "engine/core/pool.h"
#include "engine/core/processors.h"
#include "engine/core/worker.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* Chunks per thread: enough that a late thread does not hold up the rest, few enough to cost
 * nothing; and what a chunk may cost, so that an interrupt between two is soon noticed. */
enum { CHUNKS_PER_THREAD = 16, CHUNK_COST = 64 * TD_GRAIN, MOST_SHARES = 64 };

static atomic_int num_threads;                 /* 0: not asked yet */
static atomic_int first_threads;               /* what the environment says they are at first */
static atomic_int thread_limit = TD_POOL_MOST; /* what the environment bounds them to */

/* ---- numbers ---- */

/* A number from 1 in the environment, where it may be a list of them; `none` for anything else. */
static int from_environment(const char *name, int none) {
    const char *at = getenv(name);
    int n = 0;
    while (at && (*at == ' ' || *at == '\t'))
        at++;
    for (; at && *at >= '0' && *at <= '9'; at++)
        n = n < TD_POOL_MOST ? n * 10 + (*at - '0') : n;
    while (at && (*at == ' ' || *at == '\t'))
        at++;
    if (!at || n < 1 || (*at && *at != ','))
        return none;
    return n < TD_POOL_MOST ? n : TD_POOL_MOST;
}

static void read_environment(void) {
    int processors = td_processors_allowed(), none = 0;
    int n = from_environment("OMP_NUM_THREADS", processors);
    td_pool_set_processors(processors);
    atomic_store(&thread_limit, from_environment("OMP_THREAD_LIMIT", TD_POOL_MOST));
    n = n < TD_POOL_MOST ? n : TD_POOL_MOST;
    atomic_store(&first_threads, n);
    atomic_compare_exchange_strong(&num_threads, &none, n);
}

static void know_environment(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_environment);
}

int td_get_num_threads(void) {
    const td_worker *worker = td_worker_current;
    int own = worker ? atomic_load_explicit(&worker->threads, memory_order_relaxed) : 0;
    if (own > 0)
        return own;
    int n = atomic_load_explicit(&num_threads, memory_order_relaxed);
    if (TD_UNLIKELY(n == 0)) {
        know_environment();
        n = atomic_load_explicit(&num_threads, memory_order_relaxed);
    }
    return n;
}

int td_threads_at_most(void) {
    int n = td_get_num_threads(), limit = atomic_load_explicit(&thread_limit, memory_order_relaxed);
    return n < limit ? n : limit;
}

int td_threads_at_first(void) {
    know_environment();
    return atomic_load_explicit(&first_threads, memory_order_relaxed);
}

td_status td_set_num_threads(int n) {
    if (n < 1 || n > TD_POOL_MOST)
        return td_fail(TD_EVALUE, "number of threads must be from 1 to 1024, got %d", n);
    know_environment();
    td_worker *worker = td_worker_current;
    atomic_store_explicit(worker ? &worker->threads : &num_threads, n, memory_order_relaxed);
    return TD_OK;
}

/* ---- loops ---- */

typedef struct share {
    _Alignas(64) atomic_llong next; /* where the next chunk begins */
    int64_t end;
} share;

typedef struct loop {
    int64_t chunk;
    unsigned mark; /* of interrupts, from when it began */
    td_range_fn fn;
    void *ctx;
    td_observer *observer;
    td_worker *worker; /* the caller's */
    bool flush;        /* denormals, as the caller does */
    int nshares;
    share shares[MOST_SHARES];
} loop;

static int64_t chunk_of(int64_t each, int64_t grain, int64_t cost) {
    int64_t most = cost < CHUNK_COST ? CHUNK_COST / (cost > 0 ? cost : 1) : 1;
    int64_t chunk = (each + CHUNKS_PER_THREAD - 1) / CHUNKS_PER_THREAD;
    if (chunk > most)
        chunk = most;
    return chunk < grain ? grain : chunk;
}

/* Whether the share was run to its end, by whomever. */
static bool run_share(loop *l, share *s, int worker) {
    while (atomic_load_explicit(&s->next, memory_order_relaxed) < s->end) {
        if (TD_UNLIKELY(td_interrupt_since(l->mark)))
            return false;
        int64_t at = atomic_fetch_add_explicit(&s->next, l->chunk, memory_order_relaxed);
        if (at < s->end)
            l->fn(l->ctx, at, at + l->chunk < s->end ? at + l->chunk : s->end, worker);
    }
    return true;
}

/* One's own share first: its memory is near. */
static void run_shares(void *ctx, int worker) {
    loop *l = ctx;
    td_observer *before = td_observer_set(l->observer);
    td_worker *own = td_worker_enter(l->worker);
    if (TD_UNLIKELY(td_flush_denormal() != l->flush))
        td_set_flush_denormal(l->flush);
    int k = 0;
    while (k < l->nshares && run_share(l, &l->shares[(worker + k) % l->nshares], worker))
        k++;
    td_worker_enter(own);
    td_observer_set(before);
}

static td_status run_loop(int threads, int64_t n, int64_t grain, int64_t cost, td_range_fn fn,
                          void *ctx) {
    loop l;
    l.mark = td_interrupt_mark();
    l.fn = fn;
    l.ctx = ctx;
    l.observer = td_observer_current;
    l.worker = td_worker_current;
    l.flush = td_flush_denormal();
    l.nshares = threads < MOST_SHARES ? threads : MOST_SHARES;
    int64_t each = (n + l.nshares - 1) / l.nshares;
    l.chunk = chunk_of(n / threads + (n % threads != 0), grain, cost);
    for (int k = 0; k < l.nshares; k++) {
        atomic_init(&l.shares[k].next, k * each < n ? k * each : n);
        l.shares[k].end = n - k * each > each ? (k + 1) * each : n;
    }
    int limit = atomic_load_explicit(&thread_limit, memory_order_relaxed);
    if (threads > 1 && limit > 1)
        td_pool_run(threads < limit ? threads : limit, n / grain, run_shares, &l);
    else
        run_shares(&l, 0);
    /* Also when nothing was left out for it: the function itself may have left early. */
    return TD_UNLIKELY(td_interrupt_since(l.mark)) ? td_interrupted() : TD_OK;
}

td_status td_serial_for(int64_t n, int64_t cost, td_range_fn fn, void *ctx) {
    int64_t chunk = chunk_of(n, 1, cost);
    unsigned mark = td_interrupt_mark();
    for (int64_t at = 0; at < n && !td_interrupt_since(mark); at += chunk)
        fn(ctx, at, n - at < chunk ? n : at + chunk, 0);
    return td_interrupt_since(mark) ? td_interrupted() : TD_OK;
}

td_status td_parallel_for_among(int threads, int64_t n, int64_t cost, td_range_fn fn, void *ctx) {
    int64_t grain = cost >= TD_GRAIN ? 1 : TD_GRAIN / (cost > 0 ? cost : 1); /* items */
    if (n <= 0)
        return TD_OK;
    if (n <= grain) {
        unsigned mark = td_interrupt_mark();
        fn(ctx, 0, n, 0);
        return TD_UNLIKELY(td_interrupt_since(mark)) ? td_interrupted() : TD_OK;
    }
    int64_t parts = n / grain + (n % grain != 0);
    if (parts < threads)
        threads = (int)parts;
    if (td_pool_within())
        threads = 1;
    return run_loop(threads, n, grain, cost, fn, ctx);
}

td_status td_parallel_for(int64_t n, int64_t cost, td_range_fn fn, void *ctx) {
    return td_parallel_for_among(td_get_num_threads(), n, cost, fn, ctx);
}
