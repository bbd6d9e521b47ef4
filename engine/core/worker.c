/* worker.c: makes, enters and releases workers, and counts the bytes of storages by worker and
 * device. */
#include "engine/core/worker.h"

#include "engine/core/interrupt.h"
#include "engine/core/memory.h"

TD_THREAD_STATE td_worker *td_worker_current;

static atomic_llong held_by_workers[TD_DEVICE_TYPES][TD_MAX_DEVICES]; /* all of them together */

td_worker *td_worker_new(uint64_t seed) {
    td_worker *worker = td_calloc(1, sizeof *worker);
    if (!worker)
        return NULL;
    atomic_init(&worker->refs, 1);
    atomic_init(&worker->threads, 1);
    worker->generator = (td_generator){.seed = seed};
    return worker;
}

void td_worker_release(td_worker *worker) {
    if (atomic_fetch_sub_explicit(&worker->refs, 1, memory_order_acq_rel) == 1)
        td_free(worker);
}

td_worker *td_worker_enter(td_worker *worker) {
    td_worker *before = td_worker_current;
    td_worker_current = worker;
    td_interrupt_own = worker ? &worker->interrupt : NULL;
    return before;
}

static void count(td_worker *worker, td_device device, int64_t bytes) {
    int index = device.index % TD_MAX_DEVICES;
    atomic_fetch_add_explicit(&worker->held[device.type][index], bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&held_by_workers[device.type][index], bytes, memory_order_relaxed);
}

void td_worker_hold(td_worker *worker, td_device device, int64_t bytes) {
    atomic_fetch_add_explicit(&worker->refs, 1, memory_order_relaxed);
    count(worker, device, bytes);
}

void td_worker_let_go(td_worker *worker, td_device device, int64_t bytes) {
    count(worker, device, -bytes);
    td_worker_release(worker);
}

int64_t td_memory_held(td_device device) {
    const td_worker *worker = td_worker_current;
    int index = device.index % TD_MAX_DEVICES;
    if (worker)
        return atomic_load_explicit(&worker->held[device.type][index], memory_order_relaxed);
    return td_memory_allocated(device) -
           atomic_load_explicit(&held_by_workers[device.type][index], memory_order_relaxed);
}
