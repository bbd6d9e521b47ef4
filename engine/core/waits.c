/* waits.c: the calling thread's watcher of waits that nobody asked for (waits.h). */
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
