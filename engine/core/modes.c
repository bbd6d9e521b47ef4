/* modes.c: this thread's modes, and the process's switch for deterministic results. */
#include "engine/core/modes.h"

#include <stdatomic.h>

TD_THREAD_STATE td_modes td_modes_current;
TD_THREAD_STATE td_pending *td_pending_work;

td_modes td_set_modes(td_modes now) {
    td_modes before = td_modes_current;
    td_modes_current = now;
    return before;
}

bool td_set_grad_enabled(bool enabled) {
    bool before = !td_modes_current.grad_disabled;
    td_modes_current.grad_disabled = !enabled;
    return before;
}

static atomic_bool deterministic;

bool td_deterministic(void) {
    return atomic_load_explicit(&deterministic, memory_order_relaxed);
}

void td_set_deterministic(bool on) {
    atomic_store_explicit(&deterministic, on, memory_order_relaxed);
}
