/* modes.c: the modes of this thread. */
#include "engine/core/modes.h"

#include <stdatomic.h>

static _Thread_local td_modes modes;

td_modes td_get_modes(void) {
    return modes;
}

td_modes td_set_modes(td_modes now) {
    td_modes before = modes;
    modes = now;
    return before;
}

bool td_grad_enabled(void) {
    return !modes.grad_disabled;
}

bool td_set_grad_enabled(bool enabled) {
    bool before = !modes.grad_disabled;
    modes.grad_disabled = !enabled;
    return before;
}

static atomic_bool deterministic;

bool td_deterministic(void) {
    return atomic_load_explicit(&deterministic, memory_order_relaxed);
}

void td_set_deterministic(bool on) {
    atomic_store_explicit(&deterministic, on, memory_order_relaxed);
}
