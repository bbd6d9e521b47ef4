/* engines.h: which transport a job runs on, and the modules that hold them. */
#ifndef TD_DISTRIBUTED_ENGINES_H
#define TD_DISTRIBUTED_ENGINES_H

#include "engine/distributed/launcher.h"
#include "engine/distributed/transport.h"

/* The transport of an engine's name ("mpi", "self"; NULL: what suits the launcher), loaded where it
 * is a module. "nccl" is that of NULL, and NCCL beside it in *devices for tensors on devices, which
 * is NULL elsewhere. EVALUE, EINTERNAL. */
td_status td_engine_find(const char *engine, const td_launcher *launcher, const td_transport **out,
                         const td_transport **devices) TD_MUST_CHECK;

#endif
