/* interrupt.c: raises, clears and polls the flags that stop long kernels. */
#include "engine/core/interrupt.h"

atomic_uint td_interrupt_state;
TD_THREAD_STATE atomic_uint *td_interrupt_own;

void td_interrupt_raise(atomic_uint *state) {
    unsigned now = atomic_load_explicit(state, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(state, &now, (now + 2) | 1, memory_order_relaxed,
                                                  memory_order_relaxed))
        ;
}

void td_interrupt_request(void) {
    td_interrupt_raise(&td_interrupt_state);
}

void td_interrupt_clear(void) {
    atomic_fetch_and_explicit(td_interrupt_own ? td_interrupt_own : &td_interrupt_state, ~1u,
                              memory_order_relaxed);
}

bool td_interrupt_poll(void) {
    return td_interrupt_requested();
}

td_status td_interrupted(void) {
    return td_fail(TD_EINTR, "interrupted");
}

td_status td_interrupt_check(void) {
    return td_interrupt_requested() ? td_interrupted() : TD_OK;
}
