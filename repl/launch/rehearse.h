/* rehearse.h: a rehearsal: all ranks of a job as processes of this machine, without MPI, under the
 * eyes of one coordinator. */
#ifndef TIDE_LAUNCH_REHEARSE_H
#define TIDE_LAUNCH_REHEARSE_H

#include <stdbool.h>

/* Run a command as so many ranks; the exit code: 0, or JOB_ENDED after a verdict on stderr.
 * `patience`: seconds in which something must happen; `verbose`: what was carried out is said. */
int rehearse(int ranks, char **command, double patience, bool verbose);

#endif
