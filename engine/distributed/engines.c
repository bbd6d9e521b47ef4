/* engines.c: finds the module of the MPI whose launcher started this process, and what goes with
 * it. */
#include "engine/distributed/engines.h"

#include "engine/core/load.h"
#include "engine/distributed/nccl_calls.h"

#include <stdlib.h>
#include <string.h>

static const td_library modules[] = {
    {.name = "Open MPI",
     .file = "libtide_mpi_openmpi.so",
     .table = TD_TRANSPORT_TABLE,
     .room = 64 << 20},
    {.name = "MPICH",
     .file = "libtide_mpi_mpich.so",
     .table = TD_TRANSPORT_TABLE,
     .room = 64 << 20},
};
static const char *const words[] = {"openmpi", "mpich"};
enum { MODULES = sizeof modules / sizeof *modules };

static td_status load(int k, const td_transport **out) {
    const void *table = NULL;
    td_status status = td_library_load(&modules[k], &table);
    *out = table;
    return status;
}

/* Two MPIs in one process would share names: the one that was taken first stays. */
static td_status find_mpi(const td_launcher *launcher, const td_transport **out) {
    const char *wanted = getenv("TIDE_MPI");
    if (!wanted || !*wanted)
        wanted = launcher->transport;
    td_status status = TD_OK;
    for (int k = 0; k < MODULES; k++) {
        if (wanted && strcmp(wanted, words[k]) != 0)
            continue;
        status = load(k, out);
        if (!status || wanted)
            return status;
    }
    if (status)
        return td_fail(TD_EINTERNAL,
                       "no MPI is there: Tide needs Open MPI (libopenmpi-dev) or MPICH "
                       "(libmpich-dev) when it is built");
    return td_fail(TD_EVALUE, "TIDE_MPI is '%s', none of: openmpi, mpich", wanted);
}

td_status td_engine_find(const char *engine, const td_launcher *launcher, const td_transport **out,
                         const td_transport **devices) {
    bool rehearsed = launcher->transport && strcmp(launcher->transport, "rehearsal") == 0;
    bool nccl = engine && strcmp(engine, "nccl") == 0;
    char why[TD_WHY];
    *devices = nccl && !rehearsed ? &td_transport_nccl : NULL;
    if (*devices &&
        !td_nccl_load(why)) /* an MPI that was entered and left can't be entered again */
        return td_fail(TD_EINTERNAL, "%s", why);
    if (!engine || nccl)
        engine = launcher->name ? "mpi" : "self";
    if (strcmp(engine, "self") == 0) {
        *out = &td_transport_single;
        return TD_OK;
    }
    if (strcmp(engine, "mpi") == 0 && rehearsed) {
        *out = &td_transport_rehearsal;
        return TD_OK;
    }
    if (strcmp(engine, "mpi") == 0)
        return find_mpi(launcher, out);
    return td_fail(TD_EVALUE, "engine '%s' is none of: mpi, nccl, self", engine);
}
