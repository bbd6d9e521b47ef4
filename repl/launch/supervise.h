/* supervise.h: what tide-run does beside each process of a job: it starts the program, waits,
 * tells the job how it ended, and ends as the program did. */
#ifndef TIDE_LAUNCH_SUPERVISE_H
#define TIDE_LAUNCH_SUPERVISE_H

#include <stdbool.h>
#include <stddef.h>

/* The first argument by which tide-run is told to be it. */
#define SUPERVISE "--supervise"

/* The exit code of a job that ended because of one of its ranks, and of each of its processes. */
enum { JOB_ENDED = 113 };
/* The variable with the process number of tide-run, which takes SIGUSR1 for such an end. */
#define LAUNCHER "TIDE_RUN_PID"

/* Run a command; the exit code. */
int supervise(char **command);
/* How a process ended, by what waitpid said, where that was not as it should; false: it was. */
bool describe_end(int status, char *text, size_t size);

#endif
