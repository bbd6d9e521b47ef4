/* interrupt.h: one process-wide flag that long kernels poll between chunks. */
#ifndef TD_CORE_INTERRUPT_H
#define TD_CORE_INTERRUPT_H

#include "engine/core/status.h"

#include <stdatomic.h>

extern atomic_int td_interrupt_flag;

void td_interrupt_request(void); /* safe in a signal handler and from any thread */
void td_interrupt_clear(void);

static inline bool td_interrupt_requested(void) {
    return atomic_load_explicit(&td_interrupt_flag, memory_order_relaxed) != 0;
}

/* EINTR with its message. */
td_status td_interrupted(void);
/* The same when a request stands, else OK. */
td_status td_interrupt_check(void);

#endif
