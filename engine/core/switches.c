/* switches.c: the switches of switches.h, each an atomic flag. */
#include "engine/core/switches.h"

#include <stdatomic.h>

static atomic_bool switches[TD_SWITCHES] = {
    [TD_SWITCH_TF32_CONVOLUTIONS] = true, [TD_SWITCH_CUDNN] = true};

bool td_switch_is_on(td_switch which) {
    return atomic_load_explicit(&switches[which], memory_order_relaxed);
}

void td_switch_set(td_switch which, bool on) {
    atomic_store_explicit(&switches[which], on, memory_order_relaxed);
}
