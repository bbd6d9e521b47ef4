/* modes.h: how this thread wants operators to run. */
#ifndef TD_CORE_MODES_H
#define TD_CORE_MODES_H

#include "engine/core/device.h"
#include "engine/core/status.h"

struct td_keeper;
struct td_dispatcher;

/* All modes of a thread: saved and restored as one value. Zero is what a new thread has. */
typedef struct td_modes {
    bool grad_disabled; /* operators are not recorded for backward */
    bool inference;     /* nor is what they make ever to be used in what is recorded */
    bool anomaly;       /* nodes know their line, and backward looks for NaN in gradients ... */
    bool unchecked;     /* ... or, with anomaly, does not look */
    bool casting;       /* autocast holds for some device: */
    bool uncached;      /* weights are cast anew by every call */
    bool brief;         /* memory that is asked for goes back soon: core/allocator.c */
    uint8_t cast[TD_DEVICE_TYPES];  /* the low dtype by type of device; 0: nothing is cast there */
    td_device device;               /* where front ends make new tensors when none is named */
    uint32_t region;                /* of calls/autocast.h, whose casts of weights are kept */
    uint32_t keeping;               /* which of its own, for the keeper: its business */
    const struct td_keeper *keeper; /* autograd/saved.h: of what nodes save; NULL: themselves */
    const struct td_dispatcher *dispatcher; /* ops/op.h: takes calls of operators; NULL: they run */
} td_modes;

extern TD_THREAD_STATE td_modes td_modes_current;

static inline td_modes td_get_modes(void) {
    return td_modes_current;
}
td_modes td_set_modes(td_modes modes); /* returns the former ones */

/* Is recording for backward switched on? It is in a new thread. */
static inline bool td_grad_enabled(void) {
    return !td_modes_current.grad_disabled;
}
bool td_set_grad_enabled(bool enabled); /* returns the former state */
/* Are operators recorded? Under inference they are not, whatever else is switched on. */
static inline bool td_is_recording(void) {
    return !(td_modes_current.grad_disabled | td_modes_current.inference);
}

/* Should results be the same for every number of threads, though that takes longer? Of the whole
 * process; off at the start. */
bool td_deterministic(void);
void td_set_deterministic(bool on);

/* Work that this thread has put off, which must be done before tensors are written, numbers are
 * drawn, or operators run that know nothing of it. */
typedef struct td_pending td_pending;
struct td_pending {
    td_status (*run)(td_pending *self); /* do it all; takes itself off the thread first */
};
extern TD_THREAD_STATE td_pending *td_pending_work; /* NULL: none */

static inline td_status td_settle_pending(void) {
    return TD_UNLIKELY(td_pending_work != NULL) ? td_pending_work->run(td_pending_work) : TD_OK;
}

#endif
