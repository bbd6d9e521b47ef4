/* worker.h: what a thread that works for itself has of its own, where an ordinary thread shares the
 * process's: a request to stop, a number of threads, a default generator, and an account of the
 * memory that its storages hold.
 *
 * Threads that run Lua states beside the main one (data loading, fork and wait) are workers, so
 * that seeding one, or stopping it, or asking whether its garbage is due, says nothing of the
 * others. The pool's threads work under the worker whose loop they help with.
 */
#ifndef TD_CORE_WORKER_H
#define TD_CORE_WORKER_H

#include "engine/core/device.h"
#include "engine/core/random.h"

#include <stdatomic.h>

typedef struct td_worker {
    atomic_int refs;
    atomic_uint interrupt; /* a request to stop, as td_interrupt_state: td_interrupt_raise, from any
                              thread */
    atomic_int threads;    /* that its kernels may use; 0: as many as the process's */
    td_generator generator;                             /* guarded as the process's is (random.c) */
    atomic_llong held[TD_DEVICE_TYPES][TD_MAX_DEVICES]; /* bytes of storages */
} td_worker;

/* A new reference; NULL when memory is out. Its generator begins at `seed`, its kernels take one
 * thread. */
td_worker *td_worker_new(uint64_t seed);
void td_worker_release(td_worker *worker);

/* This thread's; NULL in an ordinary one. */
extern TD_THREAD_STATE td_worker *td_worker_current;

/* From here on this thread is the worker's, which must outlive that (NULL: an ordinary one).
 * Returns the former. */
td_worker *td_worker_enter(td_worker *worker);

/* For storages: so many bytes are the worker's, which gets a reference for them, and are no longer.
 */
void td_worker_hold(td_worker *worker, td_device device, int64_t bytes);
void td_worker_let_go(td_worker *worker, td_device device, int64_t bytes);

/* Bytes of live storages on a device that were made on this thread's behalf: its worker's, or those
 * that no worker holds. */
int64_t td_memory_held(td_device device);

#endif
