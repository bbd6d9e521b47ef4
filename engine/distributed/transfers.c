/* transfers.c: what has arrived goes to the CPU's log. */
#include "engine/distributed/transfers.h"

#include "engine/core/activity.h"

static int64_t bytes_of(const td_tensor *x) {
    return x ? x->numel * (int64_t)td_tensor_itemsize(x) : 0;
}

void td_transfers_note(const td_work *work) {
    int64_t sent = bytes_of(work->send), received = bytes_of(work->recv);
    td_activity_log(&(td_activity){
        .kind = TD_ACTIVITY_COLLECTIVE,
        .thread = work->thread,
        .name = work->name,
        .track = {.device = TD_DEVICE_CPU, .id = (uint16_t)(TD_COMPILERS + work->group_number)},
        .bytes = sent > received ? sent : received,
        .number = work->everywhere,
        .start_ns = (uint64_t)work->started_ns,
        .end_ns = (uint64_t)td_clock_ns(),
        .launch_ns = (uint64_t)work->posted_ns});
}
