/* work.c: making and freeing transfers. */
#include "engine/distributed/work.h"

#include "engine/core/memory.h"

td_work *td_work_new(int ncounts) {
    td_work *work = td_calloc(1, sizeof *work);
    int64_t *counts = ncounts ? td_calloc((size_t)ncounts, sizeof *counts) : NULL;
    if (!work || (ncounts && !counts)) {
        td_free(work);
        td_free(counts);
        return NULL;
    }
    atomic_init(&work->refs, 1);
    work->counts = counts;
    return work;
}

td_work *td_work_retain(td_work *work) {
    atomic_fetch_add_explicit(&work->refs, 1, memory_order_relaxed);
    return work;
}

void td_work_release(td_work *work) {
    if (!work || !td_was_last(&work->refs))
        return;
    if (work->transfer.ready)
        work->transfer.queues->event_free(work->transfer.ready);
    if (work->transfer.done)
        work->transfer.queues->event_free(work->transfer.done);
    td_release(work->send);
    td_release(work->recv);
    td_free(work->counts);
    td_free(work);
}
