/* rehearsal.h: what a rank of a rehearsal and the coordinator (coordinator.h), which sees all
 * ranks, say to each other through two pipes. A rehearsal is a job on one machine, without MPI, in
 * which every transfer goes through the coordinator.
 *
 * Rank to coordinator: td_rehearsal_word, then `ncounts` counts (int64_t), then `bytes` bytes.
 * Coordinator to rank: td_rehearsal_answer, then `bytes` bytes.
 */
#ifndef TD_DISTRIBUTED_REHEARSAL_H
#define TD_DISTRIBUTED_REHEARSAL_H

#include "engine/distributed/flight.h"

/* The variables of a rank: rank, size, and its ends of the pipes, "READ WRITE". */
#define TD_REHEARSAL_RANK  "TIDE_REHEARSAL_RANK"
#define TD_REHEARSAL_SIZE  "TIDE_REHEARSAL_SIZE"
#define TD_REHEARSAL_PIPES "TIDE_REHEARSAL_PIPES"

typedef struct td_rehearsal_word {
    enum {
        TD_REHEARSAL_JOIN,     /* it enters the job */
        TD_REHEARSAL_GROUP,    /* it is in a group: `counts` are the ranks */
        TD_REHEARSAL_TRANSFER, /* it begins a transfer: `counts` are what it gives each rank of the
                                  group, then what it takes; bytes are elements */
        TD_REHEARSAL_WAIT,     /* its script waits for the transfer `token` */
        TD_REHEARSAL_FAIL      /* it ends early: bytes say why */
    } word;
    uint32_t token;          /* of a transfer; from 1 */
    td_flight_record record; /* of a transfer; of GROUP the group alone */
    int32_t tag;
    int64_t count;   /* td_transfer's */
    uint8_t shapes;  /* there would be elements, but the tensor has none (device meta) */
    uint8_t takes;   /* it has room for elements */
    int32_t ncounts; /* 0: td_transfer's counts were NULL */
    uint64_t bytes;
} td_rehearsal_word;

typedef struct td_rehearsal_answer {
    uint32_t token; /* has arrived */
    uint64_t bytes;
} td_rehearsal_answer;

#endif
