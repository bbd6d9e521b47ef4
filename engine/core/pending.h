/* pending.h: work that this thread has put off, which must be done before certain other things are:
 * before tensors are written, numbers are drawn, or operators run that know nothing of it. */
#ifndef TD_CORE_PENDING_H
#define TD_CORE_PENDING_H

#include "engine/core/status.h"

typedef struct td_pending td_pending;
struct td_pending {
    td_status (*run)(td_pending *self); /* do it all; takes itself off the thread first */
};

extern TD_THREAD_STATE td_pending *td_pending_work; /* NULL: none */

static inline td_status td_settle_pending(void) {
    return TD_UNLIKELY(td_pending_work != NULL) ? td_pending_work->run(td_pending_work) : TD_OK;
}

#endif
