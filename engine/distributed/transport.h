/* transport.h: what carries tensors between the processes of a job: one struct of functions for
 * each engine (MPI's modules in loaded/, NCCL in nccl.c, the engine of a single process in
 * single.c).
 *
 * A transport knows no tensors: it moves and reduces elements that lie in a row, in the memory of
 * the CPU or, NCCL's, of a device. All its functions are called on one thread (driver.h) unless
 * they say otherwise, none may wait for other processes unless it says so, and what it starts stays
 * valid until `test` says that it is done. Modules are linked to nothing of Tide's: they get what
 * they need by td_transport_host and say what failed in a text.
 */
#ifndef TD_DISTRIBUTED_TRANSPORT_H
#define TD_DISTRIBUTED_TRANSPORT_H

#include "engine/core/dtype.h"
#include "engine/core/queues.h"

/* What processes do together. ORDER COLLECTIVE: the names are those of the Lua functions. */
#define TD_COLLECTIVE_TABLE(X)                                                                     \
    X(BARRIER, "barrier")                                                                          \
    X(BROADCAST, "broadcast")                                                                      \
    X(ALL_REDUCE, "all_reduce")                                                                    \
    X(ALL_GATHER, "all_gather")                                                                    \
    X(REDUCE_SCATTER, "reduce_scatter")                                                            \
    X(GATHER, "gather")                                                                            \
    X(SCATTER, "scatter")                                                                          \
    X(ALL_TO_ALL, "all_to_all")                                                                    \
    X(SEND, "send")                                                                                \
    X(RECV, "recv")                                                                                \
    X(SHUTDOWN, "shutdown")

typedef enum td_collective {
#define TD_COLLECTIVE_ENUM(NAME, text) TD_##NAME,
    TD_COLLECTIVE_TABLE(TD_COLLECTIVE_ENUM)
#undef TD_COLLECTIVE_ENUM
        TD_COLLECTIVES
} td_collective;

#define TD_ACROSS_TABLE(X)                                                                         \
    X(SUM, "sum")                                                                                  \
    X(MEAN, "mean") /* a sum for the transport; td_post_start divides it */                        \
    X(PRODUCT, "product")                                                                          \
    X(MIN, "min")                                                                                  \
    X(MAX, "max")                                                                                  \
    X(BAND, "band")                                                                                \
    X(BOR, "bor")                                                                                  \
    X(BXOR, "bxor")

typedef enum td_across {
#define TD_ACROSS_ENUM(NAME, text) TD_ACROSS_##NAME,
    TD_ACROSS_TABLE(TD_ACROSS_ENUM)
#undef TD_ACROSS_ENUM
        TD_ACROSS_OPS
} td_across;

enum { TD_WHY = 256 }; /* bytes of the text of a failure */

/* One transfer of a group. Counts are elements for each rank of the group, one rank's behind the
 * other's; `send` and `recv` may be the same memory where a collective works in place. */
typedef struct td_transfer {
    td_collective kind;
    td_across op; /* of ALL_REDUCE and REDUCE_SCATTER */
    td_dtype dtype;
    int peer;         /* root, destination or source, a rank of the group */
    int tag;          /* of SEND and RECV */
    uint64_t number;  /* of its record (flight.h) */
    const void *send; /* NULL where this rank gives nothing */
    void *recv;       /* NULL where it takes nothing */
    int64_t count;    /* of BROADCAST, ALL_REDUCE, SEND, RECV; what this rank gives in ALL_GATHER
                         and GATHER, takes in SCATTER and REDUCE_SCATTER */
    const int64_t *send_counts; /* of SCATTER's root and ALL_TO_ALL; REDUCE_SCATTER's shares */
    const int64_t *recv_counts; /* of ALL_GATHER, GATHER's root and ALL_TO_ALL */

    /* Of elements on a device; queues is NULL where they are the CPU's. */
    const td_queues *queues;
    td_device device;
    td_event *ready; /* the transfer follows it */
    td_event *done;  /* recorded behind the transfer, once it is TD_QUEUED */
} td_transfer;

struct td_transport;

/* What a transport needs of the engine. */
typedef struct td_transport_host {
    /* into[k] = into[k] op from[k]; 16-bit floats are reduced in float. */
    void (*reduce)(td_across op, td_dtype dtype, void *into, const void *from, int64_t n);
    const td_dtype_info *dtypes;
    /* For a transport of a device's elements: the job's other one, which is open, by which ranks
     * tell each other how to meet. */
    const struct td_transport *messages;
} td_transport_host;

/* TD_MOVING is TD_PENDING of a transfer that came on since it was last asked for, and may again at
 * once. TD_QUEUED: the device does it in its own time, `done` is recorded behind it. */
typedef enum td_progress { TD_PENDING, TD_MOVING, TD_QUEUED, TD_ARRIVED, TD_BROKEN } td_progress;

typedef struct td_transport {
    const char *name;             /* "mpi" */
    const char *(*version)(void); /* of the library; static, known once it is open */
    /* Enter the job; waits for the other processes. False, and why: there is none. One of a
     * device's elements is told rank and size. */
    bool (*open)(const td_transport_host *host, int *rank, int *size, char why[TD_WHY]);
    /* A new group of ranks of the job, of which this process is one. Waits for the others. */
    bool (*group)(int n, const int *ranks, int tag, void **group, char why[TD_WHY]);
    void (*ungroup)(void *group);
    /* Begin a transfer within a group (NULL: the job). *token is what test takes. */
    bool (*start)(void *group, const td_transfer *t, void **token, char why[TD_WHY]);
    /* How far it is; once it is not pending the token is gone. */
    td_progress (*test)(void *token, char why[TD_WHY]);
    /* Leave the job: waits for the other processes, which do the same. */
    void (*close)(void);

    /* ---- of transports of a device's elements (nccl.c); NULL elsewhere ---- */
    /* Called on the script's thread before a transfer is handed over. False, and why: it can't be
     * done. */
    bool (*can)(const td_transfer *t, int rank, char why[TD_WHY]);
    /* The job was told that a transfer broke: what the device still does for it is called off. */
    void (*call_off)(void *group);

    /* ---- of transports that see all ranks (rehearsal.c); NULL and false elsewhere ---- */
    bool sees_all; /* it ends the job where ranks differ or are gone: there is no control channel */
    bool shapes_do; /* tensors of the device meta may be sent: `send` and `recv` are NULL then */
    void (*waits)(void *token);    /* the script does nothing more until this has arrived */
    void (*fail)(const char *why); /* this process ends early; called on the script's thread */
} td_transport;

/* Modules: the symbol of the table. */
#define TD_TRANSPORT_TABLE "td_late_transport"

/* One process by itself (single.c), and one of those that tide-run --rehearse started
 * (rehearsal.c). */
extern const td_transport td_transport_single, td_transport_rehearsal;
/* NCCL, for tensors on CUDA devices (nccl.c). */
extern const td_transport td_transport_nccl;

extern const char *const td_collective_names[TD_COLLECTIVES];
extern const char *const td_across_names[TD_ACROSS_OPS];

#endif
