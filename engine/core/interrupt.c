/* interrupt.c: the flag that stops long kernels. */
#include "engine/core/interrupt.h"

atomic_int td_interrupt_flag;

void td_interrupt_request(void) {
    atomic_store_explicit(&td_interrupt_flag, 1, memory_order_relaxed);
}

void td_interrupt_clear(void) {
    atomic_store_explicit(&td_interrupt_flag, 0, memory_order_relaxed);
}

td_status td_interrupted(void) {
    return td_fail(TD_EINTR, "interrupted");
}

td_status td_interrupt_check(void) {
    return td_interrupt_requested() ? td_interrupted() : TD_OK;
}
