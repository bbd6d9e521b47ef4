/* threads.h: parallel loops, and how many threads they and the libraries may use. */
#ifndef TD_CORE_THREADS_H
#define TD_CORE_THREADS_H

#include "engine/core/status.h"

/* Threads that kernels may use; at first what OMP_NUM_THREADS says, or the processors that the
 * process may use. OMP_THREAD_LIMIT bounds those that there really are. A worker (worker.h) has a
 * number of its own. EVALUE unless 1 <= n <= 1024. */
td_status td_set_num_threads(int n) TD_MUST_CHECK;
int td_get_num_threads(void);
/* The same, within OMP_THREAD_LIMIT. */
int td_threads_at_most(void);
/* What the environment says at first, whatever was set since and OMP_THREAD_LIMIT is: libraries
 * read it when they are loaded. */
int td_threads_at_first(void);

/* Part [begin, end) of a loop. `worker` is in [0, threads). Where a single item takes long it may
 * leave early when an interrupt is requested. */
typedef void (*td_range_fn)(void *ctx, int64_t begin, int64_t end, int worker);

/* What is worth a thread, in additions of elements that lie in memory. */
#define TD_GRAIN (64 * 1024)

/* Run fn over [0, n) split among the threads; `cost` is that of one item in such additions. On the
 * calling thread alone when all items together cost no more than TD_GRAIN, or within another
 * parallel loop. Parts are cut into chunks between which an interrupt is noticed: returns EINTR
 * when one is requested, whether anything was left out for it or not, else OK. The cut does not
 * depend on anything but n, cost and the number of threads; which worker runs a chunk depends on
 * who comes first. */
td_status td_parallel_for(int64_t n, int64_t cost, td_range_fn fn, void *ctx);
/* The same with at most `threads` workers: for who has made room for so many, since others may set
 * their number at any time. */
td_status td_parallel_for_among(int threads, int64_t n, int64_t cost, td_range_fn fn, void *ctx);

/* The same in order, on the calling thread alone. */
td_status td_serial_for(int64_t n, int64_t cost, td_range_fn fn, void *ctx);

#endif
