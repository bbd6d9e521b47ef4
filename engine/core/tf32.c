/* tf32.c: what may be rounded to TF32, for the whole process. */
#include "engine/core/tf32.h"

#include <stdatomic.h>

static atomic_bool allowed_for[TD_TF32_USES] = {[TD_TF32_CONVOLUTIONS] = true};

bool td_tf32_allowed(td_tf32_use use) {
    return atomic_load_explicit(&allowed_for[use], memory_order_relaxed);
}

void td_set_tf32_allowed(td_tf32_use use, bool allowed) {
    atomic_store_explicit(&allowed_for[use], allowed, memory_order_relaxed);
}
