/* launcher.h: who started this process, and as which of how many: read from the environment, which
 * every launcher fills in its own way. */
#ifndef TD_DISTRIBUTED_LAUNCHER_H
#define TD_DISTRIBUTED_LAUNCHER_H

#include "engine/core/status.h"

typedef struct td_launcher {
    const char *name; /* "Open MPI", "MPICH", "Slurm", "torchrun", "tide-run --rehearse"; NULL:
                         nobody did */
    int rank, size;   /* 0 of 1 where nobody did */
    int local_rank;   /* among those on this machine; -1: not said */
    const char
        *transport;   /* the module that suits it ("openmpi", "mpich", "rehearsal"); NULL: any */
    bool one_machine; /* all of them are on this one */
} td_launcher;

/* Reads the environment anew. Numbers that make no sense count as not said. */
td_launcher td_launcher_find(void);

#endif
