/* watch.h: this process's side of the control channel: a thread that tells the hub what the process
 * does, and hears why the job ends. */
#ifndef TD_DISTRIBUTED_WATCH_H
#define TD_DISTRIBUTED_WATCH_H

#include "engine/core/status.h"

/* Called on the watch's thread when the job ends without this process wanting it: `why` in one
 * line. It should end the process. */
typedef void (*td_job_ended)(const char *why, int rank);

/* Begin to watch as a rank of so many, by a hub's address. EIO, EINTERNAL, ENOMEM. */
td_status td_watch_open(const char *address, int rank, int size, double timeout,
                        td_job_ended ended) TD_MUST_CHECK;
bool td_watch_is_open(void);

/* The transport failed: the hub is told, which knows or finds out why. Returns after two seconds
 * where it does not end the job. */
void td_watch_trouble(const char *why);
/* This process is about to end early, for a reason in one line. The same. */
void td_watch_leave(const char *why);
/* The shutdown has arrived on all ranks: stop watching. */
void td_watch_close(void);

#endif
