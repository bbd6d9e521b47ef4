/* driver.h: the thread that drives the job's transports: one, and another for tensors on devices
 * where the job has it. Everything of theirs runs on it, so that the libraries need no locks of
 * their own, and transfers make progress while the script computes.
 *
 * It never spins: between two looks at what is under way it sleeps a sixteenth of the time that it
 * has waited so far, from 5 microseconds to 1 millisecond, or until something is handed over, and
 * without work it sleeps until there is some. The script's thread sleeps until its transfer has
 * arrived.
 */
#ifndef TD_DISTRIBUTED_DRIVER_H
#define TD_DISTRIBUTED_DRIVER_H

#include "engine/distributed/work.h"

/* Start the thread, let it enter the job, and wait for that. `devices` is the transport of tensors
 * on devices; NULL: there is none. EVALUE where a driver is there, EIO where a transport fails. */
td_status td_driver_open(const td_transport *transport, const td_transport *devices, int *rank,
                         int *size) TD_MUST_CHECK;

/* A new group of each of the two transports; waits for the other ranks. EIO. */
td_status td_driver_group(int n, const int *ranks, int tag, void *groups[2]) TD_MUST_CHECK;

/* Hand a transfer over; the driver takes a reference of its own. Transfers are started in the order
 * in which they are handed over. */
void td_driver_start(td_work *work);

/* Wait until it has arrived, or its device has it in the queue: EIO with its text when it broke,
 * EINTR (it goes on) when an interrupt is requested. */
td_status td_driver_wait(td_work *work) TD_MUST_CHECK;
/* Wait until devices have done all that was handed over for them, or of that what td_driver_wait
 * was asked for. EINTR. */
td_status td_driver_settle(bool awaited) TD_MUST_CHECK;

/* Leave the job and end the thread. Nothing may be under way. */
void td_driver_close(void);

#endif
