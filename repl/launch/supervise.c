/* supervise.c: runs one process of a job and ends as it does. */
#include "repl/launch/supervise.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int supervise(char **command) {
    execv(command[0], command);
    fprintf(stderr, "tide-run: %s can't be run: %s\n", command[0], strerror(errno));
    return 127;
}
