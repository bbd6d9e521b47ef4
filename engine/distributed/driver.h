/* driver.h: the thread that drives a transport. Everything of the transport's runs on it, so that
 * the library needs no locks of its own, and transfers make progress while the script computes.
 *
 * It never spins: between two looks at what is under way it sleeps a sixteenth of the time that it
 * has waited so far, from 5 microseconds to 1 millisecond, and without work it sleeps until there
 * is some. The script's thread sleeps until its transfer has arrived.
 */
#ifndef TD_DISTRIBUTED_DRIVER_H
#define TD_DISTRIBUTED_DRIVER_H

#include "engine/distributed/work.h"

/* Start the thread, let it enter the job, and wait for that. EVALUE where a driver is there, EIO
 * where the transport fails. */
td_status td_driver_open(const td_transport *transport, int *rank, int *size) TD_MUST_CHECK;

/* A new group of the transport's; waits for the other ranks. EIO. */
td_status td_driver_group(int n, const int *ranks, int tag, void **group) TD_MUST_CHECK;

/* Hand a transfer over; the driver takes a reference of its own. Transfers are started in the order
 * in which they are handed over. */
void td_driver_start(td_work *work);

/* Wait until it has arrived: EIO with its text when it broke, EINTR (it goes on) when an interrupt
 * is requested. */
td_status td_driver_wait(td_work *work) TD_MUST_CHECK;

/* Leave the job and end the thread. Nothing may be under way. */
void td_driver_close(void);

#endif
