/* coordinator.h: the one of a rehearsal who sees what every rank begins and waits for. It carries
 * out transfers, holds ranks against each other, and knows when none of them can go on.
 *
 * A send arrives when it is received, whatever its size: MPI may take small ones ahead, and
 * programs that count on it hang when they grow. For one thread.
 */
#ifndef TD_DISTRIBUTED_COORDINATOR_H
#define TD_DISTRIBUTED_COORDINATOR_H

#include "engine/core/status.h"

typedef struct td_coordinator td_coordinator;

/* New, for so many ranks. `patience`: seconds after which it is a reason to end that nothing
 * happens while a rank computes. ENOMEM. */
td_status td_coordinator_new(int size, double patience, td_coordinator **out) TD_MUST_CHECK;
/* Closes the pipes. NULL is fine. */
void td_coordinator_release(td_coordinator *coordinator);

/* The pipes of a rank's process: where it is read and written. Taken over. EIO. */
td_status td_coordinator_connect(td_coordinator *coordinator, int rank, int in,
                                 int out) TD_MUST_CHECK;
/* Wait at most so long for what ranks say, and answer. EIO, ENOMEM. */
td_status td_coordinator_turn(td_coordinator *coordinator, int timeout_ms) TD_MUST_CHECK;
/* A rank's process has ended; how, where that was not as it should, else NULL. EIO, ENOMEM. */
td_status td_coordinator_ended(td_coordinator *coordinator, int rank,
                               const char *how) TD_MUST_CHECK;

/* Why the job can't go well, in a line for each of what ranks do; NULL: it goes on, or is over.
 * Borrowed. */
const char *td_coordinator_verdict(const td_coordinator *coordinator);
/* Have all ranks ended? */
bool td_coordinator_is_over(const td_coordinator *coordinator);
/* Transfers that were carried out; a collective is one. */
int64_t td_coordinator_transfers(const td_coordinator *coordinator);

#endif
