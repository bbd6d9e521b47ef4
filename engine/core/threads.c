/* threads.c: parallel loops on OpenMP's pool. */
#include "engine/core/threads.h"

#include "engine/core/interrupt.h"

#include <omp.h>
#include <stdatomic.h>

/* Chunks per thread: enough that an interrupt is noticed between them and that a late thread does
 * not hold up the rest, few enough to cost nothing. */
enum { CHUNKS_PER_THREAD = 16 };

static atomic_int num_threads; /* 0: not asked yet */

int td_get_num_threads(void) {
    int n = atomic_load_explicit(&num_threads, memory_order_relaxed);
    if (n == 0) {
        n = omp_get_max_threads();
        atomic_store_explicit(&num_threads, n, memory_order_relaxed);
    }
    return n;
}

td_status td_set_num_threads(int n) {
    if (n < 1 || n > 1024)
        return td_fail(TD_EVALUE, "number of threads must be from 1 to 1024, got %d", n);
    atomic_store_explicit(&num_threads, n, memory_order_relaxed);
    omp_set_num_threads(n);
    return TD_OK;
}

typedef struct loop {
    int64_t n, chunk, share; /* share: of each of the threads asked for */
    int threads;
    td_range_fn fn;
    void *ctx;
    atomic_bool cut; /* a part was left out: somebody interrupted */
} loop;

static void run_chunks(loop *l, int64_t begin, int64_t end, int worker) {
    int64_t at = begin;
    for (; at < end && !td_interrupt_requested(); at += l->chunk)
        l->fn(l->ctx, at, at + l->chunk < end ? at + l->chunk : end, worker);
    if (TD_UNLIKELY(at < end))
        atomic_store_explicit(&l->cut, true, memory_order_relaxed);
}

/* OpenMP may give fewer threads than were asked for (OMP_THREAD_LIMIT, OMP_DYNAMIC): those that
 * came do the shares of the others too. */
static void run_shares(loop *l, int worker, int workers) {
    for (int k = worker; k < l->threads; k += workers) {
        int64_t begin = k * l->share, end = begin + l->share < l->n ? begin + l->share : l->n;
        run_chunks(l, begin, end, worker);
    }
}

td_status td_parallel_for(int64_t n, int64_t cost, td_range_fn fn, void *ctx) {
    int64_t grain = cost >= TD_GRAIN ? 1 : TD_GRAIN / (cost > 0 ? cost : 1); /* items */
    if (n <= 0)
        return TD_OK;
    if (n <= grain) {
        fn(ctx, 0, n, 0);
        return TD_OK;
    }
    int64_t parts = (n + grain - 1) / grain;
    int threads = td_get_num_threads();
    if (parts < threads)
        threads = (int)parts;
    if (threads > 1 && omp_in_parallel())
        threads = 1;
    loop l = {
        .n = n, .fn = fn, .ctx = ctx, .threads = threads, .share = (n + threads - 1) / threads};
    l.chunk = (l.share + CHUNKS_PER_THREAD - 1) / CHUNKS_PER_THREAD;
    if (l.chunk < grain)
        l.chunk = grain;
    if (threads == 1) {
        run_chunks(&l, 0, n, 0);
    } else {
#pragma omp parallel num_threads(threads)
        run_shares(&l, omp_get_thread_num(), omp_get_num_threads());
    }
    return TD_UNLIKELY(atomic_load_explicit(&l.cut, memory_order_relaxed)) ? td_interrupted()
                                                                           : TD_OK;
}

int td_library_threads(void) {
    return omp_in_parallel() ? 1 : omp_get_max_threads();
}

void td_run_alone(void (*fn)(void *ctx), void *ctx) {
    int threads = td_library_threads(); /* this thread's, whatever td_set_num_threads says */
    if (threads > 1)
        omp_set_num_threads(1);
    fn(ctx);
    if (threads > 1)
        omp_set_num_threads(threads);
}
