/* hub.h: the one place of a job that hears of every process what it does, and decides that the job
 * ends, and why: a rank is gone, two ranks are in different collectives, or one waits for too long.
 * It runs on a thread of its own, in the process of rank 0 or in that beside it which tide-run
 * started.
 */
#ifndef TD_DISTRIBUTED_HUB_H
#define TD_DISTRIBUTED_HUB_H

#include "engine/core/status.h"

typedef struct td_hub td_hub;

/* Start a hub that this machine alone can reach, or all; the address for the processes (160 bytes).
 * EIO, EINTERNAL, ENOMEM. */
td_status td_hub_open(bool local, char *address, td_hub **out) TD_MUST_CHECK;
/* End it; NULL is fine. */
void td_hub_close(td_hub *hub);

/* For who watched the process of a rank end: tell the hub at an address. Waits a moment for it to
 * be sent. */
td_status td_hub_tell_gone(const char *address, int rank, const char *how) TD_MUST_CHECK;

#endif
