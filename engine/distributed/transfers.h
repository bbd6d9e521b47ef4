/* transfers.h: transfers between processes as activities (core/activity.h), for whoever records. */
#ifndef TD_DISTRIBUTED_TRANSFERS_H
#define TD_DISTRIBUTED_TRANSFERS_H

#include "engine/distributed/work.h"

/* The work has just arrived; on the driver's thread. */
void td_transfers_note(const td_work *work);

#endif
