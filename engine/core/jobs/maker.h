/* maker.h: a thread that does jobs one after the other, in the order in which they were begun: what
 * callers can do without for a while (code of programs, graphs that passes have rewritten).
 *
 * It starts with the first job. A child made by fork has no such thread: it starts one of its own
 * with its next job, and what waited or was being made waits there.
 */
#ifndef TD_CORE_JOBS_MAKER_H
#define TD_CORE_JOBS_MAKER_H

#include <pthread.h>
#include <stdbool.h>

/* Part of what its owner knows of a job; it stays in its place until it is through. */
typedef struct td_maker_job {
    struct td_maker_job *next;
    bool queued; /* it waits, or is being made */
} td_maker_job;

typedef struct td_maker td_maker;
struct td_maker {
    const char *name; /* of the thread, 15 bytes at most */
    /* On the thread, with no lock held. May be begun twice, where a fork came in between. */
    void (*make)(td_maker_job *job);
    /* Behind it, with the lock held: no fork comes in between. The job's owner may be gone when
     * the lock is. NULL: nothing. */
    void (*give)(td_maker_job *job);
    /* In a child, with the lock held, of what was being made: does it wait again? NULL: it does. */
    bool (*again)(td_maker_job *job);

    pthread_mutex_t lock; /* guards what follows, and what the owner lays under it */
    pthread_cond_t
        changed; /* broadcast when a job has been begun or is through, or works changes */
    td_maker_job *waiting, *last, *making;
    pthread_t thread;
    bool works, ends; /* there is a thread; it is to end */
    bool known;       /* fork is prepared */
    td_maker *next;   /* of those that fork knows */
};

#define TD_MAKER_LOCK .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER

/* All but td_maker_stop are called with the lock held. */

/* Is there a thread, which is started where there is none? False: none is to be had, or it ends. */
bool td_maker_has_thread(td_maker *m);
/* The job, which isn't queued, waits behind the others. td_maker_has_thread said yes. */
void td_maker_add(td_maker *m, td_maker_job *job);
/* Take a job back; where it is being made, wait until it is through. */
void td_maker_cancel(td_maker *m, td_maker_job *job);
/* Wait until all that was begun is through. */
void td_maker_finish(td_maker *m);

/* End the thread behind the job that it is at, and wait for that; what waits stays. Whether another
 * may be started is what `for_good` says; in a child made by fork one may. */
void td_maker_stop(td_maker *m, bool for_good);

#endif
