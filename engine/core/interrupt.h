/* interrupt.h: one process-wide flag that long kernels poll between chunks. */
#ifndef TD_CORE_INTERRUPT_H
#define TD_CORE_INTERRUPT_H

#include "engine/core/status.h"

#include <stdatomic.h>

/* Its lowest bit is set while a request stands; the bits above count the requests. */
extern atomic_uint td_interrupt_state;

void td_interrupt_request(void); /* safe in a signal handler and from any thread */
void td_interrupt_clear(void);

static inline bool td_interrupt_requested(void) {
    return atomic_load_explicit(&td_interrupt_state, memory_order_relaxed) & 1;
}

/* For work whose parts poll and leave early: a request may be cleared (by another Lua state's hook)
 * before the work looks whether it was whole. So it takes a mark when it begins, and asks at its
 * end whether a request stood at any time since. */
static inline unsigned td_interrupt_mark(void) {
    return atomic_load_explicit(&td_interrupt_state, memory_order_relaxed);
}

static inline bool td_interrupt_since(unsigned mark) {
    unsigned now = atomic_load_explicit(&td_interrupt_state, memory_order_relaxed);
    return now != mark || (now & 1);
}

/* EINTR with its message. */
td_status td_interrupted(void);
/* The same when a request stands, else OK. */
td_status td_interrupt_check(void);

#endif
