/* supervise.h: what tide-run does beside each process of a job: it starts the program, waits, and
 * ends as the program did. */
#ifndef TIDE_LAUNCH_SUPERVISE_H
#define TIDE_LAUNCH_SUPERVISE_H

#include <stdbool.h>

/* The first argument by which tide-run is told to be it. */
#define SUPERVISE "--supervise"

/* Run a command; the exit code. */
int supervise(char **command);

#endif
