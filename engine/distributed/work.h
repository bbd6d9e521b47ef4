/* work.h: one transfer on its way, from the script's thread to the driver's and back. */
#ifndef TD_DISTRIBUTED_WORK_H
#define TD_DISTRIBUTED_WORK_H

#include "engine/core/tensor.h"
#include "engine/distributed/transport.h"

enum {
    TD_PLACE = 80,     /* bytes of "file:line" */
    TD_WORK_NAME = 120 /* and of what a transfer is for recordings */
};

typedef struct td_work td_work;

struct td_work {
    atomic_int refs;
    _Atomic int progress; /* td_progress; what stands below may be read once it has ended */
    char why[TD_WHY];     /* of TD_BROKEN */

    /* for the driver */
    td_work *next;
    const td_transport *transport; /* that carries it */
    void *group;                   /* the transport's */
    void *token;                   /* set while the transfer is under way */
    bool started;
    atomic_bool awaited; /* the script waits for it */
    bool told;           /* and the transport has heard that */

    /* for recordings (transfers.h) */
    char name[TD_WORK_NAME]; /* "all_reduce", with what it is for */
    uint64_t everywhere;     /* td_collective_number */
    uint32_t group_number, thread;
    int64_t posted_ns, started_ns; /* by the monotonic clock: handed over; begun by the driver */

    double divisor; /* of a mean: what the result is divided by; 0: nothing */
    td_transfer transfer;
    int64_t *counts; /* what the transfer's counts lie in */
    td_tensor *send, *recv;
};

/* It has arrived, or is broken. */
static inline bool td_work_has_ended(const td_work *work) {
    int progress = atomic_load_explicit(&work->progress, memory_order_acquire);
    return progress == TD_ARRIVED || progress == TD_BROKEN;
}

/* New, with room for `ncounts` counts; NULL: out of memory. */
td_work *td_work_new(int ncounts);
td_work *td_work_retain(td_work *work);
void td_work_release(td_work *work);

#endif
