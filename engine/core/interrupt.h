/* interrupt.h: the flags that long kernels poll between chunks: the process's, and that of the
 * worker at work. */
#ifndef TD_CORE_INTERRUPT_H
#define TD_CORE_INTERRUPT_H

#include "engine/core/status.h"

#include <stdatomic.h>

/* Its lowest bit is set while a request stands; the bits above count the requests. */
extern atomic_uint td_interrupt_state;

void td_interrupt_request(
    void); /* of all that the process does; safe in a signal handler and from any thread */
void td_interrupt_clear(void); /* this worker's, or the process's on an ordinary thread */
/* Of what one worker does: its flag (core/worker.h). */
void td_interrupt_raise(atomic_uint *state);

/* The flag of the worker whose thread this is; NULL in an ordinary thread. */
extern TD_THREAD_STATE atomic_uint *td_interrupt_own;

/* Both flags as one number, which changes with either; its lowest bits tell whether a request
 * stands. */
static inline unsigned td_interrupt_mark(void) {
    unsigned state = atomic_load_explicit(&td_interrupt_state, memory_order_relaxed);
    if (TD_LIKELY(!td_interrupt_own))
        return state;
    unsigned own = atomic_load_explicit(td_interrupt_own, memory_order_relaxed);
    return ((state + own) & ~1u) | (state & 1) | (own & 1);
}

static inline bool td_interrupt_requested(void) {
    return td_interrupt_mark() & 1;
}

/* The same by a call: for loops compiled for other instruction sets, in which linkers mend no
 * access to a thread's state. */
bool td_interrupt_poll(void);

/* For work whose parts poll and leave early: a request may be cleared (by another Lua state's hook)
 * before the work looks whether it was whole. So it takes a mark when it begins, and asks at its
 * end whether a request stood at any time since. */
static inline bool td_interrupt_since(unsigned mark) {
    unsigned now = td_interrupt_mark();
    return now != mark || (now & 1);
}

/* EINTR with its message. */
td_status td_interrupted(void);
/* The same when a request stands, else OK. */
td_status td_interrupt_check(void);

#endif
