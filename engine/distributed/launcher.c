/* launcher.c: a row for each launcher: the variables that it sets. */
#include "engine/distributed/launcher.h"

#include <stdlib.h>

typedef struct row {
    const char *name, *rank, *size, *local, *transport;
} row;

/* The most particular first: mpirun within a job of Slurm is what started us. */
static const row rows[] = {
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "openmpi"},
    {"MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "mpich"},
    {"Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", NULL},
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", NULL},
};

static int read_count(const char *variable) {
    const char *text = getenv(variable);
    char *end = NULL;
    long value = text && *text ? strtol(text, &end, 10) : -1;
    return end && *end == '\0' && value >= 0 && value < 1 << 24 ? (int)value : -1;
}

td_launcher td_launcher_find(void) {
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        const row *r = &rows[k];
        int rank = read_count(r->rank), size = read_count(r->size);
        if (rank >= 0 && size > rank)
            return (td_launcher){r->name, rank, size, read_count(r->local), r->transport};
    }
    return (td_launcher){.size = 1, .local_rank = -1};
}
