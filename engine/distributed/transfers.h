/* transfers.h: transfers between processes as activities (core/activity.h), for whoever records. */
#ifndef TD_DISTRIBUTED_TRANSFERS_H
#define TD_DISTRIBUTED_TRANSFERS_H

#include "engine/distributed/work.h"

/* Register the source, the CPU's. */
void td_transfers_register(void);
/* The work has just arrived; on the driver's thread. */
void td_transfers_note(const td_work *work);
/* By the source's clock, the monotonic one. */
int64_t td_transfers_clock(void);

#endif
