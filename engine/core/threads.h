/* threads.h: the one place that forks parallel work, on OpenMP's pool (oneDNN uses the same). */
#ifndef TD_CORE_THREADS_H
#define TD_CORE_THREADS_H

#include "engine/core/status.h"

/* Threads that kernels may use; at first what OMP_NUM_THREADS or the machine says.
 * EVALUE unless 1 <= n <= 1024. */
td_status td_set_num_threads(int n) TD_MUST_CHECK;
int td_get_num_threads(void);

/* Part [begin, end) of a loop. `worker` is in [0, threads). */
typedef void (*td_range_fn)(void *ctx, int64_t begin, int64_t end, int worker);

/* What is worth a thread, in additions of elements that lie in memory. */
#define TD_GRAIN (64 * 1024)

/* Run fn over [0, n) split among the threads; `cost` is that of one item in such additions. On the
 * calling thread alone when all items together cost no more than TD_GRAIN, or within another
 * parallel loop. Parts are cut into chunks between which an interrupt is noticed: returns EINTR
 * when something was left out for one, else OK. The cut does not depend on anything but n, cost and
 * the number of threads. */
td_status td_parallel_for(int64_t n, int64_t cost, td_range_fn fn, void *ctx);

/* Run fn with one thread: what it calls that forks by itself (a library on OpenMP's pool) does not.
 */
void td_run_alone(void (*fn)(void *ctx), void *ctx);

/* How many threads such a library would use now. */
int td_library_threads(void);

#endif
