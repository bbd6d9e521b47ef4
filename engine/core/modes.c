/* modes.c: the modes of this thread. */
#include "engine/core/modes.h"

static _Thread_local bool grad_disabled; /* zero: recording is on in a new thread */

bool td_grad_enabled(void) {
    return !grad_disabled;
}

bool td_set_grad_enabled(bool enabled) {
    bool before = !grad_disabled;
    grad_disabled = !enabled;
    return before;
}
