/* launcher.c: a row for each launcher: the variables that it sets. */
#include "engine/distributed/launcher.h"

#include <stdlib.h>

typedef struct row {
    const char *name, *rank, *size, *local, *local_size, *transport;
} row;

/* The most particular first: mpirun within a job of Slurm is what started us. */
static const row rows[] = {
    {"tide-run --rehearse", "TIDE_REHEARSAL_RANK", "TIDE_REHEARSAL_SIZE", "TIDE_REHEARSAL_RANK",
     "TIDE_REHEARSAL_SIZE", "rehearsal"},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", "openmpi"},
    {"MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "mpich"},
    {"Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", NULL, NULL},
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", NULL},
};

static int read_count(const char *variable) {
    const char *text = variable ? getenv(variable) : NULL;
    char *end = NULL;
    long value = text && *text ? strtol(text, &end, 10) : -1;
    return end && *end == '\0' && value >= 0 && value < 1 << 24 ? (int)value : -1;
}

td_launcher td_launcher_find(void) {
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        const row *r = &rows[k];
        int rank = read_count(r->rank), size = read_count(r->size);
        if (rank >= 0 && size > rank)
            return (td_launcher){r->name,      rank,
                                 size,         read_count(r->local),
                                 r->transport, read_count(r->local_size) == size};
    }
    return (td_launcher){.size = 1, .local_rank = -1, .one_machine = true};
}
