/* waits.c: hands hidden waits for a device to the one who listens. */
#include "engine/core/waits.h"

static _Thread_local td_wait_watcher current;

td_wait_watcher td_set_wait_watcher(td_wait_watcher watcher) {
    td_wait_watcher before = current;
    current = watcher;
    return before;
}

td_status td_tell_wait(td_device device) {
    return TD_UNLIKELY(current.hear != NULL) ? current.hear(current.ctx, device) : TD_OK;
}
