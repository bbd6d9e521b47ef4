/* job.h: the job that this process is part of, its groups, and what a group does together.
 *
 * Ranks count from 0, as launchers count them. A process is in one job at most; before it enters
 * one, and after it left, it is rank 0 of 1. All functions are for one thread at a time, that of
 * the script.
 */
#ifndef TD_DISTRIBUTED_JOB_H
#define TD_DISTRIBUTED_JOB_H

#include "engine/core/tensor.h"
#include "engine/distributed/transport.h"
#include "engine/distributed/watch.h"
#include "engine/distributed/work.h"

typedef struct td_group td_group; /* some ranks of the job, in an order */

/* Seconds that a collective may wait, and who is told when the job ends without this process
 * wanting it (watch.h). */
typedef struct td_job_options {
    double timeout;
    td_job_ended ended;
} td_job_options;

/* Enter the job by an engine: "mpi" (the launcher's; TIDE_MPI=openmpi|mpich names another), "self"
 * (a job of one process); NULL: "mpi" where a launcher started us, else "self"; "nccl": as NULL,
 * and tensors on CUDA devices go by NCCL. Waits for the other processes. EVALUE where the process
 * is in a job or the engine's name is unknown; EIO, EINTERNAL where the engine can't be had, or
 * does not know of the processes that the launcher started. */
td_status td_job_open(const char *engine, const td_job_options *options) TD_MUST_CHECK;

/* Leave it; what is under way must have been waited for. Waits for the others. */
td_status td_job_close(void) TD_MUST_CHECK;
/* This process ends early, for a reason in one line: the others are told, and the job ends. */
void td_job_fail(const char *why);

bool td_job_is_open(void);
/* "mpi: Open MPI v4.1.4", "self: one process", "nccl: NCCL 2.30.7, mpi: ..."; "" outside */
const char *td_job_engine(void);
bool td_job_takes_devices(void); /* tensors on CUDA devices may be posted */
int td_job_local_rank(void);     /* among those on this machine, as the launcher says; else 0 */
td_group *td_job_all(void);      /* borrowed: all ranks */

/* A new group of ranks of the job. All ranks of the job call it, with the same list. NULL in *out
 * where this process is not among them. EVALUE for a list that is empty, out of order or has a
 * rank twice; EIO. */
td_status td_group_new(int n, const int *ranks, td_group **out) TD_MUST_CHECK;
void td_group_release(td_group *group);
int td_group_rank(const td_group *group); /* of this process, within the group */
int td_group_size(const td_group *group);
/* The rank in the job of a rank of the group. */
int td_group_member(const td_group *group, int rank);

/* What a collective works on. */
typedef struct td_post {
    td_collective kind;
    td_across op;
    int peer; /* root, destination or source within the group */
    int tag;
    td_tensor *send, *recv; /* borrowed; what they need not be may be NULL */
    /* Elements for each rank: what this one gives (SCATTER's root, ALL_TO_ALL), each one's share
     * (REDUCE_SCATTER); what it takes (ALL_GATHER, GATHER's root, ALL_TO_ALL). NULL: equal parts.
     */
    const int64_t *send_counts, *recv_counts;
    const char *place; /* "file:line" of the script */
    const char *label; /* what it is for, as recordings call it; NULL or "": nothing more */
} td_post;

/* Begin it; *out is a new reference. Tensors must be contiguous, on the CPU, or on one CUDA device
 * where the job takes those, of one dtype, and hold what the counts say; they must stay as they are
 * until the work has arrived. On a device it follows what the current stream was given so far.
 * ESHAPE, EDTYPE, EDEVICE, EVALUE (also what the engine can't do), ENOMEM. */
td_status td_post_start(td_group *group, const td_post *post, td_work **out) TD_MUST_CHECK;

/* Wait until it has arrived. On a device it is the current stream that waits: what it is given from
 * now on follows. EIO with what broke, EINTR. */
td_status td_work_wait(td_work *work) TD_MUST_CHECK;

#endif
